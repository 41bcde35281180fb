"""The table of accumulation models, and numbers computed by hand from the papers."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import ml_dtypes
import numpy as np
import pytest

from lowering.dtypes import DTYPES
from lowering.isa import numerics
from lowering.isa.numerics import FORMATS, NUMERICS, accumulate, bits, drop_to_tfloat32, model
from lowering.isa.numerics.published import ENTRIES
from tilelayout import LayoutError

ALIGNED = [(unit, entry) for unit, rows in ENTRIES.items() for entry in rows]

# From the literature: architecture -> F, elements of 16 bits in a step, exponents of zero terms.
PUBLISHED = {
    "sm_75": (24, 8, -132, -20),
    "sm_80": (24, 8, -132, -20),
    "sm_86": (24, 8, -132, -20),
    "sm_89": (24, 8, -132, -20),
    "sm_90": (25, 16, -133, -21),
    "sm_100": (25, 16, -133, -21),
    "sm_120": (25, 16, -133, -21),
}


def one(name: str, a: list[float], b: list[float], c: float, k: int, *types: str, **named) -> float:
    """One element of D; missing products are zero."""
    types = types or ("float16", "float16", "float32")
    row, column = np.zeros((1, k)), np.zeros((k, 1))
    row[0, : len(a)], column[: len(b), 0] = a, b
    return float(accumulate(row, column, np.array([[c]]), model(name, *types, k, **named))[0, 0])


def test_the_examples_hold() -> None:
    count = 0
    for found in pkgutil.walk_packages(numerics.__path__, numerics.__name__ + "."):
        module = importlib.import_module(found.name)
        failed, tried = doctest.testmod(module)
        assert failed == 0, found.name
        count += tried
    assert count >= 12


@pytest.mark.parametrize("name", PUBLISHED)
def test_sixteen_bit_types_have_the_published_numbers(name: str) -> None:
    F, width, zero32, zero16 = PUBLISHED[name]
    for k in (8,) if name == "sm_75" else (8, 16):
        for accumulator, zero in (("float32", zero32), ("float16", zero16)):
            found = model(name, "float16", "float16", accumulator, k)
            assert (found.fraction, found.zero, found.rule, found.separate) == (F, zero, "aligned", False)
            assert [len(step) for step in found.steps] == ([width] * (k // width) if k > width else [k])
    if name != "sm_75":
        assert [len(s) for s in model(name, "tfloat32", "tfloat32", "float32", 8).steps] == (
            [8] if width == 16 else [4, 4]
        )


def test_every_entry_is_whole() -> None:
    """Every product is added once; nobody measured what is marked otherwise."""
    assert len(ALIGNED) > 150
    assert len({(u, m.numerics, m.a, m.b, m.accumulator, m.k, m.scale, m.blocks) for u, m in ALIGNED}) == len(
        ALIGNED
    )
    for _, entry in ALIGNED:
        assert sorted(k for step in entry.steps for k in step) == list(range(entry.k))
        assert entry.source
        assert {entry.a, entry.b, entry.accumulator, *entry.seen} <= set(FORMATS)
        if entry.evidence != "measured":
            assert entry.numerics == "sm_86" or (entry.separate and entry.numerics == "sm_100")


def test_formats_are_those_of_ml_dtypes() -> None:
    for name, form in FORMATS.items():
        carrier = DTYPES[name].numpy
        if name == "tfloat32":
            continue
        about = ml_dtypes.finfo(carrier)
        assert form.largest == float(about.max)
        if name != "float8_e8m0fnu":
            assert (form.fraction, form.smallest) == (about.nmant, about.minexp)
        if carrier.itemsize == 1:
            width = 2 ** (8 if name == "float8_ue4m3" else DTYPES[name].bits)
            codes = np.arange(width, dtype=np.uint8).view(carrier).astype(np.float64)
            assert not numerics.formats.unrepresentable(codes, form).any()
            halfway = codes[np.isfinite(codes)] + 2.0 ** (form.smallest - form.fraction - 1)
            if name != "float8_e8m0fnu":
                small = np.abs(halfway) < 2.0 ** (form.smallest + 1)
                assert numerics.formats.unrepresentable(halfway[small], form).all()


# ------------------------------------------------------------------------------------------------ by hand


def test_volta_cuts_where_turing_has_one_more_bit() -> None:
    """PeerJ cs-330: 1 + 4 * 2**-24 is 1 on a V100 and 1 + 2**-22 on later chips."""
    a, b = [2.0**-12] * 4, [2.0**-12] * 4
    assert one("sm_70", a, b, 1.0, 4) == 1
    assert one("sm_75", a, b, 1.0, 8) == one("sm_80", a, b, 1.0, 16) == 1 + 2.0**-22
    # A single 2**-24 is added and then truncated from the result.
    assert one("sm_80", a[:1], b[:1], 1.0, 16) == 1
    # F = 24 loses 2**-25, F = 25 does not.
    a = [2.0**-12] * 8
    b = [2.0**-13] * 8
    assert one("sm_80", a, b, 1.0, 16) == 1
    assert one("sm_90", a, b, 1.0, 16) == 1 + 2.0**-22


def test_sums_are_not_monotonic() -> None:
    """PeerJ cs-330: a smaller C gives a larger sum, because the largest exponent sinks."""
    a, b = [2.0**-12] * 4, [2.0**-12] * 4
    assert one("sm_70", a, b, 1.0, 4) == 1
    assert one("sm_70", a, b, 1 - 2.0**-24, 4) == 1 + 2.0**-23


def test_products_are_aligned_by_unnormalized_exponents() -> None:
    """1.5 * 1.5 = 2.25 counts as exponent 0, so 2**-24 beside it is kept on Ampere (and summed to 2**-22)."""
    a, b = [1.5] + [2.0**-12] * 4, [1.5] + [2.0**-12] * 4
    assert one("sm_80", a, b, 0.0, 8) == 2.25 + 2.0**-22
    # 2.25 as a product 2.25 * 1 has exponent 1, and 2**-24 is lost.
    assert one("sm_80", [2.25, *a[1:]], [1.0, *b[1:]], 0.0, 8) == 2.25


def test_terms_that_are_zero_keep_the_largest_exponent_from_sinking() -> None:
    """Zero counts as exponent -133 (float32) or -21 (float16) on Hopper; a C that is a number, as its own."""
    bf16 = ("bfloat16", "bfloat16", "float32")
    a, b = [2.0**-76] * 16, [2.0**-76] * 16  # 16 products of 2**-152
    assert one("sm_90", a, b, 0.0, 16, *bf16) == 2.0**-148
    assert one("sm_90", a, b, 2.0**-149, 16, *bf16) == 2.0**-149  # exponent -126: all products are cut
    halves = ("float16", "float16", "float16")
    # A tie at half of the smallest number, 2**-24, and something more: seen from exponent -21 down to 2**-46.
    assert one("sm_90", [2.0**-12, 2.0**-24], [2.0**-13, 2.0**-22], 0.0, 16, *halves) == 2.0**-24
    assert one("sm_90", [2.0**-12, 2.0**-24], [2.0**-13, 2.0**-23], 0.0, 16, *halves) == 0
    assert one("sm_80", [2.0**-12, 2.0**-24], [2.0**-13, 2.0**-20], 0.0, 16, *halves) == 2.0**-24
    assert one("sm_80", [2.0**-12, 2.0**-24], [2.0**-13, 2.0**-21], 0.0, 16, *halves) == 0


def test_negative_terms_are_cut_toward_zero() -> None:
    assert one("sm_80", [-(2.0**-12)], [2.0**-13], 1.0, 16) == 1
    assert one("sm_90", [-(2.0**-12)], [2.0**-13], 1.0, 16) == 1 - 2.0**-24
    assert one("sm_90", [-(2.0**-12)], [2.0**-13], -1.0, 16) == -1


def test_ampere_takes_two_steps_lower_half_first() -> None:
    """2**-24 beside 1 survives a step of its own, and not the rounding after it."""
    a, b = np.zeros(16), np.zeros(16)
    a[:2] = b[:2] = 2.0**-12
    a[8:10] = b[8:10] = 2.0**-12
    assert one("sm_90", a, b, 1.0, 16) == 1 + 2.0**-22
    assert one("sm_80", a, b, 1.0, 16) == 1 + 2 * 2.0**-23
    a[1] = a[9] = 0  # one in each half: 1 + 2**-24 is truncated twice
    assert one("sm_80", a, b, 1.0, 16) == 1
    assert one("sm_90", a, b, 1.0, 16) == 1 + 2.0**-23
    # Which half comes first: a large number that cancels C in the lower half saves the upper half.
    a[:], b[:] = 0, 0
    a[0], b[0], a[8], b[8] = -(2.0**15), 2.0**15, 2.0**-10, 1
    assert one("sm_80", a, b, 2.0**30, 16) == 2.0**-10
    assert one("sm_80", a[::-1], b[::-1], 2.0**30, 16) == 0


def test_half_precision_is_rounded_after_each_step() -> None:
    """1 + 2**-11 is a tie and goes to 1, twice on Ampere; the sum of both is 1 + 2**-10 on Hopper."""
    a, b = np.zeros(16), np.ones(16)
    a[0] = a[8] = 2.0**-11
    types = ("float16", "float16", "float16")
    assert one("sm_80", a, b, 1.0, 16, *types) == 1
    assert one("sm_90", a, b, 1.0, 16, *types) == 1 + 2.0**-10
    # Ties to even, both ways.
    assert one("sm_90", [2.0**-11], [1.0], 1 + 2.0**-10, 16, *types) == 1 + 2.0**-9


def test_fp8_of_ada_and_of_wgmma_keeps_thirteen_bits() -> None:
    e4m3 = ("float8_e4m3fn", "float8_e4m3fn", "float32")
    for name, unit in (("sm_89", "mma"), ("sm_90", "wgmma")):
        assert one(name, [2.0**-6], [2.0**-7], 1.0, 32, *e4m3, unit=unit) == 1 + 2.0**-13
        assert one(name, [2.0**-7] * 2, [2.0**-7] * 2, 1.0, 32, *e4m3, unit=unit) == 1
        # Also what comes in with C: cut to 13 bits.
        assert one(name, [1.0], [1.0], 1 + 2.0**-20, 32, *e4m3, unit=unit) == 2
    assert one("sm_120", [2.0**-7], [2.0**-7], 1.0, 32, *e4m3) == 1 + 2.0**-14
    halves = ("float8_e4m3fn", "float8_e4m3fn", "float16")
    assert one("sm_89", [2.0**-6], [2.0**-7], 1.0, 32, *halves) == 1


def test_emulated_fp8_adds_c_last_and_rounds_to_nearest() -> None:
    """sm_90's fp8 mma.sync: f16 instructions from zero, lower two of every four k first, then an ordinary addition."""
    e4m3 = ("float8_e4m3fn", "float8_e4m3fn", "float32")
    a, b = [2.0**-6, 2.0**-9], [2.0**-6, 2.0**-9]
    assert (
        one("sm_90", a[:1], b[:1], 2.0**12, 32, *e4m3) == 2.0**12
    )  # half of the last place of C: ties to even
    assert one("sm_90", a, b, 2.0**12, 32, *e4m3) == 2.0**12 + 2.0**-11  # more than half: up
    assert (
        one("sm_90", a, b, 2.0**12, 32, *e4m3, unit="wgmma") == 2.0**12
    )  # aligned with C, both would be cut
    # Order of the halves: k = 0 and 1 first; the largest product of the first step is cut by nothing of the second.
    big, small = 2.0**8, 2.0**-9
    first = np.zeros(32)
    first[[0, 1, 2, 3]] = 256, 256, small, small
    second = np.zeros(32)
    second[[0, 1, 2, 3]] = big, -big, small, small
    assert one("sm_90", first, second, 0.0, 32, *e4m3) == 2 * small * small
    assert one("sm_90", first[[2, 3, 0, 1]], second[[2, 3, 0, 1]], 0.0, 32, *e4m3) == 0


def test_c42_what_a_bf16_instruction_gives() -> None:
    """Reported by hardware for m16n8k8: every lane holds the same four A elements, two B elements, four C elements."""
    bf16 = ml_dtypes.bfloat16

    def run(name: str, a: list[float], b: float, c: list[float]) -> list[float]:
        a, b = np.array(a).astype(bf16).astype(float), float(bf16(b))
        A = np.vstack([np.tile(a[:2], (8, 4)), np.tile(a[2:], (8, 4))])  # a0, a1: row g; a2, a3: row g + 8
        C = np.vstack([np.tile(c[:2], (8, 4)), np.tile(c[2:], (8, 4))])
        C = C.astype(np.float32).astype(float)
        D = accumulate(A, np.full((8, 8), b), C, model(name, "bfloat16", "bfloat16", "float32", 8))
        return [float(f"{x:.6g}") for x in (D[0, 0], D[0, 1], D[8, 0], D[8, 1])]

    for name in ("exact", "sm_80", "sm_90"):
        assert run(name, [1, 1, 1, 1], 1, [0] * 4) == [8] * 4
        assert run(name, [2, 1, 1, 1], 1, [0] * 4) == [12, 12, 8, 8]
        assert run(name, [1, 1, 1, 2], 1, [0] * 4) == [8, 8, 12, 12]
        assert run(name, [0.2] * 4, 0.2, [0] * 4) == [0.320625] * 4
        assert run(name, [0.2, 0.4, 0.2, 0.2], 0.2, [0] * 4) == [0.480938, 0.480938, 0.320625, 0.320625]
        assert run(name, [0.2, 0.4, 0.2, 0.2], 0.2, [2, 4, 8, 1.5]) == [2.48094, 4.48094, 8.32063, 1.82063]


# ----------------------------------------------------------------------------------------- values and words


@pytest.mark.parametrize("name", ["exact", "sm_80", "sm_90"])
def test_special_values(name: str) -> None:
    inf, nan = np.inf, np.nan
    assert np.isnan(one(name, [inf], [0.0], 1.0, 16))
    assert np.isnan(one(name, [inf, -inf], [1.0, 1.0], 1.0, 16))
    assert np.isnan(one(name, [inf], [1.0], -inf, 16))
    assert np.isnan(one(name, [1.0], [1.0], nan, 16))
    assert one(name, [inf, 1.0], [-1.0, 1.0], 5.0, 16) == -inf
    assert one(name, [1.0], [1.0], inf, 16) == inf
    # 2**127 + 2**127 overflows, also where results are otherwise truncated.
    bf16 = ("bfloat16", "bfloat16", "float32")
    assert one(name, [2.0**64, 2.0**64], [2.0**63, 2.0**63], 0.0, 16, *bf16) == inf
    assert one(name, [2.0**100, -(2.0**100)], [2.0**100, 2.0**100], 3.0, 16, *bf16) in (3.0, 0.0)
    assert one(name, [240.0], [273.0], 0.0, 16, "float16", "float16", "float16") == inf  # 65520
    assert one(name, [240.0], [272.75], 0.0, 16, "float16", "float16", "float16") == 65472
    # Subnormal operands and results.
    assert one(name, [2.0**-24], [2.0**-24], 0.0, 16) == 2.0**-48
    assert one(name, [2.0**-133], [2.0**-16], 0.0, 16, *bf16) == 2.0**-149
    assert one(name, [2.0**-133], [2.0**-17], 0.0, 16, *bf16) == 0
    # One row's infinity stays in its row.
    A, B = np.ones((2, 16)), np.ones((16, 1))
    A[0, 3] = inf
    assert accumulate(A, B, np.zeros((2, 1)), model(name, "float16", "float16", "float32", 16)).tolist() == [
        [inf],
        [16],
    ]


def test_a_zero_sum_is_positive() -> None:
    for name in ("sm_80", "sm_90"):
        for a, c in (([-0.0], -0.0), ([1.0], -1.0), ([-(2.0**-14)], 0.0)):
            assert not np.signbit(
                one(name, a, [1.0 if c else 2.0**-14], c, 16, "float16", "float16", "float16")
            )


def test_words_of_the_accumulator() -> None:
    assert [hex(x) for x in bits([1.5, -np.inf, np.nan, -0.0], "float16").tolist()] == [
        "0x3e00",
        "0xfc00",
        "0x7fff",
        "0x8000",
    ]
    assert hex(bits([np.nan], "float32")[0]) == "0x7fffffff"
    assert bits([-1, 2**31 - 1], "int32").tolist() == [-1, 2**31 - 1]
    assert hex(bits([1.0], "float64")[0]) == "0x3ff0000000000000"
    with pytest.raises(LayoutError, match="float16, float32, float64, int32"):
        bits([1.0], "bfloat16")


def test_tf32_registers_lose_thirteen_bits() -> None:
    words = np.random.default_rng(3).integers(0, 2**32, 1000, dtype=np.uint32)
    words = words[words >> 23 & 255 != 255]
    values, cut = (w.view(np.float32).astype(np.float64) for w in (words, words >> 13 << 13))
    assert (drop_to_tfloat32(values) == cut).all()
    assert drop_to_tfloat32(np.array([np.inf]))[0] == np.inf
    assert np.isnan(drop_to_tfloat32(np.array([np.nan]))[0])
    # A NaN that has nothing but dropped bits becomes an infinity, of float64 and float32 alike.
    words = np.array([0x7F801FFF, 0xFF800001, 0x7F802000, 0xFFC00001, 0x7F7FFFFF, 0x00001FFF], np.uint32)
    wanted = [np.inf, -np.inf, np.nan, np.nan, 2.0**127 * (2 - 2.0**-10), 0.0]
    np.testing.assert_array_equal(drop_to_tfloat32(words.view(np.float32)), wanted)
    nan64 = np.array([0x7FF0_0000_2000_0000, 0x7FF0_0400_0000_0000], np.uint64).view(np.float64)
    np.testing.assert_array_equal(drop_to_tfloat32(nan64), [np.inf, np.nan])


# ------------------------------------------------------------------------------------------------ refusals


def test_what_has_no_model_is_refused_with_what_exists() -> None:
    for unknown in ("sm_81", "ampere", "sm_", ""):
        with pytest.raises(LayoutError, match=r"known: exact, sm_70, sm_75, sm_80,"):
            model(unknown, "float16", "float16", "float32", 16)
    with pytest.raises(LayoutError, match=r"on sm_80 K is one of 8, 16"):
        model("sm_80", "float16", "float16", "float32", 32)
    with pytest.raises(LayoutError, match=r"published for these types: .*sm_89 \(K = 16\)"):
        model("sm_80", "float8_e4m3fn", "float8_e5m2", "float32", 32)
    with pytest.raises(LayoutError, match=r"published for sm_80's mma: float16 x float16 -> float32"):
        model("sm_80", "bfloat16", "bfloat16", "float16", 16)
    with pytest.raises(LayoutError, match=r"4 of float8_ue4m3"):
        model("sm_120", "float4_e2m1fn", "float4_e2m1fn", "float32", 64, scale="float8_ue4m3", blocks=2)
    with pytest.raises(LayoutError, match=r"sm_80's wgmma: nothing"):
        model("sm_80", "int8", "bfloat16", "float32", 16, unit="wgmma")
    with pytest.raises(LayoutError, match="satfinite"):
        model("sm_80", "float16", "float16", "float32", 16, saturate=True)
    with pytest.raises(LayoutError, match="unknown unit"):
        model("sm_80", "float16", "float16", "float32", 16, unit="wmma")
    with pytest.raises(LayoutError, match="isn't added up in 'int32'"):
        model("exact", "float16", "float16", "int32", 16)
    assert model("sm_90a", "float16", "float16", "float32", 16) == model(
        "sm_90", "float16", "float16", "float32", 16
    )
    assert set(NUMERICS) == {"exact", "sm_70", *PUBLISHED}


def test_operands_that_do_not_fit_are_refused() -> None:
    f16 = model("sm_80", "float16", "float16", "float32", 16)
    A, B, C = np.ones((2, 16)), np.ones((16, 3)), np.ones((2, 3))
    for wrong in ((A[:, :8], B[:8], C), (A, B.T, C), (A, B, C.T), (A[None], B, C[None]), (A[0], B, C)):
        with pytest.raises(LayoutError, match="don't multiply"):
            accumulate(*wrong, f16)
    with pytest.raises(LayoutError, match=r"A holds .*0\.1.*, which no float16 is"):
        accumulate(A * 0.1, B, C, f16)
    with pytest.raises(LayoutError, match=r"C holds .*, which no float32 is"):
        accumulate(A, B, C + 2.0**-30, f16)
    with pytest.raises(LayoutError, match="drop_to_tfloat32"):
        accumulate(A[:, :8] + 2.0**-11, B[:8], C, model("sm_80", "tfloat32", "tfloat32", "float32", 8))
    with pytest.raises(LayoutError, match="takes none"):
        accumulate(A, B, C, f16, scale_a=np.ones((2, 1)), scale_b=np.ones((1, 3)))
    mx = model("sm_120", "float8_e4m3fn", "float8_e5m2", "float32", 32, scale="float8_e8m0fnu", blocks=1)
    A, B = np.ones((2, 32)), np.ones((32, 3))
    with pytest.raises(LayoutError, match="needs 1 scales"):
        accumulate(A, B, C, mx)
    with pytest.raises(LayoutError, match=r"scale_a has shape \(2, 2\), wanted \(2, 1\)"):
        accumulate(A, B, C, mx, np.ones((2, 2)), np.ones((1, 3)))
    with pytest.raises(LayoutError, match="has no sign"):
        accumulate(A, B, C, mx, -np.ones((2, 1)), np.ones((1, 3)))
    with pytest.raises(LayoutError, match=r"scale_b holds .*3\.0"):
        accumulate(A, B, C, mx, np.ones((2, 1)), 3 * np.ones((1, 3)))


def test_float64_nans_are_the_second_factor_then_c_then_the_first() -> None:
    """Every mixture of NaNs, infinities and numbers in one fused multiply-add; signaling ones become quiet."""
    quiet = 1 << 51
    nans = [0x7FF8000000000005, 0xFFF8000000000009, 0x7FF0000000000003, 0xFFF0000000000001]
    others = [0x7FF0000000000000, 0xFFF0000000000000, 0, 0x3FF0000000000000]
    words = np.array(nans + others, np.uint64)
    x, y, z = np.meshgrid(words, words, words, indexing="ij")
    a, b, c = (v.reshape(-1, 1, 1).view(np.float64) for v in (x, y, z))
    found = bits(accumulate(a, b, c, model("exact", "float64", "float64", "float64", 1)), "float64")
    for first, second, third, got in zip(x.flat, y.flat, z.flat, found.flat, strict=True):
        operands = [int(v) for v in (second, third, first) if int(v) in nans]
        if operands:
            assert int(got) == operands[0] | quiet
        elif np.isnan(got.view(np.float64)):
            assert int(got) == 0xFFF8000000000000
    assert (found == 0xFFF8000000000000).any()


def test_a_nan_of_float64_goes_on_to_the_end() -> None:
    a, b, c = np.ones((1, 4)), np.ones((4, 1)), np.zeros((1, 1))
    a[0, 1] = np.array(0x7FF8000000000007, np.uint64).view(np.float64)
    a[0, 2], b[3, 0] = np.inf, -np.inf
    d = accumulate(a, b, c, model("exact", "float64", "float64", "float64", 4))
    assert hex(bits(d, "float64")[0, 0]) == "0x7ff8000000000007"


def test_quadpairs_on_hopper_are_ordinary_arithmetic() -> None:
    """2**-24 beside 1 is lost before C or seen after it; signs of zeros are IEEE's."""
    big, small = [1.0, 2.0**-12, 2.0**-12, 0], [1.0, 2.0**-12, 2.0**-12, 0]
    assert one("sm_90", big, small, 0, 4) == 1  # 1 + 2**-24 is 1 twice
    assert one("sm_90", big[1:], small[1:], 1, 4) == 1 + 2.0**-23  # 2**-24 + 2**-24 before C
    zeros = np.full((1, 4), -0.0)
    for accumulator in ("float32", "float16"):
        how = model("sm_90", "float16", "float16", accumulator, 4)
        ones = np.ones((4, 1))
        # Of float32 the sum begins with +0.
        negative = np.signbit(accumulate(zeros, ones, np.full((1, 1), -0.0), how))[0, 0]
        assert negative == (accumulator == "float16")
        assert not np.signbit(accumulate(zeros, ones, np.zeros((1, 1)), how))[0, 0]
    # f16 takes two products and C, then the other two: C = 2**-24 would be lost beside all four.
    types = ("float16", "float16", "float16")
    assert one("sm_90", [1.0, -1.0, 2.0**-12, 0], [1.0, 1.0, 2.0**-12, 0], 2.0**-24, 4, *types) == 2.0**-23
    assert one("sm_90", [0, 0, 1.0, -1.0], [0, 0, 1.0, 1.0], 2.0**-24, 4, *types) == 2.0**-24
    assert one("sm_90", [2.0, 0, 2.0**12, 0], [1.0, 0, 2.0**12, 0], -(2.0**15), 4, *types) == np.inf
    with pytest.raises(LayoutError, match="K is one of 8, 16"):
        model("sm_80", "float16", "float16", "float32", 4)
