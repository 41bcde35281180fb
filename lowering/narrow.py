"""Narrow element types in bytes and words: packing, containers, and rounding to them.

numpy holds one element a byte, whatever its width; memory and registers hold several.  The order is little-endian all
the way down: the element with the lower index sits in the lower bits (low nibble first), as in an mma's registers.
Elements come and go by value: an int8 array is never read as twice as many int4.  No layout and no instruction may
enter.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from tilelayout.errors import LayoutError

from .dtypes import DType, dtype

Word = Literal["uint8", "uint16", "uint32", "uint64"]
_WORDS = ("uint8", "uint16", "uint32", "uint64")
_CONTAINER_SHIFT = {
    "float4_e2m1fn": 2,
    "float6_e2m3fn": 0,
    "float6_e3m2fn": 0,
    "float8_e4m3fn": 0,
    "float8_e5m2": 0,
}
"""Where an element sits in the byte that ``kind::f8f6f4`` and ``kind::mxf8f6f4`` give it: 6 bits in bits 0 to 5, 4
bits in bits 2 to 5, zeros around them.
"""


def pack(array: Any, element: Any, axis: int = -1, word: Word = "uint8") -> Any:
    """Neighbors along an axis side by side in words, the first in the lowest bits.

    Arguments:
        array: values, of the element type or of any type if each of them is one of the element type's.
        element: the element type; its width must divide the word's, so 6-bit types are for `contain`.
        axis: its extent shrinks by ``bits of a word / bits of an element``, which must divide it.
        word: the numpy type of the words.

    Post-condition: ``unpack(pack(x, e, axis, word), e, axis) == x`` at every place.

    Errors: LayoutError for an extent that does not fill its words, for a width that does not divide, for a value that
    the element type doesn't have.

    >>> hex(pack([1, -2, 3, -4, 5, -6, 7, -8], "int4", word="uint32")[0])
    '0x87a5c3e1'
    >>> [hex(x) for x in pack([-2, -2, -2, -2], "int8", word="uint32")]
    ['0xfefefefe']
    """
    kind = dtype(element)
    per = _per_word(kind, word, "pack")
    codes = np.moveaxis(_codes(array, kind, "pack"), _axis(np.ndim(array), axis, "pack"), -1)
    if codes.shape[-1] % per:
        raise LayoutError(
            "pack",
            f"the extent {codes.shape[-1]} of axis {axis} is no multiple of {per},"
            f" the {kind.name} elements of a {word}",
            "pad it, or pack along another axis",
        )
    codes = codes.astype(word).reshape(*codes.shape[:-1], codes.shape[-1] // per, per)
    places = (np.arange(per) * kind.bits).astype(word)
    return np.moveaxis(np.bitwise_or.reduce(codes << places, axis=-1), -1, axis)


def unpack(words: Any, element: Any, axis: int = -1) -> Any:
    """The elements of words of unsigned integers, those in the lowest bits first, in the element type's numpy type.

    The axis grows by ``bits of a word / bits of an element``.  Errors: LayoutError for words that are not unsigned
    integers, and for a width that does not divide theirs.

    >>> unpack(np.array([0xE1, 0xC3], np.uint8), "int4").tolist()
    [1, -2, 3, -4]
    """
    kind, words = dtype(element), np.asarray(words)
    if words.dtype.name not in _WORDS:
        raise LayoutError("unpack", f"words are one of {', '.join(_WORDS)}, got {words.dtype}")
    per = _per_word(kind, words.dtype.name, "unpack")
    words = np.moveaxis(words, _axis(words.ndim, axis, "unpack"), -1)
    places = (np.arange(per) * kind.bits).astype(words.dtype)
    codes = words[..., None] >> places & words.dtype.type(2**kind.bits - 1)
    codes = codes.reshape(*words.shape[:-1], words.shape[-1] * per)
    return np.moveaxis(_values(codes, kind), -1, axis)


def contain(array: Any, element: Any) -> Any:
    """Each element in a byte of its own, uint8, as ``kind::f8f6f4`` and ``kind::mxf8f6f4`` take them.

    8-bit types fill the byte, 6-bit types its bits 0 to 5, and float4_e2m1fn its bits 2 to 5.

    Errors: LayoutError for a type that those instructions don't take, and for a value that it doesn't have.

    >>> [hex(x) for x in contain([1.0, -6.0], "float4_e2m1fn")]
    ['0x8', '0x3c']
    """
    kind = _contained(element, "contain")
    return _codes(array, kind, "contain").astype(np.uint8) << np.uint8(_CONTAINER_SHIFT[kind.name])


def uncontain(containers: Any, element: Any) -> Any:
    """The elements of `contain`'s bytes; the bits around an element are ignored.

    >>> uncontain(np.array([0x08, 0x3C], np.uint8), "float4_e2m1fn").tolist()
    [1.0, -6.0]
    """
    kind, containers = _contained(element, "uncontain"), np.asarray(containers)
    if containers.dtype != np.uint8:
        raise LayoutError("uncontain", f"a container is a uint8, got {containers.dtype}")
    codes = containers >> np.uint8(_CONTAINER_SHIFT[kind.name]) & np.uint8(2**kind.bits - 1)
    return _values(codes, kind)


def from_float(array: Any, element: Any, *, saturate: bool = False) -> Any:
    """Numbers rounded to the nearest of a type, ties to even, in its numpy type.

    What rounds to beyond the type's largest number is refused, or with `saturate` becomes the largest of its sign
    (``cvt.satfinite``), infinities too.  Without `saturate` an infinity stays one where the type has it.  NaN stays
    NaN where the type has it and is refused where not.  float8_e8m0fnu has powers of two only, and others are refused:
    whether a scale goes up or down is the caller's to say.

    Errors: LayoutError with the first value that is refused.

    >>> from_float([0.3, 5.0, -100.0], "float4_e2m1fn", saturate=True).tolist()
    [0.5, 4.0, -6.0]
    >>> from_float([2.5, -7.9], "int4").tolist()
    [2, -8]
    """
    kind, values = dtype(element), np.asarray(array, np.float64)
    low, high = _range(kind)
    rounded = _nearest(values, kind)
    if saturate:
        rounded = np.clip(rounded, low, high)
    allowed = (rounded >= low) & (rounded <= high)
    if not kind.is_integer:
        infinite, nothing = (kind.numpy.type(x).astype(np.float64) for x in (np.inf, np.nan))
        allowed |= np.isinf(values) & np.isinf(infinite) | np.isnan(rounded) & np.isnan(nothing)
    if kind.name == "float8_e8m0fnu":
        allowed &= (np.frexp(rounded)[0] == 0.5) | np.isnan(rounded)
    if not allowed.all():
        first = float(values[~allowed].flat[0])
        raise LayoutError(
            "from_float", f"{first!r} has no place in {kind.name} ({low:g} to {high:g})", _remedy(kind, first)
        )
    if low >= 0:
        rounded = np.abs(rounded)  # no sign, not even on zero
    with np.errstate(invalid="ignore"):
        return rounded.astype(kind.numpy)


def _nearest(values: Any, kind: DType) -> Any:
    """The nearest multiple of the type's last place, ties to even, as if the type had no largest number.

    Not ml_dtypes' own conversion, which goes from float64 through float32 for some types and so rounds twice.
    """
    import ml_dtypes

    if kind.is_integer:
        return np.rint(values)
    if kind.name in ("float64", "float8_e8m0fnu"):
        return values
    about = ml_dtypes.finfo(kind.numpy)
    fraction = 10 if kind.name == "tfloat32" else int(about.nmant)
    finite = np.where(np.isfinite(values), values, 0.0)
    place = np.ldexp(1.0, np.maximum(np.frexp(finite)[1] - 1, int(about.minexp)) - fraction)
    with np.errstate(over="ignore"):  # beyond float64 is beyond every other type
        return np.where(np.isfinite(values), np.rint(finite / place) * place, values)


def _remedy(kind: DType, value: float) -> str:
    if np.isnan(value):
        return "the type has no NaN"
    if kind.name == "float8_e8m0fnu":
        return "choose a power of two"
    return "scale the numbers, or convert them by lowering.narrow.from_float(..., saturate=True)"


def _range(kind: DType) -> tuple[float, float]:
    """The least and the largest finite value."""
    import ml_dtypes

    if kind.name == "uint1":
        return 0.0, 1.0
    if kind.is_integer:
        about = ml_dtypes.iinfo(kind.numpy)
        return float(int(about.min)), float(int(about.max))
    high = float(ml_dtypes.finfo(kind.numpy).max)
    if kind.name == "tfloat32":
        high = (2 - 2.0**-10) * 2.0**127
    if kind.name == "float8_e8m0fnu":
        return 2.0**-127, high
    return 0.0 if kind.name == "float8_ue4m3" else -high, high


def _per_word(kind: DType, word: str, operation: str) -> int:
    if word not in _WORDS:
        raise LayoutError(operation, f"a word is one of {', '.join(_WORDS)}, got {word!r}")
    per, rest = divmod(8 * np.dtype(word).itemsize, kind.bits)
    if rest or not per:
        remedy = "contain gives each element a byte" if kind.name in _CONTAINER_SHIFT else "take a wider word"
        raise LayoutError(operation, f"the {kind.bits} bits of {kind.name} don't divide a {word}", remedy)
    return per


def _axis(rank: int, axis: int, operation: str) -> int:
    if not -rank <= axis < rank:
        raise LayoutError(operation, f"axis {axis} of an array of rank {rank}")
    return axis


def _contained(element: Any, operation: str) -> DType:
    kind = dtype(element)
    if kind.name not in _CONTAINER_SHIFT:
        raise LayoutError(
            operation, f"{kind.name} has no byte container", f"one of {', '.join(_CONTAINER_SHIFT)}"
        )
    return kind


def _codes(array: Any, kind: DType, operation: str) -> Any:
    """The bits of each element, as unsigned integers of its numpy type's size."""
    given = np.asarray(array)
    held = given if given.dtype == kind.numpy else _cast(given, kind, operation)
    if not held.flags.c_contiguous:
        held = np.ascontiguousarray(held)
    codes = held.view(f"u{held.dtype.itemsize}")
    if kind.name == "float8_ue4m3" and (codes >> 7).any():
        raise LayoutError(operation, "a float8_ue4m3 has no sign, and one is set")
    return codes & codes.dtype.type(2**kind.bits - 1)


def _cast(given: Any, kind: DType, operation: str) -> Any:
    """By value, and only if no value changes."""
    if kind.is_integer:
        low, high = _range(kind)
        fits = (given >= low) & (given <= high) & (given == np.rint(np.asarray(given, np.float64)))
    else:
        with np.errstate(all="ignore"):
            back, there = given.astype(kind.numpy).astype(np.float64), np.asarray(given, np.float64)
        fits = (back == there) & (np.signbit(back) == np.signbit(there)) | np.isnan(back) & np.isnan(there)
    fits = np.asarray(fits)
    if not fits.all():
        raise LayoutError(
            operation, f"{given[~fits].flat[0]!r} is no {kind.name}", "from_float rounds numbers to a type"
        )
    return given.astype(kind.numpy)


def _values(codes: Any, kind: DType) -> Any:
    """Elements of those bits, in the element type's numpy type."""
    return np.ascontiguousarray(codes.astype(f"u{kind.numpy.itemsize}")).view(kind.numpy)
