"""``tilelayout lower``: what a gemm becomes, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tilelayout.cli.command import NO, YES, Command
from tilelayout.cli.inputs import numbers_of
from tilelayout.cli.output import write_picture, write_text
from tilelayout.errors import nearest

from .common import TARGET_HELP, refusals, target_name, type_name

if TYPE_CHECKING:
    from ..api import Lowered
    from ..fragments import Partition
    from ..isa.mma import MmaInstruction

SCOPES = ("warp", "warpgroup", "cta")
ATOMS = 4096
"""Instructions of one warp that are unrolled here."""


@click.command(
    "lower",
    cls=Command,
    short_help="What a gemm M x N x K becomes, and why; PTX and CUDA C++.",
    examples=(
        ("tilelayout lower 16 8 16", "one instruction, from one warp's registers"),
        ("tilelayout lower 64 64 32 --warps 2,2 --target sm_90a", "four warps, each with a block of D"),
        ("tilelayout lower 32 16 64 --dtype s8 --nest", "the unrolled nest of an integer gemm"),
        ("tilelayout lower 16 8 16 --dtype bf16 --beta 1 --ptx -", "the PTX of a whole kernel"),
        ("tilelayout lower 256 256 64", "no: too many registers, variant by variant; exit code 1"),
    ),
)
@click.argument("m", type=click.IntRange(1))
@click.argument("n", type=click.IntRange(1))
@click.argument("k", type=click.IntRange(1))
@click.option("--dtype", default="float16", show_default=True, help="Element type of A, float16 or f16.")
@click.option("--b-dtype", help="Element type of B; default: A's.")
@click.option(
    "--accumulator", metavar="TYPE", help="Element type of C and D; default: what the first that fits has."
)
@click.option("--target", default="sm_80", show_default=True, help=TARGET_HELP)
@click.option(
    "--warps", default="1,1", show_default=True, metavar="ROWS,COLUMNS", help="Warps along M and N."
)
@click.option("--scope", type=click.Choice(SCOPES), help="Default: warp for one warp, else cta.")
@click.option("--instruction", metavar="NAME", help="Partition by this instruction (see `tilelayout mma`).")
@click.option("--variant", metavar="NAME", help="Use this variant of the lowering only.")
@click.option(
    "--beta", type=click.Choice(["0", "1"]), default="0", show_default=True, help="D = A @ B + beta * C."
)
@click.option("--transpose-a", is_flag=True, help="A is held as (K, M).")
@click.option("--transpose-b", is_flag=True, help="B is held as (N, K).")
@click.option("--nest", is_flag=True, help="Write the unrolled nest.")
@click.option(
    "--ptx", type=click.Path(dir_okay=False), metavar="FILE", help="Write PTX ('-': standard output)."
)
@click.option("--cuda", type=click.Path(dir_okay=False), metavar="FILE", help="Write CUDA C++.")
@click.option("--svg", type=click.Path(dir_okay=False), metavar="FILE", help="Draw A, B and D as SVG.")
@click.option("--html", type=click.Path(dir_okay=False), metavar="FILE", help="Draw A, B and D as HTML.")
def lower(
    m: int, n: int, k: int, dtype: str, b_dtype: str | None, accumulator: str | None, target: str, warps: str,
    scope: str | None, instruction: str | None, variant: str | None, beta: str, transpose_a: bool,
    transpose_b: bool, nest: bool, ptx: str | None, cuda: str | None, svg: str | None, html: str | None,
) -> int:  # fmt: skip
    """Lower D[M, N] = A[M, K] @ B[K, N] + beta * C on register fragments of an instruction, spread over warps.

    Writes the layouts, the variant that was chosen and why the others declined.  Exit code: 0; 1 where no variant takes
    it; 2 where there is no such gemm.
    """
    from ..errors import DispatchError

    grid = numbers_of(warps, "--warps", 1)
    if len(grid) != 2:
        raise click.BadParameter(f"two numbers are expected, got {warps!r}", param_hint="--warps")
    count = grid[0] * grid[1]
    scope = scope or ("warp" if count == 1 else "cta")
    _check_scope(scope, count)
    axis = "wid_in_wg" if scope == "warpgroup" else "warpid"
    where = target_name(target)
    with refusals():
        candidates = _candidates(dtype, b_dtype, accumulator, where, instruction)
        made = _partition(candidates, (m, n, k), grid, transpose_a, transpose_b, axis)
        call = _call(made, (m, n, k), float(beta), transpose_a, transpose_b)
        try:
            wishes = {} if instruction is None else _wishes(made.instruction)
            lowered = _lowered(call, where, scope, 32 * count, variant, wishes)
        except DispatchError as error:
            click.echo(str(error))
            return NO
        outputs = {ptx: "ptx", cuda: "cuda"}
        for path, form in outputs.items():
            if path is not None:
                write_text(path, getattr(lowered, form))
        if svg is not None or html is not None:
            write_picture(lowered.draw(), svg, html, None, None)
        if "-" not in (ptx, cuda, svg, html):
            click.echo(str(lowered) if nest else _report(lowered, made))
    return YES


def _check_scope(scope: str, count: int) -> None:
    if scope == "warp" and count != 1:
        raise click.UsageError(f"warp scope has one warp, and --warps says {count}: --scope cta")
    if scope == "warpgroup" and count != 4:
        raise click.UsageError(f"warpgroup scope has four warps, and --warps says {count}: --scope cta")
    if count > 32:
        raise click.UsageError(f"a CTA has at most 32 warps, and --warps says {count}")


def _candidates(
    dtype: str, b_dtype: str | None, accumulator: str | None, target: str, instruction: str | None
) -> list[MmaInstruction]:
    """The instructions to partition by, in the order in which they are tried."""
    from ..isa.catalogue import find, named
    from ..isa.mma import MmaInstruction

    if instruction is not None:
        record = named(instruction)
        if not isinstance(record, MmaInstruction) or record.scale or record.rule != "warp":
            raise click.UsageError(
                f"{record.name} is no plain product of one warp, which is what is lowered here"
            )
        return [record]
    a = type_name(dtype)
    c = None if accumulator is None else type_name(accumulator)
    found = find(a, a if b_dtype is None else type_name(b_dtype), c, target=target)
    plain = [r for r in found if not r.scale and r.rule == "warp" and not r.satfinite]
    plain = [
        r for r in plain if r.operation in ("", "and")
    ]  # as `gemm` multiplies where nothing is asked for
    if not plain:
        raise click.UsageError(
            f"only {', '.join(r.name for r in found)} multiply these, none of which is lowered here"
        )
    return [r for r in plain if r.signature == plain[0].signature]


def _partition(
    candidates: list[MmaInstruction], sizes: tuple[int, int, int], grid: tuple[int, ...], transpose_a: bool,
    transpose_b: bool, axis: str,
) -> Partition:  # fmt: skip
    """The first instruction that divides the extents.  Errors: LayoutError of the last one where none does."""
    from tilelayout import LayoutError

    from ..fragments import partition

    refusal: LayoutError | None = None
    for record in candidates:
        atoms = [
            -(-size // step)
            for size, step in zip(sizes, (record.m * grid[0], record.n * grid[1], record.k), strict=True)
        ]
        if atoms[0] * atoms[1] * atoms[2] > ATOMS:
            raise click.UsageError(
                f"a warp would do {atoms[0] * atoms[1] * atoms[2]} instructions, unrolled, more than {ATOMS}: this is "
                "about the tile of one CTA"
            )
        try:
            return partition(
                record,
                *sizes,
                warps=(grid[0], grid[1]),
                transpose_a=transpose_a,
                transpose_b=transpose_b,
                axis=axis,
            )
        except LayoutError as error:
            refusal = error
    raise refusal or LayoutError("lower", "there is no instruction to partition by")


def _call(
    made: Partition, sizes: tuple[int, int, int], beta: float, transpose_a: bool, transpose_b: bool
) -> Any:
    from ..ops import gemm
    from ..tile import Tile

    i, (M, N, K) = made.instruction, sizes
    A = Tile("A", (K, M) if transpose_a else (M, K), i.a, made.A)
    B = Tile("B", (N, K) if transpose_b else (K, N), i.b, made.B)
    D = Tile("D", (M, N), i.d, made.D)
    C = D if i.c == i.d else Tile("C", (M, N), i.c, made.C)
    return gemm(D, A, B, C, transpose_a=transpose_a, transpose_b=transpose_b, beta=beta)


def _wishes(record: MmaInstruction) -> dict[str, Any]:
    """What an instruction that was asked for by name computes otherwise than others of its types, as ``config``."""
    wishes: dict[str, Any] = {"satfinite": record.satfinite, "kind": record.kind}
    return wishes | ({"operation": record.operation} if record.operation else {})


def _lowered(
    call: Any, target: str, scope: str, threads: int, variant: str | None, config: dict[str, Any]
) -> Lowered:
    from ..api import lower as lower_call
    from ..api import registered

    known = [v.name for v in registered("gemm")]
    if variant is not None and variant not in known:
        raise click.BadParameter(
            f"there is no variant {variant!r}, {nearest(variant, known)}", param_hint="--variant"
        )
    return lower_call(call, target=target, scope=scope, launch=threads, dispatch=variant, config=config)


def _report(lowered: Lowered, made: Partition) -> str:
    """What was chosen, and on what."""
    tiles = lowered.call.tiles
    each = made.tiles[0] * made.tiles[1] * made.tiles[2]
    lines = [lowered.explain(), ""]
    lines += [str(tiles[role]) for role in "ABD"]
    lines += [
        "",
        f"partitioned by {made.instruction.name} over {made.warps[0]} x {made.warps[1]} warps; a warp has "
        f"{' x '.join(map(str, made.tiles))} = {each} of them (M, N, K)",
    ]
    return "\n".join(lines)
