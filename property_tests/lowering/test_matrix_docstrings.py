"""The examples in the docstrings of the matrix moves, wgmma, mma.sp and register_instruction hold."""

from __future__ import annotations

import doctest
import importlib

import pytest

MODULES = {
    "lowering.isa.matrix_move": 4,
    "lowering.isa.matrix_feeds": 6,
    "lowering.isa.registered": 3,
    "lowering.isa.wgmma": 5,
    "lowering.isa.sparse.compress": 5,
    "lowering.isa.sparse.metadata": 3,
    "lowering.isa.sparse.record": 9,
    "lowering.matrix_fragments": 6,
}


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_hold(name: str) -> None:
    found = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert found.failed == 0
    assert found.attempted >= MODULES[name]
