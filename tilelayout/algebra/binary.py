"""Linear algebra over F2: a vector is the bits of an integer, addition is XOR, a map is the images of the bits.

Pure numbers; neither layouts nor swizzles may enter.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    Diagonal = tuple[int, int, int]


def inverse(images: Sequence[int]) -> tuple[int, ...] | int:
    """The images of the inverse map, or a vector other than 0 that is taken to 0.

    Pre-condition: ``0 <= image < 2**len(images)``.

    >>> inverse((1, 3, 6)), inverse((1, 3, 2))
    ((1, 3, 7), 7)
    """
    pivots: dict[int, tuple[int, int]] = {}  # leading bit -> (vector, what is taken to it)
    for i, image in enumerate(images):
        source = 1 << i
        for bit, (vector, came) in pivots.items():
            if image >> bit & 1:
                image, source = image ^ vector, source ^ came
        if not image:
            return source
        leading = image.bit_length() - 1
        for bit, (vector, came) in pivots.items():
            if vector >> leading & 1:
                pivots[bit] = vector ^ image, came ^ source
        pivots[leading] = image, source
    return tuple([pivots[bit][1] for bit in range(len(images))])


def diagonals(images: Sequence[int]) -> tuple[Diagonal, ...]:
    """The map as ``x ^ ((x & mask) >> right << left) ^ ...``: triples (mask, right, left), by falling shift.

    One triple per diagonal of the map's matrix less the identity, since bits that move equally far move at once.

    >>> diagonals((1, 2, 4, 8 + 1, 16 + 2)), diagonals((2, 1))
    (((24, 3, 0),), ((2, 1, 0), (3, 0, 0), (1, 0, 1)))
    """
    masks: dict[int, int] = {}  # distance downwards -> the bits that move by it
    for i, image in enumerate(images):
        moved = image ^ 1 << i
        while moved:
            low = moved & -moved
            distance = i - (low.bit_length() - 1)
            masks[distance] = masks.get(distance, 0) | 1 << i
            moved ^= low
    return tuple([(masks[d], max(d, 0), max(-d, 0)) for d in sorted(masks, reverse=True)])


def basis(vectors: Iterable[int], enough: int) -> list[int]:
    """A basis of the span of nonnegative vectors, by falling leading bit; stops at `enough` members.

    No member has the leading bit of another, so equal spans have equal bases.

    >>> basis((6, 5, 3), 3), basis((1, 2, 7), 3)
    ([5, 3], [4, 2, 1])
    """
    found: dict[int, int] = {}  # leading bit -> member
    for vector in vectors:
        for bit, member in found.items():
            if vector >> bit & 1:
                vector ^= member
        if vector:
            leading = vector.bit_length() - 1
            for bit, member in found.items():
                if member >> leading & 1:
                    found[bit] = member ^ vector
            found[leading] = vector
            if len(found) == enough:
                break
    return [found[bit] for bit in sorted(found, reverse=True)]


def xor(terms: Sequence[Diagonal], x: int) -> int:
    """The image of x under the map with these diagonals.

    >>> xor(((24, 3, 0),), 16 + 8)
    27
    """
    out = x
    for mask, right, left in terms:
        out ^= (x & mask) >> right << left
    return out


def simplest_shift(span: Sequence[int], moved: Sequence[int], width: int) -> tuple[int, int, int] | None:
    """The smallest (bits, base, shift) whose swizzle XORs ``moved[k]`` into ``span[k]``, of at most `width` bits.

    Smaller is: a lower highest bit, then fewer bits read, then shifting down rather than up, then the shorter shift.

    >>> simplest_shift([8, 64], [0, 8], 9), simplest_shift([1], [6], 9)
    ((1, 3, 3), None)
    """
    for total in range(2, width + 1):
        for bits in range(1, total // 2 + 1):
            for sign in (1, -1):
                for distance in range(bits, total - bits + 1):
                    base = total - bits - distance
                    mask = (1 << bits) - 1 << base
                    if sign > 0:
                        fits = [(v >> distance & mask) == m for v, m in zip(span, moved, strict=True)]
                    else:
                        fits = [(v & mask) << distance == m for v, m in zip(span, moved, strict=True)]
                    if all(fits):
                        return bits, base, sign * distance
    return None


def extended(span: Sequence[int], images: Sequence[int]) -> tuple[int, ...]:
    """The images of the bits under one bijection that takes ``span[k]`` to ``images[k]`` and leaves what it can alone.

    Pre-conditions: `span` is a result of `basis`; the images are independent too.  Equal maps of a span give equal
    results.

    >>> extended([5, 2], [5, 3])
    (1, 3, 4)
    """
    width = max([v.bit_length() for v in (*span, *images)], default=0)
    leading = [v.bit_length() - 1 for v in span]
    taken = {v.bit_length() - 1 for v in basis(images, width)}
    free = [bit for bit in range(width) if bit not in leading]
    open_bits = [bit for bit in range(width) if bit not in taken]
    moving = [bit for bit in free if bit in taken]
    out = {bit: 1 << bit for bit in free if bit not in taken}
    out.update(zip(moving, [1 << bit for bit in open_bits if bit in leading], strict=True))
    for bit, vector, image in zip(leading, span, images, strict=True):
        for other in free:
            if vector >> other & 1:
                image ^= out[other]
        out[bit] = image
    return tuple([out[bit] for bit in range(width)])
