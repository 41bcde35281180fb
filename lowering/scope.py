"""Execution scopes: which threads carry out a primitive together, and which of them are active."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tilelayout import LayoutError
from tilelayout.axis import Axis, axis
from tilelayout.errors import nearest
from tilelayout.parts import as_integer

from .errors import DispatchError
from .target import Target

WARP_AXIS = {"thread": None, "warp": None, "warpgroup": "wid_in_wg", "cta": "warpid", "cluster": "warpid"}
"""Scope -> the axis that numbers its warps, or None where there is at most one."""

LANES = 32
MAX_THREADS = 1024


@dataclass(frozen=True)
class Context:
    """Where a call is lowered for; what a variant and its predicates may ask beside the call itself.

    Attributes:
        target: the architecture.
        scope: "thread", "warp", "warpgroup", "cta" or "cluster".
        warps: warps that carry out the call together.
        launch: threads of the CTA, or None when it was not said.
        active: axis -> (begin, end) of the active threads, half open.
        config: whatever the caller passes on to variants.
    """

    target: Target
    scope: str
    warps: int
    launch: int | None
    active: Mapping[Axis, tuple[int, int]]
    config: Mapping[str, Any] = field(default_factory=dict)

    @property
    def warp_axis(self) -> Axis | None:
        """The axis that numbers the warps of the scope."""
        name = WARP_AXIS[self.scope]
        return None if name is None else axis(name)

    @property
    def full(self) -> dict[Axis, tuple[int, int]]:
        """The active set when nothing narrows it."""
        if self.scope == "thread":
            return {}
        lanes: dict[Axis, tuple[int, int]] = {axis("laneid"): (0, LANES)}
        return lanes if self.warp_axis is None else {**lanes, self.warp_axis: (0, self.warps)}


def context(
    target: Target,
    scope: Any,
    launch: Any = None,
    active: Any = None,
    config: Mapping[str, Any] | None = None,
) -> Context:
    """A checked context.

    Args:
        scope: see `Context`.
        launch: threads of the CTA: a number, or one per dimension.  Scope "cta" and wider need it.
        active: axis -> extent, (begin, end) or range of the threads that are active; default: all of the scope's.

    Errors: DispatchError saying what is wrong with the request.
    """
    if not isinstance(scope, str) or scope not in WARP_AXIS:
        raise DispatchError(f"unknown scope {scope!r}, {nearest(str(scope), list(WARP_AXIS))}")
    threads = None if launch is None else _threads(launch)
    if scope in ("cta", "cluster"):
        if threads is None:
            raise DispatchError(f"{scope} scope needs launch=, the threads of the CTA, to know its warps")
        warps = threads // LANES
    else:
        warps = 4 if scope == "warpgroup" else 1
        if threads is not None and threads < warps * LANES:
            raise DispatchError(f"{scope} scope needs {warps * LANES} threads, launch has {threads}")
    if config is not None and not isinstance(config, Mapping):
        raise DispatchError(f"config={config!r}: a mapping is expected")
    bare = Context(target, scope, warps, threads, {}, dict(config or {}))
    given = bare.full if active is None else _active(active)
    return Context(target, scope, warps, threads, given, bare.config)


def _threads(launch: Any) -> int:
    dims = launch if isinstance(launch, (tuple, list)) else (launch,)
    total = 1
    for n in dims:
        try:
            n = as_integer(n, "launch", "threads")
        except LayoutError as error:
            raise DispatchError(f"launch={launch!r}: {error.rule}") from None
        if type(n) is not int or n < 1:
            raise DispatchError(f"launch={launch!r}: threads must be a positive number, got {n}")
        total *= n
    if total % LANES or total > MAX_THREADS:
        raise DispatchError(
            f"launch={launch!r}: {total} threads is not a whole number of warps up to {MAX_THREADS}"
        )
    return total


def _active(active: Any) -> dict[Axis, tuple[int, int]]:
    if not isinstance(active, Mapping):
        raise DispatchError(f"active={active!r}: a mapping from axis to (begin, end) is expected")
    out: dict[Axis, tuple[int, int]] = {}
    for name, bounds in active.items():
        try:
            known = axis(name)
            if isinstance(bounds, range) and bounds.step != 1:
                raise ValueError(f"step {bounds.step}, only whole ranges of threads are active sets")
            pair = (bounds.start, bounds.stop) if isinstance(bounds, range) else bounds
            if isinstance(pair, (tuple, list)) and len(pair) != 2:
                raise ValueError(f"(begin, end) is expected, got {pair!r}")
            begin, end = pair if isinstance(pair, (tuple, list)) else (0, pair)
            first, last = (as_integer(x, "active", str(known)) for x in (begin, end))
        except (LayoutError, TypeError, ValueError) as error:
            raise DispatchError(f"active={active!r}: {name}: {error}") from None
        if type(first) is not int or type(last) is not int:
            raise DispatchError(f"active={active!r}: {name}: bounds must be numbers")
        out[known] = (first, last)
    return out
