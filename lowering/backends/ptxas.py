"""The assembler as a program of its own, which compiles a module as all there is.

The library compiles for linking, and then ignores ``setmaxnreg`` "to maintain compatibility across compilation units":
the multiplying warps of a kernel would be left with the registers that the feeding ones give back, and spill.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from ..target import Target

VARIABLE = "TILELAYOUT_PTXAS"
"""Environment variable that names the program."""
SECONDS = 300


def needs_whole_program(ptx: str) -> bool:
    """Whether a module loses by being compiled for linking."""
    return "setmaxnreg" in ptx


@cache
def find_ptxas() -> str | None:
    """The program's path: what `VARIABLE` says, or as `find_tool`; or None."""
    return os.environ.get(VARIABLE) or find_tool("ptxas")


def find_tool(name: str) -> str | None:
    """The path of one of NVIDIA's programs: of the extra ``cuda``, on PATH, of a CUDA toolkit, of triton; or None."""
    found = [*_in_package("nvidia", f"cu13/bin/{name}")]
    on_path = shutil.which(name)
    found += [Path(on_path)] if on_path else []
    homes = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    found += [Path(home, "bin", name) for home in homes if home]
    found += _in_package("triton", f"backends/nvidia/bin/{name}")
    return next((str(path) for path in found if path.is_file() and os.access(path, os.X_OK)), None)


def _in_package(package: str, file: str) -> list[Path]:
    try:
        spec = find_spec(package)
    except (ImportError, ValueError):
        return []
    places = list(spec.submodule_search_locations or []) if spec else []
    return [Path(place, file) for place in places]


@cache
def ptxas_version(path: str) -> str:
    """What the program calls itself, for messages and for keys of caches."""
    try:
        said = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except OSError as error:
        return f"ptxas ({error})"
    lines = [x.strip() for x in said.stdout.splitlines() if "release" in x]
    return f"ptxas {lines[0].rsplit(' ', 1)[-1]}" if lines else "ptxas"


def run_ptxas(path: str, ptx: str, target: Target) -> tuple[bytes | None, str]:
    """The cubin, or None where the program refuses; and what it said."""
    with tempfile.TemporaryDirectory(prefix="tilelayout-") as folder:
        source, out = Path(folder, "module.ptx"), Path(folder, "module.cubin")
        source.write_text(ptx)
        command = [path, f"-arch={target.name}", "-v", str(source), "-o", str(out)]
        try:
            said = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            return None, f"fatal : {error}"
        log = (said.stdout + said.stderr).replace(str(source), "module.ptx")
        return (out.read_bytes() if said.returncode == 0 and out.exists() else None), log
