"""The catalogue as text: ``python -m lowering.catalogue [PAGE]`` prints it, and writes it to a page.

Everything is read from the records; docs/reference/instructions.md is what this gives.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from .isa.catalogue import FAMILIES, Record
from .isa.record import Instruction, gate_refusal
from .isa.wgmma import WGMMA_FRAGMENTS, Wgmma
from .target import TARGETS

_TITLES = {
    "mma.sync": "Dense products: mma.sync",
    "mma.sp.sync": "Sparse products: mma.sp",
    "ldmatrix": "From shared memory: ldmatrix",
    "stmatrix": "To shared memory: stmatrix",
    "movmatrix": "Between registers: movmatrix",
}

_HEAD = """\
# The matrix instructions

Generated from the records in `lowering/isa` by `make catalogue`; a test compares this page with them, and another
assembles every record for every target and asserts both what is accepted and what is refused.

{count} records, {cells} of {all} pairs of record and target assemble, {emulated} of them emulated.

| family | records |
|---|---:|
{families}

How to read a row. *Registers*: of each lane, by operand (`f64` registers have 64 bits, all others 32; `rw` is read and
written in place). *Elements*: of each lane, by operand, and the bits that each takes in a register, low bits first
(6- and 4-bit elements in bytes: 6 bits low, 4 bits in the middle). *PTX*: the first version that has it. Under a
target: `+` it assembles, and is an instruction of the tensor cores' own as far as known; `e` it assembles into
something else, see the notes; `-` the assembler refuses it. Targets with the same column share one.
"""


def page(families: Mapping[str, Iterable[Record]] = FAMILIES) -> str:
    """The whole page, in Markdown.

    >>> from lowering.isa import MMA_INSTRUCTIONS
    >>> print(page({"mma.sync": MMA_INSTRUCTIONS}).splitlines()[5])
    4 records, 89 of 92 pairs of record and target assemble, 0 of them emulated.
    """
    tables = {name: list(records) for name, records in families.items()}
    every = [r.instruction for table in tables.values() for r in table]
    accepted = [(i, t) for i in every for t in TARGETS.values() if not i.refusal(t)]
    head = _HEAD.format(
        count=len(every),
        cells=len(accepted),
        all=len(every) * len(TARGETS),
        emulated=sum(bool(i.emulation(t)) for i, t in accepted),
        families="\n".join(f"| {_TITLES.get(name, name)} | {len(table)} |" for name, table in tables.items()),
    )
    sections = [section(_TITLES.get(name, name), table) for name, table in tables.items() if table]
    return "\n".join([head, *sections, wgmma_section()])


def section(title: str, records: Iterable[Record]) -> str:
    """A title, the table of a family, where it is defined, and what its emulated instructions become."""
    table = list(records)
    instructions = [r.instruction for r in table]
    columns = _columns(instructions)
    head = ["instruction", "PTX mnemonic", "registers", "elements", "PTX", *columns.values()]
    lines = [f"## {title}", "", _row(head), _row(["---"] * 4 + [":---:"] * (1 + len(columns)))]
    for record, i in zip(table, instructions, strict=True):
        marks = [_mark(i, name) for name in columns]
        cells = [f"`{i.name}`", f"`{i.mnemonic}`", _registers(i), getattr(record, "packing", "")]
        lines.append(_row([*cells, "{}.{}".format(*i.ptx), *marks]))
    where = dict.fromkeys(part for i in instructions for part in i.section.split("; "))
    lines += ["", "Sections of the PTX ISA:", "", *[f"- {part}" for part in where]]
    notes: dict[str, list[str]] = {}
    for i in instructions:
        for e in i.emulated:
            span = f"sm_{e.first} on" if e.last is None else f"sm_{e.first} to sm_{e.last}"
            notes.setdefault(f"from {span}, {e.how}", []).append(i.name)
    if notes:
        lines += ["", "Emulated:", ""]
        lines += [f"- {how}: {', '.join(f'`{n}`' for n in names)}" for how, names in notes.items()]
    return "\n".join([*lines, ""])


_WGMMA_HEAD = """\
## Fragments of wgmma (data for the asynchronous path)

No program uses `wgmma` yet, so these are no instructions with a meaning: they say which forms there are and which
element is in which register of which lane, as `matrix_fragments.wgmma_layout` gives it. The warpgroup's D is 64 x N and
A, where it comes from registers, 64 x K; B is in shared memory always. There are {count}, a row for each combination of
types, on {targets} alone, since PTX {ptx}.

Section of the PTX ISA: {section}.
"""


def wgmma_section(records: Sequence[Wgmma] = WGMMA_FRAGMENTS) -> str:
    """The fragments of wgmma: a row for each combination of types, whatever its N.

    >>> [line for line in wgmma_section().splitlines() if "s32.u8" in line]
    ['| `s32.u8` | 32 | 8 to 32 by 8, 48 to 256 by 16 | N/2 | 4 | D N/2 x 32, A 16 x 8 | K-major |']
    """
    one = records[0]
    targets = [t.name for t in TARGETS.values() if not gate_refusal(one.sm, one.ptx, one.specific, t)]
    head = ["D, A and B", "K", "N", "D b32", "A b32", "elements", "A and B in shared memory"]
    lines = [_row(head), _row(["---", *[":---:"] * 4, "---", "---"])]
    by_types: dict[str, list[Wgmma]] = {}
    for record in records:
        by_types.setdefault(record.name.split(".", 2)[2], []).append(record)
    for types, found in by_types.items():
        r = found[0]
        slots = {role: r.per_register(role) for role in ("A", "D")}  # type: ignore[arg-type]
        elements = f"D N/2 x {32 // slots['D']}, A {r.a_registers * slots['A']} x {32 // slots['A']}"
        order = "K-, M- or N-major" if r.transposes else "K-major"
        columns = _steps([x.n for x in found])
        lines.append(
            _row(
                [f"`{types}`", str(r.k), columns, f"N/{2 * slots['D']}", str(r.a_registers), elements, order]
            )
        )
    text = _WGMMA_HEAD.format(
        count=len(records), targets=", ".join(targets), ptx="{}.{}".format(*one.ptx), section=one.section
    )
    return "\n".join([text, *lines, ""])


def _steps(numbers: list[int]) -> str:
    """Rising numbers as runs of one step.

    >>> _steps([8, 16, 24, 32, 48, 64])
    '8 to 32 by 8, 48 to 64 by 16'
    """
    runs: list[list[int]] = []
    for n in numbers:
        run = runs[-1] if runs else None
        if run is not None and (len(run) == 1 or n - run[-1] == run[1] - run[0]):
            run.append(n)
        else:
            runs.append([n])
    return ", ".join([f"{r[0]} to {r[-1]} by {r[1] - r[0]}" if len(r) > 1 else str(r[0]) for r in runs])


def _columns(rows: list[Instruction]) -> dict[str, str]:
    """Target -> heading; neighbors whose column would be the same are one."""
    out: dict[str, str] = {}
    last: tuple[str, list[str]] | None = None
    for name in TARGETS:
        marks = [_mark(i, name) for i in rows]
        if last is not None and last[1] == marks:
            out[last[0]] += f" {name.removeprefix('sm_')}"
        else:
            last = (name, marks)
            out[name] = name.removeprefix("sm_")
    return out


def _mark(instruction: Instruction, name: str) -> str:
    if instruction.refusal(TARGETS[name]):
        return "-"
    return "e" if instruction.emulation(TARGETS[name]) else "+"


def _registers(instruction: Instruction) -> str:
    parts = []
    for o in instruction.operands:
        what = "address" if o.kind == "address" else f"{o.count} {o.kind}"
        parts.append(f"{o.name} {what}{' rw' * (o.access == 'update')}")
    return ", ".join(parts)


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def main(arguments: list[str] | None = None) -> int:
    """Print the catalogue, and with a path write it there too."""
    parser = argparse.ArgumentParser(
        prog="python -m lowering.catalogue", description="Print every matrix instruction."
    )
    parser.add_argument("page", nargs="?", type=Path, help="a file to write it to as well")
    chosen = parser.parse_args(arguments)
    text = page()
    print(text)
    if chosen.page is not None:
        chosen.page.parent.mkdir(parents=True, exist_ok=True)
        chosen.page.write_text(text, encoding="utf-8")
        print(f"written to {chosen.page}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
