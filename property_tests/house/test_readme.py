"""The README's code runs as it stands, in order, in one session."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)


def test_the_blocks_run_in_order() -> None:
    assert len(blocks()) >= 3
    compiled = """
import numba
from lowering.backends.numba_cuda import compile_ptx
from numba.cuda import types
half, single = types.float16[:, ::1], types.float32[:, ::1]
ptx = compile_ptx(kernel.py_func, [half, half, single], "sm_80", threads=32)
assert ptx.count("mma.sync") == 1 and ".local" not in ptx
"""
    program = "\n".join([*blocks(), compiled])
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "mma.sync.aligned.m16n8k16" in done.stdout


def test_commands_and_links_exist() -> None:
    text = (ROOT / "README.md").read_text()
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"`?make ([a-z-]+)", text)) <= targets
    prose = re.sub(r"```.*?```|`[^`]*`", "", text, flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)#:]+)\)", prose):
        assert (ROOT / link).exists(), link
