"""Importing costs next to nothing: the packages that are dear come in with the first call that needs them."""

from __future__ import annotations

import subprocess
import sys

import pytest

DEAR = ["numpy", "sympy", "ml_dtypes", "numba", "numba_cuda", "llvmlite", "cuda", "dataclasses", "inspect"]

BUILD_A_LAYOUT = "from tilelayout import S, TileLayout, laneid; TileLayout(S[(8, 4):(4 @ laneid, 1)])"


def loaded_by(code: str) -> set[str]:
    """The modules that `code` loads in a fresh interpreter, over those that a bare start has loaded."""
    program = f"import sys; bare = set(sys.modules)\n{code}\nprint(*sorted(set(sys.modules) - bare))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("code", "dear"),
    [
        pytest.param("import tilelayout", DEAR, id="import tilelayout"),
        pytest.param(BUILD_A_LAYOUT, DEAR, id="one layout"),
        pytest.param(
            "from lowering import copy, gemm, lower", sorted({*DEAR} - {"dataclasses", "inspect"}), id="lower"
        ),
        pytest.param(
            "import lowering", ["numba", "numba_cuda", "llvmlite", "cuda", "sympy"], id="import lowering"
        ),
    ],
)
def test_nothing_dear_is_loaded(code: str, dear: list[str]) -> None:
    assert sorted(loaded_by(code).intersection(dear)) == []


@pytest.mark.parametrize("package", ["tilelayout", "lowering"])
def test_importing_a_package_loads_none_of_its_rooms(package: str) -> None:
    assert {name for name in loaded_by(f"import {package}") if name.startswith(f"{package}.")} == set()


def test_a_layout_loads_only_what_it_takes_to_build_one() -> None:
    later = {
        f"tilelayout.{name}"
        for name in ("draw", "conditional.carry", "algebra.slice", "algebra.tile", "expr")
    }
    assert loaded_by(BUILD_A_LAYOUT) & {*later, "importlib", "warnings", "math"} == set()
