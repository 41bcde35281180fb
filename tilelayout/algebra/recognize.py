"""A list of values as digits, if it is one: what is asked when structure alone doesn't decide.

Values are plain integers; places on several axes are coded as one integer each (`Code`).
"""

from __future__ import annotations

from ..parts import M

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..axis import Axis
    from ..parts import Integer, Parts, RawIter


def recognized(values: list[int], size: int) -> list[tuple[int, int]] | None:
    """The digits (extent, step), innermost first, whose values from the first on are `values`; None if there are none.

    `size` is how many values there are: where the list is only the beginning, None still means that there are no
    digits, and anything else that there may be.  The innermost digit of the fused form ends where the first step that
    differs comes; everything else follows.
    """
    out: list[tuple[int, int]] = []
    while size > 1 and len(values) > 1:
        step = values[1] - values[0]
        extent = 2
        while extent < len(values) and values[extent] - values[extent - 1] == step:
            extent += 1
        if extent == len(values) < size:
            return out  # the run may go on
        if size % extent:
            return None
        heads = values[::extent]
        for c in range(1, extent):
            run = values[c::extent]
            if run != [v + c * step for v in heads[: len(run)]]:
                return None
        out.append((extent, step))
        values = heads
        size //= extent
    return out


def listed(a: Parts, most: int) -> list[int] | None:
    """The place on `m` of every element, in order; None where there are more than `most`."""
    values: list[int] = [a[2].get(M, 0)]  # type: ignore[list-item]  # plain integers throughout
    for e, s, _ in reversed(a[0]):
        if len(values) * e > most:  # type: ignore[operator]
            return None
        values = [v + c * s for c in range(e) for v in values]  # type: ignore[arg-type,misc]
    return values


class Code:
    """Places on several axes as integers: sums and differences of codes are codes of sums and differences.

    Of a shard whose values and their differences, taken up to `times` times, must not be confused.
    """

    def __init__(self, shard: tuple[RawIter, ...], times: int) -> None:
        reach: dict[Axis, int] = {}
        for e, s, a in shard:
            reach[a] = reach.get(a, 0) + (e - 1) * abs(s)  # type: ignore[operator,assignment]  # plain integers
        self.units: dict[Axis, int] = {}
        unit = 1
        for a, most in reach.items():
            self.units[a] = unit
            unit *= 2 * (times + 2) * most + 1

    def stride(self, step: int) -> tuple[Integer, Axis] | None:
        """The code of a step as a stride; None where it moves along several axes, which no iter does."""
        if step == 0:
            return 0, M
        for a, unit in reversed(self.units.items()):
            s, rest = divmod(step, unit)
            if rest == 0:
                return s, a
            if abs(step) * 2 > unit:  # not a digit below this one: it moves along this axis and another
                return None
        return None
