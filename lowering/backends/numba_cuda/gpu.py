"""What this machine's GPU is, and why there may be none.  These functions ask the driver; nothing else here does."""

from __future__ import annotations

from typing import Any

from numba import cuda

from ...errors import DriverError
from ...program import Program
from ...target import TARGETS, Target
from ...target import target as as_target
from .ptx import CompileError, check_capability, check_instructions


def gpu_name() -> str | None:
    """The name of the current GPU, or None where there is no driver or no GPU."""
    if not cuda.is_available():
        return None
    name = cuda.get_current_device().name
    return name.decode() if isinstance(name, bytes) else str(name)


def gpu_target() -> Target:
    """The target that kernels are compiled for on the current GPU: its own architecture, with the instructions that
    are specific to it where it has such.

    Errors: DriverError where there is no driver or no GPU, or a GPU that is no known target: none is taken instead.
    """
    _check_driver("gpu_target")
    major, minor = cuda.get_current_device().compute_capability
    general = f"sm_{major}{minor}"
    try:
        return as_target(f"{general}a" if f"{general}a" in TARGETS else general)
    except ValueError as error:
        raise DriverError(f"{gpu_name()} has compute capability {major}.{minor}: {error}") from None


def check_can_launch(program: Program) -> None:
    """DriverError where there is no driver or no GPU, or one that the program cannot be compiled for or run on."""
    _check_driver("launch")
    found = gpu_target()
    try:
        check_capability(found)
        check_instructions(program, found)
    except CompileError as error:
        raise DriverError(f"{gpu_name()}: {error}") from None


def _check_driver(what: str) -> None:
    if not cuda.is_available():
        reason = " ".join(str(cuda.cuda_error() or "no device").split()).rstrip(" :")
        raise DriverError(f"{what} needs an NVIDIA driver and a GPU, and there is none here: {reason}")


def new_array(shape: tuple[int, ...], dtype: str) -> Any:
    """An array on the current GPU, row-major, of whatever it holds."""
    return cuda.device_array(shape, dtype)
