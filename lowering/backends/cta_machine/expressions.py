"""Expressions and conditions of a program, compiled once to Python functions.

A value is a Python int where all lanes have the same, which is cheap, and an integer array of 32 elsewhere.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tilelayout.expr import Expr, Index, variables

from ...control import Condition, comparisons
from ...errors import MachineError
from ...isa.operand_map import LANES
from ...program import compiled
from .lanes import EVERY, Lanes, mask_of

if TYPE_CHECKING:
    from .warp import Warp

Where = Callable[[], str]
"""Names the statement, when it is asked."""


class Expressions:
    """Some expressions that are evaluated together."""

    def __init__(self, values: Sequence[Index], where: Where) -> None:
        found = {v for x in values if isinstance(x, Expr) for v in variables(x)}
        self._variables = sorted(found, key=lambda v: v.name)
        self._names = tuple(dict.fromkeys(v.name for v in self._variables))
        self._function = compiled(values, self._names)
        self._where = where
        self._bounds = [
            (v.name, v.lo, v.hi) for v in self._variables if (v.name, v.lo, v.hi) != ("lane", 0, LANES - 1)
        ]

    def arguments(self, warp: Warp, lanes: Lanes) -> list[Any]:
        """The variables' values.

        Errors: MachineError for a variable that holds nothing in one of the lanes, or breaks its bounds.
        """
        values, held, mask = warp.values, warp.held, lanes.mask
        for name in self._names:
            if held.get(name, 0) & mask != mask:
                self._fail(warp, lanes, f"{name} holds nothing", ~held.get(name, 0))
        for name, lo, hi in self._bounds:
            check_bounds(
                values[name], lo, hi, lanes, lambda found, v=name: self._outside(warp, lanes, v, found)
            )
        return [values[name] for name in self._names]

    def of(self, arguments: list[Any]) -> tuple[Any, ...]:
        """Their values, ints or arrays ``[32]``."""
        return self._function(*arguments)

    def __call__(self, warp: Warp, lanes: Lanes) -> tuple[Any, ...]:
        return self._function(*self.arguments(warp, lanes))

    def _outside(self, warp: Warp, lanes: Lanes, name: str, found: int) -> None:
        bounds = next(f"{v.lo} to {v.hi}" for v in self._variables if v.name == name)
        self._fail(warp, lanes, f"{name} is {found}, outside its bounds {bounds}", EVERY)

    def _fail(self, warp: Warp, lanes: Lanes, problem: str, mask: int) -> None:
        lane = next((x for x in lanes.index.tolist() if mask >> x & 1), 0)
        warp.fault(self._where(), lane, problem)


def check_bounds(
    value: Any, lo: int | None, hi: int | None, lanes: Lanes, outside: Callable[[int], None]
) -> None:
    """Call `outside` with a value that breaks the bounds in one of the lanes."""
    if type(value) is int:
        low = high = value
    else:
        used = value[lanes.rows]
        low, high = int(used.min()), int(used.max())
    if lo is not None and low < lo:
        outside(low)
    if hi is not None and high > hi:
        outside(high)


def per_lane(value: Any, lanes: Lanes) -> Any:
    """A value as an integer array of the lanes alone, ``[lanes.count]``."""
    if type(value) is int:
        return np.full(lanes.count, value, np.int64)
    return value[lanes.rows]


_RELATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
}


class Truth:
    """A condition."""

    def __init__(self, condition: Condition, where: Where) -> None:
        self._where = where
        self._parts = [
            (Expressions((c.left, c.right), where), _RELATIONS[c.relation]) for c in comparisons(condition)
        ]

    def __call__(self, warp: Warp, lanes: Lanes) -> int:
        """The mask of those of the lanes where it holds."""
        mask = lanes.mask
        for sides, relation in self._parts:
            found = relation(*sides(warp, lanes))
            if found is False:
                return 0
            if found is not True:
                mask &= mask_of(found)
                if not mask:
                    return 0
        return mask

    def together(self, warp: Warp, lanes: Lanes) -> bool:
        """Whether it holds, for all of the lanes alike.

        Errors: MachineError where lanes differ.
        """
        mask = self(warp, lanes)
        if mask not in (0, lanes.mask):
            inside, outside = (
                next(x for x in lanes.index.tolist() if (mask >> x & 1) == one) for one in (1, 0)
            )
            raise MachineError(
                f"{self._where()}: lanes of warp {warp.number} disagree: it holds for lane {inside}, not for lane "
                f"{outside}; a loop turns together for all active lanes ({warp.cta.name})"
            )
        return mask != 0
