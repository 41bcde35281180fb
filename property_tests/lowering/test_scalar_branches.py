"""Branches on which lanes disagree: each lane goes its own way, as if it were alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from .scalar_blocks import block

NUMBERS = np.array([1, 2, 3, 6, 7, 9, 25, 27, 97, 0, 1000003], np.uint32)


def collatz(n: int) -> int:
    steps = 0
    while n > 1:
        n, steps = (3 * n + 1 if n % 2 else n // 2), steps + 1
    return steps


def test_a_loop_with_a_choice_in_it() -> None:
    body = """
    .reg .b32 odd; .reg .pred p, q;
    mov.u32 d, 0;
    again: setp.le.u32 p, a, 1; @p bra done;
    and.b32 odd, a, 1; setp.ne.s32 q, odd, 0; add.s32 d, d, 1; @q bra up;
    shr.u32 a, a, 1; bra.uni again;
    up: mad.lo.s32 a, a, 3, 1; bra.uni again;
    done: mov.b32 a, d;
    """
    found = block(body, {"a": NUMBERS}, np.uint32)
    assert found.tolist() == [collatz(n) for n in NUMBERS.tolist()]


def test_a_loop_in_a_loop() -> None:
    """The sum of greatest common divisors of a number with all up to it: inner loops end at other times."""
    body = """
    .reg .b32 i, x, y, r; .reg .pred p, q;
    mov.u32 d, 0; mov.u32 i, 1;
    outer: setp.gt.u32 p, i, a; @p bra done;
    mov.b32 x, a; mov.b32 y, i;
    inner: setp.eq.u32 q, y, 0; @q bra found;
    rem.u32 r, x, y; mov.b32 x, y; mov.b32 y, r; bra inner;
    found: add.u32 d, d, x; add.u32 i, i, 1; bra outer;
    done: mov.b32 a, d;
    """
    few = np.array([0, 1, 2, 12, 13, 30], np.uint32)
    found = block(body, {"a": few}, np.uint32)
    assert found.tolist() == [sum(math.gcd(n, i) for i in range(1, n + 1)) for n in few.tolist()]


def test_what_a_predicate_guards_leaves_other_lanes_as_they_are() -> None:
    body = """
    .reg .pred p; setp.gt.f32 p, a, 0f00000000;
    mov.f32 d, a; @p neg.f32 d, a; @!p add.f32 d, d, 0f3F800000;
    """
    a = np.float32([2, -3, 0, np.nan, 5])
    np.testing.assert_array_equal(block(body, {"a": a}, np.float32), np.float32([-2, -2, 1, np.nan, -5]))


def test_lanes_that_left_early_keep_their_result() -> None:
    body = """
    .reg .pred p, q; setp.lt.s32 p, a, 0; mov.b32 d, 7; @p bra end;
    mov.b32 d, 8; setp.eq.s32 q, a, 0; @!q bra more; bra end;
    more: mov.b32 d, a;
    """
    assert block(body, {"a": np.int32([-1, 0, 5, -9, 3])}, np.int32).tolist() == [7, 8, 5, 7, 3]


def test_a_predicate_that_is_the_same_for_all() -> None:
    body = ".reg .pred p, q; mov.pred p, 1; not.pred q, p; mov.b32 d, a; @q bra end; add.s32 d, d, 1;"
    assert block(body, {"a": np.int32([1, 2])}, np.int32).tolist() == [2, 3]


@st.composite
def trees(draw: st.DrawFn, depth: int = 3) -> Any:
    """A decision: a threshold with what is done below it and from it on; or a factor and a summand."""
    if depth == 0 or draw(st.booleans()):
        return draw(st.integers(-3, 3)), draw(st.integers(-9, 9))
    return draw(st.integers(-50, 50)), draw(trees(depth - 1)), draw(trees(depth - 1))


def text_of(tree: Any, label: str) -> str:
    if len(tree) == 2:
        return f"mad.lo.s32 d, a, {tree[0]}, {tree[1]}; "
    low, high = text_of(tree[1], label + "0"), text_of(tree[2], label + "1")
    return (
        f"setp.ge.s32 p, a, {tree[0]}; @p bra {label}_high; {low}bra {label}_end; "
        f"{label}_high: {high}{label}_end: add.s32 a, a, 1; "
    )


def value_of(tree: Any, a: int) -> tuple[int, int]:
    """The result, and a afterwards, which every decision makes one larger at its end."""
    if len(tree) == 2:
        return a * tree[0] + tree[1], a
    d, a = value_of(tree[1] if a < tree[0] else tree[2], a)
    return d, a + 1


@given(trees(), st.lists(st.integers(-60, 60), min_size=1, max_size=40))
def test_any_tree_of_decisions(tree: Any, numbers: list[int]) -> None:
    found = block(
        f".reg .pred p; {text_of(tree, 'l')} add.s32 d, d, a;", {"a": np.array(numbers, np.int32)}, np.int32
    )
    assert found.tolist() == [sum(value_of(tree, a)) for a in numbers]
