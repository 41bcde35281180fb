"""Cases that tripped systems of this kind, asked of whole kernels.

Of single copies, of arrays in device memory and of the driver they are asked elsewhere: degrees of conflicts (C28) in
`analysis/test_banks.py` and `lowering/test_copy_banks.py`, overlap of arrays (C54) in `lowering/test_driver_arrays.py`,
too small a destination (C56) in `lowering/test_copy_predicated.py`, PTX newer than the driver (C67) in
`lowering/test_driver_launch.py` and `lowering/test_assemble.py`.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from lowering import DispatchError, Tile, copy, lower
from lowering.backends.banks import shared_accesses
from lowering.backends.cta_machine import EXAMPLES
from lowering.backends.shared_memory import STATIC_LIMIT, SharedMemory
from lowering.compose import relocated
from lowering.fragments import partition
from lowering.kernels import Config, gemm
from lowering.kernels.gemm.built import Built
from lowering.kernels.gemm.choose import configs
from lowering.kernels.gemm.stages import build_stages, choose_record
from lowering.program import Address, Buffer, Instr, Program, every, instr_text
from lowering.target import target
from tilelayout import S, TileLayout
from tilelayout.expr import evaluate

from .problems import Case, arrays, check, reference
from .simulated import found_for, simulated

FEEDS = ("tma", "cp_async", "registers")
PLAIN = Case(
    11, "sm_90a", ("float16", "float16"), "float32", "float32", (48, 40, 64), {"A": "row", "B": "column", "D": "row"}
)  # fmt: skip


def holds(case: Case, **more: Any) -> None:
    given = arrays(case)
    want, tolerance = reference(case, {name: x.array for name, x in given.items()})
    check(case, simulated(case, given, **more), want, tolerance)


def instructions(program: Program) -> list[Instr]:
    return [s for s in every(program.body) if isinstance(s, Instr)]


# --- C28: the stages that kernels choose ------------------------------------------------------------


@pytest.mark.parametrize("depth", [32, 64, 128])
@pytest.mark.parametrize("feed", FEEDS)
def test_c28_stages_of_any_width_have_no_conflicts(feed: Any, depth: int) -> None:
    """Rows of 32, 64 and 128 halves, of which plain ones are 4-, 8- and 8-way."""
    config = Config((32, 32, depth), (2, 1), 2, feed)
    program = replace(PLAIN, config=config).kernel.program
    matrices = [a for a in shared_accesses(program) if a.instruction.startswith("ldmatrix")]
    assert matrices
    assert {a.degree for a in matrices} == {1}
    tile = Tile("plain", (32, depth), "float16", TileLayout(S[32, depth]), "shared", 128)
    parts = partition(choose_record(PLAIN.kernel.problem, target("sm_90a")), 32, 32, 16, warps=(2, 1))
    read = lower(
        copy(Tile("A", (32, 16), "float16", parts.A), tile[:, :16]), target="sm_90a", scope="cta", launch=64
    )
    assert {a.degree for a in shared_accesses(read.program)} == {{32: 4}.get(depth, 8)}


# --- C43: which lane points at which row ------------------------------------------------------------


@pytest.mark.parametrize(("name", "orders"), [("A", "row"), ("A", "column"), ("B", "row"), ("B", "column")])
def test_c43_a_lane_points_at_the_row_that_its_register_is_filled_from(name: str, orders: str) -> None:
    """Of every ``ldmatrix`` of a kernel's first step, through the swizzle of the stage."""
    kernel = gemm("float16", A=orders, B=orders, target="sm_80")
    config = Config((32, 32, 32), (1, 1), 2, "cp_async")
    stages = build_stages(kernel.problem, config, kernel.target)
    tile, piece = stages.tiles[name], stages.loads[name, 0].program
    where = {int(at): place for place, at in np.ndenumerate(tile.layout.table(tile.shape)["m"])}
    loads = [s for s in instructions(piece) if s.instruction.name.startswith("ldmatrix")]
    assert loads
    for load in loads:
        slots: Any = next(a for a in load.arguments if isinstance(a, tuple))
        address = next(a for a in load.arguments if isinstance(a, Address))
        trans = ".trans" in load.instruction.name
        assert trans == ((name, orders) in (("A", "column"), ("B", "row")))
        for lane in range(8 * len(slots)):
            register, line = slots[lane // 8].index, lane % 8
            # Registers of a fragment: A's are rows and then depths of 8, B's depths of 8 in each 8 columns.
            if name == "A":
                begin = (16 * (register // 4) + 8 * (register % 2), 8 * (register // 2 % 2))
            else:
                begin = (8 * (register % 2), 8 * (register // 2))
            along = 0 if orders == "row" else 1
            wanted = [begin[0], begin[1]]
            wanted[along] += line
            place = where[evaluate(address.coordinate[0], {"lane": lane, "warp": 0})]
            assert list(place) == wanted


# --- C44: transposed operands below and above 16 bits -------------------------------------------


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "tfloat32", "int8", "float8_e4m3fn"])
def test_c44_transposed_operands(dtype: str) -> None:
    """B stored (K, N): only 16-bit elements go through ``ldmatrix.trans``; others are gathered, and right."""
    case = replace(
        PLAIN, types=(dtype, dtype), orders={"A": "row", "B": "row", "D": "row"}, accumulator=_sums(dtype)
    )
    case = replace(case, out="int32" if dtype == "int8" else "float32", config=None)
    problem, where = case.kernel.problem, case.kernel.target
    record = choose_record(problem, where)
    stages = build_stages(problem, Config((32, 32, 2 * record.k), (2, 1), 2, "registers"), where)
    assert stages.loads["A", 0].variant == "copy.ldmatrix"
    if dtype in ("float16", "bfloat16"):
        names = {s.instruction.name for s in instructions(stages.loads["B", 0].program)}
        assert stages.loads["B", 0].variant == "copy.ldmatrix"
        assert all(".trans" in name for name in names)
    else:
        assert stages.loads["B", 0].variant in ("copy.scalar", "copy.vector")
        fragment = Tile("B", (record.k, 32), dtype, partition(record, 32, 32, record.k, warps=(2, 1)).B)
        call = copy(fragment, stages.tiles["B"][: record.k, :])
        with pytest.raises(DispatchError) as error:
            lower(call, target=where, scope="cta", launch=64, dispatch="copy.ldmatrix")
        said = " ".join(str(error.value).split())
        assert "m8n8.trans.b16: " in said
        assert ("units of 16 bits" if dtype != "tfloat32" else "holds what is at byte") in said
    holds(case)


def _sums(dtype: str) -> str:
    return "int32" if dtype == "int8" else "float32"


# --- C51: rows belong to whom they are stored by --------------------------------------------------


C51 = [
    ("tma", (8, 1)),
    ("tma", (4, 2)),
    ("tma", (2, 4)),
    ("cp_async", (8, 1)),
    ("cp_async", (2, 4)),
    ("registers", (4, 2)),
]


@pytest.mark.parametrize(("feed", "warps"), C51)
def test_c51_each_row_is_stored_by_the_warp_that_computed_it(feed: Any, warps: tuple[int, int]) -> None:
    """256 rows: element (r, c) is made to be 256 r + c, so that any other owner stores another number."""
    m, n = 256, 64
    slots = int(feed == "tma" and n // warps[1] >= 32)
    config = Config((m, n, 32), warps, 2, feed, slots=slots)
    kernel = gemm("float16", out="float32", target="sm_90a", config=config)
    a, b = np.zeros((m, 32), np.float16), np.zeros((32, n), np.float16)
    a[:, 0], a[:, 1] = np.arange(m), 1
    b[0], b[1] = 256, np.arange(n)
    found = kernel.simulate(a, b)
    np.testing.assert_array_equal(found, 256 * np.arange(m)[:, None] + np.arange(n))


# --- C52: clear or accumulate ---------------------------------------------------------------------


@pytest.mark.parametrize("feed", FEEDS)
@pytest.mark.parametrize("beta", [0.0, 1.0, None])
def test_c52_a_preset_result(feed: Any, beta: float | None) -> None:
    """K = 64 in four products; C holds 100 everywhere."""
    case = replace(
        PLAIN, orders={**PLAIN.orders, "C": "row"}, beta=beta, config=Config((16, 32, 32), (1, 2), 2, feed)
    )
    given = arrays(case)
    given["C"].array[...] = 100
    added = 0 if beta == 0 else 100
    found = simulated(case, given)
    a, b = (given[x].array.astype(np.float64) for x in "AB")
    np.testing.assert_array_equal(found, a @ b + added)


@pytest.mark.parametrize("feed", FEEDS)
def test_c52_nothing_of_one_tile_stays_for_the_next(feed: Any) -> None:
    """One CTA goes through all tiles."""
    holds(replace(PLAIN, extents=(96, 128, 96), config=Config((32, 32, 32), (2, 1), 2, feed)))


@pytest.mark.parametrize(("rows", "slots"), [(1, 2), (3, 2), (2, 3), (2, 2)])
def test_c52_a_slot_is_free_before_the_next_tile_takes_it(rows: int, slots: int) -> None:
    """Of rows of blocks that slots do not divide, where the same slot is last in one tile and first in the next."""
    config = Config((16 * rows, 32, 32), (1, 1), 2, "tma", slots=slots)
    case = replace(PLAIN, out="float16", extents=(96, 64, 32), config=config)
    for schedule in EXAMPLES[:2]:
        holds(case, schedule=schedule)


# --- C54: C is D ----------------------------------------------------------------------------------


def in_one_memory(feed: Any, order: str, out: str, schedules: tuple[int, ...]) -> None:
    """The kernel with C's memory for D: whatever is read was not yet written."""
    config = Config((32, 32, 32), (2, 1), 2, feed)
    orders = {"A": "row", "B": "column", "C": order, "D": order}
    case = replace(PLAIN, orders=orders, out=out, extents=(45, 37, 40), beta=3.0, config=config)
    given = arrays(case)
    want, tolerance = reference(case, {name: x.array for name, x in given.items()})
    for schedule in schedules:
        shared = {**given, "D": given["C"]}
        check(case, simulated(case, shared, in_place, schedule, written=True), want, tolerance)


@pytest.mark.parametrize(("feed", "order"), [("tma", "row"), ("cp_async", "column"), ("registers", "row")])
def test_c54_c_is_d(feed: str, order: str) -> None:
    in_one_memory(feed, order, "float16", EXAMPLES[:2])


@pytest.mark.slow
@pytest.mark.parametrize("out", ["float32", "float16", "int8"])
@pytest.mark.parametrize("order", ["row", "column"])
@pytest.mark.parametrize("feed", FEEDS)
def test_c54_c_is_d_under_every_schedule(feed: str, order: str, out: str) -> None:
    in_one_memory(feed, order, out, EXAMPLES)


def in_place(program: Program) -> Program:
    """The program with C's accesses at D's memory."""
    d = next(b for b in program.buffers if b.name == "D")
    c = next(b for b in program.buffers if b.name == "C")
    body = relocated(program.body, buffers={c: (d, 0)})
    return replace(program, body=tuple(body), buffers=tuple([b for b in program.buffers if b is not c]))


# --- C55: how arrays may be copied ------------------------------------------------------------------


def widths(program: Program) -> set[int]:
    """Bytes of the asynchronous copies."""
    found = [
        s
        for s in instructions(program)
        if s.instruction.name.startswith("cp.async") and len(s.arguments) == 3
    ]
    return {int(instr_text(s).split(", ")[-2]) for s in found}


@pytest.mark.parametrize(
    ("leading", "offset", "most"),
    [(104, 0, 16), (100, 0, 8), (102, 0, 4), (101, 0, 0), (104, 1, 0), (104, 2, 4), (104, 4, 8), (1, 0, 16)],
)
def test_c55_copies_are_as_wide_as_the_arrays_allow(leading: int, offset: int, most: int) -> None:
    """Halves in rows of so many, so many from the beginning; never 2 bytes by ``cp.async``, and right at any rate."""
    k = min(100, leading)
    rows = 1 if leading == 1 else 24
    case = replace(PLAIN, target="sm_80", extents=(rows, 24, k), pads={})
    given = arrays(case)
    for name, shape in (("A", (rows, k)), ("B", (k, 24))):
        x = given[name]
        strides = (leading, 1) if name == "A" else (1, leading)
        flat = np.full(offset + leading * 24 + 8, np.nan, np.float16)
        moved = replace(x, flat=flat, offset=offset, strides=strides, shape=shape)
        moved.array[...] = x.array
        given[name] = moved
    built, _ = found_for(case, given)
    feed = built.config.feed
    assert feed in (("cp_async", "registers") if most else ("registers",))
    if feed == "cp_async":
        assert widths(built.program) <= {4, 8, 16}
        assert max(widths(built.program)) == most
    want, tolerance = reference(case, {name: x.array for name, x in given.items()})
    check(case, simulated(case, given), want, tolerance)


def test_c55_a_lone_column_of_halves_is_not_copied_asynchronously() -> None:
    """Neighbors along K that are a row apart: no two of them make 4 bytes, whatever the base is aligned to."""
    case = replace(
        PLAIN,
        target="sm_80",
        alignment=2,
        orders={"A": "column", "B": "row", "D": "row"},
        extents=(23, 25, 30),
    )
    built, _ = found_for(case, arrays(case))
    assert built.config.feed == "registers"
    holds(case)


@pytest.mark.parametrize("out", ["float16", "float32", "int8"])
def test_c55_rows_of_thirteen(out: str) -> None:
    """A vector and single elements behind it; what follows the row is guarded."""
    holds(replace(PLAIN, out=out, extents=(20, 13, 64), pads={"D": 1}))


# --- C56: rims ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "extents", [(10, 64, 64), (3, 8, 64), (64, 2, 5), (10, 9, 1), (1, 1, 1), (17, 65, 33)]
)
@pytest.mark.parametrize("feed", FEEDS)
def test_c56_what_is_outside_is_neither_read_nor_written(feed: Any, extents: tuple[int, int, int]) -> None:
    """Around a tile of 16 rows; between rows there is NaN, which would show if the rim were not filled with zeros."""
    config = Config((16, 32, 32), (1, 2), 2, feed)
    for orders in (PLAIN.orders, {"A": "column", "B": "row", "D": "column"}):
        case = replace(PLAIN, extents=extents, orders=orders, pads={"A": 1, "B": 2, "D": 1}, config=config)
        holds(case)


# --- C71: where shared arrays lie ------------------------------------------------------------------


@pytest.mark.parametrize("name", ["sm_75", "sm_80", "sm_86", "sm_90a", "sm_120"])
@pytest.mark.parametrize("orders", ["row", "column"])
def test_c71_shared_arrays_are_aligned_and_apart(name: str, orders: str) -> None:
    kernel = gemm("float16", A=orders, B=orders, target=name)
    for config in configs(kernel.problem, kernel.target)[::3]:
        program = Built(kernel.problem, config, kernel.target).program
        places = SharedMemory.of(program)
        stages: list[Buffer] = [b for b in places.offsets if b.dtype != "uint64"]
        assert len(stages) >= 2
        # For ldmatrix and copies of 16 bytes; and for the engine eight rows as wide as it permutes them.
        assert all(b.alignment % 16 == 0 for b in stages)
        for map_ in program.maps:
            assert (
                next(b for b in stages if b.name == f"s{map_.buffer.name}").alignment % (8 * map_.swizzle)
                == 0
            )
        ends = sorted((at, at + b.bytes) for b, at in places.offsets.items())
        assert all(at % b.alignment == 0 for b, at in places.offsets.items())
        assert all(end <= begin for (_, end), (begin, _) in pairwise(ends))
        assert ends[-1][1] == places.bytes


def declarations(ptx: str) -> list[str]:
    return [line.strip() for line in ptx.splitlines() if ".shared .align" in line]


@pytest.mark.parametrize("stages", [2, 8])
def test_c71_static_and_dynamic_memory_are_never_both(stages: int) -> None:
    kernel = gemm("float16", target="sm_90a", config=Config((64, 64, 64), (2, 2), stages, "tma"))
    found, bytes_used = declarations(kernel.ptx), kernel.best.shared_memory.bytes
    dynamic = [line for line in found if line.startswith(".extern")]
    assert bool(dynamic) == (bytes_used > STATIC_LIMIT) == (stages == 8)
    assert len(dynamic) == len(found) == 1 if dynamic else found
    assert kernel.best.shared_memory.dynamic == (bytes_used if dynamic else 0)
    most = max(b.alignment for b in kernel.program.buffers if b.space == "shared")
    assert f".align {most} " in found[0]
