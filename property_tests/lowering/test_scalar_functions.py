"""Python functions of numbers as instructions: what they compute, their text for every target, and what is refused."""

from __future__ import annotations

import math
import random
import re
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lowering import Tile, elementwise, lower
from lowering.backends.assemble import assemble, compile_cuda
from lowering.target import TARGETS, target
from tilelayout import LayoutError, S, TileLayout, laneid

from .instruction_ptx import module_of

cuda = pytest.importorskip("numba.cuda", reason="the extra cuda is not installed")
from lowering.backends.numba_cuda import compile_ptx, scalar_instruction  # noqa: E402 - needs numba-cuda
from lowering.backends.numba_cuda.scalar import inlined  # noqa: E402
from lowering.isa.scalar.decode import decoded  # noqa: E402

pytestmark = pytest.mark.skipif(
    sys.platform not in ("linux", "win32"), reason="NVIDIA's libraries are not published for this system"
)

SLOPE = 0.1


def relu(x: float) -> float:
    return max(x, 0)  # type: ignore[return-value]


def gelu(x: float) -> float:
    return 0.5 * x * (1.0 + math.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))


def silu(x: float) -> float:
    return x / (1 + math.exp(-x))


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def leaky(x: float) -> float:
    return x if x > 0 else SLOPE * x


def elu(x: float) -> float:
    if x > 0:
        return x
    return math.exp(x) - 1


def hard_swish(x: float) -> float:
    return x * min(max(x + 3, 0), 6) / 6


def softplus(x: float) -> float:
    return math.log1p(math.exp(x)) if x < 20 else x


def horner(x: float) -> float:
    total = x
    for i in range(5):
        total = total * x + i
    return total


def cube(x: float) -> float:
    return x**3 + abs(x) ** 0.5


def clamp(low: float, high: float) -> Callable[[float], float]:
    def clamp(x: float) -> float:
        return min(max(x, low), high)

    return clamp


FUNCTIONS = [relu, gelu, silu, sigmoid, leaky, elu, hard_swish, softplus, horner, cube, clamp(-1, 2.5)]
NAMED = {f.__name__: f for f in FUNCTIONS}


def meaning(instruction: Any, *arrays: Any) -> Any:
    """What the record computes of float32 arrays ``[lanes]``."""
    given = {f"x{i}": np.asarray(x, np.float32).view(np.uint32)[None, :, None] for i, x in enumerate(arrays)}
    return instruction.meaning(given)["d"].view(np.float32)[0, :, 0]


@pytest.mark.parametrize(
    ("name", "literals"),
    [
        (n, x) for n in NAMED for x in ("f32", "python") if (n, x) != ("cube", "python")
    ],  # a power of float64 is a call
)
def test_what_it_computes(name: str, literals: Any) -> None:
    """As the Python function in float64, to the last place of float32."""
    function = NAMED[name]
    x = np.linspace(-6, 6, 1000, dtype=np.float32)
    wanted = np.array([float(function(float(v))) for v in x])
    found = meaning(scalar_instruction(function, "sm_80", literals=literals), x)
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", NAMED)
def test_a_function_of_f32_stays_one(name: str) -> None:
    """No literal makes it compute in float64, but where a loop counts in 64 bits."""
    text = scalar_instruction(NAMED[name], "sm_80").template
    assert (".f64" in text) == (name == "horner")


def test_literals_as_python_has_them() -> None:
    assert ".f64" in scalar_instruction(gelu, "sm_80", literals="python").template


def test_the_largest_of_small_integers_have_negatives() -> None:
    """A literal becomes int16 where its negative is one too: numba keeps the type."""
    least = -32768
    x = np.array([1.0, 1e6, -1e6], np.float32)
    for f, wanted in (
        (lambda x: min(max(x, least), -least), [1.0, 32768.0, -32768.0]),
        (lambda x: x * abs(least), x * np.float32(32768)),
        (lambda x: -least + 0 * x, [32768.0] * 3),
    ):
        np.testing.assert_array_equal(meaning(scalar_instruction(f, "sm_80"), x), np.float32(wanted))


PAIR = (0.1, 2.5)


@pytest.mark.parametrize("f", [lambda x: x in (0.1, 2.5), lambda x: x in PAIR], ids=["literal", "global"])
def test_literals_in_tuples_are_float32_too(f: Any) -> None:
    found = meaning(scalar_instruction(f, "sm_80"), [0.1, 2.5, 3.0])
    np.testing.assert_array_equal(found, np.float32([1, 1, 0]))


def test_literals_in_tuples_are_held_by_float32() -> None:
    with pytest.raises(LayoutError, match=r"`1e\+300` is beyond float32"):
        scalar_instruction(lambda x: x in (1e300, 0.0), "sm_80")


def test_remainders_by_the_rounded_quotient() -> None:
    """As documented; fmod is exact."""
    x = np.array([5.1, 7e8], np.float32)
    exact = np.fmod(x, np.float32(0.1))
    np.testing.assert_array_equal(meaning(scalar_instruction(lambda x: math.fmod(x, 0.1), "sm_80"), x), exact)
    by_quotient = meaning(scalar_instruction(lambda x: x % 0.1, "sm_80"), x)
    assert by_quotient[0] == 0 != exact[0]


def test_division_by_zero_and_what_is_no_number() -> None:
    x = np.array([0.0, -1.0, np.inf, np.nan], np.float32)
    np.testing.assert_array_equal(
        meaning(scalar_instruction(lambda v: 1 / v, "sm_80"), x), [np.inf, -1, 0, np.nan]
    )
    found = meaning(scalar_instruction(lambda v: math.log(v), "sm_80"), x)
    np.testing.assert_array_equal(found, [-np.inf, np.nan, np.inf, np.nan])


def test_a_second_argument() -> None:
    def with_bias(x: float, bias: float) -> float:
        return max(x + bias, 0.0)

    record = scalar_instruction(with_bias, "sm_80", kinds=("f32", "f32"))
    assert [o.name for o in record.operands] == ["d", "x0", "x1"]
    x, b = np.float32([1, -5, 2]), np.float32([1, 2, -3])
    np.testing.assert_array_equal(meaning(record, x, b), [2, 0, 0])


def test_numbers_of_other_kinds() -> None:
    scale = scalar_instruction(lambda n: n * 0.5, "sm_80", kinds=("s32",))
    held = np.array([[[7]], [[2**32 - 3]]], np.uint32)
    assert scale.meaning({"x0": held})["d"].view(np.float32).ravel().tolist() == [3.5, -1.5]
    assert [o.kind for o in scale.operands] == ["f32", "b32"]
    wide = scalar_instruction(lambda x: x * x + 0.1, "sm_80", kinds=("f64",), result="f64")
    found = wide.meaning({"x0": np.array([3.0]).view(np.uint32)[None, None]})["d"].view(np.float64)
    assert found.tolist() == [[[9.1]]]
    double = scalar_instruction(lambda n: 2 * n, "sm_80", kinds=("s32",), result="s32")
    assert double.meaning({"x0": held})["d"].view(np.int32).ravel().tolist() == [14, -6]


def test_two_functions_of_one_name_are_two_instructions() -> None:
    one, two = (scalar_instruction(clamp(-1, high), "sm_80") for high in (1, 2))
    assert one.name.startswith("clamp.")
    assert one.name != two.name
    assert one.name == scalar_instruction(clamp(-1, 1), "sm_80").name


# --- text ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TARGETS)
def test_the_text_assembles_for_every_target(name: str) -> None:
    """All of them in one kernel, each twice: names do not meet."""
    where = target(name)
    records = [scalar_instruction(f, where) for f in FUNCTIONS]
    assert all(r.ptx == where.ptx and not r.refusal(where) for r in records)
    assert all(decoded(r.meaning.text) for r in records)  # type: ignore[attr-defined]
    assert assemble(module_of([*records, *records], where), where, allow_spills=True).registers


def test_a_gate_is_the_target_it_was_made_for() -> None:
    record = scalar_instruction(relu, "sm_90")
    assert record.refusal(target("sm_80"))
    assert not record.refusal(target("sm_90a"))


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_the_text_is_closed(f: Any) -> None:
    """One block, which names registers of its own and operands, and jumps within itself."""
    text = scalar_instruction(f, "sm_80").text({"d": ["%out"], "x0": ["%in"]})
    assert text.startswith("{ ")
    assert text.endswith("mov.f32 %out, u_d; }")
    assert set(re.findall(r"[%$]\w+", text)) == {"%out", "%in"}
    assert text.count("%out") == 1
    labels = set(re.findall(r"(u_\w+):", text))
    assert set(re.findall(r"bra(?:\.uni)? (\w+)", text)) <= labels
    declared = {name for name, _ in re.findall(r"(u_\w+)<(\d+)>", text)} | set(
        re.findall(r"\.reg \.\w+ (u_\w+);", text)
    )
    used = {
        re.sub(r"\d+$", "", x) if re.sub(r"\d+$", "", x) in declared else x
        for x in re.findall(r"\bu_\w+", text)
    }
    assert used - labels <= declared


@pytest.mark.parametrize(
    ("f", "kind"),
    [
        *[(f, kind) for f in FUNCTIONS for kind in ("f32", "f64") if (f.__name__, kind) != ("cube", "f64")],
        *[(f, "f32") for f in (lambda x: x % 0.1, lambda x: math.fmod(x, 0.3))],
    ],
)
def test_an_assembler_has_nothing_to_fuse(f: Any, kind: Any) -> None:
    """Every sum and product says how it is rounded; `x % 0.1` was another number on a GPU than here."""
    text = scalar_instruction(f, "sm_90a", kinds=(kind,), result=kind).template
    assert not re.findall(r"\b(?:add|sub|mul)(?:\.ftz|\.sat)*\.f(?:32|64)\b", text)


@pytest.mark.parametrize("element", ["float32", "float16"])
def test_it_is_applied_to_tiles(element: str) -> None:
    tile = Tile("x", (32, 8), element, TileLayout(S[(32, 8) : (1 @ laneid, 1)]))
    lowered = lower(
        elementwise(tile, scalar_instruction(gelu, "sm_90a"), tile), target="sm_90a", scope="warp"
    )
    x = np.linspace(-4, 4, 256).reshape(32, 8).astype(element)
    wanted = np.vectorize(lambda v: float(gelu(float(v))))(x).astype(element)
    np.testing.assert_allclose(lowered.run(dst=x).astype(float), wanted.astype(float), rtol=2e-3, atol=1e-6)
    assert lowered.cubin.local_bytes == 0
    where = lowered.context.target
    assert assemble(compile_cuda(lowered.cuda, where), where).local_bytes == 0


def test_it_is_applied_in_a_device_function() -> None:
    from numba.cuda import types

    tile = Tile("x", (32, 8), "float32", TileLayout(S[(32, 8) : (1 @ laneid, 1)]))
    f = lower(
        elementwise(tile, scalar_instruction(silu, "sm_80"), tile), target="sm_80", scope="warp"
    ).device_function
    load, store = f.load_dst, f.store

    def kernel(x: Any) -> None:
        store(x, f(load(x)))

    ptx = compile_ptx(kernel, (types.float32[:, ::1],), "sm_80")
    assert ptx.count("u_end:") == 8
    assert assemble(ptx, target("sm_80")).local_bytes == 0


# --- what is refused ------------------------------------------------------------------------------


def recursive(x: float) -> float:
    return recursive(x - 1) if x > 0 else x


def text_of(x: float) -> int:
    return len(str(x))


def wave(x: float) -> float:
    return math.sin(x)


def chance(x: float) -> float:
    return random.random() * x


def nothing(x: float) -> None:
    pass


def unknown(x: float) -> float:
    return x + not_defined  # type: ignore[name-defined] # noqa: F821


def thread(x: float) -> float:
    return x + cuda.threadIdx.x


def attempts(x: float) -> float:
    try:
        return 1 / x
    except ZeroDivisionError:
        return 0.0


REFUSED = {
    recursive: "`recursive` is another Python function",
    text_of: "does not compile",
    wave: "keeps an array in local memory",
    chance: "`random.random`",
    nothing: "it returns None",
    unknown: "not_defined",
    thread: "reads %tid",
    attempts: "`try` catches an error",
    len: "a plain Python function is needed",
    (lambda x, y: x): "it takes 2 parameters, 1 are given",
    (lambda *x: x[0]): "it takes 0 parameters and more, 1 are given",
}


@pytest.mark.parametrize("function", REFUSED, ids=lambda f: f.__name__)
def test_what_is_refused_names_the_function(function: Any) -> None:
    with pytest.raises(LayoutError, match=re.escape(REFUSED[function])) as refused:
        scalar_instruction(function, "sm_80")
    assert str(refused.value).startswith(f"function {function.__name__}: ")
    assert len(str(refused.value)) < 400


def test_an_unknown_kind() -> None:
    with pytest.raises(LayoutError, match="unknown kind 'f16'"):
        scalar_instruction(relu, "sm_80", kinds=("f16",))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="unknown target"):
        scalar_instruction(relu, "sm_79")


BODY = """
.version 9.0
.target sm_80
.address_size 64
{outside}
.visible .func (.param .b32 func_retval0) scalar(
 .param .b32 scalar_param_0
)
{{
 .reg .f32 %f<3>;
 ld.param.f32 %f1, [scalar_param_0];
{inside}
 st.param.f32 [func_retval0+0], %f1;
 ret;
}}
"""


@pytest.mark.parametrize(
    ("outside", "inside", "why"),
    [
        (".global .align 4 .b8 table[8] = {1, 2};", "", "needs .global .align 4 .b8 table"),
        (".const .align 4 .b8 table[8];", "", "needs .const"),
        (".func (.param .b32 r) helper(.param .b32 p) { ret; }", "", "needs .func"),
        (".extern .func vprintf;", "", "needs .extern"),
        ("", " .local .align 4 .b8 __local_depot0[4];", "local memory"),
        ("", " call.uni helper, ();", "does more than compute a number"),
        ("", " ld.global.f32 %f2, [%rd1];", "does more than compute a number"),
        ("", " mov.u32 %r1, %laneid;", "reads %laneid"),
    ],
)
def test_text_that_is_not_closed_is_refused(outside: str, inside: str, why: str) -> None:
    with pytest.raises(LayoutError, match=re.escape(why)):
        inlined(BODY.format(outside=outside, inside=inside), "f", ("f32",), "f32")
    assert inlined(BODY.format(outside="", inside=""), "f", ("f32",), "f32").endswith("mov.f32 {d}, u_d; }}")


def test_returns_in_the_middle_jump_to_the_end() -> None:
    inside = " setp.gt.f32 %p1, %f1, 0f00000000;\n @%p1 ret;\n ret;"
    text = inlined(BODY.format(outside="", inside=inside), "f", ("f32",), "f32")
    assert "@u_p1 bra u_end; bra u_end; mov.f32 u_d, u_f1; u_end:" in text
