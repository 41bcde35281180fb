// What the page shows, as texts: it can be written into the address and read back.

const DEFAULTS = {
  layout: "", shape: "", bits: "16", view: "both", color: "", palette: "categories", at: "", on: "",
  access: "", vector: "1", start: "0", chunk: "4",
};
const KEPT = new Set(["layout", "shape"]); // always written
const AXES = Object.keys(HOUSE.axes);
const VIEWS = ["both", "logical", "hardware", "banks"];

// The state of an address's fragment, over another; unknown keys are left out.
function readLink(fragment, over) {
  const given = new URLSearchParams(fragment.replace(/^#/, ""));
  const state = { ...over };
  for (const key of Object.keys(DEFAULTS)) if (given.has(key)) state[key] = given.get(key);
  // A link to a layout says all that it means: what it leaves out is the default, not what was shown before.
  if (given.has("layout")) for (const key of Object.keys(DEFAULTS)) if (!given.has(key)) state[key] = DEFAULTS[key];
  return checkedState(state);
}

function checkedState(state) {
  const oneOf = (key, allowed) => (allowed.includes(state[key]) ? state[key] : DEFAULTS[key]);
  return {
    ...state,
    view: oneOf("view", VIEWS),
    palette: oneOf("palette", Object.keys(HOUSE.palettes)),
    bits: oneOf("bits", ["1", "2", "4", "8", "16", "32", "64", "128"]),
    access: oneOf("access", ["", "rows", "column", "ldmatrix"]),
    chunk: oneOf("chunk", ["4", "8", "16"]),
    vector: /^[1-9]\d{0,2}$/.test(state.vector) ? state.vector : "1",
    start: /^\d{1,9}$/.test(state.start) ? state.start : "0",
  };
}

function linkOf(state) {
  const written = new URLSearchParams();
  for (const [key, value] of Object.entries(state)) {
    if (key in DEFAULTS && (KEPT.has(key) || value !== DEFAULTS[key])) written.set(key, value);
  }
  return `#${written}`;
}

// "16x8", "16, 8" or "(16, 8)"; empty for none.
function readShape(text) {
  const inside = text.trim().replace(/^\((.*?),?\s*\)$/s, "$1").trim();
  if (!inside) return null;
  const parts = inside.split(/\s*[x×,]\s*|\s+/);
  if (!parts.every((n) => /^\d{1,4000}$/.test(n) && BigInt(n) > 0n)) {
    throw new LayoutError("shape", `${quoted(text)} is no shape of positive integers`, "16 x 8");
  }
  return parts.map(BigInt);
}

function shapeText(shape) {
  return shape.join(" x ");
}

// A selection is null, { flat } for an element, { place } for places (a Map that may leave axes out), or { bit } for a
// cell of memory.
function readSelection(state, model) {
  if (/^\d+(,\d+)*$/.test(state.at)) {
    const coordinate = state.at.split(",").map(BigInt);
    const fits = coordinate.length === model.shape.length && coordinate.every((c, d) => c < model.shape[d]);
    return fits ? { flat: flatOf(coordinate, model.shape) } : null;
  }
  const parts = state.on.split(",").map((part) => /^(\w+):(-?\d+)$/.exec(part));
  if (!state.on || parts.includes(null)) return null;
  if (parts[0][1] === "bit" && !AXES.includes("bit")) return { bit: BigInt(parts[0][2]) };
  if (parts.some(([, axis]) => !AXES.includes(axis))) return null;
  return { place: new Map(parts.map(([, axis, value]) => [axis, BigInt(value)])) };
}

function writeSelection(state, selection, shape) {
  state.at = selection?.flat !== undefined ? digitsOf(selection.flat, shape).join(",") : "";
  state.on = "";
  if (selection?.place) state.on = placeKey(selection.place);
  if (selection?.bit !== undefined) state.on = `bit:${selection.bit}`;
}
