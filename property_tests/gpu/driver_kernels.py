"""Kernels written out in PTX for the checks of the driver runtime, and how they are launched."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from lowering.backends.assemble import assemble
from lowering.backends.driver import LoadedKernel, MapEncoder, Operand, Operands, ParameterBlock, device, load
from lowering.program import Buffer, Parameter, Program, TensorMap
from tilelayout.expr import Var

# D[i] = alpha * A[i] + big + shift, for i below n.
SCALE = """.version 8.0
.target {target}
.address_size 64
.visible .entry scale(.param .u64 A, .param .u64 D, .param .s32 n, .param .f64 big, .param .f32 alpha,
                      .param .s64 shift)
{{
  .reg .pred %p; .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .f32 %f<8>; .reg .f64 %fd<4>;
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.s32 %r4, %r1, %r2, %r3;
  ld.param.s32 %r5, [n]; setp.ge.s32 %p, %r4, %r5; @%p ret;
  ld.param.u64 %rd1, [A]; ld.param.u64 %rd2, [D]; cvta.to.global.u64 %rd1, %rd1; cvta.to.global.u64 %rd2, %rd2;
  mul.wide.s32 %rd3, %r4, 4; add.s64 %rd1, %rd1, %rd3; add.s64 %rd2, %rd2, %rd3;
  ld.param.f32 %f1, [alpha]; ld.param.f64 %fd1, [big]; cvt.rn.f32.f64 %f2, %fd1;
  ld.param.s64 %rd4, [shift]; cvt.rn.f32.s64 %f3, %rd4;
  ld.global.f32 %f4, [%rd1]; fma.rn.f32 %f5, %f4, %f1, %f2; add.f32 %f5, %f5, %f3; st.global.f32 [%rd2], %f5;
  ret;
}}
"""
N = 1000
SCALE_PROGRAM = Program(
    "scale", 4, (), (), (),
    buffers=(Buffer("A", "A", "float32", (0,)), Buffer("D", "D", "float32", (0,))),
    parameters=(Parameter("n", "s32", 0, 1 << 30), Parameter("big", "f64"), Parameter("alpha", "f32"),
                Parameter("shift", "s64", -(1 << 40), 1 << 40)),
)  # fmt: skip
NUMBERS = (N, 1024.0, 0.5, -24)

# One box of 16 rows of 64 16-bit elements at (c0, c1), through the copy engine, to D.
BOX = """.version 8.0
.target {target}
.address_size 64
.extern .shared .align 1024 .b8 stage[];
.visible .entry box(.param .u64 D, .param .s32 c0, .param .s32 c1, .param .align 64 .b8 map[128])
{{
  .reg .pred %p, %q; .reg .b32 %r<12>; .reg .b64 %rd<8>;
  mov.u32 %r1, %tid.x; mov.u32 %r2, stage; add.u32 %r3, %r2, 2048; setp.ne.u32 %p, %r1, 0;
  @%p bra WAIT;
  mbarrier.init.shared.b64 [%r3], 1; fence.proxy.async.shared::cta;
  mbarrier.arrive.expect_tx.shared.b64 _, [%r3], 2048;
  ld.param.s32 %r4, [c0]; ld.param.s32 %r5, [c1]; mov.b64 %rd1, map; cvta.param.u64 %rd1, %rd1;
  cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r2], [%rd1, {{%r4, %r5}}], [%r3];
WAIT:
  bar.sync 0;
LOOP:
  mbarrier.try_wait.parity.shared.b64 %q, [%r3], 0;
  @!%q bra LOOP;
  ld.param.u64 %rd2, [D]; cvta.to.global.u64 %rd2, %rd2;
  mov.u32 %r6, %r1;
COPY:
  shl.b32 %r7, %r6, 2; add.u32 %r8, %r2, %r7; ld.shared.b32 %r9, [%r8];
  mul.wide.u32 %rd3, %r6, 4; add.s64 %rd4, %rd2, %rd3; st.global.b32 [%rd4], %r9;
  add.u32 %r6, %r6, 128; setp.lt.u32 %p, %r6, 512; @%p bra COPY;
  ret;
}}
"""
HEIGHT, WIDTH = Var("rows", 1, 1 << 20), Var("columns", 1, 1 << 20)

# The last word of 200 KiB of dynamic shared memory, there and back.
LARGE_BYTES = 200 * 1024
LARGE = """.version 8.0
.target {target}
.address_size 64
.extern .shared .align 16 .b8 stage[];
.visible .entry large(.param .u64 D)
{{
  .reg .b32 %r<4>; .reg .b64 %rd<2>;
  mov.u32 %r1, stage; add.u32 %r1, %r1, 204796; mov.u32 %r2, 4711; st.shared.b32 [%r1], %r2; bar.sync 0;
  ld.shared.b32 %r3, [%r1]; ld.param.u64 %rd1, [D]; cvta.to.global.u64 %rd1, %rd1; st.global.b32 [%rd1], %r3;
  ret;
}}
"""


# As many parameters as a gemm has, and nothing to do with them.
IDLE = """.version 8.0
.target {target}
.address_size 64
.visible .entry idle(.param .u64 A, .param .u64 B, .param .u64 D, {numbers}, .param .f32 alpha, .param .f32 beta,
                     .param .align 64 .b8 map_a[128], .param .align 64 .b8 map_b[128])
{{ ret; }}
"""
SIZES = ("M", "N", "K", "lda", "ldb", "ldd", "tiles", "tiles_m", "tiles_n", "steps")
IDLE_TEXT = IDLE.replace("{numbers}", ", ".join(f".param .s32 {n}" for n in SIZES))


def idle_map(name: str) -> TensorMap:
    buffer = Buffer(name, name, "float16", (0,))
    rows, columns, pitch = (Var(n, 1, 1 << 20) for n in ("M", "K", "lda"))
    return TensorMap(f"map_{name.lower()}", buffer, (columns, rows), (pitch,), (64, 128), 128)


IDLE_PROGRAM = Program(
    "idle", 4, (), (), (),
    buffers=tuple([Buffer(r, r, "float16", (0,)) for r in "ABD"]),
    parameters=(*[Parameter(n, "s32", 0, 1 << 30) for n in SIZES], Parameter("alpha", "f32"), Parameter("beta", "f32")),
    maps=(idle_map("A"), idle_map("B")),
)  # fmt: skip


@cache
def kernel(text: str, entry: str, shared: int = 0) -> LoadedKernel:
    here = device().target
    return load(assemble(text.format(target=here.name), here).data, entry, shared)


@cache
def block() -> ParameterBlock:
    return ParameterBlock(SCALE_PROGRAM, kernel(SCALE, "scale").places)


OPERANDS = Operands((Operand("D", "float32", 1, written=True), Operand("A", "float32", 1)))


def scale(a: Any, d: Any, stream: Any = None) -> None:
    """What a kernel object does at each call."""
    taken = OPERANDS.take((d, a), stream)
    d, a = taken.pointers
    arguments = block().frame().fill((a, d), NUMBERS)
    kernel(SCALE, "scale").launch((8, 1, 1), 128, arguments, taken.stream)


def expected(a: Any) -> Any:
    return a * np.float32(0.5) + np.float32(1000)


def agree(found: Any, wanted: Any) -> dict[str, Any]:
    if not np.array_equal(found, wanted):
        raise ValueError(
            f"{(found != wanted).sum()} of {wanted.size} elements differ: {found} instead of {wanted}"
        )
    return {}


def numbers() -> Any:
    return np.random.default_rng(1).integers(-99, 99, N).astype(np.float32)


def torch_module() -> Any:
    import torch

    torch.zeros(1, device="cuda")
    return torch


def box_map(dtype: str = "float16") -> MapEncoder:
    buffer = Buffer("A", "A", dtype, (0,))
    return MapEncoder(TensorMap("map", buffer, (WIDTH, HEIGHT), (WIDTH + 8,), (64, 16)))
