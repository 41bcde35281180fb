"""What the kernels' arithmetic holds: places in 64 bits, of as many batches and as far apart as a launch may ask."""

from __future__ import annotations

from typing import Any

import pytest

from lowering.kernels import Config, gemm
from lowering.kernels.gemm.globals import BATCH_LIMIT, LEADING_LIMIT
from lowering.kernels.gemm.numbers import Extents, numbers
from lowering.kernels.gemm.schedule import LIMIT, MOST_BATCHES
from tilelayout import LayoutError

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
