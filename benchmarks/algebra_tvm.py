"""The algebra's rows on TVM TIRx's layouts; runs in the interpreter that has apache-tvm."""

from __future__ import annotations

import tvm
import tvm_ffi
from tvm.tirx.layout import ComposeLayout, S, TileLayout, laneid

from .algebra_on_m import FRAGMENT, SWIZZLED
from .algebra_rows import Recognizers
from .algebra_rows import rows as _rows
from .worker import Row

VERSION = f"apache-tvm {tvm.__version__}"


def rows() -> list[Row]:
    extents, strides = SWIZZLED
    swizzled = ComposeLayout(3, 3, 3, TileLayout(S[extents:strides]), True)
    recognizers = Recognizers(
        outer=TileLayout.is_tile_inner,
        inner=TileLayout.is_tile_outer,
        left=TileLayout.is_direct_sum_right,
        right=TileLayout.is_direct_sum_left,
    )
    extents_on_m, strides_on_m = FRAGMENT
    return [
        *_rows(S, TileLayout, laneid, tvm_ffi.structural_equal, tvm_ffi.structural_hash, recognizers),
        Row(
            "construct, on m",
            lambda n: [None] * n,
            lambda _: TileLayout(S[extents_on_m:strides_on_m]),
            lambda x: [int(x.apply(i)["m"]) for i in range(256)],
        ),
        Row(
            "swizzled layout, apply",
            lambda n: [i * 37 % 512 for i in range(1, n + 1)],
            lambda i: swizzled.apply(i),
            lambda x: int(x["m"]),
        ),
    ]
