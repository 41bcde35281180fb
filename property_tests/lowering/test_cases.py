"""Inputs that have tripped other systems, by their numbers in the collection of cases, with the right answers."""

from __future__ import annotations

import re
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

from lowering import Tile, gemm, lower
from lowering.backends.reference import placement
from lowering.fragments import (
    A_FRAG,
    A_FRAG_K8,
    B_FRAG,
    B_FRAG_K8,
    D_FRAG,
    layout,
    operand_shape,
    replicated,
    spread,
    tiled,
    transposed,
)
from lowering.isa import MMA_INSTRUCTIONS, MmaInstruction
from lowering.target import TARGETS
from tilelayout import LayoutError, S, TileLayout, laneid, wid_in_wg

from ..conftest import ROOT
from ..gemm_cases import DTYPES, TILINGS, one_warp, several_warps
from .gemm_answers import check, refusal
from .ptx_isa import a_fragment, b_fragment, c_fragment

A = Tile("A", (16, 16), "float16", A_FRAG)
B = Tile("B", (16, 8), "float16", B_FRAG)
D = Tile("D", (16, 8), "float32", D_FRAG)


# --- C33: an offset of half a slab lives in the layout ------------------------------------------


def upper_halves() -> TileLayout:
    """64 rows of 4 in the upper half of the lanes of each of four warps."""
    whole = TileLayout(S[(4, 2, 16, 4) : (1 @ wid_in_wg, 16 @ laneid, 1 @ laneid, 1)])
    return whole.slice((4, 2, 16, 4), [(0, 4), (1, 2), (0, 16), (0, 4)])


def test_c33_the_offset_is_in_the_map_from_elements_to_lanes() -> None:
    tile = Tile("D", (64, 4), "float32", upper_halves())
    at = placement(tile, wid_in_wg)
    table = {
        divmod(int(e), 4): (32 * int(w) + int(lane), int(slot))
        for e, w, lane, slot in zip(at.element, at.warp, at.lane, at.slot, strict=True)
    }
    assert table == {(r, c): (32 * (r // 16) + 16 + r % 16, c) for r in range(64) for c in range(4)}


def test_c33_reading_the_registers_backwards_finds_the_same_map() -> None:
    view = Tile("D", (64, 4), "float32", upper_halves()).local(4)
    for warp in range(4):
        for lane in range(16, 32):
            for slot in range(4):
                assert view.coordinate(slot, lane=lane, warp=warp) == (16 * warp + lane - 16, slot)
        for lane in range(16):
            with pytest.raises(LayoutError, match="holds nothing"):
                view.coordinate(0, lane=lane, warp=warp)


def test_c33_a_fragment_in_other_lanes_is_no_fragment() -> None:
    moved = TileLayout.from_iters(D_FRAG.shard, (), {"laneid": 16})
    assert "lane offset on laneid differs" in refusal(
        gemm(D, A, B, Tile("C", (16, 8), "float32", moved), beta=1.0)
    )


# --- C42: what a bf16 mma really computes -------------------------------------------------------


def mma_k8(a: list[float], b: list[float], c: list[float] | None = None) -> list[str]:
    """Every lane holds the same registers; what every lane gets, to six digits."""
    tiles = (
        Tile("A", (16, 8), "bfloat16", A_FRAG_K8),
        Tile("B", (8, 8), "bfloat16", B_FRAG_K8),
        Tile("D", (16, 8), "float32", D_FRAG),
    )
    arrays = {"A": np.zeros((16, 8)), "B": np.zeros((8, 8)), "C": np.zeros((16, 8), np.float32)}
    for role, fragment, held in (
        ("A", a_fragment(8), a),
        ("B", b_fragment(8), b),
        ("C", c_fragment(), c or [0.0] * 4),
    ):
        for place, (_, i) in fragment.items():
            arrays[role][place] = held[i]
    call = gemm(tiles[2], tiles[0], tiles[1], tiles[2], beta=1.0 if c else 0.0)
    found = lower(call, target="sm_80", scope="warp").run(
        **{r: x for r, x in arrays.items() if r != "C" or c}
    )
    per_lane = {
        tuple(f"{found[place]:.6g}" for place, (at, _) in c_fragment().items() if at == lane)
        for lane in range(32)
    }
    (same,) = per_lane
    return list(same)


@pytest.mark.parametrize(
    ("a", "b", "c", "d"),
    [
        ([1, 1, 1, 1], [1, 1], None, "8 8 8 8"),
        ([2, 1, 1, 1], [1, 1], None, "12 12 8 8"),
        ([1, 1, 1, 2], [1, 1], None, "8 8 12 12"),
        ([0.2] * 4, [0.2] * 2, None, "0.320625 0.320625 0.320625 0.320625"),
        ([0.2, 0.4, 0.2, 0.2], [0.2] * 2, None, "0.480938 0.480938 0.320625 0.320625"),
        ([0.2, 0.4, 0.2, 0.2], [0.2] * 2, [2, 4, 8, 1.5], "2.48094 4.48094 8.32063 1.82063"),
    ],
)
def test_c42_bf16_numbers_that_hardware_reports(a: list, b: list, c: list | None, d: str) -> None:
    assert mma_k8(a, b, c) == d.split()


# --- C54: C is D, A is D ------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("tiling", TILINGS, ids=str)
def test_c54_c_in_ds_registers_is_exact(tiling, dtype: str) -> None:
    lowered = check(one_warp(tiling, dtype, 1.0, in_place=True))
    outside = check(one_warp(tiling, dtype, 1.0, in_place=False))
    assert len(lowered.program.steps) == len(outside.program.steps)


def test_c54_d_may_not_overlap_a_or_b() -> None:
    for role in "AB":
        named = Tile("D", {"A": A, "B": B}[role].shape, "float16", {"A": A_FRAG, "B": B_FRAG}[role])
        operands = {"D": D, "A": A, "B": B, "C": D, role: named}
        assert "share the name 'D'" in refusal(gemm(**operands))


def test_c54_c_and_d_overlap_wholly_or_not_at_all() -> None:
    stack = Tile("D", (64, 8), "float32", tiled(MMA_INSTRUCTIONS[0], "D", (4, 1)))
    a = Tile("A", (32, 16), "float16", tiled(MMA_INSTRUCTIONS[0], "A", (2, 1)))
    for begin in (0, 16, 32):
        check(gemm(stack[begin : begin + 32], a, B, stack[begin : begin + 32], beta=1.0))
    check(gemm(stack[0:32], a, B, stack[32:64], beta=1.0))
    check(gemm(stack[32:64], a, B, stack[0:32], beta=1.0))
    for d, c in ((0, 16), (16, 0), (16, 32), (32, 16)):
        for beta in (0.0, 1.0):
            text = refusal(gemm(stack[d : d + 32], a, B, stack[c : c + 32], beta=beta))
            assert (
                f"C (D[{c}:{c + 32}, 0:8]) and D (D[{d}:{d + 32}, 0:8]) overlap without being the same"
                in text
            )


def test_c54_a_column_of_c_beside_ds() -> None:
    wide = Tile("D", (16, 32), "float32", tiled(MMA_INSTRUCTIONS[0], "D", (1, 4)))
    b = Tile("B", (16, 16), "float16", tiled(MMA_INSTRUCTIONS[0], "B", (1, 2)))
    check(gemm(wide[:, 0:16], A, b, wide[:, 16:32], beta=1.0))
    assert "overlap" in refusal(gemm(wide[:, 0:16], A, b, wide[:, 8:24], beta=1.0))


# --- C65, C66: architectures --------------------------------------------------------------------


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("k", [8, 16])
def test_c65_the_architectures_that_have_an_instruction(target: str, dtype: str, k: int) -> None:
    call = one_warp((1, 1, 1, k), dtype)
    if target != "sm_75":
        assert f"m16n8k{k}." in lower(call, target=target, scope="warp").instructions[0]
    elif dtype == "float16":  # k16 is two k8 there
        lowered = check(call, target=target)
        assert "m16n8k8." in lowered.instructions[0]
        assert sum(s.instruction.collective for s in lowered.program.steps) == k // 8
    else:
        text = refusal(call, target=target)
        assert f"m16n8k{k}.bf16" in text
        assert "needs sm_80 or newer, the target is sm_75" in text


@pytest.mark.parametrize("name", ["sm_99", "sm_85", "sm_70", "sm_90b", "sm_1000", "9.0", "gfx90a", ""])
def test_c66_an_unknown_target_is_never_rounded_down(name: str) -> None:
    with pytest.raises(ValueError, match=f"unknown target {name!r}") as error:
        lower(one_warp((1, 1, 1, 16), "float16"), target=name, scope="warp")
    assert "known: sm_75, sm_80" in str(error.value)


def test_c66_the_nearest_are_named() -> None:
    with pytest.raises(ValueError, match=r"nearest known are sm_90a and sm_100 \("):
        lower(one_warp((1, 1, 1, 16), "float16"), target="sm_99", scope="warp")


# --- C68: no driver, no toolkit, no numba -------------------------------------------------------

BLOCKED = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("numba", "numba_cuda", "llvmlite", "cuda", "nvidia", "torch", "cupy"):
            raise ModuleNotFoundError(f"blocked: {name}", name=name)
sys.meta_path.insert(0, Blocker())
import builtins
"""


def test_c68_everything_but_the_gpu_works_without_numba_and_cuda() -> None:
    code = (
        BLOCKED
        + """
import numpy as np
from lowering import DispatchError, Tile, gemm, lower, registered
from lowering.fragments import A_FRAG, B_FRAG, D_FRAG
from lowering.backends.reference import run_kernel
a, b = Tile("A", (16, 16), "bfloat16", A_FRAG), Tile("B", (16, 8), "bfloat16", B_FRAG)
d = Tile("D", (16, 8), "float32", D_FRAG)
lowered = lower(gemm(d, a, b, d), target="sm_100a", scope="warp")
assert "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32" in str(lowered)
assert lowered.explain() and registered()
assert ".target sm_100a" in lowered.ptx and "mma.sync" in lowered.ptx
assert "__global__" in lowered.cuda and "#include" not in lowered.cuda
x, y = np.eye(16), np.arange(128.0).reshape(16, 8)
assert np.array_equal(lowered.run(A=x, B=y), y)
assert np.array_equal(run_kernel(lowered.kernel.program, {"A": x, "B": y}), y)
try:
    lower(gemm(d, a, b, d, alpha=2), target="sm_80", scope="warp")
except DispatchError:
    pass
for name, ask in (("device_function", lambda: lowered.device_function), ("launch", lambda: lowered.launch(A=x, B=y)),
                  ("cubin", lambda: lowered.cubin)):
    try:
        ask()
    except (ImportError, RuntimeError) as error:
        print(name, type(error).__name__, error)
    else:
        raise SystemExit(name + " should not work here")
print(sorted(m for m in sys.modules if m.split(".")[0] in ("numba", "numba_cuda", "llvmlite", "cuda", "nvidia")))
"""
    )
    out = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert out.returncode == 0, out.stderr
    *refusals, loaded = out.stdout.strip().splitlines()
    assert loaded == "[]"
    text = " ".join(refusals)
    for name in ("device_function", "launch", "cubin"):
        assert f"{name} ImportError" in text or f"{name} RuntimeError" in text
    assert text.count("tilelayout[cuda]") == 3  # each says which extra brings it


# --- C70: accumulators in local memory ----------------------------------------------------------


def test_c70_more_than_255_registers_are_refused_with_the_count() -> None:
    assert "D takes 256 registers a thread, there are 255" in refusal(one_warp((8, 8, 1, 16), "float16"))
    assert "A takes 256 registers a thread" in refusal(one_warp((1, 1, 64, 16), "float16"))
    # At the last tile all of D is live (9 * 7 * 4), one tile of A (4) and the last column of B (2).
    text = refusal(one_warp((9, 7, 1, 16), "float16"))
    assert "258 registers a thread would be live at once, there are 255" in text
    # Before that tile a lane holds no more: the largest that fits.
    lowered = lower(one_warp((8, 7, 1, 16), "float16"), target="sm_80", scope="warp")
    assert lowered.program.peak_registers == 8 * 7 * 4 + 4 + 2


def test_c70_registers_that_are_passed_through_count() -> None:
    d = Tile("D", (16, 8 * 63), "float32", tiled(MMA_INSTRUCTIONS[0], "D", (1, 63)))
    text = refusal(gemm(d[:, :8], A, B, d[:, :8]))
    assert "258 registers a thread would be live at once" in text  # 252 of D, 4 of A, 2 of B


@pytest.mark.parametrize("tiling", [*TILINGS, (4, 8, 4, 16), (8, 7, 1, 16)], ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_c70_the_ptx_of_every_tile_offered_has_no_local_memory(tiling, dtype: str) -> None:
    for beta in (0.0, 1.0) if np.prod(tiling[:3]) < 50 else (0.0,):
        lowered = lower(one_warp(tiling, dtype, beta), target="sm_80", scope="warp")
        assert ".local" not in lowered.ptx
        assert lowered.program.peak_registers <= 255
        assert lowered.ptx.count("mma.sync") == tiling[0] * tiling[1] * tiling[2]


def test_c70_nor_has_that_of_several_warps() -> None:
    for along_m, along_n in ((2, 2), (4, 2)):
        call = several_warps("float16", "cta", along_m, along_n, 1.0)
        assert ".local" not in lower(call, target="sm_80", scope="cta", launch=32 * along_m * along_n).ptx


# --- C72: bf16 is carried as words --------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_c72_16_bit_elements_are_carried_as_words(dtype: str) -> None:
    lowered = lower(one_warp((2, 2, 2, 16), dtype, 1.0), target="sm_80", scope="warp")
    kinds = {r.role: (r.kind, r.count, r.dtype) for r in lowered.program.registers}
    assert kinds == {
        "A": ("b32", 16, dtype),
        "B": ("b32", 8, dtype),
        "C": ("f32", 16, "float32"),
        "D": ("f32", 16, "float32"),
    }
    assert all(o.kind in ("f32", "b32") for i in lowered.program.instructions for o in i.operands)
    # No element type but in the name of the instruction and in comments, so nothing of a bf16 header is needed.
    ptx = re.sub(r"//.*", "", lowered.ptx)
    for line in ptx.splitlines():
        if "f16" in line and "mma.sync" not in line:
            assert re.search(r"gemm_m\d+n\d+k\d+_b?f16", line), line
    cuda = re.sub(r"//.*", "", lowered.cuda)
    assert "__nv_bfloat16" not in cuda
    assert "__half" not in cuda
    assert "unsigned" in cuda


def test_c72_a_bf16_gemm_runs_on_ml_dtypes() -> None:
    check(one_warp((2, 2, 2, 16), "bfloat16", 1.0))
    x = np.full((16, 16), 1.0 + 2.0**-9).astype(ml_dtypes.bfloat16)  # rounds to 1
    call = one_warp((1, 1, 1, 16), "bfloat16")
    assert (lower(call, target="sm_80", scope="warp").run(A=x, B=np.ones((16, 8))) == 16).all()


# --- C73: malformed shapes ----------------------------------------------------------------------

TYPES = ("float16", "float16", "float32", "float32")


@pytest.mark.parametrize(
    ("mnk", "words"),
    [
        ((16, 8, 0), "k must be at least 1, got 0"),
        ((-16, 8, 16), "m must be at least 1, got -16"),
        ((True, 8, 16), "m must be an integer, got bool"),
        ((16, False, 16), "n must be an integer, got bool"),
        ((16, 8, 16.0), "k must be an integer, got float"),
        ((16, "8", 16), "n must be an integer, got str"),
        ((16, None, 16), "n must be an integer, got NoneType"),
        ((12, 8, 16), "m must be a multiple of 8, got 12"),
        ((16, 8, 12), "k must be a multiple of 8, got 12"),
    ],
)
def test_c73_a_malformed_instruction_is_refused(mnk: tuple, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        MmaInstruction(*mnk, *TYPES, k_pack=2, sm=80, ptx=(7, 0))


@pytest.mark.parametrize("mnk", [(16, 8), (16, 8, 16, 1)])
def test_c73_an_instruction_has_three_extents(mnk: tuple) -> None:
    with pytest.raises(TypeError):
        MmaInstruction(*mnk, *TYPES, k_pack=2, sm=80, ptx=(7, 0))


def test_c73_numpy_integers_are_integers() -> None:
    record = MmaInstruction(
        np.int64(16), np.uint8(8), np.int32(16), *TYPES, k_pack=np.int8(2), sm=80, ptx=(7, 0)
    )
    assert record == MMA_INSTRUCTIONS[0]
    assert all(type(x) is int for x in (record.m, record.n, record.k, record.k_pack))
    d = Tile("D", np.array([16, 8]), "float32", D_FRAG)
    a = Tile("A", (np.int64(16), np.uint16(16)), "float16", A_FRAG)
    check(gemm(d, a, B, d))
    assert tiled(record, "A", (np.int64(2), np.uint8(3))) == tiled(record, "A", (2, 3))


@pytest.mark.parametrize(
    "shape", [(16,), (16, 16, 1, 0), (16, 0), (-16, 16), (16, True), (True, 256), (16, 16.0), "16", None, 16]
)
def test_c73_a_malformed_shape_of_a_tile_is_refused(shape: object) -> None:
    with pytest.raises((TypeError, ValueError)) as error:
        Tile("A", shape, "float16", A_FRAG)  # type: ignore[arg-type]
    assert "Tile A" in str(error.value)


@pytest.mark.parametrize("tiles", [(0, 1), (-1, 2), (True, 2), (2,), (2, 2, 2), 2, None, (1.5, 1), "ab"])
def test_c73_a_malformed_tiling_is_refused(tiles: object) -> None:
    with pytest.raises(LayoutError, match="tiled"):
        tiled(MMA_INSTRUCTIONS[0], "A", tiles)  # type: ignore[arg-type]


def test_c73_other_malformed_arguments_are_refused() -> None:
    record = MMA_INSTRUCTIONS[0]
    for make in (
        lambda: operand_shape(record, "E"),  # type: ignore[arg-type]
        lambda: layout(record, "a"),  # type: ignore[arg-type]
        lambda: layout(record, None),  # type: ignore[arg-type]
        lambda: spread(D_FRAG, (16, 8), 2, 2, "warpid"),
        lambda: spread(D_FRAG, (16, 8), 0, 0, "warpid"),
        lambda: spread(D_FRAG, (16, 8), 0, 2, "warp"),
        lambda: spread(D_FRAG, (16, 4), 0, 2, "warpid"),
        lambda: replicated(D_FRAG, 0, "warpid"),
        lambda: replicated(D_FRAG, True, "warpid"),
        lambda: transposed(D_FRAG, (16, 4)),
        lambda: transposed(D_FRAG, (128,)),  # type: ignore[arg-type]
    ):
        with pytest.raises(LayoutError):
            make()
