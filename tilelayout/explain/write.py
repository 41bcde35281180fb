"""How numbers, iters and parts of layouts are written on the board."""

from __future__ import annotations

from ..errors import LayoutError
from ..parts import M, stride_text
from ..spec import to_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from ..parts import Integer, Offset, Parts, RawIter

SHOWN = 8
"""Of long lists so many entries are written out."""


def number(n: Any) -> str:
    """A number as a factor or an addend: negative and symbolic ones in parentheses."""
    return str(n) if type(n) is int and n >= 0 else f"({n})"


def iter_text(it: RawIter) -> str:
    """``4:2``, ``4 : 1 @ laneid``."""
    return f"{it[0]}:{stride_text(it)}" if it[2] is M else f"{it[0]} : {stride_text(it)}"


def shard_text(iters: Iterable[RawIter]) -> str:
    """``S[(2, 4):(4, 1)]``."""
    return to_text(tuple(iters), (), {})


def offset_text(offset: Offset) -> str:
    """``3 @ laneid + 5``, in the order of the notation; ``0`` where nothing is moved."""
    return to_text((), (), offset, has_shard=False) or "0"


def sum_text(addends: Iterable[Integer]) -> str:
    """``4 + 0 + (-2)``."""
    return " + ".join(map(number, addends))


def product_text(factors: Sequence[Integer]) -> str:
    """``2 * 8 * 4``; ``1`` of nothing."""
    return " * ".join(map(number, factors)) or "1"


def listed(entries: Iterable[str], separator: str = ", ") -> str:
    """The entries in a row, the middle of a long one left out."""
    every = list(entries)
    if len(every) > SHOWN:
        every[SHOWN - 2 : -1] = ["..."]
    return separator.join(every)


def becomes(it: RawIter, new: RawIter, why: str) -> str:
    """One iter and what it turns into: ``2:2 becomes 2:4 (2 * 2 = 4)``."""
    return f"{iter_text(it)} becomes {iter_text(new)} ({why})"


def parts_of(x: Any, operation: str) -> Parts:
    """Shard, replica and offset of a layout; whatever is none was refused by the operation itself."""
    if not hasattr(x, "shard"):
        raise LayoutError(operation, f"takes a layout, got {type(x).__name__}")
    return tuple(x.shard), tuple(x.replica), dict(x.offset)


def made(like: Any, parts: Parts) -> Any:
    """A layout of parts."""
    return like.from_iters(*parts)  # a class method
