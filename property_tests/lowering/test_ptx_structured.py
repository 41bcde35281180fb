"""The PTX of structured programs computes what the machine for programs computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from lowering.backends.cta_machine import run_grid
from lowering.backends.ptx import ptx_module
from lowering.control import CTA, RELATIONS, Compare, If, Set
from lowering.isa import LOADS, STORES
from lowering.program import Address, Instr, Program, Slot
from lowering.registers import LANE
from lowering.target import target
from tilelayout.expr import Var

from .ptx_kernel_machine import run_kernel
from .structured_cases import GRID, HELD, RESULT, TABLE, THREAD, WARP, WARPS, Case, programs


def agree(case: Case, threads: int | None = None) -> None:
    """The text's launch leaves in memory what the program's does."""
    text = ptx_module(case.program, target("sm_80"), threads)
    expected = run_grid(case.program, GRID, case.memory(), case.values)
    found = run_kernel(text, case.program, GRID, case.memory(), case.values)
    np.testing.assert_array_equal(found["result"], expected["result"], err_msg=text)


@given(programs())
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
def test_drawn_programs(case: Case) -> None:
    agree(case)


def test_more_warps_than_the_program_has_do_what_its_warps_do() -> None:
    x = Var("x", 0, 100)
    body = (Set(x, LANE + 32 * WARP), If(Compare(WARP, ">", 1), (Set(x, 99),)), *observed(x))
    program = Program("kernel", WARPS, (), (), body, (TABLE, RESULT), (HELD,))
    agree(Case(program, {}, 32 * WARPS * GRID[0]), 2 * 32 * WARPS)


FAR = [(1 << 31) - 1, 1 << 31, 3 << 30, 1 << 32, 1 << 40, -(1 << 31), -(1 << 31) - 1, -(1 << 40)]


@pytest.mark.parametrize("number", FAR)
@pytest.mark.parametrize("relation", list(RELATIONS))
def test_comparisons_with_numbers_of_more_than_32_bits(relation: Any, number: int) -> None:
    """The number decides how wide the comparison is, not the variable alone."""
    x = Var("x", -100, 100)
    for condition in (Compare(x, relation, number), Compare(number, relation, x)):
        mark = [Set(x, LANE - 16), If(condition, (Set(x, 1),), (Set(x, 2),))]
        program = Program("kernel", WARPS, (), (), (*mark, *observed(x)), (TABLE, RESULT), (HELD,))
        agree(Case(program, {}, 32 * WARPS * GRID[0]))


def observed(x: Var) -> list[Any]:
    """One digit of a small variable, in the result."""
    load = Instr(LOADS["global", "b32", 1], ((Slot(HELD, 0),), Address(TABLE, (x,))))
    place = THREAD + 32 * WARPS * CTA
    return [load, Instr(STORES["global", "b32", 1], (Address(RESULT, (place,)), (Slot(HELD, 0),)))]
