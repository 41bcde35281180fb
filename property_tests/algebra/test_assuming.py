"""`assuming=`: whatever numbers satisfy the conditions, the answer is the one for numbers."""

from __future__ import annotations

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
from tilelayout import LayoutError, S, TileLayout, laneid, tx

GRID = [{N: n, Q: q, K: k} for n in (*range(1, 13), 16) for q in (1, 2, 3, 4, 8) for k in (-2, 0, 1, 4)]


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
