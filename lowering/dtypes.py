"""Element types by name: width, the name that PTX gives them, the numpy type that carries them.

Names are numpy's and ml_dtypes'.  No layout and no instruction may enter.
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
    """An element type: `bits` wide, `ptx` in instruction names."""

    name: str
    bits: int
    ptx: str

    @property
    def numpy(self) -> np.dtype[Any]:
        """The numpy dtype (from ml_dtypes where numpy has none)."""
        return _numpy(self.name)


DTYPES = {
    d.name: d
    for d in (
        DType("float64", 64, "f64"),
        DType("float32", 32, "f32"),
        DType("float16", 16, "f16"),
        DType("bfloat16", 16, "bf16"),
        DType("int32", 32, "s32"),
        DType("uint32", 32, "u32"),
        DType("int16", 16, "s16"),
        DType("uint16", 16, "u16"),
        DType("int8", 8, "s8"),
        DType("uint8", 8, "u8"),
        DType("float8_e4m3fn", 8, "e4m3"),
        DType("float8_e5m2", 8, "e5m2"),
    )
}


def dtype(name: Any) -> DType:
    """The element type of that name, of a numpy dtype, or of a numpy scalar type.

    Errors: LayoutError for one that is not known, with the nearest.
    """
    if isinstance(name, DType):
        return name
    text = name if isinstance(name, str) else getattr(name, "name", None) or getattr(name, "__name__", None)
    if not isinstance(text, str) or text not in DTYPES:
        raise LayoutError("dtype", f"unknown element type {name!r}", nearest(str(text), list(DTYPES)))
    return DTYPES[text]


@cache
def _numpy(name: str) -> np.dtype[Any]:
    import numpy as np

    if hasattr(np, name):
        return np.dtype(name)
    import ml_dtypes

    return np.dtype(getattr(ml_dtypes, name))
