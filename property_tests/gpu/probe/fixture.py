"""Elements that a GPU computed, chosen from a probe's JSON, as a small file to test the models with.

    python -m property_tests.gpu.probe.fixture JSON > property_tests/lowering/data/h200_sums.json

Of every product of floating-point numbers: what `--record` kept, some elements of each warp that the exact sum rounded
once would get wrong, NaNs and infinities, and some others; samples that differed from a model; and some of the directed
cases, others for each record.  Words are hexadecimal: a row of A, a column of B, C, D, and a row's codes if sparse.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lowering.dtypes import dtype
from lowering.isa.elements import to_numbers
from lowering.isa.mma import DENSE, MmaInstruction
from lowering.isa.mma.record import Role
from lowering.isa.sparse import MMA_SP, SparseMma

from .directed import cases
from .directed import operands as operands_of_case
from .elements import Matrices, dense_of, read_operands, registers, slot_bits
from .numbers import element_of, held_in

ROLES: tuple[Role, ...] = ("A", "B", "C", "D")
RECORDS: dict[str, Matrices] = {r.name: r for r in (*DENSE, *MMA_SP)}
ABOUT = ("card", "target", "driver", "cuda", "date", "commit", "recorded")
EACH = {"numbers": 3, "special": 2, "samples": 6, "directed": 2}
"""Elements of a record that are chosen, at most, by where they are from; the first directed case comes on top."""

ALL_OF = {"float64": "NaN words", "tfloat32": "tf32, bits that are dropped"}
"""By type of A: the topic of which all directed cases are taken, and no others."""

Element = dict[str, str]


def fixture(probe: dict[str, Any]) -> dict[str, Any]:
    """The file: what was probed, and by record the elements.  Records with other selectors are left out."""
    rows = [row for row in probe["rows"] if row["name"] in RECORDS and "special" in row]
    elements = {row["name"]: chosen(RECORDS[row["name"]], row, number) for number, row in enumerate(rows)}
    return {
        **{name: probe.get(name, 0) for name in ABOUT},
        "elements": {name: found for name, found in elements.items() if found},
    }


def chosen(record: Matrices, row: dict[str, Any], number: int) -> list[Element]:
    """The elements of one row of the JSON; `number` says which of the directed cases."""
    out: list[Element] = []
    for run in ("numbers", "special"):
        warps = row.get("recorded", {}).get(run, [])
        found = [x for warp in warps for x in _of_warp(record, warp, run == "special")]
        out += _spread(found, EACH[run])
        samples = [x for model in row[run].values() for x in model.get("first", [])]
        out += [
            {k: x[k] for k in ("a", "b", "c", "got", "codes") if k in x}
            for x in _spread(samples, EACH["samples"])
        ]
    if isinstance(record, MmaInstruction):
        about = ALL_OF.get(record.a)
        answers = [x for x in row["directed"] if about in (None, x["topic"])]
        if not about:
            told = [x for x in answers if x["got"] != x["exact"]] or answers
            turned = told[number % max(1, len(told)) :] + told
            answers = [*answers[:1], *_spread(turned, EACH["directed"])]
        out += _of_cases(record, answers)
    return [_plain(record, x) for x in out]


def operands(record: Matrices, elements: Sequence[Element]) -> dict[str, Any]:
    """The registers of a warp for each element: all rows of A, columns of B, of C and all metadata are its own."""
    held: dict[str, Any] = {
        role: np.empty((len(elements), *record.operand_shape(role)), np.uint64) for role in ROLES[:3]
    }
    codes: list[Any] = []
    for i, element in enumerate(elements):
        held["A"][i] = _words(element["a"])
        held["B"][i] = _words(element["b"])[:, None]
        held["C"][i] = _words(element["c"])
        if isinstance(record, SparseMma):
            codes.append([_words(element["codes"])] * record.operand_shape("A")[0])
    values = {name: registers(record, role, held[role]) for role, name in read_operands(record)}
    if isinstance(record, SparseMma):
        values["e"] = record.sparsity.words_of(np.array(codes, np.uint8), record.selector)[..., None]
    return values


def _of_warp(record: Matrices, warp: dict[str, str], special: bool) -> list[Element]:
    """The elements of a recorded warp, those in front that tell most."""
    held = {role: _words(warp[role]).reshape(record.operand_shape(role)) for role in ROLES}
    if isinstance(record, SparseMma):
        held["codes"] = _words(warp["codes"]).reshape(-1, record.sparsity.groups)
    d = held["D"]
    found = to_numbers(d, dense_of(record).d)
    at = [tuple(int(x) for x in place) for place in np.ndindex(d.shape)]
    elements = [element_of(held, place) for place in at]
    meant = record.instruction.meaning({**operands(record, elements), "numerics": "exact"})["D"]
    exact = slot_bits(record, "D", meant)[:, 0, 0].reshape(d.shape) == d
    tells = ~np.isfinite(found) if special else ~exact
    return [x for x, place in zip(elements, at, strict=True) if tells[place]] or elements


def _of_cases(record: MmaInstruction, answers: list[dict[str, Any]]) -> Iterator[Element]:
    known = {(case.topic, case.name): case for case in cases(record)}
    for answer in answers:
        case = known.get((answer["topic"], answer["case"]))
        if case is None or len(answer["got"]) != 1:
            continue
        values = operands_of_case(record, case)
        d = np.full((1, *record.index("D")[0].shape), int(answer["got"][0], 16), np.uint64)
        yield element_of(held_in(record, values, d, 0), (0,) * len(record.index("D")))


def _spread(found: list[Any], count: int) -> list[Any]:
    """So many of them, from the first to the last."""
    return found if len(found) <= count else [found[i * len(found) // count] for i in range(count)]


def _plain(record: Matrices, element: Element) -> Element:
    """With codes as numbers (samples show them in binary) and words without a prefix."""
    out = {k: v.removeprefix("0x") for k, v in element.items()}
    if isinstance(record, SparseMma) and all(len(code) == 4 for code in out["codes"].split()):
        out["codes"] = " ".join(f"{int(code, 2):x}" for code in out["codes"].split())
    return out


def _words(text: str) -> Any:
    return np.array([int(x, 16) for x in text.split()], np.uint64)


def as_text(found: dict[str, Any]) -> str:
    """JSON with a line for each element."""
    head = [f" {json.dumps(k)}: {json.dumps(v)}," for k, v in found.items() if k != "elements"]
    records = [
        f"  {json.dumps(name)}: [\n" + ",\n".join(f"   {json.dumps(x)}" for x in elements) + "\n  ]"
        for name, elements in found["elements"].items()
    ]
    return "\n".join(["{", *head, ' "elements": {', ",\n".join(records), " }", "}"])


def is_told(record: Matrices) -> bool:
    """Whether a fixture has elements of the record: floating-point, without scale factors."""
    return not dtype(dense_of(record).a).is_integer and dense_of(record).scale is None


if __name__ == "__main__":
    print(as_text(fixture(json.loads(Path(sys.argv[1]).read_text()))))
