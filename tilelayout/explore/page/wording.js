// How places and elements are written: tilelayout/draw/wording.py, whose tables come in with HOUSE.

const LISTED = BigInt(HOUSE.listed);

function kindOf(axis) {
  return HOUSE.axes[axis];
}

// From the outermost: devices and threads, then memory, `m` last.
function compareAxes(a, b) {
  const place = (axis) => {
    const at = HOUSE.order.indexOf(axis);
    const last = HOUSE.order.length;
    return [kindOf(axis) === "memory" ? 1 : 0, at >= 0 ? at : axis === M ? last + 1 : last, axis];
  };
  const [x, y] = [place(a), place(b)];
  const k = x.findIndex((part, i) => part !== y[i]);
  return k < 0 ? 0 : x[k] < y[k] ? -1 : 1;
}

function hasOwn(table, key) {
  return Object.prototype.hasOwnProperty.call(table, key);
}

// One holder as a cell shows it: T5:3 for lane 5, slot 3.
function shortPlace(place) {
  const others = [...place.keys()].filter((a) => a !== M).sort(compareAxes);
  if (!others.length) return String(place.get(M) ?? 0n);
  let head = "";
  for (const a of others) {
    head += hasOwn(HOUSE.letters, a) ? `${HOUSE.letters[a]}${place.get(a)}` : `${head ? " " : ""}${a}${place.get(a)}`;
  }
  const slots = place.has(M) || HOUSE.lanes.some((a) => place.has(a));
  return slots ? `${head}:${place.get(M) ?? 0n}` : head;
}

// One holder in words, with bytes, bits and bank where the element's width is known.
function placeText(place, bits, shared = false) {
  const others = [...place.keys()].filter((a) => a !== M).sort(compareAxes);
  const words = others.map((a) => `${hasOwn(HOUSE.names, a) ? HOUSE.names[a] : a} ${place.get(a)}`);
  const threads = others.some((a) => kindOf(a) === "thread");
  if (!place.has(M) && others.length && !threads) return words.join(", ");
  const at = place.get(M) ?? 0n;
  words.push(`${threads ? "slot" : "position"} ${at}`);
  return words.join(", ") + (bits ? ` (${widthText(at, BigInt(bits), threads, shared)})` : "");
}

function floorDiv(a, b) {
  return a / b - (a % b < 0n ? 1n : 0n);
}

function mod(a, b) {
  return ((a % b) + b) % b;
}

function widthText(at, bits, register, shared = false) {
  const [first, last] = [at * bits, at * bits + bits - 1n];
  const byte = (x) => floorDiv(x, 8n);
  let span = `bytes ${byte(first)}-${byte(last)}`;
  if (byte(first) === byte(last)) {
    span = `byte ${byte(first)}`;
    if (bits === 1n) span += `, bit ${mod(first, 8n)}`;
    else if (bits !== 8n) span += `, bits ${mod(first, 8n)}-${mod(last, 8n)}`;
  }
  if (!register && !shared) return span;
  const unit = 32n;
  const at32 = [floorDiv(first, unit), floorDiv(last, unit)];
  const name = register ? "register" : "bank";
  const [begin, end] = register ? at32 : at32.map((x) => mod(x, 32n));
  let inside = `${name}s ${begin}-${end}`;
  if (at32[0] === at32[1]) {
    inside = `${name} ${begin}, bit${bits > 1n ? `s ${mod(first, unit)}-${mod(last, unit)}` : ` ${mod(first, unit)}`}`;
  }
  return register ? `${inside}; ${span}` : `${span}; ${inside}`;
}

function shortLegend(axes) {
  if (axes.every((a) => a === M)) return "position on m";
  const said = [...axes].sort(compareAxes).filter((a) => hasOwn(HOUSE.letters, a)).map((a) => `${HOUSE.letters[a]} ${HOUSE.names[a]}`);
  const slots = axes.some((a) => a === M || HOUSE.lanes.includes(a));
  return [...said, ...(slots ? [said.length ? ": slot" : ": position on m"] : [])].join(", ");
}

function coordinateText(coordinate, comma = ", ") {
  return coordinate.join(comma);
}
