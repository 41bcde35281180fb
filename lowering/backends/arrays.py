"""Arrays of a tile's elements: into its type, into bits, and into the memory that kernels read.

numpy holds one element a byte or more, whatever its width; a kernel's tensors are packed where a type is narrower than
a byte (see `program.Buffer`).  Registers may not enter.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilelayout import LayoutError

from .. import narrow
from ..dtypes import DType
from ..tile import Tile

_WIDE = ("float64", "float32", "float16", "bfloat16")
_ROUNDED_BY_NUMPY = ("float32", "float16", "bfloat16")


def as_operand(x: Any, tile: Tile, role: str, operation: str = "run") -> Any:
    """An array for a tile: of its shape, and of its type or one that converts.  Errors name role and operation.

    Floats may be of a wider type and are rounded once, to nearest even.  float32, float16 and bfloat16 round to
    infinity as IEEE 754 says; what 8-, 6- and 4-bit floats and tfloat32 don't reach is refused.  A tfloat32 tile takes
    float32 arrays as they are, since the instruction drops the low 13 bits.  Integers may be of any integer type (bool
    included) if every value is one of the tile's type.

    Errors: LayoutError for another shape, a type that would not convert so, or a value that has no place.
    """
    array = np.asarray(x)
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    if array.shape != tile.shape:
        raise LayoutError(operation, f"{role} has shape {array.shape}, tile {tile.name} has {tile.shape}")
    element = tile.element
    if array.dtype == element.numpy:
        return np.array(array, order="C")
    if element.is_integer and _is_integer(array.dtype):
        return _as_integers(array, tile, role, operation)
    wider = array.dtype.name in _WIDE and 8 * array.dtype.itemsize > element.bits
    if element.is_integer or not wider:
        remedy = "pass integers" if element.is_integer else _as_floats(array, element, role)
        raise LayoutError(
            operation, f"{role} has dtype {array.dtype}, tile {tile.name} holds {tile.dtype}", remedy
        )
    if element.name in _ROUNDED_BY_NUMPY:
        return round_to(array, element.numpy)
    try:
        return narrow.from_float(array, element)
    except LayoutError as error:
        raise LayoutError(operation, f"{role}: {error.rule}", error.remedy) from None


def _as_floats(array: Any, element: DType, role: str) -> str:
    """What to do with an array that is no float array of a type."""
    name = f"{element.numpy.type.__module__.partition('.')[0]}.{element.numpy.name}"
    carries = array.dtype.kind in "iu" or array.dtype.name.startswith("void")
    bits = carries and array.dtype.itemsize == element.numpy.itemsize
    viewed = f" ({role}.view({name}) of what holds bits)" if bits else ""
    return f"convert it to {name}{viewed}, or pass a wider float array"


def _is_integer(kind: Any) -> bool:
    return kind.kind in "iub" or kind.name in ("int4", "uint4", "int2", "uint2")


def _as_integers(array: Any, tile: Tile, role: str, operation: str) -> Any:
    """By value: nothing wraps."""
    import ml_dtypes

    element = tile.element
    low, high = 0, 1
    if element.name != "uint1":
        about = ml_dtypes.iinfo(element.numpy)
        low, high = int(about.min), int(about.max)
    values = array.astype(np.int8) if array.dtype.name in ("int4", "int2", "bool") else array
    values = values.astype(np.uint8) if array.dtype.name in ("uint4", "uint2") else values
    outside = (values < low) | (values > high)
    if outside.any():
        raise LayoutError(
            operation,
            f"{role} has {int(values[outside].flat[0])}, which is no {tile.dtype} ({low} to {high}) as tile "
            f"{tile.name} holds",
        )
    return np.ascontiguousarray(values.astype(element.numpy))


def round_to(array: Any, wanted: Any) -> Any:
    """Round a float array once, to nearest even.

    float64 reaches bfloat16 through float32, so the first step rounds to odd: then the second decides as if it saw
    all bits.  (Boldo and Melquiond, "When double rounding is odd".)
    """
    with np.errstate(over="ignore", invalid="ignore"):
        if array.dtype != np.float64 or wanted.name != "bfloat16":
            return array.astype(wanted)
        single = array.astype(np.float32)
        inexact = np.isfinite(array) & np.isfinite(single) & (single.astype(np.float64) != array)
        away = inexact & (np.abs(single.astype(np.float64)) > np.abs(array))
        bits = single.view(np.uint32)
        bits = np.where(away, bits - np.uint32(1), bits)
        bits = np.where(inexact, bits | np.uint32(1), bits)
        return bits.view(np.float32).astype(wanted)


# --- bits ---------------------------------------------------------------------------------------


def to_bits(array: Any, element: DType) -> Any:
    """The bits of each element, as unsigned integers of its numpy type's size.

    >>> from lowering.dtypes import dtype
    >>> int4 = dtype("int4")
    >>> to_bits(np.array([-1, 7], int4.numpy), int4).tolist()
    [15, 7]
    """
    held = np.ascontiguousarray(array, element.numpy)
    codes = held.view(f"u{held.dtype.itemsize}")
    return codes if element.bits == 8 * held.dtype.itemsize else codes & codes.dtype.type(2**element.bits - 1)


def from_bits(codes: Any, element: DType) -> Any:
    """Elements of those bits, in the element type's numpy type."""
    return np.ascontiguousarray(codes.astype(f"u{element.numpy.itemsize}")).view(element.numpy)


# --- memory -------------------------------------------------------------------------------------


def to_memory(array: Any, element: DType, container: int) -> Any:
    """An array as a kernel's tensor holds it, `container` bits an element: packed along the last dimension, or a byte
    for each where the type is narrower; otherwise as it is.

    Errors: LayoutError for packed rows that are no whole bytes.
    """
    if container < 8:
        return narrow.pack(array, element)
    if container > element.bits:
        return narrow.contain(array, element)
    return np.ascontiguousarray(array, element.numpy)


def from_memory(held: Any, element: DType, container: int) -> Any:
    """The reverse of `to_memory`."""
    if container < 8:
        return narrow.unpack(held, element)
    if container > element.bits:
        return narrow.uncontain(held, element)
    return held


def blank(shape: tuple[int, ...], element: DType) -> Any:
    """What holds nothing: all bits 1, a NaN in the float types that have one and -1 in signed integers."""
    return from_bits(np.full(shape, 2**element.bits - 1, f"u{element.numpy.itemsize}"), element)


__all__ = ["as_operand", "blank", "from_bits", "from_memory", "round_to", "to_bits", "to_memory"]
