"""TVM's lowering of the same gemms, its pass LowerTIRx; runs in the interpreter that has apache-tvm.

The program is the article's demonstration without its loads and stores, so that little but the gemm is lowered.
"""

from __future__ import annotations

import re
from functools import partial
from math import prod
from typing import Any

import tvm
from tvm.script import tirx as Tx  # noqa: N812 - the name that TVM's parser knows it by
from tvm.tirx.layout import S, TileLayout, laneid

from .worker import Row

VERSION = f"apache-tvm {tvm.__version__}"

D_FRAG = TileLayout(S[(2, 8, 4, 2) : (2, 4 @ laneid, 1 @ laneid, 1)])
A_FRAG = D_FRAG.tile_to([16, 16], [16, 8])
B_FRAG = TileLayout(S[(4, 2, 8) : (1 @ laneid, 1, 4 @ laneid)]).tile_to([16, 8], [8, 8])


def rows() -> list[Row]:
    target = tvm.target.Target({"kind": "cuda", "arch": "sm_80"})
    lowering = tvm.tirx.transform.LowerTIRx()

    def lower(module: Any) -> Any:
        with target:
            return lowering(module)

    def mmas(module: Any) -> int:
        """How many mma there are: the one in the text, as often as the loops around it are unrolled."""
        script = module.script()
        turns = re.findall(r"for [mnk] in T\.unroll\((\d+)\)", script)
        return script.count("T.ptx.mma(") * prod(int(n) for n in turns)

    out: list[Row] = []
    for atoms in ((1, 1, 1), (4, 8, 4)):
        module = program(*atoms)
        out.append(
            Row(f"lower ({', '.join(map(str, atoms))}, 16)", partial(repeated, module), lower, mmas, calls=5)
        )
    return out


def repeated(module: Any, n: int) -> list[Any]:
    """A pass leaves its module as it is and keeps nothing."""
    return [module] * n


def program(mt: int, nt: int, kt: int) -> Any:
    """One warp, ``D = A @ B`` of so many atoms, as an IRModule."""
    m, n, k = 16 * mt, 8 * nt, 16 * kt
    a_layout, b_layout = A_FRAG.tile_to([m, k], [16, 16]), B_FRAG.tile_to([k, n], [16, 8])
    d_layout = D_FRAG.tile_to([m, n], [16, 8])

    @Tx.prim_func
    def gemm() -> None:
        Tx.device_entry()
        Tx.cta_id([1])
        Tx.warp_id([1])
        Tx.lane_id([32])
        A = Tx.alloc_buffer((m, k), "float16", scope="local", layout=a_layout)
        B = Tx.alloc_buffer((k, n), "float16", scope="local", layout=b_layout)
        D = Tx.alloc_buffer((m, n), "float32", scope="local", layout=d_layout)
        Tx.tile.warp.gemm(D, A, B, D, transpose_A=False, transpose_B=False, alpha=1.0, beta=0.0)

    return tvm.IRModule({"main": gemm})
