"""The GPU probe's random data, comparisons, directed cases, workers and summary, without a GPU."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lowering.isa.mma import DENSE, Role
from lowering.isa.sparse import MMA_SP
from lowering.target import target
from property_tests.gpu.probe import draw
from property_tests.gpu.probe.__main__ import main
from property_tests.gpu.probe.device import GpuError, Machine
from property_tests.gpu.probe.directed import cases, operands
from property_tests.gpu.probe.elements import dense_of, read_operands, registers, slot_bits, slot_numbers
from property_tests.gpu.probe.numbers import compare, hypotheses, is_exact
from property_tests.gpu.probe.report import directed_lines, line, totals
from property_tests.gpu.probe.rows import plan, run_row
from property_tests.gpu.probe.worker import in_turn, in_workers

from .probe_devices import Altered

RECORDS: dict[str, Any] = {r.name: r for r in (*DENSE, *MMA_SP)}
FLOATING = ["m16n8k16.bf16", "m16n8k8.tf32", "m16n8k16.f16.f16.f16.f16", "m16n8k16.e5m2", "m8n8k4.f64"]


@pytest.mark.parametrize("name", [*FLOATING, "sp.m16n8k16.f16", "m8n8k4.row.col.f32.f16.f16.f16"])
def test_random_data_is_of_every_kind_and_no_sum_overflows(name: str) -> None:
    record = RECORDS[name]
    values = draw.operands(record, 64, np.random.default_rng(1))
    in_place = "C" not in values
    roles: tuple[Role, ...] = ("A", "B", "C")
    for role in roles:
        numbers = slot_numbers(record, role, values["D" if in_place and role == "C" else role])
        form = draw.range_of(dense_of(record).element(role))
        assert np.isfinite(numbers).all()
        assert ((numbers != 0) & (np.abs(numbers) < 2.0**form.smallest)).any(), (
            f"no subnormal number in {role}"
        )
        assert ((numbers == 0) & np.signbit(numbers)).any(), f"no -0 in {role}"
        assert (numbers > 0).any()
        assert (numbers < 0).any()
        exponents = np.frexp(np.abs(numbers[numbers != 0]))[1]
        assert exponents.max() - exponents.min() > form.fraction
    d = record.instruction.meaning(values)["D"]
    assert np.isfinite(slot_numbers(record, "D", d)).all()


@pytest.mark.parametrize("name", ["m8n8k16.s8", "m16n8k32.s32.u4.s4.s32.satfinite", "m8n8k128.b1.xor"])
def test_random_integers_reach_both_ends(name: str) -> None:
    record = RECORDS[name]
    values = draw.operands(record, 32, np.random.default_rng(2))
    for role, register in read_operands(record):
        numbers = slot_numbers(record, role, values[register])
        assert len(np.unique(numbers)) > 1
    assert np.abs(slot_numbers(record, "C", values["D"])).max() > 2**31 - 2**9


@pytest.mark.parametrize("name", [*FLOATING, "sp.m16n8k16.bf16", "sp.m16n8k64.e4m3", "m8n8k4.row.row.f16"])
def test_a_device_is_told_by_its_model(name: str) -> None:
    """A machine that adds as sm_90 does is bit-equal under that name, and not under "exact" (f64 has one way only)."""
    found = compare(RECORDS[name], Machine(numerics="sm_90"), 16)
    if is_exact(RECORDS[name]):
        assert found["numbers"] == {"exact": {"equal": 1}}
    else:
        assert found["numbers"]["sm_90"] == {"equal": 1}
        assert found["special"]["sm_90"] == {"equal": 1}
        assert found["numbers"]["exact"]["equal"] < 1
        # The same device is wrong where another model is claimed for it.
        device = Machine(numerics="exact")
        device.numerics = "sm_90"
        device.run = Machine(numerics="exact").run  # type: ignore[method-assign]
        other = compare(RECORDS[name], device, 16)
        assert (other["claimed"], other["right"]) == ("sm_90", False)
        ways = hypotheses(RECORDS[name])
        assert ways
        assert ways.keys() < found["numbers"].keys()
        assert all(found["numbers"][way]["equal"] < 1 for way in ways)
    assert found["claimed"] == ("exact" if is_exact(RECORDS[name]) else "sm_90")
    assert found["right"]
    assert found["nan_words"]


@pytest.mark.parametrize("name", ["m8n8k16.s8", "m8n8k4.f64", "m16n8k16.f16"])
def test_one_flipped_bit_is_shown_with_what_went_into_it(name: str) -> None:
    record = RECORDS[name]

    def flip(words: Any) -> Any:
        words[-1, 7, 1] ^= 1
        return words

    found = compare(record, Altered({"out": flip}), 4)
    entry = found["numbers"]["exact"]
    assert entry["differ"] == 1
    assert not found["right"]
    assert found["claimed"] == "exact"
    (shown,) = entry["first"]
    assert (shown["warp"], shown["lane"]) == (3, 7)
    assert int(shown["got"], 16) ^ int(shown["expected"], 16) in (1, 1 << 32)
    # What is shown gives the expected word when it is multiplied out again.
    values = {
        k: np.zeros((1, 32, v.shape[-1]), np.uint32)
        for k, v in draw.operands(record, 1, np.random.default_rng(0)).items()
    }
    row, column = shown["element"]
    remade = rebuilt(record, values, shown, row, column)
    assert remade == int(shown["expected"], 16)


def rebuilt(record: Any, values: dict[str, Any], shown: dict[str, Any], row: int, column: int) -> int:
    """The element of D, from the bits of its row, its column and C alone."""
    parts: list[tuple[Role, str, tuple[Any, ...]]] = [
        ("A", shown["a"], (row, slice(None))),
        ("B", shown["b"], (slice(None), column)),
        ("C", shown["c"], (row, column)),
    ]
    for role, bits, at in parts:
        matrix = np.zeros((1, *record.operand_shape(role)), np.uint64)
        held = [int(x, 16) for x in bits.split()]
        matrix[(0, *at)] = held if role != "C" else held[0]
        values["D" if role == "C" else role] = registers(record, role, matrix)
    d = slot_bits(record, "D", record.instruction.meaning(values)["D"])
    lane, slot = (
        int(x) for x in np.argwhere((record.index("D")[0] == row) & (record.index("D")[1] == column))[0]
    )
    return int(d[0, lane, slot])


@pytest.mark.parametrize("name", ["m16n8k16.bf16", "m16n8k8.tf32", "m16n8k16.e4m3", "m16n8k32.s8.satfinite"])
def test_directed_cases_give_one_word(name: str) -> None:
    """Every case, under the model of sm_90: all of D is one word, and operands hold what the case says."""
    record = RECORDS[name]
    asked = list(cases(record))
    assert len({(c.topic, c.name) for c in asked}) == len(asked) > 5
    for case in asked:
        d = record.instruction.meaning({**operands(record, case), "numerics": "sm_90"})["D"]
        assert len(np.unique(slot_bits(record, "D", d))) == 1, case


def test_directed_cases_tell_one_clamping_from_several() -> None:
    """C at an end, a product beyond it and one back: a device that clamps after each half gives another word."""
    record = RECORDS["m16n8k64.s4.satfinite"]
    told: list[bool] = []
    for case in cases(record):
        values = operands(record, case)
        words = [slot_numbers(record, role, values[role]) for role in ("A", "B")]
        a, b = (np.empty(record.operand_shape(role)) for role in ("A", "B"))
        a[record.index("A")], b[record.index("B")] = words[0][0], words[1][0]
        half = record.k // 2
        total = np.clip(np.float64(case.c) + (a[:, :half] @ b[:half])[0, 0], -(2.0**31), 2.0**31 - 1)
        total = np.clip(total + (a[:, half:] @ b[half:])[0, 0], -(2.0**31), 2.0**31 - 1)
        once = slot_numbers(record, "D", record.instruction.meaning(values)["D"])[0, 0, 0]
        told.append(bool(total != once))
    assert any(told)


# --- rows, workers, summary -------------------------------------------------------------------------


def test_a_row_that_fails_does_not_stop_the_others() -> None:
    class Broken(Machine):
        error: Exception = GpuError("719")

        def run(self, *_: Any, **__: Any) -> Any:
            raise self.error

    name = "m8n8k4.f64"
    row, sound = run_row(name, plan(Machine().target)[name], Broken(), 2)
    assert (row["name"], row["right"], row["why"], sound) == (name, False, "GpuError: 719", False)
    Broken.error = ValueError("odd")
    row, sound = run_row(name, plan(Machine().target)[name], Broken(), 2)
    assert (row["why"], sound) == ("ValueError: odd", True)
    assert "WRONG" in line(row)


WORKER = """
import json, os, sys, time
names, out = json.load(open(sys.argv[-2])), open(sys.argv[-1], "a")
for name in names:
    print(json.dumps({"begins": name}), file=out, flush=True)
    if name == "crash":
        print("struck", file=sys.stderr, flush=True)
        os._exit(7)
    if name == "hang":
        time.sleep(60)
    print(json.dumps({"name": name, "right": name != "unsound"}), file=out, flush=True)
    if name == "unsound":
        break
"""


def test_workers_that_crash_or_hang_cost_one_row() -> None:
    names = ["a", "crash", "b", "unsound", "c", "hang", "d"]
    rows = list(in_turn(names, [], [sys.executable, "-c", WORKER], patience=1.5))
    assert sorted(row["name"] for row in rows) == sorted(names)
    why = {row["name"]: row.get("why", "") for row in rows}
    assert why["crash"] == "status 7: struck"
    assert why["hang"].startswith("the worker was stuck for 1.5 s")
    assert [row["name"] for row in rows if row["right"]] == ["a", "b", "c", "d"]


def test_workers_that_never_begin_say_why() -> None:
    rows = list(in_turn(["a", "b"], [], [sys.executable, "-c", "raise SystemExit('no library')"]))
    assert [(row["name"], row["why"]) for row in rows] == [(n, "status 1: no library") for n in "ab"]


def test_the_whole_runner(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two workers on the meaning: a product and a move, the summary, the JSON, the exit status."""
    out = tmp_path / "probe.json"
    arguments = [
        "--device",
        "meaning",
        "--warps",
        "4",
        "--workers",
        "2",
        "--commit",
        "abc",
        "--json",
        str(out),
    ]
    assert main([*arguments, "--only", "matrix.m8n8.x4.b16"]) == 0
    text = capsys.readouterr().out
    assert "2 of 2 rows right" in text
    assert "maps: 2 of 2" in text
    found = json.loads(out.read_text())
    assert (found["commit"], found["target"], found["right"]) == ("abc", "sm_90a", True)
    assert [row["name"] for row in found["rows"]] == ["ldmatrix.m8n8.x4.b16", "stmatrix.m8n8.x4.b16"]
    assert main([*arguments, "--only", "no such row"]) == 1


def test_without_a_gpu_nothing_is_run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(_: str) -> Any:
        raise RuntimeError("no driver")

    monkeypatch.setattr("property_tests.gpu.probe.__main__.device_of", absent)
    assert main([]) == 2
    assert "no GPU here: nothing was run (no driver)" in capsys.readouterr().out


def test_the_summary_counts() -> None:
    product = {
        "name": "p",
        "right": False,
        "map": {r: {"right": r != "B", "wrong": 3} for r in (*"ABCD", "relation")} | {"right": False},
        "numbers": {"exact": {"equal": 0.5}, "sm_90": {"missing": "none"}},
    }
    move = {"name": "m", "right": True, "map": {"right": True}, "numbers": {"exact": {"equal": 1}}}
    lost = {"name": "x", "right": False, "why": "status 7"}
    assert "B:3 wrong" in line(product)
    assert totals([product, move, lost]) == [
        "1 of 3 rows right",
        "maps: 1 of 2 as the records say",
        "exact: 0 of 1 products bit-equal throughout",
        "sm_90: 0 of 0 products bit-equal throughout",
        "could not be run: x",
    ]
    case = {"topic": "t", "case": "c", "got": ["0x1"], "exact": ["0x1"], "sm_90": ["0x2"]}
    lines = directed_lines([{"name": "r", "directed": [case]}, {"name": "s", "directed": [case]}, lost])
    assert lines == ["t: 2 of 2 as exact, 0 of 2 as sm_90", "    c: 0x1, expected 0x2 (2 records)"]


@pytest.mark.slow
def test_every_row_on_the_meaning() -> None:
    """All of the probe, directed cases included, as on a GPU that computes what the records mean."""
    names = list(plan(target("sm_90a")))
    rows = in_workers("meaning", 4, names, lambda _: None, 2)
    assert [row["name"] for row in rows] == names
    assert [row["name"] for row in rows if not row["right"]] == []
