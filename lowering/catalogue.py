"""The catalogue as text: ``python -m lowering.catalogue [PAGE]`` prints it, and writes it to a page.

Everything is read from the records; docs/reference/instructions.md is what this gives.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from .isa.catalogue import FAMILIES, Record
from .isa.record import Instruction
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
    4 records, 57 of 60 pairs of record and target assemble, 0 of them emulated.
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
    return "\n".join(
        [head, *[section(_TITLES.get(name, name), table) for name, table in tables.items() if table]]
    )


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
