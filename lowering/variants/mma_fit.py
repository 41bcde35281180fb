"""Does an mma instruction fit the operands' layouts?  If so, which register is which.

Each logical dimension is shared by several operands and decomposed by its *anchor* (M and N by D, K by A).  A follower
is grouped by the anchor's extents and its groups are put in the anchor's canonical order: warps, lanes, registers,
strides falling.  In that order a dimension is carved as [warps, lanes..., tiles, registers...], and every carved group
must be one iter of the right kind.  So layouts that permute the logical index the same way in every operand fit too:
a matrix product does not depend on the order of its rows, columns or terms.

Source: TVM TIRx's ``mma.m16n8k*`` lowering, made strict where that accepts layouts that compute something else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilelayout import LayoutError, TileLayout
from tilelayout.algebra.canonicalize import fuse
from tilelayout.algebra.group import group
from tilelayout.axis import Axis
from tilelayout.parts import Iter, as_iters, product

from ..errors import fail
from ..isa.mma import MmaInstruction
from .gemm_operands import Operand


@dataclass(frozen=True)
class Want:
    """What a carved group must be: `extent` steps on a lane or register axis, of `stride` (None: any)."""

    what: str
    extent: int
    stride: int | None
    lane: bool


@dataclass(frozen=True)
class Carved:
    """One dimension of one operand: its iter over warps (None: one warp), over tiles, and the wanted ones."""

    warps: Iter | None
    tiles: Iter | None
    groups: tuple[Iter | None, ...]

    def stride(self, i: int) -> int:
        """Stride of wanted group i, 0 where it has one step."""
        return _stride(self.groups[i])

    @property
    def tile_stride(self) -> int:
        return _stride(self.tiles)


@dataclass(frozen=True)
class Fit:
    """An instruction with every operand's dimensions carved to it: (role, dimension) -> Carved."""

    instruction: MmaInstruction
    carved: dict[tuple[str, str], Carved]
    tiles: tuple[int, int, int]


def fit(
    instruction: MmaInstruction,
    operands: dict[str, Operand],
    sizes: dict[str, int],
    lane: Axis,
    warp: Axis | None,
) -> Fit:
    """The fit, or DispatchFail with what is in the way."""
    i = instruction
    for dim, size, step in (("M", sizes["M"], i.m), ("N", sizes["N"], i.n), ("K", sizes["K"], i.k)):
        if size % step:
            fail(f"{dim} = {size} is not a multiple of {step}")
    rows = [Want("rM", i.row_blocks, None, False)]
    columns = [Want("rN", i.column_registers, 1, False)]
    terms = [Want("kHi", i.k_blocks, None, False), Want("k_pack", i.k_pack, 1, False)]
    eight, four = [Want("lanes", 8, 4, True)], [Want("lanes", 4, 1, True)]
    # B's N is 8 lanes and no register; carved as D's N is (4 lanes, 2 registers), its "register" is a lane iter.
    wants = {
        "M": {"D": (eight, rows), "A": (eight, rows), "C": (eight, rows)},
        "N": {
            "D": (four, columns),
            "B": ([Want("outer lanes", 4, 8, True)], [Want("inner lanes", 2, 4, True)]),
            "C": (four, columns),
        },
        "K": {"A": (four, terms), "B": (four, terms)},
    }
    carved: dict[tuple[str, str], Carved] = {}
    for dim, by_role in wants.items():
        anchor = operands[next(iter(by_role))]
        order = canonical_order(anchor.dims[dim], warp)
        extents = [it.extent for it in anchor.dims[dim]]
        threads = product([it.extent for it in anchor.dims[dim] if it.axis.kind == "thread"])
        memory = product([it.extent for it in anchor.dims[dim] if it.axis.kind != "thread"])
        for role, (lanes, registers) in by_role.items():
            name = f"{role}.{dim}"
            iters = in_order(operands[role].dims[dim], extents, order, f"{name} against {anchor.role}.{dim}")
            carved[role, dim] = carve(name, iters, threads, memory, lanes, registers, lane, warp)
    check_warps(carved, operands, warp)
    steps = (("M", i.m), ("N", i.n), ("K", i.k))
    warps = {dim: _extent(carved[role, dim].warps) for role, dim in (("D", "M"), ("D", "N"), ("A", "K"))}
    m, n, k = (sizes[dim] // (step * warps[dim]) for dim, step in steps)
    return Fit(i, carved, (m, n, k))


def canonical_order(iters: Sequence[Iter], warp: Axis | None) -> list[int]:
    """Positions in the order warps, lanes, registers, each by falling stride (how far a step goes, up or down)."""
    rank = [0 if it.axis == warp else 1 if it.axis.kind == "thread" else 2 for it in iters]
    return sorted(range(len(iters)), key=lambda i: (rank[i], -abs(iters[i].stride)))


def in_order(iters: tuple[Iter, ...], extents: list[int], order: list[int], what: str) -> tuple[Iter, ...]:
    """A follower's iters grouped by the anchor's extents, the groups in the anchor's order."""
    try:
        grouped, seps = group(iters, tuple(extents), what)
    except LayoutError as error:
        return fail(f"{what}: not decomposed alike: {error.rule}")
    return as_iters([it for g in order for it in grouped[seps[g] : seps[g + 1]]])


def carve(
    name: str,
    iters: tuple[Iter, ...],
    threads: int,
    memory: int,
    lanes: list[Want],
    registers: list[Want],
    lane: Axis,
    warp: Axis | None,
) -> Carved:  # fmt: skip
    """Carve one dimension as [warps, lanes..., tiles, registers...] and check each group."""
    lane_count, register_count = product([w.extent for w in lanes]), product([w.extent for w in registers])
    if threads % lane_count:
        fail(f"{name}: {lane_count} lanes are needed, the layout spreads it over {threads} threads")
    if memory % register_count:
        fail(f"{name}: {register_count} register steps are needed, the layout has {memory}")
    shape = (
        threads // lane_count, *[w.extent for w in lanes], memory // register_count, *[w.extent for w in registers],
    )  # fmt: skip
    try:
        grouped, seps = group(iters, shape, name)
    except LayoutError as error:
        return fail(
            f"{name}: cannot be carved as [warps, lanes, tiles, registers] = {list(shape)}: {error.rule}"
        )
    parts = [one_iter(name, grouped[seps[g] : seps[g + 1]]) for g in range(len(shape))]
    found = [*parts[1 : 1 + len(lanes)], *parts[2 + len(lanes) :]]
    for part, want in zip(found, [*lanes, *registers], strict=True):
        check_group(name, part, want, lane)
    for part, what, axis in ((parts[0], "warps", warp), (parts[1 + len(lanes)], "tiles", "m")):
        if part is not None and part.axis != axis:
            fail(
                f"{name}: the {part.extent} {what} must be on {axis or 'no axis'}, they are on axis {part.axis}"
            )
    return Carved(parts[0], parts[1 + len(lanes)], tuple(found))


def one_iter(name: str, iters: tuple[Iter, ...]) -> Iter | None:
    """The single iter of a group; None for an extent of 1, which carries nothing."""
    fused = as_iters(fuse(iters))
    if len(fused) != 1:
        fail(
            f"{name}: a group of {product([it.extent for it in fused])} is not one stride but "
            f"{TileLayout.from_iters(fused)}"
        )
    return None if fused[0].extent == 1 else fused[0]


def check_group(name: str, part: Iter | None, want: Want, lane: Axis) -> None:
    if part is None:
        if want.extent != 1:
            fail(f"{name}: {want.what} is missing")
        return
    axis = lane if want.lane else "m"
    if part.axis != axis:
        fail(
            f"{name}: {want.what} ({want.extent}) must be on axis {axis}, "
            f"it is on axis {part.axis} with stride {part.stride}"
        )
    if want.stride is not None and part.stride != want.stride:
        kind = "lane" if want.lane else "register"
        fail(
            f"{name}: {want.what} ({want.extent}) must have {kind} stride {want.stride}, it has stride {part.stride}"
        )


def check_warps(
    carved: dict[tuple[str, str], Carved], operands: dict[str, Operand], warp: Axis | None
) -> None:
    """The split over warps agrees, and each operand is held by exactly the warps that need it."""
    for dim, roles in (("M", "DAC"), ("N", "DBC"), ("K", "AB")):
        first = carved[roles[0], dim].warps
        for role in roles[1:]:
            if carved[role, dim].warps != first:
                fail(
                    f"{dim} is split over warps differently: {roles[0]} has {_text(first)}, {role} has "
                    f"{_text(carved[role, dim].warps)}"
                )
    if carved["A", "K"].warps is not None:
        fail(
            "K is split over warps: the partial products would have to be reduced across warps, which this "
            "variant does not do"
        )
    needs = {"A": carved["D", "N"].warps, "B": carved["D", "M"].warps, "C": None, "D": None}
    reason = {"A": "that split N", "B": "that split M"}
    for role, needed in needs.items():
        have = operands[role].replica
        if have == (() if needed is None else (needed,)):
            continue
        has = "none" if not have else " + ".join(_text(it) for it in have)
        if needed is None:
            why = (
                "its elements are needed once" if role in "CD" or warp is None else "no other warp needs them"
            )
            fail(f"{role}: layout has a replica {has}; {why}, so no replica is accepted")
        fail(
            f"{role} must be held by the {needed.extent} warps {reason[role]}: "
            f"it needs replica {_text(needed)}, it has {has}"
        )


def check_all_warps(carved: dict[tuple[str, str], Carved], warps: int, scope: str) -> None:
    """D's warps are all the warps of the scope, each once."""
    held = [0]
    for part in (carved["D", "M"].warps, carved["D", "N"].warps):
        if part is not None:
            held = [w + c * part.stride for w in held for c in range(part.extent)]
    if sorted(held) != list(range(warps)):
        fail(
            f"D is held by warps {sorted(held)}; at {scope} scope it must be spread over all {warps} warps, each once"
        )


def _stride(part: Iter | None) -> int:
    return 0 if part is None else part.stride


def _extent(part: Iter | None) -> int:
    return 1 if part is None else part.extent


def _text(part: Iter | None) -> str:
    return "one warp" if part is None else f"R[{part.extent} : {part.stride} @ {part.axis}]"
