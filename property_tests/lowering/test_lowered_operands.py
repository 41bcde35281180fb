"""Operands of lowered calls go by role or by tile; what a variant raises is the cause of the refusal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lowering import (
    DispatchError,
    Tile,
    copy,
    fill,
    lower,
    predicate,
    register_dispatch,
    temporary_variants,
)
from property_tests.kernels.refusing import refused
from tilelayout import S, TileLayout, laneid

ROWS = TileLayout(S[(2, 8, 4, 2) : (2, 4 @ laneid, 1 @ laneid, 1)])  # type: ignore[operator]


def test_an_operand_is_given_by_the_name_of_its_tile() -> None:
    d = Tile("D", (16, 8), "float32", ROWS)
    filled = lower(fill(d, 3.0), target="sm_80", scope="warp")
    before = np.zeros((16, 8), np.float32)
    assert (filled.run(D=before) == 3).all()
    assert (filled.run(dst=before) == 3).all()
    assert (filled.run() == 3).all()
    refused(lambda: filled.run(E=before), "there is no operand E", "dst (tile D)")
    refused(lambda: filled.run(D=before, dst=before), "dst is given twice")


def test_a_role_goes_before_the_name_of_a_tile() -> None:
    """Of two operands of one name neither is meant."""
    held, other = (Tile("held", (16, 8), "float32", ROWS) for _ in range(2))
    memory = Tile("src", (16, 8), "float32", TileLayout(S[16, 8]), "shared")
    numbers = np.arange(128, dtype=np.float32).reshape(16, 8)
    load = lower(copy(held, memory), target="sm_80", scope="warp")
    assert (load.run(src=numbers) == numbers).all()
    store = lower(copy(memory, held), target="sm_80", scope="warp")  # tile "src" is dst here
    assert (store.run(src=numbers) == numbers).all()
    assert (store.run(held=numbers) == numbers).all()
    refused(lambda: store.run(held=numbers, src=numbers), "src is given twice")
    assert other == held


@pytest.mark.parametrize("where", ["function", "predicate"])
def test_an_exception_of_a_variant_is_the_cause_of_what_is_raised(where: str) -> None:
    """It is a reason in the table, and its traceback is not lost."""
    mine = ZeroDivisionError("mine")

    def broken(*_: Any) -> Any:
        raise mine

    d = Tile("D", (16, 8), "float32", ROWS)
    with temporary_variants():
        when = [predicate("asks", broken)] if where == "predicate" else []
        register_dispatch("fill", "cuda", variant="fill.mine", priority=99, when=when)(broken)
        with pytest.raises(DispatchError, match="unexpected ZeroDivisionError") as error:
            lower(fill(d, 3.0), target="sm_80", scope="warp", dispatch="fill.mine")
        assert error.value.__cause__ is mine
        found = lower(fill(d, 3.0), target="sm_80", scope="warp")
    assert found.variant == "fill.registers"
    assert "unexpected ZeroDivisionError" in str(found.declined)
