"""Who executes an instruction: a GPU through the CUDA driver, or the record's own meaning."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Protocol

import numpy as np

from lowering.backends.assemble import assemble
from lowering.isa.record import Instruction, Place
from lowering.target import TARGETS, Target, target

from .kernel import MEMORY_BYTES, module, uses_memory, words_in, words_out

POISON = 0xDEADBEEF
"""What output registers hold before the kernel runs."""

Values = Mapping[str, Any]


class Device(Protocol):
    """Executes one instruction on many warps at once."""

    target: Target
    numerics: str
    """The name of the model that it should add by."""

    def run(self, instruction: Instruction, values: Values, memory: Any = None) -> dict[str, Any]:
        """The registers that it writes, by operand: uint32 ``[warps, 32, words]``.

        `values`: those it reads, of that form; addresses (bytes) are ``[warps, 32, 1]``.  `memory`: uint8 ``[warps,
        MEMORY_BYTES]``, changed in place.
        """
        ...


class Machine:
    """The records' meanings as a device, under a model of numerics."""

    def __init__(self, where: str = "sm_90a", numerics: str = "exact") -> None:
        self.target, self.numerics = target(where), numerics
        self.card, self.driver_version = "the reference meaning", ""

    def run(self, instruction: Instruction, values: Values, memory: Any = None) -> dict[str, Any]:
        given: dict[str, Any] = dict(values)
        for o in instruction.operands:
            if o.kind == "shared":
                warps: Any = np.arange(int(memory.shape[0]))[:, None]
                given[o.name] = Place(memory.reshape(-1), warps * MEMORY_BYTES + values[o.name][..., 0])
        return instruction.meaning({**given, "numerics": self.numerics})


class GpuError(RuntimeError):
    """A call of the driver failed; the context may be unusable from there on."""


class Gpu:
    """GPU 0.  `driver` is the module ``cuda.bindings.driver``, or what stands for it in a test.

    Errors: GpuError from every call of the driver that fails.
    """

    def __init__(self, driver: Any = None) -> None:
        if driver is None:
            driver = import_module("cuda.bindings.driver")
        self._driver: Any = driver
        self._functions: dict[Instruction, Any] = {}
        self._call("cuInit", 0)
        device = self._call("cuDeviceGet", 0)
        self._call("cuCtxSetCurrent", self._call("cuDevicePrimaryCtxRetain", device))
        kinds: Any = driver.CUdevice_attribute
        major, minor = (
            int(self._call("cuDeviceGetAttribute", kind, device))
            for kind in (
                kinds.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                kinds.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
            )
        )
        name = f"sm_{10 * major + minor}"
        self.target, self.numerics = target(f"{name}a" if f"{name}a" in TARGETS else name), name
        self.card = self._call("cuDeviceGetName", 128, device).split(b"\0")[0].decode()
        self.driver_version = str(self._call("cuDriverGetVersion"))

    def run(self, instruction: Instruction, values: Values, memory: Any = None) -> dict[str, Any]:
        function = self._functions.get(instruction)
        if function is None:
            function = self._functions[instruction] = self._load(instruction)
        read = [values[o.name] for o in instruction.operands if words_in(o)]
        inputs = np.ascontiguousarray(np.concatenate(read, axis=-1).astype(np.uint32))
        warps = inputs.shape[0]
        written = [o for o in instruction.operands if o.writes]
        outputs = np.full((warps, 32, sum(map(words_out, written))), POISON, np.uint32)
        buffers = [inputs, outputs, memory if uses_memory(instruction) else np.zeros(1, np.uint32)]
        self._launch(function, warps, buffers)
        if outputs.size and (outputs == POISON).all(axis=(1, 2)).any():
            raise GpuError(f"{instruction.name}: a warp wrote nothing")
        found: dict[str, Any] = {}
        for o in written:
            found[o.name], outputs = np.split(outputs, [o.words], axis=-1)
        return found

    def _load(self, instruction: Instruction) -> Any:
        """The kernel around the instruction; assembled by the driver where nvJitLink's cubin is not to be had."""
        text = module(instruction, self.target)
        ptx = text.encode() + b"\0"
        try:
            loaded = self._load_image(assemble(text, self.target, allow_spills=True).data)
        except (ImportError, GpuError):
            loaded = self._load_image(ptx)
        return self._call("cuModuleGetFunction", loaded, b"kernel")

    def _load_image(self, image: bytes) -> Any:
        held = np.frombuffer(image, np.uint8)
        return self._call("cuModuleLoadData", held.ctypes.data)

    def _launch(self, function: Any, warps: int, buffers: list[Any]) -> None:
        """Copies in, one CTA a warp, copies out; `buffers` are the kernel's arguments, in order."""
        sizes = [max(4, b.nbytes) for b in buffers]
        pointers = [self._call("cuMemAlloc", size) for size in sizes]
        try:
            for pointer, buffer in zip(pointers, buffers, strict=True):
                if buffer.nbytes:
                    self._call("cuMemcpyHtoD", pointer, buffer.ctypes.data, buffer.nbytes)
            held = [np.array([int(p)], np.uint64) for p in pointers]
            arguments = np.array([h.ctypes.data for h in held], np.uint64)
            self._call("cuLaunchKernel", function, warps, 1, 1, 32, 1, 1, 0, 0, arguments.ctypes.data, 0)
            self._call("cuCtxSynchronize")
            for pointer, buffer in zip(pointers[1:], buffers[1:], strict=True):
                if buffer.nbytes:
                    self._call("cuMemcpyDtoH", buffer.ctypes.data, pointer, buffer.nbytes)
        finally:
            for pointer in pointers:
                self._driver.cuMemFree(pointer)

    def _call(self, name: str, *arguments: Any) -> Any:
        """What the driver's function gives behind its status."""
        status, *rest = getattr(self._driver, name)(*arguments)
        if int(status):
            raise GpuError(f"{name} fails: {status!r}")
        return rest[0] if rest else None
