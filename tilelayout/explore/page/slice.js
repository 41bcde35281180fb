// Slicing and composing, where arithmetic on the iters decides; what Python searches is NotHere.
// See tilelayout/algebra/slice.py, window.py and compose.py for why this is exact.

// The layout of a box: at every coordinate of it, the owners of begin + coordinate.
function slice(layout, shape, region) {
  if (region.length !== shape.length) {
    throw new LayoutError("slice", `region has ${region.length} ranges, shape ${tupleText(shape)} has rank ${shape.length}`);
  }
  if (region.some((bounds) => bounds.length === 3)) throw new NotHere("slice", "ranges with a step are not sliced here");
  const found = find(layout.shard, shape, "slice");
  const ranges = region.map((bounds, d) => checkedRange(bounds, shape[d], d));
  if (!found) throw new NotHere("slice", `the shape ${tupleText(shape)} cuts across the iters`);
  const [grouped, seps] = found;
  const base = new Map(layout.offset);
  const shard = ranges.flatMap(([begin, length], d) => {
    const iters = grouped.slice(seps[d], seps[d + 1]);
    return begin === 0n && length === shape[d] ? iters : sliceDimension(iters, begin, length, base, d);
  });
  return { ...layout, shard, offset: nonzero(base) };
}

function checkedRange(bounds, extent, d) {
  if (bounds.length !== 2) {
    throw new LayoutError("slice", `range ${d} must be a pair (begin, end) or (begin, end, step), got ${tupleText(bounds)}`);
  }
  const [begin, end] = bounds;
  if (end - begin < 1n) throw new LayoutError("slice", `dimension ${d}: range [${begin}, ${end}) is empty`);
  if (begin < 0n) throw new LayoutError("slice", `dimension ${d}: begin ${begin} is negative`);
  if (end > extent) {
    throw new LayoutError("slice", `dimension ${d}: range [${begin}, ${end}) ends past the extent ${extent}`);
  }
  return [begin, end - begin];
}

// The iters of [begin, begin + length); adds where it begins to `base`.
function sliceDimension(iters, begin, length, base, d) {
  const extents = fuse(iters).map(([e]) => e).join(", ");
  const refusal = () => new LayoutError(
    "slice",
    `dimension ${d}: [${asked[0]}, ${asked[0] + asked[1]}) of ${product(iters.map(([e]) => e))} crosses a wrap of the ` +
      `iters (${extents}), and no layout has its positions`,
    "choose bounds that are multiples of the inner extents");
  const asked = [begin, length];
  const out = []; // innermost first
  const rest = fuse(iters);
  while (rest.length && length !== 1n) {
    const e = rest.at(-1)[0];
    if (begin % e || length % e) break;
    out.push(rest.pop());
    begin /= e;
    length /= e;
  }
  if (length !== 1n) {
    const [e, s, a] = rest.at(-1);
    if ((begin % e) + length <= e) out.push([length, s, a]);
    else {
      const found = shifted(rest.map(([n, step, axis]) => [n, new Map([[axis, step]])]).reverse(), begin, length);
      if (!found) throw refusal();
      for (const [n, step] of found) {
        const moving = [...step].filter(([, v]) => v !== 0n);
        if (moving.length > 1) throw refusal();
        out.push(moving.length ? [n, moving[0][1], moving[0][0]] : [n, 0n, M]);
      }
    }
  }
  for (let k = rest.length - 1; k >= 0 && begin !== 0n; k--) {
    const [e, s, a] = rest[k];
    const digit = k ? begin % e : begin;
    begin = k ? begin / e : 0n;
    base.set(a, (base.get(a) ?? 0n) + digit * s);
  }
  return out.length ? out.reverse() : [UNIT];
}

// Digits of y -> f(begin + y) - f(begin) on [0, length), innermost first; null where no digits have that.
function shifted(digits, begin, length) {
  const out = [];
  for (;;) {
    const [extent, step] = digits[0];
    const common = gcd(begin, gcd(extent, length));
    if (common === 1n) break;
    out.push([common, step]);
    const inner = extent / common;
    digits = [...(inner > 1n ? [[inner, scaledStep(step, common)]] : []), ...digits.slice(1)];
    begin /= common;
    length /= common;
    if (length === 1n) return out;
  }
  const even = evenStep(digits, begin, length);
  if (even) return [...out, [length, even]];
  if (length % 2n) return null;
  const [extent, step] = digits[0];
  const half = length / 2n;
  const wrap = extent - (begin % extent); // the first step that wraps
  if (wrap === 1n && !sameStep(stepAt(digits, begin + 1n), step)) {
    const outer = extent === 2n ? evenStep(digits.slice(1), begin / 2n, half + 1n) : null;
    if (!outer) return null;
    out.push([2n, stepAt(digits, begin + 1n)]);
    return half > 1n ? [...out, [half, outer]] : out;
  }
  if (wrap + 4n * extent < length) return null; // of five wraps in a row two at least are breaks
  for (let y = wrap, breaks = 0; ; y += extent) {
    if (y >= length) {
      if (breaks !== 1) return null;
      break;
    }
    if (!sameStep(stepAt(digits, begin + y), step)) {
      if (y !== half) return null;
      breaks++;
    }
  }
  return [...out, [half, step], [2n, difference(valueAt(digits, begin + half), valueAt(digits, begin))]];
}

// The common step of [begin, begin + length), or null if the steps differ.
function evenStep(digits, begin, length) {
  if (length === 1n) return new Map();
  const first = stepAt(digits, begin + 1n);
  const extent = digits[0][0];
  if ((begin % extent) + length <= extent || length === 2n) return first;
  const wrap = extent - (begin % extent);
  if (wrap + extent < length) return null;
  return sameStep(stepAt(digits, begin + wrap), digits[0][1]) ? digits[0][1] : null;
}

function valueAt(digits, x) {
  const out = new Map();
  for (const [extent, step] of digits) {
    for (const [a, s] of step) out.set(a, (out.get(a) ?? 0n) + (x % extent) * s);
    x /= extent;
  }
  return out;
}

function stepAt(digits, x) {
  return difference(valueAt(digits, x), valueAt(digits, x - 1n));
}

function difference(x, y) {
  return moved(x, scaledStep(y, -1n));
}

function scaledStep(step, by) {
  return new Map([...step].map(([a, s]) => [a, s * by]));
}

function sameStep(x, y) {
  return [...difference(x, y).values()].every((v) => v === 0n);
}

function gcd(a, b) {
  while (b) [a, b] = [b, a % b];
  return a;
}

// --- composition -------------------------------------------------------------------------------------------

// The layout i -> A(B(i)), where no step of B carries in A.
function compose(a, b) {
  if (b.swizzle) throw new NotHere("compose", "the right operand is swizzled");
  if (b.replica.some(([e, s]) => e !== 1n && s !== 0n)) {
    throw new LayoutError("compose", "B has a replica: an index would have several values", "give the replica to A, or to the result");
  }
  const steps = fuse(b.shard);
  for (const axis of [...steps.map(([, , x]) => x), ...b.offset.keys()]) {
    if (axis !== M) throw new LayoutError("compose", `B moves on ${axis}; its values index A and lie on m`, "project B to m first");
  }
  const base = b.offset.get(M) ?? 0n;
  const reach = steps.map(([e, s]) => (e - 1n) * s);
  const sum = (numbers) => numbers.reduce((x, y) => x + y, base);
  const low = sum(reach.filter((r) => r < 0n));
  const high = sum(reach.filter((r) => r > 0n));
  const size = sizeOf(a);
  if (low < 0n || high >= size) {
    throw new LayoutError(
      "compose", `the codomain of B exceeds the size of A: B reaches from ${low} to ${high}, A has ${size} elements`);
  }
  const counter = fuse(a.shard).reverse();
  const found = walked(counter, steps, low);
  if (!found) throw new NotHere("compose", "steps of B carry in A, or move along several of its digits");
  const offset = new Map(a.offset);
  let rest = base;
  for (const [e, s, axis] of counter) {
    offset.set(axis, (offset.get(axis) ?? 0n) + (rest % e) * s);
    rest /= e;
  }
  return { ...a, shard: fuse(found.reverse()), offset: nonzero(offset) };
}

// The iters of the composition, innermost first, where nothing carries; null where something does or may.
function walked(counter, steps, low) {
  const last = counter.length - 1;
  const room = counter.map(([e]) => e - 1n);
  counter.forEach(([e], j) => {
    room[j] -= j < last ? low % e : low;
    low /= e;
  });
  const out = [];
  for (const [extent, stride] of [...steps].reverse()) {
    if (stride === 0n) {
      out.push([extent, 0n, M]);
      continue;
    }
    const sign = stride < 0n ? -1n : 1n;
    let [f, t] = [extent, stride * sign];
    for (let j = 0; ; ) {
      const [e, s, axis] = counter[j];
      if (j < last && t % e === 0n) {
        t /= e;
        j++;
        continue;
      }
      if (j === last || (f - 1n) * t < e) {
        room[j] -= (f - 1n) * t;
        out.push([f, sign * t * s, axis]);
        break;
      }
      if (e % t || f % (e / t)) return null;
      const part = e / t; // steps that fill this digit; the others go on from the next
      room[j] -= e - t;
      out.push([part, sign * t * s, axis]);
      f /= part;
      t = 1n;
      j++;
    }
  }
  return room.some((left) => left < 0n) ? null : out;
}
