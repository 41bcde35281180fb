"""``cp.async``: copies from global to shared memory that are done later, past the registers.

A copy takes 4, 8 or 16 bytes, at addresses that are multiples of it; of 16 there is a form past the first cache.
"""

from __future__ import annotations

from .ordering import ordering
from .protocols import CP_ASYNC as _COPY
from .protocols import CP_ASYNC_COMMIT as _COMMIT
from .protocols import CP_ASYNC_WAIT as _WAIT
from .record import Instruction, Operand

_SECTION = "Data Movement and Conversion Instructions: cp.async"


def _copy(size: int) -> Instruction:
    form = "cp.async.cg.shared.global.L2::128B" if size == 16 else "cp.async.ca.shared.global"
    return ordering(
        f"cp.async.{size}",
        f"{form} [{{dst}}], [{{src}}], {size}, {{n}};",
        (
            Operand("dst", 1, "shared", "read", size),
            Operand("src", 1, "address", "read", size),
            Operand("n", 1, "value", "read"),
        ),
        _SECTION,
        _COPY,
        80,
        (7, 4) if size == 16 else (7, 0),  # the prefetch into the second cache is younger
    )


CP_ASYNC = {size: _copy(size) for size in (4, 8, 16)}
"""Bytes -> the copy of that many."""

CP_ASYNC_COMMIT = ordering(
    "cp.async.commit_group", "cp.async.commit_group;", (), f"{_SECTION}.commit_group", _COMMIT, 80, (7, 0)
)

CP_ASYNC_WAIT = ordering(
    "cp.async.wait_group",
    "cp.async.wait_group {pending};",
    (Operand("pending", 1, "value", "read"),),
    f"{_SECTION}.wait_group",
    _WAIT,
    80,
    (7, 0),
)
"""`pending`, a constant: how many groups may still be under way."""
