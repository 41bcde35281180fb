"""Commands of other packages join through entry points; a bad one leaves the others in peace."""

from __future__ import annotations

import importlib.metadata
import tomllib
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import click
import pytest

from property_tests.cli.shell import answer, refused, run
from tilelayout.cli.app import ENTRY_POINT_GROUP

ROOT = Path(__file__).resolve().parents[2]

hello = click.Command("hello", callback=lambda: click.echo("hello"), short_help="Say hello.")
no_command = 5


def offer(monkeypatch: pytest.MonkeyPatch, *pairs: tuple[str, str]) -> None:
    """Let installed packages have these entry points, and no others."""
    points = EntryPoints([EntryPoint(name, value, ENTRY_POINT_GROUP) for name, value in pairs])
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda **wanted: points.select(**wanted))


def test_what_is_installed_is_what_pyproject_says() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = project["entry-points"][ENTRY_POINT_GROUP]
    found = importlib.metadata.entry_points(group=ENTRY_POINT_GROUP)
    assert {p.name: p.value for p in found if p.value.startswith("lowering.")} == wanted
    assert wanted.keys() == {"mma", "lower"}


def test_another_packages_command_is_listed_and_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, ("hello", f"{__name__}:hello"))
    assert "hello       Say hello." in answer("--help")
    assert answer("hello") == "hello\n"
    assert "did you mean 'hello'?" in refused("hallo")


@pytest.mark.parametrize(
    ("pairs", "reason"),
    [
        ([("bad", "no.such.module:x")], "no.such.module:x does not load: ModuleNotFoundError"),
        ([("bad", f"{__name__}:missing")], "does not load: AttributeError"),
        ([("bad", f"{__name__}:no_command")], "is no click command but int"),
        ([("bad", f"{__name__}:hello"), ("bad", "other.place:hello")], "two packages have a command 'bad'"),
    ],
)
def test_a_bad_one_says_so_and_the_others_work(
    monkeypatch: pytest.MonkeyPatch, pairs: list[tuple[str, str]], reason: str
) -> None:
    offer(monkeypatch, *pairs)
    listed = " ".join(answer("--help").split())
    assert "bad (not available" in listed
    assert reason in refused("bad", "x", "--option")
    assert answer("check", "S[8]", "--injective")


def test_the_same_entry_point_twice_is_no_conflict(monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, ("hello", f"{__name__}:hello"), ("hello", f"{__name__}:hello"))
    assert answer("hello") == "hello\n"


def test_no_package_replaces_a_built_in_command(monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, ("check", f"{__name__}:hello"))
    assert run("check", "S[8:0]", "--injective").code == 1
    assert answer("--help").count("\n  check ") == 1
