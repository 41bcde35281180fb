"""The import contracts of pyproject.toml hold, and break when an arrow points the wrong way.

They are tried on a skeleton of empty rooms, those to come included, and on a copy of the real packages.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from itertools import permutations
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LINT = "from importlinter.cli import lint_imports_command; lint_imports_command()"

CONTRACTS = {
    contract["id"]: contract
    for contract in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
}


def rooms(package: str) -> list[list[str]]:
    """The rooms of a package as its contract lists them, highest layer first."""
    return [re.findall(r"\w+", layer) for layer in CONTRACTS[f"{package}-rooms"]["layers"]]


def neighbors(package: str) -> set[tuple[str, str]]:
    """The pairs of rooms on one layer that may import one another: those with a colon between them."""
    layers = [layer for layer in CONTRACTS[f"{package}-rooms"]["layers"] if ":" in layer]
    return {pair for layer in layers for pair in permutations(re.findall(r"\w+", layer), 2)}


def add(tree: Path, module: str, code: str) -> None:
    """Append `code` to a module of the tree, made when it isn't there."""
    path = tree.joinpath(*module.split("."))
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(code)


def plant(tree: Path, importer: str, imported: str) -> None:
    """Let a function of one module import another."""
    parent, _, name = imported.rpartition(".")
    statement = f"from {parent} import {name}" if parent else f"import {name}"
    add(tree, importer, f"\n\ndef planted():\n    {statement}\n")


def lint(tree: Path) -> tuple[bool, str]:
    """Whether the contracts hold in a tree, and what import-linter says."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(tree),
        "PYTHONSAFEPATH": "1",
        "NO_COLOR": "1",
        "COLUMNS": "200",
    }
    done = subprocess.run(
        [sys.executable, "-c", LINT, "--no-cache", "--no-logo"],
        cwd=tree, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode == 0, done.stdout + done.stderr


def check_broken(tree: Path, contract: str) -> None:
    held, said = lint(tree)
    assert not held
    assert f"{CONTRACTS[contract]['name']} BROKEN" in said, said
    assert said.count(" BROKEN") == 1, said


@pytest.fixture
def skeleton(tmp_path: Path) -> Path:
    """Both packages as empty rooms: every room of the contracts, built or not."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for package in ("tilelayout", "lowering"):
        add(tmp_path, f"{package}.__init__", "")
        for layer in rooms(package):
            for room in layer:
                add(tmp_path, f"{package}.{room}.__init__", "")
    add(tmp_path, "lowering.backends.numba_cuda.intrinsics", "import numba\nfrom llvmlite import ir\n")
    add(tmp_path, "tilelayout.expr.adapter", "def to_sympy():\n    import sympy\n")
    return tmp_path


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The real packages, copied."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for package in ("tilelayout", "lowering"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def test_a_clean_skeleton_passes(skeleton: Path) -> None:
    held, said = lint(skeleton)
    assert held, said


@pytest.mark.parametrize("package", ["tilelayout", "lowering"])
def test_every_room_may_import_all_rooms_below_it(skeleton: Path, package: str) -> None:
    layers = rooms(package)
    for height, layer in enumerate(layers):
        for importer in layer:
            for imported in (room for lower in layers[height + 1 :] for room in lower):
                plant(skeleton, f"{package}.{importer}", f"{package}.{imported}")
    held, said = lint(skeleton)
    assert held, said


@pytest.mark.parametrize("package", ["tilelayout", "lowering"])
def test_no_room_may_import_one_above_or_beside_it(skeleton: Path, package: str) -> None:
    """Every forbidden pair of rooms is planted at once, and each is named."""
    layers = rooms(package)
    upward = [
        (f"{package}.{importer}", f"{package}.{imported}")
        for height, layer in enumerate(layers)
        for importer in layer
        for higher in layers[: height + 1]
        for imported in higher
        if imported != importer and (importer, imported) not in neighbors(package)
    ]
    for importer, imported in upward:
        plant(skeleton, importer, imported)
    held, said = lint(skeleton)
    assert not held
    assert f"{CONTRACTS[f'{package}-rooms']['name']} BROKEN" in said
    assert [pair for pair in upward if f"{pair[0]} -> {pair[1]} " not in said] == []


@pytest.mark.parametrize(
    ("importer", "imported", "contract"),
    [
        ("tilelayout.algebra.group", "tilelayout.layout", "tilelayout-rooms"),
        ("tilelayout.analysis", "tilelayout.draw", "tilelayout-rooms"),
        ("tilelayout.layout", "lowering.tile", "packages"),
        ("tilelayout.algebra", "tilelayout", "front-doors"),
        ("lowering.variants.gemm", "lowering", "front-doors"),
        ("lowering.variants.gemm", "lowering.backends.ptx", "lowering-rooms"),
        ("lowering.backends.ptx", "lowering.variants.gemm", "lowering-rooms"),
        ("lowering.isa.mma", "lowering.dispatch", "lowering-rooms"),
        ("lowering.backends.ptx", "numba", "numba"),
        ("lowering.api", "llvmlite", "numba"),
        ("lowering.compose.staged", "numba.cuda", "numba"),
        ("tilelayout.codegen.numba_text", "numba", "numba"),
        ("tilelayout.layout", "sympy", "sympy"),
        ("tilelayout.algebra.compose", "sympy.core", "sympy"),
        ("tilelayout.interop.tirx", "tvm", "no-gpu"),
        ("tilelayout.attic", "tilelayout.errors", "tilelayout-rooms"),
        ("lowering.attic", "lowering.tile", "lowering-rooms"),
    ],
)
def test_one_wrong_import_breaks_its_contract(
    skeleton: Path, importer: str, imported: str, contract: str
) -> None:
    add(skeleton, imported if imported.startswith(("tilelayout", "lowering")) else importer, "")
    plant(skeleton, importer, imported)
    check_broken(skeleton, contract)


def test_an_import_for_the_type_checker_counts(skeleton: Path) -> None:
    code = "TYPE_CHECKING = False\nif TYPE_CHECKING:\n    from tilelayout.layout import TileLayout\n"
    add(skeleton, "tilelayout.axis", code)
    check_broken(skeleton, "tilelayout-rooms")


def test_the_two_kinds_of_layout_may_import_one_another(skeleton: Path) -> None:
    assert neighbors("tilelayout") == {("layout", "swizzled"), ("swizzled", "layout")}
    assert neighbors("lowering") == set()
    plant(skeleton, "tilelayout.layout", "tilelayout.swizzled")
    plant(skeleton, "tilelayout.swizzled", "tilelayout.layout")
    held, said = lint(skeleton)
    assert held, said


def test_the_front_door_of_tilelayout_is_open_to_lowering(skeleton: Path) -> None:
    plant(skeleton, "lowering.fragments", "tilelayout")
    plant(skeleton, "lowering.demo", "lowering")
    held, said = lint(skeleton)
    assert held, said


def test_the_real_rooms_hold(copy: Path) -> None:
    held, said = lint(copy)
    assert held, said


@pytest.mark.parametrize(
    ("importer", "imported"),
    [("tilelayout.axis", "tilelayout.layout"), ("lowering.tile", "lowering.api")],
)
def test_a_wrong_import_planted_in_the_real_rooms_is_found(copy: Path, importer: str, imported: str) -> None:
    plant(copy, importer, imported)
    held, said = lint(copy)
    assert not held
    assert f"{importer} is not allowed to import {imported}:" in said
