"""Swizzled layouts with symbols: `assuming=`, what is known of a layout that rests on conditions, and `subs`.

A result under conditions must be right for every value of the symbols that satisfies them, so each is compared, with
such values put in, with the operation on the numbers themselves.
"""

from __future__ import annotations

import pickle
from typing import Any

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st
from sympy import Eq, Mod

from property_tests.algebra.test_symbolic_operations import symbolic_layouts
from tilelayout import LayoutError, S, Swizzle, SwizzledLayout, TileLayout, m

N, K = sympy.symbols("n k", integer=True, positive=True)
Z = sympy.Symbol("z", integer=True, nonnegative=True)
F = Swizzle(3, 3, 3)
BLOCKS = SwizzledLayout(S[N, 8, 64], F)
ROWS = SwizzledLayout(S[N, 64], F)
MOVED = SwizzledLayout(S[8, 64] + Z, F)
WHOLE = Eq(Mod(K, N), 0)


def put(layout: Any, **values: int) -> Any:
    """With values for those of the symbols that occur."""
    there = {"n": N, "k": K, "z": Z}
    names = {s.name for part in (layout.layout if isinstance(layout, SwizzledLayout) else layout).shard
             for x in part[:2] for s in getattr(x, "free_symbols", ())}  # fmt: skip
    names |= {s.name for c in layout.conditions for s in c.free_symbols}
    return layout.subs({there[name]: v for name, v in values.items() if name in names})


def test_tile_to_what_is_assumed_to_divide() -> None:
    with pytest.raises(LayoutError, match=r"tile_to: .*assuming=Eq\(Mod\(k, n\), 0\)"):
        BLOCKS.tile_to((K, 8, 64), (N, 8, 64))
    found = BLOCKS.tile_to((K, 8, 64), (N, 8, 64), assuming=WHOLE)
    assert found.conditions == (WHOLE,)
    for n in range(1, 4):
        for times in range(1, 4):
            wanted = SwizzledLayout(S[n, 8, 64], F).tile_to((n * times, 8, 64), (n, 8, 64))
            assert put(found, n=n, k=n * times).equivalent(wanted)
    with pytest.raises(LayoutError, match=r"n = 2, k = 3 violates Eq\(Mod\(k, n\), 0\)"):
        found.subs({N: 2, K: 3})


def test_tile_with_a_value_for_a_symbol() -> None:
    outer = TileLayout(S[2, 1])
    with pytest.raises(LayoutError, match="n, which is symbolic"):
        ROWS.tile(outer, (2, 1), (N, 64))
    found = ROWS.tile(outer, (2, 1), (N, 64), assuming=Eq(N, 8))
    assert found == SwizzledLayout(S[8, 64], F).tile(outer, (2, 1), (8, 64))
    assert found.conditions == (Eq(N, 8),)


def test_an_outer_layout_s_conditions_are_known() -> None:
    outer = TileLayout(S[K]).group((K // N, N), assuming=WHOLE)[0].slice((K // N, N), [(0, 1), (0, N)])
    tile = SwizzledLayout(S[8, 64], F)
    found = tile.tile(outer, (N, 1), (8, 64))
    assert found.conditions == outer.conditions != ()
    assert put(found, n=3, k=6).equivalent(tile.tile(TileLayout(S[3]), (3, 1), (8, 64)))


def test_equivalent_under_conditions() -> None:
    other = SwizzledLayout(S[K, 8, 64], F)
    with pytest.raises(LayoutError, match="equivalent"):
        BLOCKS.equivalent(other)
    assert BLOCKS.equivalent(other, assuming=Eq(N, K))
    assert BLOCKS.equivalent(other, assuming=Eq(N, K)).conditions == (Eq(N, K),)
    one = SwizzledLayout(S[8, 64], F)
    assert BLOCKS.equivalent(one, assuming=Eq(N, 1))
    assert BLOCKS.equivalent(one, assuming=Eq(N, 16)).witness == 512
    assert one.equivalent(BLOCKS, (8, 64), assuming=Eq(N, 1))
    # a tile layout asks a swizzled one, whose symbols are given values too
    assert TileLayout(S[64]).equivalent(ROWS, assuming=Eq(N, 1))
    assert TileLayout(S[64]).equivalent(ROWS, assuming=Eq(N, 2)).witness == 64


def test_what_a_layout_rests_on_is_known() -> None:
    """A layout with conditions is asked as if they were passed."""
    only = MOVED.slice((8, 64), [(0, 1), (0, 64)], assuming=Eq(Mod(Z, 512), 0))
    start, rest = only.split_offset()
    assert (start, rest) == (Z, SwizzledLayout(S[(1, 64) : (0, 1)], F))
    assert rest.conditions == only.conditions
    with pytest.raises(LayoutError, match="not known to be a multiple"):
        MOVED.split_offset()


QUESTIONS = ("span", "is_injective", "is_surjective", "is_bijective", "canonicalize", "as_tile_layout")


@pytest.mark.parametrize("name", QUESTIONS)
@pytest.mark.parametrize("n", [1, 2, 8, 9])
def test_every_question_takes_what_is_assumed(name: str, n: int) -> None:
    number = SwizzledLayout(S[n, 64], F)
    assert said(getattr(ROWS, name), assuming=Eq(N, n)) == said(getattr(number, name))


def said(question: Any, **options: Any) -> Any:
    """What is answered, or the rule by which it is refused."""
    try:
        return question(**options)
    except LayoutError as refused:
        return refused.rule


def test_evaluation_takes_what_is_assumed() -> None:
    found = BLOCKS.apply(K, 2, 3, shape=(N, 8, 64), assuming=K < N)[m]
    for k in range(5):
        assert found.subs({K: k}) == F(512 * k + 128 + 3)
    assert BLOCKS.owners(N - 1, 2, 3, shape=(N, 8, 64), assuming=Eq(N, 8)) == ({m: F(7 * 512 + 128 + 3)},)


# --- subs -----------------------------------------------------------------------------------------------


def test_subs_and_what_it_refuses() -> None:
    assert BLOCKS.subs({N: 4}) == BLOCKS.subs({"n": 4}) == SwizzledLayout(S[4, 8, 64], F)
    assert MOVED.subs({Z: 64}).canonicalize() == SwizzledLayout(S[8, 64] + 64, F).canonicalize()
    for values, word in (
        ({N: 0}, "n = 0 is not positive"), ({"k": 1}, "no symbol of the layout, known: n"), (3, "must be a mapping"),
    ):  # fmt: skip
        with pytest.raises(LayoutError, match=f"subs: .*{word}"):
            BLOCKS.subs(values)


def test_conditions_that_are_left_stay() -> None:
    found = BLOCKS.tile_to((K, 8, 64), (N, 8, 64), assuming=WHOLE)
    some = found.subs({N: 4})
    assert some.conditions == (Eq(Mod(K, 4), 0),)
    assert some.subs({K: 12}).conditions == ()
    again = pickle.loads(pickle.dumps(some))
    assert (again, again.conditions) == (some, some.conditions)


@given(symbolic_layouts(), st.data(), st.sampled_from([F, Swizzle(1, 0, 1), Swizzle(2, 1, -2)]))
def test_subs_is_that_of_the_tile_layout(layout: Any, data: st.DataObject, swizzle: Swizzle) -> None:
    symbols = {
        s
        for x in (*layout.offset.values(), *[y for it in (*layout.shard, *layout.replica) for y in it[:2]])
        for s in getattr(x, "free_symbols", ())
    }
    values = {s: data.draw(st.integers(1, 4)) for s in sorted(symbols, key=str)}
    found = SwizzledLayout(layout, swizzle).subs(values)
    assert found == SwizzledLayout(layout.subs(values), swizzle)


@pytest.mark.parametrize(
    ("layout", "call"),
    [
        (BLOCKS, ("tile_to", (K, 8, 64), (N, 8, 64), WHOLE)),
        (ROWS, ("tile", TileLayout(S[2, 1]), (2, 1), (N, 64), Eq(N, 8))),
        (ROWS, ("canonicalize", Eq(N, 1))),
        (TileLayout(S[N, 64]), ("canonicalize", Eq(N, 1))),
        (TileLayout(S[N, 64]), ("slice", (N, 64), [(0, 8), (0, 32)], Eq(N, 16))),
    ],
    ids=str,
)
def test_derivations_use_what_is_assumed(layout: Any, call: tuple[Any, ...]) -> None:
    """Values of symbols too: the steps end in what the operation returns, else `explain` refuses itself."""
    name, *arguments, fact = call
    told = layout.explain(name, *arguments, assuming=fact)
    assert told.result == getattr(layout, name)(*arguments, assuming=fact)
    assert told.steps[0].title == "what is assumed"
    assert len(told.steps) > 1
