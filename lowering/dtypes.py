"""Element types by name: width, the name that PTX gives them, the numpy type that carries them.

Names are numpy's and ml_dtypes', with three of our own where neither has the type.  No layout and no instruction may
enter.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from tilelayout.errors import LayoutError, nearest

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class DType:
    """An element type.

    Attributes:
        name: as numpy or ml_dtypes have it; "tfloat32", "float8_ue4m3" and "uint1" are ours.
        bits: width of the value.  In numpy, elements narrower than a byte take a byte each.
        ptx: its name in PTX.
        carrier: the numpy type that holds its values, where that has another name.
    """

    name: str
    bits: int
    ptx: str
    carrier: str = ""

    @property
    def numpy(self) -> np.dtype[Any]:
        """The numpy dtype (from ml_dtypes where numpy has none)."""
        return _numpy(self.carrier or self.name)

    @property
    def is_integer(self) -> bool:
        """Whether its values are integers, one bit included."""
        return self.name.startswith(("int", "uint"))


DTYPES = {
    d.name: d
    for d in (
        DType("float64", 64, "f64"),
        DType("float32", 32, "f32"),
        # A float32 of which the tensor cores drop the low 13 bits: a type of its own, so that nobody loses them
        # unawares.
        DType("tfloat32", 32, "tf32", carrier="float32"),
        DType("float16", 16, "f16"),
        DType("bfloat16", 16, "bf16"),
        DType("uint64", 64, "b64"),  # what a barrier in shared memory takes; nothing is computed with it
        DType("int32", 32, "s32"),
        DType("uint32", 32, "u32"),
        DType("int16", 16, "s16"),
        DType("uint16", 16, "u16"),
        DType("int8", 8, "s8"),
        DType("uint8", 8, "u8"),
        DType("int4", 4, "s4"),
        DType("uint4", 4, "u4"),
        DType("uint1", 1, "b1", carrier="bool"),
        DType("float8_e4m3fn", 8, "e4m3"),
        DType("float8_e5m2", 8, "e5m2"),
        DType("float6_e3m2fn", 6, "e3m2"),
        DType("float6_e2m3fn", 6, "e2m3"),
        DType("float4_e2m1fn", 4, "e2m1"),
        # Scale factors of the block-scaled types: no sign.
        DType("float8_e8m0fnu", 8, "ue8m0"),
        DType("float8_ue4m3", 8, "ue4m3", carrier="float8_e4m3fn"),
    )
}


def dtype(name: Any) -> DType:
    """The element type of that name, of a numpy dtype, or of a numpy scalar type; numpy's bool is "uint1".

    Errors: LayoutError for one that is not known, with the nearest.

    >>> dtype("float16").ptx, dtype("int4").bits, dtype("tfloat32").numpy.name
    ('f16', 4, 'float32')
    """
    if isinstance(name, DType):
        return name
    text = name if isinstance(name, str) else getattr(name, "name", None) or getattr(name, "__name__", None)
    text = "uint1" if text in ("bool", "bool_") else text
    if not isinstance(text, str) or text not in DTYPES:
        raise LayoutError("dtype", f"unknown element type {name!r}", _nearest(str(text)))
    return DTYPES[text]


def _nearest(text: str) -> str:
    """The remedy for an unknown name: PTX's names and beginnings of ours are surer than resemblance."""
    by_ptx = {d.ptx: d.name for d in DTYPES.values()}
    if text.lower() in by_ptx:
        return f"did you mean {by_ptx[text.lower()]!r}? PTX's name for it is {text.lower()}"
    longer = [name for name in DTYPES if text and name.startswith(text.lower())]
    return f"did you mean {longer[0]!r}?" if len(longer) == 1 else nearest(text, list(DTYPES))


@cache
def _numpy(name: str) -> np.dtype[Any]:
    import numpy as np

    if hasattr(np, name):
        return np.dtype(name)
    import ml_dtypes

    return np.dtype(getattr(ml_dtypes, name))
