"""How holders and elements are written: the short form in a cell, and the whole story when hovering."""

from __future__ import annotations

from ..axis import axis as known_axis

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Final

    Place = Mapping[Any, int]
    Label = Callable[[Place], str]

LETTERS: Final = {"laneid": "T", "warpid": "W", "wid_in_wg": "W", "wgid": "G"}
"""Axes that a cell names by a letter, as the figures of manuals do; others by their name."""

ORDER: Final = (
    "pid bx by bz cbx cby cbz wgid warpid wid_in_wg tid_in_wg tx laneid TLane TCol P F Bank".split()
)
"""From the outermost; axes that were registered later come after these."""

LANES: Final = ("laneid", "tx", "tid_in_wg")
"""Axes that name a single thread, which has registers."""

NAMES: Final = {
    "laneid": "lane", "warpid": "warp", "wid_in_wg": "warp of the warpgroup", "wgid": "warpgroup", "tx": "thread",
    "tid_in_wg": "thread of the warpgroup",
}  # fmt: skip

REGISTER_BITS: Final = 32
BANK_BITS: Final = 32
BANKS: Final = 32
TOLD: Final = 64
"""Holders or elements that a title lists; of more it gives the number."""


def axis_order(name: str) -> tuple[int, int, str]:
    """Sorting axes from the outermost: devices and threads, then memory, `m` last."""
    last = known_axis(name).kind == "memory"
    return last, ORDER.index(name) if name in ORDER else len(ORDER) if name != "m" else len(ORDER) + 1, name


def short(place: Place) -> str:
    """One holder as a cell shows it: ``T5:3`` for lane 5, slot 3; ``W1T5:3``; ``153`` on `m` alone; ``TLane3 TCol2``.

    >>> (
    ...     short({"laneid": 5, "m": 3}),
    ...     short({"warpid": 1, "laneid": 5}),
    ...     short({"m": 153}),
    ...     short({"warpid": 2}),
    ... )
    ('T5:3', 'W1T5:0', '153', 'W2')
    >>> short({"TCol": 2, "TLane": 3}), short({"pid": 1, "m": 4})
    ('TLane3 TCol2', 'pid1:4')
    """
    others = sorted([a for a in place if a != "m"], key=axis_order)
    if not others:
        return str(place.get("m", 0))
    head = ""
    for a in others:
        head += f"{LETTERS[a]}{place[a]}" if a in LETTERS else f"{' ' if head else ''}{a}{place[a]}"
    return f"{head}:{place.get('m', 0)}" if "m" in place or any(a in place for a in LANES) else head


def short_legend(names: Sequence[str]) -> str:
    """What the letters of `short` mean, for the axes that occur."""
    said = [f"{LETTERS[a]} {NAMES[a]}" for a in sorted(names, key=axis_order) if a in LETTERS]
    if all(a == "m" for a in names):
        return "position on m"
    slots = "m" in names or any(a in names for a in LANES)
    return ", ".join([*said, *([": slot" if said else ": position on m"] if slots else [])])


def coordinate(element: Sequence[int]) -> str:
    """``9, 5``."""
    return ", ".join(map(str, element))


def place_text(place: Place, bits: int | None = None, shared: bool = False) -> str:
    """One holder in words, with bytes, bits and bank where the element's width is known.

    >>> place_text({"laneid": 6, "m": 3}, 16)
    'lane 6, slot 3 (register 1, bits 16-31; bytes 6-7)'
    >>> place_text({"m": 153}, 16, shared=True)
    'position 153 (bytes 306-307; bank 12, bits 16-31)'
    """
    others = sorted([a for a in place if a != "m"], key=axis_order)
    words = [f"{NAMES.get(a, a)} {place[a]}" for a in others]
    threads = any(known_axis(a).kind == "thread" for a in others)
    if "m" not in place and others and not threads:
        return ", ".join(words)
    at = place.get("m", 0)
    words.append(f"{'slot' if threads else 'position'} {at}")
    return ", ".join(words) + (f" ({width_text(at, bits, threads, shared)})" if bits else "")


def width_text(at: int, bits: int, register: bool, shared: bool = False) -> str:
    """Where an element of `bits` bits at position `at` lies: bytes, and register or bank with the bits in it."""
    first, last = at * bits, at * bits + bits - 1
    if first // 8 == last // 8:
        span = f"byte {first // 8}" + (
            "" if bits == 8 else f", bits {first % 8}-{last % 8}" if bits > 1 else f", bit {first % 8}"
        )
    else:
        span = f"bytes {first // 8}-{last // 8}"
    if not (register or shared):
        return span
    unit = REGISTER_BITS if register else BANK_BITS
    name, begin, end = ("register", first // unit, last // unit) if register else (
        "bank", first // unit % BANKS, last // unit % BANKS
    )  # fmt: skip
    if first // unit == last // unit:
        inside = (
            f"{name} {begin}, bits {first % unit}-{last % unit}"
            if bits > 1
            else f"{name} {begin}, bit {first % unit}"
        )
    else:
        inside = f"{name}s {begin}-{end}"
    return f"{inside}; {span}" if register else f"{span}; {inside}"


def told(what: str, lines: Sequence[str]) -> list[str]:
    """At most `TOLD` of the lines, and how many more there are."""
    more = len(lines) - TOLD
    return [*lines[:TOLD], *([f"and {more} more {what}"] if more > 0 else [])]


def element_title(
    element: Sequence[int], holders: Sequence[Place], bits: int | None, shared: bool = False
) -> str:
    """Hovering over an element: its coordinate, and each of its holders."""
    places = [place_text(place, bits, shared) for place in holders]
    head = f"element ({coordinate(element)})" + (f" of {bits} bits" if bits else "")
    return "\n".join([head, *told("holders", places)])
