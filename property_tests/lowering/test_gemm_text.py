"""The printed nest: what a person reads."""

from __future__ import annotations

import re

import pytest

from lowering import lower

from ..gemm_cases import DTYPES, one_warp


def nest(beta: float, dtype: str = "float16", tiling=(1, 1, 1, 16)) -> str:
    return str(lower(one_warp(tiling, dtype, beta, in_place=False), target="sm_80", scope="warp"))


def slots(text: str, name: str) -> set[str]:
    """Register names of a group outside the declarations."""
    body = "\n".join(line for line in text.splitlines() if "registers" not in line)
    return set(re.findall(rf"{name}\[\d+\]", body))


def numbered(name: str, count: int) -> set[str]:
    return {f"{name}[{i}]" for i in range(count)}


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_atom_with_beta_zero(dtype: str) -> None:
    text = nest(0.0, dtype)
    assert slots(text, "d_local") == numbered("d_local", 4)
    assert slots(text, "a_words") == numbered("a_words", 4)
    assert slots(text, "b_words") == numbered("b_words", 2)
    assert "c_local" not in text
    assert [line for line in text.splitlines() if "0f00000000" in line] == [
        f"  mov.f32 d_local[{i}], 0f00000000;" for i in range(4)
    ]


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_atom_with_beta_one(dtype: str) -> None:
    text = nest(1.0, dtype)
    assert "0f00000000" not in text
    assert slots(text, "c_local") == numbered("c_local", 4)
    assert [line.strip() for line in text.splitlines() if "mov" in line] == [
        f"mov.f32 d_local[{i}], c_local[{i}];" for i in range(4)
    ]


def test_the_line_of_the_instruction() -> None:
    (line,) = [x.strip() for x in nest(0.0).splitlines() if "mma.sync" in x]
    d = ", ".join(f"d_local[{i}]" for i in range(4))
    a = ", ".join(f"a_words[{i}]" for i in range(4))
    assert line == (
        f"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{{d}}}, {{{a}}}, {{b_words[0], b_words[1]}}, {{{d}}};"
    )


def test_k8_names_two_words_of_a_and_one_of_b() -> None:
    text = nest(0.0, tiling=(1, 1, 1, 8))
    assert slots(text, "a_words") == numbered("a_words", 2)
    assert slots(text, "b_words") == numbered("b_words", 1)
    assert "{b_words[0]}" in text


def test_tiles_are_named_and_follow_one_another() -> None:
    text = nest(0.0, tiling=(2, 2, 2, 16))
    assert [x.strip() for x in text.splitlines() if x.strip().startswith("#")] == [
        f"# m = {m}, n = {n}" for m in range(2) for n in range(2)
    ]
    assert text.count("mma.sync") == 8
    assert text.count("0f00000000") == 16
    # Each accumulator is set before its first multiplication, and the terms run innermost.
    order = [
        re.search(r"{d_local\[(\d+)\].*?{a_words\[(\d+)\].*?{b_words\[(\d+)\]", x) for x in text.splitlines()
    ]
    first = [tuple(int(x) for x in found.groups()) for found in order if found and "mma" in found.string]
    assert first == [
        (4 * (2 * m + n), 4 * (2 * m + k), 2 * (2 * k + n))
        for m in range(2)
        for n in range(2)
        for k in range(2)
    ]


def test_the_header_says_what_lives_where() -> None:
    lines = nest(1.0, "bfloat16").splitlines()
    assert lines[0] == "program gemm_m16n8k16_bf16: 1 warp"
    assert [x.strip() for x in lines if "registers" in x] == [
        "registers a_words[0..3]: b32 of bfloat16  (A, in)",
        "registers b_words[0..1]: b32 of bfloat16  (B, in)",
        "registers c_local[0..3]: f32  (C, in)",
        "registers d_local[0..3]: f32  (D, out)",
    ]


def test_explain_names_the_choice() -> None:
    lowered = lower(one_warp((1, 1, 1, 16), "float16"), target="sm_80", scope="warp")
    text = lowered.explain()
    assert "chosen: mma.m16n8k* (priority 10): mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32" in text
    assert "no other variant was tried" in text
    assert repr(lowered) == "<Lowered D = 1.0 * A @ B + 0.0 * D by mma.m16n8k* for sm_80 at warp scope>"
