"""Where the clocks of a kernel go, warp by warp: `python -m benchmarks.gemm_clocks "s8 4096" [CONFIG ...]`

For whoever asks what to speed up.  A copy of the kernel's PTX notes the clock of its multiprocessor when a multiplying
warp begins a tile, has its products, and has stored it; what a launch in a burst wrote is put into a table.  *Slots* is
what the products take at least, one m16n8k16 every 6 cycles in each quarter of a multiprocessor, over what they took;
*apart* is what lies between the first warp of a CTA to have its products and the last.  Needs torch and a GPU.
"""

from __future__ import annotations

import ctypes
import json
import re
import sys
from typing import Any

from .gemm_probe import parts_of_module

By = dict[str, Any]
NAME = "tilelayout_clocks"
MARKS, TILES = 3, 16
"""Of a tile; and tiles of a CTA that are noted, the first ones."""
BEGUN, MULTIPLIED, STORED = range(MARKS)
_NEXT_TILE = re.compile(r"setp\.lt\.s32 (%p\d+), %tile, %tiles;\n\s*@\1 bra (LOOP_\d+);")
_LOOP_ENDS = re.compile(r"@%p\d+ bra LOOP_\d+;\n\s*END_\d+:\n")
_ADVANCE = re.compile(r"^\s*cvt\.u64\.u32 (%rd\d+), %ctas;\n", re.MULTILINE)


def marked(ptx: str, warps: int, ctas: int) -> str:
    """The module of one kernel whose multiplying warps, so many in each CTA, note their clocks.

    Errors: ValueError for text in which no loop over tiles has one over K within: that of threads which do everything.
    """
    turns = list(_NEXT_TILE.finditer(ptx))
    if len(turns) < 2:  # the feeders' is the first
        raise ValueError("a kernel whose warps multiply or feed has two loops over tiles, this one has not")
    label = f"{turns[-1][2]}:\n"
    begin = ptx.index(label) + len(label)
    inner = _LOOP_ENDS.search(ptx, begin, turns[-1].start())
    advance = list(_ADVANCE.finditer(ptx, begin, turns[-1].start()))
    if inner is None or not advance:
        raise ValueError("no loop over K within that over tiles")
    head, entry, _ = parts_of_module(ptx)
    added = [
        (len(head), f".visible .global .align 8 .b64 {NAME}[{ctas * warps * TILES * MARKS}];\n"),
        (len(head + entry), "    .reg .b32 %noted;\n    mov.b32 %noted, 0;\n"),
        (begin, _mark(BEGUN, warps)),
        (inner.end(), _mark(MULTIPLIED, warps)),
        (advance[-1].start(), _mark(STORED, warps) + "add.u32 %noted, %noted, 1;\n"),
    ]
    for at, text in reversed(added):
        ptx = ptx[:at] + text + ptx[at:]
    return ptx


def _mark(which: int, warps: int) -> str:
    """Lane 0 of a warp writes the clock down."""
    return f"""{{ .reg .b64 clock, at, begin; .reg .b32 i; .reg .pred one;
mov.u64 clock, %clock64;
setp.eq.u32 one, %lane, 0;
setp.lt.and.u32 one, %noted, {TILES}, one;
mad.lo.u32 i, %cta, {warps}, %warp;
mad.lo.u32 i, i, {TILES}, %noted;
mad.lo.u32 i, i, {MARKS}, {which};
mov.u64 begin, {NAME};
mad.wide.u32 at, i, 8, begin;
@one st.global.u64 [at], clock; }}
"""


def summary(clocks: Any, least: float) -> By:
    """What the clocks say: medians over CTAs and warps, tile by tile.

    Args:
        clocks: ``[CTAs, warps, TILES, MARKS]``, 0 where nothing was written.
        least: clocks that the products of a tile take at the least.
    """
    import numpy as np

    noted = np.where(clocks == 0, np.nan, clocks.astype(float))
    noted = noted[:, :, ~np.isnan(noted[..., BEGUN]).all((0, 1))]
    noted -= np.nanmin(noted[:, :, :1, BEGUN], axis=1, keepdims=True)[..., None]
    tiles: list[By] = []
    for i in range(noted.shape[2]):
        tile = noted[:, :, i]
        done = tile[..., MULTIPLIED]
        products = np.nanmedian(done - tile[..., BEGUN])
        there = ~np.isnan(done).all(1)
        apart = np.nanmax(done[there], axis=1) - np.nanmin(done[there], axis=1)
        tiles.append(
            {
                "CTAs": int(there.sum()),
                "products": round(float(products)),
                "slots": float(least / products),
                "store": round(float(np.nanmedian(tile[..., STORED] - done))),
                "apart": round(float(np.median(apart))),
            }
        )
    return {"clocks": round(float(np.nanmax(noted[..., STORED]))), "tiles": tiles}


def table(found: By) -> str:
    """As Markdown."""
    from .gemm_report import cell, grid

    heads = ["tile", "CTAs", "products", "slots", "store", "apart"]
    lines = [[str(i), *[cell(t[h]) for h in heads[1:]]] for i, t in enumerate(found["tiles"])]
    return f"{found['cut']}: {found['clocks']} clocks, {found['us']:.1f} us\n\n{grid(heads, lines)}"


def measure(trials: Any, text: str) -> By:
    """One configuration of the row of `trials`."""
    import numpy as np

    from lowering.backends.assemble import assemble
    from lowering.backends.driver import load
    from lowering.backends.driver.bindings import call
    from lowering.kernels.gemm.numbers import grid_size
    from lowering.kernels.gemm.shapes import Shaped, extents

    from .gemm import COUNTED, CYCLES, PARTS, places_of
    from .gemm_timing import Timed, burst

    built, gpu, row = trials.built(text), trials.bench.gpu, trials.row
    cut = built.config
    places = {name: Shaped(*place) for name, place in places_of(trials.sets[0]).items()}
    tiles = built.values(extents(built.problem, places), 1.0, 0.0)["tiles"]
    ctas = grid_size(cut, tiles, gpu.multiprocessors)
    cubin = assemble(marked(built.ptx, cut.multipliers, ctas), gpu.target, allow_spills=True)
    loaded = load(cubin.data, built.program.name, built.shared_memory.dynamic, gpu.ordinal)
    address, size = call("cuLibraryGetGlobal", call("cuKernelGetLibrary", loaded.handle), NAME.encode())
    ms = burst(Timed(trials.call(text, built, cubin), trials.sets))
    call("cuCtxSynchronize")
    clocks = np.zeros((ctas, cut.multipliers, TILES, MARKS), np.int64)
    call("cuMemcpyDtoH", clocks.ctypes.data_as(ctypes.c_void_p).value, address, int(size))
    m, n, _ = cut.tile
    least = 2.0 * m * n * row.K / (PARTS * COUNTED[row.dtype] / CYCLES)
    return {
        "row": row.name,
        "cut": text,
        "us": ms * 1e3,
        "spilled": cubin.spill_bytes,
        **summary(clocks, least),
    }


def main() -> int:
    from .gemm import COUNTED, built_of, kernel_of, places_of
    from .gemm_try import Trials, row_of, row_parser

    parser = row_parser("gemm_clocks", __doc__, "*")
    options = parser.parse_args()
    row = row_of(parser, options.row)
    if row.dtype not in COUNTED or row.batches is not None:
        parser.error(f"{row.name} is no single product whose slots are known")
    trials = Trials(row)
    own = built_of(
        kernel_of(row, trials.bench.target), places_of(trials.sets[0]), trials.bench.gpu.multiprocessors
    )
    found = [measure(trials, text) for text in options.configs or [str(own.config)]]
    print("\n\n".join(map(table, found)))
    if options.json:
        options.json.write_text(json.dumps({"card": trials.bench.gpu.name, "rows": found}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
