"""The staged kernel as a program: loads, the register program, stores; the same bits as the register program."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from lowering import GemmCall, Tile, gemm, lower
from lowering.backends.reference import run_kernel
from lowering.compose import stage
from lowering.errors import MachineError
from lowering.fragments import A_FRAG, B_FRAG, D_FRAG, tiled
from lowering.isa import COPY, MMA_INSTRUCTIONS
from lowering.program import Instr, Program, Registers, Slot
from tilelayout import S, TileLayout, laneid

from ..gemm_cases import all_cases
from .gemm_answers import arrays_of, run

F16 = MMA_INSTRUCTIONS[0]
A = Tile("A", (16, 16), "float16", A_FRAG)
B = Tile("B", (16, 8), "float16", B_FRAG)
D = Tile("D", (16, 8), "float32", D_FRAG)


def same_bits(call: GemmCall, scope: str = "warp", launch: int | None = None) -> None:
    lowered = lower(call, target="sm_80", scope=scope, launch=launch)
    rng = np.random.default_rng(4)
    arrays = arrays_of(call, rng)
    noise = {id(x): rng.standard_normal(x.shape).astype(np.float32) for x in arrays.values()}
    arrays = {role: (x.astype(np.float32) + noise[id(x)]).astype(x.dtype) for role, x in arrays.items()}
    program = lowered.kernel.program
    roles = [b.role for b in program.buffers]
    assert roles == [r for r in "ABCD" if r in roles]  # parameters in this order
    stored = run_kernel(program, {role: arrays[role] for role in roles})
    np.testing.assert_array_equal(stored.view(np.uint32), run(lowered, arrays).view(np.uint32))
    assert not program.inputs
    assert not program.outputs


@pytest.mark.parametrize("case", list(all_cases()), ids=lambda c: c.name)
def test_the_shared_cases(case) -> None:
    same_bits(case.call, case.scope, case.launch)


def test_regions_and_what_they_leave() -> None:
    d = Tile("D", (32, 24), "float32", tiled(F16, "D", (2, 3)))
    c = Tile("C", (32, 24), "float32", tiled(F16, "D", (2, 3)))
    a = Tile("A", (32, 64), "float16", tiled(F16, "A", (2, 4)))
    b = Tile("B", (64, 24), "float16", tiled(F16, "B", (4, 3)))
    for beta, other in itertools.product((0.0, 1.0), (d[16:32, 8:16], d[0:16, 16:24], c[0:16, 0:8])):
        same_bits(gemm(d[16:32, 8:16], a[0:16, 16:48], b[16:48, 0:8], other, beta=beta))


@pytest.mark.parametrize("beta", [0.0, 1.0])
def test_nothing_outside_the_region_is_read_or_written(beta: float) -> None:
    """D comes in as memory that holds nothing, which is an error to read, and goes out so outside the region."""
    d, c = (Tile(name, (32, 24), "float32", tiled(F16, "D", (2, 3))) for name in "DC")
    a = Tile("A", (32, 64), "float16", tiled(F16, "A", (2, 4)))
    b = Tile("B", (64, 24), "float16", tiled(F16, "B", (4, 3)))
    call = gemm(d[16:32, 8:16], a[0:16, 16:48], b[16:48, 0:8], c[0:16, 0:8], beta=beta)
    lowered = lower(call, target="sm_80", scope="warp")
    arrays = arrays_of(call, np.random.default_rng(4))
    roles = {buffer.role for buffer in lowered.kernel.buffers} - {"D"}
    stored = run_kernel(lowered.kernel.program, {role: arrays[role] for role in roles})
    wanted = lowered.run(**{role: arrays[role] for role in roles})
    np.testing.assert_array_equal(stored[16:32, 8:16], wanted[16:32, 8:16])
    assert np.isfinite(stored[16:32, 8:16]).all()
    assert np.isnan(stored).sum() == 32 * 24 - 16 * 8
    assert len(lowered.kernel.stores) == 4
    assert len(lowered.kernel.loads) == 8 + 4 + 4 * (beta == 1.0)


def test_a_register_that_nothing_fills_is_stored_and_found_out() -> None:
    """Only what comes from the very place it would go to is left out."""
    tile = Tile("A", (64,), "float32", TileLayout(S[(32, 2) : (1 @ laneid, 1)]))
    out = Tile("D", (64,), "float32", tile.layout)
    a, d = Registers("a", "A", "float32", 2, "f32"), Registers("d", "D", "float32", 2, "f32")
    copy = Instr(COPY["f32"], ((Slot(d, 0),), (Slot(a, 1),)))
    data = {"A": np.arange(64, dtype=np.float32), "D": np.zeros(64, np.float32)}
    kernel = stage(Program("p", 1, (a,), (d,), (copy,)), {"A": tile, "D": out})
    with pytest.raises(MachineError, match=r"d\[1\], which holds nothing"):
        run_kernel(kernel.program, data)
    kept = stage(Program("p", 1, (a, d), (d,), (copy,)), {"A": tile, "D": out})
    assert len(kept.stores) == 1
    found = run_kernel(kept.program, data)
    np.testing.assert_array_equal(found[0::2], data["A"][1::2])
    np.testing.assert_array_equal(found[1::2], 0)
    moved = Tile("D", (64,), "float32", TileLayout(S[(32, 2) : (1 @ laneid, -1)] + 1))
    through = stage(Program("p", 1, (a,), (a,), ()), {"A": tile})
    assert not through.stores
    assert not through.loads
    elsewhere = Registers("d", "D", "float32", 2, "f32")
    copies = tuple([Instr(COPY["f32"], ((Slot(elsewhere, i),), (Slot(a, i),))) for i in range(2)])
    swapped = stage(Program("p", 1, (a,), (elsewhere,), copies), {"A": tile, "D": moved})
    np.testing.assert_array_equal(
        run_kernel(swapped.program, data).reshape(32, 2), data["A"].reshape(32, 2)[:, ::-1]
    )


def test_gaps_offsets_and_odd_rows() -> None:
    """Registers that are no neighbors in memory are filled half by half."""
    a = Tile(
        "A", (16, 16), "float16", TileLayout(S[(2, 8, 2, 4, 2) : (16, 4 @ laneid, -4, 1 @ laneid, 1)] + 10)
    )
    d = Tile("D", (16, 8), "float32", TileLayout(S[(2, 8, 4, 2) : (-5, 4 @ laneid, 1 @ laneid, 1)] + 8))
    same_bits(gemm(d, a, B, d, beta=1.0))
    turned = Tile(
        "A", (16, 16), "float16", TileLayout(S[(2, 4, 2, 2, 8) : (4, 1 @ laneid, 1, 2, 4 @ laneid)])
    )
    same_bits(gemm(D, turned, B, D, transpose_a=True))


def test_one_tile_in_two_roles_and_names_that_meet() -> None:
    wide = Tile("D", (16, 16), "float32", D_FRAG.tile_to((16, 16), (16, 8)))
    same_bits(gemm(wide, A, A, wide, transpose_b=True, beta=1.0))
    for name in ("D_in", "C", "lane", "warp", "d_local"):
        same_bits(gemm(D, Tile(name, A.shape, A.dtype, A.layout), B, D, beta=1.0))
        other = Tile(f"{name}_in", D.shape, D.dtype, D.layout)
        same_bits(gemm(Tile(name, D.shape, D.dtype, D.layout), A, B, other, beta=1.0))


def test_every_register_is_loaded_once_and_stored_once() -> None:
    lowered = lower(gemm(D, A, B, D, beta=1.0), target="sm_80", scope="warp")
    names = [s.instruction.name for s in lowered.kernel.program.steps]
    assert names.count("load.b32") + names.count("load.2xb16") == 6
    assert names.count("load.f32") == 4
    assert names.count("store.f32") == 4
    assert sum("mma" in s.instruction.mnemonic for s in lowered.kernel.program.steps) == 1
    assert lowered.kernel.name == "gemm_m16n8k16_f16_kernel"


def test_neighbors_at_an_odd_element_are_loaded_half_by_half() -> None:
    """Registers 2 and 3 of a lane hold elements 4 lane + 1 and + 2: side by side, and across two words of memory."""
    tile = Tile("A", (128,), "float16", TileLayout(S[(32, 4) : (1 @ laneid, 1)] + 1))
    out = Tile("D", (32,), "float32", TileLayout(S[32 : 1 @ laneid]))
    a, d = Registers("a", "A", "float16", 3, "b32"), Registers("d", "D", "float32", 1, "f32")
    copy = Instr(COPY["b32"], ((Slot(d, 0),), (Slot(a, 1),)))
    kernel = stage(Program("p", 1, (a,), (d,), (copy,)), {"A": tile, "D": out})
    assert [i.instruction.name for i in kernel.loads] == ["load.2xb16"]
    data = np.arange(128).astype(np.float16)
    found = run_kernel(kernel.program, {"A": data})
    np.testing.assert_array_equal(found.view(np.float16).reshape(32, 2), data.reshape(32, 4)[:, 1:3])
