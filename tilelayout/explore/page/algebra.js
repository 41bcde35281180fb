// Operations on layouts, exact or refused, as tilelayout/algebra has them: group, tile_to, permutations.

const UNIT = [1n, 0n, M];

function quotient(a, b) {
  return b !== 0n && a % b === 0n ? a / b : null;
}

// Drop extent 1, put zero strides on `m`, merge neighbors that count on through the wrap.
function fuse(shard) {
  const out = [];
  let last = null;
  for (const [e, s, axis] of shard) {
    if (e === 1n) continue;
    const a = s === 0n ? M : axis;
    if (last && last[2] === a && last[1] === e * s) last = [last[0] * e, s, a];
    else {
      if (last) out.push(last);
      last = [e, s, a];
    }
  }
  if (last) out.push(last);
  return out.length ? out : [UNIT];
}

// The shard cut at the dimensions of a shape: [iters, separators], or null where an iter cannot be cut.
function split(shard, shape) {
  if (shard.length === shape.length && shard.every(([e], k) => e === shape[k] && e !== 1n)) {
    return [shard, [...Array(shape.length + 1).keys()]];
  }
  const out = []; // innermost first
  const seps = [0]; // counted from the inner end
  let left = shard.length;
  let have = 1n;
  let pending = UNIT;
  for (let d = shape.length - 1; d >= 0; d--) {
    let need = shape[d];
    while (need !== 1n) {
      if (have === 1n) {
        if (!left) return null;
        pending = shard[--left];
        have = pending[0];
        if (have === 1n) continue;
      }
      if (need % have === 0n) {
        out.push(pending);
        need /= have;
        have = 1n;
      } else if (have % need === 0n) {
        const [, s, a] = pending;
        out.push([need, s, a]);
        have /= need;
        pending = [have, s * need, a];
        need = 1n;
      } else return null;
    }
    if (out.length === seps.at(-1)) out.push(UNIT);
    seps.push(out.length);
  }
  if (have !== 1n || shard.slice(0, left).some(([e]) => e !== 1n)) return null;
  return [out.reverse(), seps.reverse().map((n) => out.length - n)];
}

function find(shard, shape, operation) {
  const found = split(shard, shape);
  if (found) return found;
  const [size, have] = [product(shape), product(shard.map(([e]) => e))];
  if (size !== have) {
    throw new LayoutError(operation, `shape ${tupleText(shape)} has ${size} elements, the layout has ${have}`);
  }
  return split(fuse(shard), shape);
}

function groupShard(shard, shape, operation = "group") {
  const found = find(shard, shape, operation);
  if (!found) throw new LayoutError(operation, whyNot(fuse(shard), shape));
  return found;
}

function whyNot(fused, shape) {
  const extents = fused.map(([e]) => e).join(", ");
  const size = product(fused.map(([e]) => e));
  for (let d = shape.length - 1; d >= 0; d--) {
    const tail = shape.slice(d);
    if (!split(fused, [quotient(size, product(tail)) ?? 0n, ...tail])) {
      return `dimension ${d} of shape ${tupleText(shape)} begins at a multiple of ${product(tail)} elements, which ` +
        `cuts an iter of (${extents}) unevenly`;
    }
  }
  return `shape ${tupleText(shape)} does not divide the iters (${extents})`;
}

function group(layout, shape) {
  return { ...layout, shard: groupShard(layout.shard, shape)[0] };
}

// --- tiling ------------------------------------------------------------------------------------------------

// Per axis, max - min + 1 over shard and replica; with a swizzle, of the values it gives on `m`.
function spansOf(layout) {
  const out = new Map();
  for (const [e, s, a] of [...layout.shard, ...layout.replica]) {
    out.set(a, (out.get(a) ?? 1n) + (e - 1n) * (s < 0n ? -s : s));
  }
  if (layout.swizzle && layout.swizzle.width) out.set(M, swizzledSpan(layout));
  return out;
}

function swizzledSpan(layout) {
  const values = new Set([layout.offset.get(M) ?? 0n]);
  for (const [e, s, a] of [...layout.shard, ...layout.replica]) {
    if (a !== M || s === 0n) continue;
    if (e * BigInt(values.size) > LISTED) throw new NotHere("span", "there are too many places on m to list under a swizzle");
    for (const v of [...values]) for (let c = 1n; c < e; c++) values.add(v + c * s);
  }
  let least = null;
  let most = null;
  for (const v of values) {
    const image = xor(layout.swizzle, v);
    if (least === null || image < least) least = image;
    if (most === null || image > most) most = image;
  }
  return most - least + 1n;
}

// Row-major copies on `m` that fill `to`.
function tileTo(layout, to, current) {
  if (to.length !== current.length) {
    throw new LayoutError("tile_to", `shapes ${tupleText(to)} and ${tupleText(current)} differ in rank`);
  }
  const counts = to.map((n, d) => {
    const count = quotient(n, current[d]);
    if (count === null) {
      const rule = `dimension ${d}: ${current[d]} does not divide ${n}: ${n} % ${current[d]} = ${n % current[d]}`;
      throw new LayoutError("tile_to", rule, "cover with a larger shape and predicate the rim");
    }
    return count;
  });
  const span = spansOf(layout).get(M) ?? 1n;
  const weights = weightsOf(counts);
  const outer = counts.map((e, k) => [e, weights[k] * span, M]);
  if (layout.swizzle && outer.some(([e, s]) => e !== 1n && s % (1n << BigInt(layout.swizzle.width)))) {
    throw new NotHere("tile_to", `copies lie ${span} apart, which is no multiple of the swizzle's period`);
  }
  return { ...layout, shard: interleave(outer, counts, layout.shard, current, "tile_to", ["outer", "inner"]) };
}

// The iters in the order x_0, y_0, x_1, y_1, ... See tilelayout/algebra/interleave.py.
function interleave(left, leftShape, right, rightShape, operation, names) {
  let one = find(left, leftShape, operation);
  let two = find(right, rightShape, operation);
  if (!one || !two) {
    const shapes = joined(leftShape, rightShape);
    [one, two] = [[left, leftShape], [right, rightShape]].map(([shard, shape], side) => {
      const found = find(shard, shapes[side], operation);
      if (found) return found;
      const rule = `the ${names[side]} layout: ${whyNot(fuse(shard), shape)}, and ${operation} takes shapes that cut no iter`;
      throw new LayoutError(operation, rule);
    });
  }
  const [a, aSeps] = one;
  const [b, bSeps] = two;
  return aSeps.slice(1).flatMap((end, d) => [...a.slice(aSeps[d], end), ...b.slice(bSeps[d], bSeps[d + 1])]);
}

// Shapes of fewer dimensions with the same interleaved order: where a side counts one, its neighbors are neighbors.
function joined(left, right) {
  const out = [];
  let last = 1;
  for (const [k, n] of left.flatMap((n, d) => [[0, n], [1, right[d]]])) {
    if (n === 1n) continue;
    if (!out.length || (k === 0 && last === 1)) out.push([1n, 1n]);
    out.at(-1)[k] *= n;
    last = k;
  }
  return [out.map(([x]) => x), out.map(([, y]) => y)];
}

// --- permuting ---------------------------------------------------------------------------------------------

function checkedPermutation(perm, count, operation, of) {
  const order = perm.map(Number);
  if (order.length !== count || [...order].sort((a, b) => a - b).some((p, k) => p !== k)) {
    const shown = `[${perm.join(", ")}]`;
    throw new LayoutError(operation, `${shown} is not a permutation of the ${count} ${of} (0 to ${count - 1})`);
  }
  return order;
}

function permuteDims(layout, perm) {
  const order = checkedPermutation(perm, layout.shard.length, "permute_dims", "iters");
  return { ...layout, shard: order.map((k) => layout.shard[k]) };
}

function permuteByGroups(layout, seps, perm) {
  const count = layout.shard.length;
  const cuts = seps.map(Number);
  const rising = cuts.every((s, k) => !k || cuts[k - 1] <= s);
  if (!cuts.length || cuts[0] !== 0 || cuts.at(-1) !== count || !rising) {
    throw new LayoutError(
      "permute_by_groups", `separators [${seps.join(", ")}] must rise from 0 to the ${count} iters of the shard`);
  }
  const order = checkedPermutation(perm, cuts.length - 1, "permute_by_groups", "groups");
  return { ...layout, shard: order.flatMap((g) => layout.shard.slice(cuts[g], cuts[g + 1])) };
}
