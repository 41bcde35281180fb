// Shared memory: lines of 32 banks, and how one instruction of a warp collides in them.
// See tilelayout/analysis/banks.py and draw/views/shared.py, which say the same.

const BANKS = 32;
const BANK_BYTES = 4;
const LINE_BITS = 1024n;
const WIDTHS = [1, 2, 4, 8, 16];

// Flat index -> position on `m`; refused where an element has several places or one that is not on `m`.
function positionsOf(layout) {
  const text = layoutText(layout);
  if (layout.replica.some(([e, s]) => e !== 1n && s !== 0n)) {
    throw new LayoutError("banks", `${text} has a replica, so an element has no single address`, "ask about one copy: the shard and the offset alone");
  }
  const size = sizeOf(layout);
  if (size > LISTED) throw new LayoutError("banks", `${size} elements are more than the ${LISTED} that are listed`, "slice the tile first");
  const owners = ownersOf(layout);
  return range(0n, size).map((flat) => {
    const [place] = owners(flat);
    for (const [a, v] of place) {
      if (a !== M && v !== 0n) {
        throw new LayoutError("banks", `${text} places elements along ${a}, and only m is an address`, "choose a layout on m, or the logical view");
      }
    }
    return place.get(M) ?? 0n;
  });
}

// --- accesses ----------------------------------------------------------------------------------------------

function counting(begin, count) {
  return Array.from({ length: count }, (_, k) => begin + k);
}

// Lane -> flat indices: "rows", "column", "ldmatrix" or "" for none.  `vector` elements a lane.
function accessOf(kind, shape, vector, start, bits) {
  if (!kind) return null;
  const columns = Number(shape.at(-1));
  const size = Number(product(shape));
  const run = (coordinate, count) => {
    const flat = coordinate[0] * columns + coordinate[1];
    if (coordinate[1] + count > columns || flat + count > size) {
      throw new LayoutError("access", `${count} elements at row ${coordinate[0]}, column ${coordinate[1]} leave the tile ${tupleText(shape)}`, "a smaller start or vector");
    }
    return counting(flat, count);
  };
  if (kind === "rows") {
    if (columns % vector) {
      throw new LayoutError("access", `a vector of ${vector} elements does not divide a row of ${columns}`, "a narrower vector");
    }
    const lanes = Math.min(32, Math.floor((size - start * columns) / vector));
    if (lanes < 1) throw new LayoutError("access", `row ${start} is not in the tile ${tupleText(shape)}`);
    const first = (lane) => start * columns + lane * vector;
    return { kind: "load", vector, lanes: Array.from({ length: lanes }, (_, lane) => counting(first(lane), vector)) };
  }
  const rows = size / columns;
  if (kind === "column") {
    return { kind: "load", vector, lanes: Array.from({ length: Math.min(32, rows) }, (_, lane) => run([lane, start], vector)) };
  }
  const perLane = Math.floor(128 / bits);
  if (rows < 8) throw new LayoutError("access", `ldmatrix reads 8 rows, and the tile has ${rows}`);
  return { kind: "ldmatrix", vector: perLane, lanes: Array.from({ length: 8 }, (_, lane) => run([lane, start], perLane)) };
}

// --- conflicts ---------------------------------------------------------------------------------------------

function bankReport(positions, access, bits) {
  const total = access.vector * bits;
  if (total % 8 || !WIDTHS.includes(total / 8)) {
    const fitting = WIDTHS.filter((w) => (w * 8) % bits === 0).map((w) => (w * 8) / bits);
    throw new LayoutError(
      "bank_conflicts",
      `${access.vector} elements of ${bits} bits are ${total} bits, and one lane accesses 1, 2, 4, 8 or 16 bytes`,
      `access ${fitting.join(", ")} elements at once`);
  }
  const width = total / 8;
  const starts = access.lanes.map((flats, lane) => laneStart(positions, flats, lane, bits, total));
  const step = access.kind === "ldmatrix" ? 8 : Math.min(32, (BANKS * BANK_BYTES) / width);
  const phases = [];
  for (let k = 0; k < starts.length; k += step) phases.push(phaseOf(starts, k, Math.min(k + step, starts.length), width));
  return { access, width, starts, phases, text: reportText(access, width, phases) };
}

function laneStart(positions, flats, lane, bits, total) {
  const places = flats.map((flat) => positions[flat]);
  places.forEach((place, k) => {
    if (place !== places[0] + BigInt(k)) {
      throw new LayoutError(
        "bank_conflicts",
        `the elements of lane ${lane} are not neighbors: positions ${places[0]} and ${place} for elements ${flats[0]} and ${flats[k]}`,
        "a narrower vector; widest_access says how wide it may be");
    }
  });
  const address = places[0] * BigInt(bits);
  if (address < 0n) throw new LayoutError("bank_conflicts", `lane ${lane} touches byte ${floorDiv(address, 8n)}`, "say with base where position 0 is");
  if (address % BigInt(total)) {
    const at = address % 8n ? `bit ${address}` : `byte ${address / 8n}`;
    throw new LayoutError(
      "bank_conflicts", `lane ${lane} accesses ${total / 8} bytes at ${at}, which is not aligned to them`,
      "a narrower vector; widest_access says how wide it may be");
  }
  return address / 8n;
}

function wordsOf(start, width) {
  return range(start / 4n, (start + BigInt(width) - 1n) / 4n - start / 4n + 1n);
}

function phaseOf(starts, begin, end, width) {
  const lanes = Array.from({ length: end - begin }, (_, k) => begin + k);
  const banks = Array.from({ length: BANKS }, () => new Map()); // bank -> word -> lanes
  for (const lane of lanes) {
    for (const word of wordsOf(starts[lane], width)) {
      const words = banks[Number(word % 32n)];
      words.set(word, [...(words.get(word) ?? []), lane]);
    }
  }
  const groups = new Map();
  banks.forEach((words, bank) => {
    if (words.size < 2) return;
    const together = [...words.values()].flat().sort((a, b) => a - b);
    const key = `${together}/${words.size}`;
    if (!groups.has(key)) groups.set(key, { banks: [], lanes: together, ways: words.size });
    groups.get(key).banks.push(bank);
  });
  const conflicts = [...groups.values()].map((g) => ({ ...g, addresses: g.lanes.map((lane) => starts[lane]) }));
  return { lanes, degree: Math.max(...banks.map((words) => words.size)), conflicts };
}

function counted(n, what) {
  return `${n} ${what}${n === 1 ? "" : "s"}`;
}

function reportText(access, width, phases) {
  const degree = Math.max(...phases.map((p) => p.degree));
  const fronts = phases.reduce((sum, p) => sum + p.degree, 0);
  const active = phases.reduce((sum, p) => sum + p.lanes.length, 0);
  const head = `${access.kind}, ${counted(active, "lane")} of ${counted(width, "byte")}: `;
  if (degree === 1) return `${head}no conflicts, ${counted(fronts, "wavefront")}`;
  const lines = [`${head}${degree}-way conflicts, ${fronts} wavefronts where ${phases.length} would do`];
  for (const { lanes, degree: ways, conflicts } of phases) {
    if (!conflicts.length) continue;
    lines.push(`lanes ${lanes[0]}-${lanes.at(-1)}: ${ways}-way`);
    for (const conflict of conflicts) lines.push(`  ${conflictText(conflict)}`);
  }
  return lines.join("\n");
}

function conflictText({ banks, lanes, addresses, ways }) {
  const [first, last] = [banks[0], banks.at(-1)];
  let name = first === last ? `bank ${first}` : `banks ${first}-${last}`;
  if (last - first >= banks.length) name = `banks ${banks.join(", ")}`;
  return `${name}: ${lanes.map((lane, k) => `lane ${lane} at ${addresses[k]}`).join(", ")} (${ways}-way)`;
}

// --- the picture -------------------------------------------------------------------------------------------

// A row for each line of 128 bytes, a column for each `chunk` bytes of it.
function bankGrid(layout, shape, bits, access, chunk, origin) {
  const cellBits = BigInt(8 * chunk);
  const width = BigInt(bits);
  const positions = positionsOf(layout);
  const begins = positions.map((p) => p * width);
  const plain = layout.swizzle ? positionsOf({ ...layout, swizzle: null }).map((p) => p * width) : begins;
  const lowest = begins.reduce((a, b) => (b < a ? b : a));
  const highest = begins.reduce((a, b) => (b > a ? b : a));
  if (lowest < 0n) throw new LayoutError("banks", `an element is at bit ${lowest}, before address 0`, "add an offset");
  const at = new Map();
  const movedFlats = new Set();
  begins.forEach((begin, flat) => {
    for (let cell = begin - (begin % cellBits); cell < begin + width; cell += cellBits) {
      at.set(cell, [...(at.get(cell) ?? []), flat]);
    }
    if (begin / cellBits !== plain[flat] / cellBits) movedFlats.add(flat);
  });
  const report = access ? bankReport(positions, access, bits) : null;
  const touched = report ? touchedCells(report, begins, bits, cellBits) : new Map();
  const first = lowest / LINE_BITS;
  const perLine = LINE_BITS / cellBits;
  const size = [(highest + width - 1n) / LINE_BITS - first + 1n, perLine];
  const { begin, shown, crop } = windowOf(...size, origin);
  const cell = (where) => {
    const flats = (at.get(where) ?? []).sort((a, b) => (begins[a] < begins[b] ? -1 : begins[a] > begins[b] ? 1 : a - b));
    const { lanes, collides } = touched.get(where) ?? { lanes: [], collides: false };
    const coordinates = flats.map((flat) => digitsOf(BigInt(flat), shape));
    const lines = flats.length ? [runText(coordinates)] : [];
    if (lanes.length) lines.push(`T${lanes.length <= 3 ? lanes.join(",") : `${lanes[0]}..${lanes.at(-1)}`}`);
    const marks = [...(collides ? ["conflict"] : []), ...(flats.some((flat) => movedFlats.has(flat)) ? ["moved"] : [])];
    const key = flats.length ? (coordinates[0].at(-1) * width) / 128n : null;
    return { lines, key, flats: flats.map(BigInt), places: flats.map((flat) => new Map([[M, positions[flat]]])), marks, lanes, at: where };
  };
  const lines = range(begin[0] + first, shown[0]);
  return {
    name: "banks",
    cells: lines.map((line) => range(0n, perLine).map((c) => cell(line * LINE_BITS + c * cellBits))),
    begin,
    size,
    rowLabels: lines.map(String),
    columnLabels: range(0n, perLine).map((c) => (chunk === 4 ? `${c}` : `${(c * cellBits) / 32n}-${((c + 1n) * cellBits) / 32n - 1n}`)),
    corner: `line \\ ${chunk === 4 ? "bank" : "banks"}`,
    notes: [...(report ? report.text.split("\n") : []), ...(crop ? [crop] : [])],
    report,
  };
}

function touchedCells(report, begins, bits, cellBits) {
  const waiting = new Map();
  for (const { conflicts } of report.phases) {
    for (const { lanes, banks } of conflicts) {
      for (const lane of lanes) waiting.set(lane, new Set([...(waiting.get(lane) ?? []), ...banks]));
    }
  }
  const found = new Map();
  report.access.lanes.forEach((flats, lane) => {
    const start = begins[flats[0]];
    for (let word = start - (start % 32n); word < start + BigInt(flats.length * bits); word += 32n) {
      const cell = word - (word % cellBits);
      const { lanes, collides } = found.get(cell) ?? { lanes: [], collides: false };
      const waits = waiting.get(lane)?.has(Number((word / 32n) % 32n)) ?? false;
      found.set(cell, { lanes: lanes.includes(lane) ? lanes : [...lanes, lane], collides: collides || waits });
    }
  });
  return found;
}

// 3,8..15 for a run along the last dimension, else the first, and how many more.
function runText(coordinates) {
  const first = coordinates[0];
  const text = coordinateText(first, ",");
  if (coordinates.length === 1) return text;
  const run = coordinates.every((c, k) => coordinateText(c) === coordinateText([...first.slice(0, -1), first.at(-1) + BigInt(k)]));
  return run ? `${text}..${coordinates.at(-1).at(-1)}` : `${text} +${coordinates.length - 1}`;
}
