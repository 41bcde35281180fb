"""Command lines as a shell runs them: in this process, which is quick, or as processes of their own."""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import subprocess
import sys
from typing import NamedTuple

from tilelayout.cli import main


class Ran(NamedTuple):
    """What came of a command line."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


@contextlib.contextmanager
def standard_input(text: str):
    kept, sys.stdin = sys.stdin, io.StringIO(text)
    try:
        yield
    finally:
        sys.stdin = kept


def run(*arguments: str, stdin: str = "") -> Ran:
    """The command line with these arguments."""
    out, err = io.StringIO(), io.StringIO()
    with standard_input(stdin), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(list(arguments))
    return Ran(code, out.getvalue(), err.getvalue())


def answer(*arguments: str, code: int = 0) -> str:
    """What it writes, which must come with that exit code and without complaint."""
    ran = run(*arguments)
    assert (ran.code, ran.err) == (code, ""), ran
    return ran.out


def refused(*arguments: str) -> str:
    """The one line that it refuses with; nothing else may be written."""
    ran = run(*arguments)
    assert ran.code == 2, ran
    assert ran.out == "", ran
    assert ran.err.endswith("\n")
    assert ran.err.count("\n") == 1, ran
    assert "Traceback" not in ran.err
    assert ran.err.startswith("tilelayout: ")
    return ran.err


def run_line(line: str) -> Ran:
    """A line as it is pasted into a shell, pipes included; the codes of all parts count, the worst is given."""
    words = shlex.split(line)
    parts: list[list[str]] = [[]]
    for word in words:
        if word == "|":
            parts.append([])
        else:
            parts[-1].append(word)
    text, worst, err = "", 0, ""
    for part in parts:
        assert part[0] == "tilelayout", line
        ran = run(*part[1:], stdin=text)
        text, worst, err = ran.out, max(worst, ran.code), err + ran.err
    return Ran(worst, text, err)


def process(*arguments: str, command: tuple[str, ...] = (), stdin: str = "", **environment: str) -> Ran:
    """The same as a process, ``python -m tilelayout`` unless another command is named."""
    inherited = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS", "TERM", "COLORTERM")}
    done = subprocess.run(
        [*(command or (sys.executable, "-m", "tilelayout")), *arguments],
        input=stdin, capture_output=True, text=True, check=False, env={**inherited, **environment},
    )  # fmt: skip
    return Ran(done.returncode, done.stdout, done.stderr)
