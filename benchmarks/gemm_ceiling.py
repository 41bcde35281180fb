"""The ceiling: a matrix instruction in a loop that touches nothing but registers, as fast as the tensor cores go.

Eight warps on each multiprocessor, two on each of its four parts; every warp has independent accumulators enough to
hide the latency.  Factors are random numbers around 1 of either sign, since the power that a product takes depends on
them.
"""

from __future__ import annotations

from .gemm_rows import Ceiling

WARPS = 8
CHAINS = 16
"""Independent accumulators of a warp."""
FACTORS = 4
"""Different fragments of A, and of B, that they are made of."""


def ceiling_text(c: Ceiling, target: str, version: str, chains: int = CHAINS) -> str:
    """A module whose kernel ``ceiling`` runs its one parameter's number of turns, each of `chains` products."""
    size = 64 if c.factor == "f64" else 32
    a = [[f"%a{i}_{j}" for j in range(c.a)] for i in range(FACTORS)]
    b = [[f"%b{i}_{j}" for j in range(c.b)] for i in range(FACTORS)]
    d = [[f"%d{i}_{j}" for j in range(c.d)] for i in range(chains)]
    lines = [
        version, f".target {target}", ".address_size 64", "",
        ".visible .entry ceiling(", "    .param .u64 ceiling_turns", ")", f".reqntid {32 * WARPS}", "{",
        f"    .reg .{'f64' if size == 64 else 'b32'} {', '.join(r for rs in (*a, *b) for r in rs)};",
        f"    .reg .{c.kind} {', '.join(r for rs in d for r in rs)};",
        "    .reg .b32 %seed, %lane, %word, %low, %turns;",
        "    .reg .b64 %rd;",
        "    .reg .pred %p;",
        "    mov.u32 %lane, %tid.x;",
        "    mad.lo.u32 %seed, %lane, 2654435761, 12345;",
        "    ld.param.u64 %rd, [ceiling_turns];",
        "    cvt.u32.u64 %turns, %rd;",
    ]  # fmt: skip
    for register in (r for rs in (*a, *b) for r in rs):
        lines += random_number(register, c)
    zero = {"f32": "0f00000000", "f64": "0d0000000000000000", "b32": "0"}[c.kind]
    lines += [f"    mov.{c.kind} {r}, {zero};" for rs in d for r in rs]
    lines.append("AGAIN:")
    for i, sums in enumerate(d):
        x, y = a[i % FACTORS], b[i // FACTORS % FACTORS]
        lines.append(f"    {c.text} {group(sums)}, {group(x)}, {group(y)}, {group(sums)};")
    lines += ["    sub.u32 %turns, %turns, 1;", "    setp.ne.u32 %p, %turns, 0;", "    @%p bra AGAIN;"]
    # Sums that nobody reads would be dropped: they are stored, to nowhere, for a number of turns that nobody asks for.
    lines += ["    setp.eq.u64 %p, %rd, 0x8000000000000001;"]
    lines += [f"    @%p st.global.{c.kind} [%rd], {r};" for rs in d for r in rs]
    return "\n".join([*lines, "    ret;", "}", ""])


def random_number(register: str, c: Ceiling) -> list[str]:
    """A random word in a register, masked to be a number."""
    clear, put = c.fill
    lines = [
        "    mad.lo.u32 %seed, %seed, 1664525, 1013904223;",
        "    shf.l.wrap.b32 %word, %seed, %seed, 13;",
        f"    and.b32 %word, %word, {clear:#x};",
        f"    or.b32 %word, %word, {put:#x};",
    ]
    if c.factor == "f64":
        return [*lines, "    mov.b32 %low, %seed;", f"    mov.b64 {register}, {{%low, %word}};"]
    return [*lines, f"    mov.b32 {register}, %word;"]


def group(registers: list[str]) -> str:
    return "{" + ", ".join(registers) + "}"


def flops_per_turn(c: Ceiling, multiprocessors: int, chains: int = CHAINS) -> float:
    m, n, k = c.shape
    return 2.0 * m * n * k * chains * WARPS * multiprocessors
