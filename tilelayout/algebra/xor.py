"""A linear map of bits on every kind of coordinate: arrays, expressions, sympy.

The map is given by its diagonals (see `binary`), so that all kinds are calculated by the same few operators.
"""

from __future__ import annotations

import sys
from itertools import pairwise

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
    """Through `expr` where ``^`` folds away; else as ``a + b - 2*a*b`` of single bits, which sympy can write.

    The bits are differences of quotients: sympy 1.14 takes ``Mod(3*Mod(n, 4), 8)`` for ``Mod(3*Mod(n, 4)**2, 8)``, so
    no remainder may be put around another here.
    """
    from .. import expr

    known = symbols_of(x)
    index = expr.from_sympy(x)
    folded = _xor(terms, index)
    if not any(isinstance(part, expr.Bitwise | expr.Mod) for part in _parts(folded) - _parts(index)):
        return expr.to_sympy(folded, known)
    quotients = [expr.to_sympy(index // (1 << i), known) for i in range(width + 1)]
    bits = [q - 2 * half for q, half in pairwise(quotients)]
    images = [binary.xor(terms, 1 << i) for i in range(width)]
    total = x
    for j, own in enumerate(bits):
        bit: Any = 0
        for i, image in enumerate(images):
            if image >> j & 1:
                bit = bit + bits[i] - 2 * bit * bits[i]
        total = total + (1 << j) * (bit - own)
    return total


def _parts(x: Any) -> set[Any]:
    """All expressions inside an expression."""
    from .. import expr

    found: set[Any] = set()
    pending = [x]
    while pending:
        part = pending.pop()
        if isinstance(part, tuple | dict):
            pending.extend(part)  # pyright: ignore[reportUnknownArgumentType]
        elif isinstance(part, expr.Expr) and part not in found:
            found.add(part)
            pending.extend(part.parts())
    return found
