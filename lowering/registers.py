"""The registers of a fragment: which slots a lane has, and which element sits in each.

A *slot* is one element's place in a lane's register file, counted in elements (`m` of the layout).  This
room reads layouts backwards: (lane, warp, slot) -> logical coordinate.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tilelayout import LayoutError, TileLayout
from tilelayout.expr import Index, Var
from tilelayout.parts import Iter, as_integer, as_shape, product

LANE = Var("lane", 0, 31)
WARP = Var("warp", 0, 31)

LANE_AXIS = "laneid"
WARP_AXES = ("warpid", "wid_in_wg")


@dataclass(frozen=True)
class RegisterView:
    """An array view of the registers that one lane holds of a tile.

    `view.slot(i, j)` is the register slot behind index (i, j); `view.coordinate(i, j, lane=...)` the element of the
    tile that sits there, so a fragment is filled by a loop over the view's indices.
    """

    name: str
    layout: TileLayout
    tile_shape: tuple[int, ...]
    shape: tuple[int, ...]
    slots: TileLayout
    """index in `shape` -> slot, on m"""

    def slot(self, *index: Any) -> int:
        """The slot of an index; LayoutError outside the view."""
        return self.slots.apply(*index, shape=self.shape).get("m", 0)  # type: ignore[call-overload,no-any-return]

    def coordinate(self, *index: Any, lane: Any, warp: Any = 0) -> tuple[Any, ...]:
        """The tile's element in that register of that lane: ints for ints, expressions for expressions.

        Errors: LayoutError where the slot is a gap of the layout, or that lane or warp holds nothing of the tile.
        """
        from tilelayout import expr

        slot = self.slot(*index)
        found = register_file(self.layout, self.tile_shape).coordinates.get(slot)
        if found is None:
            raise LayoutError(
                f"{self.name}.local", f"slot {slot} is a gap of layout {self.layout}: no element is there"
            )
        values = {
            n: as_integer(x, f"{self.name}.local", n) if type(x).__module__ == "numpy" else x
            for n, x in (("lane", lane), ("warp", warp))
        }
        if all(isinstance(x, int) for x in values.values()):
            return self._held(tuple([expr.evaluate(x, values) for x in found]), values)
        return tuple([expr.substitute(x, values) for x in found])

    def _held(self, element: tuple[int, ...], at: dict[str, int]) -> tuple[int, ...]:
        """`element` if that lane and warp hold it: a lane between or beyond the layout's lanes holds nothing."""
        moving = {it.axis for it in (*self.layout.shard, *self.layout.replica) if it.extent != 1}
        inside = all(0 <= x < n for x, n in zip(element, self.tile_shape, strict=True))
        for place in self.layout.owners(*element, shape=self.tile_shape) if inside else ():
            held = moving & {LANE_AXIS, *WARP_AXES}
            if all(place.get(a, 0) == at["lane" if a == LANE_AXIS else "warp"] for a in held):
                return element
        raise LayoutError(
            f"{self.name}.local",
            f"lane {at['lane']} of warp {at['warp']} holds nothing there, in layout {self.layout}",
        )


@dataclass(frozen=True)
class RegisterFile:
    """What one lane holds of a fragment.

    Attributes:
        span: slots of a lane, from 0 to the largest in use.
        coordinates: slot -> the logical coordinate as expressions in `lane` and `warp`.
        warps: how many warps hold a part of the tile (1 when no warp axis is mentioned).
    """

    span: int
    coordinates: dict[int, tuple[Index, ...]]
    warps: int


def register_span(layout: TileLayout) -> int:
    """Slots of a lane's register file: largest slot + 1, gaps and offset included."""
    low, high = layout.offset.get("m", 0), layout.offset.get("m", 0)  # type: ignore[call-overload]
    for e, s, a in (*layout.shard, *layout.replica):
        if a == "m":
            if type(e) is not int or type(s) is not int:
                raise LayoutError("local", f"the registers of {layout} are symbolic")
            low, high = low + min(0, (e - 1) * s), high + max(0, (e - 1) * s)
    if type(low) is not int or type(high) is not int:
        raise LayoutError("local", f"the registers of {layout} are symbolic")
    if low < 0:
        raise LayoutError("local", f"layout {layout} reaches register slot {low}")
    return high + 1


def local_view(
    name: str,
    layout: TileLayout,
    tile_shape: tuple[Any, ...],
    shape: tuple[Any, ...],
    mediated: TileLayout | None,
) -> RegisterView:
    """See `Tile.local`."""
    what = f"{name}.local"
    span = register_span(layout)
    dims = as_shape(shape or (span,), what)
    count = product(dims)
    if mediated is None:
        if count != span:
            raise LayoutError(what, f"shape {dims} has {count} registers, the lane's register span is {span}")
        from tilelayout import S

        mediated = TileLayout(S[dims])
    else:
        if mediated.size() != count:
            raise LayoutError(
                what, f"shape {dims} has {count} registers, the view's layout has {mediated.size()}"
            )
        if (
            register_span(mediated) > span
            or mediated.replica
            or any(it.axis != "m" for it in mediated.shard if it.extent > 1)
        ):
            raise LayoutError(what, f"the view's layout {mediated} leaves the lane's {span} registers on m")
    return RegisterView(name, layout, tile_shape, dims, mediated)  # type: ignore[arg-type]


@lru_cache(maxsize=512)
def register_file(layout: TileLayout, shape: tuple[int, ...]) -> RegisterFile:
    """Read a fragment layout backwards.

    Errors: LayoutError where lanes or warps are not separate digits (two iters overlap), two elements share a register,
    an iter is symbolic, or on an axis that is neither lanes, warps nor registers.
    """
    plain = layout.canonicalize()
    for it in (*plain.shard, *plain.replica):
        if it.extent != 1 and it.axis not in (LANE_AXIS, "m", *WARP_AXES):
            raise LayoutError(
                "local",
                f"iter {it.extent}:{it.stride} of {layout} is on axis {it.axis}, where no lane's registers are",
            )
        if type(it.extent) is not int or type(it.stride) is not int:
            raise LayoutError("local", f"iter {it.extent}:{it.stride} of {layout} is symbolic")
    grouped, seps = plain.group(shape)
    lane_digits = _digits(grouped, (LANE_AXIS,), LANE, "laneid")
    warp_digits = _digits(grouped, WARP_AXES, WARP, "warp")
    slots: list[tuple[int, tuple[Index, ...]]] = [(grouped.offset.get("m", 0), ())]  # type: ignore[call-overload,list-item]
    for d in range(len(shape)):
        slots = [(slot, (*coordinate, 0)) for slot, coordinate in slots]
        weight = shape[d]
        for k in range(seps[d], seps[d + 1]):
            e, s, a = grouped.shard[k]
            weight //= e
            if a == "m" and e > 1:
                slots = [(slot + c * s, (*x[:-1], x[-1] + c * weight)) for slot, x in slots for c in range(e)]
            elif e > 1:
                digit = lane_digits[k] if a == LANE_AXIS else warp_digits[k]
                slots = [(slot, (*x[:-1], x[-1] + digit * weight)) for slot, x in slots]
    if len({slot for slot, _ in slots}) != len(slots):
        raise LayoutError("local", f"two elements of one lane share a register in {layout}")
    warps = product([it.extent for it in (*grouped.shard, *grouped.replica) if it.axis in WARP_AXES])
    return RegisterFile(register_span(layout), dict(slots), warps)  # type: ignore[arg-type]


def _digits(grouped: TileLayout, axes: tuple[str, ...], variable: Var, what: str) -> dict[int, Index]:
    """Iter position -> its digit as an expression in `variable`, for the iters on `axes`.

    Strides must nest (each a multiple of the reach of the smaller ones), so that the coordinate determines every
    digit.  Replica iters take part: their digits are read and not used.
    """
    iters = [(it, k) for k, it in enumerate(grouped.shard)] + [(it, -1) for it in grouped.replica]
    mine = sorted(((it, k) for it, k in iters if it.axis in axes and it.extent > 1), key=_stride)
    moving = {it.axis for it, _ in mine}  # an offset on another axis names one warp: it drops out
    base = sum(v for a, v in grouped.offset.items() if a in moving)
    out: dict[int, Index] = {}
    reach = 1
    for i, (it, k) in enumerate(mine):
        e, s, _ = it
        if s < reach or s % reach:
            raise LayoutError(
                "local",
                f"{what} iters {[str(x) for x, _ in mine]} overlap: a {what} does not name one element",
            )
        shifted = variable - base if base else variable
        last = i + 1 == len(mine)
        out[k] = shifted // s if last and reach * e else shifted // s % e
        reach = s * e
    return out


def _stride(entry: tuple[Iter, int]) -> Any:
    return entry[0].stride
