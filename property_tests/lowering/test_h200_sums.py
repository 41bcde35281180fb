"""The models of sm_90 against what an H200 computed: elements in data/h200_sums.json, made by the GPU probe."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lowering.isa.sparse import SparseMma
from lowering.target import target
from property_tests.gpu.probe.elements import slot_bits
from property_tests.gpu.probe.fixture import RECORDS, as_text, fixture, is_told, operands
from property_tests.gpu.probe.numbers import compare, is_exact
from property_tests.gpu.probe.results import page

from .probe_devices import Altered

FILE = Path(__file__).parent / "data" / "h200_sums.json"
MEASURED: dict[str, Any] = json.loads(FILE.read_text())
HOPPER = target("sm_90a")


def unlike(name: str, numerics: str) -> list[int]:
    """The numbers of the elements that a model of the record gets wrong."""
    record, elements = RECORDS[name], MEASURED["elements"][name]
    words = record.instruction.meaning({**operands(record, elements), "numerics": numerics})["D"]
    got = np.array([int(x["got"], 16) for x in elements], np.uint64)
    wrong = slot_bits(record, "D", words) != got[:, None, None]
    return np.flatnonzero(wrong.any(axis=(1, 2))).tolist()


def test_every_floating_product_was_measured() -> None:
    told = {name for name, r in RECORDS.items() if is_told(r) and not r.instruction.refusal(HOPPER)}
    if not MEASURED["recorded"]:  # dense directed cases, and samples
        told = {name for name in told if not isinstance(RECORDS[name], SparseMma)}
    assert MEASURED["elements"].keys() >= told
    assert (MEASURED["card"], MEASURED["target"]) == ("NVIDIA H200", "sm_90a")


@pytest.mark.parametrize("name", MEASURED["elements"])
def test_the_model_gives_what_the_hardware_gave(name: str) -> None:
    """Bit for bit, in every row and column."""
    assert len(MEASURED["elements"][name]) >= 3
    assert unlike(name, "sm_90") == []


def test_the_elements_tell_models_apart() -> None:
    """Many types have elements that the exact sum gets wrong; f64 has one way of adding."""
    wrong = {name for name in MEASURED["elements"] if unlike(name, "exact")}
    assert not any(is_exact(RECORDS[name]) for name in wrong)
    assert {
        n for n in MEASURED["elements"] if n.startswith("m8n8k4.") and n.endswith("f16.f16.f16.f16")
    } <= wrong
    assert len(wrong) > (40 if MEASURED["recorded"] else 12)


@pytest.mark.parametrize("name", ["m16n8k8.bf16", "sp.m16n8k8.tf32", "m8n8k4.row.col.f16"])
def test_a_fixture_is_what_the_device_computed(name: str) -> None:
    """Of a device that flips a bit of every result the elements say so; the text is JSON."""

    def flip(words: Any) -> Any:
        return words ^ np.uint32(1)

    record = RECORDS[name]
    for device, right in ((Altered({}, "sm_90"), True), (Altered({"out": flip}, "sm_90"), False)):
        row: dict[str, Any] = {"name": name, "directed": [], **compare(record, device, 8, record_warps=4)}
        assert row["right"] is right
        assert {run: len(warps) for run, warps in row["recorded"].items()} == {"numbers": 4, "special": 2}
        text = as_text(fixture({"card": "none", "recorded": 4, "rows": [row]}))
        elements = json.loads(text)["elements"][name]
        assert len(elements) >= 5
        words = record.instruction.meaning({**operands(record, elements), "numerics": "sm_90"})["D"]
        got = np.array([int(x["got"], 16) for x in elements], np.uint64)
        wanted = slot_bits(record, "D", words)[:, 0, 0]
        assert ((wanted ^ got) == (0 if right else 1)).all()


def test_the_page_of_what_the_hardware_answers_is_what_was_kept() -> None:
    root = Path(__file__).parents[2]
    kept = json.loads((root / "benchmarks/results/gpu_instructions.json").read_text())
    assert page(kept) == (root / "docs/reference/hardware.md").read_text()
    assert kept["right"] is True
    assert {row["name"] for row in kept["rows"] if row["right"]} >= {
        name for name, record in RECORDS.items() if not record.instruction.refusal(HOPPER)
    }
