"""`layout.conditions`: what is accepted as one, what is known by it, how it is kept, and numbers for symbols."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import And, Eq, Mod

from property_tests.algebra import reference
from property_tests.algebra.test_assuming import GRID, facts, free, holding, layout_of, put_in, some
from property_tests.algebra.test_symbolic_operations import symbolic_layouts
from property_tests.algebra.test_symbols import K, N, Q, at, number
from tilelayout import LayoutError, R, S, TileLayout, laneid, m

M = sympy.Symbol("m", integer=True, positive=True)


def test_any_iterable_of_conditions_is_taken() -> None:
    expected = TileLayout(S[N]).group((N // 16, 16), assuming=Eq(Mod(N, 16), 0))[0]
    for given_ in (
        [Eq(Mod(N, 16), 0)],
        {Eq(Mod(N, 16), 0)},
        (x for x in [Eq(Mod(N, 16), 0)]),
        iter([Eq(Mod(N, 16), 0)]),
    ):
        found = TileLayout(S[N]).group((N // 16, 16), assuming=given_)[0]
        assert (found, found.conditions) == (expected, expected.conditions)


def test_a_divisor_may_be_a_number_by_another_condition() -> None:
    z = sympy.Symbol("z", integer=True)
    for both in ([Eq(Mod(N, z), 0), Eq(z, 16)], [Eq(z, 16), Eq(Mod(N, z), 0)]):
        assert (
            TileLayout(S[N]).group((N // 16, 16), assuming=both)[0]
            == TileLayout(S[N]).group((N // 16, 16), assuming=Eq(Mod(N, 16), 0))[0]
        )
    with pytest.raises(LayoutError, match="positive=True for a sympy symbol"):
        TileLayout(S[N]).group((N // 16, 16), assuming=Eq(Mod(N, z), 0))
    with pytest.raises(LayoutError, match="plainly false"):
        TileLayout(S[N]).group((2, N // 2), assuming=[Eq(Mod(3, z), 0), Eq(z, 2)])


def test_subs_wants_each_symbol_once() -> None:
    with pytest.raises(LayoutError, match="m is given twice"):
        TileLayout(S[M, 4]).subs({M: 4, "m": 5})
    other = sympy.Symbol("m", integer=True, nonnegative=True)
    for key in ("m", M, other):
        with pytest.raises(LayoutError, match="2 different symbols of the layout are called m"):
            TileLayout(S[(M, 2) : (other, 1)]).subs({key: 4})
    with pytest.raises(LayoutError, match="whose m is another symbol, declared otherwise"):
        TileLayout(S[M]).subs({other: 4})


# --- what is accepted ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("facts", "word"),
    [
        (False, "plainly false.*write Eq"),
        (N == 16 * Q, "plainly false.*write Eq"),
        (sympy.false, "plainly false"),
        (N < 0, "plainly false"),
        ((N >= 64, N < 10), "n < 10 is false beside n >= 64"),
        ((N < Q, Q < N), "no values|false"),
        ((Eq(N, 2 * Q), Eq(Mod(N, 2), 1)), "false|no values"),
        (Eq(Mod(2 * N, 4), 1), "false"),
        ((Eq(N, 3), Eq(N, 4)), "false"),
        ((N < Q, Q < K, K < N), "no values|false"),
        (Eq(Mod(N, 4), 5), "false"),
        (Eq(N, 3) | Eq(N, 4), "is no condition.*accepted are"),
        (N, "is no condition.*accepted are"),
        ("n > 3", "is no condition.*accepted are"),
        (16, "is no condition.*accepted are"),
        (sympy.Symbol("x") > 3, "x.*is not known to be an integer"),
        (Eq(sympy.sqrt(N), Q), ".Pow. has no integer form"),
        (sympy.Symbol("n", integer=True) >= 3, "n in the conditions is another symbol"),
        (Eq(Mod(sympy.Symbol("o", odd=True), 4), 2), "o is declared"),
    ],
)
def test_what_is_false_or_no_condition_is_refused(facts: Any, word: str) -> None:
    with pytest.raises(LayoutError, match=f"group: .*({word})"):
        TileLayout(S[N, 4]).group((N, 4), assuming=facts)


@pytest.mark.parametrize(
    "facts", [True, sympy.true, (), [], N > 0, (N >= 1, True), And(N > 0, Q > 0), N * Q >= 1]
)
def test_what_is_true_is_dropped(facts: Any) -> None:
    found, _ = TileLayout(S[N, 4]).group((4 * N,), assuming=facts)
    assert found.conditions == ()
    assert type(found) is TileLayout


def test_conditions_are_taken_apart_and_kept_once() -> None:
    facts = [And(N >= 64, Eq(Mod(N, 16), 0)), (N >= 64,), {Q < N}]
    found, _ = TileLayout(S[N]).group((N // 16, 16), assuming=facts)
    assert set(found.conditions) == {N >= 64, Eq(Mod(N, 16), 0), Q < N}
    assert len(found.conditions) == 3


@settings(max_examples=200)
@given(st.lists(facts(), min_size=1, max_size=3))
def test_only_what_no_values_satisfy_is_refused_as_false(given_facts: list) -> None:
    """And what is known of each symbol is so for all values that satisfy the conditions."""
    from tilelayout.expr import evaluate
    from tilelayout.expr.conditions import conditions, flattened

    true_at = holding(given_facts)
    try:
        known = conditions(flattened(given_facts))
    except LayoutError:
        assert true_at == []
        return
    names = {s.name: s for s in (N, Q, K)}
    for values in some(true_at, 12):
        numbers = {name: values[s] for name, s in names.items()}
        for q, step, base, whole in known.facts.quotients:
            numbers[q.name] = evaluate(whole, numbers)
            assert evaluate(step, numbers) * numbers[q.name] == evaluate(base, numbers)
        for v, value in known.facts.values.items():
            assert evaluate(value, numbers) == numbers[v.name]
        for x in known.facts.nonnegative:
            assert evaluate(x, numbers) >= 0
        for x, image in known.facts.relations:
            assert evaluate(x, numbers) == evaluate(image, numbers)
        for s, value in known.replaced.items():
            assert number(value, values) == values[s]


# --- conditions are kept ------------------------------------------------------------------------------

ROWS = TileLayout(S[N]).group((N // 16, 16), assuming=Eq(Mod(N, 16), 0))[0]
FACT = Eq(Mod(N, 16), 0)


def test_conditions_stand_beside_the_value() -> None:
    assert ROWS.conditions == (FACT,)
    plain = TileLayout.from_iters(ROWS.shard)
    assert plain.conditions == ()
    assert plain == ROWS
    assert hash(plain) == hash(ROWS)
    assert str(plain) == str(ROWS)
    for again in (pickle.loads(pickle.dumps(ROWS)), copy.deepcopy(ROWS), copy.copy(ROWS)):
        assert again == ROWS
        assert again.conditions == (FACT,)
        assert again.subs({N: 32}) == TileLayout(S[2, 16])
    with pytest.raises(AttributeError, match="frozen"):
        ROWS.conditions = ()
    assert TileLayout(ROWS) is ROWS


OTHER = TileLayout(S[(2, N) : (M, 1)]).canonicalize(assuming=Eq(Mod(M, N), 0))
CALLS: dict[str, tuple] = {
    "blocked_product": (2, (N,), (2,)),
    "broadcast": (2,),
    "canonicalize": (),
    "complement": (2 * N,),
    "compose": (TileLayout(S[16]),),
    "direct_sum": (TileLayout(S[2:5]), (2,), (N,)),
    "flat_divide": (16,),
    "fuse_threads": ("tx",),
    "group": ((N // 16, 4, 4),),
    "group_many": ([(N // 16, 16), (N // 16, 4, 4)],),
    "inverse": (),
    "join": (TileLayout(S[N:0] + 3 @ laneid),),
    "left_inverse": (),
    "logical_divide": (16,),
    "logical_product": (2,),
    "pack": (2,),
    "permute_by_groups": ((0, 1, 2), (1, 0)),
    "permute_dims": ((1, 0),),
    "project": ("m",),
    "raked_product": (2, (N,), (2,)),
    "recover_inner": (TileLayout(S[N]), (N,), (N,)),
    "recover_left": (TileLayout(S[N]), (N,), (N,)),
    "recover_outer": (TileLayout(S[N]), (N,), (N,)),
    "recover_right": (TileLayout(S[N]), (N,), (N,)),
    "right_inverse": (),
    "select": ("m",),
    "slice": ((N // 16, 16), [(0, 1), (0, 16)]),
    "split_threads": ("tx",),
    "storage": (),
    "tile": (TileLayout(S[2]), (2,), (N,)),
    "tile_to": ((2 * N,), (N,)),
    "tiled_divide": (16,),
    "unpack": (2,),
    "zipped_divide": (16,),
}
NO_LAYOUT = {
    "apply", "draw", "elements", "equivalent", "explain", "explore", "from_iters", "is_bijective", "is_injective",
    "is_surjective", "owners", "parse", "size", "span", "subs", "swizzle", "table",
}  # fmt: skip


def test_every_operation_is_asked_whether_it_hands_conditions_on() -> None:
    methods = {name for name in dir(TileLayout) if name[0] != "_" and callable(getattr(TileLayout, name))}
    assert methods - set(CALLS) - NO_LAYOUT == set()


@pytest.mark.parametrize("name", sorted(CALLS))
def test_operations_hand_conditions_on(name: str) -> None:
    found = layout_of(getattr(ROWS, name)(*CALLS[name]))
    assert found.conditions == (FACT,)
    plain = layout_of(getattr(at(ROWS, {N: 32}), name)(*put_in(CALLS[name], {N: 32})))
    assert reference.function(found.subs({N: 32})) == reference.function(plain)


@pytest.mark.parametrize(
    "combine",
    [
        lambda a, b: a.compose(b),
        lambda a, b: a.tile(b, (b.size(),), (a.size(),)),
        lambda a, b: a.direct_sum(b, (b.size(),), (a.size(),)),
        lambda a, b: a.logical_product(b)[0],
        lambda a, b: a.blocked_product(b, (a.size(),), (b.size(),))[0],
        lambda a, b: a.logical_divide(b)[0],
    ],
    ids=[
        "compose",
        "tile",
        "direct_sum",
        "logical_product",
        "blocked_product",
        "logical_divide",
    ],
)
def test_two_operands_bring_the_conditions_of_both(combine: Any) -> None:
    small, _ = TileLayout(S[Q]).group((Q // 2, 2), assuming=(Eq(Mod(Q, 2), 0), Eq(Mod(N, Q), 0)))
    wanted = {FACT, Eq(Mod(Q, 2), 0), Eq(Mod(N, Q), 0)}
    assert set(combine(ROWS, small).conditions) == wanted
    assert set(combine(TileLayout(S[N]), small).conditions) == wanted - {FACT}
    odd = TileLayout(S[Q]).canonicalize(assuming=Eq(Mod(N, 2), 1))
    with pytest.raises(LayoutError, match="assuming"):
        combine(ROWS, odd)


def test_a_swizzled_layout_has_them_inside() -> None:
    assert ROWS.swizzle(2, 0, 3).layout.conditions == (FACT,)


def test_layouts_without_symbols_know_nothing_of_it() -> None:
    plain = TileLayout(S[4, 4]).group((16,))[0]
    assert type(plain) is TileLayout
    assert plain.conditions == ()


# --- numbers for symbols ------------------------------------------------------------------------------


def test_numbers_are_put_in_by_symbol_or_name() -> None:
    layout = TileLayout(S[(N, 4) : (4 * Q, 1)] + R[Q : N @ laneid] + K * N)
    assert layout.subs({N: 3, "q": 2, K: -1}) == TileLayout(S[(3, 4) : (8, 1)] + R[2 : 3 @ laneid] - 3)
    assert layout.subs({Q: N}) == TileLayout(S[(N, 4) : (4 * N, 1)] + R[N : N @ laneid] + K * N)
    assert layout.subs({K: 0}).offset == {}
    assert layout.subs({}) == layout


@given(symbolic_layouts(), st.sampled_from(GRID))
def test_subs_is_putting_numbers_in(layout: TileLayout, values: dict) -> None:
    assert layout.subs({s: values[s] for s in free(layout)}) == at(layout, values)


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({N: 40}, "n = 40 violates Eq.Mod.n, 16., 0., which the layout rests on"),
        ({N: 0}, "n = 0 is not positive, and n is declared positive=True"),
        ({N: K}, "n = k is not known to be positive, and n is declared"),
        ({N: sympy.Rational(1, 2)}, "not an integer"),
        ({N: 1.5}, "integer"),
        ({N: True}, "integer"),
        ({Q: 3}, "q is no symbol of the layout, known: n"),
        ({sympy.Symbol("n", integer=True): 16}, "n is no symbol"),
        ([N, 16], "mapping"),
        ({N: 16 * Q + 1}, "violates"),
    ],
)
def test_values_that_violate_something_are_refused(values: Any, word: str) -> None:
    with pytest.raises(LayoutError, match=f"subs: .*{word}"):
        ROWS.subs(values)


def test_conditions_that_are_left_open_stay() -> None:
    found, _ = TileLayout(S[N]).group((Q, N // Q), assuming=(Eq(Mod(N, Q), 0), N >= 2))
    part = found.subs({Q: 4})
    assert set(part.conditions) == {Eq(Mod(N, 4), 0), N >= 2}
    assert part.subs({N: 12}) == TileLayout(S[4, 3])
    with pytest.raises(LayoutError, match="violates"):
        part.subs({N: 13})
    replaced, _ = TileLayout(S[N]).group((Q, 16), assuming=Eq(N, 16 * Q))
    assert replaced.subs({N: 48}) == TileLayout(S[3, 16]), "n says what q is"
    with pytest.raises(LayoutError, match="violates"):
        replaced.subs({N: 40})


# --- what sympy would get wrong -----------------------------------------------------------------------


def test_remainders_within_remainders() -> None:
    """sympy 1.14 takes Mod(3*Mod(k, 4), 8) for another value; layouts don't go through it."""
    begin = 3 * Mod(K, 4)
    layout = TileLayout(S[(8, 8) : (100, 1)])
    found = layout.slice((64,), [(begin, begin + 1)])
    replaced = TileLayout(S[(N, 4) : (1 + Mod(3 * Q, 8), 1)]).canonicalize(assuming=Eq(Q, 1 + Mod(N, 4)))
    for k in range(-4, 9):
        value = sympy.Integer(3 * (k % 4))
        assert number(found.offset.get(m, 0), {K: k}) == layout.apply(int(value))["m"]
    for n in range(1, 9):
        q = 1 + n % 4
        assert number(replaced.shard[0].stride, {N: n, Q: q}) == 1 + 3 * q % 8
