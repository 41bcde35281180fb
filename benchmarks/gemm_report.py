"""The result of `benchmarks.gemm` as Markdown: speed, kernels, costs; and what went wrong, in words."""

from __future__ import annotations

from typing import Any

By = dict[str, Any]

SPEED = {
    "ours": ("ours, burst", "ours, sustained"),
    "cuBLAS": ("cuBLAS, burst", "cuBLAS, sustained"),
    "Triton": ("Triton, burst", "Triton, sustained"),
    "mma loop": ("loop, burst", "loop, sustained"),
}
SHARES = {
    "of cuBLAS": ("of cuBLAS, burst", "of cuBLAS, sustained"),
    "of the loop": ("of loop, burst", "of loop, sustained"),
}
KERNEL = ("cut", "registers", "spill bytes", "local bytes", "CTAs", "MHz", "slots", "us", "GB/s", "error")


def markdown(found: By) -> str:
    """Tables with their heading, card, date and protocol."""
    versions = ", ".join(f"{n} {v}" for n, v in found["versions"].items())
    parts = [
        "### gemm",
        f"{found['date']}: {found['card']}, {versions}, commit {found['commit'] or 'not named'}.",
        f"{found['method']}.",
        speed(found["rows"]),
        "Our kernels; *us* and *GB/s* are of the burst, bytes counted once:",
        kernels(found["rows"]),
    ]
    if found.get("costs"):
        parts += ["What a kernel costs beside:", costs(found["costs"])]
    wrong = [
        f"- {r['problem']}: {k.partition(',')[0]}: {v}"
        for r in found["rows"]
        for k, v in r.items()
        if "why not" in k
    ]
    if wrong:
        parts += ["Not measured:", "\n".join(wrong)]
    return "\n\n".join(parts)


def speed(rows: list[By]) -> str:
    heads = ["problem", *[f"{name}, burst / sustained" for name in SPEED], *SHARES]
    lines: list[list[str]] = []
    for row in rows:
        line = [row["problem"]]
        line += [pair(row, keys, whole) for keys in SPEED.values()]
        line += [pair(row, keys, share) for keys in SHARES.values()]
        lines.append(line)
    return grid(heads, lines)


def kernels(rows: list[By]) -> str:
    lines = [[row["problem"], *[cell(row.get(key)) for key in KERNEL]] for row in rows]
    return grid(["problem", *KERNEL], lines)


def costs(found: By) -> str:
    lines: list[list[str]] = []
    launching = found.get("launching", {})
    lines += [
        [f"a launch, host time: {name}", f"{us:.2f} us"]
        for name, us in launching.items()
        if isinstance(us, float)
    ]
    for name, steps in found.get("compiling", {}).items():
        if isinstance(steps, dict):
            each = ", ".join(
                f"{k.removesuffix(', s')} {v:.2f}" for k, v in steps.items() if isinstance(v, float)
            )
            lines.append([f"compiling {steps.get('tile', '')}, {name}, a fresh process", f"{each} s"])
    simulating = found.get("simulating", {})
    lines += [[f"simulating 128 x 128 x 128, {k.removesuffix(', s')}", f"{v:.2f} s"] for k, v in simulating.items()
              if isinstance(v, float)]  # fmt: skip
    return grid(["what", "cost"], lines)


def pair(row: By, keys: tuple[str, str], form: Any) -> str:
    first, second = (row.get(k) for k in keys)
    return f"{form(first)} / {form(second)}" if first is not None and second is not None else ""


def whole(x: float) -> str:
    return f"{x:.0f}" if x >= 100 else f"{x:.1f}"


def share(x: float) -> str:
    return f"{x:.2f}"


def cell(x: Any) -> str:
    if x is None:
        return ""
    if not isinstance(x, float):
        return str(x)
    if x == 0:
        return "0"
    return f"{x:.0f}" if x >= 100 else f"{x:.1e}" if x < 1e-2 else f"{x:.3g}"


def grid(heads: list[str], lines: list[list[str]]) -> str:
    rows = [heads, ["---", *["---:"] * (len(heads) - 1)], *lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in rows)
