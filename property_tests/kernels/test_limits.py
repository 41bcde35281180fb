"""What the kernels' arithmetic holds: places in 64 bits, of as many batches and as far apart as a launch may ask."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lowering.kernels import Config, gemm
from lowering.kernels.gemm.globals import BATCH_LIMIT, LEADING_LIMIT
from lowering.kernels.gemm.numbers import Extents, numbers
from lowering.kernels.gemm.schedule import LIMIT, MOST_BATCHES
from lowering.kernels.gemm.shapes import Shaped
from tilelayout import LayoutError, S, TileLayout

CONFIG = Config((64, 64, 64), (2, 2), 2, "registers")
CONFIGS = {
    "sm_75": CONFIG,
    "sm_80": Config((64, 64, 64), (2, 2), 2, "cp_async"),
    "sm_90a": Config((64, 64, 64), (2, 2), 2, "tma"),
}


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_batches_with_everything_have_a_text(name: str, dtype: str) -> None:
    """Emitting an address proves that 64 bits hold it at the bounds of every parameter."""
    if dtype == "float64" and name == "sm_75":
        dtype = "int8"
    config = CONFIGS[name] if dtype == "float16" else None
    kernel = gemm(dtype, batched=True, A="column", C="row", bias="column", target=name, config=config)
    built = kernel.built(scaled=True)
    assert ".visible .entry gemm(" in built.ptx
    assert {"batch_a", "batch_c", "ldd", "alpha", "beta"} <= {p.name for p in built.program.parameters}


def launch(**changed: Any) -> dict[str, int]:
    """The numbers of a launch, of a batched problem."""
    given = {"M": 64, "N": 64, "K": 64, "batches": 2, **changed}
    sides = {name: given.pop(name, 64) for name in ("lda", "batch_a")}
    problem = gemm("float16", batched=True, target="sm_75", config=CONFIG).problem
    found = Extents(**given, leading={"A": sides["lda"]}, batch={"A": sides["batch_a"]})
    return numbers(problem, CONFIG, found)


@pytest.mark.parametrize(
    ("name", "most"),
    [("M", LIMIT), ("K", LIMIT), ("batches", MOST_BATCHES), ("lda", LEADING_LIMIT), ("batch_a", BATCH_LIMIT)],
)
def test_what_is_beyond_is_refused_by_name(name: str, most: int) -> None:
    assert launch(**{name: most})[name] == most
    with pytest.raises(LayoutError, match=rf"{name} = {most + 1} is beyond {most}"):
        launch(**{name: most + 1})


@pytest.mark.parametrize("order", ["row", "column"])
def test_one_line_has_no_leading_dimension(order: str) -> None:
    """However long it is: nothing is ever that far away."""
    longest = LIMIT
    made = gemm("float16", A="row", B="column", D=order, target="sm_90a")
    given = {
        "A": Shaped((1, longest), (longest, 1)),
        "B": Shaped((longest, 1), (1, longest)),
        "D": Shaped((1, 1), (1, 1)),
    }
    built, found = made.for_call(made.internal(given), 1.0, False, 132)
    assert max(found.leading.values()) <= LEADING_LIMIT
    assert built.problem.A.alignment == built.problem.B.alignment == 16
    assert built.values(found, 1.0, 0.0)["K"] == longest
    given["A"] = Shaped((2, longest), (longest, 1))
    given["D"] = Shaped((2, 1), (1, 2) if order == "column" else (1, 1))
    with pytest.raises(LayoutError, match=f"the leading dimension of A = {longest} is beyond"):
        made.for_call(made.internal(given), 1.0, False, 132)


def test_extents_of_numpy_are_explained() -> None:
    made = gemm("float16", target="sm_80")
    assert made.explain(np.int64(64), np.uint8(64), np.int32(64)) == made.explain(64, 64, 64)  # type: ignore[arg-type]
    with pytest.raises(LayoutError, match="integers from 0, or none"):
        made.explain(True, 64, 64)


# --- layouts in flat memory ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operand", "layout", "words"),
    [
        ("A", TileLayout(S[(2, 2) : (0, 1)]), r"A\[0, 0\] and A\[1, 0\] lie in one place, element 0"),
        ("B", TileLayout(S[(2, 2) : (1, 1)]), r"B\[0, 1\] and B\[1, 0\] lie in one place, element 1"),
    ],
)
def test_one_place_holds_one_number(operand: str, layout: TileLayout, words: str) -> None:
    kernel = gemm("float16", **{operand: layout}, shape=(2, 2, 2), target="sm_80")
    given = {"A": np.eye(2, dtype=np.float16), "B": np.eye(2, dtype=np.float16)}
    given[operand] = np.array([[1, 2], [3, 4]], np.float16)
    with pytest.raises(LayoutError, match=words):
        kernel.simulate(given["A"], given["B"])
    given[operand] = np.full((2, 2), 3, np.float16)
    assert (kernel.simulate(given["A"], given["B"]) == 3).all()


def test_a_layout_that_reaches_too_far_to_simulate() -> None:
    kernel = gemm("float16", A=TileLayout(S[(4, 4) : (1 << 28, 1)]), shape=(4, 4, 4), target="sm_80")
    with pytest.raises(LayoutError, match="A reaches over 805306372 elements"):
        kernel.simulate(np.ones((4, 4), np.float16), np.eye(4, dtype=np.float16))
