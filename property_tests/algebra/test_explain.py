"""explain: a derivation ends with what the operation returns or raises, and its steps lead there."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from property_tests import strategies
from property_tests.algebra import reference
from property_tests.algebra.derivations import check_explained
from tilelayout import LayoutError, R, S, TileLayout, laneid, m, tx, warpid
from tilelayout.explain.derivation import HOMES, agree

D = TileLayout(S[(2, 8, 4, 2) : (2, 4 @ laneid, 1 @ laneid, 1)])
"""C and D of mma.m16n8k16."""

k, n = sympy.symbols("k n", integer=True, positive=True)


LAYOUTS = strategies.layouts(max_size=48, max_rank=4)
ON_M = strategies.layouts(max_size=48, max_rank=4, among=(m,), strides=strategies.SMALL_STRIDES, moved=False)


@given(LAYOUTS, st.data())
def test_apply_and_owners(layout: TileLayout, data: st.DataObject) -> None:
    shape = data.draw(strategies.factorizations(reference.size(layout)))
    coordinate = [data.draw(st.integers(-1 if n == 1 else 0, n - (n > 1))) for n in shape]
    for operation in ("apply", "owners"):
        check_explained(layout, operation, *coordinate, shape=shape)
        check_explained(layout, operation, data.draw(st.integers(-1, reference.size(layout))))
        check_explained(layout, operation, *[data.draw(st.integers(0, it.extent)) for it in layout.shard])


@given(LAYOUTS)
def test_canonicalize(layout: TileLayout) -> None:
    assert check_explained(layout, "canonicalize").error is None


@given(
    strategies.layouts(max_size=24, replicated=False, moved=False),
    strategies.replicas(max_copies=64, max_rank=5),
)
def test_canonicalize_of_replicas(layout: TileLayout, replica: tuple) -> None:
    check_explained(TileLayout.from_iters(layout.shard, replica), "canonicalize")


@pytest.mark.parametrize("scope", ["cta", "warpgroup", "warp", "grid"])
def test_canonicalize_with_a_scope(scope: str) -> None:
    check_explained(TileLayout(S[(128, 2) : (1 @ tx, 1)]), "canonicalize", scope)
    check_explained(TileLayout(S[(4, 32) : (1 @ warpid, 1 @ laneid)] + R[2:0]), "canonicalize", scope=scope)


@given(LAYOUTS, st.data())
def test_group(layout: TileLayout, data: st.DataObject) -> None:
    check_explained(layout, "group", data.draw(strategies.factorizations(reference.size(layout))))
    fitting = data.draw(strategies.fitting_shapes([it.extent for it in layout.shard]))
    assert check_explained(layout, "group", fitting).error is None
    check_explained(layout, "group", data.draw(st.lists(st.integers(0, 8), max_size=3)))


@given(LAYOUTS, st.data())
def test_slice(layout: TileLayout, data: st.DataObject) -> None:
    extents = [it.extent for it in layout.shard]
    shape = data.draw(
        st.one_of(strategies.fitting_shapes(extents), strategies.factorizations(reference.size(layout)))
    )
    region = data.draw(strategies.regions(shape))
    check_explained(layout, "slice", shape, region)
    ends = st.integers(0, 12)
    check_explained(layout, "slice", shape, [(data.draw(ends), data.draw(ends)) for _ in shape])
    stepped = [(*bounds, data.draw(st.integers(0, 4))) for bounds in region]
    check_explained(layout, "slice", shape, stepped)
    check_explained(layout, "slice", shape, region[:-1])


SMALL = strategies.layouts(max_size=12, max_rank=3)


@given(SMALL, SMALL, st.data())
def test_tile(inner: TileLayout, outer: TileLayout, data: st.DataObject) -> None:
    shapes = [
        data.draw(strategies.fitting_shapes([it.extent for it in part.shard], 2)) for part in (outer, inner)
    ]
    assert check_explained(inner, "tile", outer, *shapes).error is None
    anyhow = [data.draw(strategies.factorizations(reference.size(part))) for part in (outer, inner)]
    check_explained(inner, "tile", outer, *anyhow)


@given(SMALL, st.data())
def test_tile_to(layout: TileLayout, data: st.DataObject) -> None:
    current = data.draw(strategies.fitting_shapes([it.extent for it in layout.shard], 2))
    target = tuple(
        c * data.draw(st.integers(1, 3)) + data.draw(st.sampled_from((0, 0, 0, 1))) for c in current
    )
    check_explained(layout, "tile_to", target, current)


@given(LAYOUTS, st.data())
def test_permutations(layout: TileLayout, data: st.DataObject) -> None:
    rank = len(layout.shard)
    perm = data.draw(st.permutations(range(rank)))
    assert check_explained(layout, "permute_dims", perm).error is None
    check_explained(layout, "permute_dims", perm[:-1])
    seps = sorted([0, *data.draw(st.lists(st.integers(0, rank), max_size=2)), rank])
    groups = data.draw(st.permutations(range(len(seps) - 1)))
    assert check_explained(layout, "permute_by_groups", seps, groups).error is None
    check_explained(layout, "permute_by_groups", seps[:-1], groups)


@given(LAYOUTS, st.integers(0, 8))
def test_pack_and_unpack(layout: TileLayout, num: int) -> None:
    check_explained(layout, "unpack", num)
    check_explained(layout, "pack", num)
    if num:
        assert check_explained(layout.unpack(num), "pack", num).error is None


@given(LAYOUTS, ON_M, st.integers(-2, 9))
def test_compose(a: TileLayout, b: TileLayout, begin: int) -> None:
    check_explained(a, "compose", b)
    check_explained(a, "compose", TileLayout.from_iters(b.shard, (), {m: begin}))


@given(strategies.shards(max_size=96, among=(m, laneid), strides=strategies.STRIDES), st.data())
def test_compose_with_what_reads_it_in_part(shard: tuple, data: st.DataObject) -> None:
    """Right sides within the size of the left one, so that few are refused at the gate."""
    a = TileLayout.from_iters(shard)
    size = reference.size(a)
    b = data.draw(
        strategies.layouts(
            max_size=16, among=(m,), strides=(1, 2, 3, 4, 6, 8, -1, -4), replicated=False, moved=False
        )
    )
    least = min((it.extent - 1) * min(it.stride, 0) for it in b.shard) if b.shard else 0
    check_explained(
        a, "compose", TileLayout.from_iters(b.shard, (), {m: data.draw(st.integers(min(-least, size), size))})
    )


@given(ON_M, st.integers(0, 200), st.integers(-3, 3))
def test_complement(layout: TileLayout, cosize: int, begin: int) -> None:
    check_explained(layout, "complement", cosize)
    moved = TileLayout.from_iters(layout.shard, (), {m: begin})
    check_explained(moved, "complement", cosize)


@st.composite
def bijections(draw: st.DrawFn) -> TileLayout:
    """Compact layouts with their iters in any order, some of them walked backwards."""
    iters, stride, begin = [], 1, 0
    for extent in draw(strategies.factorizations(draw(st.integers(1, 96)))):
        turned = draw(st.booleans())
        iters.append((extent, -stride if turned else stride, m))
        begin += (extent - 1) * stride if turned else 0
        stride *= extent
    return TileLayout.from_iters(draw(st.permutations(iters)), (), {m: begin})


@given(bijections(), ON_M, LAYOUTS)
def test_inverse(bijection: TileLayout, layout: TileLayout, anyhow: TileLayout) -> None:
    assert check_explained(bijection, "inverse").error is None
    assert check_explained(bijection, "complement", 3 * reference.size(bijection)).error is None
    check_explained(layout, "inverse")
    check_explained(anyhow, "inverse")
    check_explained(anyhow, "complement", 64)


SYMBOLIC = [
    (TileLayout(S[(n, 8) : (8, 1)]), "canonicalize", ()),
    (TileLayout(S[(n, 8) : (k, 1)] + R[(2, 3) : (k, 1)] + k), "canonicalize", ()),
    (TileLayout(S[8 * n : 1]), "group", ((n, 8),)),
    (TileLayout(S[8 * n : 1]), "group", ((8, n),)),
    (TileLayout(S[8 * n : 1]), "group", ((8, k),)),
    (TileLayout(S[(n, 8) : (8, 1)]), "slice", ((n, 8), [(0, n), (2, 6)])),
    (TileLayout(S[(4, 8) : (8, 1)]), "slice", ((4, 8), [(0, 4), (k, k + 2)])),
    (TileLayout(S[64]), "slice", ((64,), [(8 * k, 8 * k + 8)])),
    (TileLayout(S[(n, 4) : (4, 1)]), "tile", (TileLayout(S[(2, k) : (1 @ warpid, 1)]), (2, k), (n, 4))),
    (TileLayout(S[(2, 4) : (k - n, 1)]), "tile_to", ((4, 4), (2, 4))),
    (TileLayout(S[n, 4]), "tile_to", ((n * k, 4), (n, 4))),
    (TileLayout(S[n, 4]), "tile_to", ((k, 4), (n, 4))),
    (TileLayout(S[n, 4]), "permute_dims", ((1, 0),)),
    (TileLayout(S[n, 4] + k), "unpack", (2,)),
    (TileLayout(S[n, 4] + 4 * k), "pack", (2,)),
    (TileLayout(S[n, 4]), "pack", (3,)),
    (TileLayout(S[n, 4]), "compose", (TileLayout(S[2:1]),)),
    (TileLayout(S[8 * n : 3]), "compose", (TileLayout(S[n:8]),)),
    (TileLayout(S[4:n]), "complement", (8 * n,)),
    (TileLayout(S[4:n]), "complement", (n,)),
    (TileLayout(S[(2, 4) : (k, n)]), "complement", (n,)),
    (TileLayout(S[(4, n) : (n, 1)]), "inverse", ()),
    (TileLayout(S[(4, n) : (1, 4)]), "inverse", ()),
    (TileLayout(S[(4, n) : (2, 4)]), "inverse", ()),
]


@pytest.mark.parametrize(("layout", "operation", "arguments"), SYMBOLIC)
def test_symbols(layout: TileLayout, operation: str, arguments: tuple) -> None:
    check_explained(layout, operation, *arguments)


@pytest.mark.parametrize("operation", ["apply", "owners"])
def test_symbolic_coordinates(operation: str) -> None:
    row = sympy.Symbol("row", integer=True, nonnegative=True)
    found = check_explained(D, operation, row, 3, shape=(16, 8))
    assert "8*row" in str(found) or "row*8" in str(found)
    check_explained(TileLayout(S[(n, 8) : (k, 1 @ laneid)] + R[n:1] + k), "apply", row, 3, shape=(n, 8))
    check_explained(TileLayout(S[(n, 8) : (k, 1 @ laneid)] + k), operation, row, 3)


def test_what_is_of_the_wrong_kind_is_refused_as_by_the_operation() -> None:
    for operation, arguments in [
        ("tile", (None, (2,), (128,))), ("tile", (S[2], (2,), (128,))), ("compose", (3,)), ("compose", (S[2],)),
        ("group", ("16",)), ("group", ((2.0, 64),)), ("slice", ((16, 8), 3)), ("slice", ((16, 8), [1, 2])),
        ("slice", ((16, 8), [range(2), range(3)])), ("slice", ((16, 8), [(0, 1.5), (0, 8)])), ("pack", (True,)),
        ("slice", ((16, 8), [("a", "b"), (0, 8)])), ("unpack", ("2",)), ("permute_dims", (3,)),
        ("permute_by_groups", ((0, 9), (0,))), ("complement", (-4,)), ("apply", (1.5,)), ("apply", (1, 2, 3)),
        ("tile_to", ((16,), (16, 8))), ("tile_to", ((0, 8), (16, 8))), ("apply", ()),
    ]:  # fmt: skip
        assert check_explained(D, operation, *arguments).error is not None, operation
    with pytest.raises(TypeError):
        D.explain("pack")


def test_an_unknown_operation_names_the_nearest() -> None:
    with pytest.raises(
        LayoutError, match=r"explain: no derivation of 'canonicalise', did you mean 'canonicalize'\?"
    ):
        D.explain("canonicalise")
    with pytest.raises(LayoutError, match="known: apply, owners"):
        D.explain("zzzz")
    with pytest.raises(LayoutError, match="did you mean 'slice'"):
        D.explain("slices", (16, 8))
    with pytest.raises(LayoutError, match=r"no derivation of \["):
        D.explain(["apply"])
    with pytest.raises(LayoutError, match="no derivation of None"):
        D.explain(None)


def test_an_array_is_refused() -> None:
    with pytest.raises(LayoutError, match=r"explain: apply of an array .* explain one coordinate"):
        D.explain("apply", np.arange(4))
    check_explained(D, "apply", np.int64(4))


def test_every_operation_is_a_method_and_has_steps() -> None:
    for operation in HOMES:
        assert callable(getattr(TileLayout, operation))
        assert f"{operation}" in (TileLayout.explain.__doc__ or "")


def test_steps_that_lead_elsewhere_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check itself: an operation that would return something else than its parts give."""
    real = TileLayout.unpack
    monkeypatch.setattr(TileLayout, "unpack", lambda self, num: real(self, num + 1))
    with pytest.raises(LayoutError, match="a mistake in the derivation of"):
        D.explain("unpack", 2)
    monkeypatch.setattr(TileLayout, "pack", lambda self, num: self)
    with pytest.raises(LayoutError, match="a mistake in the derivation of"):
        D.explain("pack", 4)


def test_agreement() -> None:
    assert agree({m: k * (k + 1)}, {m: k**2 + k})
    assert agree((D, (0, 1)), (D, (0, 1)))
    assert not agree((D, (0, 1)), (D, (0, 2)))
    assert not agree({m: 1}, {laneid: 1})
    assert not agree({m: k}, {m: k + 1})


def test_the_value() -> None:
    found = D.explain("apply", 9, 5, shape=(16, 8))
    assert found.result == {"laneid": 6, "m": 3}
    assert repr(found) == str(found)
    assert found._repr_mimebundle_() == {"text/plain": str(found)}
    assert pickle.loads(pickle.dumps(found)) == found
    assert found.steps[0].lines == ("9 * 8 + 5 = 77",)
    with pytest.raises(AttributeError):
        found.result = None


# --- what is said -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layout", "operation", "arguments", "lines"),
    [
        (TileLayout(S[(2, 3, 4) : (12, 4, 1)]), "canonicalize", (),
         ["(2:12)(3:4): 12 = 3 * 4, so they merge into 6:4"]),
        (TileLayout(S[(2, 1, 4) : (8 @ laneid, 7, 2 @ laneid)]), "canonicalize", (),
         ["iter 1, 1:7", "(2 : 8 @ laneid)(4 : 2 @ laneid): 8 = 4 * 2, so they merge into 8 : 2 @ laneid"]),
        (TileLayout(S[4 : 0 @ laneid]), "canonicalize", (), ["a stride of 0 moves along no axis and is put on m"]),
        (TileLayout(S[4] + R[(2, 3) : (-1, 2)]), "canonicalize", (),
         ["2:-1 is walked from its other end, 2:1: the offset becomes -1", "2:1 absorbs 3:2: 6:1"]),
        (TileLayout(S[8:1]), "group", ((2, 4),),
         ["iter 0, 8:1, into S[(2, 4):(4, 1)]: 8 = 2 * 4, a stride is 1 times the extents inside it"]),
        (TileLayout(S[3, 2]), "group", ((2, 3),), ["(3:2)(2:1): 2 = 2 * 1, so they merge into 6:1"]),
        (TileLayout(S[(2, 6) : (7, 1)]), "group", ((3, 4),),
         ["boundaries of the shape, from the inside: 4", "boundaries of the iters S[(2, 6):(7, 1)]: 6"]),
        (D, "slice", ((16, 8), [(8, 16), (2, 4)]),
         ["8 divides both: 8 : 4 @ laneid stays whole; of the iters outside it begin 1, length 1",
          "so the range is S[2:1], and begins at 1 @ laneid"]),
        (TileLayout(S[(2, 8) : (9, 1)]), "slice", ((16,), [(6, 10)]),
         ["6 + 4 > 8: the digit of 8:1 wraps, at index 8", "at index 6, 7, 8, 9: 6, 7, 9, 10",
          "a step moves by 1, the one over the wrap by 2"]),
        (D, "tile_to", ((32, 16), (16, 8)),
         ["dimension 0: 32 / 16 = 2", "laneid: 1 + 28 + 3 = 32", "2:2 becomes 2:8 (2 * 4 = 8)",
          "dimension 1 of extent 16: S[(2, 4, 2) : (4, 1 @ laneid, 1)]"]),
        (D, "tile_to", ((32, 17), (16, 8)), ["dimension 1: 8 does not divide 17"]),
        (D, "pack", (2,), ["2:2 becomes 2:1 (2 / 2 = 1)", "8 : 4 @ laneid stays"]),
        (D, "pack", (4,), ["fused: S[(2, 2) : (1 @ laneid, 1)], not the neighbors S[4:1]"]),
        (TileLayout(S[(2, 2) : (3, 1)]), "pack", (2,), ["2:3: 2 does not divide 3"]),
        (TileLayout(S[4] + 3), "pack", (2,), ["2 does not divide 3"]),
        (TileLayout(S[4] + 3), "unpack", (2,), ["4:1 becomes 4:2 (1 * 2 = 2)", "3 * 2 = 6"]),
        (TileLayout(S[4:2]), "complement", (24,),
         ["4:2 begins at 2: 2 / 1 = 2, so 2:1 is missing; then [0, 8)",
          "what remains of 24: 24 / 8 = 3, so 3:8 is missing"]),
        (TileLayout(S[(2, 3) : (3, 2)]), "complement", (24,),
         ["2:3 comes next, but 6 does not divide its stride 3: the strides don't nest"]),
        (TileLayout(S[(2, 4) : (1, 2)]), "inverse", (), ["4:2: [0, 2) becomes [0, 8)"]),
        (TileLayout(S[4:2]), "inverse", (), ["4:2: the stride should be 1"]),
        (TileLayout(S[(2, 6) : (7, 1)]), "compose", (TileLayout(S[(2, 3) : (3, 2)]),),
         ["digit 1: 0 + 3 + 4 = 7 >= 6: it carries", "A puts these at 0, 2, 4, 3, 5, 8"]),
        (TileLayout(S[(2, 20) : (4, 16)]), "compose", (TileLayout(S[(5, 4) : (4, 1)]),),
         ["20:1 goes to S[20:16]", "digit 1: 0 + 19 = 19 < 20"]),
        (TileLayout(S[2, 3]), "permute_dims", ((1, 0),), ["iter 0 is iter 1: 3:1"]),
        (TileLayout(S[2, 3, 4]), "permute_by_groups", ((0, 1, 3), (1, 0)), ["group 0 is group 1: S[(3, 4):(4, 1)]"]),
        (TileLayout(S[8:1] + R[2 : 4 @ warpid] + 5), "apply", (3,),
         ["m = 3 + 5 = 8", "{m: 8, warpid: 0}", "{m: 8, warpid: 4}"]),
        (D, "apply", (17, 3, ), ["but there are 4 iters"]),
    ],
)  # fmt: skip
def test_the_lines_that_a_lecturer_would_write(
    layout: TileLayout, operation: str, arguments: tuple, lines: list[str]
) -> None:
    text = str(check_explained(layout, operation, *arguments))
    assert [line for line in lines if f"     {line}\n" not in text and f". {line}\n" not in text] == [], text


def test_a_coordinate_outside_says_which() -> None:
    found = check_explained(D, "apply", 17, 3, shape=(16, 8))
    assert "17 of dimension 0 is not in [0, 16)" in found.steps[0].lines
