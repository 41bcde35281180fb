"""Questions that random data seldom asks: zeros' signs, NaN words, overflow, tf32 payloads, clamping, fp8 halves.

Every case gives all rows of A one row, all columns of B one column and all of C one number, so that all of D should be
one word.  What comes out is recorded beside what the models say; nothing here decides whether a probe passes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lowering.dtypes import dtype
from lowering.isa.mma import MmaInstruction, Role
from tilelayout.errors import LayoutError

from .device import Device
from .draw import range_of
from .elements import bits_of, read_operands, registers, slot_bits

INF, NAN = float("inf"), float("nan")
LARGEST = 2**31 - 1


@dataclass(frozen=True)
class Case:
    """One question.

    Attributes:
        topic, name: what it is about.
        a, b: ``{k: number}`` along K; the others are `rest`.
        c: the number that C is everywhere.
        rest: a pair: what A and B hold elsewhere.
        raw: bits instead of numbers, by operand: ``{"A": {k: bits}, "C": bits}``.
    """

    topic: str
    name: str
    a: dict[int, float] = field(default_factory=dict)
    b: dict[int, float] = field(default_factory=dict)
    c: float = 0.0
    rest: tuple[float, float] = (0.0, 0.0)
    raw: dict[str, Any] = field(default_factory=dict)


def directed(record: MmaInstruction, device: Device) -> list[dict[str, Any]]:
    """What the device answers to every case of the record, and what the models would."""
    return [_answer(record, case, device) for case in cases(record)]


def _answer(record: MmaInstruction, case: Case, device: Device) -> dict[str, Any]:
    values = operands(record, case)
    found = slot_bits(record, "D", device.run(record.instruction, values)["D"])
    row: dict[str, Any] = {"topic": case.topic, "case": case.name}
    row["got"] = [hex(int(x)) for x in np.unique(found)[:4]]
    for name in ("exact", "sm_90"):
        try:
            wanted = record.instruction.meaning({**values, "numerics": name})["D"]
        except LayoutError:
            row[name] = None
            continue
        row[name] = [hex(int(x)) for x in np.unique(slot_bits(record, "D", wanted))[:4]]
    return row


def operands(record: MmaInstruction, case: Case) -> dict[str, Any]:
    """The registers of one warp."""
    held: dict[str, Any] = {}
    factors: list[tuple[Role, dict[int, float], float]] = [
        ("A", case.a, case.rest[0]),
        ("B", case.b, case.rest[1]),
    ]
    for role, chosen, rest in factors:
        line = np.full(record.k, rest)
        line[list(chosen)] = list(chosen.values())
        bits = bits_of(line, record.element(role))
        for k, word in case.raw.get(role, {}).items():
            bits[k] = word
        shape = (1, *record.operand_shape(role))
        held[role] = np.broadcast_to(bits if role == "A" else bits[:, None], shape)
    c = np.full((1, *record.operand_shape("C")), case.c)
    bits = bits_of(c, record.c)
    held["C"] = np.full_like(bits, case.raw["C"]) if "C" in case.raw else bits
    return {name: registers(record, role, held[role]) for role, name in read_operands(record)}


def cases(record: MmaInstruction) -> Iterator[Case]:
    """What is asked of a record."""
    if dtype(record.a).is_integer:
        if record.satfinite:
            yield from _clamping(record)
        return
    yield from _zero_signs()
    yield from _nothing_numbers(record)
    yield from _overflow(record)
    if record.a == "tfloat32":
        yield from _payloads()
    if record.a.startswith("float8"):
        yield from _halves(record)


def _zero_signs() -> Iterator[Case]:
    topic = "sign of a zero sum"
    yield Case(topic, "all products -0, C -0", rest=(-0.0, 1.0), c=-0.0)
    yield Case(topic, "all products -0, C +0", rest=(-0.0, 1.0), c=0.0)
    yield Case(topic, "all products +0, C -0", rest=(0.0, 1.0), c=-0.0)
    yield Case(topic, "one product +0, others -0, C -0", {0: 0.0}, {}, -0.0, (-0.0, 1.0))
    yield Case(topic, "1 - 1, C +0", {0: 1.0, 1: -1.0}, {0: 1.0, 1: 1.0})
    yield Case(topic, "1 - 1, C -0", {0: 1.0, 1: -1.0}, {0: 1.0, 1: 1.0}, -0.0)
    yield Case(topic, "1 with C -1, others -0", {0: 1.0}, {0: 1.0}, -1.0, (-0.0, 1.0))
    yield Case(topic, "-1 with C 1, others -0", {0: -1.0}, {0: 1.0}, 1.0, (-0.0, 1.0))


def _nothing_numbers(record: MmaInstruction) -> Iterator[Case]:
    topic = "NaN words"
    if record.a != "float8_e4m3fn" and record.b != "float8_e4m3fn":
        yield Case(topic, "infinity times 0", {0: INF}, {0: 0.0})
        yield Case(topic, "infinity minus infinity, of two products", {0: INF, 1: -INF}, {0: 1.0, 1: 1.0})
    if record.a != "float8_e4m3fn":
        yield Case(topic, "infinity with C minus infinity", {0: INF}, {0: 1.0}, -INF)
        yield Case("infinity", "infinity times 1", {0: INF}, {0: 1.0})
    yield Case("infinity", "C minus infinity", c=-INF)
    width = {"float64": (52, 0x7FF), "float32": (23, 0xFF), "float16": (10, 0x1F)}[record.c]
    infinity, quiet, sign = width[1] << width[0], 1 << (width[0] - 1), 1 << (dtype(record.c).bits - 1)
    for name, word in (
        ("quiet", infinity | quiet),
        ("quiet, payload 5", infinity | quiet | 5),
        ("quiet, negative", sign | infinity | quiet | 9),
        ("signaling", infinity | 3),
    ):
        yield Case(topic, f"C a NaN, {name}", raw={"C": word})
    if record.a != "float8_e4m3fn":
        nan = int(bits_of(np.array([INF]), record.a)[0])
        bits = {"float64": 52, "tfloat32": 23, "float16": 10, "bfloat16": 7, "float8_e5m2": 2}[record.a]
        nan |= 1 << (bits - 1)
    else:
        nan = 0x7F
    top = 1 << (dtype(record.a).bits - 1)
    yield Case(topic, "A a NaN", {}, {0: 1.0}, raw={"A": {0: nan}})
    yield Case(topic, "A a negative NaN", {}, {0: 1.0}, raw={"A": {0: nan | top}})
    if record.a == "float64":
        yield from _several_nans(infinity, quiet, sign)
    yield Case(topic, "A a NaN, C another", {}, {0: 1.0}, raw={"A": {0: nan}, "C": infinity | quiet | 5})


def _several_nans(infinity: int, quiet: int, sign: int) -> Iterator[Case]:
    """f64: whose word the result has where several are NaN."""
    topic = "NaN words"
    a, b, c = ({0: infinity | quiet | 5}, {0: sign | infinity | quiet | 6}, infinity | quiet | 7)
    yield Case(topic, "A and B NaNs", raw={"A": a, "B": b})
    yield Case(topic, "B and C NaNs", raw={"B": b, "C": c})
    yield Case(topic, "A, B and C NaNs", raw={"A": a, "B": b, "C": c})
    yield Case(topic, "A a signaling NaN, B and C quiet ones", raw={"A": {0: infinity | 8}, "B": b, "C": c})
    yield Case(topic, "C a signaling NaN, A a quiet one", raw={"A": a, "C": infinity | 8})
    yield Case(topic, "infinity times 0, C a NaN", raw={"A": {0: infinity}, "B": {0: 0}, "C": c})
    yield Case(topic, "A a NaN, infinity times 0 next", raw={"A": {**a, 1: infinity}})
    yield Case(topic, "infinity times 0, A a NaN next", raw={"A": {0: infinity, 1: a[0]}})
    yield Case(topic, "A a NaN, B another next", raw={"A": a, "B": {1: b[0]}})


def _overflow(record: MmaInstruction) -> Iterator[Case]:
    """The largest number of D, and a little more of it, by C and one product or two."""
    topic = "overflow"
    form = range_of(record.d)
    step = 2.0 ** (form.top - form.fraction)  # the last place of the largest number
    largest = min(form.largest, range_of(record.c).largest)
    if largest != form.largest:
        return
    a, b = range_of(record.a), range_of(record.b)
    for share in (0.25, 0.5, 0.75, 1.0, 1.5):
        factors = _factors(share * step, a.top, b.top)
        if factors:
            yield Case(
                topic, f"largest + {share} of its last place", {0: factors[0]}, {0: factors[1]}, largest
            )
            minus = {0: factors[0], 1: -factors[0]}
            both = {0: factors[1], 1: factors[1]}
            yield Case(topic, f"largest + {share} - {share} of its last place", minus, both, largest)
            if record.k >= 8:
                apart = {0: factors[0], record.k - 1: -factors[0]}
                both = {0: factors[1], record.k - 1: factors[1]}
                yield Case(topic, f"largest + {share} - {share}, K first and last", apart, both, largest)
    if a.top + b.top > form.top:
        half = (form.top + 2) // 2
        a_line, b_line = {0: 2.0**half}, {0: 2.0 ** (form.top + 1 - half)}
        yield Case(topic, "one product beyond", a_line, b_line)
        yield Case(topic, "one product beyond, C back", a_line, b_line, -largest)


def _factors(value: float, top_a: int, top_b: int) -> tuple[float, float] | None:
    """Two numbers of few bits whose product is the value; None if it is out of reach."""
    significand, exponent = np.frexp(value)
    split = min(exponent // 2, top_a - 1)
    if exponent - split > top_b:
        split = min(exponent - top_b, top_a - 1)
    if exponent - split > top_b:
        return None
    return float(2.0**split), float(significand * 2.0 ** (exponent - split))


def _payloads() -> Iterator[Case]:
    topic = "tf32, bits that are dropped"
    words = {
        "NaN whose payload is dropped": 0x7F800001,
        "negative NaN whose payload is dropped": 0xFF801FFF,
        "NaN whose payload is kept": 0x7F802000,
        "1 with all dropped bits set": 0x3F801FFF,
        "subnormal of dropped bits only": 0x00001FFF,
        "largest with all bits set": 0x7F7FFFFF,
    }
    for name, word in words.items():
        yield Case(topic, f"{name}, in A", {}, {0: 1.0}, raw={"A": {0: word}})
        yield Case(topic, f"{name}, in B", {0: 1.0}, {}, raw={"B": {0: word}})


def _clamping(record: MmaInstruction) -> Iterator[Case]:
    """C at an end; products in one place along K go beyond it, and those in another come back."""
    topic = "satfinite"
    high = {"int8": 127, "uint8": 255, "int4": 7, "uint4": 15}
    up = {k: float(high[record.a]) for k in range(record.k)}
    yield Case(topic, "beyond", up, {0: 1.0}, LARGEST)
    if record.b in ("int8", "int4"):
        yield Case(topic, "beyond, below", up, {0: -1.0}, -LARGEST - 1)
        for name, plus, minus in (
            ("first up, last down", 0, record.k - 1),
            ("last up, first down", record.k - 1, 0),
            ("neighbors, up first", 0, 1),
            ("neighbors, down first", 1, 0),
            ("across the middle, up first", record.k // 2 - 1, record.k // 2),
            ("across the middle, down first", record.k // 2, record.k // 2 - 1),
        ):
            yield Case(topic, name, {plus: 1.0, minus: 1.0}, {plus: 7.0, minus: -7.0}, LARGEST)


def _halves(record: MmaInstruction) -> Iterator[Case]:
    """What the order of fp8 sums shows in: each product 1 against C, and small ones against large ones."""
    topic = "fp8 by halves"
    small = 2.0**-12 if record.d == "float32" else 2.0**-6
    a, b = range_of(record.a), range_of(record.b)
    tiny = (2.0 ** max(a.bottom, -9), 2.0 ** max(b.bottom, -9))
    big = (2.0 ** min(a.top, 8), 2.0 ** min(b.top, 8)) if record.d == "float32" else (16.0, 16.0)
    for large in range(4):
        for little in range(4):
            if large != little:
                yield Case(
                    topic,
                    f"large product at k = {large}, its opposite at 4, tiny one at {little + 8}",
                    {large: big[0], 4: -big[0], little + 8: tiny[0]},
                    {large: big[1], 4: big[1], little + 8: tiny[1]},
                )
    for k in range(4):
        yield Case(topic, f"C large, tiny product at k = {k}", {k: tiny[0]}, {k: tiny[1]}, 1.0 + small)
        yield Case(topic, f"C large, three quarters of its last place at k = {k}", *_below(record, k))


def _below(record: MmaInstruction, k: int) -> tuple[dict[int, float], dict[int, float], float]:
    """A product that is three quarters of C's last place: cut off, or rounded up."""
    exponent = 8 if record.d == "float32" else 0
    low = exponent - range_of(record.d).fraction - 1
    return {k: 1.5 * 2.0 ** (low // 2)}, {k: 2.0 ** (low - low // 2)}, 2.0**exponent
