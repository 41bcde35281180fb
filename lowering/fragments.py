"""Fragment layouts: the tile layouts that an instruction's operands ask for.

Derived from the instruction's shape and proved, element by element, against the operand maps of `isa`.  Tilings and
transposed orientations come from the layout algebra.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal

from tilelayout import LayoutError, S, TileLayout, laneid
from tilelayout.parts import Iter, as_shape

from .isa.mma import ROLES, MmaInstruction

FragmentRole = Literal["A", "B", "C", "D", "SFA", "SFB"]
SCALES = ("SFA", "SFB")

D_FRAG = TileLayout(S[(2, 8, 4, 2) : (2, 4 @ laneid, 1 @ laneid, 1)])
"""C and D of m16n8, as (M, N) = (16, 8): M = g + 8 rM, N = 2t + rN for lane = 4g + t; slot 2 rM + rN."""

A_FRAG_K8 = TileLayout(S[(2, 8, 4, 2) : (2, 4 @ laneid, 1 @ laneid, 1)])
"""A of m16n8k8 with 16-bit elements, as (M, K) = (16, 8); slot 2 rM + p."""

B_FRAG_K8 = TileLayout(S[(4, 2, 8) : (1 @ laneid, 1, 4 @ laneid)])
"""B of m16n8k8 with 16-bit elements, as (K, N) = (8, 8); slot p."""

A_FRAG = A_FRAG_K8.tile_to((16, 16), (16, 8))
"""A of m16n8k16, as (M, K) = (16, 16); slot 4 kHi + 2 rM + p."""

B_FRAG = B_FRAG_K8.tile_to((16, 8), (8, 8))
"""B of m16n8k16, as (K, N) = (16, 8); slot 2 kHi + p."""


def operand_shape(instruction: MmaInstruction, role: FragmentRole) -> tuple[int, ...]:
    """The logical shape of an operand: A (M, K), B (K, N), C and D (M, N); scale factors SFA (M, blocks), SFB
    (blocks, N).  Quadpairs have a leading 4, one for each product.

    Errors: LayoutError for another role, or scale factors of an instruction that has none.
    """
    if role in SCALES and instruction.scale:
        blocks = instruction.scale.vector
        return (instruction.m, blocks) if role == "SFA" else (blocks, instruction.n)
    if role not in ROLES:
        has = "A, B, C or D" + (", SFA or SFB" if instruction.scale else "")
        raise LayoutError("fragment", f"role must be {has}, got {role!r}")
    return instruction.operand_shape(role)  # type: ignore[arg-type]


@cache
def layout(instruction: MmaInstruction, role: FragmentRole) -> TileLayout:
    """The layout of one operand of one instruction, in the orientation of `operand_shape`.

    Slots count elements: slot i is the i-th of the operand's containers, ``instruction.container(role)`` bits each, low
    bits first in each register.  (A container is as wide as its element, but a byte for the 6- and 4-bit types of
    kinds f8f6f4 and mxf8f6f4; `isa.elements` has the place within.)  Slots of scale factors are the bytes of the one
    scale register, and lanes that hold none are not in the layout.

    Post-condition, proved here: element (row, column) is in the lane and slot that the PTX operand map says, for every
    element.

    >>> from lowering.isa import DENSE
    >>> s8 = next(i for i in DENSE if i.name == "m16n8k32.s8")
    >>> print(layout(s8, "A"))
    S[(2, 8, 2, 4, 4) : (4, 4 @ laneid, 8, 1 @ laneid, 1)]
    """
    shape = operand_shape(instruction, role)
    if role in SCALES:
        found = _scale_fragment(instruction, role)
    elif instruction.rule == "quadpair":
        found = _quadpair_fragment(instruction, role)
    else:
        found = _warp_fragment(instruction, role)
    _prove(found, shape, instruction, role)
    return found.canonicalize()


def _warp_fragment(instruction: MmaInstruction, role: FragmentRole) -> TileLayout:
    rM, kHi, p = instruction.row_blocks, instruction.k_blocks, instruction.k_pack
    if role == "A":
        return TileLayout(S[(rM, 8, kHi, 4, p) : (p, 4 @ laneid, rM * p, 1 @ laneid, 1)])
    if role == "B":
        return TileLayout(S[(kHi, 4, p, 8) : (p, 1 @ laneid, 1, 4 @ laneid)])
    rN = instruction.column_registers
    return TileLayout(S[(rM, 8, 4, rN) : (rN, 4 @ laneid, 1 @ laneid, 1)])


def _quadpair_fragment(instruction: MmaInstruction, role: FragmentRole) -> TileLayout:
    """Four products, each in lanes 4q to 4q + 3 and, 16 further, the upper half of rows or columns."""
    q, low, high = 4 @ laneid, 1 @ laneid, 16 @ laneid
    if role == "A":
        return TileLayout(
            S[(4, 2, 4, 4) : ((q, high, low, 1) if instruction.a_layout == "row" else (q, high, 1, low))]
        )
    if role == "B":
        return TileLayout(
            S[(4, 4, 2, 4) : ((q, low, high, 1) if instruction.b_layout == "row" else (q, 1, high, low))]
        )
    if instruction.element(role) == "float32":  # type: ignore[arg-type]
        return TileLayout(S[(4, 2, 2, 2, 2, 2, 2) : (q, high, 2, low, 4, 2 @ laneid, 1)])
    return TileLayout(S[(4, 2, 4, 8) : (q, high, low, 1)])


def _scale_fragment(instruction: MmaInstruction, role: FragmentRole) -> TileLayout:
    scale = instruction.scale
    if scale is None:
        raise LayoutError("fragment", f"{instruction.name} has no scale factors")
    if role == "SFA":
        rows = S[(instruction.m // 8, 8, scale.vector) : (1 @ laneid, 4 @ laneid, 1)]
        return TileLayout(rows + 2 * scale.thread_a @ laneid + scale.byte_a)
    return TileLayout(S[(scale.vector, 8) : (1, 4 @ laneid)] + scale.thread_b @ laneid + scale.byte_b)


def _prove(
    found: TileLayout, shape: tuple[int, ...], instruction: MmaInstruction, role: FragmentRole
) -> None:
    import numpy as np

    table = found.table(shape)
    if role in SCALES:
        row, block, lanes, slots = instruction.scale_index(role)  # type: ignore[arg-type]
        index = (row, block) if role == "SFA" else (block, row)
    else:
        index = instruction.index(role)  # type: ignore[arg-type]
        lanes, slots = np.indices(index[0].shape)
    if not ((table[laneid][index] == lanes).all() and (table["m"][index] == slots).all()):  # type: ignore[call-overload]
        raise ValueError(f"{found} is not the PTX operand map of {role} of {instruction.name}")


def _pair(tiles: tuple[int, int], what: str) -> tuple[int, int]:
    checked = as_shape(tiles, what)
    if len(checked) != 2:
        raise LayoutError(what, f"two numbers of tiles are expected, got {tiles!r}")
    return checked  # type: ignore[return-value]


def tiled(instruction: MmaInstruction, role: FragmentRole, tiles: tuple[int, int]) -> TileLayout:
    """`tiles` copies of an operand's fragment in one warp, row-major, by `tile_to`: shape ``tiles * operand_shape``.

    Errors: LayoutError for quadpairs, whose operands are of several products, and for scale factors, of which each tile
    has a register of its own: see `partition`.
    """
    tiles = _pair(tiles, "tiled")
    shape = _matrix(instruction, role, "tiled")
    to = (tiles[0] * shape[0], tiles[1] * shape[1])
    return layout(instruction, role).tile_to(to, shape)


def transposed(fragment: TileLayout, shape: tuple[int, int]) -> TileLayout:
    """The same registers read as a tile of the reversed shape: element (i, j) becomes (j, i)."""
    grouped, seps = fragment.group(shape)
    return grouped.permute_by_groups(seps, (1, 0))


def spread(fragment: TileLayout, shape: tuple[int, int], dimension: int, warps: int, axis: str) -> TileLayout:
    """`warps` copies of a fragment along a dimension, each held by warps of its own.

    Copy i is held by the warps that hold the fragment, moved by i times the number of warps it spans on `axis`: spread
    (or replicate) over the fastest warp digit first.  For an operand that all those warps need whole, use `replicated`.
    """
    if dimension not in (0, 1):
        raise LayoutError("spread", f"dimension must be 0 or 1, got {dimension!r}")
    counts = (warps, 1) if dimension == 0 else (1, warps)
    outer = TileLayout.from_iters([Iter(n, 1 if n == warps else 0, axis) for n in counts])
    return fragment.tile(outer, counts, shape)


def replicated(fragment: TileLayout, warps: int, axis: str) -> TileLayout:
    """The fragment held by `warps` times as many warps on `axis`, each time whole."""
    copies = Iter(warps, fragment.span(axis), axis)
    return TileLayout.from_iters(fragment.shard, (*fragment.replica, copies), fragment.offset)


# --- a whole gemm -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Partition:
    """The layouts of a gemm's operands over warps, and the tiles of one warp as numbers of instructions along M, N, K.

    Every operand is in the orientation that was asked for; SFA and SFB, for block-scaled instructions, are (M, blocks)
    and (blocks, N).
    """

    instruction: MmaInstruction
    tiles: tuple[int, int, int]
    warps: tuple[int, int]
    A: TileLayout
    B: TileLayout
    C: TileLayout
    D: TileLayout
    SFA: TileLayout | None = None
    SFB: TileLayout | None = None


def partition(
    instruction: MmaInstruction,
    M: int,
    N: int,
    K: int,
    warps: tuple[int, int] = (1, 1),
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    axis: str = "warpid",
) -> Partition:
    """The layouts of ``D = A @ B + C`` of M x N x K over a grid of warps, built of one instruction's fragments.

    Warp ``i * warps[1] + j`` on `axis` holds block (i, j) of D, of M / warps[0] rows and N / warps[1] columns, tiled
    row-major by the instruction, block row i of A whole, and block column j of B whole.  So A has a replica over the
    warps of a row, B over those of a column.  `transpose_a` gives A as (K, M), `transpose_b` B as (N, K).  Warpgroup
    scope has its warps on ``axis="wid_in_wg"``, the others on "warpid".

    Errors: LayoutError for extents that the tiles of all warps don't divide, with the multiples; for quadpairs, and for
    what is no record of a dense product; for a flag that is no bool.

    >>> from lowering.isa import MMA_INSTRUCTIONS
    >>> found = partition(MMA_INSTRUCTIONS[0], 64, 16, 16, warps=(4, 1))
    >>> print(found.D)
    S[(4, 2, 8, 2, 4, 2) : (1 @ warpid, 2, 4 @ laneid, 4, 1 @ laneid, 1)]
    >>> print(found.B)
    S[(2, 4, 2, 2, 8) : (2, 1 @ laneid, 1, 4, 4 @ laneid)] + R[4 : 1 @ warpid]
    """
    i = instruction
    if not isinstance(i, MmaInstruction):
        what = getattr(i, "name", None) or repr(i)
        remedy = "name one by lowering.isa.catalogue.named(...), or take one from lowering.isa.DENSE"
        raise LayoutError(
            "partition", f"instruction must be an MmaInstruction, got {type(i).__name__} {what}", remedy
        )
    for flag, value in (("transpose_a", transpose_a), ("transpose_b", transpose_b)):
        if not isinstance(value, bool):
            raise LayoutError("partition", f"{flag} must be True or False, got {value!r}")
    rows, columns = _pair(warps, "partition")
    sizes = dict(zip("MNK", as_shape((M, N, K), "partition"), strict=True))
    steps = {"M": i.m * rows, "N": i.n * columns, "K": i.k}
    for name, step in steps.items():
        if sizes[name] % step:
            over = {"M": f" ({rows} warps of {i.m})", "N": f" ({columns} warps of {i.n})"}.get(name, "")
            raise LayoutError(
                "partition", f"{name} = {sizes[name]} is no multiple of {step}{over}, which {i.name} needs"
            )
    mt, nt, kt = (sizes[name] // step for name, step in steps.items())

    def over_warps(fragment: TileLayout, shape: tuple[int, int], role: str) -> TileLayout:
        if role in ("A", "SFA"):
            found = spread(replicated(fragment, columns, axis), shape, 0, rows, axis)
        elif role in ("B", "SFB"):
            found = replicated(spread(fragment, shape, 1, columns, axis), rows, axis)
        else:
            wide = spread(fragment, shape, 1, columns, axis)
            found = spread(wide, (shape[0], shape[1] * columns), 0, rows, axis)
        return found.canonicalize()

    counts = {"A": (mt, kt), "B": (kt, nt), "D": (mt, nt)}
    found: dict[str, TileLayout] = {}
    for role, tiles in counts.items():
        one = _matrix(i, role, "partition")  # type: ignore[arg-type]
        shape = (one[0] * tiles[0], one[1] * tiles[1])
        found[role] = over_warps(tiled(i, role, tiles), shape, role)  # type: ignore[arg-type]
    for role, tiles in {"SFA": (mt, kt), "SFB": (kt, nt)}.items() if i.scale else ():
        one = operand_shape(i, role)  # type: ignore[arg-type]
        shape = (one[0] * tiles[0], one[1] * tiles[1])
        found[role] = over_warps(_scale_registers(i, role, tiles), shape, role)  # type: ignore[arg-type]
    if transpose_a:
        found["A"] = transposed(found["A"], (sizes["M"], sizes["K"])).canonicalize()
    if transpose_b:
        found["B"] = transposed(found["B"], (sizes["K"], sizes["N"])).canonicalize()
    return Partition(i, (mt, nt, kt), (rows, columns), C=found["D"], **found)


def _matrix(instruction: MmaInstruction, role: FragmentRole, what: str) -> tuple[int, int]:
    """The shape of an operand of one product, which is a matrix."""
    shape = operand_shape(instruction, role)
    if role in SCALES or len(shape) != 2:
        several = f"{role} of {instruction.name} is no matrix that tiles: its shape is {shape}"
        raise LayoutError(what, several)
    return shape  # type: ignore[return-value]


def _scale_registers(instruction: MmaInstruction, role: FragmentRole, tiles: tuple[int, int]) -> TileLayout:
    """Scale factors of `tiles` instructions of one warp: a register (four bytes) for each, row-major."""
    fragment = layout(instruction, role)
    grouped, seps = fragment.group(operand_shape(instruction, role))
    outer = (Iter(tiles[0], 4 * tiles[1], "m"), Iter(tiles[1], 4, "m"))
    iters = [outer[0], *grouped.shard[: seps[1]], outer[1], *grouped.shard[seps[1] :]]
    return TileLayout.from_iters(iters, (), grouped.offset)


__all__ = [
    "A_FRAG", "A_FRAG_K8", "B_FRAG", "B_FRAG_K8", "D_FRAG", "Partition", "layout", "operand_shape", "partition",
    "replicated", "spread", "tiled", "transposed",
]  # fmt: skip
