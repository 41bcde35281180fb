"""Scalar PTX on a CPU, statement by statement, against exact arithmetic on Python's integers and fractions."""

from __future__ import annotations

import itertools
import math
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowering.isa.scalar.machine import ScalarMeaning
from tilelayout import LayoutError

from .scalar_blocks import INTEGERS, answers, block, is_rounded, numbers_of, wrapped

FLOATS = {"f32": np.dtype(np.float32), "f64": np.dtype(np.float64)}
CORNERS = {
    "f32": [0.0, -0.0, 1.0, -1.5, 1 + 2**-23, 3.4028235e38, -3.4028235e38, 2.0**-126, 1e-45, -1e-45, 1e-40, 0.1,
            16777215.0, 2.0**64, -(2.0**63), 2.5, 3.5, -0.5, 1e10],
    "f64": [0.0, -0.0, 1.0, -1.5, 1 + 2**-52, 1e308, -1e308, 2.0**-1022, 5e-324, -5e-324, 0.1, 2.0**53 + 2,
            2.0**64, -(2.0**63), 2.5, 3.5, -0.5, 1e10],
}  # fmt: skip
SPECIAL = [math.inf, -math.inf, math.nan]


def pairs(kind: str) -> tuple[Any, Any, list[tuple[int, int]]]:
    both = list(itertools.product(numbers_of(kind), repeat=2))
    a, b = (np.array([p[i] for p in both], INTEGERS[kind]) for i in (0, 1))
    return a, b, both


# --- integers -----------------------------------------------------------------------------------------


def truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


EXACT = {
    "add": lambda a, b, n: a + b,
    "sub": lambda a, b, n: a - b,
    "mul.lo": lambda a, b, n: a * b,
    "mul.hi": lambda a, b, n: a * b >> n,
    "min": lambda a, b, n: min(a, b),
    "max": lambda a, b, n: max(a, b),
}


@pytest.mark.parametrize("kind", INTEGERS)
@pytest.mark.parametrize("name", EXACT)
def test_integers_wrap(name: str, kind: str) -> None:
    a, b, both = pairs(kind)
    found = block(f"{name}.{kind} d, a, b;", {"a": a, "b": b}, INTEGERS[kind])
    width = INTEGERS[kind].itemsize * 8
    assert found.tolist() == [wrapped(EXACT[name](x, y, width), kind) for x, y in both]


@pytest.mark.parametrize("kind", INTEGERS)
def test_quotients_go_towards_zero(kind: str) -> None:
    a, b, both = pairs(kind)
    quotient, rest = (block(f"{n}.{kind} d, a, b;", {"a": a, "b": b}, INTEGERS[kind]) for n in ("div", "rem"))
    for (x, y), q, r in zip(both, quotient.tolist(), rest.tolist(), strict=True):
        if y:
            assert q == wrapped(truncated(x, y), kind)
            assert r == wrapped(x - truncated(x, y) * y, kind)


@pytest.mark.parametrize("kind", ["s16", "u16", "s32", "u32"])
def test_wide_products(kind: str) -> None:
    a, b, both = pairs(kind)
    wide = f"{kind[0]}{2 * int(kind[1:])}"
    found = block(f"mul.wide.{kind} d, a, b;", {"a": a, "b": b}, INTEGERS[wide])
    assert found.tolist() == [x * y for x, y in both]
    c = np.full(len(both), 7, INTEGERS[wide])
    found = block(f"mad.wide.{kind} d, a, b, c;", {"a": a, "b": b, "c": c}, INTEGERS[wide])
    assert found.tolist() == [wrapped(x * y + 7, wide) for x, y in both]


@pytest.mark.parametrize("kind", INTEGERS)
def test_shifts_beyond_the_width_shift_everything_out(kind: str) -> None:
    width = INTEGERS[kind].itemsize * 8
    both = list(itertools.product(numbers_of(kind), [0, 1, 5, width - 1, width, width + 1, 2**31, 2**32 - 1]))
    a, n = np.array([x for x, _ in both], INTEGERS[kind]), np.array([y for _, y in both], np.uint32)
    right = block(f"shr.{kind} d, a, n;", {"a": a, "n": n}, INTEGERS[kind])
    assert right.tolist() == [x >> min(y, width) for x, y in both]
    left = block(f"shl.b{width} d, a, n;", {"a": a, "n": n}, INTEGERS[kind])
    assert left.tolist() == [wrapped(x << min(y, width), kind) for x, y in both]


@pytest.mark.parametrize("width", [16, 32, 64])
def test_logic_and_counts(width: int) -> None:
    kind = f"u{width}"
    a, b, both = pairs(kind)
    mask = (1 << width) - 1
    wanted = {"and": lambda x, y: x & y, "or": lambda x, y: x | y, "xor": lambda x, y: x ^ y}
    for name, exact in wanted.items():
        found = block(f"{name}.b{width} d, a, b;", {"a": a, "b": b}, INTEGERS[kind])
        assert found.tolist() == [exact(x, y) for x, y in both]
    assert block(f"not.b{width} d, a;", {"a": a}, INTEGERS[kind]).tolist() == [x ^ mask for x, _ in both]
    if width > 16:
        reverse = block(f"brev.b{width} d, a;", {"a": a}, INTEGERS[kind])
        assert reverse.tolist() == [int(f"{x:0{width}b}"[::-1], 2) for x, _ in both]
        assert block(f"popc.b{width} d, a;", {"a": a}, np.uint32).tolist() == [x.bit_count() for x, _ in both]
        zeros = block(f"clz.b{width} d, a;", {"a": a}, np.uint32)
        assert zeros.tolist() == [width - x.bit_length() for x, _ in both]


@pytest.mark.parametrize("kind", ["s16", "s32", "s64"])
def test_signs(kind: str) -> None:
    a = np.array(numbers_of(kind), INTEGERS[kind])
    assert block(f"neg.{kind} d, a;", {"a": a}, a.dtype).tolist() == [
        wrapped(-x, kind) for x in numbers_of(kind)
    ]
    assert block(f"abs.{kind} d, a;", {"a": a}, a.dtype).tolist() == [
        wrapped(abs(x), kind) for x in numbers_of(kind)
    ]


# --- rounding -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
def test_fused_and_sums_of_float32_are_rounded_once(mode: str) -> None:
    triples = list(itertools.product(CORNERS["f32"], repeat=3))
    a, b, c = (np.array([t[i] for t in triples], np.float32) for i in range(3))
    given = {"a": a, "b": b, "c": c}
    exact = [tuple(Fraction(float(x)) for x in t) for t in zip(a, b, c, strict=True)]
    for name, text, formula in (
        ("fma", f"fma.{mode}.f32 d, a, b, c;", lambda x, y, z: x * y + z),
        ("add", f"add.{mode}.f32 d, a, b;", lambda x, y, z: x + y),
        ("sub", f"sub.{mode}.f32 d, a, b;", lambda x, y, z: x - y),
        ("mul", f"mul.{mode}.f32 d, a, b;", lambda x, y, z: x * y),
    ):
        found = block(text, given, np.float32)
        for t, x, d in zip(triples, exact, found, strict=True):
            assert is_rounded(d, formula(*x), mode), (name, t, d)


@given(
    st.lists(
        st.tuples(*[st.floats(width=32, allow_nan=False, allow_infinity=False)] * 3), min_size=1, max_size=20
    )
)
def test_any_fused_product_is_rounded_once(triples: list[tuple[float, float, float]]) -> None:
    a, b, c = (np.array([t[i] for t in triples], np.float32) for i in range(3))
    for mode in ("rn", "rz", "rm", "rp"):
        found = block(f"fma.{mode}.f32 d, a, b, c;", {"a": a, "b": b, "c": c}, np.float32)
        for t, d in zip(triples, found, strict=True):
            x, y, z = map(Fraction, t)
            assert is_rounded(d, x * y + z, mode), (mode, t, d)


def test_numbers_that_cancel_have_the_sign_of_the_direction() -> None:
    one = np.float32([1])
    for mode, negative in (("rn", False), ("rz", False), ("rp", False), ("rm", True)):
        found = block(f"sub.{mode}.f32 d, a, a;", {"a": one}, np.float32)
        assert (found == 0).all()
        assert np.signbit(found).all() == negative


@pytest.mark.parametrize("kind", FLOATS)
def test_quotients_and_roots(kind: str) -> None:
    both = [p for p in itertools.product(CORNERS[kind], repeat=2) if p[1]]
    a, b = (np.array([p[i] for p in both], FLOATS[kind]) for i in (0, 1))
    for x, y, d in zip(a, b, block(f"div.rn.{kind} d, a, b;", {"a": a, "b": b}, a.dtype), strict=True):
        assert is_rounded(d, Fraction(float(x)) / Fraction(float(y)), "rn")
    for y, d in zip(b, block(f"rcp.rn.{kind} d, b;", {"b": b}, a.dtype), strict=True):
        assert is_rounded(d, 1 / Fraction(float(y)), "rn")
    for y, d in zip(b, block(f"sqrt.rn.{kind} d, b;", {"b": b}, a.dtype), strict=True):
        if y < 0:
            assert np.isnan(d)
        else:
            low, high = (Fraction(float(np.nextafter(d, d.dtype.type(x)))) for x in (0, np.inf))
            own, exact = Fraction(float(d)), Fraction(float(y))
            assert ((low + own) / 2) ** 2 <= exact <= ((own + high) / 2) ** 2


# --- what is no ordinary number ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", FLOATS)
def test_a_number_wins_over_what_is_none(kind: str) -> None:
    """min and max (PTX ISA: "If one of the inputs is NaN the result is the other", "+0.0 > -0.0")."""
    some = [*CORNERS[kind], *SPECIAL]
    both = list(itertools.product(some, repeat=2))
    a, b = (np.array([p[i] for p in both], FLOATS[kind]) for i in (0, 1))
    for name, pick in (("min", min), ("max", max)):
        found = block(f"{name}.{kind} d, a, b;", {"a": a, "b": b}, a.dtype)
        kept = block(f"{name}.NaN.{kind} d, a, b;", {"a": a, "b": b}, a.dtype)
        for x, y, d, e in zip(a, b, found, kept, strict=True):
            here = [v for v in (x, y) if not np.isnan(v)]
            assert np.isnan(e) == (len(here) < 2)
            if not here:
                assert np.isnan(d)
                continue
            wanted = pick(here, key=lambda v: (v, not np.signbit(v)))
            assert d == wanted
            assert np.signbit(d) == np.signbit(wanted)


def test_every_nan_that_is_made_is_one_word_and_what_is_moved_keeps_its_own() -> None:
    payload = np.array([0xFFC12345, 0x7F800001], np.uint32).view(np.float32)
    made = block("add.f32 d, a, a;", {"a": payload}, np.uint32)
    assert made.tolist() == [0x7FFFFFFF] * 2
    moved = block("mov.f32 d, a;", {"a": payload}, np.uint32)
    assert moved.tolist() == payload.view(np.uint32).tolist()
    chosen = block("setp.gt.f32 p, a, 0f00000000; selp.f32 d, 0f00000000, a, p;", {"a": payload}, np.uint32)
    assert chosen.tolist() == payload.view(np.uint32).tolist()
    assert block("mov.f32 d, 0f7FC00000;", {"a": payload}, np.uint32).tolist() == [0x7FC00000] * 2
    signed = block("copysign.f32 d, a, b;", {"a": np.float32([-1, 1]), "b": payload}, np.uint32)
    assert signed.tolist() == [0xFFC12345, 0x7F800001]


@pytest.mark.parametrize("kind", FLOATS)
def test_relations(kind: str) -> None:
    some = [*CORNERS[kind], *SPECIAL]
    both = list(itertools.product(some, repeat=2))
    a, b = (np.array([p[i] for p in both], FLOATS[kind]) for i in (0, 1))
    exact = {
        "eq": lambda x, y: x == y, "ne": lambda x, y: x != y, "lt": lambda x, y: x < y,
        "le": lambda x, y: x <= y, "gt": lambda x, y: x > y, "ge": lambda x, y: x >= y,
        "num": lambda x, y: True, "nan": lambda x, y: False,
    }  # fmt: skip
    for name, relation in exact.items():
        for suffix in ("", "u") if name not in ("num", "nan") else ("",):
            unordered = suffix == "u" or name == "nan"
            wanted = [
                unordered if math.isnan(x) or math.isnan(y) else relation(x, y)
                for x, y in zip(a.tolist(), b.tolist(), strict=True)
            ]
            assert answers(f"setp.{name}{suffix}.{kind} p, a, b", {"a": a, "b": b}) == wanted, name + suffix
    asked = {
        "finite": math.isfinite, "infinite": math.isinf, "notanumber": math.isnan,
        "number": lambda x: not math.isnan(x),
        "normal": lambda x: math.isfinite(x) and abs(x) >= float(np.finfo(a.dtype).tiny),
        "subnormal": lambda x: 0 < abs(x) < float(np.finfo(a.dtype).tiny),
    }  # fmt: skip
    for name, question in asked.items():
        assert answers(f"testp.{name}.{kind} p, a", {"a": a}) == [question(x) for x in a.tolist()]


@pytest.mark.parametrize("kind", INTEGERS)
def test_relations_of_integers(kind: str) -> None:
    a, b, both = pairs(kind)
    exact = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
    exact |= {"lo": "<", "ls": "<=", "hi": ">", "hs": ">="} if kind[0] == "u" else {}
    said = {
        "==": lambda x, y: x == y, "!=": lambda x, y: x != y, "<": lambda x, y: x < y,
        "<=": lambda x, y: x <= y, ">": lambda x, y: x > y, ">=": lambda x, y: x >= y,
    }  # fmt: skip
    for name, sign in exact.items():
        found = answers(f"setp.{name}.{kind} p, a, b", {"a": a, "b": b})
        assert found == [said[sign](x, y) for x, y in both]


def test_subnormal_numbers_are_flushed_and_results_saturated_where_that_is_asked_for() -> None:
    a = np.float32([1e-40, -1e-40, 2.0**-126, 0.25, -3, 7, np.nan, np.inf])
    flushed = block("mul.ftz.f32 d, a, 0f3F800000;", {"a": a}, np.float32)
    np.testing.assert_array_equal(flushed, [0, -0.0, 2.0**-126, 0.25, -3, 7, np.nan, np.inf])
    assert np.signbit(flushed[1])
    assert block("mul.ftz.f32 d, a, 0f3F000000;", {"a": a}, np.float32)[2] == 0  # the result, too
    saturated = block("add.sat.f32 d, a, 0f00000000;", {"a": a}, np.float32)
    np.testing.assert_array_equal(saturated, np.float32([1e-40, 0, 2.0**-126, 0.25, 0, 1, 0, 1]))


# --- approximations ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "exact"),
    [
        ("ex2.approx.f32", lambda x: 2.0**x),
        ("lg2.approx.f32", math.log2),
        ("sqrt.approx.f32", math.sqrt),
        ("rsqrt.approx.f32", lambda x: 1 / math.sqrt(x)),
        ("rcp.approx.f32", lambda x: 1 / x),
        ("sin.approx.f32", math.sin),
        ("cos.approx.f32", math.cos),
        ("tanh.approx.f32", math.tanh),
    ],
)
def test_approximations_are_the_nearest_float32(text: str, exact: Any) -> None:
    a = np.geomspace(1e-3, 1e2, 500, dtype=np.float32)
    found = block(f"{text} d, a;", {"a": a}, np.float32)
    wanted = [exact(float(x)) for x in a]
    assert all(
        abs(float(d) - w) <= float(np.spacing(np.abs(d))) * 0.5001 for d, w in zip(found, wanted, strict=True)
    )


def test_a_quotient_by_much_is_zero_when_it_is_approximate() -> None:
    a, b = (
        np.float32([1e38, np.inf, 1e38, -1e38, np.nan, 6]),
        np.float32([2e38, 2e38, 2.0**126, 2e38, 2e38, 3]),
    )
    found = block("div.approx.f32 d, a, b;", {"a": a, "b": b}, np.float32)
    np.testing.assert_array_equal(found, np.float32([0, np.nan, 1e38 / 2.0**126, -0.0, np.nan, 2]))


def test_gross_approximations_of_float64_fill_the_upper_half() -> None:
    a = np.array([3.0, 1e-300, np.inf, 0.0, np.nan, -7.1])
    found = block("rcp.approx.ftz.f64 d, a;", {"a": a}, np.float64)
    np.testing.assert_allclose(found, [1 / 3, 1e300, 0, np.inf, np.nan, -1 / 7.1], rtol=2.0**-19)
    assert not (found[[0, 1, 2, 3, 5]].view(np.uint64) & np.uint64(0xFFFFFFFF)).any()
    roots = block("rsqrt.approx.ftz.f64 d, a;", {"a": a}, np.float64)
    np.testing.assert_allclose(roots, [3**-0.5, 1e150, 0, np.inf, np.nan, np.nan], rtol=2.0**-19)


# --- the whole ------------------------------------------------------------------------------------------------


def test_it_is_data() -> None:
    meaning = ScalarMeaning("{ .reg .f32 u; add.f32 u, %x, %x; mov.f32 %d, u; }", ("x",))
    again = pickle.loads(pickle.dumps(meaning))
    assert again == meaning
    x = np.float32([1.5]).view(np.uint32)[None, :, None]
    assert again({"x": x})["d"].view(np.float32).tolist() == [[[3.0]]]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("bar.sync 0;", "`bar.sync 0` is not executed on a CPU"),
        ("add.rz.f64 d, a, a;", "`add.rz.f64 d, a, a` is not executed on a CPU"),
        ("add.f16x2 d, a, a;", "`add.f16x2 d, a, a`"),
        ("fma.rn.f32 d, a, a;", "`fma.rn.f32 d, a, a`"),
        ("cvt.rn.bf16.f32 d, a;", "`cvt.rn.bf16.f32 d, a`"),
        ("bra elsewhere;", "`bra elsewhere`"),
        ("add.f32 d, a, b;", "`add.f32 d, a, b` reads b, which was never written"),
    ],
)
def test_what_is_not_known_is_refused(body: str, words: str) -> None:
    with pytest.raises(LayoutError) as refused:
        block(body, {"a": np.float32([1])}, np.float32)
    assert words in str(refused.value)


def test_a_refusal_names_the_function() -> None:
    meaning = ScalarMeaning(
        "{ vote.sync.any.pred p, q, -1; mov.f32 %d, %x; }", ("x",), name="function chosen"
    )
    with pytest.raises(
        LayoutError, match=r"function chosen: its PTX `vote.sync.any.pred p, q, -1` is not"
    ) as refused:
        meaning({"x": np.zeros((1, 32, 1), np.uint32)})
    assert "remedy: write the function with other functions of math, to simulate it" in str(refused.value)
