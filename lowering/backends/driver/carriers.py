"""Which array types carry which element types.  Pure tables: no array and no driver may enter."""

from __future__ import annotations

from functools import cache

from tilelayout import LayoutError

from ...dtypes import DTYPES, dtype

_BITS = {16: ("uint16", "int16", "void16"), 8: ("uint8", "int8", "void8")}
_BYTES = {"bool": 1, "int64": 8, "uint64": 8, "complex64": 8, "complex128": 16, "float4_e2m1fn_x2": 1}


@cache
def carriers(name: str) -> tuple[str, ...]:
    """The names of the array types that are taken for an element type, its own first.

    Array libraries know float64, float32, float16 and the integers of whole bytes: these are carried by themselves
    alone.  bfloat16 and the floats of 8 bits also come as integers, or raw bytes, of their width: their bits.  Types of
    fewer bits come in bytes, several to one or one each, as the kernel's buffer has them.

    >>> carriers("float16"), carriers("bfloat16"), carriers("int4")
    (('float16',), ('bfloat16', 'uint16', 'int16', 'void16'), ('uint8', 'int8', 'void8'))
    """
    d = dtype(name)
    if d.name == "tfloat32":
        return ("tfloat32", "float32")
    if d.bits < 8:
        packed = ("float4_e2m1fn_x2",) if d.name == "float4_e2m1fn" else ()
        return (*_BITS[8], *packed)
    if d.name == "bfloat16":
        return (d.name, *_BITS[16])
    if d.bits == 8 and not d.is_integer:
        same = (d.carrier,) if d.carrier else ()
        return (d.name, *same, *_BITS[8])
    return (d.name,)


def taken_as(found: str, wanted: str | None, role: str) -> str:
    """The element type that an array of type `found` has for a kernel that wants `wanted` (None: any, its own).

    Errors: LayoutError for a type that does not carry it, and where none is wanted for one that is no element type.

    >>> taken_as("uint16", "bfloat16", "A"), taken_as("float8_e5m2", None, "A")
    ('bfloat16', 'float8_e5m2')
    """
    if wanted is None:
        if found in DTYPES:
            return found
        raise LayoutError("launch", f"{role} has elements of {found}, which is no element type of a kernel",
                          "say dtype= for an array that carries bits" if found.startswith("void")
                          else f"known: {', '.join(DTYPES)}")  # fmt: skip
    if found in carriers(wanted):
        return wanted
    accepted = " or ".join(x for x in carriers(wanted) if not x.startswith("void"))
    raise LayoutError(
        "launch", f"{role} has elements of {found}, the kernel takes {wanted}", f"pass {accepted}"
    )


def width_of(name: str) -> int:
    """Bytes of an element of an array of that type.

    >>> width_of("bfloat16"), width_of("int8"), width_of("void16"), width_of("bool")
    (2, 1, 2, 1)
    """
    if name in DTYPES:
        return max(1, DTYPES[name].bits // 8)
    return int(name[4:]) // 8 if name.startswith("void") else _BYTES[name]


def is_known(name: str) -> bool:
    """Whether `width_of` knows the type."""
    return name in DTYPES or name in _BYTES or (name.startswith("void") and name[4:].isdigit())
