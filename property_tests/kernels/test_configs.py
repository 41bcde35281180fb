"""Every way of cutting that is offered: it builds, assembles without local memory, and fits the target."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from lowering.backends.assemble import AssemblerError, assemble
from lowering.backends.banks import shared_accesses
from lowering.kernels import Config, GemmKernel, gemm
from lowering.kernels.gemm.built import Built
from lowering.kernels.gemm.choose import configs, unroll_of
from lowering.kernels.gemm.config import MOST_WARPS
from lowering.kernels.gemm.numbers import Extents
from lowering.kernels.gemm.problem import Problem
from lowering.kernels.gemm.refine import streaming
from lowering.kernels.gemm.room import SHARED
from lowering.target import TARGETS, target
from tilelayout import LayoutError

from .problems import FACTORS, FUNCTIONS

assembling = pytest.mark.skipif(
    sys.platform not in ("linux", "win32"), reason="NVIDIA's libraries are not published for this system"
)
REGISTERS = 65536
"""32-bit registers of a multiprocessor."""
GRANULE = 256
"""Registers that a warp is given at a time."""
ORDERS = {"along K": ("row", "column"), "across K": ("column", "row")}
"""How A and B lie: contiguous along K, or along rows and columns of the result."""
ONE_OF_EACH = [name for name in TARGETS if not name.endswith(("a", "f"))]
SPILLING = {("sm_90a", "tfloat32", "across K"): 2}
"""Where the largest spill two or three words, and how many: a kernel goes on to the next."""
MEASURED = ("sm_75", "sm_80", "sm_86", "sm_90a", "sm_120")
"""Targets whose every configuration is assembled."""


def types_of(name: str) -> tuple[str, ...]:
    return max((sm, names) for sm, names in FACTORS.items() if sm <= target(name).sm)[1]


@cache
def problem(name: str, dtype: str, orders: str = "along K", bytes_each: int = 16) -> Problem | None:
    """The problem of a kernel that has nothing but A and B; None where the target has no instruction for the type."""
    a, b = ORDERS[orders]
    try:
        found = gemm(dtype, A=a, B=b, target=name).problem
    except LayoutError:
        return None
    return found.aligned(**{m.name: max(bytes_each, m.bytes) for m in found.matrices})


def offered(name: str, given: Problem | None) -> list[Config]:
    return [] if given is None else configs(given, target(name))


def fits(built: Built) -> None:
    """It assembles, spills nothing, and its registers and shared memory are those of one multiprocessor."""
    config, where = built.config, built.target
    assert built.program.warps == config.all_warps <= MOST_WARPS
    cubin = assemble(built.ptx, where)
    assert cubin.local_bytes == 0
    assert cubin.spill_bytes == 0
    assert cubin.registers <= 255
    # Of a kernel whose warps give registers to others the assembler reports what each has at the beginning.
    of_warp = -(-cubin.registers * 32 // GRANULE) * GRANULE
    assert of_warp * config.all_warps * config.resident <= REGISTERS
    assert 0 < built.shared_memory.bytes <= SHARED[where.sm] * 1024


FEW = [
    ("sm_90a", "float16", "along K", -1), ("sm_90a", "bfloat16", "across K", -2), ("sm_80", "float16", "across K", -1),
    ("sm_75", "int8", "along K", -1), ("sm_89", "float8_e4m3fn", "along K", -1), ("sm_80", "float64", "along K", -1),
    ("sm_120", "tfloat32", "across K", -1), ("sm_103", "float64", "along K", -1),
]  # fmt: skip


@assembling
@pytest.mark.parametrize(("name", "dtype", "orders", "which"), FEW)
def test_some_fit(name: str, dtype: str, orders: str, which: int) -> None:
    given = problem(name, dtype, orders)
    assert given is not None
    fits(Built(given, offered(name, given)[which], target(name)))


@assembling
@pytest.mark.slow
@pytest.mark.parametrize("orders", ORDERS)
@pytest.mark.parametrize("name", MEASURED)
@pytest.mark.parametrize("dtype", FACTORS[89])
def test_all_fit(name: str, dtype: str, orders: str) -> None:
    given = problem(name, dtype, orders)
    if given is None or dtype not in types_of(name):
        assert dtype not in types_of(name)
        return
    found = offered(name, given)
    spilled: list[Config] = []
    for config in found:
        try:
            for unroll in {1, unroll_of(config, None)}:
                fits(Built(given, replace(config, unroll=unroll), target(name)))
        except AssemblerError as error:
            if "local memory" not in str(error):
                raise
            spilled.append(config)
    assert spilled == found[: SPILLING.get((name, dtype, orders), 0)]
    assert len(spilled) < len(found)


@assembling
@pytest.mark.slow
@pytest.mark.parametrize("orders", ORDERS)
@pytest.mark.parametrize("dtype", FACTORS[89])
def test_what_few_rows_take_fits(dtype: str, orders: str) -> None:
    where, given = target("sm_90a"), problem("sm_90a", dtype, orders)
    assert given is not None
    thin = []
    for config in offered("sm_90a", given):
        m, n, k = config.tile
        found = Extents(m, 100 * n, 100 * k, 1, {}, {})
        if (changed := streaming(given, where, config, found)) != config:
            thin.append(changed)
            fits(Built(given, changed, where))
    assert {c.tile[0] for c in thin} >= {16, 32}


@assembling
@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(TARGETS))
def test_the_largest_of_each_target_fits(name: str) -> None:
    for dtype in types_of(name):
        given = problem(name, dtype)
        assert given is not None
        fits(Built(given, offered(name, given)[0], target(name)))


def ends_well(kernel: GemmKernel, bytes_each: int, scaled: bool = False) -> None:
    """The kernel goes from tile to tile until one does not spill, and there is one."""
    aligned = {m.name: max(bytes_each, m.bytes) for m in kernel.problem.matrices}
    for _ in range(12):
        built = kernel.built(aligned=aligned, scaled=scaled)
        if kernel.assembled(built) is not None:
            fits(built)
            return
    pytest.fail(f"{kernel}: no tile of arrays aligned to {bytes_each} bytes does without local memory")


@pytest.fixture
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILELAYOUT_CACHE_DIR", str(tmp_path))


@assembling
@pytest.mark.slow
@pytest.mark.parametrize("bytes_each", [8, 4, 2, 1])
@pytest.mark.parametrize("name", ["sm_75", "sm_80", "sm_90a"])
@pytest.mark.usefixtures("_own_cache")
def test_badly_aligned_arrays_have_one_that_fits(name: str, bytes_each: int) -> None:
    for dtype in ("float16", "int8", "float64", "tfloat32"):
        for a, b in ORDERS.values():
            if dtype in types_of(name):
                ends_well(gemm(dtype, A=a, B=b, target=name), bytes_each)


@assembling
@pytest.mark.slow
@pytest.mark.parametrize("bytes_each", [16, 4, 2])
@pytest.mark.parametrize("name", ["sm_75", "sm_80", "sm_86", "sm_90a"])
@pytest.mark.parametrize("dtype", ["float16", "tfloat32", "float64", "int8"])
@pytest.mark.usefixtures("_own_cache")
def test_all_of_an_epilogue_has_one_that_fits(name: str, dtype: str, bytes_each: int) -> None:
    """alpha, C of the other order, a bias along the rows, a function, batches."""
    if dtype not in types_of(name):
        return
    out = "float32" if dtype == "int8" else None
    kernel = gemm(
        dtype, out=out, C="column", bias="column", epilogue=FUNCTIONS["gelu"], batched=True, target=name
    )
    ends_well(kernel, bytes_each, scaled=True)


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_there_is_a_way_for_every_type(name: str) -> None:
    """Whatever the alignment; and the largest tile comes first."""
    for dtype in types_of(name):
        for bytes_each in (16, 8, 4, 2, 1):
            for orders in ORDERS:
                found = offered(name, problem(name, dtype, orders, bytes_each))
                assert found, (name, dtype, bytes_each)
                sizes = [c.tile[0] * c.tile[1] for c in found]
                assert sizes == sorted(sizes, reverse=True)
                assert len(set(found)) == len(found)


# --- banks --------------------------------------------------------------------------------------


def conflicts(built: Built) -> list[str]:
    return [f"{a.degree}-way: {a.text}" for a in shared_accesses(built.program) if a.degree > 1]


@pytest.mark.parametrize("orders", ORDERS)
@pytest.mark.parametrize("name", ["sm_75", "sm_80", "sm_90a"])
def test_no_lane_waits_for_another_in_the_smallest(name: str, orders: str) -> None:
    given = problem(name, "float16", orders)
    assert given is not None
    built = Built(given, offered(name, given)[-1], target(name))
    assert shared_accesses(built.program)
    assert not conflicts(built)


@pytest.mark.slow
@pytest.mark.parametrize("bytes_each", [16, 8, 4, 2])
@pytest.mark.parametrize("orders", ORDERS)
@pytest.mark.parametrize("name", ["sm_75", "sm_80", "sm_86", "sm_90a"])
def test_no_lane_waits_for_another(name: str, orders: str, bytes_each: int) -> None:
    """16-bit operands, contiguous along K or across it."""
    given = problem(name, "float16", orders, bytes_each)
    assert given is not None
    for config in offered(name, given):
        built = Built(given, config, target(name))
        assert shared_accesses(built.program)
        assert not conflicts(built), (config, conflicts(built)[:3])
