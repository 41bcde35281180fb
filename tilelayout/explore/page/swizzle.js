// Swizzles: XOR bijections on the coordinate on `m`, as terms (mask, right, left): x ^ ((x & mask) >> right << left).

const MAX_WIDTH = 1024;

function xor(map, x) {
  let out = x;
  for (const [mask, right, left] of map.terms) out ^= ((x & mask) >> right) << left;
  return out;
}

function swizzle(bits, base, shift) {
  for (const [value, name] of [[bits, "bits"], [base, "base"]]) {
    if (value < 0) throw new LayoutError("Swizzle", `${name} must not be negative, got ${value}`);
  }
  const text = `Swizzle(${bits}, ${base}, ${shift})`;
  if (Math.abs(shift) < bits) {
    throw new LayoutError(
      "Swizzle",
      `${text}: the shift must be at least ${bits} either way, else the bits that are read and those that are ` +
        "written overlap",
      `Swizzle(${bits}, ${base}, ${bits}), or XorMap(images) for any other bijection`);
  }
  const width = bits + base + Math.abs(shift);
  if (width > MAX_WIDTH) throw new LayoutError("Swizzle", `${text} reaches beyond bit ${MAX_WIDTH}`);
  const right = BigInt(Math.max(shift, 0));
  const mask = ((1n << BigInt(bits)) - 1n) << (BigInt(base) + right);
  return { text, width: bits ? width : 0, terms: bits ? [[mask, right, BigInt(Math.max(-shift, 0))]] : [] };
}

// The map with these images of the bits; a swizzle where it is one.  Refused where it is no bijection.
function xorMap(images) {
  if (images.length > MAX_WIDTH) throw new LayoutError("XorMap", `${images.length} images reach beyond bit ${MAX_WIDTH}`);
  images.forEach((image, i) => {
    if (image >> BigInt(images.length)) {
      throw new LayoutError("XorMap", `image ${i} must have the low ${images.length} bits only, got ${image}`);
    }
  });
  const lost = takenToZero(images);
  if (lost) {
    throw new LayoutError("XorMap", `images ${tupleText(images)} make no bijection: ${lost} is taken to 0, as 0 is`);
  }
  let touched = 0n;
  images.forEach((image, i) => {
    if (image !== 1n << BigInt(i)) touched |= image | (1n << BigInt(i));
  });
  const kept = images.slice(0, bitLength(touched));
  const terms = diagonals(kept);
  if (!terms.length) return swizzle(0, 0, 0);
  if (terms.length === 1) {
    const [mask, right, left] = terms[0];
    const base = bitLength(mask & -mask) - 1;
    const bits = bitLength(mask) - base;
    const shift = Number(right > left ? right : left);
    if (mask >> BigInt(base) === (1n << BigInt(bits)) - 1n && shift >= bits) {
      return swizzle(bits, base - Number(right), Number(right - left));
    }
  }
  return { text: `XorMap(${tupleText(kept)})`, width: kept.length, terms };
}

function bitLength(x) {
  return x ? x.toString(2).length : 0;
}

// A vector other than 0 that is taken to 0, or 0 for a bijection.
function takenToZero(images) {
  const pivots = new Map(); // leading bit -> [vector, what is taken to it]
  for (const [i, given] of images.entries()) {
    let [image, source] = [given, 1n << BigInt(i)];
    for (const [bit, [vector, came]] of pivots) {
      if ((image >> bit) & 1n) [image, source] = [image ^ vector, source ^ came];
    }
    if (!image) return source;
    const leading = BigInt(bitLength(image) - 1);
    for (const [bit, [vector, came]] of pivots) {
      if ((vector >> leading) & 1n) pivots.set(bit, [vector ^ image, came ^ source]);
    }
    pivots.set(leading, [image, source]);
  }
  return 0n;
}

// One term for each distance that bits move by, by falling distance downwards.
function diagonals(images) {
  const masks = new Map();
  for (const [i, image] of images.entries()) {
    for (let moving = image ^ (1n << BigInt(i)); moving; moving &= moving - 1n) {
      const distance = i - (bitLength(moving & -moving) - 1);
      masks.set(distance, (masks.get(distance) ?? 0n) | (1n << BigInt(i)));
    }
  }
  const falling = [...masks.keys()].sort((a, b) => b - a);
  return falling.map((d) => [masks.get(d), BigInt(Math.max(d, 0)), BigInt(Math.max(-d, 0))]);
}

// --- reading -----------------------------------------------------------------------------------------------

const THREE_NUMBERS = Array(3).fill("\\s*(-?\\s*\\d{1,6})\\s*").join(",");
const SWIZZLE_TEXT = new RegExp(`\\s*(?:Swizzle\\s*\\(${THREE_NUMBERS}\\)|Sw?\\s*<${THREE_NUMBERS}>)`, "y");
const IMAGES_TEXT = /\s*XorMap\s*\(\s*\(([\d\s,]*)\)\s*\)/y;
const TVM_HEAD = /\s*(?:T\s*\.\s*)?ComposeLayout\s*\(\s*(\d{1,4})\s*,\s*(\d{1,4})\s*,\s*(\d{1,4})\s*,/y;
const TVM_END = /(?:,\s*(?:swizzle_inner\s*=\s*)?(True|False)\s*)?\)\s*$/;
const PRINTED_HEAD = /\s*SwizzledLayout\s*\(/y;
const THEN = /\s*o\b\s*|\s*o(?=[ST])/y;

function matchAt(pattern, text, at) {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

// The map written at a position, and where it ends: [map, end], or null.
function readMap(text, at) {
  let found = matchAt(SWIZZLE_TEXT, text, at);
  if (found) {
    const numbers = found.slice(1).filter((x) => x !== undefined).map((x) => Number(x.replace(/\s+/g, "")));
    return [swizzle(...numbers), at + found[0].length];
  }
  found = matchAt(IMAGES_TEXT, text, at);
  if (found) {
    const entries = found[1].replace(/,$/, "").split(",");
    if (entries.every((x) => /^\s*\d+\s*$/.test(x) && x.length <= MAX_WIDTH)) {
      return [xorMap(entries.map((x) => BigInt(x.trim()))), at + found[0].length];
    }
  }
  return null;
}

// The swizzle of a text, and the layout's text at its own position, blanks for the rest: [map, text], or null.
function readSwizzled(text) {
  const kept = (begin, end) => " ".repeat(begin) + text.slice(begin, end);
  const found = readMap(text, 0);
  if (found) {
    const then = matchAt(THEN, text, found[1]);
    return then ? [found[0], kept(found[1] + then[0].length)] : null;
  }
  let head = matchAt(TVM_HEAD, text, 0);
  const end = TVM_END.exec(text);
  if (head && end) {
    const [base, bits, shift] = head.slice(1, 4).map(Number);
    return [swizzle(bits, base, end[1] === "False" ? -shift : shift), kept(head[0].length, end.index)];
  }
  head = matchAt(PRINTED_HEAD, text, 0);
  let comma = text.lastIndexOf(",");
  while (head && comma > head[0].length) {
    const last = readMap(text, comma + 1);
    if (last) return text.slice(last[1]).trim() === ")" ? [last[0], kept(head[0].length, comma)] : null;
    comma = text.lastIndexOf(",", comma - 1);
  }
  return null;
}
