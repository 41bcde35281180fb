"""The guide's shell sessions run as they stand and print what the guide shows."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

from property_tests.cli.shell import run_line

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "cli.md"
BLOCKS = re.findall(r"^```console\n(.*?)^```", GUIDE.read_text(), re.DOTALL | re.MULTILINE)
STATUS = "; echo $?"


def sessions(block: str) -> list[tuple[str, str]]:
    """(command line, what is shown after it) pairs."""
    parts = re.split(r"^\$ (.*)\n", block, flags=re.MULTILINE)
    assert parts[0] == "", "a block begins with a command"
    return list(zip(parts[1::2], parts[2::2], strict=True))


def printed(line: str) -> str:
    ran = run_line(line.removesuffix(STATUS))
    return ran.out + ran.err + (f"{ran.code}\n" if line.endswith(STATUS) else "")


def holds(shown: str, got: str) -> bool:
    return doctest.OutputChecker().check_output(shown, got, doctest.ELLIPSIS)


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_the_sessions_run(block: str) -> None:
    for line, shown in sessions(block):
        assert holds(shown, printed(line)), printed(line)


def test_there_are_sessions_and_a_wrong_one_would_be_noticed() -> None:
    assert len(BLOCKS) >= 8
    assert sum(len(sessions(block)) for block in BLOCKS) >= 15
    assert not holds("element 6\n", printed("tilelayout query 'S[8]' --at 5"))


def test_every_command_is_in_the_guide() -> None:
    from tilelayout.cli.app import COMMANDS

    for name in (*COMMANDS, "mma", "lower"):
        assert f"| `{name}` |" in GUIDE.read_text()
