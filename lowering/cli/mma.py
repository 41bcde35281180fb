"""``tilelayout mma``: the catalogue, and where an instruction's elements are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tilelayout.cli.command import NO, YES, Command
from tilelayout.cli.inputs import numbers_of
from tilelayout.cli.output import write_picture, write_text

from .common import TARGET_HELP, refusals, target_name, type_name
from .tables import FORMATS, written

if TYPE_CHECKING:
    from ..target import Target
    from .operands import Held, Operand

FAMILIES = ("mma.sync", "mma.sp.sync", "ldmatrix", "stmatrix", "movmatrix", "wgmma")


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from .operands import names

    return [name for name in names() if name.startswith(incomplete)]


@click.command(
    "mma",
    cls=Command,
    short_help="Tensor-core instructions: the catalogue, operand maps, register tables.",
    examples=(
        (
            "tilelayout mma --family mma.sync --a float16 --target sm_80",
            "the instructions that multiply float16 there",
        ),
        ("tilelayout mma m16n8k16.f16", "one instruction: types, registers, layouts"),
        ("tilelayout mma m16n8k16.f16 --operand A", "lanes by slots: which element of A is where"),
        ("tilelayout mma m16n8k16.f16 --at A 5,9", "lane, register and bits of A[5, 9]"),
        ("tilelayout mma m16n8k16.f16 --operand B --lane 20 --register 1", "which elements of B are there"),
        ("tilelayout mma m16n8k32.s8 --operand A --format csv", "the register table for a spreadsheet"),
        (
            "tilelayout mma m16n8k16.f16 --operand A --format layout | tilelayout show - --shape 16,16",
            "the layout of an operand, for the other commands",
        ),
    ),
)
@click.argument("instruction", required=False, shell_complete=_complete)
@click.option("--family", type=click.Choice(FAMILIES), help="List only these.")
@click.option("--a", "a", metavar="TYPE", help="List only products of this type, float16 or f16.")
@click.option("--b", "b", metavar="TYPE", help="The other factor's type; default: that of --a.")
@click.option("--d", "d", metavar="TYPE", help="The result's type.")
@click.option("--target", help=f"List only what it has. {TARGET_HELP}")
@click.option("--operand", metavar="ROLE", help="A, B, C, D, SFA, SFB, metadata, matrices.")
@click.option("--at", "at", nargs=2, metavar="ROLE I,J", help="Where is this element of that operand?")
@click.option("--lane", type=click.IntRange(0, 31), help="With --operand: what is in this lane?")
@click.option("--register", type=click.IntRange(0), help="With --operand: what is in this register?")
@click.option(
    "--format", "form", type=click.Choice([*FORMATS, "layout"]), default="text", show_default=True,
    help="'layout' writes an operand's layout.",
)  # fmt: skip
@click.option(
    "--svg", type=click.Path(dir_okay=False), metavar="FILE", help="Draw it as SVG ('-': standard output)."
)
@click.option("--html", type=click.Path(dir_okay=False), metavar="FILE", help="Draw it as HTML.")
def mma(
    instruction: str | None, family: str | None, a: str | None, b: str | None, d: str | None, target: str | None,
    operand: str | None, at: tuple[str, str] | None, lane: int | None, register: int | None, form: str,
    svg: str | None, html: str | None,
) -> int:  # fmt: skip
    """Without INSTRUCTION list what there is.  With one, by name or mnemonic, say what it computes and where the
    elements of its operands are.

    Exit code: 0; 1 where nothing is at the place that was asked for.
    """
    with refusals():
        if instruction is None:
            asked = {
                "--operand": operand,
                "--at": at,
                "--lane": lane,
                "--register": register,
                "--svg": svg,
                "--html": html,
            }
            _refuse([name for name, value in asked.items() if value is not None], "needs an INSTRUCTION")
            if form == "layout":
                raise click.UsageError("--format layout needs an INSTRUCTION and --operand")
            return _list(family, a, b, d, target, form)
        filters = {"--family": family, "--a": a, "--b": b, "--d": d, "--target": target}
        _refuse([name for name, value in filters.items() if value is not None], "goes without an INSTRUCTION")
        return _one(instruction, operand, at, lane, register, form, svg, html)


def _refuse(names: list[str], why: str) -> None:
    if names:
        raise click.UsageError(f"{names[0]} {why}")


# --- the list -------------------------------------------------------------------------------------


def _list(
    family: str | None, a: str | None, b: str | None, d: str | None, target: str | None, form: str
) -> int:
    from ..isa import catalogue
    from ..isa.wgmma import WGMMA_FRAGMENTS
    from ..target import TARGETS

    where = None if target is None else target_name(target)
    families: dict[str, Any] = {**catalogue.FAMILIES, "wgmma": WGMMA_FRAGMENTS}
    if a is None:
        _refuse([name for name, value in (("--b", b), ("--d", d)) if value is not None], "goes with --a")
        records: Any = families[family] if family is not None else catalogue.CATALOGUE
    else:
        if family not in (None, "mma.sync"):
            raise click.UsageError(f"--a searches mma.sync, not {family}")
        one = type_name(a)
        records = catalogue.find(
            one, one if b is None else type_name(b), d=None if d is None else type_name(d), target=where
        )
    if where is not None:
        records = [r for r in records if not _refusal(r, TARGETS[where])]
        if not records:
            click.echo(f"{where} has no {family}")
            return NO
    head = ["name", "mnemonic", "operands", "first target", "PTX"]
    click.echo(written(head, [_row(r) for r in records], form))
    return YES


def _refusal(record: Any, target: Target) -> str:
    """Why the target does not have it; wgmma is data without an instruction that programs use."""
    from ..isa.record import gate_refusal

    if hasattr(record, "instruction"):
        return record.instruction.refusal(target)  # type: ignore[no-any-return]
    return gate_refusal(record.sm, record.ptx, record.specific, target)


def _row(record: Any) -> list[Any]:
    operands = getattr(record, "signature", None)
    types = getattr(record, "packing", "") if operands is None else " ".join(operands)
    mnemonic = record.mnemonic if hasattr(record, "mnemonic") else record.instruction.mnemonic
    return [record.name, mnemonic, types, _first_target(record), "{}.{}".format(*record.ptx)]


def _first_target(record: Any) -> str:
    """The first of the known targets that has it."""
    from ..target import TARGETS

    known = (name for name, where in TARGETS.items() if not _refusal(record, where))
    return next(known, f"sm_{record.sm} (not a target here)")


# --- one instruction ------------------------------------------------------------------------------


def _one(
    instruction: str, role: str | None, at: tuple[str, str] | None, lane: int | None, register: int | None,
    form: str, svg: str | None, html: str | None,
) -> int:  # fmt: skip
    from . import operands as of

    record = of.record_named(instruction)
    there = of.operands(record)
    if at is not None:
        _refuse([n for n, v in (("--operand", role), ("--lane", lane), ("--register", register)) if v is not None],
                "does not go with --at")  # fmt: skip
        return _at(_operand(there, at[0], record), at[1], form)
    if role is None:
        _refuse(
            [n for n, v in (("--lane", lane), ("--register", register)) if v is not None], "needs --operand"
        )
        if form == "layout":
            raise click.UsageError(f"--format layout needs --operand, one of {', '.join(there)}")
        if svg is not None or html is not None:
            _draw_whole(record, there, svg, html)
        else:
            click.echo(_summary(record, there, form))
        return YES
    chosen = _operand(there, role, record)
    if lane is not None or register is not None:
        return _there(chosen, lane, register, form)
    if svg is not None or html is not None:
        write_picture(_picture(chosen), svg, html, None, None)
    elif form == "text":
        write_picture(_picture(chosen), None, None, None, None)
    elif form == "layout":
        write_text("-", str(chosen.layout))
    elif form == "markdown":
        click.echo(_by_register(chosen))
    else:
        click.echo(_elements(chosen, chosen.table(), form))
    return YES


def _operand(there: dict[str, Operand], role: str, record: Any) -> Operand:
    by_name = {name.lower(): operand for name, operand in there.items()}
    if role.lower() not in by_name:
        raise click.UsageError(
            f"{record.name} has no operand {role!r} in registers: there are {', '.join(there)}"
        )
    return by_name[role.lower()]


def _summary(record: Any, there: dict[str, Operand], form: str) -> str:
    head = ["operand", "shape", "type", "registers", "bits of a slot", "layout"]
    rows = [
        [o.role, " x ".join(map(str, o.shape)), o.type, o.registers, o.container, str(o.layout)]
        for o in there.values()
    ]
    table = written(head, rows, form)
    if form != "text":
        return table
    from ..target import TARGETS

    _, mnemonic, _, _, ptx = _row(record)
    has = [t.name for t in TARGETS.values() if not _refusal(record, t)]
    lines = [f"{record.name}: {mnemonic}"]
    if hasattr(record, "signature"):
        a, b, c, d = record.signature
        lines.append(f"computes: {d} = {a} @ {b} + {c}")
    lines += [f"since PTX {ptx}, on {', '.join(has)}", f"defined in: {record.section}", ""]
    return "\n".join([*lines, table])


def _at(operand: Operand, text: str, form: str) -> int:
    """Where an element is."""
    from tilelayout.parts import product

    element = numbers_of(text, "--at", 0)
    if len(element) != len(operand.shape) or any(c >= n for c, n in zip(element, operand.shape, strict=True)):
        raise click.UsageError(f"{operand.role} is {_size(operand)}, and has no element {element}")
    flat = sum(c * int(product(operand.shape[i + 1 :])) for i, c in enumerate(element))
    return _say(operand, list(operand.held(flat)), form)


def _there(operand: Operand, lane: int | None, register: int | None, form: str) -> int:
    """What is at a place."""
    if register is not None and register >= operand.registers:
        raise click.UsageError(f"{operand.role} has registers 0 to {operand.registers - 1}, not {register}")
    found = [
        held
        for held in operand.table()
        if (lane is None or held.lane == lane) and (register is None or held.register == register)
    ]
    return _say(operand, found, form)


def _say(operand: Operand, found: list[Held], form: str) -> int:
    if form == "layout":
        raise click.UsageError("--format layout writes a whole operand")
    if form != "text":
        click.echo(_elements(operand, found, form))
        return YES if found else NO
    for held in found:
        warp = "" if held.warp is None else f"warp {held.warp} of the warpgroup, "
        click.echo(
            f"{operand.role}[{', '.join(map(str, held.element))}]: {warp}lane {held.lane}, register {held.register}, "
            f"{'bits' if held.high > held.low else 'bit'} {held.bits}"
        )
    if not found:
        click.echo(f"no element of {operand.role} is there")
    return YES if found else NO


def _size(operand: Operand) -> str:
    return " x ".join(f"{name} {n}" for name, n in zip(operand.dimensions, operand.shape, strict=True))


def _elements(operand: Operand, found: list[Held], form: str) -> str:
    """A row for each element at each place."""
    warps = any(held.warp is not None for held in found)
    head = [*(["warp"] if warps else []), "lane", "register", "low_bit", "high_bit", *operand.dimensions]
    rows = [
        [*([held.warp] if warps else []), held.lane, held.register, held.low, held.high, *held.element]
        for held in found
    ]
    return written(head, rows, form)


def _by_register(operand: Operand) -> str:
    """A row for each lane, a column for each register, in Markdown."""
    cells: dict[tuple[int, int], dict[int, list[str]]] = {}
    for held in operand.table():
        lane = cells.setdefault((held.warp or 0, held.lane), {})
        lane.setdefault(held.register, []).append(f"{operand.role}[{','.join(map(str, held.element))}]")
    warps = max(warp for warp, _ in cells) > 0
    registers = range(operand.registers)
    rows = [
        [f"{warp}:{lane}" if warps else lane, *[" ".join(held.get(r, [])) for r in registers]]
        for (warp, lane), held in sorted(cells.items())
    ]
    return written(
        ["warp:lane" if warps else "lane", *[f"register {r}" for r in registers]], rows, "markdown"
    )


# --- pictures -------------------------------------------------------------------------------------


def _picture(operand: Operand) -> Any:
    from tilelayout.draw import hardware

    title = f"{operand.role}: {operand.type}, {_size(operand)}, {operand.layout}"
    return hardware(
        operand.layout, operand.shape, bits=operand.container, title=title, max_rows=128, max_columns=256
    )


def _draw_whole(record: Any, there: dict[str, Operand], svg: str | None, html: str | None) -> None:
    """The figure of a product; an instruction that is none has one operand to draw."""
    from ..isa.mma import MmaInstruction

    if isinstance(record, MmaInstruction) and record.rule == "warp":
        write_picture(record.draw(), svg, html, None, None)
        return
    if len(there) > 1:
        raise click.UsageError(
            f"there is no picture of {record.name} as a whole: --operand {' or '.join(there)}"
        )
    write_picture(_picture(next(iter(there.values()))), svg, html, None, None)
