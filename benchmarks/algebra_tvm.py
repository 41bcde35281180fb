"""The algebra's rows on TVM TIRx's layouts; runs in the interpreter that has apache-tvm."""

from __future__ import annotations

import tvm
import tvm_ffi
from tvm.tirx.layout import S, TileLayout, laneid

from .algebra_rows import rows as _rows
from .worker import Row

VERSION = f"apache-tvm {tvm.__version__}"


def rows() -> list[Row]:
    return _rows(S, TileLayout, laneid, tvm_ffi.structural_equal, tvm_ffi.structural_hash)
