"""``fill``, ``cast`` and ``elementwise`` on tiles in registers: every element, in every lane, and what is declined."""

from __future__ import annotations

import itertools
import re
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowering import DispatchError, Tile, cast, copy, elementwise, fill, lower, sequence
from lowering.backends.assemble import assemble, compile_cuda
from lowering.dtypes import dtype
from lowering.fragments import A_FRAG, D_FRAG, partition
from lowering.isa import BAR_SYNC, DENSE
from lowering.isa.arithmetic import ADD, FMA, MUL
from lowering.isa.convert import PACK, UNPACK
from lowering.narrow import from_float
from lowering.target import TARGETS
from tilelayout import LayoutError, S, TileLayout, laneid, warpid

ON_GPU_TEXT = pytest.mark.skipif(
    sys.platform not in ("linux", "win32"), reason="NVIDIA's libraries are not published for this system"
)
RECORD = next(r for r in DENSE if r.name == "m16n8k16.f16")
WIDE = TileLayout(S[(2, 8, 2, 4, 2) : (2, 4 @ laneid, 4, 1 @ laneid, 1)])
"""16 x 16 sums of two m16n8, in the lanes that hold the same elements of a factor A of m16n8k16."""
ROWS = TileLayout(S[(32, 16) : (1 @ laneid, 1)])
"""A row of 16 elements a lane, whole registers of any type."""
TYPES = sorted(set(PACK) | set(UNPACK))


def rows(name: str, element: str) -> Tile:
    return Tile(name, (32, 16), element, ROWS)


def run(call: Any, target: str = "sm_90a", scope: str = "warp", launch: Any = None, **arrays: Any) -> Any:
    return lower(call, target=target, scope=scope, launch=launch).run(**arrays)


def some(element: str, shape: tuple[int, ...], seed: int = 0, most: int = 8) -> Any:
    found = np.random.default_rng(seed).integers(-most, most + 1, shape)
    return from_float(abs(found) if element == "uint8" else found, element)


# --- cast ---------------------------------------------------------------------------------------


def declined(src: str, dst: str) -> bool:
    return src == "float64" and dst not in ("float32", "float64")


@pytest.mark.parametrize(("src", "dst"), [p for p in itertools.product(TYPES, TYPES) if not declined(*p)])
def test_every_pair_of_types(src: str, dst: str) -> None:
    """Small integers, which every type has, and for the wider ones numbers that must be rounded and clamped."""
    x = some(src, (32, 16))
    if src in ("float32", "float64", "float16", "bfloat16"):
        x[1::2] = np.linspace(-1000.3, 1000.3, 256).reshape(16, 16).astype(x.dtype)
    got = run(cast(rows("y", dst), rows("x", src)), src=x)
    wide = x.astype(np.float64)
    if dst == "tfloat32":
        bits = wide.astype(np.float32).view(np.uint32) + np.uint32(0x1000)
        wanted = (bits & np.uint32(0xFFFFE000)).view(np.float32) if src != dst else x
    else:
        wanted = from_float(wide, dst, saturate=dst not in ("float16", "bfloat16", "float32", "float64"))
    np.testing.assert_array_equal(got.view(np.uint8), wanted.view(np.uint8))


@pytest.mark.parametrize("dst", [e for e in TYPES if declined("float64", e)])
def test_a_float64_is_not_rounded_twice(dst: str) -> None:
    with pytest.raises(DispatchError, match="would be rounded twice"):
        lower(cast(rows("y", dst), rows("x", "float64")), target="sm_90a", scope="warp")


@pytest.mark.parametrize("name", ["sm_75", "sm_80", "sm_90a", "sm_120a"])
def test_sums_become_a_factor_without_leaving_their_lane(name: str) -> None:
    """And back: the layouts differ in which register holds what."""
    x = np.random.default_rng(0).standard_normal((16, 16)).astype(np.float32)
    d, a = Tile("d", (16, 16), "float32", WIDE), Tile("a", (16, 16), "float16", A_FRAG)
    lowered = lower(cast(a, d), target=name, scope="warp")
    half = lowered.run(src=x)
    np.testing.assert_array_equal(half, x.astype(np.float16))
    assert len(lowered.program.steps) == 4
    assert lowered.program.scratch == ()
    np.testing.assert_array_equal(run(cast(d, a), name, src=half), half.astype(np.float32))


def test_four_warps() -> None:
    parts = partition(RECORD, 32, 16, 16, warps=(2, 2))
    x = np.random.default_rng(0).standard_normal((32, 16)).astype(np.float32)
    d, h = Tile("d", (32, 16), "float32", parts.D), Tile("h", (32, 16), "bfloat16", parts.D)
    got = run(cast(h, d), scope="cta", launch=128, src=x)
    np.testing.assert_array_equal(got.astype(np.float32), from_float(x, "bfloat16").astype(np.float32))


def test_a_region_leaves_the_rest() -> None:
    d, h = rows("d", "float32"), rows("h", "float16")
    x, before = some("float32", (32, 16)), some("float16", (32, 16), 1)
    got = run(cast(h[:, 4:8], d[:, 8:12]), src=x, dst=before)
    wanted = before.copy()
    wanted[:, 4:8] = x[:, 8:12].astype(np.float16)
    np.testing.assert_array_equal(got, wanted)


@st.composite
def permuted_slots(draw: Any) -> tuple[TileLayout, TileLayout]:
    """Two layouts of 32 x 16 whose lanes hold the same elements, in registers of different numbers."""
    bits = [draw(st.permutations([1, 2, 4, 8])) for _ in range(2)]
    return tuple(TileLayout(S[(32, 2, 2, 2, 2) : (1 @ laneid, *b)]) for b in bits)  # type: ignore[return-value]


@given(
    layouts=permuted_slots(),
    types=st.sampled_from(list(itertools.product(TYPES, TYPES))),
    seed=st.integers(0, 99),
)
def test_any_order_of_registers(
    layouts: tuple[TileLayout, TileLayout], types: tuple[str, str], seed: int
) -> None:
    src, dst = types
    if declined(src, dst):
        return
    x = some(src, (32, 16), seed)
    tiles = [Tile(n, (32, 16), t, at) for n, t, at in zip("yx", (dst, src), layouts[::-1], strict=True)]
    got = run(cast(*tiles), src=x)
    np.testing.assert_array_equal(
        got.astype(np.float64), from_float(x.astype(np.float64), dst, saturate=True)
    )


def test_bits_of_unknown_types_are_copied_where_whole_registers_hold_the_same() -> None:
    y, x = rows("y", "int4"), rows("x", "int4")
    held = some("int4", (32, 16), most=7)
    np.testing.assert_array_equal(run(cast(y, x), src=held), held)


def lying(name: str, element: str, layout: TileLayout) -> Tile:
    return Tile(name, (2, 16, 16), element, layout)


HALVES = TileLayout(S[(2, 16, 2, 8) : (8, 1 @ laneid, 16 @ laneid, 1)])
ROWS_OF_BOTH = TileLayout(S[(2, 16, 16) : (16 @ laneid, 1 @ laneid, 1)])
TWO_WARPS = TileLayout(S[(2, 16, 2, 8) : (1 @ warpid, 1 @ laneid, 16 @ laneid, 1)])
SHARED = Tile("d", (32, 16), "float32", TileLayout(S[32, 16]), "shared")

DECLINED = {
    "other lanes": (
        cast(lying("h", "float16", ROWS_OF_BOTH), lying("d", "float32", HALVES)),
        r"src \(d\): no register holds in every lane what h\[0\] of dst takes, element",
    ),
    "other extents": (cast(rows("h", "float16")[:, 0:8], rows("d", "float32")), "dst has extents"),
    "memory": (cast(rows("h", "float16"), SHARED), "src is in shared scope"),
    "one tile": (cast(rows("d", "float32"), rows("d", "float32")), "nothing to convert"),
    "one name": (cast(rows("d", "float16"), rows("d", "float32")), "two different tiles of one name"),
    "no such conversion": (
        cast(rows("h", "int4"), rows("d", "float32")),
        "dst is int4; conversions are known of",
    ),
    "two warps": (
        cast(lying("h", "float16", TWO_WARPS), lying("d", "float32", HALVES)),
        "iter 2:1 is on axis warpid, of which a warp has one",
    ),
    "half a register": (
        cast(rows("h", "float16")[:, 1:3], rows("d", "float32")[:, 1:3]),
        "only whole registers",
    ),
}


@pytest.mark.parametrize("case", DECLINED)
def test_what_is_declined(case: str) -> None:
    call, why = DECLINED[case]
    with pytest.raises(DispatchError) as refused:
        lower(call, target="sm_90a", scope="warp")
    assert re.search(why, " ".join(str(refused.value).split())), refused.value


def test_a_target_without_the_conversion_declines() -> None:
    with pytest.raises(DispatchError, match=r"pack.float8_e4m3fn\s+\(float8_e4m3fn\) needs sm_89"):
        lower(cast(rows("h", "float8_e4m3fn"), rows("d", "float32")), target="sm_80", scope="warp")


def test_only_whole_warps() -> None:
    call = cast(rows("h", "float16"), rows("d", "float32"))
    with pytest.raises(DispatchError, match="active lanes on laneid"):
        lower(call, target="sm_80", scope="warp", active={"laneid": (0, 16)})


# --- fill ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("element", [*TYPES, "int4", "uint4", "float8_e8m0fnu", "uint1"])
def test_a_fill_is_everywhere(element: str) -> None:
    tile = Tile("x", (32, 32), element, TileLayout(S[(32, 32) : (1 @ laneid, 1)]))
    got = lower(fill(tile, 1), target="sm_75", scope="warp").run()
    assert got.dtype == dtype(element).numpy
    assert (got.astype(np.float64) == 1).all()


@given(st.floats(width=32))
def test_a_fill_is_rounded(value: float) -> None:
    got = run(fill(rows("x", "float32"), value))
    np.testing.assert_array_equal(got, np.full((32, 16), value, np.float32))


@pytest.mark.parametrize(
    ("element", "value", "why"),
    [
        ("int8", 200, "has no place in int8"),
        ("int8", 1.5, "is no int8"),
        ("float16", 1e9, "has no place in float16"),
        ("float32", "1", "is no number"),
        ("float32", True, "is no number"),
        ("int32", float("nan"), "has no place in int32"),
    ],
)
def test_a_fill_of_what_the_type_lacks(element: str, value: Any, why: str) -> None:
    with pytest.raises(DispatchError, match=why.replace(" ", r"\s+")):
        lower(fill(rows("x", element), value), target="sm_90a", scope="warp")


def test_a_fill_of_a_region_leaves_the_rest() -> None:
    before = some("float16", (32, 16))
    got = run(fill(rows("x", "float16")[:, 2:6], -3), dst=before)
    wanted = before.copy()
    wanted[:, 2:6] = -3
    np.testing.assert_array_equal(got, wanted)


# --- elementwise --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "types",
    [
        ("float32",) * 3,
        ("float16", "float16", "bfloat16"),
        ("int8", "float32", "int32"),
        ("float8_e4m3fn", "int8", "float16"),
    ],
)
@pytest.mark.parametrize(("record", "meaning"), [(MUL["f32"], np.multiply), (ADD["f32"], np.add)])
def test_functions_of_two(types: tuple[str, str, str], record: Any, meaning: Any) -> None:
    dst, *srcs = types
    x, y = some(srcs[0], (32, 16), 1, 4), some(srcs[1], (32, 16), 2, 4)
    call = elementwise(rows("z", dst), record, rows("x", srcs[0]), rows("y", srcs[1]))
    wanted = meaning(x.astype(np.float32), y.astype(np.float32))
    np.testing.assert_array_equal(run(call, src0=x, src1=y).astype(np.float32), wanted)


def test_float64() -> None:
    tiles = [Tile(n, (32, 4), "float64", TileLayout(S[(32, 4) : (1 @ laneid, 1)])) for n in "zabc"]
    a, b, c = (np.random.default_rng(i).integers(-99, 99, (32, 4)) / 8 for i in range(3))
    got = run(elementwise(tiles[0], FMA["f64"], *tiles[1:]), src0=a, src1=b, src2=c)
    np.testing.assert_array_equal(got, a * b + c)


@pytest.mark.parametrize("element", ["float32", "float16", "int8"])
def test_in_place(element: str) -> None:
    tile, x = rows("x", element), some(element, (32, 16))
    got = run(elementwise(tile, ADD["f32"], tile, tile), dst=x)
    np.testing.assert_array_equal(got.astype(np.float32), 2 * x.astype(np.float32))


def test_in_place_of_another_region_is_declined() -> None:
    tile = rows("x", "float32")
    with pytest.raises(DispatchError, match=r"changed\s+in\s+place"):
        lower(
            elementwise(tile[:, 0:8], ADD["f32"], tile[:, 8:16], tile[:, 8:16]), target="sm_80", scope="warp"
        )


WRONG = {
    "no record": (lambda x: x, 1, "must be an instruction record"),
    "too few": (ADD["f32"], 1, "takes 2 operands, got 1"),
    "not a function": (BAR_SYNC, 1, "is no function of registers"),
    "another class": (ADD["f64"], 2, "of class f64, for float64"),
}


@pytest.mark.parametrize("case", WRONG)
def test_no_function(case: str) -> None:
    function, count, why = WRONG[case]
    call = elementwise(rows("y", "float32"), function, *[rows(f"x{i}", "float32") for i in range(count)])
    with pytest.raises(DispatchError, match=why.replace(" ", r"\s+")):
        lower(call, target="sm_90a", scope="warp")


def test_a_function_of_nothing() -> None:
    with pytest.raises(LayoutError, match="a function of nothing"):
        elementwise(rows("y", "float32"), ADD["f32"])


# --- joined and assembled -----------------------------------------------------------------------


def chain(target: str) -> Any:
    """x -> registers -> half -> doubled -> float32 -> y, as one kernel."""
    memory = [Tile(n, (16, 16), "float32", TileLayout(S[16, 16]), "global") for n in "xy"]
    d, a = Tile("d", (16, 16), "float32", WIDE), Tile("a", (16, 16), "float16", A_FRAG)
    one = Tile("one", (16, 16), "float16", A_FRAG)
    steps = [copy(d, memory[0]), cast(a, d), fill(one, 1), elementwise(a, ADD["f32"], a, one), cast(d, a)]
    calls = [*steps, copy(memory[1], d)]
    return sequence([lower(c, target=target, scope="warp") for c in calls])


def test_a_sequence_of_them() -> None:
    x = np.random.default_rng(0).standard_normal((16, 16)).astype(np.float32)
    half = x.astype(np.float16).astype(np.float32)
    np.testing.assert_array_equal(
        chain("sm_80").run(x=x)["y"], (half + 1).astype(np.float16).astype(np.float32)
    )


@ON_GPU_TEXT
@pytest.mark.parametrize("name", TARGETS)
def test_it_assembles_for_every_target(name: str) -> None:
    assert chain(name).cubin.local_bytes == 0


@ON_GPU_TEXT
@pytest.mark.parametrize("dst", TYPES)
def test_a_call_alone_is_a_kernel(dst: str) -> None:
    d, x = (Tile(n, (16, 8), t, D_FRAG) for n, t in (("d", "float32"), ("x", "float32")))
    if 32 // dtype(dst).bits > 2:
        d, x = rows("d", "float32"), rows("x", "float32")
    y = Tile("y", d.shape, dst, d.layout)
    for call in (cast(y, d), fill(y, 1), elementwise(d, ADD["f32"], d, x)):
        lowered = lower(call, target="sm_90a", scope="warp")
        assert lowered.cubin.local_bytes == 0
        assert (
            assemble(compile_cuda(lowered.cuda, lowered.context.target), lowered.context.target).local_bytes
            == 0
        )
