"""The gemm lowering beside that of TVM TIRx, from which its algorithm comes: accept or decline, and which registers.

What TVM accepts is judged by the reference machine: its registers, our placement of the operands by their layouts.
Where the two disagree, TVM is wrong by the numbers, or the disagreement is of a kind that is listed here:

- a replica that adds no copy (TVM declines every replica);
- strides that fall below zero (TVM sorts by the signed stride, so k_pack may come to stand left of kHi);
- an offset of A's or B's registers (TVM's view of words counts it in words);
- copies over warps: TVM declines replicas, and accepts that an operand lies on one warp although others need it.
"""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lowering import DispatchError, GemmCall, MachineError, Tile, TileRegion, gemm, lower
from lowering.backends.reference import run
from lowering.fragments import A_FRAG, B_FRAG, D_FRAG, tiled
from lowering.isa import COPY, MMA_INSTRUCTIONS, ZERO_F32
from lowering.program import Instr, Program, Registers, Slot
from lowering.registers import register_span
from tilelayout import LayoutError, S, TileLayout, laneid, warpid

from ..gemm_cases import DTYPES, TILINGS, one_warp
from ..lowering.gemm_answers import answer, arrays_of
from ..lowering.test_gemm_layouts import PERMUTED, permuted
from ..lowering.test_gemm_mutations import mutated
from ..lowering.test_gemm_warps import changed, grid

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).with_name("tvm_gemm.py")

A = Tile("A", (16, 16), "float16", A_FRAG)
B = Tile("B", (16, 8), "float16", B_FRAG)
D = Tile("D", (16, 8), "float32", D_FRAG)

Words = list[list[list[int]]]
Answer = dict[str, Any]


# --- asking -------------------------------------------------------------------------------------


def ask(python: Path, calls: Sequence[GemmCall], scope: str = "warp", warps: int = 1) -> list[Answer]:
    """TVM's answer to each call."""
    lines = [json.dumps(request(i, call, scope, warps)) for i, call in enumerate(calls)]
    out = subprocess.run(
        [python, str(SCRIPT)], input="\n".join(lines), capture_output=True, text=True, check=False
    )
    answers = [json.loads(line) for line in out.stdout.splitlines()]
    assert [a["id"] for a in answers] == list(range(len(calls))), out.stderr[-2000:]
    return answers


def request(number: int, call: GemmCall, scope: str, warps: int) -> dict[str, Any]:
    return {
        "id": number,
        "scope": scope,
        "warps": warps,
        "ta": call.transpose_a,
        "tb": call.transpose_b,
        "alpha": float(call.alpha),
        "beta": float(call.beta),
        "in_place": call.C.tile == call.D.tile,
        "operands": {role: operand(region) for role, region in call.operands()},
    }


def operand(region: TileRegion) -> dict[str, Any]:
    layout = region.tile.layout
    return {
        "shape": region.tile.shape,
        "dtype": region.tile.dtype,
        "shard": [[it.extent, it.stride, str(it.axis)] for it in layout.shard],
        "replica": [[it.extent, it.stride, str(it.axis)] for it in layout.replica],
        "offset": {str(a): v for a, v in layout.offset.items()},
        "region": region.bounds,
    }


def ours(call: GemmCall) -> tuple[str, Words] | str:
    """Shape of the instruction and the words of every mma; or why it was declined."""
    try:
        lowered = lower(call, target="sm_100a", scope="warp")
    except DispatchError as error:
        return " ".join(str(error).split())
    steps = [s for s in lowered.program.steps if s.instruction.collective]
    (shape,) = {s.instruction.mnemonic.split(".")[3] for s in steps}
    return shape, [[[i for _, i in argument] for argument in s.arguments] for s in steps]


# --- judging ------------------------------------------------------------------------------------


def on_the_warp_of_d(call: GemmCall) -> GemmCall:
    """The call with D's warp numbered 0, so that what is elsewhere is seen to be elsewhere."""
    base = call.D.tile.layout.offset.get(warpid, 0)
    moved = {}
    for role, region in call.operands():
        t, layout = region.tile, region.tile.layout
        offset = {**layout.offset, warpid: layout.offset.get(warpid, 0) - base}
        tile = Tile(t.name, t.shape, t.dtype, TileLayout.from_iters(layout.shard, layout.replica, offset))
        moved[role] = tile[tuple(slice(*b) for b in region.bounds)]
    return gemm(**moved, transpose_a=call.transpose_a, transpose_b=call.transpose_b, beta=call.beta)


def right(call: GemmCall, found: Answer) -> bool:
    """Whether TVM's registers give the product, when each operand lies where its layout says."""
    call = on_the_warp_of_d(call)
    tiles = call.tiles
    record = next(r for r in MMA_INSTRUCTIONS if r.a == tiles["A"].dtype and found["shape"] == f"m16n8k{r.k}")
    try:
        registers = {role: group(role, tile) for role, tile in tiles.items()}
        body = [begin(registers, *start) for start in found["start"]]
        for words in found["mma"]:
            body.append(
                Instr(
                    record.instruction,
                    tuple(tuple(Slot(registers[r], i) for i in x) for r, x in zip("DAB", words, strict=True)),
                )
            )
        inputs = tuple(registers[role] for role in ("ABC" if call.beta else "AB"))
        program = Program("tvm", 1, inputs, (registers["D"],), tuple(body))
        arrays = arrays_of(call, np.random.default_rng(0))
        out = run(program, tiles, arrays, warpid)
    except (MachineError, LayoutError):  # nothing is there; no such register, lane or warp
        return False
    box = tuple(slice(*b) for b in call.D.bounds)
    return bool(np.array_equal(out[box], answer(call, arrays)[box]))


def group(role: str, tile: Tile) -> Registers:
    words = -(-tile.element.bits * register_span(tile.layout) // 32)
    return Registers(role, role, tile.dtype, words, "f32" if role in "CD" else "b32")


def begin(registers: dict[str, Registers], d: int, c: int | None) -> Instr:
    target = (Slot(registers["D"], d),)
    return (
        Instr(ZERO_F32, (target,)) if c is None else Instr(COPY["f32"], (target, (Slot(registers["C"], c),)))
    )


def disagreement(call: GemmCall, mine: tuple[str, Words] | str, found: Answer) -> str | None:
    """None where both do the same; the kind of a disagreement that is known; AssertionError for another."""
    layouts = [t.layout for t in call.tiles.values()]
    if isinstance(mine, str):
        if not found["ok"]:
            return None
        assert not right(call, found), f"declined although TVM is right: {mine}\n{call.tiles}"
        return "false accept"
    if not found["ok"]:
        if any(x.replica for x in layouts):
            return "replica"
        assert any(it.stride < 0 for x in layouts for it in x.shard), (call.tiles, found["error"])
        return "falling strides"
    if mine == (found["shape"], found["mma"]):
        assert right(call, found)
        return None
    assert any(call.tiles[role].layout.offset.get("m") for role in "AB") or not all(
        r.is_full for _, r in call.operands()
    ), (
        call.tiles,
        mine,
        found,
    )
    assert not right(call, found)
    return "offset of words"


# --- where both are right -----------------------------------------------------------------------


def test_the_shipped_tilings(tvm_python: Path) -> None:
    calls = [
        one_warp(tiling, dtype, beta, in_place=place)
        for tiling in TILINGS
        for dtype in DTYPES
        for beta in (0.0, 1.0)
        for place in (True, False)
    ]
    for call, found in zip(calls, ask(tvm_python, calls), strict=True):
        assert found["ok"], found
        assert ours(call) == (found["shape"], found["mma"])
        assert right(call, found)


def test_the_orientations(tvm_python: Path) -> None:
    calls = [
        one_warp((2, 2, 2, 16), dtype, 1.0, transpose_a=a, transpose_b=b)
        for dtype in DTYPES
        for a in (False, True)
        for b in (False, True)
    ]
    for call, found in zip(calls, ask(tvm_python, calls), strict=True):
        assert ours(call) == (found["shape"], found["mma"])
        assert right(call, found)


def test_permuted_indices(tvm_python: Path) -> None:
    calls = []
    for order in PERMUTED:
        d, a, b = permuted(*order)
        calls.append(gemm(d, a, b, d, beta=1.0))
    for call, found in zip(calls, ask(tvm_python, calls), strict=True):
        assert ours(call) == (found["shape"], found["mma"])
        assert right(call, found)


def test_registers_in_other_places(tvm_python: Path) -> None:
    calls = [
        gemm(
            D,
            Tile(
                "A",
                (16, 16),
                "float16",
                TileLayout(S[(2, 8, 2, 4, 2) : (rM, 4 @ laneid, kHi, 1 @ laneid, 1)]),
            ),
            B,
            D,
        )
        for rM in (2, 4, 6, 8, 40)
        for kHi in (2, 4, 6, 8, 40)
        if rM != kHi
    ]
    calls += [
        gemm(
            Tile(
                "D", (16, 8), "float32", TileLayout(S[(2, 8, 4, 2) : (rM, 4 @ laneid, 1 @ laneid, 1)] + low)
            ),
            A,
            B,
            D2,
        )
        for rM in (2, 3, 4, 7, 64)
        for low in (0, 1, 6)
        for D2 in (Tile("C", (16, 8), "float32", D_FRAG),)
    ]
    for call, found in zip(calls, ask(tvm_python, calls), strict=True):
        assert ours(call) == (found["shape"], found["mma"])
        assert right(call, found)


def test_regions(tvm_python: Path) -> None:
    a = Tile("A", (32, 64), "float16", tiled(MMA_INSTRUCTIONS[0], "A", (2, 4)))
    d = Tile("D", (32, 24), "float32", tiled(MMA_INSTRUCTIONS[0], "D", (2, 3)))
    calls = [
        gemm(d[i : i + 16, j : j + 8], a[0:16, 0:16], B, d[i : i + 16, j : j + 8], beta=1.0)
        for i in (0, 16)
        for j in (0, 8)
    ]
    for call, found in zip(calls, ask(tvm_python, calls), strict=True):
        assert ours(call) == (found["shape"], found["mma"])
    inside = [gemm(D, a[i : i + 16, j : j + 16], B, D) for i in (0, 16) for j in (0, 16)]
    kinds = [disagreement(c, ours(c), f) for c, f in zip(inside, ask(tvm_python, inside), strict=True)]
    assert kinds == [None, "offset of words", "offset of words", "offset of words"]


# --- drawn layouts ------------------------------------------------------------------------------


@pytest.mark.parametrize("start", [0, 1000, 2000])
def test_drawn_layouts(tvm_python: Path, start: int) -> None:
    bases = [
        one_warp(t, "float16", 1.0, in_place=False)
        for t in ((1, 1, 1, 16), (1, 1, 1, 8), (2, 2, 2, 16), (2, 1, 3, 8))
    ]
    bases.append(one_warp((2, 1, 2, 16), "float16", 1.0, transpose_a=True, transpose_b=True))
    calls = [mutated(bases[seed % len(bases)], seed) for seed in range(start, start + 250)]
    answers = ask(tvm_python, calls)
    kinds = Counter(disagreement(c, ours(c), f) for c, f in zip(calls, answers, strict=True))
    accepted = sum(not isinstance(ours(c), str) for c in calls)
    assert kinds[None] >= 190
    assert 60 <= accepted <= 190


# --- where TVM is wrong -------------------------------------------------------------------------


def with_operand(role: str, layout: TileLayout) -> GemmCall:
    operands = {"D": D, "A": A, "B": B, "C": Tile("C", (16, 8), "float32", D_FRAG)}
    known = operands[role]
    operands[role] = Tile(role, known.shape, known.dtype, layout)
    return gemm(**operands, beta=1.0)


FALSE_ACCEPTS = {
    "A's lanes shifted": (
        with_operand("A", TileLayout.from_iters(A_FRAG.shard, (), {"laneid": 4})),
        "lane offset",
    ),
    "A + 1 splits a word": (
        with_operand("A", TileLayout.from_iters(A_FRAG.shard, (), {"m": 1})),
        "register offset 1 splits",
    ),
    "an odd rM stride": (
        with_operand("A", TileLayout(S[(2, 8, 2, 4, 2) : (3, 4 @ laneid, 8, 1 @ laneid, 1)])),
        "rM stride 3 splits",
    ),
    "rM and kHi collide": (
        with_operand("A", TileLayout(S[(2, 8, 2, 4, 2) : (4, 4 @ laneid, 4, 1 @ laneid, 1)])),
        "register strides collide",
    ),
    "warpid for laneid": (
        with_operand("A", TileLayout(S[(2, 8, 2, 4, 2) : (2, 4 @ warpid, 4, 1 @ warpid, 1)])),
        "is on axis warpid",
    ),
    "D on another warp": (
        with_operand("D", TileLayout.from_iters(D_FRAG.shard, (), {"warpid": 1})),
        "warp offset",
    ),
}


def test_the_six_that_tvm_accepts_and_that_are_wrong(tvm_python: Path) -> None:
    calls = [call for call, _ in FALSE_ACCEPTS.values()]
    for (name, (call, words)), found in zip(FALSE_ACCEPTS.items(), ask(tvm_python, calls), strict=True):
        assert found["ok"], (name, found)
        assert not right(call, found), name
        mine = ours(call)
        assert isinstance(mine, str), name
        assert words in mine, (name, mine)


def test_copies_over_warps(tvm_python: Path) -> None:
    """M over two warps: both need B whole. TVM declines a B that says so, and accepts one that lies on warp 0 alone."""
    good = grid(2, 1, 1, 0)
    lonely = changed(good, B=TileLayout.from_iters(good.tiles["B"].layout.shard))
    with_copies, without = ask(tvm_python, [good, lonely], "cta", 2)
    assert not with_copies["ok"]
    assert "replica" in with_copies["error"]
    assert without["ok"]
    assert lower(good, target="sm_100a", scope="cta", launch=64).program.warps == 2
    with pytest.raises(DispatchError, match="B must be held by the 2 warps that split M"):
        lower(lonely, target="sm_100a", scope="cta", launch=64)


def test_what_both_decline(tvm_python: Path) -> None:
    wide = Tile("D", (16, 16), "float32", tiled(MMA_INSTRUCTIONS[0], "D", (1, 2)))
    whole = TileLayout(S[16, 16])
    bf16 = Tile("B", (16, 8), "bfloat16", B_FRAG)
    calls = [
        gemm(D, A, B, D, alpha=2.0),
        gemm(D, A, B, D, beta=0.5),
        gemm(D, A, bf16, D),
        gemm(D, Tile("A", (16, 16), "float32", A_FRAG), Tile("B", (16, 8), "float32", B_FRAG), D),
        gemm(D, Tile("A", (16, 16), "int8", A_FRAG), Tile("B", (16, 8), "int8", B_FRAG), D),
        gemm(wide, A, B, wide),
        gemm(D, Tile("A", (16, 16), "float16", whole), B, D),
        gemm(D, A, B, D, transpose_b=True),
    ]
    for call, found in zip(calls, ask(tvm_python, calls), strict=True):
        assert not found["ok"], call
        assert isinstance(ours(call), str)


def test_a_sum_in_f16_is_an_instruction_here_and_none_to_tvm(tvm_python: Path) -> None:
    half = Tile("D", (16, 8), "float16", D_FRAG)
    call = gemm(half, A, B, half)
    (found,) = ask(tvm_python, [call])
    assert not found["ok"]
    assert lower(call, target="sm_80", scope="warp").instructions == (
        "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16",
    )
