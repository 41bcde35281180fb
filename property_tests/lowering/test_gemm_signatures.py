"""Which records ``gemm`` tries, by table: element types, qualifiers, sizes, architectures; and what a refusal says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lowering import DispatchError, GemmCall, Tile, gemm, lower
from lowering.isa import DENSE
from tilelayout import S, TileLayout

from .. import record_cases as cases

BY_NAME = {i.name: i for i in DENSE}


def tiles(m: int, n: int, k: int, a: str, b: str, c: str, d: str | None = None) -> GemmCall:
    """A gemm of those sizes and types on layouts that nothing fits: only the table is asked."""
    shapes = {"D": (m, n), "A": (m, k), "B": (k, n), "C": (m, n)}
    types = {"D": d or c, "A": a, "B": b, "C": c}
    return gemm(*[Tile(r, shapes[r], types[r], TileLayout(S[shapes[r]])) for r in "DABC"])


def refusal(call: GemmCall, target: str = "sm_90", **config: Any) -> str:
    with pytest.raises(DispatchError) as error:
        lower(call, target=target, scope="warp", config=config)
    text = " ".join(str(error.value).split())
    assert "unexpected" not in text, text
    return text


def chosen(call: GemmCall, target: str, **config: Any) -> tuple[str, ...]:
    program = lower(call, target=target, scope="warp", config=config).program
    return tuple(i.name for i in program.instructions if i.collective)


# --- the order ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("record", "k", "target", "wanted"),
    [
        ("m16n8k16.f16", 1, "sm_80", "m16n8k16.f16"),
        ("m16n8k8.f16", 2, "sm_80", "m16n8k16.f16"),
        ("m16n8k8.f16", 2, "sm_75", "m16n8k8.f16"),
        ("m16n8k8.f16", 1, "sm_80", "m16n8k8.f16"),  # C47: the k8 map
        ("m16n8k16.s8", 2, "sm_80", "m16n8k32.s8"),
        ("m16n8k32.s4", 2, "sm_90", "m16n8k64.s4"),
        ("m16n8k4.f64", 4, "sm_90", "m16n8k16.f64"),
        ("m16n8k128.b1.and", 2, "sm_80", "m16n8k256.b1.and"),
        ("m16n8k32.e4m3", 1, "sm_89", "m16n8k32.e4m3"),
        ("m16n8k32.e4m3", 1, "sm_120a", "m16n8k32.e4m3"),
    ],
)
def test_c47_larger_k_first(record: str, k: int, target: str, wanted: str) -> None:
    assert chosen(cases.call_of(BY_NAME[record], (1, 1, k)), target) == (wanted,)


def test_native_before_emulated(monkeypatch: pytest.MonkeyPatch) -> None:
    from lowering.variants import mma_table

    plain = BY_NAME["m16n8k32.e4m3"]
    native = replace(plain, kind="f8f6f4", emulated=())
    for table in ((plain, native), (native, plain)):
        monkeypatch.setattr(mma_table, "DENSE", table)
        assert chosen(cases.call_of(plain), "sm_90") == (native.name,)  # sm_90 makes f16 instructions of fp8
        assert chosen(cases.call_of(plain), "sm_120") == (table[0].name,)  # native both: the table's order


def test_sixteen_rows_before_eight() -> None:
    eight = BY_NAME["m8n8k16.s8"]
    assert chosen(cases.call_of(eight, (2, 1, 1)), "sm_80") == ("m16n8k16.s8",)
    assert chosen(cases.call_of(eight, (2, 1, 1)), "sm_75") == ("m8n8k16.s8",)
    assert chosen(cases.call_of(eight, (3, 1, 2)), "sm_80") == ("m8n8k16.s8",)


# --- qualifiers ---------------------------------------------------------------------------------


def test_integers_clamp_only_when_asked() -> None:
    call = cases.call_of(BY_NAME["m16n8k32.s8"])
    assert chosen(call, "sm_80") == chosen(call, "sm_80", satfinite=False) == ("m16n8k32.s8",)
    assert chosen(call, "sm_80", satfinite=True) == ("m16n8k32.s8.satfinite",)
    assert "config satfinite is True, the instructions of float32" in refusal(
        cases.call_of(BY_NAME["m16n8k16.f16"]), satfinite=True
    )
    assert "config satfinite is 'yes'" in refusal(call, satfinite="yes")
    for wrong in ("satfinte", "sat_finite", "SatFinite"):
        assert f"config has no {wrong!r} here, did you mean 'satfinite'?" in refusal(call, **{wrong: True})
    assert chosen(call, "sm_80", stages=3) == ("m16n8k32.s8",)  # some other variant's


def test_bits_are_numbers_unless_xor_is_asked_for() -> None:
    call = cases.call_of(BY_NAME["m16n8k256.b1.and"])
    assert chosen(call, "sm_80") == chosen(call, "sm_80", operation="and") == ("m16n8k256.b1.and",)
    assert chosen(call, "sm_80", operation="xor") == ("m16n8k256.b1.xor",)
    assert (
        "config operation is 'or', the instructions of int32 = uint1 @ uint1 + int32 have 'xor', 'and'"
        in refusal(call, operation="or")
    )
    text = refusal(cases.call_of(BY_NAME["m16n8k32.s8"]), operation="xor")
    assert "operation='xor' is for factors of one bit, not int32 = int8 @ int8 + int32" in text
    small = cases.call_of(BY_NAME["m8n8k128.b1.and"])
    assert "m8n8k128.b1.and: needs sm_80 or newer, the target is sm_75" in refusal(small, "sm_75")
    assert chosen(small, "sm_75", operation="xor") == ("m8n8k128.b1.xor",)


def test_a_kind_may_be_asked_for() -> None:
    call = cases.call_of(BY_NAME["m16n8k32.e5m2"])
    assert chosen(call, "sm_120a", kind="f8f6f4") == ("m16n8k32.f8f6f4.e5m2",)
    assert chosen(call, "sm_120a", kind="") == ("m16n8k32.e5m2",)
    text = refusal(call, "sm_120a", kind="mxf8f6f4")
    assert (
        "config kind is 'mxf8f6f4', the instructions of float32 = float8_e5m2 @ float8_e5m2 + float32 have"
        in text
    )
    assert "needs operands of scale factors, which gemm does not have" in text
    assert "config kind is 'mxf4', the instructions of" in refusal(call, "sm_120a", kind="mxf4")


# --- types --------------------------------------------------------------------------------------


def test_the_signatures_of_the_given_factors_are_listed() -> None:
    text = refusal(tiles(16, 8, 32, "int8", "uint8", "float32"))
    assert "dtype signature float32 = int8 @ uint8 + float32 has no instruction; there are: " in text
    assert "there are: int32 = int8 @ uint8 + int32 " in text + " "
    text = refusal(tiles(16, 8, 32, "float8_e4m3fn", "float8_e4m3fn", "bfloat16"))
    e4m3 = "float8_e4m3fn @ float8_e4m3fn"
    assert f"there are: float32 = {e4m3} + float32, float16 = {e4m3} + float16" in text


def test_all_signatures_where_the_factors_have_none() -> None:
    text = refusal(tiles(16, 8, 32, "int8", "float16", "float32"))
    for i in cases.RECORDS:
        assert f"{i.d} = {i.a} @ {i.b} + {i.c}" in text


def test_float32_factors_are_to_be_declared_tfloat32() -> None:
    text = refusal(tiles(16, 8, 8, "float32", "float32", "float32"))
    assert "declare float32 factors as tfloat32, of which the tensor cores drop the low 13 bits" in text
    assert "there are: float32 = tfloat32 @ tfloat32 + float32 " in text + " "


def test_instructions_that_gemm_cannot_carry_out() -> None:
    text = refusal(tiles(16, 8, 64, "float4_e2m1fn", "float4_e2m1fn", "float32"), "sm_120a")
    assert "K = 64" not in text  # kind::f8f6f4 has K = 32
    names = [i for i in DENSE if i.scale]
    only_scaled = [i for i in names if not any(r.signature == i.signature for r in cases.RECORDS)]
    assert not only_scaled  # so the reason for scales shows only when a table has nothing else
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lowering.variants.mma_table.DENSE", (BY_NAME["m16n8k16.f16"], names[0]))
        e4m3 = names[0].a
        text = refusal(tiles(16, 8, 32, e4m3, e4m3, "float32"), "sm_120a")
    assert f"{names[0].name}: needs operands of scale factors, which gemm does not have" in text
    text = refusal(tiles(8, 8, 4, "float16", "float16", "float16", "float32"))
    assert "four products of quadpairs" in text


# --- sizes and architectures --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sizes", "types", "words"),
    [
        ((16, 8, 8), ("int8", "int8", "int32"), "K = 8 is not a multiple of 16 or 32"),  # C47
        ((16, 8, 8), ("float8_e4m3fn", "float8_e5m2", "float32"), "K = 8 is not a multiple of 16 or 32"),
        ((16, 8, 48), ("int4", "int4", "int32"), "K = 48 is not a multiple of 32 or 64"),
        ((16, 8, 2), ("tfloat32", "tfloat32", "float32"), "K = 2 is not a multiple of 4 or 8"),
        ((16, 8, 4), ("float16", "float16", "float16"), "K = 4 is not a multiple of 8 or 16"),
        ((4, 12, 100), ("uint1", "uint1", "int32"), "M = 4 is not a multiple of 8; N = 12 is not a multiple of 8; K"),
    ],
)  # fmt: skip
def test_c47_sizes_that_are_not_covered(
    sizes: tuple[int, int, int], types: tuple[str, str, str], words: str
) -> None:
    text = refusal(tiles(*sizes, *types))
    assert words in text
    a, b, c = types
    assert f"instructions of {c} = {a} @ {b} + {c}" in text


@pytest.mark.parametrize(
    ("record", "target", "words"),
    [
        ("m16n8k32.e4m3", "sm_80", "needs sm_89 or newer, the target is sm_80"),
        ("m16n8k8.tf32", "sm_75", "needs sm_80 or newer, the target is sm_75"),
        (
            "m16n8k32.f8f6f4.e2m1",
            "sm_120",
            "needs sm_120a, sm_120f, sm_121a, sm_121f (not plain or other architectures)",
        ),
        (
            "m16n8k32.f8f6f4.e2m1",
            "sm_100a",
            "needs sm_120a, sm_120f, sm_121a, sm_121f (not plain or other architectures)",
        ),
    ],
)
def test_an_architecture_that_lacks_it(record: str, target: str, words: str) -> None:
    assert words in refusal(cases.call_of(BY_NAME[record]), target)


def test_eight_rows_where_sixteen_came_later() -> None:
    call = cases.call_of(BY_NAME["m16n8k8.f64"])
    assert chosen(call, "sm_80") == ("m8n8k4.f64",)
    with pytest.raises(DispatchError, match=r"m16n8k8\.f64, m16n8k4\.f64: needs sm_90 or newer"):
        lower(call, target="sm_80", scope="warp", dispatch="mma.m16n8k*")


def test_c47_sixteen_bit_bfloat16_sums_exist_nowhere() -> None:
    for target in ("sm_80", "sm_90a", "sm_120a"):
        text = refusal(tiles(16, 8, 16, "bfloat16", "bfloat16", "float16"), target)
        assert (
            "has no instruction on any architecture: products of bfloat16 are added up in float32 alone"
            in text
        )
