// Operations on the layout of the page, one after the other; and which element of the layout before each came from.

// The operations that this page performs itself: what their arguments are, and what they do to the shape.
const OPERATIONS = {
  group: {
    hint: "shape: (4, 4, 16)",
    says: "the same layout, its iters cut at the dimensions of the shape",
    perform: (layout, [shape]) => [group(layout, shape), shape],
    source: (layout, args, flat) => flat,
  },
  tile_to: {
    hint: "to, current: (32, 16), (16, 16)",
    says: "copies of the layout on m that fill the larger shape",
    perform: (layout, [to, current]) => [tileTo(layout, to, current), to],
    source: (layout, [to, current], flat) => flatOf(digitsOf(flat, to).map((c, d) => c % current[d]), current),
  },
  slice: {
    hint: "shape, ranges: (16, 16), ((0, 8), (8, 16))",
    says: "the layout of a box, counted from its corner",
    perform: (layout, [shape, region]) => [slice(layout, shape, region), region.map(([begin, end]) => end - begin)],
    source: (layout, [shape, region], flat) => {
      const lengths = region.map(([begin, end, by = 1n]) => (end - begin + by - 1n) / by);
      return flatOf(digitsOf(flat, lengths).map((c, d) => region[d][0] + (region[d][2] ?? 1n) * c), shape);
    },
  },
  permute_dims: {
    hint: "order of the iters: (1, 0, 2)",
    says: "the iters in another order; owners stay",
    perform: (layout, [perm]) => {
      const out = permuteDims(layout, perm);
      return [out, out.shard.map(([e]) => e)];
    },
    source: (layout, [perm], flat) => permutedSource(layout.shard.map(([e]) => e), perm, flat),
  },
  permute_by_groups: {
    hint: "separators, order of the groups: (0, 2, 4), (1, 0)",
    says: "runs of iters in another order; owners stay",
    perform: (layout, [seps, perm]) => {
      const out = permuteByGroups(layout, seps, perm);
      const extents = groupExtents(layout, seps);
      return [out, perm.map((g) => extents[Number(g)])];
    },
    source: (layout, [seps, perm], flat) => permutedSource(groupExtents(layout, seps), perm, flat),
  },
  compose: {
    hint: "a layout on m: S[(16, 16):(1, 16)]",
    says: "i is where the layout has what the other says for i",
    takesLayout: true,
    perform: (layout, [other]) => [compose(layout, other), null],
    source: (layout, [other], flat) => placer(other)(flat).get(M) ?? 0n,
  },
};

const ARGUMENTS = { group: "s", tile_to: "ss", slice: "sr", permute_dims: "p", permute_by_groups: "pp" };

function groupExtents(layout, seps) {
  const cuts = seps.map(Number);
  return cuts.slice(1).map((end, g) => product(layout.shard.slice(cuts[g], end).map(([e]) => e)));
}

function permutedSource(extents, perm, flat) {
  const order = perm.map(Number);
  const digits = digitsOf(flat, order.map((k) => extents[k]));
  const before = [];
  order.forEach((k, at) => (before[k] = digits[at]));
  return flatOf(before, extents);
}

// The arguments that a text writes: integers and tuples of them, as Python writes them; or a layout.
function readArguments(operation, text, axes) {
  const known = OPERATIONS[operation];
  if (!known) throw new NotHere(operation, `this page performs ${Object.keys(OPERATIONS).join(", ")}`);
  if (known.takesLayout) return [parseLayout(text, axes)];
  const kinds = ARGUMENTS[operation];
  const listed = readTuples(operation, text);
  const values = kinds.length === 1 && listed.length > 1 ? [listed] : listed; // group(4, 4) for group((4, 4))
  if (values.length !== kinds.length) {
    throw new LayoutError(operation, `${kinds.length} arguments are expected, got ${values.length}`, known.hint);
  }
  return values.map((value, k) => checkedArgument(operation, value, kinds[k]));
}

function checkedArgument(operation, value, kind) {
  const list = Array.isArray(value) ? value : [value];
  const hint = OPERATIONS[operation].hint;
  if (kind === "r") {
    if (list.some((bounds) => !Array.isArray(bounds) || bounds.some(Array.isArray))) {
      throw new LayoutError(operation, "each dimension has a range (begin, end)", hint);
    }
    return list;
  }
  if (list.some(Array.isArray)) throw new LayoutError(operation, "a tuple of integers is expected", hint);
  const low = list.findIndex((n) => n < 1n);
  if (kind === "s" && low >= 0) {
    throw new LayoutError(operation, `shape dimension ${low} must be at least 1, got ${list[low]}`);
  }
  return list;
}

function readTuples(operation, text) {
  const tokens = [...text.matchAll(/\s*(-?\d+|[()[\],]|\S)/g)].map((found) => [found.index, found[1]]);
  let at = 0;
  const fail = (expected) => errorAt(text, at < tokens.length ? tokens[at][0] : text.length, `expected ${expected}`);
  const list = (end) => {
    const out = [];
    while (at < tokens.length && tokens[at][1] !== end) {
      out.push(value());
      if (at < tokens.length && tokens[at][1] === ",") at++;
      else if (at < tokens.length && tokens[at][1] !== end) throw fail("','");
    }
    if (end) {
      if (at >= tokens.length) throw fail(`'${end}'`);
      at++;
    }
    return out;
  };
  const value = () => {
    const token = tokens[at][1];
    if (/^-?\d/.test(token)) return BigInt(tokens[at++][1]);
    if (token !== "(" && token !== "[") throw fail("an integer or a tuple of integers");
    at++;
    return list(token === "(" ? ")" : "]");
  };
  const found = list(null);
  if (!found.length) throw new LayoutError(operation, "arguments are missing", OPERATIONS[operation].hint);
  return found;
}

// { call, layout, shape } after an operation that is performed here.
function performed(layout, operation, text, axes) {
  const args = readArguments(operation, text, axes);
  const [after, shape] = OPERATIONS[operation].perform(layout, args);
  return { call: `${operation}(${text.trim()})`, layout: after, shape };
}

// Which element of the layout before a step an element came from; null for a step that this page does not know.
function cameFrom(before, call, flat, axes) {
  const found = /^(\w+)\((.*)\)$/s.exec(call);
  if (!found || !hasOwn(OPERATIONS, found[1])) return null;
  try {
    return OPERATIONS[found[1]].source(before, readArguments(found[1], found[2], axes), flat);
  } catch (error) {
    if (error instanceof LayoutError) return null;
    throw error;
  }
}
