"""The kernels of the fuzz: every feed, order, type, alignment, epilogue, and many ways to cut."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tilelayout import S, TileLayout

from .gemm_problems import Spec

ORDERS = (("row", "row"), ("row", "column"), ("column", "row"), ("column", "column"))


def orders() -> Iterator[Spec]:
    """The four orientations by every feed; of the smallest alignment that each takes too."""
    for a, b in ORDERS:
        given = {"A": a, "B": b}
        short = f"{a[0]}{b[0]}"
        yield Spec(f"f16 tma {short}", options=given, feed="tma")
        yield Spec(f"f16 cp.async {short}", options=given, feed="cp_async", cut=((128, 128), {}))
        yield Spec(
            f"f16 registers {short}",
            options=given,
            feed="registers",
            cut=((64, 128), {}),
            align={"A": 2, "B": 2, "D": 2},
        )
    both = {"A": "row", "B": "column"}
    for at in (8, 4):
        align = {"A": at, "B": at, "D": at}
        yield Spec(
            f"f16 cp.async by {at} bytes", options=both, feed="cp_async", cut=((128, 64), {}), align=align
        )
        yield Spec(
            f"f16 registers by {at} bytes", options=both, feed="registers", cut=((64, 64), {}), align=align
        )
    yield Spec(
        "f16 tma, D by 4 bytes", options=both, feed="tma", cut=((128, 64), {"slots": 0}), align={"D": 4}
    )
    yield Spec(
        "f16 tma, D by 2 bytes", options=both, feed="tma", cut=((64, 128), {"slots": 0}), align={"D": 2}
    )


def cuts() -> Iterator[Spec]:
    """Tiles from the largest to the smallest, and everything else that a configuration says."""
    both = {"A": "row", "B": "column"}
    for m, n in ((160, 256), (256, 128), (128, 128), (64, 64), (32, 64), (16, 64)):
        yield Spec(f"f16 tma {m} x {n}", options=both, feed="tma", cut=((m, n), {}))
    for m, n in ((128, 256), (64, 64), (16, 64)):
        yield Spec(f"f16 cp.async {m} x {n}", options=both, feed="cp_async", cut=((m, n), {}))
    yield Spec(
        "f16 registers 16 x 64",
        options=both,
        feed="registers",
        cut=((16, 64), {}),
        align={"A": 2, "B": 4, "D": 2},
    )
    yield Spec("f16 tma two stages", options=both, feed="tma", cut=((128, 64), {"stages": 2, "unroll": 1}))
    yield Spec("f16 tma direct store", options=both, feed="tma", cut=((128, 256), {"slots": 0}))
    yield Spec(
        "f16 tma two residents",
        options=both,
        feed="tma",
        cut=((32, 64), {"resident": 2, "stages": 4, "unroll": 1}),
    )
    yield Spec("f16 tma groups of one", options=both, feed="tma", cut=((64, 64), {"group": 1}))
    yield Spec("f16 cp.async two stages", options=both, feed="cp_async", cut=((128, 64), {"stages": 2}))
    yield Spec(
        "f16 cp.async unrolled", options=both, feed="cp_async", cut=((64, 64), {"stages": 4, "unroll": 2})
    )
    yield Spec(
        "f16 cp.async two residents",
        options=both,
        feed="cp_async",
        cut=((128, 64), {"stages": 3, "resident": 2}),
    )


def further() -> Iterator[Spec]:
    """Rows sent by threads, places along K where CTAs begin, factors that are copied first."""
    both = {"A": "row", "B": "column"}
    threads: dict[str, Any] = {"slots": 1, "sender": "threads"}
    yield Spec("f16 tma, rows by threads", options=both, feed="tma", cut=((128, 256), threads))
    yield Spec(
        "f16 tma, odd rows by threads", options=both, feed="tma", cut=((256, 128), threads), align={"D": 2}
    )
    yield Spec(
        "f16 cp.async, rows by threads",
        options=both,
        feed="cp_async",
        cut=((128, 256), {**threads, "slots": 2}),
    )
    yield Spec("s8 tma, rows by threads", "int8", both, feed="tma", cut=((128, 256), threads))
    yield Spec("f16 spread", options=both, feed="cp_async", cut=((16, 64), {"spread": True}))
    yield Spec("f16 spread, parts", options=both, feed="tma", cut=((16, 64), {"spread": True, "splits": 2}))
    for a, b in ORDERS:
        yield Spec(f"f16 packed {a[0]}{b[0]}", options={"A": a, "B": b}, feed="tma",
                   cut=((64, 64), {"packed": "AB"}), align={"A": 2, "B": 2, "D": 2}, packed=True)  # fmt: skip
    # So small that there are more tiles than multiprocessors: only what later ones need is copied beside the product.
    beside: dict[str, Any] = {"tile": (16, 32, 64), "warps": (1, 2), "packed": "AB", "beside": True}
    yield Spec("f16 packed beside", options=both, feed="tma", cut=((16, 64), {**beside, "group": 4}),
               align={"A": 2, "B": 2, "D": 2}, packed=True)  # fmt: skip
    yield Spec("s8 packed beside", "int8", both, feed="tma", cut=((16, 64), beside),
               align={"A": 1, "B": 1, "D": 4}, packed=True)  # fmt: skip
    yield Spec("s8 packed, cp.async", "int8", both, feed="cp_async", cut=((64, 64), {"packed": "A"}),
               align={"A": 1, "D": 4}, packed=True)  # fmt: skip
    parts = {"packed": "AB", "splits": 2, "slots": 0}
    yield Spec("bf16 packed batches, parts", "bfloat16", {**both, "batched": True}, feed="tma",
               cut=((64, 64), parts), align={"A": 2, "B": 2}, packed=True)  # fmt: skip


def types() -> Iterator[Spec]:
    """Every type of factors, sums and results."""
    rc, rr, cr, cc = ({"A": a, "B": b} for a, b in (("row", "column"), ("row", "row"), ORDERS[2], ORDERS[3]))
    yield Spec("bf16 tma", "bfloat16", rc, feed="tma")
    yield Spec(
        "bf16 cp.async to column-major",
        "bfloat16",
        {**rr, "D": "column"},
        feed="cp_async",
        cut=((128, 64), {}),
    )
    yield Spec("bf16 to f32, registers", "bfloat16", {**cr, "out": "float32"}, feed="registers", cut=((32, 64), {}),
               align={"A": 2, "B": 8, "D": 4})  # fmt: skip
    yield Spec(
        "f16 to f32, tma, column-major",
        options={**cc, "out": "float32", "D": "column"},
        feed="tma",
        cut=((128, 128), {}),
    )
    yield Spec("f16 sums of f16", options={**rc, "accumulator": "float16"}, feed="tma", cut=((128, 128), {}))
    yield Spec("tf32 tma", "tfloat32", rc, feed="tma", cut=((128, 128), {}))
    yield Spec("tf32 cp.async", "tfloat32", cr, feed="cp_async", cut=((128, 64), {}))
    yield Spec(
        "tf32 registers", "tfloat32", rr, feed="registers", cut=((64, 64), {}), align={"A": 4, "B": 4, "D": 4}
    )
    yield Spec("f64 tma", "float64", rc, feed="tma")
    yield Spec("f64 cp.async", "float64", rr, feed="cp_async", cut=((32, 64), {}), align={"A": 8, "D": 8})
    yield Spec(
        "f64 registers", "float64", cc, feed="registers", cut=((32, 64), {}), align={"A": 8, "B": 8, "D": 8}
    )
    yield Spec("s8 tma", "int8", rc, feed="tma")
    yield Spec("s8 cp.async", "int8", rr, feed="cp_async", cut=((128, 64), {}))
    yield Spec(
        "s8 registers",
        "int8",
        cr,
        feed="registers",
        cut=((16, 64), {"tile": (16, 64, 64)}),
        align={"A": 1, "B": 1, "D": 4},
    )
    yield Spec("u8 x s8 tma", ("uint8", "int8"), rc, feed="tma", cut=((128, 64), {}))
    yield Spec(
        "u8 registers by 2 and 8 bytes",
        "uint8",
        rc,
        feed="registers",
        cut=((32, 64), {}),
        align={"A": 2, "B": 8},
    )
    yield Spec("e4m3 tma", "float8_e4m3fn", rc, feed="tma", cut=((128, 128), {}))
    yield Spec(
        "e5m2 cp.async to f32", "float8_e5m2", {**rr, "out": "float32"}, feed="cp_async", cut=((64, 128), {})
    )
    yield Spec("e4m3 x e5m2 registers", ("float8_e4m3fn", "float8_e5m2"), rc, feed="registers",
               cut=((32, 64), {"tile": (32, 64, 64)}),
               align={"A": 1, "B": 2, "D": 2})  # fmt: skip


def endings() -> Iterator[Spec]:
    """What is done to the sums."""
    rc: dict[str, Any] = {"A": "row", "B": "column"}
    yield Spec("f16 alpha", options=rc, feed="tma", cut=((128, 128), {}), scaled=True)
    yield Spec("f16 alpha and C", options={**rc, "C": "row"}, feed="tma", cut=((128, 128), {}), scaled=True)
    yield Spec("f16 C column-major", options={**rc, "C": "column"}, feed="cp_async", cut=((128, 64), {}))
    yield Spec(
        "f16 C and D column-major",
        options={**rc, "C": "column", "D": "column"},
        feed="tma",
        cut=((128, 64), {}),
    )
    yield Spec("f16 bias along N", options={**rc, "bias": "row"}, feed="tma", cut=((128, 128), {}))
    yield Spec("f16 bias along M", options={**rc, "bias": "column"}, feed="cp_async", cut=((128, 64), {}))
    everything = {**rc, "C": "row", "bias": "row"}
    yield Spec(
        "f16 everything, tma",
        options=everything,
        function="leaky",
        feed="tma",
        cut=((128, 128), {}),
        scaled=True,
    )
    yield Spec("f16 everything by 2 bytes", options={**everything, "bias": "column"}, function="relu", feed="registers",
               cut=((32, 64), {}), align={"A": 2, "B": 2, "C": 2, "D": 2}, scaled=True)  # fmt: skip
    yield Spec(
        "bf16 function", "bfloat16", {**rc, "D": "column", "bias": "row"}, "square", "tma", ((64, 128), {})
    )
    yield Spec("f64 everything", "float64", {**everything, "D": "column"}, "leaky", "cp_async", scaled=True)
    yield Spec("s8 to f32, alpha and bias", "int8", {**rc, "out": "float32", "bias": "row"}, feed="tma",
               cut=((128, 64), {}), scaled=True)  # fmt: skip


def batches() -> Iterator[Spec]:
    """Several products, factors shared among some."""
    rc: dict[str, Any] = {"A": "row", "B": "column", "batched": True}
    yield Spec("f16 batches, tma", options=rc, feed="tma", cut=((128, 128), {}))
    yield Spec("f16 batches, cp.async", options={**rc, "A": "column"}, feed="cp_async", cut=((64, 128), {}))
    yield Spec("f16 batches with C and bias, registers", options={**rc, "C": "row", "bias": "row"}, feed="registers",
               cut=((32, 64), {}), align={"A": 2, "B": 4, "C": 2, "D": 2}, scaled=True)  # fmt: skip
    yield Spec("s8 batches to column-major", "int8", {**rc, "D": "column"}, feed="tma", cut=((64, 128), {}))


def layouts() -> Iterator[Spec]:
    """Factors that a layout places: panels of 16 columns, and tiles of 8 x 8."""
    m, n, k = 96, 80, 64
    panels = TileLayout(S[(m, k // 16, 16) : (16, m * 16, 1)])
    tiles = TileLayout(S[(k // 8, 8, n // 8, 8) : (8 * n, 8, 64, 1)])
    yield Spec("f16 A in panels", options={"A": panels, "B": "column", "shape": (m, n, k)}, feed="registers",
               cut=((64, 64), {}), align={"A": 2})  # fmt: skip
    yield Spec("f16 B in tiles", options={"B": tiles, "shape": (m, n, k)}, align={"B": 2})


def chosen() -> Iterator[Spec]:
    """Cut as the kernel itself chooses, call by call."""
    rc = {"A": "row", "B": "column"}
    for kind in ("float16", "bfloat16", "tfloat32", "float64", "int8", "float8_e4m3fn"):
        yield Spec(f"{kind} as chosen", kind, rc)
    yield Spec("float16 as chosen, by 2 bytes", options=rc, align={"A": 2, "B": 2, "D": 2})
    yield Spec(
        "float16 as chosen, batches, alpha and C", options={**rc, "batched": True, "C": "row"}, scaled=True
    )


SPECS: tuple[Spec, ...] = (
    *orders(),
    *cuts(),
    *further(),
    *types(),
    *endings(),
    *batches(),
    *layouts(),
    *chosen(),
)
