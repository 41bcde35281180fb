"""explain on swizzled layouts: a derivation ends with what the operation returns or raises, and leads there."""

from __future__ import annotations

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from property_tests import strategies
from property_tests.algebra import swizzling
from property_tests.algebra.derivations import check_explained
from tilelayout import LayoutError, R, S, Swizzle, SwizzledLayout, TileLayout, XorMap, laneid, m, warpid
from tilelayout.explain.derivation import SWIZZLED
from tilelayout.expr import Var

TILE = TileLayout(S[8, 64]).swizzle(3, 3, 3)
LAYOUTS = swizzling.swizzled_layouts(max_size=48)


@given(LAYOUTS, st.data())
def test_apply_and_owners(layout: SwizzledLayout, data: st.DataObject) -> None:
    shape = data.draw(strategies.factorizations(swizzling.size(layout)))
    coordinate = [data.draw(st.integers(-1 if n == 1 else 0, n - (n > 1))) for n in shape]
    for operation in ("apply", "owners"):
        check_explained(layout, operation, *coordinate, shape=shape)
        check_explained(layout, operation, data.draw(st.integers(-1, swizzling.size(layout))))


@given(LAYOUTS)
def test_canonicalize(layout: SwizzledLayout) -> None:
    assert check_explained(layout, "canonicalize").error is None


@given(LAYOUTS, st.data())
def test_group_and_slice(layout: SwizzledLayout, data: st.DataObject) -> None:
    anyhow = data.draw(strategies.factorizations(swizzling.size(layout)))
    fitting = data.draw(strategies.fitting_shapes([it.extent for it in layout.layout.shard]))
    check_explained(layout, "group", anyhow)
    assert check_explained(layout, "group", fitting).error is None
    for shape in (anyhow, fitting):
        check_explained(layout, "slice", shape, data.draw(strategies.regions(shape)))


@given(swizzling.swizzled_layouts(max_size=16), strategies.layouts(max_size=8, max_rank=2), st.data())
def test_tile_and_tile_to(layout: SwizzledLayout, outer: TileLayout, data: st.DataObject) -> None:
    iters = [part.shard for part in (outer, layout.layout)]
    shapes = [data.draw(strategies.fitting_shapes([it.extent for it in part], 2)) for part in iters]
    check_explained(layout, "tile", outer, *shapes)
    target = tuple(
        n * data.draw(st.sampled_from((1, 2, 8))) + data.draw(st.sampled_from((0, 0, 1))) for n in shapes[1]
    )
    check_explained(layout, "tile_to", target, shapes[1])


@given(LAYOUTS, st.data())
def test_permutations(layout: SwizzledLayout, data: st.DataObject) -> None:
    rank = len(layout.layout.shard)
    perm = data.draw(st.permutations(range(rank)))
    assert check_explained(layout, "permute_dims", perm).error is None
    assert check_explained(layout, "permute_by_groups", range(rank + 1), perm).error is None
    check_explained(layout, "permute_dims", perm[:-1])


@given(LAYOUTS, st.integers(0, 8))
def test_pack_and_unpack(layout: SwizzledLayout, num: int) -> None:
    for operation in ("pack", "unpack"):
        check_explained(layout, operation, num)


@given(
    LAYOUTS, strategies.layouts(max_size=16, among=(m,), strides=(1, 2, 4, 8), replicated=False, moved=False)
)
def test_compose(layout: SwizzledLayout, other: TileLayout) -> None:
    check_explained(layout, "compose", other)


@pytest.mark.parametrize(
    ("layout", "operation", "arguments", "lines"),
    [
        (TILE, "apply", (137,), ["137 & 448 = 128, and 128 >> 3 = 16", "m = 137 ^ 16 = 153"]),
        (SwizzledLayout(S[64], Swizzle(1, 4, -1)), "apply", (16,), ["x ^ ((x & 0b10000) << 1) with x = 16 = 0b10000"]),
        (SwizzledLayout(S[8], XorMap((1, 3, 6))), "apply", (3,), ["XorMap((1, 3, 6))(3) = 2"]),
        (SwizzledLayout(S[8 : 1 @ laneid], Swizzle(3, 3, 3)), "apply", (3,),
         ["not mentioned, so it is 0, and 0 stays"]),
        (SwizzledLayout(S[8], Swizzle(0, 3, 3)), "apply", (3,), ["it moves nothing: m = 3"]),
        (SwizzledLayout(S[64] + R[2:64], Swizzle(3, 3, 3)), "owners", (9,), ["{m: 73}", "m = 73 ^ 8 = 65"]),
        (SwizzledLayout(S[10:2], Swizzle(3, 4, 3)), "canonicalize", (), ["it moves none of them"]),  # C26
        (SwizzledLayout(S[4, 64], Swizzle(3, 3, 3)), "canonicalize", (), ["Swizzle(2, 3, 3) does the same"]),
        (TILE, "canonicalize", (), ["no: two digits of the index meet in one bit"]),
        (TILE, "tile_to", ((16, 64), (8, 64)), ["512 = 1 * 512", "so each copy is swizzled like the first"]),
        (SwizzledLayout(S[4, 64], Swizzle(3, 3, 3)), "tile_to", ((8, 64), (4, 64)),
         ["256 is no multiple of 512", "a copy 256 away is swizzled otherwise", "256 = 1 * 256"]),
        (SwizzledLayout(S[64] + 64, Swizzle(3, 3, 3)), "tile_to", ((2, 64), (1, 64)), ["64 is no multiple of 128"]),
        (SwizzledLayout(S[4:16] + R[(2, 2) : (4, 2)], Swizzle(1, 2, 3)), "tile_to", ((8,), (4,)),
         ["none: it only moves an element's copies among one another"]),
        (TILE, "pack", (2,), ["2 = 2**1: its bits move down by 1, which is Swizzle(3, 2, 3)"]),
        (TILE, "pack", (16,), ["its bits would move down by 4, and it doesn't leave so many low bits alone"]),
        (TILE, "unpack", (3,), ["3 is no power of two: it can't unless it moves nothing here"]),
    ],
)  # fmt: skip
def test_the_lines_that_a_lecturer_would_write(
    layout: SwizzledLayout, operation: str, arguments: tuple, lines: list[str]
) -> None:
    text = str(check_explained(layout, operation, *arguments))
    assert [line for line in lines if f"     {line}\n" not in text] == [], text


def test_symbols() -> None:
    n = sympy.Symbol("n", integer=True, positive=True)
    row = sympy.Symbol("row", integer=True, nonnegative=True)
    symbolic = SwizzledLayout(S[n, 64], Swizzle(3, 3, 3))
    check_explained(symbolic, "apply", row, 3)
    check_explained(TILE, "apply", row, 3, shape=(8, 64))
    assert "(column ^ (8*row))" in str(TILE.explain("apply", Var("row", 0, 7), Var("column", 0, 63)))
    for operation, arguments in [
        ("canonicalize", ()), ("tile_to", ((2 * n, 64), (n, 64))), ("pack", (2,)), ("pack", (n,)), ("unpack", (n,)),
        ("slice", ((n, 64), [(0, n), (8, 16)])), ("group", ((n, 8, 8),)),
    ]:  # fmt: skip
        check_explained(symbolic, operation, *arguments)


def test_operations_and_operands_that_are_refused() -> None:
    for operation in SWIZZLED:
        assert callable(getattr(SwizzledLayout, operation))
    with pytest.raises(LayoutError, match="no derivation of 'inverse'"):
        TILE.explain("inverse")
    with pytest.raises(LayoutError, match="explain one coordinate"):
        TILE.explain("apply", np.arange(4))
    for operation, arguments in [
        ("tile", (TILE, (2,), (512,))), ("tile", (None, (2,), (512,))), ("group", ("16",)), ("slice", ((8, 64), 3)),
        ("pack", (True,)), ("compose", (TILE,)), ("tile_to", ((15, 64), (8, 64))), ("tile_to", ((16,), (8, 64))),
    ]:  # fmt: skip
        assert check_explained(TILE, operation, *arguments).error is not None, operation
    lanes = SwizzledLayout(S[(8, 64) : (1 @ warpid, 1)], Swizzle(1, 3, 3))
    assert check_explained(lanes, "tile", TileLayout(S[2 : 1 @ warpid]), (2, 1), (8, 64)).error is None


def test_what_is_assumed_is_said_and_used() -> None:
    n = sympy.Symbol("n", integer=True, positive=True)
    plain = TileLayout(S[n, 64])
    for layout in (plain, plain.swizzle(3, 3, 3)):
        found = check_explained(layout, "slice", (n, 64), [(0, 16), (0, 64)], assuming=n >= 16)
        assert found.error is None
        assert found.steps[0].lines == ("n >= 16",)
        assert "so the range is S[16:64]" in str(found)
        assert check_explained(found.result, "slice", (16, 64), [(0, 8), (0, 64)]).error is None
        assert check_explained(layout, "slice", (n, 64), [(0, 16), (0, 64)]).error is not None
        assert check_explained(layout, "slice", (n, 64), [(0, 16), (0, 64)], assuming=3).error is not None
