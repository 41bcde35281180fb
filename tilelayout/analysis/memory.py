"""A tile in one byte-addressed memory: the position of each element, and what a width in bytes means for it.

What every question about shared or global memory starts with; the questions themselves stand in their own files.
"""

from __future__ import annotations

from typing import Protocol

from ..errors import LayoutError
from ..parts import as_entries, as_integer, as_shape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Final

    import numpy.typing as npt

WIDTHS: Final = (1, 2, 4, 8, 16)
"""Bytes that one lane can load or store at once (PTX ISA, ld and st: .b8 to .v4.b32)."""


class Placed(Protocol):
    """Whatever says where the elements of a tile are: a tile layout, a swizzled one, one of your own."""

    def table(self, shape: Any, /) -> Mapping[Any, npt.NDArray[Any]]:
        """Axis -> array of `shape`; what is not on `m` must be 0."""
        ...


def as_number(x: Any, operation: str, what: str, least: int | None = 0) -> int:
    """`x` as a plain integer of at least `least` (None: any); a symbol is refused."""
    n = as_integer(x, operation, what)
    if type(n) is not int:
        raise LayoutError(operation, f"{what} {n} is symbolic", "substitute a number first")
    if least is not None and n < least:
        raise LayoutError(operation, f"{what} must be at least {least}, got {n}")
    return n


def as_numbers(entries: Any, operation: str, what: str, least: int = 0) -> tuple[int, ...]:
    """A sequence of plain integers of at least `least`."""
    return tuple([as_number(x, operation, what, least) for x in as_entries(entries, operation, what)])


def as_extents(shape: Any, operation: str) -> tuple[int, ...]:
    """`shape` as plain numbers."""
    return tuple([as_number(n, operation, "extent", 1) for n in as_shape(shape, operation)])


def as_bits(bits: Any, operation: str) -> int:
    """The width of an element in bits: 1 to 128, a power of two."""
    n = as_number(bits, operation, "element width", 1)
    if n > 128 or n & (n - 1):
        raise LayoutError(
            operation,
            f"an element of {n} bits is not a power of two of at most 128",
            "describe the memory by the bytes or words that hold the elements",
        )
    return n


def width_of(vector: int, bits: int, operation: str) -> int:
    """Bytes of `vector` elements, which must be one of `WIDTHS`."""
    total = vector * bits
    if total % 8 or total // 8 not in WIDTHS:
        fitting = [w * 8 // bits for w in WIDTHS if w * 8 % bits == 0]
        raise LayoutError(
            operation,
            f"{vector} elements of {bits} bits are {total} bits, and one lane accesses 1, 2, 4, 8 or 16 bytes",
            f"access {', '.join(map(str, fitting))} elements at once",
        )
    return total // 8


def positions(layout: Placed, shape: tuple[int, ...], operation: str) -> npt.NDArray[Any]:
    """Flat logical index -> position on `m`, counted in elements.

    Errors: LayoutError where an element has several places or one that is not on `m`.
    """
    if not callable(getattr(layout, "table", None)):
        raise LayoutError(
            operation,
            f"a layout, or anything with a table, says where elements are, got {type(layout).__name__}",
        )
    if copied(layout):
        raise LayoutError(
            operation,
            f"{layout} has a replica, so an element has no single address",
            "ask about one copy: the shard and the offset alone",
        )
    symbols = _symbols_in(getattr(layout, "layout", layout))
    if symbols:
        raise LayoutError(
            operation,
            f"{layout} has no addresses in numbers, since {', '.join(symbols)} is symbolic",
            f"substitute numbers first: layout.subs({{{', '.join([f'{s}: ...' for s in symbols])}}})",
        )
    table = layout.table(shape)
    for axis, values in table.items():
        if axis != "m" and bool((values != 0).any()):
            raise LayoutError(
                operation,
                f"{layout} places elements along {axis}, and only m is an address",
                "ask about what one holder sees: layout.storage()",
            )
    for axis, values in table.items():
        if axis == "m":
            return values.reshape(-1)
    import numpy as np

    return np.zeros(shape, np.int64).reshape(-1)


def _symbols_in(layout: Any) -> list[str]:
    """The names of the symbols in a layout of ours; none in what others say."""
    iters = (*getattr(layout, "shard", ()), *getattr(layout, "replica", ()))
    values = [n for it in iters for n in it[:2]] + list(getattr(layout, "offset", {}).values())
    return sorted({s.name for n in values for s in getattr(n, "free_symbols", ())})


def rests(layout: Any) -> bool:
    """Whether a layout rests on conditions."""
    return bool(getattr(layout, "conditions", ()))


def copied(layout: Any) -> bool:
    """Whether an element has more than one place."""
    replica = getattr(getattr(layout, "layout", layout), "replica", ())
    return any(it.extent != 1 and it.stride != 0 for it in replica)


def counted(n: Any, what: str) -> str:
    """``1 vector``, ``2 vectors``."""
    return f"{n} {what}{'' if n == 1 else 's'}"
