// Grids as tables: written as one string, read back by row and column.

function escapeText(text) {
  return String(text).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
}

// Colors for the keys of all cells: key -> index into the palette.
function paintedKeys(grids, palette) {
  const count = HOUSE.palettes[palette].length;
  const keys = [...new Set(grids.flatMap((grid) => grid.cells.flat().map((cell) => cell.key)))].filter((key) => key !== null);
  keys.sort((a, b) => (a < b ? -1 : 1));
  const index = (key, k) => (palette === "ramp" ? Math.floor((k * count) / keys.length) : Number(mod(key, BigInt(count))));
  return new Map(keys.map((key, k) => [key, index(key, k)]));
}

function paletteStyle(name) {
  const rule = (color, k) => `.k${k}{background:${color};color:${HOUSE.inks[color]}}`;
  return HOUSE.palettes[name].map(rule).join("") + `.k-{background:${HOUSE.empty};color:${HOUSE.inks[HOUSE.empty]}}`;
}

function cellText({ lines, marks }) {
  const signs = (marks ?? []).map((mark) => HOUSE.signs[mark][0]).join("");
  return lines.map(escapeText).join("<br>") + (signs ? `<sup>${escapeText(signs)}</sup>` : "");
}

function tableText(grid, title, colors) {
  const header = (text, scope, extra) => `<th scope="${scope}"${extra}>${escapeText(text)}</th>`;
  const clickable = grid.rowPlaces ? ' tabindex="-1"' : "";
  const first = (n, k) => `${n + BigInt(k) + 2n}`; // aria counts from 1, and the labels are the first
  const heads = grid.columnLabels.map((text, c) => header(text, "col", ` role="columnheader"${clickable} aria-colindex="${first(grid.begin[1], c)}"`));
  const rows = grid.cells.map((row, r) => {
    const cells = row.map((cell, c) => {
      const color = cell.key === null ? "-" : colors.get(cell.key);
      const kind = cell.marks?.includes("conflict") ? " conflict" : "";
      return `<td role="gridcell" tabindex="-1" aria-colindex="${first(grid.begin[1], c)}" class="k${color}${kind}">${cellText(cell)}</td>`;
    });
    const head = header(grid.rowLabels[r], "row", ` role="rowheader"${clickable}`);
    return `<tr role="row" aria-rowindex="${first(grid.begin[0], r)}">${head}${cells.join("")}</tr>`;
  });
  const size = `aria-rowcount="${grid.size[0] + 1n}" aria-colcount="${grid.size[1] + 1n}"`;
  return (
    `<section class="view" aria-label="${escapeText(title)}"><h2>${escapeText(title)}</h2>` +
    `<table class="grid" role="grid" id="${grid.name}" aria-label="${escapeText(title)}" ${size}>` +
    `<thead><tr role="row" aria-rowindex="1"><th>${escapeText(grid.corner)}</th>${heads.join("")}</tr></thead>` +
    `<tbody>${rows.join("")}</tbody></table>` +
    `${grid.notes.map((note) => `<p class="note">${escapeText(note)}</p>`).join("")}</section>`
  );
}

// A table that is shown: where its cells are, by row and column, by element and by place.
class Table {
  constructor(grid, element) {
    this.grid = grid;
    this.element = element;
    this.byFlat = new Map();
    this.lit = [];
    grid.cells.forEach((row, r) => row.forEach((cell, c) => {
      for (const flat of cell.flats) {
        if (!this.byFlat.has(flat)) this.byFlat.set(flat, []);
        this.byFlat.get(flat).push([r, c]);
      }
    }));
    this.rest(0, 0);
  }

  // The element of a row and column; -1 is that of the labels.
  at(r, c) {
    return this.element.rows[r + 1]?.cells[c + 1];
  }

  where(element) {
    const cell = element.closest("td, th");
    return cell ? [cell.parentNode.rowIndex - 1, cell.cellIndex - 1] : null;
  }

  // The one cell that the tabulator key reaches.
  rest(r, c) {
    const cell = this.at(r, c);
    if (!cell) return;
    if (this.resting) this.resting.tabIndex = -1;
    cell.tabIndex = 0;
    this.resting = cell;
  }

  // What selecting a cell, or the label of a row or column, means.
  selection(r, c) {
    const { grid } = this;
    if (r < 0 || c < 0) {
      const place = r < 0 ? grid.columnPlaces?.[c] : grid.rowPlaces?.[r];
      return place ? { place } : null;
    }
    const cell = grid.cells[r]?.[c];
    if (!cell) return null;
    if (grid.name === "logical") return { flat: cell.flats[0] };
    return grid.name === "hardware" ? { place: cell.places[0] } : { bit: cell.at };
  }

  // Outline the cells of a selection that was worked out: { flats, chosen, place, bit }.
  light({ flats, chosen, place, bit }) {
    for (const cell of this.lit) {
      cell.classList.remove("on", "chosen");
      cell.removeAttribute("aria-selected");
    }
    const found = new Map();
    const add = (r, c, kind) => found.set(this.at(r, c), kind);
    for (const flat of flats) for (const [r, c] of this.byFlat.get(flat) ?? []) add(r, c, "on");
    this.grid.cells.forEach((row, r) => row.forEach((cell, c) => {
      if (this.grid.name === "logical" ? cell.flats[0] === chosen : this.isChosen(cell, place, bit)) add(r, c, "chosen");
    }));
    for (const [cell, kind] of found) {
      cell.classList.add("on");
      if (kind === "chosen") {
        cell.classList.add("chosen");
        cell.setAttribute("aria-selected", "true");
      }
    }
    this.lit = [...found.keys()];
  }

  isChosen(cell, place, bit) {
    if (this.grid.name === "banks") return bit !== undefined && cell.at === bit;
    return Boolean(place) && matches(cell.places[0], place);
  }
}

function matches(place, wanted) {
  for (const [a, v] of wanted) if ((place.get(a) ?? 0n) !== v) return false;
  return true;
}
