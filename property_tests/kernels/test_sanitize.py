"""What the run under compute-sanitizer is made of, without a GPU: its reader of reports, its rows, its mistakes."""

from __future__ import annotations

import numpy as np
import pytest

from lowering.backends.assemble import assemble
from lowering.target import target
from property_tests.gpu import gemm_sanitize, sanitize_cases
from property_tests.gpu.sanitize_report import FAILED, KEPT, TOOLS, read

from .problems import Case, arrays, check, reference
from .simulated import found_for, simulated

CLEAN = """========= COMPUTE-SANITIZER
right tma, slots
========= ERROR SUMMARY: 0 errors
"""
INVALID = """========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 4 bytes
=========     at planted+0x90
=========     by thread (126,0,0) in block (0,0,0)
=========     Access to 0x7f0000000200 is out of bounds
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: [0x2e29d9]
=========                in /lib/x86_64-linux-gnu/libcuda.so.1
=========
========= ERROR SUMMARY: 2 errors
"""
RACES = """========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at planted+0x60
=========     and Read access at planted+0x80 [512 hazards]
=========
========= Warning: Race reported between Read access at other+0x570
========= RACECHECK SUMMARY: 2 hazards displayed (1 error, 1 warning)
"""
NO_RACE = "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n"
NOTHING = """========= COMPUTE-SANITIZER
========= Error: Target application terminated before first instrumented API call
========= ERROR SUMMARY: 0 errors
"""


@pytest.mark.parametrize(
    ("text", "status", "counts", "clean"),
    [
        (CLEAN, 0, (0, 0), True),
        (NO_RACE, 0, (0, 0), True),
        (CLEAN + CLEAN, 0, (0, 0), True),
        (INVALID, FAILED, (2, 0), False),
        (INVALID, 0, (2, 0), False),  # whatever the status is
        (INVALID.replace("2 errors", "1 error"), FAILED, (1, 0), False),
        (CLEAN + INVALID, FAILED, (2, 0), False),
        (RACES, FAILED, (1, 1), False),
        (RACES.replace("2 hazards displayed (1 error", "1 hazard displayed (0 errors"), 0, (0, 1), False),
        (NO_RACE + RACES, FAILED, (1, 1), False),
    ],
)
def test_summaries_are_counted(text: str, status: int, counts: tuple[int, int], clean: bool) -> None:
    found = read(text, status)
    assert (found.errors, found.warnings) == counts
    assert found.clean is clean
    assert not found.why


@pytest.mark.parametrize(
    ("text", "status", "words"),
    [
        ("", 1, "no summary, its exit status is 1"),
        ("right tma\n", 0, "no summary"),
        (CLEAN.replace("ERROR", "NO"), -1, "no summary"),
        (CLEAN, 1, "exit status 1 without an error"),
        (NOTHING, 0, "terminated before first instrumented API call"),
        ("said by a kernel: ERROR SUMMARY: 0 errors\n", 0, "no summary"),
    ],
)
def test_a_run_that_was_not_watched_to_its_end_is_not_clean(text: str, status: int, words: str) -> None:
    found = read(text, status)
    assert words in found.why
    assert not found.clean


def test_the_first_lines_of_reports_are_kept_without_the_frames_of_the_host() -> None:
    lines = read(INVALID, FAILED).lines
    assert lines[0] == "========= Invalid __global__ write of size 4 bytes"
    assert len(lines) == 4
    assert read(CLEAN, 0).lines == ()
    assert len(read(RACES, FAILED).lines) == 3
    assert len(read(INVALID * 30, FAILED).lines) == KEPT


def test_a_version_says_whether_stores_of_the_copy_engine_are_seen() -> None:
    older = ["2023.1", "2025.3.1", "2025.3"]
    newer = ["2025.4", "2025.4.1", "2026.1.0", "unknown"]
    assert [v for v in older + newer if gemm_sanitize.before_bulk_stores(v)] == older


def test_without_the_tool_it_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gemm_sanitize, "sanitizer", lambda: None)
    monkeypatch.setattr("sys.argv", ["gemm_sanitize"])
    assert gemm_sanitize.main() == 2
    assert "no compute-sanitizer here" in capsys.readouterr().out


# --- what runs under it -----------------------------------------------------------------------------


def test_rows_feed_and_store_in_every_way() -> None:
    cases = list(sanitize_cases.CASES.values())
    cuts = [c.config for c in cases if c.config]
    assert {c.feed for c in cuts} == {"tma", "cp_async", "registers"}
    split = {(c.feed, bool(c.slots)) for c in cuts if c.splits > 1}
    assert split == {("tma", True), ("tma", False), ("cp_async", False), ("registers", False)}
    assert {c.types[0] for c in cases} == {
        "float16", "bfloat16", "tfloat32", "float64", "int8", "float8_e4m3fn",
    }  # fmt: skip
    assert {c.feed for c in cuts if not c.slots} == {"tma", "cp_async", "registers"}
    collected = {(c.feed, c.sender) for c in cuts if c.slots}
    assert collected == {
        ("tma", "bulk"),
        ("tma", "threads"),
        ("cp_async", "threads"),
        ("registers", "threads"),
    }
    assert {c.bias for c in cases} == {None, "row", "column"}
    assert sum(c.batches is not None for c in cases) >= 3
    assert sum(c.alpha == 0 for c in cases) == 1
    assert sanitize_cases.CASES[gemm_sanitize.PARTS_BY_BULK].config.splits > 1  # type: ignore[union-attr]


@pytest.mark.parametrize("name", sanitize_cases.CASES)
def test_every_row_has_several_tiles_and_unwritten_memory_between_its_rows(name: str) -> None:
    case = sanitize_cases.CASES[name]
    given = arrays(case)
    built, found = found_for(case, given)
    values = built.values(found, case.alpha, 1.0)
    assert values["tiles"] > 1
    for x in (given["A"], given["B"]):
        assert max(x.strides[-2:]) > max(1, min(x.shape[-2:]))
    assert sanitize_cases.runs_on(case, target("sm_90a"))


SLOW = {"tma, slots, unrolled, one set of fragments"}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow if n in SLOW else ()) for n in sanitize_cases.CASES]
)
def test_every_row_is_right_on_the_machine(name: str) -> None:
    """Which also refuses races and reads of what nobody wrote."""
    case: Case = sanitize_cases.CASES[name]
    given = arrays(case)
    check(case, simulated(case, given), *reference(case, {n: x.array for n, x in given.items()}))


def test_runs_are_those_of_the_elements() -> None:
    rng = np.random.default_rng(1)
    for inside in (
        np.array(x, bool) for x in ([], [0], [1], [1, 1, 0], [0, 1, 1, 0, 1], rng.integers(0, 2, 200))
    ):
        found = sanitize_cases.runs(inside)
        made = np.zeros_like(inside)
        for begin, end in found:
            assert inside[begin:end].all()
            assert begin == 0 or not inside[begin - 1]
            made[begin:end] = True
        assert (made == inside).all()


@pytest.mark.parametrize("tool", TOOLS)
def test_planted_mistakes_are_kernels(tool: str) -> None:
    where = target("sm_90a")
    assert assemble(sanitize_cases.text_of(tool).format(target=where.name), where).data
