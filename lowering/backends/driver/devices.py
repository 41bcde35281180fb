"""GPUs: what each is, which is current, its clock.  The driver is asked; no kernel may enter."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

from ...errors import DriverError
from ...target import TARGETS, Target
from ...target import target as as_target
from .bindings import bindings, call


@dataclass(frozen=True)
class Device:
    """A GPU.

    Attributes:
        ordinal: the number by which CUDA knows it in this process.
        name: e.g. "NVIDIA H200".
        compute_capability: major and minor.
        multiprocessors: how many it has.
        shared_per_block: bytes of shared memory that one CTA can have, as dynamic memory that it asked for.
        shared_per_multiprocessor: bytes that all CTAs of a multiprocessor share.
        registers_per_multiprocessor: 32-bit registers.
        threads_per_multiprocessor: at most resident.
        l2_bytes: of its second-level cache.
    """

    ordinal: int
    name: str
    compute_capability: tuple[int, int]
    multiprocessors: int
    shared_per_block: int
    shared_per_multiprocessor: int
    registers_per_multiprocessor: int
    threads_per_multiprocessor: int
    l2_bytes: int

    @property
    def target(self) -> Target:
        """What code is made for: its own architecture, with the instructions that are specific to it where it has such.

        Errors: DriverError for an architecture that is no known target: no other is taken instead.
        """
        major, minor = self.compute_capability
        general = f"sm_{major}{minor}"
        try:
            return as_target(f"{general}a" if f"{general}a" in TARGETS else general)
        except ValueError as error:
            raise DriverError(f"{self.name} has compute capability {major}.{minor}: {error}") from None


_ATTRIBUTES = {
    "multiprocessors": "MULTIPROCESSOR_COUNT",
    "shared_per_block": "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN",
    "shared_per_multiprocessor": "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR",
    "registers_per_multiprocessor": "MAX_REGISTERS_PER_MULTIPROCESSOR",
    "threads_per_multiprocessor": "MAX_THREADS_PER_MULTIPROCESSOR",
    "l2_bytes": "L2_CACHE_SIZE",
}


def device(ordinal: int | None = None) -> Device:
    """The GPU of that number, or the current one.

    Errors: DriverError where there is no driver, no GPU, or none of that number.
    """
    return _device(current_device() if ordinal is None else ordinal)


@cache
def _device(ordinal: int) -> Device:
    handle = _handle(ordinal)
    kinds = bindings().CUdevice_attribute

    def attribute(name: str) -> int:
        return int(call("cuDeviceGetAttribute", getattr(kinds, f"CU_DEVICE_ATTRIBUTE_{name}"), handle))

    name = call("cuDeviceGetName", 256, handle).partition(b"\0")[0].decode()
    capability = attribute("COMPUTE_CAPABILITY_MAJOR"), attribute("COMPUTE_CAPABILITY_MINOR")
    return Device(ordinal, name, capability, **{k: attribute(v) for k, v in _ATTRIBUTES.items()})


def _handle(ordinal: int) -> Any:
    count = int(call("cuDeviceGetCount"))
    if not 0 <= ordinal < count:
        raise DriverError(f"there is no GPU {ordinal}: the driver shows {count}, numbered from 0")
    return call("cuDeviceGet", ordinal)


def current_device() -> int:
    """The number of the GPU that this thread works on: of its context, or of torch's where there is none yet, or 0."""
    status, found = bindings().cuCtxGetDevice()
    if status == 0:
        return int(found)
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        return int(torch.cuda.current_device())
    return 0


@cache
def primary_context(ordinal: int) -> Any:
    """The context of a GPU that torch, cupy and numba share; kept alive for good."""
    return call("cuDevicePrimaryCtxRetain", _handle(ordinal))


@contextmanager
def current(ordinal: int) -> Generator[None]:
    """While it is open a context of that GPU is this thread's: the one that is, or its primary one."""
    status, found = bindings().cuCtxGetDevice()
    if status == 0 and int(found) == ordinal:
        yield
        return
    call("cuCtxPushCurrent", primary_context(ordinal))
    try:
        yield
    finally:
        call("cuCtxPopCurrent")


# --- clock ------------------------------------------------------------------------------------------------

_SM_CLOCK = 1  # NVML_CLOCK_SM


def clock_mhz(ordinal: int | None = None) -> int | None:
    """The clock of the multiprocessors at this moment, in MHz; None where NVIDIA's management library cannot say."""
    found = _management(current_device() if ordinal is None else ordinal)
    if found is None:
        return None
    library, handle = found
    clock = ctypes.c_uint()
    failed = library.nvmlDeviceGetClockInfo(handle, _SM_CLOCK, ctypes.byref(clock))
    return None if failed else clock.value


@cache
def _management(ordinal: int) -> tuple[Any, Any] | None:
    """The management library and its handle of the GPU, which it numbers otherwise: both know the place on the bus."""
    try:
        library = ctypes.CDLL("nvml.dll" if sys.platform == "win32" else "libnvidia-ml.so.1")
    except OSError:
        return None
    place = call("cuDeviceGetPCIBusId", 64, _handle(ordinal)).partition(b"\0")[0]
    handle = ctypes.c_void_p()
    if library.nvmlInit_v2() or library.nvmlDeviceGetHandleByPciBusId_v2(place, ctypes.byref(handle)):
        return None
    return library, handle
