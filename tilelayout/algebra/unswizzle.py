"""The tile layout with the values of a swizzled one, where there is one.

A row of a swizzled tile is a plain layout: there the bits that are XORed in are constants, and XOR with a constant
turns the step of a bit around.
"""

from __future__ import annotations

from ..errors import LayoutError, Undecided
from ..parts import M, nonzero, product
from .canonicalize import fuse
from .integers import quotient
from .residues import memory_digits, split_at_blocks
from .slice import recognized
from .window import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final

    from ..parts import Parts, RawIter
    from .window import Vector

SEARCH_LIMIT: Final = 2**12
"""Elements up to which the values are listed where arithmetic doesn't decide."""


def unswizzled(parts: Parts, apply: Callable[[int], int], width: int, operation: str) -> Parts | None:
    """Parts with ``apply`` of the values on `m`, `apply` being linear on the low `width` bits; None where none have.

    Where the values are a sum of bits that don't carry, they are XOR-affine, and so are the new ones.  Such a
    function is a sum of its digits iff no bit of it depends on two of them: else their product has a coefficient
    in it, a sum of different powers of two with signs, which isn't 0.  Other layouts are listed.
    Errors: Undecided where they are too large for that; LayoutError where symbols decide.
    """
    shard, replica, offset = parts
    memory_digits(parts, width, operation)  # refuses symbols that the swizzle sees
    shard, replica = tuple(split_at_blocks(shard, width)), tuple(split_at_blocks(replica, width))
    base = offset.get(M, 0)
    if type(base) is not int:
        raise LayoutError(operation, f"the offset {base} on m is symbolic", "substitute a number first")
    bits = _Bits(apply, width, base)
    for it in (*shard, *replica):
        bits.add(it)
    if bits.carry_free and bits.plain:
        return fuse(bits.split(shard)), bits.split(replica), nonzero({**offset, M: bits.start})
    if any(bits.moves(it) for it in replica):
        raise Undecided(operation, "a replica on m meets the bits that the swizzle mixes")
    if bits.carry_free and all(_is_power(it[0]) for it in shard):
        return None
    size = product(it[0] for it in shard)
    if type(size) is not int or size > SEARCH_LIMIT or any(type(it[1]) is not int for it in shard):
        raise Undecided(
            operation,
            f"the strides carry into one another, and {size} elements are too many to list ({SEARCH_LIMIT} at most)",
            "slice first",
        )
    digits = [(it[0], {it[2]: it[1]}) for it in reversed(shard)]
    values: list[Vector] = []
    for flat in range(size):
        at = value(digits, flat)
        at[M] = apply(base + int(at.get(M, 0)))
        values.append(at)
    found = recognized(values)
    return None if found is None else (tuple(found), replica, nonzero({**offset, M: values[0][M]}))


class _Bits:
    """The iters on `m` bit by bit: whether their bits carry, and whether they meet after the swizzle."""

    def __init__(self, apply: Callable[[int], int], width: int, base: int) -> None:
        self.apply, self.block, self.base = apply, 1 << width, base
        self.start = apply(base)
        self.carry_free = self.plain = True
        self.before = self.after = 0  # bits of the values and of the new values that have been used

    def moves(self, it: RawIter) -> bool:
        """Whether it moves within a block, which the swizzle sees; blocks are moved as wholes."""
        return it[2] is M and it[0] != 1 and quotient(it[1], self.block) is None

    def add(self, it: RawIter) -> None:
        if not self.moves(it):
            return
        extent, step = int(it[0]), int(it[1])
        if not _is_power(extent):
            self.carry_free = False
            return
        while extent > 1:
            column = self.base ^ (self.base + step)
            image = self.apply(column)
            self.carry_free = self.carry_free and not self.before & column
            self.plain = self.plain and not self.after & image
            self.before |= column
            self.after |= image
            extent, step = extent // 2, step * 2

    def split(self, iters: tuple[RawIter, ...]) -> tuple[RawIter, ...]:
        """The iters with the steps that their bits take after the swizzle."""
        out: list[RawIter] = []
        for it in iters:
            if not self.moves(it):
                out.append(it)
                continue
            extent, step = int(it[0]), int(it[1])
            while extent > 1:
                extent //= 2
                out.append((2, self.apply(self.base + extent * step) - self.start, M))
        return tuple(out)


def _is_power(extent: object) -> bool:
    return type(extent) is int and not extent & extent - 1
