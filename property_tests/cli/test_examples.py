"""Help: every command has one, with examples that run as they are pasted."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import click
import pytest

from property_tests.cli.shell import answer, run, run_line
from tilelayout.cli.app import program
from tilelayout.cli.command import Command

CONTEXT = click.Context(program, info_name="tilelayout")
COMMANDS = program.list_commands(CONTEXT)
EXAMPLES = [
    (name, line, shows)
    for name in COMMANDS
    for line, shows in getattr(program.get_command(CONTEXT, name), "examples", ())
]


def test_all_commands_are_there() -> None:
    own = ["show", "query", "check", "convert", "banks", "swizzle", "explore", "completion"]
    assert COMMANDS == [*own, "lower", "mma"]
    assert all(isinstance(program.get_command(CONTEXT, name), Command) for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_says_what_it_does_and_shows_examples(name: str) -> None:
    text = answer(name, "--help")
    command = program.get_command(CONTEXT, name)
    assert command is not None
    assert command.help
    assert (command.short_help or "").endswith(".")
    examples = [line for other, line, _ in EXAMPLES if other == name]
    assert examples
    for line in examples:
        assert f"\n  {line}\n" in text, "an example must be whole on its line"
    assert answer(name, "-h") == text
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{name} {parameter.opts[0]} has no help"


@pytest.mark.parametrize(
    ("name", "line", "shows"), EXAMPLES, ids=[f"{n}-{i}" for i, (n, _, _) in enumerate(EXAMPLES)]
)
def test_the_examples_run(
    name: str, line: str, shows: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = run_line(line)
    assert ran.err == ""
    assert ran.code == ("exit code 1" in shows), ran
    written = list(tmp_path.iterdir())
    assert ran.out or written
    assert all(path.stat().st_size for path in written)


def test_no_arguments_and_help_are_one() -> None:
    assert run() == run("--help")
    assert "Exit codes: 0 yes or done, 1 no, 2 bad input" in answer("--help")
    for name in COMMANDS:
        assert f"\n  {name} " in answer("--help")


def test_the_version_is_the_packages() -> None:
    import tilelayout

    assert answer("--version") == f"tilelayout {tilelayout.__version__}\n"


MODULES = ["common", "operands", "tables", "mma", "lower"]


@pytest.mark.parametrize("name", MODULES)
def test_the_docstrings_of_lowerings_part_run(name: str) -> None:
    module = importlib.import_module(f"lowering.cli.{name}")
    assert doctest.testmod(module).failed == 0
