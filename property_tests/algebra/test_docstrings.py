"""A docstring is a specification that runs: the examples of all public docstrings of tilelayout are executed."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import tilelayout

MODULES = sorted(module.name for module in pkgutil.walk_packages(tilelayout.__path__, "tilelayout."))
FLAGS = doctest.ELLIPSIS

SHOWN_BY_EXAMPLE = [
    "size", "span", "apply", "owners", "parse", "canonicalize", "group", "slice", "tile", "tile_to",
    "permute_dims", "permute_by_groups", "pack", "unpack", "storage",
    "group_many", "direct_sum", "recover_outer", "recover_inner", "recover_left", "recover_right", "broadcast",
    "select", "project", "join", "fuse_threads", "split_threads",
]  # fmt: skip


def examples(name: str) -> list[doctest.DocTest]:
    module = importlib.import_module(name)
    scope = {**{n: getattr(tilelayout, n) for n in tilelayout.__all__}, **vars(module)}
    found = doctest.DocTestFinder(exclude_empty=True).find(module, name, module=module, globs=scope)
    return [test for test in found if test.examples]


@pytest.mark.parametrize("name", ["tilelayout", *MODULES])
def test_the_examples_of_a_module_hold(name: str) -> None:
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    report: list[str] = []
    for test in examples(name):
        runner.run(test, out=report.append)
    assert runner.failures == 0, "".join(report)


def test_examples_are_found() -> None:
    """A runner that finds nothing passes too."""
    counts = {name: sum(len(test.examples) for test in examples(name)) for name in MODULES}
    assert counts["tilelayout.layout"] >= 15
    assert counts["tilelayout.axis"] >= 4
    assert counts["tilelayout.parts"] >= 2
    assert sum(count for name, count in counts.items() if name.startswith("tilelayout.expr")) >= 35
    assert sum(counts.values()) >= 45


@pytest.mark.parametrize("method", SHOWN_BY_EXAMPLE)
def test_every_operation_has_an_example(method: str) -> None:
    assert ">>>" in getattr(tilelayout.TileLayout, method).__doc__


def test_a_wrong_example_would_be_noticed() -> None:
    wrong = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "wrong", None, 0)
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    runner.run(wrong, out=lambda text: None)
    assert runner.failures == 1
