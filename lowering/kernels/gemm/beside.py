"""Factors copied in two parts: what the CTAs' first tiles need by a kernel of its own, the rest beside the product.

Beside the product those warps of the feeding warpgroup copy that have nothing else to do.  Whichever has time draws the
next run (see `panels`), so that all get done however many CTAs are there, and counts it for its panel when it has been
copied; who feeds waits for the panels of its tile.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilelayout.expr import Index, Var

from ...api import Lowered
from ...compose import relocated
from ...control import CTA, CTAS, All, Compare, Draw, If, Parameter, Set, While
from ...isa import STORE_WORD, ZERO
from ...isa.counting import COUNT, COUNT_WAIT
from ...program import Address, Buffer, Instr, Program, Registers, Slot, Statement
from ...target import Target
from ...window import Window
from .config import Config
from .globals import extents, global_buffer, leading, moved_to
from .pack import WARPS, lane_copies
from .panels import COUNTERS, DRAWN_AT, FIRST, PROGRESS, RUN, Lines, in_order
from .problem import Matrix, Problem
from .roles import LANE, WARP
from .schedule import HERE, LIMIT, K, M, N

NUMBER, OWN, LEFT = Var("run", 0, 2 * LIMIT), Var("own_run", 0, LIMIT), Var("chunks_left", 0, RUN)
"""The run, of all and of its factor's; and what is left of it."""


@dataclass(frozen=True)
class Rest:
    """What a kernel copies beside the product.

    Attributes:
        copying: of a warp that copies.
        needs: of who feeds, before a tile.
        buffers, scratch, parameters: further ones of the program.
    """

    copying: tuple[Statement, ...]
    needs: tuple[Statement, ...]
    buffers: tuple[Buffer, ...]
    scratch: tuple[Registers, ...]
    parameters: tuple[Parameter, ...]


def build_first(problem: Problem, config: Config, target: Target) -> Program:
    """The kernel that comes before the product: it copies the first panels, and sets the counters to 0.

    Its tensors are ``given_A`` and ``given_B``, and A and B, their copies.
    """
    order = in_order(problem, config)
    copies = [_run(x, target, rest=False) for x in order]
    warps = Var(CTAS.name, 1, LIMIT // WARPS) * WARPS
    every = While(
        Compare(NUMBER, "<", _total(order)),
        (*_of_factor(order, [body for body, _ in copies]), Set(NUMBER, NUMBER + warps)),
        hoist=False,
    )
    none, at = Registers("none", "none", PROGRESS.dtype, 1, "b32"), Var("counter", 0, 2 * LIMIT)
    word = (Slot(none, 0),)
    one = (Instr(STORE_WORD["b32"], (Address(PROGRESS, (at,)), word)), Set(at, at + 1))
    thread = All((Compare(CTA, "==", 0), Compare(WARP, "==", 0), Compare(LANE, "==", 0)))
    counters = While(Compare(at, "<", COUNTERS.variable), one, hoist=False)
    return Program(
        "gemm_pack_first",
        WARPS,
        (),
        (),
        (
            Instr(ZERO["b32"], (word,)),
            If(thread, (Set(at, 0), counters)),
            Set(NUMBER, Var(CTA.name, 0, LIMIT // WARPS) * WARPS + WARP),
            every,
        ),
        (*[global_buffer(m) for x in order for m in (x.given, x.packed)], PROGRESS),
        (none, *_once([r for _, registers in copies for r in registers])),
        (),
        (M, N, K, *[p for x in order for p in (*x.parameters, leading(x.packed))], COUNTERS),
    )


def build_rest(problem: Problem, config: Config, target: Target) -> Rest:
    """What is copied beside the product of a problem whose factors lie as they are given."""
    order = in_order(problem, config)
    copies = [_run(x, target, rest=True) for x in order]
    counted = [
        (*body, Instr(COUNT, (x.counter(x.line // x.in_panel),)))
        for x, (body, _) in zip(order, copies, strict=True)
    ]
    draw = Draw(NUMBER, Address(PROGRESS, (DRAWN_AT,)))
    every = While(Compare(NUMBER, "<", _total(order)), (*_of_factor(order, counted), draw), hoist=False)
    return Rest(
        (draw, every),
        tuple([_need(x) for x in order]),
        (*[global_buffer(x.given) for x in order], PROGRESS),
        _once([r for _, registers in copies for r in registers]),
        tuple([p for x in order for p in (FIRST[x.matrix.name], *x.parameters)]),
    )


def _total(order: list[Lines]) -> Index:
    return sum([x.runs.variable for x in order])


def _of_factor(order: list[Lines], bodies: list[tuple[Statement, ...]]) -> list[Statement]:
    """Run `NUMBER`: of the first factor's, or else of the second's."""
    one: list[Statement] = [Set(OWN, NUMBER), *bodies[0]]
    if len(order) == 1:
        return one
    count = order[0].runs.variable
    return [If(Compare(NUMBER, "<", count), tuple(one), (Set(OWN, NUMBER - count), *bodies[1]))]


def _once(registers: list[Registers]) -> tuple[Registers, ...]:
    return tuple(dict.fromkeys(registers))


def _need(x: Lines) -> If:
    """The wait of who feeds for the panel of its tile."""
    tile, first = (HERE.row, HERE.column)[x.which], FIRST[x.matrix.name].variable
    every = Var(x.line_runs.name, 1, LIMIT // x.in_panel) * x.in_panel
    return If(Compare(tile, ">=", first), (Instr(COUNT_WAIT, (x.counter(tile - first), every)),))


def chunk_copies(x: Lines, target: Target, rest: bool) -> tuple[Lowered, Lowered]:
    """The two copies of a chunk: from the factor as it is given to registers, and from there to its copy.

    Args:
        x, target: of which factor, for what.
        rest: whether it is of the rest of the panels; else of the first.
    """
    begin: list[Index] = [v * n for v, n in zip(x.place, x.chunk, strict=True)]
    if rest:
        begin[0 if x.by_rows else 1] += Var(FIRST[x.matrix.name].name, 0, LIMIT // x.side) * x.side
    sizes = extents(x.matrix)
    rows, length = sizes[1 - x.matrix.contiguous], sizes[x.matrix.contiguous]
    source = _window(x.given, (rows, length), begin, x.chunk)
    packed = _window(x.packed, (rows, x.row.variable), begin, x.chunk)
    return lane_copies(x.matrix, source, packed, target, 1, x.words)


def _run(x: Lines, target: Target, rest: bool) -> tuple[tuple[Statement, ...], tuple[Registers, ...]]:
    """The copies of run `OWN`, and their registers."""
    load, store = (y.program for y in chunk_copies(x, target, rest))
    chunk = (
        *relocated(load.body, None, moved_to(load, x.given)),
        *relocated(store.body, {store.registers[0]: load.registers[0]}, moved_to(store, x.packed)),
        Set(x.along, x.along + 1),
        Set(LEFT, LEFT - 1),
    )
    more = All((Compare(LEFT, "!=", 0), Compare(x.along, "<", x.line_chunks.variable)))
    body = (
        Set(x.line, OWN // x.line_runs.variable),
        Set(x.along, OWN % x.line_runs.variable * RUN),
        Set(LEFT, RUN),
        While(more, chunk, hoist=False),
    )
    return body, (load.registers[0], *[r for p in (load, store) for r in p.registers[1:]])


def _window(matrix: Matrix, sizes: tuple[Index, Index], begin: list[Index], box: tuple[int, int]) -> Window:
    """A box of rows along the contiguous dimension."""
    dims = (((sizes[0], leading(matrix).variable),), ((sizes[1], 1),))
    return Window(matrix.name, matrix.dtype, dims, sizes, tuple(begin), box, matrix.alignment)
