"""The command line as a process: how it starts, what it writes into pipes and terminals, how it ends."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from property_tests.cli.shell import process

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
D = "S[(2, 8, 4, 2) : (2, 4 @ laneid, 1 @ laneid, 1)]"
ESCAPE = "\x1b"


def test_the_console_script_is_the_module() -> None:
    module, _, function = SCRIPTS["tilelayout"].partition(":")
    script = f"import sys; from {module} import {function}; sys.exit({function}())"
    arguments = ("query", D, "--shape", "16,8", "--at", "9,5")
    one = process(*arguments, command=(sys.executable, "-c", script))
    assert one == process(*arguments)
    assert (one.code, one.err) == (0, "")
    assert one.lines[1].startswith("laneid=6,m=3")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("check", "S[8]", "--injective"), 0),
        (("check", "S[8:0]", "--injective"), 1),
        (("check", "S[8:", "--injective"), 2),
        (("check", "S[8]", "--no-such-option"), 2),
    ],
)
def test_exit_codes_reach_the_shell(arguments: tuple[str, ...], code: int) -> None:
    ran = process(*arguments)
    assert ran.code == code
    assert ran.err.count("\n") == (code == 2)


def test_a_pipe_gets_plain_text() -> None:
    ran = process("show", D, "--shape", "16,8", TERM="xterm-256color", COLORTERM="truecolor")
    assert (ran.code, ran.err) == (0, "")
    assert ESCAPE not in ran.out
    assert len(ran.lines) == 2 + 1 + 16


def in_terminal(*arguments: str, **environment: str) -> str:
    """What a terminal of 60 columns is sent."""
    ours, theirs = pty.openpty()
    inherited = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLORTERM")}
    given = {**inherited, "TERM": "xterm-256color", "COLUMNS": "60", **environment}
    with subprocess.Popen(
        [sys.executable, "-m", "tilelayout", *arguments], stdout=theirs, stderr=subprocess.PIPE, env=given
    ) as child:
        os.close(theirs)
        found = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # how Linux says that the other end is closed
                part = b""
            if not part:
                break
            found += part
        assert child.wait() == 0
        assert child.stderr is not None
        assert child.stderr.read() == b""
    os.close(ours)
    return found.decode().replace("\r\n", "\n")


def test_a_terminal_gets_color_and_no_line_wider_than_it() -> None:
    colored = in_terminal("show", D, "--shape", "16,8")
    plain = in_terminal("show", D, "--shape", "16,8", NO_COLOR="1")
    assert f"{ESCAPE}[" in colored
    assert f"{ESCAPE}[38" not in plain
    assert f"{ESCAPE}[48" not in plain
    narrow = in_terminal("show", "S[(32, 64) : (1 @ laneid, 1)]", "--shape", "32,64", NO_COLOR="1")
    assert max(map(len, narrow.splitlines())) <= 60
    assert "cropped" in narrow


@pytest.mark.parametrize("layout", ["S[2, 2]", "S[600, 64]"], ids=["short", "longer than a buffer"])
def test_a_closed_pipe_is_no_fault(layout: str) -> None:
    """As in ``tilelayout ... | head``: nobody reads any more."""
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "tilelayout", "show", layout, "--rows", "600"],
        stdout=writer, stderr=subprocess.PIPE, text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")


def test_without_the_extra_one_line_says_how_to_get_it() -> None:
    code = (
        "import sys; sys.modules['click'] = None; from tilelayout.cli import main; sys.exit(main(['--help']))"
    )
    ran = process(command=(sys.executable, "-c", code))
    assert ran.code == 2
    assert ran.err == "tilelayout: the command line needs the extra `cli`: pip install 'tilelayout[cli]'\n"


def test_without_rich_the_commands_work() -> None:
    code = "import sys; sys.modules['rich'] = None; from tilelayout.cli import main; sys.exit(main(sys.argv[1:]))"
    ran = process("show", "S[2, 2]", command=(sys.executable, "-c", code))
    assert (ran.code, ran.err) == (0, "")


def test_help_loads_nothing_dear() -> None:
    code = (
        "import sys, contextlib, io\nfrom tilelayout.cli import main\n"
        "with contextlib.redirect_stdout(io.StringIO()): main(['--help'])\nprint(*sys.modules)"
    )
    ran = process(command=(sys.executable, "-c", code))
    loaded = set(ran.out.split())
    assert "tilelayout.cli.show" in loaded
    dear = {
        "numpy",
        "sympy",
        "ml_dtypes",
        "rich",
        "numba",
        "tilelayout.layout",
        "tilelayout.draw",
        "lowering.isa",
    }
    assert loaded & dear == set()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["tilelayout", "ch"], ["check"]),
        (["tilelayout", "show", "S[8]", "--view", "hard"], ["hardware"]),
        (["tilelayout", "banks", "--acc"], ["--access"]),
        (["tilelayout", "mma", "movm"], ["movmatrix.m8n8.trans.b16"]),
    ],
)
def test_a_shell_can_complete(words: list[str], expected: list[str]) -> None:
    ran = process(
        _TILELAYOUT_COMPLETE="bash_complete", COMP_WORDS=" ".join(words), COMP_CWORD=str(len(words) - 1)
    )
    assert (ran.code, ran.err) == (0, "")
    assert [line.partition(",")[2] for line in ran.lines] == expected


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_names_the_command(shell: str) -> None:
    ran = process("completion", shell)
    assert (ran.code, ran.err) == (0, "")
    assert "_TILELAYOUT_COMPLETE" in ran.out
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=ran.out, text=True, check=True)
