"""A linear map of bits on every kind of coordinate: arrays, expressions, sympy.

The map is given by its diagonals (see `binary`), so that all kinds are calculated by the same few operators.
"""

from __future__ import annotations

import sys

from ..errors import LayoutError
from ..parts import as_integer
from . import binary
from .integers import symbols_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    Terms = tuple[binary.Diagonal, ...]

INT64_WIDTH: Final = 62
"""Maps of up to so many bits are calculated in int64."""


def evaluate(terms: Terms, width: int, x: Any) -> Any:
    """The image of a coordinate of any kind under a map of `width` bits.

    Errors: LayoutError for what is no integer.
    """
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(x, numpy.ndarray):
        return _xor(terms, _index_array(x, width))
    from .. import expr

    if isinstance(x, expr.Expr):
        return _xor(terms, x)
    number = as_integer(x, "swizzle", "the coordinate")
    return binary.xor(terms, number) if type(number) is int else _on_sympy(terms, width, number)


def _xor(terms: Terms, x: Any) -> Any:
    out = x
    for mask, right, left in terms:
        out = out ^ ((x & mask) >> right << left)
    return out


def _index_array(x: Any, width: int) -> Any:
    if x.dtype.kind == "O":
        out = x.copy()
        out.flat = [as_integer(entry, "swizzle", "an entry of the coordinate") for entry in x.flat]
        return out
    if x.dtype.kind not in "iu":
        raise LayoutError("swizzle", f"the coordinate must be an array of integers, got dtype {x.dtype}")
    large = x.dtype.kind == "u" and x.size and int(x.max()) >= 1 << 63
    return x.astype(object if large or width > INT64_WIDTH else "int64")


def _on_sympy(terms: Terms, width: int, x: Any) -> Any:
    """Through `expr`; where ``^`` is left, as ``a + b - 2*a*b`` of single bits, which sympy can write."""
    from .. import expr

    known = symbols_of(x)
    index = expr.from_sympy(x)
    try:
        return expr.to_sympy(_xor(terms, index), known)
    except LayoutError:  # a bit operation, which sympy doesn't have
        pass
    images = [binary.xor(terms, 1 << i) for i in range(width)]
    bits = [index // (1 << i) % 2 for i in range(width)]
    for j, own in enumerate(bits):
        bit: expr.Index = 0
        for i, image in enumerate(images):
            if image >> j & 1:
                bit = bit + bits[i] - 2 * bit * bits[i]
        index = index + (1 << j) * (bit - own)
    return expr.to_sympy(index, known)
