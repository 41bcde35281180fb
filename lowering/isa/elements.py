"""Elements in 32-bit registers: containers of bits, and the numbers that the bits stand for.

A register is cut into *containers* of equal width, low bits first.  A container is as wide as its element, except under
``kind::f8f6f4`` and ``kind::mxf8f6f4``, where 6- and 4-bit elements sit in bytes: a 6-bit element in the low bits, a
4-bit element in the middle (bits 2 to 5).  Sources: PTX ISA, "Warp Level Matrix Instructions: mma"; CUTLASS, the note
on 4-bit operands in ``mma_traits_sm120.hpp``.
"""

from __future__ import annotations

from typing import Any

from tilelayout.errors import LayoutError

from ..dtypes import dtype


def shift_within(element: str, container: int) -> int:
    """The lowest bit of an element's bits in its container.

    Errors: LayoutError for a container that no element of that type is kept in.

    >>> shift_within("float4_e2m1fn", 8), shift_within("float4_e2m1fn", 4), shift_within("float6_e3m2fn", 8)
    (2, 0, 0)
    """
    kind = dtype(element)
    if container == kind.bits:
        return 0
    if container == 8 and kind.ptx in ("e3m2", "e2m3"):
        return 0
    if container == 8 and kind.ptx == "e2m1":
        return 2
    raise LayoutError("registers", f"no {element} is kept in {container} bits", f"{kind.bits} bits hold it")


def unpack(words: Any, element: str, container: int) -> Any:
    """Registers to elements: uint32 ``[..., words]`` -> bits of elements, uint64 ``[..., 32 * words // container]``.

    >>> import numpy as np
    >>> unpack(np.array([0x87A5C3E1], np.uint32), "int4", 4).tolist()
    [1, 14, 3, 12, 5, 10, 7, 8]
    """
    import numpy as np

    kind, shift = dtype(element), shift_within(element, container)
    words = np.ascontiguousarray(words, np.uint32)
    if container == 64:
        return words.view(np.uint64)
    places = np.arange(32 // container, dtype=np.uint32) * np.uint32(container) + np.uint32(shift)
    found = words[..., None] >> places & np.uint32((1 << kind.bits) - 1)
    return found.reshape(*words.shape[:-1], -1).astype(np.uint64)


def pack(bits: Any, element: str, container: int) -> Any:
    """Elements to registers, the inverse of `unpack`; bits of a container around its element are zero.

    >>> import numpy as np
    >>> [hex(x) for x in pack(np.array([1, 2, 3, 15]), "float4_e2m1fn", 8)]
    ['0x3c0c0804']
    """
    import numpy as np

    kind, shift = dtype(element), shift_within(element, container)
    bits = np.ascontiguousarray(bits).astype(np.uint64)
    if container == 64:
        return bits.view(np.uint32)
    places = np.arange(32 // container, dtype=np.uint64) * np.uint64(container) + np.uint64(shift)
    parts = (bits & np.uint64((1 << kind.bits) - 1)).reshape(*bits.shape[:-1], -1, 32 // container) << places
    return np.bitwise_or.reduce(parts, axis=-1).astype(np.uint32)


def to_numbers(bits: Any, element: str) -> Any:
    """The numbers that bits stand for, exactly, as float64.

    Of a tfloat32 the low 13 bits are dropped, as hardware does it: a NaN that has nothing else becomes an infinity.  Of
    a float8_ue4m3 the top bit is dropped.  A float64 keeps its bits, whatever they are.
    """
    import numpy as np

    kind = dtype(element)
    bits = np.asarray(bits, np.uint64)
    if kind.is_integer:
        numbers = bits.astype(np.int64)
        if kind.ptx.startswith("s"):
            numbers = np.where(numbers >> (kind.bits - 1), numbers - (1 << kind.bits), numbers)
        return numbers.astype(np.float64)
    if element == "float8_ue4m3":
        bits = bits & np.uint64(0x7F)
    if element == "tfloat32":
        bits = bits & np.uint64(0xFFFFE000)
    with np.errstate(invalid="ignore"):  # a signaling NaN becomes a quiet one
        return bits.astype(f"u{kind.numpy.itemsize}").view(kind.numpy).astype(np.float64)
