"""PTX for an architecture, without a GPU or a driver.

numba-cuda rounds a compute capability that it doesn't know down to one that it knows; nothing is rounded here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from numba import cuda
from numba.cuda.cudadrv import nvrtc

from ...program import Program
from ...target import Target
from ...target import target as as_target


class CompileError(RuntimeError):
    """The program, or the installed CUDA libraries, cannot be had for the target."""


def compile_ptx(
    function: Callable[..., Any],
    arguments: Sequence[Any],
    target: Target | str,
    *,
    device: bool = False,
    threads: int | None = None,
) -> str:
    """The PTX of a plain Python function for argument types such as ``(types.float16[:, ::1], ...)``.

    Args:
        function: what would stand under ``@cuda.jit``.
        arguments: numba types.
        target: the architecture.
        device: a device function instead of a kernel.
        threads: threads of a CTA at most (``.maxntid``).

    Errors: ValueError for an unknown target; CompileError for one that the installed libraries do not know, or that
    numba-cuda replaced by another; numba's TypingError for what the function does wrong.
    """
    where = as_target(target)
    check_capability(where)
    ptx, _ = cuda.compile(
        function,
        tuple(arguments),
        device=device,
        cc=(*where.compute_capability, where.specific),
        abi="numba",
        output="ptx",
        launch_bounds=threads,
    )
    made = re.search(r"^\.target (\w+)", ptx, re.MULTILINE)
    found = made[1] if made else "nothing"
    if found != where.name:
        raise CompileError(
            f"PTX for {where} was asked for, and numba-cuda made it for {found} (is NUMBA_FORCE_CUDA_CC set?)"
        )
    return ptx


def check_capability(target: Target) -> None:
    """CompileError, naming those that are known, where the installed libraries do not know a compute capability."""
    known = nvrtc.get_supported_ccs()
    if target.compute_capability not in known:
        have = ", ".join(f"{major}.{minor}" for major, minor in known)
        raise CompileError(
            f"the installed CUDA libraries cannot compile for {target}: they know compute capability {have}, "
            "and the nearest is not the same"
        )


def check_instructions(program: Program, target: Target) -> None:
    """CompileError for an instruction of the program that the target lacks."""
    for instruction in program.instructions:
        if instruction.sm > target.sm:
            raise CompileError(
                f"{instruction.name} needs sm_{instruction.sm} or newer, and the target is {target}"
            )
