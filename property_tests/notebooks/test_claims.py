"""What the notebooks teach, asked again from outside: of what they leave, and of other sources than theirs."""

from __future__ import annotations

import re
import subprocess
import sys
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lowering import DispatchError, Tile, gemm, lower, register_dispatch, registered, temporary_variants
from lowering.backends.assemble import assemble
from lowering.errors import MachineError
from lowering.isa import DENSE
from lowering.target import target
from notebooks.session import text_of
from tilelayout import S, Swizzle, TileLayout

from .executed import PATHS, code, fresh, prose, shown


def left_by(number: int) -> dict[str, Any]:
    (name,) = [name for name in PATHS if name.startswith(f"{number:02}_")]
    return fresh(name)[1]


def test_every_notebook_is_asked() -> None:
    numbers = [int(name[:2]) for name in PATHS]
    assert [n for n in numbers if not any(f.startswith(f"test_notebook_{n}_") for f in globals())] == []


def test_the_first_notebook_answers_by_looking() -> None:
    """A[5, 9] of m16n8k16: the first picture says it, and it is what the instruction's operand map says."""
    first = next(iter(PATHS))
    picture = shown(first, "image/svg+xml")[0]
    assert "element (5, 9) of 16 bits\nlane 20, slot 5 (register 2, bits 16-31; bytes 10-11)" in picture
    rows = shown(first, "text/plain")[0].splitlines()
    (row,) = [line for line in rows if line.split()[:1] == ["5"]][-1:]
    assert row.split()[1:][2 * 9 : 2 * 9 + 2] == ["T20", "r2"]
    record = next(i for i in DENSE if i.name == "m16n8k16.f16")
    row_of, column_of = record.index("A")
    assert (row_of[20][5], column_of[20][5]) == (5, 9)
    # The question stands before anything else is explained, in the first cells.
    assert "TileLayout(S[(2, 8, 2, 4, 2)" in code(first)[1]


def test_notebook_1_reads_the_line_of_A() -> None:
    space = left_by(1)
    A, by_hand = space["A"], space["place_by_hand"]
    for flat in range(256):
        digits = np.unravel_index(flat, (2, 8, 2, 4, 2))
        assert A.apply(flat) == {
            "laneid": 4 * digits[1] + digits[3],
            "m": 2 * digits[0] + 4 * digits[2] + digits[4],
        }
    assert [by_hand((3, 5), (7, 2), f) for f in range(15)] == [7 * (f // 5) + 2 * (f % 5) for f in range(15)]
    assert len(space["moved"].owners(0)) == 2


def test_notebook_2_makes_A_and_its_warps() -> None:
    space = left_by(2)
    A, four, tile, big = space["A"], space["four"], space["tile"], space["big"]
    assert A.equivalent(left_by(1)["A"])
    for i in range(32):
        for j in range(32):
            warp = 2 * (i // 16) + j // 16
            assert four.apply(i, j, shape=(32, 32)) == {
                "warpid": warp,
                **A.apply(i % 16, j % 16, shape=(16, 16)),
            }
    assert big.is_injective()
    assert not big.equivalent(A)
    assert tile.is_bijective()
    address, memory = space["address"], space["memory"]
    assert sorted(address.apply(p)["m"] for p in range(64)) == list(range(64))
    assert memory.equivalent(TileLayout(S[(8, 8) : (1, 8)]))


def test_notebook_3_has_the_operand_maps() -> None:
    """The formulas in the notebook against the maps of `isa`, which are written from the manual apart from them."""
    space = left_by(3)
    row_of, column_of = space["mma"].index("A")
    for lane in range(32):
        for i in range(8):
            assert space["manual_A"](lane, i) == (row_of[lane][i], column_of[lane][i])
    row_of, column_of = space["s8"].index("A")
    lane, slot = space["place"]["laneid"], space["place"]["m"]
    assert (row_of[lane][slot], column_of[lane][slot]) == (5, 9)
    chosen = [cell for row in space["figure"].grid.cells for cell in row if cell.key == "A[5, 9]"]
    assert [cell.lines for cell in chosen] == [("T20:a5",)]
    marked = [cell for row in space["figure"].grid.cells for cell in row if cell.key == "the same lane"]
    assert len(marked) == 7


def test_notebook_3_says_what_the_shell_says() -> None:
    command = Path(sys.executable).parent / "tilelayout"
    (block,) = re.findall(r"```\n(\$ .*?)```", prose("03_fragments_and_the_ptx_figures"), re.DOTALL)
    for call in block.removeprefix("$ ").split("\n$ "):
        line, _, answer = call.partition("\n")
        name, *arguments = line.split()
        done = subprocess.run([command, *arguments], capture_output=True, text=True, check=True)
        assert name == "tilelayout"
        assert done.stdout.strip() == answer.strip()


def test_notebook_4_multiplies_and_refuses() -> None:
    space = left_by(4)
    assert space["lowered"].variant == space["larger"].variant == space["four"].variant == "mma.m16n8k*"
    rng = np.random.default_rng(1)
    a, b = rng.integers(-4, 5, (64, 32)), rng.integers(-4, 5, (32, 64))
    product = space["four"].run(A=a.astype(np.float16), B=b.astype(np.float16))
    np.testing.assert_array_equal(product, a @ b)
    a, b = rng.integers(-4, 5, (16, 16)), rng.integers(-4, 5, (16, 8))
    tripled = space["tripled"].run(A=a.astype(np.float16), B=b.astype(np.float16))
    np.testing.assert_array_equal(tripled, 3 * (a @ b))
    assert "mine.scaled" not in [variant.name for variant in registered("gemm")]
    text = "".join(
        text_of(output["text"])
        for cell in fresh("04_from_layouts_to_mma_sync")[0]["cells"]
        for output in cell.get("outputs", [])
        if output["output_type"] == "stream"
    )
    for word in ("alpha is 2.0", "lane offset", "replica"):
        assert word in text


def test_the_variant_of_notebook_4_declines_what_it_would_do_wrong() -> None:
    space = left_by(4)
    half = Tile("D", (16, 8), "float16", space["D"].layout)
    A, B, tall = (
        space["A"],
        space["B"],
        Tile("D", (32, 8), "float32", space["D"].layout.tile_to((32, 8), (16, 8))),
    )
    with temporary_variants():
        register_dispatch("gemm", "cuda", variant="mine.scaled", priority=20, when=[space["scales"]])(
            space["scaled_gemm"]
        )
        for D, reason in ((half, "D is float16"), (tall[:16, :], "would be scaled, too")):
            with pytest.raises(DispatchError, match=reason):
                lower(gemm(D, A, B, D, alpha=3.0), target="sm_80", scope="warp")


def test_notebook_5_has_conflicts_and_none() -> None:
    """Banks counted from addresses here, not asked of the analysis."""
    space = left_by(5)

    def degree(layout: Any) -> int:
        banks: dict[int, set[int]] = {}
        for row in range(8):
            for column in range(8):
                word = layout.apply(row, column, shape=(8, 64))["m"] * 2 // 4
                banks.setdefault(word % 32, set()).add(word)
        return max(map(len, banks.values()))

    degrees = [degree(space[x]) for x in ("plain", "padded", "swizzled", "trap")]
    assert degrees == [8, 1, 1, 2]
    assert space["said"] == space["swizzled"]
    assert space["plan"].best.swizzle == Swizzle(3, 3, 3)
    for (row, swizzle), found in space["degrees"].items():
        words = [{swizzle(row * r + c) * 2 // 4 for c in range(8)} for r in range(8)]
        banks: dict[int, set[int]] = {}
        for word in set().union(*words):
            banks.setdefault(word % 32, set()).add(word)
        assert found == max(map(len, banks.values())), (row, swizzle)


def test_notebook_6_builds_a_kernel_that_needs_each_of_its_waits() -> None:
    """Other extents than there, the swizzle counted by hand, and each order of the waits but one refused."""
    space = left_by(6)
    run, kernel, turn = space["run"], space["kernel"], space["turn"]
    rng = np.random.default_rng(1)
    for m, n, depth in ((64, 64, 64), (8, 128, 72), (129, 40, 200)):
        a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((m, depth), (depth, n)))
        np.testing.assert_array_equal(
            run(space["by_hand"], a, b), a.astype(np.float64) @ b.astype(np.float64)
        )
    for row in range(64):
        for unit in range(8):
            place = space["swizzled"].apply(row, 8 * unit, shape=(64, 64))["m"]
            assert place == 64 * row + 8 * (unit ^ row % 8)
    waits = [space[x] for x in ("commit", "wait", "arrived")]
    at = next(i for i, s in enumerate(turn) if s is waits[0])
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((64, 128), (128, 64)))
    for order in permutations(waits):
        program = kernel([*turn[:at], *order, *turn[at + 3 :]])
        if list(order) == waits:
            assert (run(program, a, b) == a.astype(np.float64) @ b.astype(np.float64)).all()
        else:
            with pytest.raises(MachineError):
                run(program, a, b)
    assert space["engine_map"].swizzle == 128
    assert assemble(space["ptx"], target("sm_80")).local_bytes == 0
