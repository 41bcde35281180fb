"""Conversions between f32 registers, one number each, and registers of any element type.

A *packing* makes one register of the numbers that share it, low bits first; an *unpacking* is the reverse.  Rounding
is to nearest even, of tfloat32 to nearest with ties away from zero, as ``cvt.rna`` has it.  Beyond the largest number
float16, bfloat16 and tfloat32 become infinite; 8-bit floats and integers become the largest of their sign, and a NaN
becomes the integer 0.  Of a NaN tfloat32 keeps the upper bits, as ``mma`` does that reads it: one whose payload is in
the lower 13 bits alone becomes infinite (ptxas 13.0 for sm_80 to sm_120; seen on an H200).  Source: PTX ISA, "Data
Movement and Conversion Instructions: cvt".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilelayout import LayoutError

from ..dtypes import dtype
from ..target import Target
from .arithmetic import numbers, words_of
from .elements import pack, to_numbers, unpack
from .move import COPY
from .record import Instruction, Kind, Operand

_CVT = "Data Movement and Conversion Instructions: cvt"
_NAN = {
    "float16": 0x7FFF,
    "bfloat16": 0x7FFF,
    "float8_e4m3fn": 0x7F,
    "float8_e5m2": 0x7F,
}
"""The bits of the NaN that a conversion to the type gives."""

KINDS: dict[str, Kind] = {"float32": "f32", "float64": "f64"}
"""Element type -> class of the registers that hold it, b32 for all others."""


def to_element(values: Any, element: str) -> Any:
    """float32 numbers as the bits of an element type, uint64, rounded as the conversion rounds them.

    >>> import numpy as np
    >>> [hex(x) for x in to_element(np.array([1.0, 1e9, np.nan], np.float32), "float16").tolist()]
    ['0x3c00', '0x7c00', '0x7fff']
    >>> to_element(np.array([2.5, -1e9, np.nan], np.float32), "int8").astype(np.int8).tolist()
    [2, -128, 0]
    """
    import numpy as np

    from ..narrow import from_float

    kind, values = dtype(element), np.asarray(values, np.float32)
    missing = np.isnan(values)
    clean = np.where(missing, np.float32(0), values)
    with np.errstate(over="ignore"):
        if element == "tfloat32":
            return _half_away(values).astype(np.uint64)
        if element in ("float16", "bfloat16"):
            bits = clean.astype(kind.numpy).view(np.uint16)
        elif element == "float64":
            return np.asarray(values, np.float64).view(np.uint64)
        else:
            found = from_float(clean, element, saturate=True)
            bits = found.view(f"u{found.dtype.itemsize}")
    return np.where(missing, np.uint64(_NAN.get(element, 0)), bits.astype(np.uint64))


def _half_away(values: Any) -> Any:
    """The bits of float32 numbers with 13 bits less, ties away from zero; of what is not finite they are cut off."""
    import numpy as np

    bits = values.view(np.uint32)
    rounded = np.where(np.isfinite(values), bits + np.uint32(0x1000), bits)
    return rounded & np.uint32(0xFFFFE000)


def _packing(name: str, template: str, element: str, sm: int, ptx: tuple[int, int]) -> Instruction:
    kind = KINDS.get(element, "b32")
    container = dtype(element).bits
    names = [f"x{i}" for i in range(max(1, 32 // container))]

    def meaning(values: Mapping[str, Any]) -> dict[str, Any]:
        import numpy as np

        given = np.concatenate([numbers(values[n], "f32") for n in names], axis=-1)
        return {"d": pack(to_element(given, element), element, container)}

    operands = (Operand("d", 1, kind, "write"), *[Operand(n, 1, "f32", "read") for n in names])
    return Instruction(name, template, operands, sm, ptx, _CVT, meaning)


def _unpacking(name: str, template: str, element: str, sm: int, ptx: tuple[int, int]) -> Instruction:
    kind = KINDS.get(element, "b32")
    container = dtype(element).bits
    names = [f"d{i}" for i in range(max(1, 32 // container))]

    def meaning(values: Mapping[str, Any]) -> dict[str, Any]:
        import numpy as np

        with np.errstate(over="ignore", invalid="ignore"):  # a signaling NaN becomes a quiet one
            found = to_numbers(unpack(values["a"], element, container), element).astype(np.float32)
        words = _exact_words(found) if dtype(element).bits < 32 else words_of(found, "f32")
        return {n: words[..., i : i + 1] for i, n in enumerate(names)}

    operands = (*[Operand(n, 1, "f32", "write") for n in names], Operand("a", 1, kind, "read"))
    return Instruction(name, template, operands, sm, ptx, _CVT, meaning)


def _exact_words(values: Any) -> Any:
    """Numbers that widening gave, as they are: a NaN keeps its payload."""
    import numpy as np

    return np.ascontiguousarray(values, np.float32).view(np.uint32)


# --- texts --------------------------------------------------------------------------------------

_HALVES = "{{ .reg .b16 low, high; "
_JOIN = "mov.b32 {d}, {{low, high}}; }}"
_SPLIT = "mov.b32 {{low, high}}, {a}; "


def _bytes_of_floats(ptx: str) -> str:
    two = f"cvt.rn.satfinite.{ptx}x2.f32"
    return f"{_HALVES}{two} low, {{x1}}, {{x0}}; {two} high, {{x3}}, {{x2}}; {_JOIN}"


def _floats_of_bytes(ptx: str) -> str:
    two = f"cvt.rn.f16x2.{ptx}x2"
    text = "{{ .reg .b16 low, high, p0, p1; .reg .b32 x; " + _SPLIT
    for half, first in (("low", 0), ("high", 2)):
        text += f"{two} x, {half}; mov.b32 {{{{p0, p1}}}}, x; "
        text += f"cvt.f32.f16 {{d{first}}}, p0; cvt.f32.f16 {{d{first + 1}}}, p1; "
    return text + "}}"


def _bytes_of_integers(ptx: str) -> str:
    one = f"cvt.rni.sat.{ptx}.f32"
    text = f"{{{{ .reg .b32 x, y; {one} x, {{x0}}; "
    for i in (1, 2, 3):
        text += f"{one} y, {{x{i}}}; bfi.b32 {'x' if i < 3 else '{d}'}, y, x, {8 * i}, {32 - 8 * i}; "
    return text + "}}"


def _integers_of_bytes(ptx: str) -> str:
    text = "{{ .reg .b32 x; "
    for i in range(4):
        text += f"shr.u32 x, {{a}}, {8 * i}; cvt.rn.f32.{ptx} {{d{i}}}, x; "
    return text + "}}"


PACK: dict[str, tuple[Instruction, ...]] = {
    "float32": (COPY["f32"],),
    "float64": (_packing("pack.float64", "cvt.f64.f32 {d}, {x0};", "float64", 75, (6, 3)),),
    "tfloat32": (_packing("pack.tfloat32", "cvt.rna.tf32.f32 {d}, {x0};", "tfloat32", 80, (7, 0)),),
    "float16": (
        _packing("pack.float16", "cvt.rn.f16x2.f32 {d}, {x1}, {x0};", "float16", 80, (7, 0)),
        _packing(
            "pack.float16.each",
            f"{_HALVES}cvt.rn.f16.f32 low, {{x0}}; cvt.rn.f16.f32 high, {{x1}}; {_JOIN}",
            "float16", 75, (6, 3),
        ),
    ),
    "bfloat16": (_packing("pack.bfloat16", "cvt.rn.bf16x2.f32 {d}, {x1}, {x0};", "bfloat16", 80, (7, 0)),),
    "float8_e4m3fn": (
        _packing("pack.float8_e4m3fn", _bytes_of_floats("e4m3"), "float8_e4m3fn", 89, (8, 1)),
    ),
    "float8_e5m2": (_packing("pack.float8_e5m2", _bytes_of_floats("e5m2"), "float8_e5m2", 89, (8, 1)),),
    "int32": (_packing("pack.int32", "cvt.rni.s32.f32 {d}, {x0};", "int32", 75, (6, 3)),),
    "int8": (_packing("pack.int8", _bytes_of_integers("s8"), "int8", 75, (6, 3)),),
    "uint8": (_packing("pack.uint8", _bytes_of_integers("u8"), "uint8", 75, (6, 3)),),
}  # fmt: skip
"""Element type -> instructions that make a register of it from the f32 numbers in it, the best first: ``d`` from
``x0``, ``x1`` ... (of float32, which is copied, from ``a``).
"""

UNPACK: dict[str, tuple[Instruction, ...]] = {
    "float32": (COPY["f32"],),
    "float64": (_unpacking("unpack.float64", "cvt.rn.f32.f64 {d0}, {a};", "float64", 75, (6, 3)),),
    "tfloat32": (
        _unpacking("unpack.tfloat32", "and.b32 {d0}, {a}, 0xffffe000;", "tfloat32", 75, (6, 3)),
    ),
    "float16": (
        _unpacking(
            "unpack.float16",
            f"{_HALVES}{_SPLIT}cvt.f32.f16 {{d0}}, low; cvt.f32.f16 {{d1}}, high; }}}}",
            "float16", 75, (6, 3),
        ),
    ),
    "bfloat16": (
        _unpacking(
            "unpack.bfloat16", "{{ shl.b32 {d0}, {a}, 16; and.b32 {d1}, {a}, 0xffff0000; }}",
            "bfloat16", 75, (6, 3),
        ),
    ),
    "float8_e4m3fn": (
        _unpacking("unpack.float8_e4m3fn", _floats_of_bytes("e4m3"), "float8_e4m3fn", 89, (8, 1)),
    ),
    "float8_e5m2": (
        _unpacking("unpack.float8_e5m2", _floats_of_bytes("e5m2"), "float8_e5m2", 89, (8, 1)),
    ),
    "int32": (_unpacking("unpack.int32", "cvt.rn.f32.s32 {d0}, {a};", "int32", 75, (6, 3)),),
    "int8": (_unpacking("unpack.int8", _integers_of_bytes("s8"), "int8", 75, (6, 3)),),
    "uint8": (_unpacking("unpack.uint8", _integers_of_bytes("u8"), "uint8", 75, (6, 3)),),
}  # fmt: skip
"""Element type -> instructions that take the numbers of a register apart: ``d0``, ``d1`` ... from ``a`` (of float32,
which is copied, ``d``).
"""


def _wide(values: Mapping[str, Any]) -> dict[str, Any]:
    import numpy as np

    return {"d": words_of(np.asarray(values["a"], np.uint32).view(np.int32).astype(np.float64), "f64")}


INT32_TO_FLOAT64 = Instruction(
    "unpack.int32.f64",
    "cvt.rn.f64.s32 {d}, {a};",
    (Operand("d", 1, "f64", "write"), Operand("a", 1, "b32", "read")),
    75,
    (6, 3),
    _CVT,
    _wide,
)
"""An int32 as a float64, exactly."""


def _whole(values: Mapping[str, Any]) -> dict[str, Any]:
    import numpy as np

    x = numbers(values["a"], "f64")
    missing = np.isnan(x)
    clamped = np.clip(np.rint(np.where(missing, 0.0, x)), -(2.0**31), 2.0**31 - 1)
    found = np.where(missing, np.int64(-(2**31)), clamped.astype(np.int64))
    return {"d": (found & 0xFFFFFFFF).astype(np.uint32)}


FLOAT64_TO_INT32 = Instruction(
    "pack.int32.f64",
    "cvt.rni.s32.f64 {d}, {a};",
    (Operand("d", 1, "b32", "write"), Operand("a", 1, "f64", "read")),
    75,
    (6, 3),
    _CVT,
    _whole,
)
"""The int32 nearest to a float64, halves to even, beyond the range its end; of a NaN the least."""


def packing(element: str, target: Target) -> Instruction:
    """The best instruction of `PACK` that the target has.

    Errors: LayoutError for an element type that no instruction makes, and, with the reason, for one that the target
    lacks.

    >>> from lowering.target import target
    >>> packing("float16", target("sm_75")).name, packing("float16", target("sm_80")).name
    ('pack.float16.each', 'pack.float16')
    """
    return _chosen(PACK, "packing", element, target)


def unpacking(element: str, target: Target) -> Instruction:
    """The best instruction of `UNPACK` that the target has; errors as of `packing`."""
    return _chosen(UNPACK, "unpacking", element, target)


def _chosen(
    table: Mapping[str, tuple[Instruction, ...]], what: str, element: str, target: Target
) -> Instruction:
    found = table.get(element)
    if found is None:
        raise LayoutError(what, f"nothing converts f32 and {element}", f"there are {', '.join(table)}")
    refusals = [i.refusal(target) for i in found]
    for i, refusal in zip(found, refusals, strict=True):
        if not refusal:
            return i
    raise LayoutError(what, f"{found[-1].name} ({element}) {refusals[-1]}")


__all__ = [
    "FLOAT64_TO_INT32",
    "INT32_TO_FLOAT64",
    "KINDS",
    "PACK",
    "UNPACK",
    "packing",
    "to_element",
    "unpacking",
]
