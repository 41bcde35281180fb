"""Variables, branches, loops, parameters and the grid on the machine of CTAs."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowering import MachineError
from lowering.backends.cta_machine import EXAMPLES, run_grid
from lowering.backends.cta_machine.grid import _codes, code_of
from lowering.control import CTA, CTA_Y, CTA_Z, CTAS, CTAS_Y, All, Compare, If, Parameter, Set, While
from lowering.isa import LOADS, STORES
from lowering.isa.parameter import LOAD_PARAMETER
from lowering.program import Address, Buffer, Comment, For, Instr, Registers, Slot
from lowering.registers import LANE
from tilelayout import LayoutError
from tilelayout.expr import Var

from .cta_cases import (
    BUFFERS,
    HELD,
    RESULT,
    THREAD,
    WARP,
    by_lane,
    execute,
    kernel,
    load,
    on,
    refuse,
    repeat,
    store,
)

FIRST = np.arange(32)
X, Y = Var("x", -(1 << 40), 1 << 40), Var("y", 0, 1 << 20)
N = Parameter("n", "s32", 0, 1000)


def out(value: Any, at: Any = LANE) -> list[Any]:
    """Store the source's word of that number, which is the number."""
    return [load(value), store(at)]


def test_a_variable_keeps_what_each_lane_gave_it() -> None:
    body = [
        Set(X, 7),
        If(Compare(LANE, "<", 9), (Set(X, LANE + 100),), (If(Compare(LANE, ">=", 20), (Set(X, X + 1),)),)),
        Set(Y, X * 2 + LANE),
        *out(Y),
    ]
    x = np.where(FIRST < 9, FIRST + 100, np.where(FIRST >= 20, 8, 7))
    np.testing.assert_array_equal(execute(*body, size=32), 2 * x + FIRST)


@pytest.mark.parametrize("relation", ["<", "<=", "==", "!=", ">", ">="])
def test_relations(relation: str) -> None:
    compare = {
        "<": np.less,
        "<=": np.less_equal,
        "==": np.equal,
        "!=": np.not_equal,
        ">": np.greater,
        ">=": np.greater_equal,
    }
    both = All((Compare(LANE % 8, relation, 5), Compare(5, relation, LANE // 4)))  # type: ignore[arg-type]
    wanted = compare[relation](FIRST % 8, 5) & compare[relation](5, FIRST // 4)
    found = execute(Set(X, 0), If(both, (Set(X, 1),)), *out(X), size=32)
    np.testing.assert_array_equal(found, wanted.astype(int))


@given(st.integers(0, 6), st.integers(0, 6), st.integers(0, 3))
def test_loops_turn_as_often_as_they_say(outer: int, inner: int, warp: int) -> None:
    """Nested, with bounds that differ from warp to warp, inside a branch on roles."""
    count = Var("count", 0, 1000)
    turns = (
        Set(count, 0),
        *repeat(
            outer, Set(X, 0), While(Compare(X, "<", inner + WARP), (Set(X, X + 1), Set(count, count + 1)))
        ),
    )
    body = [If(Compare(WARP, "==", warp), turns, (Set(count, 999),)), *out(count, THREAD)]
    found = execute(*body, warps=4, size=128, schedules=(0, 3))
    wanted = [outer * (inner + warp) if w == warp else 999 for w in range(4)]
    np.testing.assert_array_equal(found, np.repeat(wanted, 32))


def test_constant_loops_are_unrolled_at_any_depth() -> None:
    i, j = Var("i", 0, 2), Var("j", 0, 1)
    slot = (Slot(HELD, 2 * i + j),)
    inner = on(
        Compare(WARP + j, "==", 1),
        Instr(LOADS["global", "b32", 1], (slot, Address(BUFFERS[0], (LANE + 32 * i,)))),
        Instr(STORES["global", "b32", 1], (Address(RESULT, (32 * (2 * i + j) + LANE,)), slot)),
    )
    found = execute(For(i, (Comment("{i}"), For(j, (inner,)))), warps=2, size=192)
    wanted = np.stack([np.stack([32 * a + FIRST, 32 * a + FIRST]) for a in range(3)])
    np.testing.assert_array_equal(found, wanted.ravel())


def test_a_loop_turns_together() -> None:
    refuse(
        r"while x < lane: lanes of warp 0 disagree: it holds for lane 1, not for lane 0",
        *[Set(X, 0), While(Compare(X, "<", LANE), (Set(X, X + 1),))],
    )
    part = on(
        Compare(LANE, ">=", 4),
        Set(X, 0),
        While(Compare(X, "<", LANE // 4 * 0 + 3), (Set(X, X + 1),)),
        *out(X),
    )
    assert (execute(part, size=32)[4:] == 3).all()


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ([Set(Y, X)], r"y = x: x holds nothing \(warp 0, lane 0"),
        ([by_lane(3, Set(X, 1)), Set(Y, X)], r"y = x: x holds nothing \(warp 0, lane 0"),
        ([on(Compare(LANE, "!=", 9), Set(X, 1)), Set(Y, X)], r"x holds nothing \(warp 0, lane 9"),
        ([Set(Y, LANE - 3)], r"-3 is outside the bounds 0 to 1048576 of y"),
        ([Set(X, 9), *out(Var("x", 0, 8))], r"x is 9, outside its bounds 0 to 8"),
        ([Set(Y, LANE + 1), *out(Var("y", 0, 8))], r"y is 32, outside its bounds 0 to 8"),
        ([on(Compare(X, "<", 3))], r"if x < 3: x holds nothing"),
    ],
)
def test_promises_are_kept(body: list[Any], said: str) -> None:
    refuse(said, *body)


def test_lanes_that_are_off_break_no_promise() -> None:
    inside = Compare(LANE, "<", 4)
    body = [
        Set(X, LANE),
        on(inside, Set(Y, 3 - X), Set(Var("z", 0, 9), 6 // (Var("y", 0, 3) + 1)), *out(Var("z", 0, 9))),
    ]
    np.testing.assert_array_equal(execute(*body, size=32)[:4], 6 // (4 - np.arange(4)))


def test_the_grid_and_the_parameters_have_names() -> None:
    grid = (2, 3, 2)
    number = CTA + 2 * CTA_Y + 6 * CTA_Z
    body = [Set(X, number * 64 + N.variable + CTAS * CTAS_Y), *out(X, 32 * number + LANE)]
    found = execute(*body, grid=grid, size=384, parameters=(N,), values={"n": 5})
    np.testing.assert_array_equal(found, np.repeat(np.arange(12) * 64 + 11, 32))
    for value in (-1, 1001, 2.5):
        with pytest.raises(LayoutError, match="parameter n is"):
            execute(*body, size=384, parameters=(N,), values={"n": value})
    with pytest.raises(LayoutError, match=r"lacks \['n'\]"):
        execute(*body, size=384, parameters=(N,))
    with pytest.raises(LayoutError, match="have names that the machine gives"):
        execute(*out(0), parameters=(Parameter("warp", "s32", 0, 3),), values={"warp": 1})


@pytest.mark.parametrize(("kind", "value"), [("f32", 1 / 3), ("f64", -1 / 3)])
def test_numbers_come_as_words(kind: Any, value: float) -> None:
    held = Registers("f", "D", "float32" if kind == "f32" else "float64", 1, kind)
    number = Parameter("alpha", kind)
    buffer = Buffer("result", "D", held.dtype, (0,), 0, "global", 16)
    body = [
        Instr(LOAD_PARAMETER[kind], ((Slot(held, 0),), number)),
        Instr(STORES["global", kind, 1], (Address(buffer, (LANE,)), (Slot(held, 0),))),
    ]
    program = kernel(*body, buffers=(buffer,), parameters=(number,))
    found = run_grid(program, (1, 1, 1), {"result": np.zeros(32, held.dtype)}, {"alpha": value})["result"]
    assert (found == np.array(value, held.dtype)).all()


def test_words_of_two_registers() -> None:
    """An f64 register is two words; a partial write leaves the others of the lane."""
    held = Registers("f", "D", "float64", 2, "f64")
    source = Buffer("source", "A", "float64", (0,), 0, "global", 16)
    result = Buffer("result", "D", "float64", (0,), 0, "global", 16)
    two = (Slot(held, 0), Slot(held, 1))
    body = [
        Instr(LOADS["global", "f64", 2], (two, Address(source, (2 * LANE,)))),
        by_lane(4, Instr(LOADS["global", "f64", 1], (two[1:], Address(source, (0,))))),
        Instr(STORES["global", "f64", 2], (Address(result, (2 * LANE,)), two)),
    ]
    values = np.random.default_rng(0).normal(size=64)
    program = kernel(*body, buffers=(source, result))
    found = run_grid(program, (1, 1, 1), {"source": values, "result": np.zeros(64)})["result"]
    values[9] = values[0]
    np.testing.assert_array_equal(found, values)


def test_a_program_is_compiled_once_and_let_go() -> None:
    program = kernel(*out(LANE))
    assert code_of(program) is code_of(program)
    alive, key = weakref.ref(program), id(program)
    assert key in _codes
    del program
    gc.collect()
    assert alive() is None
    code_of(kernel(*out(1)))
    assert all(_codes[k] for k in _codes)


def test_every_schedule_runs_every_cta() -> None:
    for schedule in (*EXAMPLES, 12345, 10**12):
        found = execute(
            *out(32 * CTA + LANE, 32 * CTA + LANE), grid=(7, 1, 1), size=224, schedules=(schedule,)
        )
        np.testing.assert_array_equal(found, np.arange(224))


def test_what_the_machine_does_not_know() -> None:
    odd = replace(LOAD_PARAMETER["f32"], name="odd", protocol="dance", operands=(), template="dance;")
    with pytest.raises(MachineError, match="dance;: the machine knows no protocol 'dance'"):
        execute(Instr(odd, ()))
    with pytest.raises(LayoutError, match="two buffers of one name"):
        run_grid(kernel(buffers=(RESULT, RESULT)), (1, 1, 1), {"result": np.zeros(1, np.uint32)})
