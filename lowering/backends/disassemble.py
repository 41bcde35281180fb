"""The instructions of machine code as text, by NVIDIA's disassembler, a program: ``nvdisasm`` or ``cuobjdump``."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from .assemble import AssemblerError
from .ptxas import SECONDS, find_tool

VARIABLE = "TILELAYOUT_NVDISASM"
"""Environment variable that names the program."""
_OPTIONS = {"nvdisasm": ("-c",), "cuobjdump": ("-sass",)}
"""Program -> what makes it print the code and nothing else."""


def find_disassembler() -> str | None:
    """The program's path: what `VARIABLE` says, or as `ptxas.find_ptxas` looks for one; or None."""
    given = os.environ.get(VARIABLE)
    return given or next((path for path in map(find_tool, _OPTIONS) if path is not None), None)


def disassemble(cubin: bytes) -> str:
    """The SASS of a cubin, as the disassembler prints it.

    Errors: AssemblerError where no disassembler is found, with where one comes from; and with what it says of bytes
    that it does not take.
    """
    program = find_disassembler()
    if program is None:
        raise AssemblerError(
            f"no disassembler was found: nvdisasm and cuobjdump come with the CUDA toolkit and with triton; put one on "
            f"PATH, or name it by {VARIABLE}"
        )
    name = Path(program).name.partition(".")[0]
    options = _OPTIONS.get(name, _OPTIONS["nvdisasm"])
    with tempfile.TemporaryDirectory(prefix="tilelayout-") as folder:
        source = Path(folder, "kernel.cubin")
        source.write_bytes(cubin)
        command = [program, *options, str(source)]
        try:
            said = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise AssemblerError(f"{program} cannot be run: {error}") from None
        if said.returncode or not said.stdout.strip():
            log = (said.stderr or said.stdout).replace(str(source), "kernel.cubin").strip()
            raise AssemblerError(f"{name} refuses the cubin: {log or 'it prints nothing'}", log=log)
        return said.stdout


__all__ = ["VARIABLE", "disassemble", "find_disassembler"]
