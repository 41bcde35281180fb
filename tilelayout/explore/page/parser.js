// Reading the notation S[...] + R[...] + offset: the grammar of tilelayout/spec/parser.py, with its messages.
//
//   layout := ["T."] "TileLayout" "(" sum ")" | sum
//   sum    := ["-"] part (("+" | "-") part)*
//   part   := ("S" | "R") "[" list [":" list] "]" | "(" sum ")" | product ["@" axis]
//   list   := "(" [entry ("," entry)* [","]] ")" | entry ("," entry)*
//   entry  := number ["@" axis]
//   number := product (("+" | "-") product)*;  product := unary (("*" | "//" | "%") unary)*;  unary := "-" unary | power
//   power  := atom ["**" unary];               atom    := integer | "(" number ")"
//
// A value is a BigInt, a sum of offset terms { terms: [[value, axis], ...] }, or a spec { shard, replica, offset,
// hasShard }.  Positions count characters, as Python's do.

const MAX_DEPTH = 100;
const MAX_DIGITS = 4000;
const MAX_BITS = 4096n;
const SPACE = "[ \\t-\\r\\x1c-\\x1f\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]";
const TOKEN = new RegExp(`${SPACE}+|\\p{Nd}+|[A-Za-z_][\\p{L}\\p{N}_]*|\\*\\*|\\/\\/|.`, "gsu");
const BLANK = new RegExp(`^${SPACE}`, "u");

// The layout that a text writes, swizzled or not.
function parseLayout(text, axes) {
  const found = readSwizzled(text);
  const parser = new Parser(found ? found[1] : text, axes);
  const spec = parser.layout();
  if (!spec.hasShard) {
    parser.at = 0;
    throw parser.fail("a shard S[...] in the layout");
  }
  return made(spec.shard, spec.replica, spec.offset, found ? found[0] : null);
}

function specText(spec) {
  return tileText(spec, spec.hasShard);
}

function errorAt(text, where, rule) {
  const characters = [...text];
  const begin = Math.max(0, where - 60);
  const shown = characters.slice(begin, where + 60).map((c) => (c !== " " && /[\p{C}\p{Z}]/u.test(c) ? " " : c)).join("");
  const message = `at position ${where}: ${rule}\n  ${shown}\n  ${" ".repeat(where - begin)}^`;
  return new LayoutError("parse", message, null, where);
}

function tokensOf(text) {
  const found = [];
  let where = 0;
  for (const [token] of text.matchAll(TOKEN)) {
    const length = [...token].length;
    if (!BLANK.test(token)) {
      if (!/^(?:[0-9]+|[A-Za-z_][0-9A-Za-z_]*|\*\*|\/\/|[*/%[\]():,@+\-.])$/.test(token)) {
        throw errorAt(text, where, `unexpected ${quoted(token)}`);
      }
      found.push([where, token]);
    }
    where += length;
  }
  return [...found, [where, ""], [where, ""]];
}

// As Python writes a string.
function quoted(text) {
  const escapes = { "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t" };
  const inside = [...text].map((c) => {
    const code = c.codePointAt(0);
    if (escapes[c] || !/[\p{C}\p{Z}]/u.test(c) || c === " ") return escapes[c] ?? c;
    if (code < 256) return `\\x${code.toString(16).padStart(2, "0")}`;
    return code < 65536 ? `\\u${code.toString(16).padStart(4, "0")}` : `\\U${code.toString(16).padStart(8, "0")}`;
  }).join("");
  return inside.includes("'") && !inside.includes('"') ? `"${inside}"` : `'${inside.replaceAll("'", "\\'")}'`;
}

class Parser {
  constructor(text, axes) {
    Object.assign(this, { text, axes, tokens: tokensOf(text), at: 0, depth: 0 });
  }

  get token() {
    return this.tokens[this.at][1];
  }

  fail(expected) {
    const [where, token] = this.tokens[this.at];
    return errorAt(this.text, where, `expected ${expected}, ${token ? `found '${token.slice(0, 40)}'` : "the text ends"}`);
  }

  sees(...tokens) {
    return tokens.includes(this.token);
  }

  take(token) {
    if (this.token !== token) return false;
    this.at++;
    return true;
  }

  need(token) {
    if (!this.take(token)) throw this.fail(`'${token}'`);
  }

  prefix() {
    if (this.token === "T" && this.tokens[this.at + 1][1] === ".") this.at += 2;
  }

  open() {
    if (++this.depth > MAX_DEPTH) throw this.fail(`at most ${MAX_DEPTH} nested parentheses`);
    this.need("(");
  }

  close() {
    this.need(")");
    this.depth--;
  }

  layout() {
    this.prefix();
    const wrapped = this.take("TileLayout");
    if (wrapped) this.need("(");
    const found = this.sum();
    if (wrapped) this.need(")");
    if (this.token) throw this.fail("the end of the text");
    if (!found.shard) {
      this.at = 0;
      throw this.fail("S[...] or R[...]");
    }
    return found;
  }

  sum() {
    let total = this.part(this.take("-"));
    while (this.sees("+", "-")) {
      const negative = this.token === "-";
      this.at++;
      total = added(total, this.part(negative));
    }
    return total;
  }

  part(negative) {
    const start = this.at;
    this.prefix();
    if (this.sees("S", "R") && this.tokens[this.at + 1][1] === "[") {
      if (negative) throw this.fail("an offset after '-'");
      return this.bracket();
    }
    this.at = start;
    if (this.sees("(")) {
      // "(64 + 5 @ warpid)" is a sum of offsets, "(2 + 1) @ warpid" a number: try the number first.
      const depth = this.depth;
      let term = null;
      try {
        term = this.term(this.product());
      } catch (error) {
        if (!(error instanceof LayoutError)) throw error;
      }
      if (term !== null && this.sees("", "+", "-", ")")) return negative ? negated(term) : term;
      this.at = start;
      this.depth = depth;
      this.open();
      const inner = this.sum();
      this.close();
      if (negative && inner.shard) throw this.fail("an offset after '-'");
      return negative ? negated(inner) : inner;
    }
    const term = this.term(this.product());
    return negative ? negated(term) : term;
  }

  bracket() {
    const [where, name] = this.tokens[this.at];
    this.at += 2;
    const extents = this.entries();
    const strides = this.take(":") ? this.entries() : null;
    this.need("]");
    try {
      const iters = strides ? itersOf(name, extents, strides) : rowMajorOf(name, extents);
      const [shard, replica] = name === "S" ? [iters, []] : [[], iters];
      return { shard, replica, offset: new Map(), hasShard: name === "S" };
    } catch (error) {
      throw error instanceof LayoutError ? errorAt(this.text, where, error.message) : error;
    }
  }

  entries() {
    const out = [];
    if (this.sees("(") && !this.parenthesizedNumber()) {
      this.at++;
      while (!this.take(")")) {
        out.push(this.entry());
        if (!this.sees(")")) this.need(",");
      }
      return out;
    }
    do out.push(this.entry());
    while (this.take(","));
    return out;
  }

  // Whether the "(" here opens a number such as (2*3) and not a list.
  parenthesizedNumber() {
    let depth = 0;
    for (let k = this.at; k < this.tokens.length - 1; k++) {
      const token = this.tokens[k][1];
      depth += (token === "(") - (token === ")");
      if (depth === 1 && (token === "," || token === "@")) return false;
      if (depth === 0) return ["*", "**", "//", "%", "/", "+", "-", "@", ","].includes(this.tokens[k + 1][1]);
    }
    return false;
  }

  entry() {
    const start = this.at;
    const value = this.number();
    if (this.token === "@") {
      const end = this.at;
      this.at = start;
      this.product();
      // Python takes a + b @ axis for a + (b @ axis), which is no stride.
      if (this.at < end) throw this.fail("parentheses around a sum before '@'");
    }
    return this.term(value);
  }

  term(value) {
    if (!this.take("@")) return value;
    if (this.token === "Axis" && this.tokens[this.at + 1][1] === ".") this.at += 2;
    const name = this.token;
    if (!/^[A-Za-z_]/.test(name)) throw this.fail("an axis name");
    if (!this.axes.includes(name)) throw this.fail(`an axis (unknown axis '${name}', ${nearest(name, this.axes)})`);
    this.at++;
    return { terms: [[value, name]] };
  }

  number() {
    let value = this.product();
    while (this.sees("+", "-")) {
      const negative = this.token === "-";
      this.at++;
      const right = this.product();
      value = negative ? value - right : value + right;
    }
    return value;
  }

  product() {
    let value = this.unary();
    while (this.sees("*", "//", "%")) {
      const [where, operator] = [this.at++, this.tokens[this.at - 1][1]];
      const right = this.unary();
      if (operator !== "*" && right === 0n) {
        this.at = where;
        throw this.fail(`a divisor other than 0 after '${operator}'`);
      }
      value = operator === "*" ? value * right : operator === "//" ? floorDiv(value, right) : value - right * floorDiv(value, right);
    }
    return value;
  }

  unary() {
    let negative = false;
    while (this.take("-")) negative = !negative;
    const value = this.power();
    return negative ? -value : value;
  }

  power() {
    const base = this.atom();
    if (this.token !== "**") return base;
    const where = this.at;
    this.at++;
    this.depth++;
    const exponent = this.depth <= MAX_DEPTH ? this.unary() : -1n;
    this.depth--;
    const size = BigInt(bitLength(base < 0n ? -base : base));
    if (exponent < 0n || exponent * size > MAX_BITS) {
      this.at = where;
      throw this.fail(`a power of at most ${MAX_BITS} bits, with an exponent that is not negative`);
    }
    return size ? base ** exponent : exponent ? 0n : 1n;
  }

  atom() {
    const token = this.token;
    if (/^[0-9]/.test(token)) {
      if (token.length > MAX_DIGITS) throw this.fail(`a number of at most ${MAX_DIGITS} digits`);
      this.at++;
      return BigInt(token);
    }
    if (token === "(") {
      this.open();
      const value = this.number();
      this.close();
      return value;
    }
    throw this.fail(/^[A-Za-z_]/.test(token) ? "a number (a symbol is passed in symbols=)" : "a number");
  }
}

// --- what is built -----------------------------------------------------------------------------------------

function termsOf(value) {
  return typeof value === "bigint" ? [[value, M]] : value.terms;
}

function negated(value) {
  return typeof value === "bigint" ? -value : { terms: value.terms.map(([v, a]) => [-v, a]) };
}

function added(left, right) {
  if (typeof left === "bigint" && typeof right === "bigint") return left + right;
  if (!left.shard && !right.shard) return { terms: [...termsOf(left), ...termsOf(right)] };
  if (left.shard && right.shard && left.hasShard && right.hasShard) {
    throw new LayoutError(
      "S + S", `${specText(left)} + ${specText(right)}: a layout has one shard`, "write all iters in one S[...]");
  }
  const spec = left.shard ? left : right;
  const other = left.shard ? right : left;
  const offset = new Map(spec.offset);
  for (const [v, a] of other.shard ? [...other.offset].map(([a, v]) => [v, a]) : termsOf(other)) {
    offset.set(a, (offset.get(a) ?? 0n) + v);
  }
  return {
    shard: other.shard ? [...spec.shard, ...other.shard] : spec.shard,
    replica: other.shard ? [...spec.replica, ...other.replica] : spec.replica,
    offset: nonzero(offset),
    hasShard: spec.hasShard || Boolean(other.shard && other.hasShard),
  };
}

function entryText(value) {
  return typeof value === "bigint" ? `${value}` : `${value.terms[0][0]} @ ${value.terms[0][1]}`;
}

function checkedExtent(value, name, k) {
  if (typeof value !== "bigint") {
    throw new LayoutError(name, `extent ${k} must be an integer, got Term ${entryText(value)}`);
  }
  if (value < 1n) throw new LayoutError(name, `extent ${k} must be at least 1, got ${value}`);
  return value;
}

function itersOf(name, extents, strides) {
  if (extents.length !== strides.length) {
    const shown = (entries) => tupleText(entries.map(entryText));
    throw new LayoutError(
      name,
      `${extents.length} extents ${shown(extents)} and ${strides.length} strides ${shown(strides)}: one stride per extent`);
  }
  return extents.map((e, k) => [
    checkedExtent(e, name, k),
    ...(typeof strides[k] === "bigint" ? [strides[k], M] : strides[k].terms[0]),
  ]);
}

function rowMajorOf(name, extents) {
  const out = [];
  let stride = 1n;
  for (let k = extents.length - 1; k >= 0; k--) {
    if (typeof extents[k] !== "bigint") {
      throw new LayoutError(name, `entry ${k} is not an extent`, `write ${name}[(e0, e1, ...) : (s0, s1, ...)]`);
    }
    out.unshift([checkedExtent(extents[k], name, k), stride, M]);
    stride *= extents[k];
  }
  return out;
}
