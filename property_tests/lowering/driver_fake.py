"""A CUDA driver that only notes its calls, in the place of ``cuda.bindings.driver``; arrays that no library made."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from typing import Any, ClassVar, NamedTuple

from lowering.backends.driver import (
    bindings,
    devices,
    module,
    prepared,
    readers,
    sight,
    streams,
    tensor_map,
)


class CUresult(IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_VALUE = 1
    CUDA_ERROR_NO_DEVICE = 100
    CUDA_ERROR_INVALID_CONTEXT = 201
    CUDA_ERROR_NO_BINARY_FOR_GPU = 209
    CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222
    CUDA_ERROR_NOT_FOUND = 500
    CUDA_ERROR_LAUNCH_FAILED = 719


OK = CUresult.CUDA_SUCCESS


SILENT = {
    "cuInit",
    "cuLaunchKernel",
    "cuKernelSetAttribute",
    "cuEventRecord",
    "cuStreamWaitEvent",
    "cuEventDestroy",
}
"""Calls that give nothing but their status."""


class Names:
    """An enumeration that has every name: its members are their names."""

    def __getattr__(self, name: str) -> str:
        return name


class Map:
    """What ``cuTensorMapEncodeTiled`` gives: 128 bytes at an address."""

    def __init__(self, content: bytes) -> None:
        self.memory = ctypes.create_string_buffer(content, 128)

    def getPtr(self) -> int:  # the bindings' name
        return ctypes.addressof(self.memory)


class Driver:
    """Two GPUs of capability 9.0; the thread's context is that of `current`, None for none."""

    CUresult = CUresult
    CUdevice_attribute = CUfunction_attribute = CUpointer_attribute = CUtensorMapDataType = Names()
    CUtensorMapInterleave = CUtensorMapSwizzle = CUtensorMapL2promotion = CUtensorMapFloatOOBfill = Names()
    CUevent_flags = Names()
    cuuint64_t = cuuint32_t = int

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.fails: dict[str, CUresult] = {}
        self.lacks: set[str] = set()
        self.current: int | None = 0
        self.stack: list[int | None] = []
        self.places = [(0, 8), (8, 4), (48, 128)]
        self.capability = (9, 0)
        self.answers: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("cu"):
            raise AttributeError(name)

        def function(*arguments: Any) -> Any:
            if name in self.lacks:
                raise RuntimeError(f'Function "{name}" not found')
            self.calls.append((name, *arguments))
            answer = self.answer(name, *arguments)
            return (self.fails[name], *[None] * (len(answer) - 1)) if name in self.fails else answer

        return function

    def answer(self, name: str, *a: Any) -> tuple[Any, ...]:
        if name in self.answers:
            return OK, self.answers[name]
        match name:
            case "cuCtxGetDevice":
                return (
                    (OK, self.current)
                    if self.current is not None
                    else (CUresult.CUDA_ERROR_INVALID_CONTEXT, None)
                )
            case "cuGetProcAddress":
                return OK, 0, "not found"
            case "cuCtxPushCurrent":
                self.stack.append(self.current)
                self.current = a[0]
                return (OK,)
            case "cuCtxPopCurrent":
                self.current = self.stack.pop()
                return OK, None
            case "cuDevicePrimaryCtxRetain" | "cuDeviceGet":
                return OK, a[0]
            case "cuDeviceGetCount":
                return OK, 2
            case "cuDeviceGetName":
                return OK, b"NVIDIA Fake" + bytes(20)
            case "cuDeviceGetAttribute":
                major, minor = self.capability
                known = {"COMPUTE_CAPABILITY_MAJOR": major, "COMPUTE_CAPABILITY_MINOR": minor}
                return OK, known.get(a[0].removeprefix("CU_DEVICE_ATTRIBUTE_"), 100_000)
            case "cuDriverGetVersion":
                return OK, 13000
            case "cuGetErrorString":
                return OK, f"what {a[0].name[5:].lower()} means".encode()
            case "cuKernelGetParamInfo":
                return (
                    (OK, *self.places[a[1]])
                    if a[1] < len(self.places)
                    else (CUresult.CUDA_ERROR_INVALID_VALUE, 0, 0)
                )
            case "cuKernelGetAttribute":
                return OK, {"CU_FUNC_ATTRIBUTE_NUM_REGS": 40}.get(a[0], 1024)
            case "cuPointerGetAttribute":
                return OK, a[1] >> 40
            case "cuTensorMapEncodeTiled":
                return OK, Map(bytes([len(self.of(name)) % 256]) * 128)
            case _ if name in SILENT:
                return (OK,)
            case _:
                return OK, f"{name} handle"

    def of(self, name: str) -> list[tuple[Any, ...]]:
        """The arguments of the calls of a function."""
        return [c[1:] for c in self.calls if c[0] == name]


class Launch(NamedTuple):
    """A launch as the driver sees it; `parameters` are what their addresses point to, of the sizes asked for."""

    kernel: int
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared: int
    stream: int
    parameters: tuple[bytes, ...]


class TellingDriver(Driver):
    """A driver that tells the addresses of its functions, and reads what a launch points to, by both ways of launching.

    Attributes:
        sizes: bytes of each parameter of a kernel.
        launches: what was launched.
    """

    def __init__(self, sizes: Sequence[int] = ()) -> None:
        super().__init__()
        self.sizes, self.launches = tuple(sizes), list[Launch]()
        self.answers["cuLibraryGetKernel"] = 4711
        c_int, pointer = ctypes.c_int, ctypes.c_void_p
        self.functions: dict[str, Any] = {
            "cuLaunchKernelEx": ctypes.CFUNCTYPE(c_int, pointer, pointer, pointer, pointer)(self.launch_ex),
            "cuCtxGetDevice": ctypes.CFUNCTYPE(c_int, ctypes.POINTER(c_int))(self.ask),
        }

    def answer(self, name: str, *a: Any) -> tuple[Any, ...]:
        if name == "cuGetProcAddress":
            function = self.functions.get(a[0].decode())
            return OK, ctypes.cast(function, ctypes.c_void_p).value if function else 0, "status"
        if name == "cuLaunchKernel":
            kernel, *sizes, shared, stream, arguments, _ = a
            self.note(kernel, sizes, shared, stream, arguments)
        return super().answer(name, *a)

    def note(self, kernel: int, sizes: Sequence[int], shared: int, stream: int, arguments: int) -> None:
        addresses = (ctypes.c_size_t * len(self.sizes)).from_address(arguments)
        found = tuple([ctypes.string_at(x, size) for x, size in zip(addresses, self.sizes, strict=True)])
        self.launches.append(Launch(kernel, tuple(sizes[:3]), tuple(sizes[3:]), shared, stream or 0, found))

    def launch_ex(self, config: int, kernel: int, arguments: int, extra: int | None) -> int:
        """``cuLaunchKernelEx``: its structure is written out here as cuda.h has it."""
        self.calls.append(("cuLaunchKernelEx",))
        *sizes, shared = (ctypes.c_uint * 7).from_address(config)
        stream, attributes = (ctypes.c_size_t * 2).from_address(config + 32)
        assert (attributes, ctypes.c_uint.from_address(config + 48).value, extra) == (0, 0, None)
        if "cuLaunchKernelEx" in self.fails:
            return int(self.fails["cuLaunchKernelEx"])
        self.note(kernel, sizes, shared, stream, arguments)
        return 0

    def ask(self, where: Any) -> int:
        """``cuCtxGetDevice``."""
        self.calls.append(("cuCtxGetDevice",))
        if self.current is None:
            return int(CUresult.CUDA_ERROR_INVALID_CONTEXT)
        where[0] = self.current
        return 0


@contextmanager
def installed(driver: Any) -> Iterator[Any]:
    """The driver is this one meanwhile; nothing that was remembered of another is found."""
    before = sys.modules.get("cuda.bindings.driver")
    sys.modules["cuda.bindings.driver"] = driver
    forget()
    try:
        yield driver
    finally:
        if before is None:
            del sys.modules["cuda.bindings.driver"]
        else:
            sys.modules["cuda.bindings.driver"] = before
        forget()


def forget() -> None:
    for remembered in (
        bindings.bindings, devices._device, devices.primary_context, devices._management, tensor_map.encoder,
        streams.torch_stream, streams.cupy_stream, readers.is_torch, readers.is_cupy, bindings.entry_point,
        prepared.quick_calls,
    ):  # fmt: skip
        remembered.cache_clear()
    module._LOADED.clear()
    sight.READERS.clear()


# --- arrays -------------------------------------------------------------------------------------------------------


class Tensor:
    """A torch tensor as far as a launch looks at one."""

    class Kind(str):
        """torch's types, which name themselves."""

    class Where:
        def __init__(self, kind: str) -> None:
            self.type = kind

        def __str__(self) -> str:
            return self.type

    kinds: ClassVar[dict[str, Kind]] = {}
    layout = "torch.strided"

    def __init__(
        self, dtype: str, shape: tuple[int, ...], strides: tuple[int, ...], pointer: int, device: int = 0
    ) -> None:
        self.dtype = self.kinds.setdefault(dtype, self.Kind(f"torch.{dtype}"))
        self.shape, self._strides, self._pointer, self._device = shape, strides, pointer, device
        self.device = self.Where("cpu" if device < 0 else "cuda")
        self.is_cuda, self.negated, self.broken = device >= 0, False, False

    def stride(self) -> tuple[int, ...]:
        if self.broken:
            raise RuntimeError("sparse tensors do not have strides")
        return self._strides

    def data_ptr(self) -> int:
        return self._pointer

    def get_device(self) -> int:
        return self._device

    def is_neg(self) -> bool:
        return self.negated


Tensor.__module__ = "torch"


class Interface:
    """An array with ``__cuda_array_interface__`` and nothing else."""

    def __init__(self, **interface: Any) -> None:
        base = {"shape": (4, 6), "typestr": "<f4", "data": (1 << 12, False), "version": 3}
        self.__cuda_array_interface__ = {k: v for k, v in {**base, **interface}.items() if v is not ...}


def cupy_array(
    dtype: Any, shape: tuple[int, ...], strides: tuple[int, ...], pointer: int, device: int = 0
) -> Any:
    """A cupy array as far as a launch looks at one; strides in bytes."""
    import numpy as np

    kind = type("ndarray", (), {"__module__": "cupy"})
    memory = type("MemoryPointer", (), {"ptr": pointer, "device_id": device})
    x = kind()
    x.data, x.dtype, x.shape, x.strides = memory, np.dtype(dtype), shape, strides
    return x
