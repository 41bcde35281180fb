// The logical and the hardware view as data: grids of cells, as tilelayout/draw/views computes them.
// A cell is { lines, key, flats, places }: what is written, what its color stands for, its elements, its places.

// A window of at most HOUSE.max_rows x HOUSE.max_columns cells, beginning at `origin`; `crop` says what it leaves out.
function windowOf(rows, columns, origin = [0n, 0n]) {
  const most = [BigInt(HOUSE.max_rows), BigInt(HOUSE.max_columns)];
  const size = [rows, columns];
  const shown = size.map((n, k) => (n < most[k] ? n : most[k]));
  const begin = size.map((n, k) => {
    const latest = n - shown[k];
    return origin[k] < 0n ? 0n : origin[k] > latest ? latest : origin[k];
  });
  let crop = "";
  if (shown[0] !== rows || shown[1] !== columns) {
    const part = (k, what) => `${what} ${begin[k]} to ${begin[k] + shown[k] - 1n} of ${size[k]}`;
    crop = `cropped: ${part(0, "rows")}, ${part(1, "columns")}; the arrow keys move on`;
  }
  return { begin, shown, crop };
}

function range(begin, count) {
  return Array.from({ length: Number(count) }, (_, k) => begin + BigInt(k));
}

function logicalGrid(layout, shape, color, origin) {
  const columns = shape.at(-1);
  const outer = shape.length > 1 ? shape.slice(0, -1) : [1n];
  const { begin, shown, crop } = windowOf(product(outer), columns, origin);
  const owners = ownersOf(layout, HOUSE.written);
  const more = copyCount(layout) - HOUSE.written;
  const key = coloring(layout, color);
  const across = range(begin[1], shown[1]);
  const cells = range(begin[0], shown[0]).map((r) => across.map((c) => {
    const flat = r * columns + c;
    const places = owners(flat);
    const lines = places.map(shortPlace);
    if (more > 0) lines.push(`${more} more`);
    return { lines, key: key(places[0]), flats: [flat], places };
  }));
  return {
    name: "logical",
    cells,
    begin,
    size: [product(outer), columns],
    rowLabels: range(begin[0], shown[0]).map((r) => coordinateText(digitsOf(r, outer))),
    columnLabels: across.map(String),
    corner: shape.length === 2 ? "" : `${shape.slice(0, -1).map((_, d) => `d${d}`).join(", ")} \\ d${shape.length - 1}`,
    notes: crop ? [crop] : [],
  };
}

// --- colors ------------------------------------------------------------------------------------------------

// What colors stand for when nothing is asked for: the innermost thread axis, or runs of 8 positions on `m`.
function defaultColor(layout) {
  const moving = movingAxes(layout);
  const threads = moving.filter((a) => kindOf(a) !== "memory").sort(compareAxes);
  return threads.length ? threads.at(-1) : moving.length > 1 ? moving[0] : "m//8";
}

function coloring(layout, color) {
  const name = color || defaultColor(layout);
  if (name === "none") return () => null;
  const run = name === "m//8" ? 8n : 1n;
  const axis = run === 1n ? name : M;
  return (place) => floorDiv(place.get(axis) ?? 0n, run);
}

// --- the layout read backwards -----------------------------------------------------------------------------

// Every place with its elements: { places: key -> { place, flats }, axes, partial }.
function inverseOf(layout) {
  const size = sizeOf(layout);
  const copies = BigInt(copyCount(layout));
  const listed = size * copies <= LISTED ? size : LISTED / copies || 1n;
  const axes = movingAxes(layout).sort(compareAxes);
  const owners = ownersOf(layout);
  const places = new Map();
  for (let flat = 0n; flat < listed; flat++) {
    for (const full of owners(flat)) {
      const place = new Map(axes.map((a) => [a, full.get(a) ?? 0n]));
      const key = placeKey(place);
      const found = places.get(key);
      if (!found) places.set(key, { place, flats: [flat] });
      else found.flats.push(flat);
    }
  }
  return { places, axes, partial: listed < size ? listed : null };
}

// The axes of the rows and of the columns, outermost first.
function sidesOf(axes) {
  let down = axes.filter((a) => kindOf(a) !== "memory");
  let across = axes.filter((a) => kindOf(a) === "memory");
  if (!down.length && !across.length) across = [M];
  if (!down.length && across.length > 1) [down, across] = [across.slice(0, -1), across.slice(-1)];
  if (!across.length && down.length > 1) [down, across] = [down.slice(0, -1), down.slice(-1)];
  return [down, across];
}

function hardwareGrid(layout, shape, color, origin, inverse = inverseOf(layout)) {
  const [down, across] = sidesOf(inverse.axes);
  const bounds = boundsOf(inverse, [...down, ...across]);
  const key = coloring(layout, color);
  const cell = (place) => {
    const known = new Map(inverse.axes.map((a) => [a, place.get(a) ?? 0n]));
    const flats = inverse.places.get(placeKey(known))?.flats ?? [];
    const lines = flats.slice(0, HOUSE.elements_written).map((flat) => coordinateText(digitsOf(flat, shape), ","));
    if (flats.length > HOUSE.elements_written) lines.push(`${flats.length - HOUSE.elements_written} more`);
    return { lines, key: flats.length ? key(known) : null, flats, places: [known] };
  };
  const notes = inverse.partial ? [`of the first ${inverse.partial} elements only: more are not listed`] : [];
  const made = down.length && across.length ? crossed(down, across, bounds, origin, cell) : folded(down.length ? down : across, bounds, origin, cell);
  return { name: "hardware", ...made, notes: [...notes, ...(made.crop ? [made.crop] : [])] };
}

function boundsOf(inverse, axes) {
  const bounds = new Map(axes.map((a) => [a, null]));
  for (const { place } of inverse.places.values()) {
    for (const a of axes) {
      const v = place.get(a) ?? 0n;
      const known = bounds.get(a);
      bounds.set(a, known ? [v < known[0] ? v : known[0], v > known[1] ? v : known[1]] : [v, v]);
    }
  }
  return bounds;
}

function countOf(axes, bounds) {
  return product(axes.map((a) => bounds.get(a)[1] - bounds.get(a)[0] + 1n));
}

// The place with that number among those of the axes, the last axis fastest.
function placeAt(index, axes, bounds) {
  const place = new Map();
  for (const a of [...axes].reverse()) {
    const [low, high] = bounds.get(a);
    place.set(a, low + (index % (high - low + 1n)));
    index /= high - low + 1n;
  }
  return place;
}

function labelOf(place, axes) {
  if (axes.length === 1) return String(place.get(axes[0]));
  return axes.map((a) => `${hasOwn(HOUSE.letters, a) ? HOUSE.letters[a] : a}${place.get(a)}`).join(" ");
}

function crossed(down, across, bounds, origin, cell) {
  const size = [countOf(down, bounds), countOf(across, bounds)];
  const { begin, shown, crop } = windowOf(...size, origin);
  const rows = range(begin[0], shown[0]).map((k) => placeAt(k, down, bounds));
  const columns = range(begin[1], shown[1]).map((k) => placeAt(k, across, bounds));
  return {
    cells: rows.map((row) => columns.map((column) => cell(new Map([...row, ...column])))),
    begin,
    size,
    rowLabels: rows.map((row) => labelOf(row, down)),
    columnLabels: columns.map((column) => labelOf(column, across)),
    rowPlaces: rows,
    columnPlaces: columns,
    corner: `${down.join(" ")} \\ ${across.join(" ")}`,
    crop,
  };
}

// One side only: rows of 32 places one after the other; the labels of a row and a column add up.
function folded(axes, bounds, origin, cell) {
  const total = countOf(axes, bounds);
  const width = total < 32n ? total : 32n;
  const size = [(total + width - 1n) / width, width];
  const { begin, shown, crop } = windowOf(...size, origin);
  const rows = range(begin[0], shown[0]);
  return {
    cells: rows.map((r) => range(0n, width).filter((c) => r * width + c < total).map((c) => cell(placeAt(r * width + c, axes, bounds)))),
    begin,
    size,
    rowLabels: rows.map((r) => labelOf(placeAt(r * width, axes, bounds), axes)),
    columnLabels: range(0n, width).map((c) => `+${c}`),
    corner: axes.join(" "),
    crop,
  };
}
