"""Rules of the house that no linter knows, read off the sources."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(path for package in ("tilelayout", "lowering") for path in (ROOT / package).rglob("*.py"))
OF_TILELAYOUT = [path for path in SOURCES if path.is_relative_to(ROOT / "tilelayout")]

LINES = 450  # "about 400"
DEAR = {"numpy", "sympy", "ml_dtypes", "dataclasses", "inspect"}


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def is_type_checking(test: ast.expr) -> bool:
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )


def executed_imports(node: ast.AST, in_function: bool = False) -> Iterator[tuple[str, bool]]:
    """Top-level package of every import that can run, and whether it stands in a function."""
    if isinstance(node, ast.Import):
        yield from ((alias.name.split(".")[0], in_function) for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
        yield node.module.split(".")[0], in_function
    children = ast.iter_child_nodes(node)
    if isinstance(node, ast.If) and is_type_checking(node.test):
        children = iter(node.orelse)
    inside = in_function or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    for child in children:
        yield from executed_imports(child, inside)


def test_the_reader_of_imports_reads() -> None:
    code = """
import numpy
if TYPE_CHECKING:
    import sympy
else:
    import inspect
def f():
    from sympy.core import Integer
class C:
    from dataclasses import field
"""
    assert list(executed_imports(ast.parse(code))) == [
        ("numpy", False),
        ("inspect", False),
        ("sympy", True),
        ("dataclasses", False),
    ]


@pytest.mark.parametrize("path", OF_TILELAYOUT, ids=name_of)
def test_dear_packages_are_imported_by_the_function_that_needs_them(path: Path) -> None:
    imports = executed_imports(ast.parse(path.read_text()))
    assert {package for package, in_function in imports if not in_function} & DEAR == set()


@pytest.mark.parametrize("path", OF_TILELAYOUT, ids=name_of)
def test_only_expr_imports_sympy(path: Path) -> None:
    """The contract says so too, but cannot tell an import for the type checker from one that runs."""
    if path.relative_to(ROOT / "tilelayout").parts[0] in ("expr", "expr.py"):
        return
    assert "sympy" not in {package for package, _ in executed_imports(ast.parse(path.read_text()))}


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_a_file_is_about_one_idea(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= LINES
