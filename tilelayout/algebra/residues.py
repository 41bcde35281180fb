"""Which low bits a layout reaches: what decides every question about an XOR of its values.

A map of the low n bits, which leaves the others alone, moves x by a distance ``delta(x % 2**n)``.  So it is enough to
know which residues ``base + sum(c_k * s_k)`` has.  They are found digit by digit, by doubling, in time that doesn't
grow with the extents; each comes with the way to it, so that a refusal has a witness.
"""

from __future__ import annotations

from math import gcd

from ..errors import LayoutError, Undecided
from ..parts import M
from . import binary
from .integers import quotient

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any, Final

    import numpy.typing as npt

    from ..parts import Integer, Parts, RawIter

    Array = npt.NDArray[Any]
    Map = Callable[[Any], Any]
    Digit = tuple[int, int]

LIMIT: Final = 20
"""Bits up to which residues are listed: a map of more is left undecided, unless the values are smaller."""


def memory_digits(parts: Parts, width: int | None, operation: str) -> tuple[int, list[Digit], bool]:
    """What moves along `m` within blocks of ``2**width``, in plain numbers: the offset, and (extent, stride) per digit.

    And whether something moves by whole blocks; that may be symbolic, for it changes no residue.  So may an extent that
    whole blocks divide: of ``8*n : 64`` the digit 8 : 64 is listed, and n : 512 moves by blocks of 512.  Without a
    width everything is listed.
    Errors: LayoutError where what is listed is symbolic.
    """
    shard, replica, offset = parts
    base = offset.get(M, 0)
    whole = False
    if width is not None and base != 0 and quotient(base, 1 << width) is not None:
        whole = True
        base = base if type(base) is int else 0
    if type(base) is not int:
        raise _symbolic(base, operation)
    digits: list[Digit] = []
    for e, s, a in (*shard, *replica):
        if a is not M or e == 1 or s == 0:
            continue
        if width is not None and quotient(s, 1 << width) is not None:
            whole = True
        elif width is not None and (within := _within_blocks(e, s, width)) is not None:
            digits.append((within, s))  # type: ignore[arg-type]  # plain, or there is none
            whole = True
        elif type(e) is int and type(s) is int:
            digits.append((e, s))
        else:
            raise _symbolic(e if type(s) is int else s, operation)
    return base, digits, whole


def _within_blocks(e: Integer, s: Integer, width: int) -> int | None:
    """How many steps of `s` make whole blocks, where that divides a symbolic extent."""
    if type(e) is int or type(s) is not int:
        return None
    count = (1 << width) // gcd(s, 1 << width)
    return None if quotient(e, count) is None else count


def by_blocks(iters: Iterable[RawIter], width: int) -> tuple[RawIter, ...]:
    """What moves along `m` by whole blocks of ``2**width``: all that `memory_digits` doesn't list."""
    return tuple(
        [
            it
            for it in split_at_blocks(iters, width)
            if it[2] is M and it[0] != 1 and quotient(it[1], 1 << width) is not None
        ]
    )


def split_at_blocks(iters: Iterable[RawIter], width: int) -> list[RawIter]:
    """The same function with iters of a symbolic extent split where whole blocks of ``2**width`` begin."""
    out: list[RawIter] = []
    for e, s, a in iters:
        count = None if a is not M or quotient(s, 1 << width) is not None else _within_blocks(e, s, width)
        times = None if count is None else quotient(e, count)
        if count is None or times is None:
            out.append((e, s, a))
        else:
            out += [(times, s * count, a), (count, s, a)]
    return out


def _symbolic(x: Integer, operation: str) -> LayoutError:
    rule = f"which bits the swizzle sees depends on {x}, which is symbolic"
    return LayoutError(operation, rule, "substitute a number first")


def extremes(base: int, digits: Sequence[Digit]) -> tuple[int, int]:
    """The least and the largest value."""
    least = most = base
    for e, s in digits:
        if s < 0:
            least += (e - 1) * s
        else:
            most += (e - 1) * s
    return least, most


def steps(extent: int) -> Iterator[int]:
    """Numbers whose partial sums are 0 to extent - 1, each sum a valid digit: 1, 2, 4, ... and what is left.

    >>> list(steps(11)), list(steps(2)), list(steps(1))
    ([1, 2, 4, 3], [1], [])
    """
    covered = 1
    while 2 * covered <= extent:
        yield covered
        covered *= 2
    if covered < extent:
        yield extent - covered


class Residues:
    """Residues modulo ``2**bits`` that have been reached, and how.

    `bits` is the map's width, or less where all values are known to be that small: then nothing wraps.
    """

    __slots__ = ("bits", "here", "taken", "via")

    bits: int
    here: Array
    via: Array
    taken: list[tuple[int, int]]

    def __init__(
        self, width: int, base: int, digits: Sequence[Digit], operation: str, whole: bool = False
    ) -> None:
        import numpy as np

        least, most = extremes(base, digits)
        self.bits = width if whole or least < 0 else min(width, most.bit_length())
        if self.bits > LIMIT:
            raise Undecided(
                operation,
                f"the swizzle mixes {width} bits and the values reach {most}; residues of more than {LIMIT} bits are "
                "not listed",
                "use a swizzle of fewer bits, or slice first",
            )
        self.here = np.zeros(1 << self.bits, bool)
        self.here[base & self.last] = True
        self.via = np.full(1 << self.bits, -1, np.int32)
        self.taken = []

    @property
    def last(self) -> int:
        return (1 << self.bits) - 1

    def add(self, step: int, weight: int) -> None:
        """Take one more step of that stride from everywhere; `weight` is what it adds to the flat index."""
        import numpy as np

        step &= self.last
        if step:
            moved = np.roll(self.here, step)
            new = moved & ~self.here
            if new.any():
                self.via[new] = len(self.taken)
                self.taken.append((step, weight))
                self.here |= moved

    def move(self, step: int) -> None:
        """Leave every residue for the one a step away, and forget the ways."""
        import numpy as np

        self.here = np.roll(self.here, step & self.last)
        self.via.fill(-1)

    def add_digits(self, digits: Sequence[Digit]) -> None:
        for e, s in digits:
            for count in steps(e):
                self.add(count * s, 0)

    def way(self, residue: int) -> int:
        """A flat index whose value has that residue."""
        step = weight = flat = 0
        while self.via[residue] >= 0:
            step, weight = self.taken[int(self.via[residue])]
            residue = (residue - step) & self.last
            flat += weight
        return flat

    def stray(self, delta: Array, step: int, jump: int) -> int | None:
        """A residue r reached so far with ``delta[r + step] - delta[r] != jump``, or None."""
        import numpy as np

        found = self.here.nonzero()[0]
        far = delta[(found + (step & self.last)) & self.last]
        if delta.dtype != object and not -(2**62) < jump < 2**62:
            return int(found[0])  # no distance of a map of so few bits
        wrong = np.asarray(far - delta[found] != jump).nonzero()[0]
        return int(found[wrong[0]]) if len(wrong) else None


def reached_basis(parts: Parts, width: int, operation: str) -> list[int]:
    """A basis over F2 of the span of the values on `m`, of their low `width` bits."""
    import numpy as np

    base, digits, whole = memory_digits(parts, width, operation)
    least, most = extremes(base, digits)
    bits = width if whole or least < 0 else min(width, most.bit_length())
    # Single steps mostly span all there is, without a list of what is reached.
    single = [base, *[base + count * s for e, s in digits for count in steps(e)]]
    found = binary.basis([x & (1 << bits) - 1 for x in single], bits)
    if len(found) == bits:
        return found
    reached = Residues(width, base, digits, operation, whole)
    reached.add_digits(digits)
    left = reached.here.nonzero()[0]
    leaders: list[int] = []
    while leader := int(left.max()):
        leaders.append(leader)
        left = np.where(left >> leader.bit_length() - 1 & 1, left ^ leader, left)
    return binary.basis(leaders, bits)


def distances(apply: Map, bits: int) -> Array:
    """``delta[r] = apply(r) - r`` for every residue of that many bits."""
    import numpy as np

    all_of_them = np.arange(1 << bits, dtype=np.int64)
    return apply(all_of_them) - all_of_them


def mapped_extremes(
    apply: Map, width: int, base: int, digits: Sequence[Digit], operation: str
) -> tuple[int, int]:
    """The least and the largest value of ``apply(base + sum(c*s))``: only the outermost blocks of ``2**width`` count.

    >>> mapped_extremes(lambda x: x ^ x >> 3 & 7, 6, 0, [(100, 1)], "span")
    (0, 103)
    """
    (low, bottom), (high, top) = _outermost(apply, width, base, digits, operation)
    return low + int(bottom.min()), high + int(top.max())


def mapped_gap(apply: Map, width: int, base: int, digits: Sequence[Digit], operation: str) -> int | None:
    """A number between the least and the largest ``apply(base + sum(c*s))`` that isn't one of them; None without one.

    The map permutes within blocks of ``2**width``, so those between the outermost ones are full before it if after it.
    Errors: Undecided where only the blocks in between are in doubt.

    >>> mapped_gap(lambda x: x ^ x >> 3 & 7, 6, 0, [(100, 1)], "is_surjective")
    96
    """
    import numpy as np

    least, most = extremes(base, digits)
    if (most - least) >> LIMIT == 0:
        low = least >> width << width
        found = np.unique(_mapped(apply, width, least - low, _within(most - least, digits, operation)))
        return _missing(found, low, int(found[-1]))
    (low, bottom), (high, top) = _outermost(apply, width, base, digits, operation)
    found = _missing(np.unique(bottom), low, (1 << width) - 1)
    if found is None:
        found = _missing(np.concatenate([[-1], np.unique(top)]), high, int(top.max()))
    if found is not None:
        return found
    reach = 0  # how far the digits go without a gap, from either end
    for s, e in sorted([(abs(s), e) for e, s in digits]):
        if s > reach + 1:
            break
        reach += (e - 1) * s
    if reach == most - least:
        return None
    for missed in (least + reach + 1, most - reach - 1):
        if low + (1 << width) <= missed < high:
            return int(apply(missed))
    raise Undecided(
        operation, f"whether all numbers from {least} to {most} are reached wasn't found", "slice first"
    )


def _outermost(
    apply: Map, width: int, base: int, digits: Sequence[Digit], operation: str
) -> tuple[tuple[int, Array], tuple[int, Array]]:
    """The lowest and the highest block that have values: where each begins, and the new values in it from there."""
    least, most = extremes(base, digits)
    bottom, top = least & (1 << width) - 1, most & (1 << width) - 1
    upwards = _within(min((1 << width) - 1 - bottom, most - least), digits, operation)
    downwards = _within(min(top, most - least), digits, operation)
    return (
        (least - bottom, _mapped(apply, width, bottom, upwards)),
        (most - top, _mapped(apply, width, top, -downwards)),
    )


def _mapped(apply: Map, width: int, start: int, moves: Array) -> Array:
    return apply(start + (moves if width < 62 else moves.astype(object)))


def _missing(values: Array, low: int, last: int) -> int | None:
    """The first number that is skipped by sorted values up to `last`, all counted from `low`."""
    import numpy as np

    skips = np.asarray(np.diff(np.append(values, last + 1)) > 1).nonzero()[0]
    return low + int(values[skips[0]]) + 1 if len(skips) else None


def _within(room: int, digits: Sequence[Digit], operation: str) -> Array:
    """The distances up to `room` from an end of the values."""
    import numpy as np

    if room >> LIMIT:
        raise Undecided(
            operation,
            f"values that may become the largest or the least lie {room} apart, and 2**{LIMIT} are listed at most",
            "use a swizzle of fewer bits, or slice first",
        )
    reached = np.zeros(room + 1, bool)
    reached[0] = True
    for e, s in digits:
        size = abs(s)
        if size <= room:
            for count in steps(min(e, room // size + 1)):
                reached[count * size :] |= reached[: room + 1 - count * size].copy()
    return reached.nonzero()[0]
