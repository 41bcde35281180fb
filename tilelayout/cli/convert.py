"""``tilelayout convert``: a layout in another notation, or the way from one register layout to another."""

from __future__ import annotations

from typing import Any

import click

from ..errors import LayoutError
from .command import Command
from .inputs import LISTED, bits_option, check_listed, layout_argument, layout_of
from .output import as_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

FORMS: Final = ("text", "python", "tvm")

THREADED: Final = LISTED // 8
"""Elements and copies of a register layout that is converted."""


@click.command(
    "convert",
    cls=Command,
    short_help="Another notation; or from one register layout to another.",
    examples=(
        (
            "tilelayout convert 'T.TileLayout(T.S[(8, 4):(4 @ Axis.laneid, 1)] + 5 @ Axis.warpid)'",
            "from TVM's printed form to the notation",
        ),
        ("tilelayout convert 'Swizzle(3, 3, 3) o S[8, 64]' --to tvm", "and back"),
        (
            "tilelayout convert 'S[(2, 3, 4) : (12, 4, 1)]' --canonical",
            "the same function with the fewest iters",
        ),
        (
            "tilelayout convert 'S[(32, 2) : (1 @ laneid, 1)]' 'S[(16, 2, 2) : (2 @ laneid, 1, 1 @ laneid)]'",
            "from one register layout to another: moves, shuffles or shared memory, and what they cost",
        ),
    ),
)
@layout_argument
@click.argument("target", required=False)
@click.option("--to", type=click.Choice(FORMS), default="text", show_default=True, help="The notation.")
@click.option("--canonical", is_flag=True, help="In canonical form.")
@bits_option
@click.option(
    "--via",
    type=click.Choice(["shuffle", "shared"]),
    help="How elements change lanes; default: what is cheaper.",
)
@click.option("--json", "json_", is_flag=True, help="Write the conversion plan as JSON.")
def command(
    layout: str, let: tuple[str, ...], target: str | None, to: str, canonical: bool, bits: int | None,
    via: str | None, json_: bool,
) -> None:  # fmt: skip
    """Write LAYOUT in another notation.  With TARGET, a second layout of the same tile, plan how the registers of the
    one become those of the other.
    """
    source = layout_of(layout, let)
    if target is None:
        if bits is not None or via is not None or json_:
            raise click.UsageError("--element-bits, --via and --json belong to a plan, which needs a TARGET")
        from .notations import NOTATIONS

        click.echo(NOTATIONS[to](source.canonicalize() if canonical else source))
        return
    from ..analysis import conversion_plan
    from ..layout import TileLayout

    wanted = layout_of(target, let)
    for operand in (source, wanted):
        check_listed(operand, "convert", THREADED)
        if not isinstance(operand, TileLayout):
            raise LayoutError("convert", f"{operand} is swizzled, and registers are not", "give tile layouts")
    plan = conversion_plan(source, wanted, bits or 32, via=via)  # type: ignore[arg-type]  # tile layouts, a known way
    click.echo(_as_json(plan) if json_ else str(plan))


def _as_json(plan: Any) -> str:
    def plain(value: Any) -> Any:
        if hasattr(value, "_asdict"):
            return {k: plain(v) for k, v in value._asdict().items()}
        return [plain(v) for v in value] if value.__class__ is tuple else value

    return as_json(plain(plan))
