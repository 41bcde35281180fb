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
from ...target import TARGETS, Target
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
    _check_made(ptx, where)
    return ptx


def compile_device_ptx(function: Callable[..., Any], signature: Any, target: Target) -> str:
    """The PTX of a plain Python function as one device function ``scalar`` of C's calling convention.

    `signature` is numba's, with the type of the result.  Errors: as of `compile_ptx`.
    """
    check_capability(target)
    ptx, _ = cuda.compile(
        function,
        signature,
        device=True,
        cc=(*target.compute_capability, target.specific),
        abi="c",
        abi_info={"abi_name": "scalar"},
        output="ptx",
    )
    _check_made(ptx, target)
    return ptx


def _check_made(ptx: str, target: Target) -> None:
    """CompileError for text that is for another target than was asked for."""
    made = re.search(r"^\.target (\w+)", ptx, re.MULTILINE)
    found = made[1] if made else "nothing"
    if found != target.name:
        raise CompileError(
            f"PTX for {target} was asked for, and numba-cuda made it for {found} (is NUMBA_FORCE_CUDA_CC set?)"
        )


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
    if refusal := instruction_refusal(program, target):
        raise CompileError(refusal)


def instruction_refusal(program: Program, target: Target) -> str:
    """The first instruction of the program that the target lacks, and why; empty where it has all."""
    refusals = ((i.name, i.refusal(target)) for i in program.instructions)
    return next((f"{name} {why}" for name, why in refusals if why), "")


def compiled_for(capability: Sequence[Any]) -> tuple[Target, ...]:
    """The targets that numba-cuda's compile flag may mean: compute capability, and "a" where that was said.

    Compiling at a launch it leaves the "a" out of the flag and means it all the same, as with `gpu_target`; so a flag
    without it is both.  What numba-cuda rounds to, or was forced to, is what counts.
    Errors: CompileError for an architecture that is no known target.
    """
    found = re.fullmatch(r"compute_(\d+)([af]?)", nvrtc.get_arch_option(*capability))
    name = f"sm_{found[1]}{found[2]}" if found else str(capability)
    specific = f"{name}a"
    try:
        plain = as_target(name)
    except ValueError as error:
        raise CompileError(str(error)) from None
    said = len(capability) > 2 or plain.specific or specific not in TARGETS
    return (plain,) if said else (plain, TARGETS[specific])
