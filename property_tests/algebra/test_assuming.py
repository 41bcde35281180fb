"""`assuming=` and `layout.conditions`: whatever numbers satisfy the conditions, the answer is the one for numbers."""

from __future__ import annotations

import copy
import pickle
import re
from functools import cache
from itertools import pairwise
from typing import Any

import pytest
import sympy
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sympy import And, Eq, Mod, floor

from property_tests.algebra import compacts, reference
from property_tests.algebra.test_symbolic_operations import STRIDES, symbolic_layouts, symbolic_shapes
from property_tests.algebra.test_symbols import K, N, Q, at, number
from tilelayout import LayoutError, R, S, TileLayout, laneid, m, tx

GRID = [{N: n, Q: q, K: k} for n in (*range(1, 13), 16) for q in (1, 2, 3, 4, 8) for k in (-2, 0, 1, 4)]
M = sympy.Symbol("m", integer=True, positive=True)


@cache
def where_true(fact: Any) -> frozenset:
    """The places in the grid at which one condition holds, by sympy's own evaluation."""
    return frozenset([i for i, values in enumerate(GRID) if sympy.sympify(fact).subs(values) == True])  # noqa: E712


def holding(facts: Any) -> list[dict]:
    """The values of the grid that satisfy conditions."""
    facts = facts if isinstance(facts, tuple | list) else (facts,)
    true_at = frozenset(range(len(GRID))).intersection(*[where_true(fact) for fact in facts])
    return [GRID[i] for i in sorted(true_at)]


def some(values: list[dict], most: int = 4) -> list[dict]:
    """A few of them, from the whole range."""
    return values[:: max(1, len(values) // most)]


# --- drawn facts, drawn operations, drawn values ------------------------------------------------------

SMALL = st.integers(1, 8)


@st.composite
def facts(draw: st.DrawFn) -> Any:
    """One condition of each kind that is accepted."""
    x, y = draw(st.sampled_from([(N, Q), (Q, N), (N, K), (K, Q)]))
    kind = draw(st.integers(0, 13))
    c, r = draw(SMALL), draw(st.integers(0, 3))
    return [
        Eq(Mod(x, c), r % c),
        Eq(Mod(x, c), 0),
        Eq(x, c * y),
        Eq(x, y),
        Eq(x, c),
        x >= c,
        x <= c,
        x < y,
        Eq(Mod(x * y, c), 0),
        Eq(Mod(x + y, c), r % c),
        Eq(floor(x / c), r),
        And(x >= c, x <= c + 8),
        Eq(x + y, c),
        sympy.Ne(x, c),
    ][kind]


EXPRESSIONS = [
    *STRIDES, N // 2, N // 4, Q // 2, N - 1, N - Q, N - 4, 8 - N, N * Q, N * Q // 4, K * Q, 2 * Q, 4 * N, Mod(N, 4),
]  # fmt: skip


@st.composite
def operations(draw: st.DrawFn, layout: TileLayout) -> tuple[str, tuple]:
    """An operation and its arguments; what of it is sympy's gets its numbers in `put_in`."""
    name = draw(
        st.sampled_from(
            ["group", "slice", "pack", "unpack", "tile_to", "canonicalize", "divide", "broadcast"]
        )
    )
    size = layout.size()
    x, y = draw(st.sampled_from(EXPRESSIONS)), draw(st.sampled_from(EXPRESSIONS))
    if name == "group":
        shape = draw(symbolic_shapes(layout))
        choices = [(x, y), (size // x, x), (x, size // x), tuple(shape)] if x != 0 else [(x, y)]
        return "group", (draw(st.sampled_from(choices)),)
    if name == "slice":
        length = draw(st.sampled_from([1, 2, 4, y]))
        step = draw(st.sampled_from([None, 2, 4]))
        return "slice", ((size,), [(x, x + length) if step is None else (x, x + step * length, step)])
    if name in ("pack", "unpack", "broadcast"):
        return name, (draw(st.sampled_from([2, 4, N, Q, x])),)
    if name == "tile_to":
        return name, ((draw(st.sampled_from([2 * size, size * x, x])),), (size,))
    if name == "divide":
        return "logical_divide", (draw(st.sampled_from([2, 4, N, Q, x])),)
    return "canonicalize", ()


def put_in(x: Any, values: dict) -> Any:
    """Arguments with numbers for symbols."""
    if isinstance(x, tuple | list):
        return type(x)([put_in(y, values) for y in x])
    if isinstance(x, TileLayout):
        return at(x, values)
    return number(x, values) if isinstance(x, sympy.Basic) else x


def layout_of(found: Any) -> TileLayout:
    return found if isinstance(found, TileLayout) else found[0]


IN_30 = (K >= 0, K <= 30)

# Operations that are refused for want of a proof, and what makes them possible, with a number c to draw.
POSSIBLE: list[tuple[Any, Any]] = [
    (lambda c: TileLayout(S[(N, 3) : (5, 1)]).group, lambda c: (((N // c, c, 3),), Eq(Mod(N, c), 0))),
    (lambda c: TileLayout(S[(2, N) : (3 @ laneid, 2)]).group, lambda c: (((2, c, N // c),), Eq(Mod(N, c), 0))),
    (lambda c: TileLayout(S[N * Q]).group, lambda c: (((N * Q // c, c),), Eq(Mod(N * Q, c), 0))),
    (lambda c: TileLayout(S[(N, Q) : (c, 9)]).group, lambda c: (((Q, N),), Eq(N, Q))),
    (lambda c: TileLayout(S[N, 3]).group, lambda c: (((Q, c, 3),), Eq(N, c * Q))),
    (lambda c: TileLayout(S[N, 5]).slice, lambda c: (((N, 5), [(0, c), (1, 3)]), N >= c)),
    (lambda c: TileLayout(S[N, 5]).slice, lambda c: (((N, 5), [(N - c, N), (0, 5)]), N >= c)),
    (lambda c: TileLayout(S[N, 5]).slice, lambda c: (((N, 5), [(Q, Q + 1), (0, 5)]), Q < N)),
    (lambda c: TileLayout(S[(4, 8) : (9, 1)]).slice, lambda c: (((32,), [(K, K + 2)]), (*IN_30, Eq(Mod(K, 2), 0)))),
    (lambda c: TileLayout(S[(4, 8) : (9, 1)]).slice, lambda c: (((32,), [(K, K + 2)]), (*IN_30, Mod(K, 8) <= 6))),
    (lambda c: TileLayout(S[(N, 8) : (9, 1)]).slice, lambda c: (((N, 8), [(K, K + 1), (0, 2)]), (K >= 0, K < N))),
    (lambda c: TileLayout(S[8 * N : 3]).slice, lambda c: (((8 * N,), [(0, 8 * N, c)]), Eq(Mod(8 * N, c), 0))),
    (lambda c: TileLayout(S[8 * N]).slice, lambda c: (((8 * N,), [(K, K + 4, 2)]), (K >= 0, K <= 2 * N))),
    (lambda c: TileLayout(S[(3, N) : (c, 3 * c)]).pack, lambda c: ((1,), N >= c)),
    (lambda c: TileLayout(S[(3, N) : (c * N, 1)]).pack, lambda c: ((c,), Eq(Mod(N, c), 0))),
    (lambda c: TileLayout(S[N, c]).tile_to, lambda c: (((Q, c), (N, c)), Eq(Mod(Q, N), 0))),
    (lambda c: TileLayout(S[c:3]).tile_to, lambda c: (((N,), (c,)), Eq(Mod(N, c), 0))),
    (lambda c: TileLayout(S[2 * N]).logical_divide, lambda c: ((c,), Eq(Mod(N, c), 0))),
    (lambda c: TileLayout(S[N + 1]).logical_divide, lambda c: ((c,), Eq(Mod(N + 1, c), 0))),
    (lambda c: TileLayout(S[N : 1 + c]).broadcast, lambda c: ((N - Q,), Q < N)),
    (lambda c: TileLayout(S[N]).compose, lambda c: ((TileLayout(S[Q]),), Q <= N)),
    (lambda c: TileLayout(S[(N, c) : (7, 1)]).compose, lambda c: ((TileLayout(S[Q:c]),), Q <= N)),
    (lambda c: TileLayout(S[N:c]).complement, lambda c: ((c * Q,), Eq(Mod(Q, N), 0))),
    (lambda c: TileLayout(S[(c, N) : (Q, 1)]).inverse, lambda c: ((), Eq(Q, N))),
    (lambda c: TileLayout(S[(c, N) : (Q, 1)]).left_inverse, lambda c: ((), Eq(Mod(Q, N), 0))),
    (lambda c: TileLayout(S[(c, N) : (Q, 1)]).right_inverse, lambda c: ((), Q > N)),
    (lambda c: TileLayout(S[N * 2]).group_many, lambda c: (([(2 * N // c, c), (2, N)],), Eq(Mod(N, c), 0))),
]  # fmt: skip


@pytest.mark.parametrize(("method", "how"), POSSIBLE)
@given(c=st.sampled_from([1, 2, 3, 4, 8]), more=facts())
@settings(max_examples=15)
def test_what_becomes_possible_is_right(method: Any, how: Any, c: int, more: Any) -> None:
    arguments, needed = how(c)
    needed = [needed] if not isinstance(needed, tuple) else list(needed)
    bound = method(c)
    true_at = holding([*needed, more])
    try:
        found = layout_of(bound(*arguments, assuming=[*needed, more]))
    except LayoutError:
        if sympy.And(*needed) == False or not true_at:  # noqa: E712 - sympy's false is no bool
            return
        found = layout_of(bound(*arguments, assuming=needed))  # the other fact may not be in the way alone
        true_at = holding(needed)
    for values in some(true_at, 6):
        concrete = getattr(at(bound.__self__, values), bound.__name__)
        expected = layout_of(concrete(*put_in(arguments, values)))
        assert reference.function(at(found, values)) == reference.function(expected)


@settings(max_examples=200)
@given(symbolic_layouts(), st.lists(facts(), min_size=1, max_size=2), st.data())
def test_operations_are_right_wherever_the_conditions_hold(
    layout: TileLayout, given_facts: list, data: st.DataObject
) -> None:
    name, arguments = data.draw(operations(layout))
    try:
        found = getattr(layout, name)(*arguments, assuming=given_facts)
    except LayoutError:
        return
    result = layout_of(found)
    true_at = holding(given_facts)
    assert true_at == holding(result.conditions), (
        "what was assumed is what is recorded, up to what is always true"
    )
    for values in some(true_at):
        concrete = at(layout, values)
        if reference.size(concrete) > 2000:
            continue
        expected = layout_of(getattr(concrete, name)(*put_in(arguments, values)))
        assert reference.function(result.subs({s: values[s] for s in free(result)})) == reference.function(
            expected
        )
        if name == "group":
            shape, seps = put_in(arguments[0], values), found[1]
            extents = [it.extent for it in at(result, values).shard]
            assert [sympy.prod(extents[a:b]) for a, b in pairwise(seps)] == list(shape)


def free(layout: TileLayout) -> set:
    """The symbols of a layout and its conditions."""
    numbers = [x for it in (*layout.shard, *layout.replica) for x in it[:2]] + list(layout.offset.values())
    return {s for x in (*numbers, *layout.conditions) for s in sympy.sympify(x).free_symbols}


@given(symbolic_layouts(), symbolic_layouts(), st.lists(facts(), min_size=1, max_size=2))
def test_functions_of_two_layouts(a: TileLayout, b: TileLayout, given_facts: list) -> None:
    answers: dict[str, Any] = {}
    for name in ("compose", "equivalent", "direct_sum", "join"):
        arguments = (b, (b.size(),), (a.size(),)) if name == "direct_sum" else (b,)
        try:
            answers[name] = getattr(a, name)(*arguments, assuming=given_facts)
        except LayoutError:
            continue
    for values in some(holding(given_facts)):
        left, right = at(a, values), at(b, values)
        if max(reference.size(left), reference.size(right)) > 300:
            continue
        if "compose" in answers:
            expected = [reference.owners(left, i) for i in compacts.places(right)]
            assert reference.function(at(answers["compose"], values)) == expected
        if "equivalent" in answers:
            assert bool(answers["equivalent"]) == (reference.function(left) == reference.function(right))
        if "direct_sum" in answers:
            expected = left.direct_sum(right, (reference.size(right),), (reference.size(left),))
            assert reference.function(at(answers["direct_sum"], values)) == reference.function(expected)
        if "join" in answers:
            assert reference.function(at(answers["join"], values)) == reference.function(left.join(right))


@given(symbolic_layouts(), st.lists(facts(), min_size=1, max_size=2), st.sampled_from(EXPRESSIONS))
def test_questions_inverses_and_complements(a: TileLayout, given_facts: list, cosize: Any) -> None:
    answers: dict[str, Any] = {}
    for name in (
        "is_injective",
        "is_surjective",
        "is_bijective",
        "inverse",
        "left_inverse",
        "complement",
        "span",
    ):
        try:
            answers[name] = getattr(a, name)(*[cosize] * (name == "complement"), assuming=given_facts)
        except LayoutError:
            continue
    for values in some(holding(given_facts)):
        concrete = at(a, values)
        if reference.size(concrete) > 200:
            continue
        for name in ("is_injective", "is_surjective", "is_bijective"):
            if name in answers:
                assert bool(answers[name]) == bool(getattr(concrete, name)())
        if "span" in answers:
            assert number(answers["span"], values) == concrete.span()
        if "inverse" in answers:
            assert reference.function(at(answers["inverse"], values)) == reference.function(
                concrete.inverse()
            )
        if "left_inverse" in answers:
            back = compacts.places(at(answers["left_inverse"], values))
            assert [back[x] for x in compacts.places(concrete)] == list(range(reference.size(concrete)))
        if "complement" in answers and number(cosize, values) <= 2000:
            more = compacts.places(at(answers["complement"], values))
            sums = sorted(x + y for x in compacts.places(concrete) for y in more)
            assert sums == list(range(number(cosize, values)))


@given(symbolic_layouts(), st.lists(facts(), min_size=1, max_size=2))
def test_apply_under_conditions(layout: TileLayout, given_facts: list) -> None:
    i = sympy.Symbol("i", integer=True, nonnegative=True)
    size = layout.size()
    try:
        found = layout.apply(i, shape=(size,), assuming=given_facts)
    except LayoutError:
        return
    for values in some(holding(given_facts)):
        concrete = at(layout, values)
        for flat in range(0, reference.size(concrete), 1 + reference.size(concrete) // 7):
            place = reference.place({a: number(v, {**values, i: flat}) for a, v in found.items()})
            assert place == reference.place(reference.displacement(concrete, flat))


# --- refusals name the condition that is missing, and it can be pasted --------------------------------

NAMES = {"n": N, "q": Q, "k": K, "Eq": Eq, "Mod": Mod, "floor": floor}


def suggested(error: LayoutError) -> list:
    """The conditions that a refusal writes out, read as the caller would paste them."""
    texts = re.findall(r"pass assuming=([^;]*)", str(error.remedy or ""))
    return [eval(text, {}, NAMES) for text in texts]  # noqa: S307 - that it can be pasted is what is tested


@settings(max_examples=100)
@given(symbolic_layouts(), st.data())
def test_what_a_refusal_asks_for_is_no_longer_missing_when_it_is_passed(
    layout: TileLayout, data: st.DataObject
) -> None:
    assume(all(sympy.Poly(it.extent, N, Q).total_degree() <= 1 for it in layout.shard))
    name, arguments = data.draw(operations(layout))
    passed: list = []
    for _ in range(8):
        try:
            getattr(layout, name)(*arguments, assuming=passed)
            return
        except LayoutError as error:
            wanted = suggested(error)
            if not wanted or "assuming:" in error.rule:
                return
            if wanted[0] in passed:
                pytest.fail(f"{wanted[0]} was passed: {error}")
            passed.append(wanted[0])
    pytest.fail(f"{name}{arguments} asks for ever more: {passed}")


@pytest.mark.parametrize(
    ("attempt", "condition"),
    [
        (lambda **a: TileLayout(S[N]).group((N // 16, 16), **a), "floor(n/16) >= 1"),
        (lambda **a: TileLayout(S[(N, 4) : (9, 1)]).group((2, 2 * N), **a), "Eq(Mod(n, 2), 0)"),
        (lambda **a: TileLayout(S[4]).tile_to((N,), (4,), **a), "Eq(Mod(n, 4), 0)"),
        (lambda **a: TileLayout(S[N, 8]).slice((N, 8), [(0, 64), (0, 8)], **a), "64 <= n"),
        (lambda **a: TileLayout(S[N, 8]).slice((N, 8), [(K, K + 1), (0, 8)], **a), "k + 1 <= n"),
        (lambda **a: TileLayout(S[N, N]).pack(4, **a), "Eq(Mod(n**2, 4), 0)"),
        (lambda **a: TileLayout(S[N]).logical_divide(16, **a), "Eq(Mod(n, 16), 0)"),
        (lambda **a: TileLayout(S[N]).complement(Q, **a), "Eq(Mod(q, n), 0)"),
        (lambda **a: TileLayout(S[N]).compose(TileLayout(S[Q]), **a), "q <= n"),
        (lambda **a: TileLayout(S[8:K]).span(**a), "0 <= k"),
        (lambda **a: TileLayout(S[(N, Q) : (K, 1)]).inverse(**a), "1 <= k"),
        (lambda **a: TileLayout(S[(4, Q) : (N, 1)]).inverse(**a), "Eq(n, q)"),
        (lambda **a: TileLayout(S[(4, Q) : (N, 1)]).is_injective(**a), "q <= n"),
        (lambda **a: TileLayout(S[(4, Q) : (N, 1)]).equivalent(TileLayout(S[4 * Q]), **a), "Eq(n, q)"),
        (lambda **a: TileLayout(S[N]).group_many([(4, Q), (Q, 4)], **a), "Eq(4*q, n)"),
        (lambda **a: TileLayout(S[N : 1 @ tx]).split_threads("tx", **a), "Eq(Mod(n, 32), 0)"),
        (lambda **a: TileLayout(S[N : 1 @ laneid]).fuse_threads("tx", **a), "n - 1 <= 31"),
        (lambda **a: TileLayout(S[2 * N + 1]).pack(2, **a), None),
    ],
)
def test_the_condition_is_written_out(attempt: Any, condition: str | None) -> None:
    with pytest.raises(LayoutError) as caught:
        attempt()
    if condition is None:
        assert "assuming=" not in str(caught.value)
        return
    assert f"pass assuming={condition}" in str(caught.value)
    passed: list = []
    for _ in range(6):
        try:
            found = attempt(assuming=passed)
            break
        except LayoutError as error:
            (wanted, *_) = suggested(error)
            passed.append(wanted)
    else:
        pytest.fail(f"still refused under {passed}")
    assert found is not None


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
    "apply", "draw", "elements", "equivalent", "explain", "explore", "from_iters", "is_bijective", "is_injective", "is_surjective",
    "owners", "parse", "size", "span", "subs", "swizzle", "table",
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
