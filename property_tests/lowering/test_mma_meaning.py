"""What every dense mma.sync computes, against `mma_machine`: Python numbers, element by element, from its PTX text."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowering.dtypes import dtype
from lowering.isa import DENSE, MMA_INSTRUCTIONS, MmaInstruction
from tilelayout import LayoutError

from .mma_machine import BITS, FLOATS, Parsed, get, number, put, sums

BY_NAME = {r.name: r for r in DENSE}
INTEGERS = [r for r in DENSE if r.d == "int32"]


def parsed(record: MmaInstruction) -> Parsed:
    i = record.instruction
    return Parsed(i.text({o.name: [f"%{o.name}{j}" for j in range(o.count)] for o in i.operands}))


def empty(record: MmaInstruction) -> dict[str, Any]:
    return {o.name: np.zeros((32, o.words), np.uint32) for o in record.instruction.operands}


def run(record: MmaInstruction, words: dict[str, Any], numerics: str | None = None) -> Any:
    """D's registers of one warp."""
    values: dict[str, Any] = {name: x[None] for name, x in words.items()}
    values |= {} if numerics is None else {"numerics": numerics}
    (found,) = record.instruction.meaning(values)["D"]
    assert found.dtype == np.uint32
    return found


def code(value: float, element: str) -> int:
    """The code of a number that the type has."""
    if element in FLOATS or element == "tf32":
        kind = np.dtype(FLOATS.get(element, np.float32))
        found = np.array([value]).astype(kind)
        assert float(found.astype(np.float64)[0]) == value, (value, element)
        return int(found.view(f"u{kind.itemsize}")[0])
    return int(value) & ((1 << BITS[element]) - 1)


def some(element: str) -> list[float]:
    """Small numbers that the type has."""
    if element == "b1":
        return [0, 1]
    if element in ("u8", "u4"):
        return [0, 1, 2, 3]
    return [-2, -1, 0, 1, 2, 3] if element in ("s8", "s4") else [-2, -1, -0.5, 0, 0.5, 1, 2, 3]


def small(record: MmaInstruction, seed: int = 0) -> dict[str, Any]:
    """Registers full of small numbers whose sums every accumulator holds exactly."""
    rng, p, words = np.random.default_rng(seed), parsed(record), empty(record)
    for role in "ABCD":
        if role in words:
            element = p.element(role)
            codes = {
                x: code(rng.choice(some(element) if role in "AB" else [-4, 0, 1, 7]), element)
                for x in p.fragment(role)
            }
            put(p, role, codes, words[role])
    for role in ("SFA", "SFB"):
        if role in words:
            kind = p.field["scale"]
            choices = [code(x, kind) for x in (0.5, 1, 2)]
            words[role] = rng.choice(choices, (32, 4)).astype(np.uint8).view(np.uint32)
    return words


def value(codes: dict[Any, int], element: str) -> dict[Any, Any]:
    return {x: number(c, element) for x, c in codes.items()}


@pytest.mark.parametrize("record", DENSE, ids=lambda r: r.name)
def test_sums_that_are_exact_are_right(record: MmaInstruction) -> None:
    p, words = parsed(record), small(record)
    before = {name: x.copy() for name, x in words.items()}
    found = value(get(p, "D", run(record, words)), p.element("D"))
    assert found == sums(p, words)
    assert len({*found.values()}) > 4
    assert all((words[name] == x).all() for name, x in before.items())  # what is read stays


@pytest.mark.parametrize("record", [r for r in DENSE if r.scale], ids=lambda r: r.name)
def test_other_selectors_read_other_scale_factors(record: MmaInstruction) -> None:
    assert record.scale
    steps = range(0, 4, record.scale.vector)
    for byte_a, byte_b, thread_a, thread_b in ((steps[-1], 0, 1, 3), (0, steps[-1], 0, 2)):
        scale = replace(record.scale, byte_a=byte_a, byte_b=byte_b, thread_a=thread_a, thread_b=thread_b)
        chosen = replace(record, scale=scale)
        p, words = parsed(chosen), small(record, seed=3)
        assert value(get(p, "D", run(chosen, words)), "f32") == sums(p, words)


def test_several_warps_are_apart() -> None:
    record = BY_NAME["m16n8k32.s8"]
    one, two = small(record, 1), small(record, 2)
    both = {name: np.stack([one[name], two[name]]) for name in one}
    found = record.instruction.meaning(both)["D"]
    assert (found[0] == run(record, one)).all()
    assert (found[1] == run(record, two)).all()


# --- integers, bit for bit ------------------------------------------------------------------------


def wrapped(total: int, satfinite: bool) -> int:
    if satfinite:
        return min(max(total, -(2**31)), 2**31 - 1)
    return (total + 2**31) % 2**32 - 2**31


@pytest.mark.parametrize("record", INTEGERS, ids=lambda r: r.name)
def test_integers_wrap_or_clamp_over_their_whole_range(record: MmaInstruction) -> None:
    """Random words, and accumulators beside both ends."""
    rng, p = np.random.default_rng(5), parsed(record)
    words = {n: rng.integers(0, 2**32, x.shape, np.uint32) for n, x in empty(record).items()}
    ends = [2**31 - 1, -(2**31), 2**31 - 3, 5 - 2**31, 0]
    words["D"] = rng.choice(ends, words["D"].shape).astype(np.int64).astype(np.uint32)
    found = value(get(p, "D", run(record, words)), "s32")
    totals = sums(p, words)
    assert found == {x: wrapped(int(total), record.satfinite) for x, total in totals.items()}
    assert any(not -(2**31) <= total < 2**31 for total in totals.values())  # some do leave the range


@given(st.data())
def test_integers_by_drawn_words(data: st.DataObject) -> None:
    record = data.draw(st.sampled_from(INTEGERS))
    seed = data.draw(st.integers(0, 2**32))
    fill = data.draw(st.sampled_from([0, 0xFFFFFFFF, 0x80808080, 0x77777777, None]))
    rng, p = np.random.default_rng(seed), parsed(record)
    words = {n: rng.integers(0, 2**32, x.shape, np.uint32) for n, x in empty(record).items()}
    if fill is not None:
        words["A"][:] = fill
    found = value(get(p, "D", run(record, words)), "s32")
    assert found == {x: wrapped(int(total), record.satfinite) for x, total in sums(p, words).items()}


@pytest.mark.parametrize("record", [r for r in INTEGERS if r.operation], ids=lambda r: r.name)
def test_one_bit_products_count_ones(record: MmaInstruction) -> None:
    """By words instead of elements: the population count of whole rows."""
    rng, p = np.random.default_rng(7), parsed(record)
    words = {n: rng.integers(0, 2**32, x.shape, np.uint32) for n, x in empty(record).items()}
    a, b, c = get(p, "A", words["A"]), get(p, "B", words["B"]), value(get(p, "D", words["D"]), "s32")
    rows = [sum(a[i, k] << k for k in range(record.k)) for i in range(record.m)]
    columns = [sum(b[k, j] << k for k in range(record.k)) for j in range(8)]
    found = value(get(p, "D", run(record, words)), "s32")
    for (i, j), d in found.items():
        both = rows[i] ^ columns[j] if record.operation == "xor" else rows[i] & columns[j]
        assert d == wrapped(int(c[i, j]) + both.bit_count(), False)


# --- floats ---------------------------------------------------------------------------------------


def fused(terms: list[tuple[float, float]], c: float) -> float:
    total = c
    for x, y in terms:
        exact = Fraction(x) * Fraction(y) + Fraction(total)
        total = exact.numerator / exact.denominator if exact else 0.0
    return total


@pytest.mark.parametrize("record", [r for r in DENSE if r.a == "float64"], ids=lambda r: r.name)
@pytest.mark.parametrize("spread", [0, 8, 300])
def test_f64_is_a_chain_of_fused_multiply_adds(record: MmaInstruction, spread: int) -> None:
    rng, p, words = np.random.default_rng(spread), parsed(record), empty(record)
    for name, x in words.items():
        exponents = rng.integers(-spread, spread + 1, (32, x.shape[1] // 2))
        words[name] = np.ascontiguousarray(np.ldexp(rng.standard_normal(exponents.shape), exponents)).view(
            np.uint32
        )
    a, b, c = (value(get(p, r, words[r]), "f64") for r in "ABD")
    found = value(get(p, "D", run(record, words)), "f64")
    for i in range(record.m):
        for j in range(8):
            terms = [(float(a[i, k]), float(b[k, j])) for k in range(record.k)]
            assert float(found[i, j]) == fused(terms, float(c[i, j]))
    for numerics in ("sm_80", "sm_90"):
        assert (run(record, words, numerics) == run(record, words)).all()


def test_f64_is_not_a_plain_sum() -> None:
    record = BY_NAME["m8n8k4.f64"]
    p, words = parsed(record), empty(record)
    x = 1 + 2.0**-30
    put(p, "A", {e: code(x if e[1] == 0 else 0.0, "f64") for e in p.fragment("A")}, words["A"])
    put(p, "B", {e: code(x if e[0] == 0 else 0.0, "f64") for e in p.fragment("B")}, words["B"])
    put(p, "D", {e: code(-1 - 2.0**-29, "f64") for e in p.fragment("D")}, words["D"])
    assert {*value(get(p, "D", run(record, words)), "f64").values()} == {Fraction(1, 2**60)}


FLOATING = [r for r in DENSE if r.d in ("float32", "float16") and r.rule == "warp"]
BY_FORM = {(r.shape, r.kind, r.a == r.b, BITS[dtype(r.a).ptx], r.d, r.scale): r for r in FLOATING}
"""One record of each form: what types of equal width mean is tested with exact sums, for every record."""


def rounded(exact: Fraction, element: str) -> int:
    """The code of the nearest number of f32 or f16, ties to even, found by its neighbors."""
    kind = {"f32": np.float32, "f16": np.float16}[element]
    near = kind(exact.numerator / exact.denominator)
    candidates = [np.nextafter(near, kind(-np.inf)), near, np.nextafter(near, kind(np.inf))]
    finite = [x for x in candidates if np.isfinite(x)]

    def key(x: Any) -> tuple[Fraction, int]:
        return abs(Fraction(float(x)) - exact), int(x.view(f"u{x.itemsize}")) & 1

    return int(min(finite, key=key).view(f"u{near.itemsize}"))


@pytest.mark.parametrize("record", BY_FORM.values(), ids=lambda r: r.name)
def test_exact_means_rounded_once(record: MmaInstruction) -> None:
    """Random finite codes over the whole range of the factors (f16's and tf32's exponents kept in the accumulator's
    range), so that few sums are exact.
    """
    rng, p, words = np.random.default_rng(11), parsed(record), empty(record)
    for role in "ABD":
        element = p.element(role)
        codes = {}
        for x in p.fragment(role):
            if element in ("f16", "bf16", "tf32", "f32"):
                v = float(rng.standard_normal() * 2.0 ** rng.integers(-6, 7))
                kind = np.dtype(FLOATS.get(element, np.float32))
                codes[x] = int(np.array([v]).astype(kind).view(f"u{kind.itemsize}")[0])
            else:
                finite = [
                    c
                    for c in range(1 << BITS[element])
                    if abs(as_float(c, element)) < (16 if p.element("D") == "f16" else 1e9)
                ]
                codes[x] = int(rng.choice(finite))
        put(p, role, codes, words[role])
    for role in ("SFA", "SFB"):
        if role in words:
            words[role] = rng.integers(0x30, 0x50, (32, 4)).astype(np.uint8).view(np.uint32)
            if p.field["scale"] == "ue8m0":
                words[role] = rng.integers(110, 140, (32, 4)).astype(np.uint8).view(np.uint32)
    found = get(p, "D", run(record, words))
    zero = {0, 1 << (BITS[p.element("D")] - 1)}
    for x, exact in sums(p, words).items():
        wanted = rounded(Fraction(exact), p.element("D"))
        assert found[x] == wanted or {found[x], wanted} <= zero, (x, float(exact))


def as_float(c: int, element: str) -> float:
    kind = np.dtype(FLOATS[element])
    found = float(np.array([c], f"u{kind.itemsize}").view(kind).astype(np.float64)[0])
    return found if np.isfinite(found) else 1e99


def test_tf32_drops_the_low_13_bits() -> None:
    for name in ("m16n8k8.tf32", "m16n8k4.tf32"):
        record = BY_NAME[name]
        words = small(record)
        dirty = {n: x | np.uint32(0x1FFF) if n in "AB" else x for n, x in words.items()}
        clean = {n: x & ~np.uint32(0x1FFF) if n in "AB" else x for n, x in dirty.items()}
        assert (run(record, dirty) == run(record, clean)).all()


def test_bits_around_a_narrow_element_do_not_matter() -> None:
    for name, around in (("m16n8k32.f8f6f4.e2m1", 0xC3C3C3C3), ("m16n8k32.f8f6f4.e3m2", 0xC0C0C0C0)):
        record = BY_NAME[name]
        words = small(record)
        dirty = {n: x | np.uint32(around) if n in "AB" else x for n, x in words.items()}
        assert (run(record, dirty) == run(record, words)).all()


def test_the_models_of_numerics_can_be_chosen() -> None:
    """1 + 1.5 * 2**-24 rounds up, and the tensor cores truncate it."""
    record = MMA_INSTRUCTIONS[0]
    p, words = parsed(record), empty(record)
    put(p, "A", {e: code(1.5 if e[1] == 0 else 0.0, "f16") for e in p.fragment("A")}, words["A"])
    put(p, "B", {e: code(2.0**-24 if e[0] == 0 else 0.0, "f16") for e in p.fragment("B")}, words["B"])
    put(p, "D", {e: code(1.0, "f32") for e in p.fragment("D")}, words["D"])
    results = {
        n: {*run(record, words, n).view(np.float32).ravel().tolist()} for n in ("exact", "sm_80", "sm_90")
    }
    assert results == {"exact": {1 + 2.0**-23}, "sm_80": {1.0}, "sm_90": {1.0}}
    with pytest.raises(LayoutError, match="unknown model 'sm_81'"):
        run(record, words, "sm_81")
    fp4 = BY_NAME["m16n8k32.f8f6f4.e2m1"]
    with pytest.raises(LayoutError, match="no published model"):
        run(fp4, small(fp4), "sm_80")


def test_models_differ_where_the_hardware_does() -> None:
    record = MMA_INSTRUCTIONS[0]
    rng, words = np.random.default_rng(1), empty(MMA_INSTRUCTIONS[0])
    for name in "AB":
        words[name] = rng.standard_normal((32, 2 * words[name].shape[1])).astype(np.float16).view(np.uint32)
    words["D"] = rng.standard_normal((32, 4)).astype(np.float32).view(np.uint32)
    results = [run(record, words, n) for n in ("exact", "sm_80", "sm_90")]
    for i in range(3):
        for j in range(i):
            assert (results[i] != results[j]).any()
    floats = [x.view(np.float32).astype(np.float64) for x in results]
    assert max(abs(floats[0] - x).max() for x in floats[1:]) < 1e-5
