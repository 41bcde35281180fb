"""Devices for the tests of the GPU probe: one that gets something wrong, and a CUDA driver that executes PTX here."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from lowering.isa.record import Instruction, Place
from property_tests.gpu.probe.device import Machine
from property_tests.gpu.probe.kernel import MEMORY_BYTES
from property_tests.gpu.probe.rows import instructions
from property_tests.lowering.ptx_machine import PtxMachine

SHARED = 4096
"""Where shared memory begins, in its own address space."""


class Altered(Machine):
    """A device that changes what goes in, by operand, or D when it comes out."""

    def __init__(self, changes: Mapping[str, Callable[[Any], Any]], numerics: str = "exact") -> None:
        super().__init__(numerics=numerics)
        self.changes = changes

    def run(self, instruction: Instruction, values: Mapping[str, Any], memory: Any = None) -> dict[str, Any]:
        given = {k: self.changes[k](v.copy()) if k in self.changes else v for k, v in values.items()}
        out = super().run(instruction, given, memory)
        return {k: self.changes["out"](v.copy()) for k, v in out.items()} if "out" in self.changes else out


class WarpMachine(PtxMachine):
    """One CTA of a probe's kernel, whichever instruction it is about; shared memory is an array of its own."""

    def __init__(self, ptx: str, arrays: list[Any], warp: int, where: Any) -> None:
        super().__init__(ptx, arrays)
        self.registers["%ctaid.x"] = [warp] * self.threads
        self.registers["shared_memory"] = [SHARED] * self.threads
        self.shared = np.zeros(MEMORY_BYTES, np.uint8)
        self.known = instructions(where)

    def execute(self, opcode: str, operands: list[str]) -> None:
        if opcode == "bar.sync":
            return
        if opcode.endswith(".shared.b32"):
            self.move_shared(opcode, operands)
        elif opcode == "mov.b64" and operands[0].startswith("{"):
            low, high = operands[0].strip("{}").replace(" ", "").split(",")
            self.registers[low] = [x % 2**32 for x in self.registers[operands[1]]]
            self.registers[high] = [x >> 32 for x in self.registers[operands[1]]]
        elif opcode == "mov.b64":
            low, high = operands[1].strip("{}").replace(" ", "").split(",")
            pairs = zip(self.registers[low], self.registers[high], strict=True)
            self.registers[operands[0]] = [a | b << 32 for a, b in pairs]
        elif opcode == "mad.wide.u32":
            a, b = (self.value(x, "u32") for x in operands[1:3])
            self.registers[operands[0]] = [
                x * y + z for x, y, z in zip(a, b, self.value(operands[3], "u64"), strict=True)
            ]
        elif named := [i for i in self.known if i.mnemonic == opcode]:
            # Sparse ones differ in the selector, which stands in the text as it is.
            (found,) = [i for i in named if len(named) == 1 or i.template.endswith(f" {operands[-1]};")]
            self.instruction(found, operands)
        else:
            super().execute(opcode, operands)

    def move_shared(self, opcode: str, operands: list[str]) -> None:
        register, place = operands if opcode.startswith("ld") else operands[::-1]
        base, _, offset = place.strip("[]").partition("+")
        words = self.shared.view("<u4")
        at = [(x - SHARED + int(offset or 0)) // 4 for x in self.registers[base]]
        if opcode.startswith("ld"):
            self.registers[register] = [int(words[i]) for i in at]
        else:
            words[at] = self.registers[register]

    def instruction(self, found: Instruction, operands: list[str]) -> None:
        """By the record's meaning, on the registers that the text names where its template names operands."""
        spots = found.template.split(" ", 1)[1].rstrip(";").split(", ")
        values: dict[str, Any] = {}
        names = {
            spot.strip("[]{}"): text.strip("[]{}").replace(" ", "").split(",")
            for spot, text in zip(spots, operands, strict=True)
            if "{" in spot
        }
        for o in found.operands:
            held = np.array([self.registers[n] for n in names[o.name]], np.uint64).T if o.reads else None
            if o.kind == "shared" and held is not None:
                values[o.name] = Place(self.shared, held.astype(np.int64).T - SHARED)
            elif held is not None:
                words = np.ascontiguousarray(held).view("<u4") if o.kind == "f64" else held.astype(np.uint32)
                values[o.name] = words[None]
        for name, words in found.meaning(values).items():
            kind = next(o.kind for o in found.operands if o.name == name)
            held = np.ascontiguousarray(words[0]).view("<u8") if kind == "f64" else words[0]
            self.registers.update({n: [int(x) for x in held[:, i]] for i, n in enumerate(names[name])})


def fails(*_: Any) -> tuple[int]:
    """What a driver's function does once a kernel has failed."""
    return (719,)


@dataclass
class FakeDriver:
    """What `Gpu` needs of ``cuda.bindings.driver``, on host memory; modules are PTX text, executed here.

    `fails`: a function that fails, with that status from its `after`-th call on.
    """

    where: Any
    fails: str = ""
    after: int = 0

    CUdevice_attribute = SimpleNamespace(
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR=75, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR=76
    )

    def __post_init__(self) -> None:
        self.memory: dict[int, Any] = {}
        self.launches = 0

    def __getattribute__(self, name: str) -> Any:
        found = object.__getattribute__(self, name)
        if name.startswith("cu") and name == object.__getattribute__(self, "fails"):
            self.after -= 1
            return found if self.after >= 0 else fails
        return found

    def cuInit(self, flags: int) -> tuple[int]:
        return (0 * flags,)

    def cuDeviceGet(self, number: int) -> tuple[int, int]:
        return 0, number

    def cuDevicePrimaryCtxRetain(self, _: int) -> tuple[int, str]:
        return 0, "context"

    def cuCtxSetCurrent(self, context: str) -> tuple[int]:
        return (0 if context == "context" else 201,)

    def cuDeviceGetAttribute(self, kind: int, _: int) -> tuple[int, int]:
        return 0, {75: 9, 76: 0}[kind]

    def cuDeviceGetName(self, size: int, _: int) -> tuple[int, bytes]:
        return 0, b"a card" + bytes(size - 6)

    def cuDriverGetVersion(self) -> tuple[int, int]:
        return 0, 13000

    def cuModuleLoadData(self, address: int) -> tuple[int, str]:
        return 0, ctypes.string_at(address).decode()

    def cuModuleGetFunction(self, module: str, name: bytes) -> tuple[int, str]:
        return (0, module) if f".entry {name.decode()}(" in module else (500, "")

    def cuMemAlloc(self, size: int) -> tuple[int, int]:
        if size <= 0:
            return 1, 0
        held = np.full(size, 0xAA, np.uint8)
        self.memory[held.ctypes.data] = held
        return 0, held.ctypes.data

    def cuMemFree(self, pointer: int) -> tuple[int]:
        return (0 if self.memory.pop(pointer, None) is not None else 1,)

    def cuMemcpyHtoD(self, pointer: int, source: int, size: int) -> tuple[int]:
        self.memory[pointer][:size] = np.frombuffer(ctypes.string_at(source, size), np.uint8)
        return (0,)

    def cuMemcpyDtoH(self, target: int, pointer: int, size: int) -> tuple[int]:
        ctypes.memmove(target, self.memory[pointer].ctypes.data, size)
        return (0,)

    def cuLaunchKernel(self, text: str, *rest: Any) -> tuple[int]:
        warps, grid_y, grid_z, threads, block_y, block_z, dynamic, stream, arguments, extra = rest
        if (grid_y, grid_z, threads, block_y, block_z, dynamic, stream, extra) != (1, 1, 32, 1, 1, 0, 0, 0):
            return (1,)
        places = np.ctypeslib.as_array(ctypes.cast(arguments, ctypes.POINTER(ctypes.c_uint64)), (3,))
        pointers = [ctypes.c_uint64.from_address(int(place)).value for place in places]
        for warp in range(warps):
            machine = WarpMachine(text, [self.memory[p] for p in pointers], warp, self.where)
            for pointer, after in zip(pointers, machine.run(), strict=True):
                self.memory[pointer][:] = after
        self.launches += 1
        return (0,)

    def cuCtxSynchronize(self) -> tuple[int]:
        return (0,)
