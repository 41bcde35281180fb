"""The guide's code runs as it stands, in order, in one session, and prints what the guide shows."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

from tilelayout import TileLayout

ROOT = Path(__file__).resolve().parents[2]
GUIDES = sorted((ROOT / "docs" / "guide").glob("*.md"))


def blocks(guide: Path) -> list[str]:
    return re.findall(r"^```pycon\n(.*?)^```", guide.read_text(), re.DOTALL | re.MULTILINE)


def run(text: str, name: str) -> str:
    """What differs when the examples are run: empty when they hold."""
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    report: list[str] = []
    runner.run(doctest.DocTestParser().get_doctest(text, {}, name, None, 0), out=report.append)
    return "".join(report) if runner.failures else ""


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.name)
def test_the_blocks_run_in_order(guide: Path) -> None:
    found = blocks(guide)
    # The shell sessions of one guide are run by property_tests/cli/test_guide.py.
    sessions = guide.read_text().count("```console\n") if guide.name == "cli.md" else 0
    assert len(found) + sessions == guide.read_text().count("```") / 2, "a block that is not run"
    parser = doctest.DocTestParser()
    assert [block for block in found if not parser.get_examples(block)] == []
    assert run("\n".join(found), guide.name) == ""


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.name)
def test_links_exist(guide: Path) -> None:
    for link in re.findall(r"\]\(([^)#:]+)\)", guide.read_text()):
        assert (guide.parent / link).exists(), link


def test_the_algebra_is_walked_through_whole() -> None:
    """Every method of a layout is used; what is new gets its place in the story."""
    code = "\n".join(blocks(ROOT / "docs" / "guide" / "algebra.md"))
    methods = [name for name in dir(TileLayout) if name[0] != "_" and callable(getattr(TileLayout, name))]
    assert len(methods) >= 40
    assert [name for name in methods if f".{name}(" not in code] == []


def test_a_wrong_result_would_be_noticed() -> None:
    assert "Expected" in run(">>> 1 + 1\n3\n", "wrong")
