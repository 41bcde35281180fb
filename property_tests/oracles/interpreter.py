"""Where the oracles live: in an environment of their own, never beside ours, reached through its interpreter."""

from __future__ import annotations

import os
import subprocess
from functools import cache
from pathlib import Path

import pytest

VARIABLE = "TILELAYOUT_ORACLES_PYTHON"
DEFAULT = Path(__file__).resolve().parents[2] / ".venv-oracles" / "bin" / "python"


def interpreter(*modules: str) -> Path:
    """The interpreter that has these modules, to be run as a subprocess.

    TILELAYOUT_ORACLES_PYTHON names it, otherwise it is that of .venv-oracles (`make test-slow` makes it).  Where it
    lacks one of them the test is skipped; it fails where an interpreter was named, or TILELAYOUT_REQUIRE_ORACLES=1.
    """
    named = os.environ.get(VARIABLE)
    python = Path(named) if named else DEFAULT
    if has(python, *modules):
        return python
    reason = f"no oracle: {python} has no {' and '.join(modules)} (`make test-slow` installs them)"
    if named or os.environ.get("TILELAYOUT_REQUIRE_ORACLES") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@cache
def has(python: Path, *modules: str) -> bool:
    if not python.is_file():
        return False
    command = [python, "-c", f"import {', '.join(modules)}"]
    return not subprocess.run(command, check=False, stderr=subprocess.DEVNULL).returncode
