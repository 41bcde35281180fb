// Selections: what they light up, what is said of them, and the keys that move them.

// What a selection lights up: elements, and which cell it is.
function workedOut(selection) {
  const { model } = page;
  if (!selection) return { flats: [] };
  if (selection.flat !== undefined) return { flats: [selection.flat], chosen: selection.flat };
  if (selection.place) {
    const found = [...model.inverse().places.values()].filter(({ place }) => matches(place, selection.place));
    found.sort((x, y) => comparePlaces(x.place, y.place));
    return { flats: [...new Set(found.flatMap(({ flats }) => flats))], place: selection.place, found };
  }
  const cell = page.tables.find(({ grid }) => grid.name === "banks")?.grid.cells.flat().find(({ at }) => at === selection.bit);
  return { flats: cell?.flats ?? [], bit: selection.bit, cell };
}

// By the coordinates along the axes in turn.
function comparePlaces(x, y) {
  for (const [a, v] of x) if (v !== y.get(a)) return v < y.get(a) ? -1 : 1;
  return 0;
}

function showSelection(selection) {
  const { model } = page;
  const found = workedOut(selection);
  for (const table of page.tables) table.light(found);
  let text = '<p class="note">Point at a cell, or select one, to see why it is where it is.</p>';
  if (found.chosen !== undefined) text = elementDetails(model, found.chosen);
  else if (found.place) text = placeDetails(model, found.place, found.found);
  else if (found.cell) text = memoryDetails(model, found.cell);
  $("details").innerHTML = text;
  return found;
}

function pin(selection) {
  page.pinned = selection;
  writeSelection(page.state, selection, page.model.shape);
  showSelection(selection);
  writeLink();
  $("said").textContent = $("details").querySelector("h2")
    ? [...$("details").querySelectorAll("h2, #holders li")].map((part) => part.firstChild.textContent).slice(0, 4).join("; ")
    : "nothing selected";
}

// Move the windows so that they show a selected element.
function reveal(flat) {
  const columns = page.model.shape.at(-1);
  const table = page.tables.find(({ grid }) => grid.name === "logical");
  if (!table || table.byFlat.has(flat)) return;
  page.origin.logical = [flat / columns - 8n, (flat % columns) - 8n];
  render();
}

function tableOf(target) {
  const element = target.closest?.("table.grid");
  return element && page.tables.find((table) => table.element === element);
}

// The arrow keys: to another cell or to a label, and where the window ends the window moves.
function move(table, r, c, step) {
  const { grid } = table;
  const to = [r + step[0], c + step[1]];
  const counts = [grid.cells.length, grid.columnLabels.length];
  const lowest = grid.rowPlaces ? -1 : 0; // labels that can be selected
  const inside = to.every((at, k) => at < counts[k] && (at >= 0 || (at === lowest && grid.begin[k] === 0n)));
  if (inside) {
    focusCell(table, ...to);
    return;
  }
  const origin = grid.begin.map((begin, k) => begin + BigInt(step[k]));
  if (!origin.every((begin, k) => begin >= 0n && begin + BigInt(counts[k]) <= grid.size[k])) return;
  page.origin[grid.name] = origin;
  render();
  focusCell(page.tables.find((other) => other.grid.name === grid.name), r, c);
}

function focusCell(table, r, c) {
  if (r < 0 && c < 0) return;
  const cell = table.at(r, c);
  if (!cell) return;
  table.rest(r, c);
  cell.focus();
}

function hover(target) {
  const table = tableOf(target);
  const at = table?.where(target);
  const selection = at && table.selection(...at);
  if (selection) showSelection(selection);
}

function onKey(event) {
  const table = tableOf(event.target);
  if (!table) return;
  const [r, c] = table.where(event.target);
  const ends = [table.grid.cells.length - 1, table.grid.columnLabels.length - 1];
  const keys = {
    ArrowUp: () => move(table, r, c, [-1, 0]),
    ArrowDown: () => move(table, r, c, [1, 0]),
    ArrowLeft: () => move(table, r, c, [0, -1]),
    ArrowRight: () => move(table, r, c, [0, 1]),
    Home: () => focusCell(table, event.ctrlKey ? 0 : r, 0),
    End: () => focusCell(table, event.ctrlKey ? ends[0] : r, ends[1]),
    Escape: () => pin(null),
  };
  if (!hasOwn(keys, event.key)) return;
  event.preventDefault();
  keys[event.key]();
}
