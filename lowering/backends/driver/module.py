"""Machine code on a GPU: loaded once for a device, and launched.

A launch is one call of the driver on a parameter block that is packed already.  It needs a context of the kernel's
device in this thread; where another is current, the device's primary context is put in its place meanwhile.
"""

from __future__ import annotations

import re
from hashlib import sha256
from threading import Lock
from typing import Any

from ...errors import DriverError
from .bindings import bindings, call, driver_text, driver_version, failure, result
from .devices import Device, current, current_device, device
from .parameters import Frame
from .prepared import Deferred, Prepared, quick_calls

_RELEASE = re.compile(rb"Cuda compilation tools, release (\d+)\.(\d+)")
_STATIC = 48 * 1024  # bytes of dynamic shared memory that a kernel has without asking

_LOADED: dict[tuple[bytes, str, int, int], LoadedKernel] = {}
_LOCK = Lock()


def load(cubin: bytes, entry: str, dynamic_shared: int = 0, ordinal: int | None = None) -> LoadedKernel:
    """A kernel of a cubin on a GPU (the current one), ready to be launched.

    The same code for the same GPU is loaded once, and stays.  `dynamic_shared` is in bytes.

    Errors: DriverError where there is no driver or no GPU; for code that is not for this GPU, or of a CUDA version that
    the driver does not know, naming both; for an entry that the code does not have; for more shared memory than a CTA
    can have.
    """
    where = current_device() if ordinal is None else ordinal
    key = sha256(cubin).digest(), entry, dynamic_shared, where
    with _LOCK:
        found = _LOADED.get(key)
        if found is None:
            found = _LOADED[key] = _load(cubin, entry, dynamic_shared, device(where))
    return found


def _load(cubin: bytes, entry: str, dynamic_shared: int, gpu: Device) -> LoadedKernel:
    if dynamic_shared > gpu.shared_per_block:
        raise DriverError(
            f"{entry} needs {dynamic_shared} bytes of shared memory, a CTA of {gpu.name} can have "
            f"{gpu.shared_per_block}"
        )
    cu = bindings()
    with current(gpu.ordinal):
        status, library = cu.cuLibraryLoadData(cubin, [], [], 0, [], [], 0)
        if status != 0:
            raise failure(f"cuLibraryLoadData of {entry} on {gpu.name}", status, _why_not(cubin, gpu))
        status, kernel = cu.cuLibraryGetKernel(library, entry.encode())
        if status != 0:
            missing = status == cu.CUresult.CUDA_ERROR_NOT_FOUND
            why = "the code has no kernel of that name" if missing else _why_not(cubin, gpu)
            raise failure(f"cuLibraryGetKernel of {entry} on {gpu.name}", status, why)
        # Libraries are of no device; that the code is not for this one shows when its function is asked for.
        status, function = cu.cuKernelGetFunction(kernel)
        if status != 0:
            raise failure(f"cuKernelGetFunction of {entry} on {gpu.name}", status, _why_not(cubin, gpu))
        return LoadedKernel(entry, gpu, dynamic_shared, kernel, function)


def _why_not(cubin: bytes, gpu: Device) -> str:
    """What is known of code that a driver refuses: versions, where they may be the reason."""
    found = _RELEASE.search(cubin)
    made = (
        f"the code was made by CUDA {int(found[1])}.{int(found[2])}"
        if found
        else "the code names no CUDA version"
    )
    try:
        known = driver_version()
    except DriverError:
        return made
    major, minor = gpu.compute_capability
    text = f"{made}, {driver_text()} runs it on compute capability {major}.{minor}"
    if found and (int(found[1]), int(found[2])) > known:
        text += "; update the driver, or assemble with the libraries of its version"
    return text


def _places(cu: Any, entry: str, kernel: Any) -> tuple[tuple[int, int], ...] | None:
    """Offset and size of each parameter of a kernel; None where the driver cannot be asked (before CUDA 12.4)."""
    places: list[tuple[int, int]] = []
    while True:
        try:
            status, offset, size = cu.cuKernelGetParamInfo(kernel, len(places))
        except RuntimeError:
            return None
        if status == cu.CUresult.CUDA_ERROR_INVALID_VALUE:  # there are no more
            return tuple(places)
        if status != 0:
            raise failure(f"cuKernelGetParamInfo of {entry}", status)
        places.append((int(offset), int(size)))


class LoadedKernel:
    """A kernel on one GPU.

    Attributes:
        entry: its name in the code.
        device: the GPU.
        dynamic_shared: bytes that each launch gives a CTA.
        registers: 32-bit registers of a thread.
        local_bytes: bytes of local memory of a thread.
        static_shared: bytes of shared memory that the code itself declares.
        threads_per_block: at most, by its registers and what it declares.
        places: offset and size of each parameter, in bytes, as the assembler placed them; None where the driver is too
            old to tell.
    """

    def __init__(self, entry: str, gpu: Device, dynamic_shared: int, kernel: Any, function: Any) -> None:
        cu = bindings()
        self.entry, self.device, self.dynamic_shared = entry, gpu, dynamic_shared
        self._kernel, self._function, self._ordinal = kernel, function, gpu.ordinal
        self._launch, self._current = cu.cuLaunchKernel, cu.cuCtxGetDevice
        kinds = cu.CUfunction_attribute
        if dynamic_shared > _STATIC:
            most = kinds.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            call("cuKernelSetAttribute", most, dynamic_shared, kernel, gpu.ordinal)

        def attribute(name: str) -> int:
            return int(
                call("cuKernelGetAttribute", getattr(kinds, f"CU_FUNC_ATTRIBUTE_{name}"), kernel, gpu.ordinal)
            )

        self.registers = attribute("NUM_REGS")
        self.local_bytes = attribute("LOCAL_SIZE_BYTES")
        self.static_shared = attribute("SHARED_SIZE_BYTES")
        self.threads_per_block = attribute("MAX_THREADS_PER_BLOCK")
        self.places = _places(cu, entry, kernel)

    def launch(self, grid: tuple[int, int, int], threads: int, arguments: int, stream: int = 0) -> None:
        """Launch `grid` CTAs of `threads` threads on a stream, and return at once.

        `arguments` is what `parameters.Frame.fill` gives; the driver has copied the parameters when this returns.

        Errors: DriverError with the launch and CUDA's error, which may be that of an earlier kernel of the device.
        """
        status, now = self._current()
        if status != 0 or int(now) != self._ordinal:
            with current(self._ordinal):
                self._start(grid, threads, arguments, stream)
        else:
            self._start(grid, threads, arguments, stream)

    def _start(self, grid: tuple[int, int, int], threads: int, arguments: int, stream: int) -> None:
        x, y, z = grid
        (status,) = self._launch(
            self._kernel, x, y, z, threads, 1, 1, self.dynamic_shared, stream, arguments, 0
        )
        if status != 0:
            raise self.failed(status, grid, threads)

    def prepare(
        self, grid: tuple[int, int, int], threads: int, frame: Frame, stream: int = 0
    ) -> Prepared | Deferred:
        """What launches as `launch` does each time it is started, by any thread.

        Pre-condition: `frame` is filled, is no thread's own (`ParameterBlock.frame`), and is not filled again.
        """
        calls = quick_calls()
        if calls is None:
            return Deferred(self, grid, threads, frame, stream)
        return Prepared(self, calls, grid, threads, frame, stream)

    @property
    def handle(self) -> int:
        """The driver's ``CUkernel``."""
        return int(self._kernel)

    def failed(self, status: Any, grid: tuple[int, int, int], threads: int) -> DriverError:
        """The error of a launch that gave `status`."""
        x, y, z = grid
        return failure(
            f"cuLaunchKernel of {self.entry} on {self.device.name}",
            result(status) if type(status) is int else status,
            f"{x} x {y} x {z} CTAs of {threads} threads (at most {self.threads_per_block}) with {self.registers} "
            f"registers, {self.dynamic_shared} bytes of dynamic and {self.static_shared} of static shared memory",
        )

    def blocks_per_multiprocessor(self, threads: int) -> int:
        """CTAs of `threads` threads that a multiprocessor holds at once; 0 where one is too large."""
        with current(self._ordinal):
            name = "cuOccupancyMaxActiveBlocksPerMultiprocessor"
            return int(call(name, self._function, threads, self.dynamic_shared))

    def __repr__(self) -> str:
        return f"LoadedKernel({self.entry} on {self.device.name} {self._ordinal}, {self.registers} registers)"
