"""Swizzles as values: XOR bijections on the memory coordinate, closed under composition.

`Swizzle` is the family that hardware and CuTe have; `XorMap` is any linear bijection of the low bits, which is what
products of swizzles are.  Layouts may not enter: `swizzled` puts the two together.
"""

from __future__ import annotations

import re

from .algebra import binary as _binary
from .algebra import xor as _xor
from .errors import LayoutError
from .parts import as_entries, as_extent, as_integer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Final, NoReturn

MAX_WIDTH: Final = 1024
"""No memory has 2**1024 elements, and a map of more bits is a slip."""

_set = object.__setattr__


class XorMap:
    """A bijection of the integers that is linear over F2 on the low bits and leaves the others alone.

    `images` are the images of the bits: ``f(2**i) = images[i]``, and ``f(x ^ y) = f(x) ^ f(y)``, so f(0) = 0.  Negative
    integers have infinitely many leading ones, as in Python.  A map that is a swizzle comes out as a `Swizzle`, so
    equal maps have one form.  Values are frozen, hashable and picklable.

    >>> gray = XorMap((1, 3, 6))
    >>> [gray(i) for i in range(8)]
    [0, 1, 3, 2, 6, 7, 5, 4]
    >>> XorMap((1, 2, 4, 9)), XorMap((1, 2))
    (Swizzle(1, 0, 3), Swizzle(0, 0, 0))

    Errors: LayoutError where the map is no bijection, with the coordinate that is taken to 0, and where an image has
    bits beyond those of the list.
    """

    __slots__ = ("_hash", "_images", "_terms")

    _images: tuple[int, ...]
    _terms: tuple[_binary.Diagonal, ...]
    _hash: int

    def __new__(cls, images: Sequence[int]) -> XorMap:
        return simplest(_checked(images))

    # --- the value ------------------------------------------------------------------------------

    @property
    def images(self) -> tuple[int, ...]:
        """The images of the bits 0 to width - 1."""
        return self._images

    @property
    def width(self) -> int:
        """The number of low bits that it acts on, 0 for the identity: ``f(x + 2**width) == f(x) + 2**width``."""
        return len(self.images)

    def is_identity(self) -> bool:
        """Whether ``f(x) == x`` for every x."""
        return self.width == 0

    def equivalent(self, other: XorMap) -> bool:
        """Whether both are the same function; only identities can be that without being equal.

        >>> Swizzle(0, 4, 3).equivalent(Swizzle(0, 0, 0)), Swizzle(1, 4, 3).equivalent(Swizzle(1, 3, 3))
        (True, False)
        """
        return self.images == _as_map(other, "equivalent").images

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, XorMap):
            return NotImplemented
        return type(self) is type(other) and self._key() == other._key()

    def __hash__(self) -> int:
        return self._hash

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is frozen: cannot set {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is frozen: cannot delete {name!r}")

    def _key(self) -> tuple[int, ...]:
        return self._images

    def __reduce__(self) -> tuple[Any, ...]:
        return XorMap, (self._images,)

    def __repr__(self) -> str:
        return f"XorMap({self._images})"

    # --- evaluation -----------------------------------------------------------------------------

    def apply(self, x: Any) -> Any:
        """The image of a coordinate: an int, a numpy integer array, an `expr` expression or a sympy one.

        Arrays are int64 where the result fits, else of Python integers.  Expressions stay expressions, with ``^``;
        sympy has no such operation, so there the result is arithmetic in the bits where ``^`` doesn't fold away.
        Errors: LayoutError for what is no integer.

        >>> Swizzle(3, 3, 3).apply(64 + 8), Swizzle(3, 3, 3)(8 * 64 + 5)
        (64, 517)
        >>> from tilelayout.expr import Var
        >>> Swizzle(3, 3, 3).apply(64 * Var("row", 0, 7) + Var("column", 0, 63))
        64*row + (column ^ (8*row))
        """
        return _binary.xor(self._terms, x) if type(x) is int else _xor.evaluate(self._terms, self.width, x)

    __call__ = apply

    # --- the group ------------------------------------------------------------------------------

    @classmethod
    def identity(cls) -> Swizzle:
        """The map that leaves every coordinate where it is.

        >>> XorMap.identity()
        Swizzle(0, 0, 0)
        """
        return Swizzle(0, 0, 0)

    def compose(self, other: XorMap) -> XorMap:
        """The map ``x -> self(other(x))``, as a `Swizzle` where it is one.

        >>> Swizzle(2, 3, 3).compose(Swizzle(1, 5, 3)), Swizzle(3, 3, 3).compose(Swizzle(3, 3, 3))
        (Swizzle(3, 3, 3), Swizzle(0, 0, 0))
        >>> Swizzle(1, 0, 1).compose(Swizzle(1, 1, 1))
        XorMap((1, 3, 7))
        """
        other = _as_map(other, "compose")
        width = max(self.width, other.width)
        return simplest(tuple([self.apply(other.apply(1 << i)) for i in range(width)]))

    def inverse(self) -> XorMap:
        """The map g with ``g(f(x)) == f(g(x)) == x``; a swizzle is its own.

        >>> XorMap((1, 3, 6)).inverse(), Swizzle(3, 4, 3).inverse()
        (XorMap((1, 3, 7)), Swizzle(3, 4, 3))
        """
        found = _binary.inverse(self._images)
        return self if isinstance(found, int) else simplest(found)  # no bijection is singular

    # --- units ----------------------------------------------------------------------------------

    def in_units(self, from_bits: Any, to_bits: Any) -> XorMap:
        """The same permutation of memory, for coordinates that count units of `to_bits` bits instead of `from_bits`.

        Post-condition: ``g(x * from_bits / to_bits) == f(x) * from_bits / to_bits`` wherever both are whole.
        Errors: LayoutError where the ratio isn't a power of two, and where the wider unit would be torn apart.

        >>> Swizzle(3, 4, 3).in_units(8, 32)  # bytes -> words of tf32
        Swizzle(3, 2, 3)
        >>> Swizzle(1, 3, 3).in_units(16, 8), Swizzle(1, 3, 3).in_units(16, 1)  # halves -> bytes, bits
        (Swizzle(1, 4, 3), Swizzle(1, 7, 3))
        >>> Swizzle(3, 4, 3).in_units(8, 6)
        Traceback (most recent call last):
        tilelayout.errors.LayoutError: in_units: ... the ratio of the widths 8 and 6 is not a power of two...
        """
        widths = [
            as_extent(x, "in_units", name) for x, name in ((from_bits, "from_bits"), (to_bits, "to_bits"))
        ]
        if self.is_identity():
            return Swizzle(0, 0, 0)
        old, new = widths
        places = None if type(old) is not int or type(new) is not int else _places(old, new)
        if places is None:
            raise LayoutError(
                "in_units",
                f"{self} mixes the bits of a coordinate, and the ratio of the widths {old} and {new} is not a power "
                "of two",
                "swizzle in units that both widths are powers of two of, such as bits or bytes",
            )
        moved = self.moved(places)
        if moved is None:
            raise LayoutError(
                "in_units",
                f"{self} on units of {old} bits tears units of {new} bits apart: it leaves "
                f"{_untouched(self)} low bits alone, and {-places} are needed",
                f"use units of at most {int(old) << _untouched(self)} bits",
            )
        return moved

    def moved(self, places: int) -> XorMap | None:
        """The map of all bits `places` higher: ``g(2**places * x) == 2**places * f(x)``, and the bits below stay.

        Lower where `places` is negative; None where the lowest bits, which fall off, are not left alone.
        Errors: LayoutError for places that are no plain integer, and beyond bit 1024.

        >>> Swizzle(3, 3, 3).moved(1), Swizzle(3, 3, 3).moved(-3), Swizzle(3, 3, 3).moved(-4)
        (Swizzle(3, 4, 3), Swizzle(3, 0, 3), None)
        """
        places = as_integer(places, "moved", "places")  # type: ignore[assignment]  # plain, or refused
        if type(places) is not int:
            raise LayoutError("moved", f"places {places} is symbolic", "substitute a number first")
        if self.width and self.width + places > MAX_WIDTH:
            raise LayoutError("moved", f"{self} moved {places} places up reaches beyond bit {MAX_WIDTH}")
        if not self.width:
            return Swizzle(0, 0, 0)
        if places < 0:
            if _untouched(self) < -places:
                return None
            return simplest(tuple([image >> -places for image in self.images[-places:]]))
        return simplest((*[1 << i for i in range(places)], *[image << places for image in self.images]))

    # --- text -----------------------------------------------------------------------------------

    @classmethod
    def parse(cls, text: str) -> XorMap:
        """The map that `text` writes: its printed form, or CuTe's ``S<3,3,3>`` and ``Sw<3,3,3>``.

        >>> Swizzle.parse("Sw<3,4,3>"), XorMap.parse("XorMap((1, 3, 6))")
        (Swizzle(3, 4, 3), XorMap((1, 3, 6)))
        """
        found = read(text, 0) if type(text) is str else None
        if found is None or text[found[1] :].strip():
            raise LayoutError(
                "parse", f"{str(text)[:80]!r} is no swizzle", "write Swizzle(bits, base, shift)"
            )
        return found[0]


class Swizzle(XorMap):
    """CuTe's ``Swizzle<B, M, S>``: `bits` bits from `shift` places above are XORed into those at `base`.

    ``f(x) = x ^ ((x & mask << base + shift) >> shift)`` with ``mask = 2**bits - 1``; the low `base` bits are left
    alone.  A negative shift XORs the bits at `base` into those above: ``f(x) = x ^ ((x & mask << base) << -shift)``.
    Each is its own inverse.  Parameters count what the coordinate counts: elements, bytes or bits (see `in_units`).
    TIRx writes ``ComposeLayout(per_element=base, swizzle_len=bits, atom_len=abs(shift), swizzle_inner=shift >= 0)``.

    Source: CuTe, ``include/cute/swizzle.hpp``.

    >>> Swizzle(3, 4, 3)(0b1010000000), Swizzle(1, 4, 3)(128), Swizzle(1, 4, -3)(16)
    (720, 144, 144)
    >>> Swizzle(3, 4, 2)
    Traceback (most recent call last):
    tilelayout.errors.LayoutError: Swizzle: Swizzle(3, 4, 2): the shift must be at least 3 either way, ...

    Errors: LayoutError for negative `bits` or `base`, and where ``abs(shift) < bits``: the bits that are read and those
    that are written must not overlap.
    """

    __slots__ = ("_left", "_mask", "_right", "base", "bits", "shift")

    bits: int
    base: int
    shift: int
    _mask: int
    _right: int
    _left: int

    def __new__(cls, bits: Any, base: Any, shift: Any) -> Swizzle:
        values: list[int] = []
        for x, name in ((bits, "bits"), (base, "base"), (shift, "shift")):
            number = as_integer(x, "Swizzle", name)
            if type(number) is not int:
                raise LayoutError("Swizzle", f"{name} {number} is symbolic", "substitute a number first")
            if number < 0 and name != "shift":
                raise LayoutError("Swizzle", f"{name} must not be negative, got {number}")
            values.append(number)
        b, m, s = values
        if abs(s) < b:
            raise LayoutError(
                "Swizzle",
                f"Swizzle({b}, {m}, {s}): the shift must be at least {b} either way, else the bits that are read and "
                "those that are written overlap",
                f"Swizzle({b}, {m}, {b}), or XorMap(images) for any other bijection",
            )
        if b + m + abs(s) > MAX_WIDTH:
            raise LayoutError("Swizzle", f"Swizzle({b}, {m}, {s}) reaches beyond bit {MAX_WIDTH}")
        return _made(b, m, s)

    @property
    def images(self) -> tuple[int, ...]:
        """The images of the bits 0 to width - 1."""
        return tuple([self.apply(1 << i) for i in range(self.width)])

    @property
    def width(self) -> int:
        """The number of low bits that it acts on, 0 for the identity: ``f(x + 2**width) == f(x) + 2**width``."""
        return self.bits + self.base + abs(self.shift) if self.bits else 0

    def _key(self) -> tuple[int, ...]:
        return self.bits, self.base, self.shift

    def __reduce__(self) -> tuple[Any, ...]:
        return Swizzle, (self.bits, self.base, self.shift)

    def __repr__(self) -> str:
        return f"Swizzle({self.bits}, {self.base}, {self.shift})"

    def apply(self, x: Any) -> Any:  # XorMap.apply without a loop: the one that is called often
        """The image of a coordinate: see `XorMap.apply`.

        >>> Swizzle(3, 2, 3).apply(32)  # C25: tf32 at (0, 1) of (32, 8):(1, 32), counted in elements
        36
        """
        if type(x) is int:
            return x ^ ((x & self._mask) >> self._right << self._left)
        return _xor.evaluate(self._terms, self.width, x)

    __call__ = apply

    def inverse(self) -> Swizzle:
        """Itself: what is XORed twice is gone."""
        return self


def _made(bits: int, base: int, shift: int) -> Swizzle:
    """A swizzle of parameters that are known to be valid."""
    self = object.__new__(Swizzle)
    mask = ((1 << bits) - 1) << base + max(shift, 0)
    right, left = max(shift, 0), max(-shift, 0)
    for name, value in (
        ("bits", bits), ("base", base), ("shift", shift), ("_mask", mask), ("_right", right), ("_left", left),
        ("_terms", ((mask, right, left),) if bits else ()), ("_hash", hash((bits, base, shift))),
    ):  # fmt: skip
        _set(self, name, value)
    return self


def _checked(images: Any) -> tuple[int, ...]:
    found: list[int] = []
    entries = as_entries(images, "XorMap", "the images")
    if len(entries) > MAX_WIDTH:
        raise LayoutError("XorMap", f"{len(entries)} images reach beyond bit {MAX_WIDTH}")
    for i, x in enumerate(entries):
        image = as_integer(x, "XorMap", f"image {i}")
        if type(image) is not int or not 0 <= image < 1 << len(entries):
            raise LayoutError("XorMap", f"image {i} must have the low {len(entries)} bits only, got {image}")
        found.append(image)
    back = _binary.inverse(found)
    if isinstance(back, int):
        raise LayoutError("XorMap", f"images {tuple(found)} make no bijection: {back} is taken to 0, as 0 is")
    return tuple(found)


def simplest(images: tuple[int, ...]) -> XorMap:
    """The map with these images, which are known to make a bijection: a `Swizzle` where it is one.

    `XorMap` without its checks, for rooms that have made the images themselves.
    """
    touched = 0
    for i, image in enumerate(images):
        if image != 1 << i:
            touched |= image | 1 << i
    images = images[: touched.bit_length()]
    terms = _binary.diagonals(images)
    if not terms:
        return _made(0, 0, 0)
    if len(terms) == 1:
        mask, right, left = terms[0]
        base = (mask & -mask).bit_length() - 1
        bits = mask.bit_length() - base
        if mask >> base == (1 << bits) - 1 and max(right, left) >= bits:
            return _made(bits, base - right, right - left)
    self = object.__new__(XorMap)
    _set(self, "_images", images)
    _set(self, "_terms", terms)
    _set(self, "_hash", hash(images))
    return self


def _as_map(x: Any, operation: str) -> XorMap:
    if not isinstance(x, XorMap):
        raise LayoutError(operation, f"a swizzle is expected, got {type(x).__name__} {x!r}")
    return x


def _places(old: int, new: int) -> int | None:
    """log2(old / new) where that is an integer."""
    for more, fewer, direction in ((old, new, 1), (new, old, -1)):
        ratio, rest = divmod(more, fewer)
        if not rest and not ratio & ratio - 1:
            return direction * (ratio.bit_length() - 1)
    return None


def _untouched(f: XorMap) -> int:
    """How many of the low bits are neither read nor written."""
    touched = 0
    for mask, right, left in f._terms:  # pyright: ignore[reportPrivateUsage]
        touched |= mask | mask >> right << left
    return (touched & -touched).bit_length() - 1


# --- reading ------------------------------------------------------------------------------------

_NUMBER = r"\s*(-?\s*[0-9]{1,6})\s*"
_THREE = f"{_NUMBER},{_NUMBER},{_NUMBER}"
_SWIZZLE = re.compile(rf"\s*(?:Swizzle\s*\({_THREE}\)|Sw?\s*<{_THREE}>)")
_IMAGES = re.compile(r"\s*XorMap\s*\(\s*\(([0-9\s,]*)\)\s*\)")


def read(text: str, at: int) -> tuple[XorMap, int] | None:
    """The map that is written at a position, and where it ends; None where none is.  For `SwizzledLayout.parse`."""
    found = _SWIZZLE.match(text, at)
    if found is not None:
        parameters = ["".join(x.split()) for x in found.groups() if x is not None]
        return Swizzle(*[int(x) for x in parameters]), found.end()
    found = _IMAGES.match(text, at)
    if found is not None:
        entries = found.group(1).removesuffix(",").split(",")
        if all(len(x.split()) == 1 and len(x) <= MAX_WIDTH for x in entries):
            return XorMap([int(x) for x in entries]), found.end()
    return None
