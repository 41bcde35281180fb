"""The direct sum of layouts: two addends over the interleaved shape, neither of them scaled (TIRx's direct_sum)."""

from __future__ import annotations

from ..errors import LayoutError
from ..parts import nonzero
from .interleave import interleave

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..parts import Integer, Parts


def direct_sum(
    left: Parts,
    right: Parts,
    left_shape: tuple[Integer, ...],
    right_shape: tuple[Integer, ...],
    operation: str = "direct_sum",
) -> Parts:
    """``f(x || y) = f_left(x) + f_right(y)``, axis by axis, owners with owners.

    Dimension d of the result has extent ``left_shape[d] * right_shape[d]``; its index is
    ``x[d] * right_shape[d] + y[d]``.  Offsets add up, replicas combine.
    """
    if len(left_shape) != len(right_shape):
        raise LayoutError(operation, f"left shape {left_shape} and right shape {right_shape} differ in rank")
    shard = interleave(left[0], left_shape, right[0], right_shape, operation, ("left", "right"))
    offset = right[2]
    if left[2]:
        offset = dict(offset)
        for a_axis, value in left[2].items():
            offset[a_axis] = offset.get(a_axis, 0) + value
        offset = nonzero(offset)
    return shard, left[1] + right[1], offset
