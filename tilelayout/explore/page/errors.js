// Refusals, worded as the Python package words them, and the nearest of the known names.

class LayoutError extends Error {
  constructor(operation, rule, remedy = null, position = null) {
    super(`${operation}: ${rule}${remedy ? ` (remedy: ${remedy})` : ""}`);
    Object.assign(this, { name: "LayoutError", operation, rule, remedy, position });
  }
}

// What Python decides and this page does not: it says so, and never guesses.
class NotHere extends LayoutError {
  constructor(operation, rule) {
    super(operation, rule, "ask Python, and hand the result in: layout.explore(steps=[...])");
    this.name = "NotHere";
  }
}

// As Python's `errors.nearest`: the closest known name, or the whole list.  Close means that more than half of the name's
// letters are found in order, and half of both names' together.
function nearest(name, known) {
  const asked = name.toLowerCase();
  const plain = new Map(known.map((k) => [k.toLowerCase(), k]));
  let best = null;
  for (const candidate of plain.keys()) {
    const matched = inMatchingBlocks(candidate, asked);
    const score = (2 * matched) / (candidate.length + asked.length);
    if (score >= 0.5 && 2 * matched > asked.length && (!best || score > best[0] || (score === best[0] && candidate > best[1]))) {
      best = [score, candidate];
    }
  }
  return best ? `did you mean '${plain.get(best[1])}'?` : `known: ${known.join(", ")}`;
}

// Characters in the matching blocks of Python's difflib.SequenceMatcher.
function inMatchingBlocks(a, b) {
  const matched = (a0, a1, b0, b1) => {
    let [size, at, to] = [0, a0, b0];
    for (let i = a0; i < a1; i++) {
      for (let j = b0; j < b1; j++) {
        let k = 0;
        while (i + k < a1 && j + k < b1 && a[i + k] === b[j + k]) k++;
        if (k > size) [size, at, to] = [k, i, j];
      }
    }
    return size ? size + matched(a0, at, b0, to) + matched(at + size, a1, to + size, b1) : 0;
  };
  return matched(0, a.length, 0, b.length);
}
