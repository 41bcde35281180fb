"""The CUDA driver through ``cuda.bindings``: found and initialized once, its errors as `DriverError` with their text.

The bindings come with the extra ``tilelayout[cuda]`` and are loaded by the first call.  No array, kernel or layout may
enter.
"""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from typing import Any

from ...errors import DriverError

_LEGACY_STREAM = 1  # CU_GET_PROC_ADDRESS_LEGACY_STREAM
_WITHOUT = "only launching needs one: texts, machine code and kernel.simulate work without"


@cache
def bindings() -> Any:
    """The module ``cuda.bindings.driver``, initialized.

    Errors: DriverError where there is no driver or no GPU; ImportError where the bindings are not installed.
    """
    try:
        cu = import_module("cuda.bindings.driver")
    except ImportError as error:
        raise ImportError(
            f"cuda.bindings cannot be loaded ({error}); launching a kernel needs it: pip install 'tilelayout[cuda]'"
        ) from error
    try:
        (status,) = cu.cuInit(0)
    except RuntimeError as error:  # the bindings' own errors for a missing library are such
        reason = str(error).strip().partition("\n")[0]
        raise DriverError(f"there is no NVIDIA driver here ({reason}); {_WITHOUT}") from error
    if status != 0:
        raise DriverError(
            f"there is no NVIDIA GPU here that the driver can use (cuInit: {_text(cu, status)}); {_WITHOUT}",
            int(status),
        )
    return cu


def call(name: str, *arguments: Any) -> Any:
    """What a driver function gives: nothing, one result, or a tuple of several.

    Errors: DriverError naming the call and CUDA's error, with its text; or that the driver is too old to know the call.
    """
    cu = bindings()
    try:
        status, *results = getattr(cu, name)(*arguments)
    except RuntimeError as error:  # the bindings look a function up when it is first called
        raise DriverError(f"{name}: {driver_text()} does not have it ({error})") from error
    if status != 0:
        raise failure(name, status)
    return results[0] if len(results) == 1 else tuple(results) or None


@cache
def entry_point(name: str) -> int | None:
    """The address of a driver function, as CUDA 12.0 has it; None where the driver does not tell it.

    The bindings may have been told that stream 0 is each thread's own: then they alone know their functions.
    """
    if os.environ.get("CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM", "0") not in ("", "0"):
        return None
    try:
        status, address, *_ = bindings().cuGetProcAddress(name.encode(), 12000, _LEGACY_STREAM)
    except (AttributeError, RuntimeError):
        return None
    return int(address) or None if status == 0 else None


def failure(what: str, status: Any, why: str = "") -> DriverError:
    """The error of a call that gave `status`; `why` is what the caller knows beside CUDA's own text."""
    return DriverError(f"{what}: {_text(bindings(), status)}{'; ' * bool(why)}{why}", int(status))


def result(status: int) -> Any:
    """A status that no binding gave, as the bindings name it; the number itself where they do not know it."""
    try:
        return bindings().CUresult(status)
    except ValueError:
        return status


def _text(cu: Any, status: Any) -> str:
    """The name of an error and what CUDA says of it."""
    name = getattr(status, "name", None)
    if name is None:
        return f"CUDA error {int(status)}"
    try:
        known, text = cu.cuGetErrorString(status)
    except RuntimeError:
        return str(name)
    said = text.decode(errors="replace") if known == 0 and isinstance(text, bytes) else ""
    return f"{name} ({said})" if said else str(name)


def driver_version() -> tuple[int, int]:
    """The newest CUDA version that the driver knows, as (major, minor)."""
    number = int(call("cuDriverGetVersion"))
    return number // 1000, number % 1000 // 10


def driver_text() -> str:
    """The driver, in words."""
    try:
        return "the driver (of CUDA {}.{})".format(*driver_version())
    except (DriverError, RuntimeError):
        return "the driver"
