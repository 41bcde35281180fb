// The doorway for programs: a question as JSON in, an answer as JSON out.  Tests compare the answers with Python's.

function answer({ ask, text, shape: asked, flat, operation, with: argument, color, bits, chunk, access, vector, start }) {
  const axes = Object.keys(HOUSE.axes);
  try {
    const layout = parseLayout(text, axes);
    const shape = shapeFor(layout, asked ? asked.map(BigInt) : null);
    const told = {
      text: () => layoutText(layout),
      shape: () => shape,
      owners: () => range(0n, sizeOf(layout)).map(ownersOf(layout)),
      logical: () => logicalGrid(layout, shape, color, [0n, 0n]),
      hardware: () => hardwareGrid(layout, shape, color, [0n, 0n]),
      banks: () => bankGrid(layout, shape, bits, accessOf(access, shape, vector, start, bits), chunk, [0n, 0n]),
      words: () => range(0n, sizeOf(layout)).map((x) => ownersOf(layout)(x).map((p) => placeText(p, bits))),
      explain: () => explain(layout, shape, BigInt(flat)),
      perform: () => {
        const after = performed(layout, operation, argument, axes);
        return { ...after, layout: layoutText(after.layout) };
      },
      sources: () => {
        const after = performed(layout, operation, argument, axes);
        return range(0n, sizeOf(after.layout)).map((x) => cameFrom(layout, after.call, x, axes));
      },
    };
    return { is: plainData(told[ask]()) };
  } catch (error) {
    if (!(error instanceof LayoutError)) throw error;
    return { refused: error.message, kind: error.name, position: error.position };
  }
}

// BigInt as text, maps as objects, for JSON.
function plainData(value) {
  if (typeof value === "bigint") return String(value);
  if (value instanceof Map) return Object.fromEntries([...value].map(([k, v]) => [k, plainData(v)]));
  if (Array.isArray(value)) return value.map(plainData);
  if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, plainData(v)]));
  return value;
}
