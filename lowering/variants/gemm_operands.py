"""What a gemm variant needs to know of its operands before it looks at any instruction.

Scalars folded, the two matrix dimensions of each region found, shapes and scopes checked, storage that must not
overlap told apart.  Every refusal is a `fail` that names the operand and the rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilelayout import LayoutError
from tilelayout.axis import Axis
from tilelayout.parts import Iter

from ..errors import fail
from ..ops import GemmCall
from ..registers import WARP_AXES, register_file
from ..tile import TileRegion

if TYPE_CHECKING:
    from tilelayout.parts import Offset


@dataclass(frozen=True)
class Problem:
    """The sizes of ``D[M, N] = A[M, K] @ B[K, N] (+ C)``."""

    M: int
    N: int
    K: int
    accumulate: bool


@dataclass(frozen=True)
class Operand:
    """One operand's layout, sliced to its region and taken apart by logical dimension.

    Attributes:
        role: "A", "B", "C" or "D".
        dims: dimension name ("M", "N", "K") -> iters, outermost first.
        replica, offset: of the sliced layout, canonical.
    """

    role: str
    dims: dict[str, tuple[Iter, ...]]
    replica: tuple[Iter, ...]
    offset: Offset


def check_scopes(call: GemmCall) -> None:
    for role, region in call.operands():
        if region.tile.scope != "local":
            fail(
                f"{role} ({region.tile.name}) is in {region.tile.scope} scope; "
                f"every operand must be in local scope (registers)"
            )


def fold_problem(call: GemmCall) -> Problem:
    """Fold the scalars and sizes; decline what is not alpha 1, beta 0 or 1, matching and static."""
    alpha, beta = _constant(call.alpha, "alpha"), _constant(call.beta, "beta")
    if alpha != 1:
        fail(f"alpha is {alpha}: mma.sync does not scale, only alpha = 1 is lowered")
    if beta not in (0, 1):
        fail(f"beta is {beta}: mma.sync adds C or nothing, only beta = 0 and beta = 1 are lowered")
    a, b = matrix_extents(call.A, "A"), matrix_extents(call.B, "B")
    m, k = a[::-1] if call.transpose_a else a
    k_of_b, n = b[::-1] if call.transpose_b else b
    if k != k_of_b:
        fail(f"K differs: A has K = {k}, B has K = {k_of_b}{_transposed(call)}")
    for role, region in (("D", call.D), ("C", call.C)):
        rows, columns = matrix_extents(region, role)
        if rows != m:
            fail(f"M differs: A has M = {m}, {role} has M = {rows}{_transposed(call)}")
        if columns != n:
            fail(f"N differs: B has N = {n}, {role} has N = {columns}{_transposed(call)}")
    return Problem(m, n, k, accumulate=beta == 1)


def _transposed(call: GemmCall) -> str:
    return f" (transpose_a={call.transpose_a}, transpose_b={call.transpose_b})"


def _constant(x: Any, name: str) -> Any:
    """0 or 1 for what is exactly that, another number as it is; `x` may be an expression that folds to a number."""
    x = x.expand() if hasattr(x, "expand") else x
    try:
        value = float("text" if isinstance(x, (str, bytes, bytearray)) else x)
    except OverflowError:
        return x
    except (TypeError, ValueError):
        return fail(f"{name} is {x!r}, which does not fold to a constant")
    # The difference is exact where the conversion was not: Fraction(10**20 + 1, 10**20) is not 1.
    return int(value) if value in (0, 1) and x - int(value) == 0 else x


def matrix_extents(region: TileRegion, role: str) -> tuple[int, int]:
    """The two extents that are not 1, in order."""
    extents = [n for n in region.extents if n != 1]
    for n in extents:
        if type(n) is not int:
            fail(f"{role} ({region}) has a symbolic extent {n}; extents must fold to numbers")
    if len(extents) != 2:
        fail(
            f"{role} ({region}) must have two dimensions that are not 1, it has extents {tuple(region.extents)}"
        )
    return extents[0], extents[1]


def take_apart(role: str, region: TileRegion, names: str) -> Operand:
    """Slice a region's layout, group it to its two dimensions, and hand the iters out by name.

    `names` are the two logical dimensions in the order in which the region holds them.
    """
    shape = matrix_extents(region, role)
    try:
        sliced = region.tile.layout.slice(region.tile.shape, region.bounds).canonicalize()
        grouped, seps = sliced.group(shape)
    except LayoutError as error:
        return fail(
            f"{role} ({region}): layout {region.tile.layout} cannot be read as {shape[0]} x {shape[1]}: {error}"
        )
    dims = {
        name: tuple([it for it in grouped.shard[seps[d] : seps[d + 1]] if it.extent != 1])
        for d, name in enumerate(names)
    }
    iters = (*grouped.shard, *sliced.replica)
    for x in (*sliced.offset.values(), *[x for it in iters for x in (it.extent, it.stride)]):
        if type(x) is not int:
            fail(
                f"{role} ({region}): layout {sliced} has a symbolic value {x}; all of a layout must be numbers"
            )
    return Operand(role, dims, sliced.replica, dict(sliced.offset))


def check_axes(operand: Operand, lane: Axis, warp: Axis | None) -> None:
    """Only lanes, the scope's warps, and `m` may be moved along."""
    allowed = {lane, "m"} | ({warp} if warp else set())
    for it in (*[it for iters in operand.dims.values() for it in iters], *operand.replica):
        if it.axis not in allowed:
            where = "no warp axis: one warp holds all of it" if warp is None else f"warps on {warp}"
            other = warp is not None and it.axis in WARP_AXES
            fail(
                f"{operand.role}: iter {it.extent}:{it.stride} is on axis {it.axis}; "
                f"a fragment here has lanes on {lane}, "
                f"registers on m and {where}"
                + (f": partition(..., axis={str(warp)!r}) makes those" if other else "")
            )
    for a in operand.offset:
        if a.kind == "memory" and a != "m":
            fail(f"{operand.role}: offset on memory axis {a}; registers are on m")


def check_tile(role: str, region: TileRegion, lane: Axis, warp: Axis | None, warps: int) -> None:
    """The rest of a region's tile comes and goes with it: it too lies in the scope's lanes and warps, one element a
    register.  What is asked of the region itself follows from the fit.
    """
    if region.is_full:
        return
    layout = region.tile.layout
    name = f"{role} ({region}): the tile's layout {layout}"
    held = {lane: 32} | ({warp: warps} if warp else {})
    for it in (*layout.shard, *layout.replica):
        if it.extent != 1 and it.axis != "m" and it.axis not in held:
            who = "a warp has" if warp is None else "the scope has"
            fail(f"{name} is spread over axis {it.axis}, of which {who} one")
    for a, count in held.items():
        steps = [(it.extent - 1) * it.stride for it in (*layout.shard, *layout.replica) if it.axis == a]
        low, high = (layout.offset.get(a, 0) + sum(f(0, x) for x in steps) for f in (min, max))
        if low < 0 or high >= count:
            fail(f"{name} reaches {a} {low} to {high}, there are 0 to {count - 1}")
    try:
        register_file(layout, region.tile.shape)
    except LayoutError as error:
        fail(f"{name}: {error.rule}")


def check_offsets(operands: list[Operand], lane: Axis, warp: Axis | None) -> None:
    """Thread offsets must be the same on all operands; they then name which threads work and drop out."""
    first = operands[0]
    axes = dict.fromkeys(a for o in operands for a in o.offset if a.kind != "memory")
    for a in axes:
        for o in operands[1:]:
            if o.offset.get(a, 0) != first.offset.get(a, 0):
                unit = "lane" if a == lane else "warp" if a in ("warpid", "wid_in_wg") else "thread"
                fail(
                    f"{unit} offset on {a} differs: {first.role} is at {first.offset.get(a, 0)}, {o.role} at "
                    f"{o.offset.get(a, 0)}; elements that meet in one mma must be in the same {unit}"
                )
        shift = first.offset.get(a, 0)
        if a == lane:
            fail(f"lane offset {shift} on {a} shifts every operand past the 32 lanes of a warp")
        if a == warp:
            fail(f"warp offset {shift} on {a}: the fragments must begin at the first warp of the scope")


def check_storage(call: GemmCall) -> None:
    """Operands that share storage: C may be D; D may not overlap A, B, or another part of C."""
    seen: dict[str, TileRegion] = {}
    for role, region in call.operands():
        other = seen.setdefault(region.tile.name, region)
        if other.tile != region.tile:
            fail(
                f"{role}: two different tiles share the name {region.tile.name!r}; registers are told apart by name"
            )
    for role, region in (("A", call.A), ("B", call.B)):
        if region.tile == call.D.tile:
            fail(
                f"D and {role} are both in tile {region.tile.name}: writing D would overwrite {role}; copy {role} first"
            )
    if (
        call.C.tile == call.D.tile
        and call.C.bounds != call.D.bounds
        and region_slots(call.C) & region_slots(call.D)
    ):
        fail(
            f"C ({call.C}) and D ({call.D}) overlap without being the same: "
            f"writing D would overwrite C before it is read"
        )


def region_slots(region: TileRegion) -> frozenset[int]:
    """The register slots that the elements of a region are in."""
    sliced = region.tile.layout.slice(region.tile.shape, region.bounds)
    return frozenset(register_file(sliced, tuple(region.extents)).coordinates)
