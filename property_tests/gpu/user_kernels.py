"""Kernels as users write them: the device function called inside their own ``@cuda.jit`` code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import cuda

from lowering import Tile, copy, lower
from lowering.backends import numba_cuda
from lowering.backends.arrays import to_memory
from lowering.fragments import partition
from lowering.isa.catalogue import named
from tilelayout import S, TileLayout

from .. import record_cases
from ..gemm_cases import one_warp
from ..guide_code import executed


def looped() -> dict[str, Any]:
    """A K loop around the gemm, D kept in registers: 16 x 8 x 64 in four steps."""
    call = one_warp((1, 1, 1, 16), "float16", 1.0)
    gemm = lower(call, target=numba_cuda.gpu_target(), scope="warp").device_function
    load_a, load_b, store, zeros = gemm.load_a, gemm.load_b, gemm.store, gemm.zeros_d

    @cuda.jit
    def kernel(A, B, D):
        d = zeros()
        for k in range(A.shape[1] // 16):
            a = load_a(A[:, 16 * k : 16 * k + 16])
            b = load_b(B[16 * k : 16 * k + 16])
            d = gemm(a, b, d)
        store(D, d)

    rng = np.random.default_rng(3)
    a, b = rng.integers(-4, 5, (16, 64)).astype(np.float16), rng.integers(-4, 5, (64, 8)).astype(np.float16)
    d = np.full((16, 8), np.nan, np.float32)
    kernel[1, 32](a, b, d)
    return exact(d, a.astype(np.float64) @ b.astype(np.float64))


def element_by_element() -> dict[str, Any]:
    """Registers filled and read one by one through `set` and `get`, at the coordinates of the local views."""
    call = one_warp((1, 1, 1, 16), "float16")
    lowered = lower(call, target=numba_cuda.gpu_target(), scope="warp")
    gemm = lowered.device_function
    load_a, load_b, get, put, store = gemm.load_a, gemm.load_b, gemm.get, gemm.set, gemm.store

    @cuda.jit
    def kernel(A, B, D):
        a, b = load_a(A), load_b(B)
        d = gemm(a, b)
        d = put(d, 0, get(d, 0) * np.float32(2.0))
        store(D, d)

    rng = np.random.default_rng(4)
    a, b = rng.integers(-4, 5, (16, 16)).astype(np.float16), rng.integers(-4, 5, (16, 8)).astype(np.float16)
    d = np.full((16, 8), np.nan, np.float32)
    kernel[1, 32](a, b, d)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    for lane in range(32):  # slot 0 of lane 4g + t is element (g, 2t)
        expected[lane // 4, 2 * (lane % 4)] *= 2
    return exact(d, expected)


def swapped_elements(name: str) -> dict[str, Any]:
    """On a record's fragments: two elements of A change places in every lane, and back; D gets one of its own twice."""
    record = next(i for i in record_cases.RECORDS if i.name == name)
    call = record_cases.call_of(record, beta=0.0)
    gemm = record_cases.lowered_of(record, call, numba_cuda.gpu_target()).device_function
    load_a, load_b, get, put, store = gemm.load_a, gemm.load_b, gemm.get, gemm.set, gemm.store
    last = gemm.types["A"].slots - 1

    @cuda.jit
    def kernel(A, B, D):
        a, b = load_a(A), load_b(B)
        x, y = get(a, 0), get(a, last)
        turned = put(put(a, 0, y), last, x)
        x, y = get(turned, 0), get(turned, last)
        d = gemm(put(put(turned, 0, y), last, x), b)
        d = put(d, 1, get(d, 0))
        store(D, d)

    arrays = record_cases.whole(call, np.random.default_rng(5))
    tiles, forms = call.tiles, gemm.types
    a, b = (to_memory(arrays[r], tiles[r].element, forms[r].container) for r in "AB")
    carried = [x if x.dtype.name == forms[r].array_types[0].name else x.view(forms[r].array_types[0].name)
               for r, x in zip("AB", (a, b), strict=True)]  # fmt: skip
    d = np.zeros(tiles["D"].shape, tiles["D"].element.numpy)
    kernel[1, 32](*carried, d)
    expected, _ = record_cases.answer(record, call, arrays)
    expected[:, 1::2][:8] = expected[:, ::2][:8]  # slots 0 and 1 are neighboring columns of the first 8 rows
    return exact(d, expected)


def of_the_guide() -> dict[str, Any]:
    """The kernel that docs/guide/kernels.md builds of lowered pieces: three stages, fragments by ldmatrix, rims."""
    kernel = cuda.jit(executed("kernels.md", "Stage by stage", "By hand, in numba")["matmul"])
    rng = np.random.default_rng(6)
    for m, n, k in ((64, 64, 64), (200, 136, 328), (1024, 512, 2048)):
        a, b = rng.integers(-2, 3, (m, k)).astype(np.float16), rng.integers(-2, 3, (k, n)).astype(np.float16)
        d = np.full((m, n), np.nan, np.float16)
        kernel[(-(-n // 64), -(-m // 64)), 128](a, b, d)
        exact(d, np.maximum(a.astype(np.float64) @ b.astype(np.float64), 0).astype(np.float16))
    return {"error": 0.0}


def through_stages(name: str) -> dict[str, Any]:
    """Memory to a stage by hand, to a fragment and from there to a second stage and back, by the lowered copies."""
    layouts = {
        "swizzled": TileLayout(S[64, 64]).swizzle(3, 3, 3),
        "padded": TileLayout(S[(64, 64) : (68, 1)]),
        "turned": TileLayout(S[(64, 64) : (1, 72)]),
    }
    parts = partition(named("m16n8k16.f16"), 64, 64, 64, warps=(4, 1))
    held = Tile("held", (64, 64), "float16", parts.A)
    first, second = (Tile(x, (64, 64), "float16", layouts[name], "shared") for x in ("first", "second"))
    where = {"target": numba_cuda.gpu_target(), "scope": "cta", "launch": 128}
    load, store = (lower(c, **where).device_function for c in (copy(held, first), copy(second, held)))

    @cuda.jit
    def kernel(source, back):
        one, two = load.shared_array(), store.shared_array()
        for x in range(cuda.threadIdx.x, one.size, 128):
            one[x] = source[x]
            two[x] = source[x]
        cuda.syncthreads()
        a = load(one)
        store(two, a)
        cuda.syncthreads()
        for x in range(cuda.threadIdx.x, two.size, 128):
            back[x] = two[x]

    # Any bits of a finite float16: of integers, assigning to elements of that type would keep 11 bits.
    bits = np.random.default_rng(7).integers(0, 1 << 14, load.memory[0].buffer.elements).astype(np.uint16)
    back = np.zeros_like(bits)
    kernel[1, 128](bits.view(np.float16), back.view(np.float16))
    return exact(back, bits)


def exact(result: Any, expected: Any) -> dict[str, Any]:
    if not np.array_equal(result, expected):
        raise ValueError(f"{(result != expected).sum()} of {result.size} elements differ")
    return {"error": 0.0}


ROWS: tuple[tuple[str, Callable[[], dict[str, Any]]], ...] = (
    ("K loop with D in registers", looped),
    ("get and set", element_by_element),
    ("the kernel of the guide, of lowered pieces", of_the_guide),
    *[
        (f"{name} stages by device functions", lambda name=name: through_stages(name))
        for name in ("swizzled", "padded", "turned")
    ],
    *[
        (f"get and set, {name}", lambda name=name: swapped_elements(name))
        for name in (
            "m8n8k4.f64",
            "m16n8k16.f64",
            "m16n8k8.tf32",
            "m16n8k32.s8",
            "m16n8k64.s4",
            "m16n8k256.b1.and",
            "m16n8k32.e4m3",
            "m16n8k16.f16.f16.f16.f16",
        )
    ],
)
