"""The names that users import are there, are found lazily, and are what `dir` and `__all__` say."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from importlib import resources

import pytest

AXES = (
    "bx by bz cbx cby cbz tx warpid laneid wgid tid_in_wg wid_in_wg "  # threads
    "m P F Bank TCol TLane "  # memory
    "pid"  # devices
).split()

PROMISED = {
    "tilelayout": [
        "S", "R", "TileLayout", "Iter", "Axis", "LayoutError", "Undecided", "Swizzle", "XorMap", "SwizzledLayout",
        "Answer", "Shaped", "register_axis", *AXES,
    ],
    "tilelayout.analysis": [
        "Access", "bank_conflicts", "best_staging", "conversion_plan", "matrix_accesses", "register_budget",
        "registers_per_thread", "widest_access", "widest_vector",
    ],
    "lowering": [
        "Tile", "gemm", "copy", "cast", "fill", "elementwise", "lower", "matmul", "sequence", "BARRIER",
        "DispatchError", "DispatchFail",
        "register_dispatch", "register_instruction", "registered", "predicate", "fail",
    ],
}  # fmt: skip

PACKAGES = pytest.mark.parametrize("package", ["lowering", "tilelayout"])


@pytest.mark.parametrize(("package", "name"), [(p, n) for p, names in PROMISED.items() for n in names])
def test_a_promised_name_is_public(package: str, name: str) -> None:
    module = importlib.import_module(package)
    assert hasattr(module, name)
    assert name in module.__all__


@PACKAGES
def test_all_and_dir_tell_the_truth(package: str) -> None:
    module = importlib.import_module(package)
    assert len(set(module.__all__)) == len(module.__all__)
    assert set(module.__all__) <= set(dir(module))
    assert [name for name in module.__all__ if not hasattr(module, name)] == []


@PACKAGES
def test_a_lazy_name_is_the_same_object_each_time(package: str) -> None:
    module = importlib.import_module(package)
    assert all(getattr(module, name) is getattr(module, name) for name in module.__all__)


@PACKAGES
def test_an_unknown_name_is_an_attribute_error(package: str) -> None:
    module = importlib.import_module(package)
    with pytest.raises(AttributeError, match="no_such_name"):
        module.no_such_name  # noqa: B018 - reading the attribute is the test


def undocumented(name: str, value: object) -> list[str]:
    """The name itself and the public members of a class that have no docstring."""
    if not (inspect.isroutine(value) or inspect.isclass(value)):
        return []
    own = vars(value) if inspect.isclass(value) else {}
    members = {f"{name}.{key}": member for key, member in own.items() if not key.startswith("_")}
    speaking = {key: m for key, m in members.items() if callable(m) or isinstance(m, property | classmethod)}
    return [key for key, m in {name: value, **speaking}.items() if not inspect.getdoc(m)]


@PACKAGES
def test_what_users_see_is_documented(package: str) -> None:
    module = importlib.import_module(package)
    assert module.__doc__
    assert [missing for name in module.__all__ for missing in undocumented(name, getattr(module, name))] == []


@PACKAGES
def test_a_package_says_that_it_is_typed(package: str) -> None:
    assert (resources.files(package) / "py.typed").is_file()


@pytest.mark.parametrize("name", AXES)
def test_an_axis_is_exported_under_its_own_name(name: str) -> None:
    assert getattr(importlib.import_module("tilelayout"), name).name == name


@pytest.mark.parametrize("room", ["analysis", "draw", "expr"])
def test_a_room_is_a_name_without_being_imported(room: str) -> None:
    code = f"import tilelayout; print(tilelayout.{room}.__name__, {room!r} in dir(tilelayout))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [f"tilelayout.{room}", "True"]
