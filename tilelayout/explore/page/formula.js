// One element, term by term: flat index, digits, sums along the axes, copies (the first `most` of them), swizzle.

function explain(layout, shape, flat, most = Infinity) {
  const coordinate = digitsOf(flat, shape);
  const weights = weightsOf(layout.shard.map(([e]) => e));
  const digits = layout.shard.map(([extent, stride, axis], k) => {
    const digit = (flat / weights[k]) % extent;
    return { k, extent, stride, axis, weight: weights[k], digit, term: digit * stride };
  });
  const axes = [...new Set([...layout.offset.keys(), ...layout.shard.map(([, , a]) => a)])].sort(compareAxes);
  const sums = axes.map((axis) => sumOf(axis, digits, layout.offset.get(axis) ?? 0n));
  const base = new Map(axes.map((a, k) => [a, sums[k].value]));
  const copies = layout.replica.length ? copiesOf(layout.replica) : [{ digits: [], step: new Map() }];
  const holders = copies.slice(0, most).map((copy) => holderOf(layout, base, copy));
  return { coordinate, flat, flatText: flatText(coordinate, shape, flat), digits, sums, holders, copies: copies.length };
}

// (5 * 16) + 9 = 89, the row-major flattening.
function flatText(coordinate, shape, flat) {
  const weights = weightsOf(shape);
  const terms = coordinate.map((c, d) => (weights[d] === 1n ? `${c}` : `${c} * ${weights[d]}`));
  return `${terms.join(" + ") || "0"} = ${flat}`;
}

function signed(value) {
  return value < 0n ? `(${value})` : `${value}`;
}

// c1 * 4 + c3 * 1 + 5 = 2 * 4 + 1 * 1 + 5 = 14
function sumOf(axis, digits, offset) {
  const mine = digits.filter((d) => d.axis === axis && d.extent !== 1n && d.stride !== 0n);
  const value = mine.reduce((sum, d) => sum + d.term, offset);
  const last = offset ? [signed(offset)] : [];
  const symbols = [...mine.map((d) => `c${d.k} * ${signed(d.stride)}`), ...last].join(" + ");
  const numbers = [...mine.map((d) => `${d.digit} * ${signed(d.stride)}`), ...last].join(" + ");
  const parts = [symbols, numbers, `${value}`].filter((part, k, all) => part && part !== all[k + 1]);
  return { axis, value, text: parts.join(" = ") };
}

function holderOf(layout, base, { digits, step }) {
  const lines = [];
  layout.replica.forEach(([, s, a], k) => {
    const from = base.get(a) ?? 0n;
    if (digits[k]) lines.push(`r${k} = ${digits[k]}: ${a} + ${digits[k]} * ${signed(s)}, from ${from}`);
  });
  const before = moved(base, step);
  if (!layout.swizzle || !before.has(M)) return { place: before, lines };
  const place = swizzled(layout, before);
  return { place, lines: [...lines, ...xorLines(layout.swizzle, before.get(M))] };
}

// The XOR in binary, the bits that are read and where they go.
function xorLines(map, x) {
  const image = xor(map, x);
  if (!map.terms.length) return [`${map.text} leaves m = ${x} where it is`];
  const width = Math.max(map.width, bitLength(x < 0n ? -x : x), 1);
  const period = 1n << BigInt(width);
  const binary = (v) => mod(v, period).toString(2).padStart(width, "0");
  const above = x < 0n ? ` (its low ${width} bits; above them all are 1)` : "";
  const rows = [[`m = ${x}`, binary(x), above]];
  for (const [mask, right, left] of map.terms) {
    const read = x & mask;
    const way = right ? `>> ${right}` : "";
    const back = left ? `<< ${left}` : "";
    rows.push([`read ${[way, back].filter(Boolean).join(" ")}`.trim(), binary((read >> right) << left), ` of ${binary(read)}`]);
  }
  rows.push([`XOR = ${image}`, binary(image), ""]);
  const pad = Math.max(...rows.map(([name]) => name.length));
  return [map.text, ...rows.map(([name, bits, rest]) => `${name.padEnd(pad)}  ${bits}${rest}`)];
}
