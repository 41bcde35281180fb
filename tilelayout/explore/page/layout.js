// The model: a layout is { shard, replica, offset, swizzle }; an iter is [extent, stride, axis].  All integers are
// BigInt, so that nothing rounds or wraps.  A place is a Map from axis to coordinate.

const M = "m";
const COPIES_LISTED = 1n << 16n;

function product(numbers) {
  let total = 1n;
  for (const n of numbers) total *= n;
  return total;
}

function made(shard, replica = [], offset = new Map(), swizzle = null) {
  return { shard, replica, offset: nonzero(offset), swizzle };
}

function nonzero(offset) {
  return new Map([...offset].filter(([, v]) => v !== 0n));
}

function sizeOf(layout) {
  return product(layout.shard.map(([e]) => e));
}

// --- evaluation --------------------------------------------------------------------------------------------

// What a digit of a flat index is divided by: the product of the extents further in.
function weightsOf(extents) {
  const weights = [];
  let weight = 1n;
  for (let k = extents.length - 1; k >= 0; k--) {
    weights[k] = weight;
    weight *= extents[k];
  }
  return weights;
}

function digitsOf(flat, extents, weights = weightsOf(extents)) {
  return extents.map((e, k) => (flat / weights[k]) % e);
}

function flatOf(coordinate, shape) {
  let flat = 0n;
  shape.forEach((n, d) => (flat = flat * n + coordinate[d]));
  return flat;
}

// A function of the flat index to the place without replica and swizzle.
function placer(layout) {
  const weights = weightsOf(layout.shard.map(([e]) => e));
  const start = new Map(layout.offset);
  for (const [, , a] of layout.shard) if (!start.has(a)) start.set(a, 0n);
  return (flat) => {
    const place = new Map(start);
    layout.shard.forEach(([e, s, a], k) => {
      if (e !== 1n && s !== 0n) place.set(a, place.get(a) + ((flat / weights[k]) % e) * s);
    });
    return place;
  };
}

// Every displacement of a replica once: { digits, step }.
function copiesOf(replica) {
  let found = [{ digits: [], step: new Map() }];
  if (product(replica.map(([e, s]) => (s === 0n ? 1n : e))) > COPIES_LISTED) {
    throw new LayoutError("owners", `the replica has more than the ${COPIES_LISTED} copies that are listed`);
  }
  for (const [e, s, a] of replica) {
    const more = [];
    for (const { digits, step } of found) {
      for (let c = 0n; c < (s === 0n ? 1n : e); c++) {
        more.push({ digits: [...digits, c], step: new Map(step).set(a, (step.get(a) ?? 0n) + c * s) });
      }
    }
    found = more;
  }
  const once = new Map(found.map((copy) => [placeKey(copy.step), null]));
  for (const copy of found) if (once.get(placeKey(copy.step)) === null) once.set(placeKey(copy.step), copy);
  return [...once.values()];
}

// A function of the flat index to the places that hold the element: all, or the first `most`.
function ownersOf(layout, most = Infinity) {
  const place = placer(layout);
  const copies = layout.replica.length ? copiesOf(layout.replica).slice(0, most) : null;
  return (flat) => {
    const first = place(flat);
    const places = copies ? copies.map(({ step }) => moved(first, step)) : [first];
    return layout.swizzle ? places.map((p) => swizzled(layout, p)) : places;
  };
}

// How many places hold each element.
function copyCount(layout) {
  return layout.replica.length ? copiesOf(layout.replica).length : 1;
}

function moved(place, step) {
  const out = new Map(place);
  for (const [a, distance] of step) out.set(a, (out.get(a) ?? 0n) + distance);
  return out;
}

function swizzled(layout, place) {
  return place.has(M) ? new Map(place).set(M, xor(layout.swizzle, place.get(M))) : place;
}

function placeKey(place) {
  return [...place].map(([a, v]) => `${a}:${v}`).join(",");
}

// Axes on which a coordinate can be other than 0, in order of appearance.
function movingAxes(layout) {
  const iters = [...layout.shard, ...layout.replica].filter(([e, s]) => e !== 1n && s !== 0n).map(([, , a]) => a);
  const written = [...layout.offset.keys()].sort((a, b) => (a === M) - (b === M) || (a < b ? -1 : 1));
  return [...new Set([...iters, ...written])];
}

// --- shapes ------------------------------------------------------------------------------------------------

// The shape to show a layout in when none is given: cut between two iters, as square as can be.
function naturalShape(layout) {
  const extents = layout.shard.map(([e]) => e).filter((e) => e !== 1n);
  const size = product(extents);
  if (extents.length < 2) {
    const columns = size <= 32n ? size : [32n, 16n, 8n, 4n, 2n, size].find((n) => size % n === 0n);
    return [size / columns, columns];
  }
  let best = null;
  let rows = 1n;
  for (const e of extents.slice(0, -1)) {
    rows *= e;
    const longer = rows > size / rows ? rows : size / rows;
    if (!best || longer < best[0] || (longer === best[0] && rows < best[1])) best = [longer, rows];
  }
  return [best[1], size / best[1]];
}

function shapeFor(layout, shape, operation = "shape") {
  if (!shape) return naturalShape(layout);
  if (product(shape) !== sizeOf(layout)) {
    throw new LayoutError(
      operation, `shape ${tupleText(shape)} has ${product(shape)} elements, the layout has ${sizeOf(layout)}`);
  }
  return shape;
}

// --- text --------------------------------------------------------------------------------------------------

// As Python prints a tuple.
function tupleText(entries) {
  return `(${entries.map(String).join(", ")}${entries.length === 1 ? "," : ""})`;
}

function tileText({ shard, replica, offset }, hasShard = true) {
  let text = hasShard ? `S[${bracketText(shard)}]` : "";
  if (replica.length) text += `${text && " + "}R[${bracketText(replica)}]`;
  const axes = [...offset.keys()].sort((a, b) => (a === M) - (b === M) || (a < b ? -1 : 1));
  for (const a of axes) {
    const value = offset.get(a);
    const sign = value < 0n ? (text ? " - " : "-") : text ? " + " : "";
    text += `${sign}${value < 0n ? -value : value}${a === M ? "" : ` @ ${a}`}`;
  }
  return text;
}

function bracketText(iters) {
  const strides = iters.map(([, s, a]) => (a === M ? `${s}` : `${s} @ ${a}`));
  const colon = strides.some((s) => s.includes("@")) ? " : " : ":";
  if (iters.length === 1) return `${iters[0][0]}${colon}${strides[0]}`;
  return iters.length ? `(${iters.map(([e]) => e).join(", ")})${colon}(${strides.join(", ")})` : "()";
}

function layoutText(layout) {
  const inner = tileText(layout);
  if (!layout.swizzle) return inner;
  return `${layout.swizzle.text} o ${layout.replica.length || layout.offset.size ? `(${inner})` : inner}`;
}
