"""A layout's own table: each iter with extent, stride and axis, symbols included."""

from __future__ import annotations

from ...errors import LayoutError
from ...layout import TileLayout
from ...spec import Spec
from ...swizzled import SwizzledLayout
from ..colors import paint
from ..model import Cell, Grid, Panel, Picture

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ...parts import RawIter


def iters(layout: Any, *, palette: str = "categories", title: str | None = None) -> Picture:
    """A row for each iter of the shard, then of the replica, then of the offsets; the index's slowest digit first.

    The one view that symbols may take part in.
    Errors: LayoutError for what is no layout.

    >>> from tilelayout.draw import iters
    >>> print(iters(TileLayout(S[(8, 4) : (4 @ laneid, 1)] + 5 @ warpid)))
    S[(8, 4) : (4 @ laneid, 1)] + 5 @ warpid
    32 elements
                    extent        stride          axis         digit
    shard 0              8             4        laneid flat // 4 % 8
    shard 1              4             1             m flat // 1 % 4
     offset              .             5        warpid             .
    """
    drawn = TileLayout(layout) if isinstance(layout, Spec) else layout
    if not isinstance(drawn, (TileLayout, SwizzledLayout)):
        raise LayoutError("iters", f"a layout is expected, got {type(layout).__name__} {layout!r}")
    plain = drawn.layout if isinstance(drawn, SwizzledLayout) else drawn
    labels: list[str] = []
    rows: list[tuple[Cell, ...]] = []
    weight: Any = 1
    digits: list[str] = []
    for it in reversed(plain.shard):
        digits.append(f"flat // {weight} % {it[0]}")
        weight = weight * it[0]
    for k, (it, digit) in enumerate(zip(plain.shard, reversed(digits), strict=True)):
        labels.append(f"shard {k}")
        rows.append(_row(it, digit))
    for k, it in enumerate(plain.replica):
        labels.append(f"replica {k}")
        rows.append(_row(it, "every value"))
    for axis, value in plain.offset.items():
        labels.append("offset")
        rows.append((Cell(), Cell((str(value),)), Cell((str(axis),), key=str(axis)), Cell()))
    grid = Grid(tuple(rows), tuple(labels), ("extent", "stride", "axis", "digit"))
    painted, legend = paint([grid], "axis", palette)
    notes = (f"then {drawn.swizzle} on m",) if isinstance(drawn, SwizzledLayout) else ()
    return Picture(
        str(layout) if title is None else title,
        (Panel(painted[0]),),
        f"{plain.size()} elements",
        notes,
        legend,
        palette,
    )


def _row(it: RawIter, digit: str) -> tuple[Cell, ...]:
    e, s, a = it
    return Cell((str(e),)), Cell((str(s),)), Cell((str(a),), key=str(a)), Cell((digit,))
