"""The PTX of structured programs computes what the machine for programs computes."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, settings

from lowering.backends.cta_machine import run_grid
from lowering.backends.ptx import ptx_module
from lowering.target import target

from .ptx_kernel_machine import run_kernel
from .structured_cases import GRID, Case, programs


def agree(case: Case) -> None:
    """The text's launch leaves in memory what the program's does."""
    text = ptx_module(case.program, target("sm_80"))
    expected = run_grid(case.program, GRID, case.memory(), case.values)
    found = run_kernel(text, case.program, GRID, case.memory(), case.values)
    np.testing.assert_array_equal(found["result"], expected["result"], err_msg=text)


@given(programs())
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
def test_drawn_programs(case: Case) -> None:
    agree(case)
