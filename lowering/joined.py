"""Several lowered calls as one kernel that can be printed, run, assembled and explained, as one lowered call can.

`compose.sequence` joins the programs; here the backends are put to them.  No variant may enter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tilelayout import LayoutError
from tilelayout.errors import nearest

from . import compose
from .api import Lowered
from .compose import BARRIER
from .program import Address, Instr
from .target import Target

if TYPE_CHECKING:
    from .backends.assemble import Cubin
    from .backends.shared_memory import SharedMemory


def sequence(parts: Iterable[Lowered | Instr], name: str = "kernel") -> LoweredSequence:
    """One kernel of one CTA that carries out lowered calls, and barriers (`BARRIER`), in order.

    Two calls that name the same tile work on the same registers or the same memory.  Tiles in global memory become the
    kernel's parameters, in order of first mention, each as its layout says; tiles in shared memory and registers
    hold nothing at the beginning.

    Errors: LayoutError for calls lowered for different targets, scopes or numbers of warps, for different tiles of one
    name, for a tile whose registers two calls number differently, for what is no lowered call, and for a kernel of no
    calls.

    >>> from lowering import Tile, copy, lower
    >>> from lowering.fragments import A_FRAG
    >>> from tilelayout import S, TileLayout
    >>> memory = [Tile(n, (16, 16), "float16", TileLayout(S[16, 16]), "global") for n in ("x", "y")]
    >>> held = Tile("held", (16, 16), "float16", A_FRAG)
    >>> calls = [copy(held, memory[0]), copy(memory[1], held)]
    >>> kernel = sequence([lower(c, target="sm_80", scope="warp") for c in calls])
    >>> kernel
    <LoweredSequence kernel: 2 calls and no barrier, x -> y, for sm_80 in 32 threads>
    >>> import numpy as np
    >>> x = np.arange(256, dtype=np.float16).reshape(16, 16)
    >>> bool((kernel.run(x=x)["y"] == x).all())
    True
    """
    given = tuple(parts) if isinstance(parts, Iterable) else (parts,)
    for k, part in enumerate(given):
        if not isinstance(part, Lowered | Instr):
            raise LayoutError("sequence", f"part {k} is {part!r}", "lowered calls, lower(...), and BARRIER")
    found = compose.sequence(given, name)
    calls = [p for p in given if isinstance(p, Lowered)]
    for call in calls:
        if call.context.target != calls[0].context.target:
            raise LayoutError(
                "sequence",
                f"{call.call} is lowered for {call.context.target}, {calls[0].call} for {calls[0].context.target}",
            )
    return LoweredSequence(found.program, found.tiles, found.warp_axis, given)


@dataclass(frozen=True, eq=False, repr=False)
class LoweredSequence(compose.Sequence):
    """A whole kernel of lowered calls, with its text, its machine code and its results.

    ``print(kernel)`` shows its steps.  The rest is made when it is first asked for: ``ptx`` and ``cuda`` text,
    ``cubin``, ``run`` on the reference machine.

    Attributes:
        parts: the lowered calls and barriers that it was made of.
    """

    parts: tuple[Lowered | Instr, ...] = field(default=())

    @property
    def calls(self) -> tuple[Lowered, ...]:
        """The lowered calls, in order."""
        return tuple([p for p in self.parts if isinstance(p, Lowered)])

    @property
    def target(self) -> Target:
        """The architecture that all calls are lowered for."""
        return self.calls[0].context.target

    def __str__(self) -> str:
        return str(self.program)

    def __repr__(self) -> str:
        given = ", ".join(n for n in self.memory if n in self.program.loaded)
        return (
            f"<LoweredSequence {self.program.name}: {self._counted()}, {given or 'nothing'} -> "
            f"{', '.join(self.results) or 'nothing'}, for {self.target} in {self.threads} threads>"
        )

    def _counted(self) -> str:
        calls, barriers = len(self.calls), self.parts.count(BARRIER)
        return f"{calls} call{'s' * (calls != 1)} and {barriers or 'no'} barrier{'s' * (barriers > 1)}"

    # --- memory ---------------------------------------------------------------------------------

    @cached_property
    def memory(self) -> tuple[str, ...]:
        """The names of the tiles in global memory: the kernel's parameters, in order."""
        return tuple([b.role for b in self.program.buffers if b.space == "global"])

    @cached_property
    def results(self) -> tuple[str, ...]:
        """The names of the tiles in global memory that the kernel stores to, in the order of the parameters."""
        stored = {
            a.buffer.role
            for step in self.program.steps
            if step.instruction.stores
            for a in step.arguments
            if isinstance(a, Address)
        }
        return tuple([name for name in self.memory if name in stored])

    @cached_property
    def shared_memory(self) -> SharedMemory:
        """How much shared memory it takes, and what of it a launch must give (``.dynamic``, in bytes)."""
        from .backends.shared_memory import SharedMemory

        return SharedMemory.of(self.program)

    # --- text and machine code ------------------------------------------------------------------

    @cached_property
    def ptx(self) -> str:
        """A PTX module with the kernel; it assembles as it is."""
        from .backends.ptx import ptx_module

        return ptx_module(self.program, self.target)

    @cached_property
    def cuda(self) -> str:
        """CUDA C++ of the kernel without includes: a helper per instruction, and the kernel."""
        from .backends.cuda_program import cuda_program

        return cuda_program(self.program)

    @cached_property
    def cubin(self) -> Cubin:
        """The kernel's machine code, assembled here (no GPU needed); spills and local memory are refused."""
        from .backends.assemble import assemble

        return assemble(self.ptx, self.target)

    @cached_property
    def device_function(self) -> Any:
        """For numba.cuda: all of it as one function for kernels of one's own, see `backends.numba_cuda.MemoryFunction`.

        Tiles in memory are arrays, in order of first mention.  Tiles in registers that are read before they are written
        are fragments, behind or between them in that order; those that are written last and not read again are
        returned.
        """
        from .backends import numba_cuda

        regions: dict[str, Any] = {}
        for call in self.calls:
            for _, region in call.call.operands():
                regions.setdefault(region.tile.name, region)
        return numba_cuda.memory_function(compose.as_function(self.program), regions)

    # --- running --------------------------------------------------------------------------------

    def run(
        self, arrays: Mapping[str, Any] | None = None, /, *, numerics: str = "exact", **named: Any
    ) -> dict[str, Any]:
        """Execute on the reference machine (any CPU).

        Args:
            arrays, named: by the name of a tile in global memory, in the tile's shape, of its type or one that
                `Lowered.run` would convert.  What the kernel only stores to may be left out, and holds NaN (-1 of
                integers) before.
            numerics: how products are added up, as for `Lowered.run`.

        Returns the tiles that the kernel stores to, by name; inputs stay as they were.
        Errors: LayoutError for a name that is no tile in global memory, an array that is missing or does not fit, or a
        model that is not known; MachineError if the program reads what holds nothing, or what another thread has
        written since the last barrier.
        """
        from .backends.reference import as_operand, run_tiles

        given = {name: x for name, x in {**(arrays or {}), **named}.items() if x is not None}
        for name in given:
            if name not in self.memory:
                raise LayoutError("run", self._refused(name), f"it takes {', '.join(self.memory)}")
        missing = [
            n for n in self.memory if n in self.program.loaded and n not in given and n not in self.results
        ]
        if missing:
            raise LayoutError("run", f"{', '.join(missing)} is read and was not given")
        checked = {name: as_operand(x, self.tiles[name], name) for name, x in given.items()}
        found = run_tiles(self.program, self.tiles, checked, self.warp_axis, numerics)
        return {name: found[name] for name in self.results}

    def _refused(self, name: str) -> str:
        tile = self.tiles.get(name)
        if tile is None:
            return f"the kernel has no tile {name!r}, {nearest(name, list(self.memory))}"
        return f"{name} is in {tile.scope} memory, which holds nothing when the kernel begins"

    # --- explaining -----------------------------------------------------------------------------

    def explain(self, assembled: bool = False) -> str:
        """Each call with its variant and how each kind of its accesses meets the banks; shared memory; registers.

        Args:
            assembled: give registers, local memory and size of the machine code too, which is assembled for it.  Local
                memory is told here, where `cubin` refuses it.

        Why other variants declined a call is in its own ``calls[i].explain()``.
        """
        lines = [f"{self.program.name}: {self._counted()}, for {self.target} in {self.threads} threads"]
        number = 0
        for part in self.parts:
            if isinstance(part, Instr):
                lines.append(f"     {part.instruction.mnemonic}")
            else:
                number += 1
                lines += _call_lines(number, part)
        lines += _shared_lines(self.shared_memory)
        peak = self.program.peak_registers
        lines.append(f"  registers: {peak} of a thread hold data at once; addresses come on top")
        if assembled:
            lines.append(self._machine_code())
        return "\n".join(lines)

    def _machine_code(self) -> str:
        from .backends.assemble import assemble

        cubin = assemble(self.ptx, self.target, allow_spills=True)
        local = f"{cubin.local_bytes} bytes of local memory" if cubin.local_bytes else "no local memory"
        return f"  machine code: {cubin.registers} registers and {local} a thread, {len(cubin.data)} bytes"


def _call_lines(number: int, part: Lowered) -> list[str]:
    """A call, its variant, and its accesses to shared memory by instruction, tile and degree of conflict."""
    from .backends.banks import shared_accesses

    used = part.instructions or tuple([i.name for i in part.program.instructions])
    lines = [f"{number:4} {part.call}", f"       {part.variant}: {', '.join(used)}"]
    kinds = [(a.instruction, a.buffer, a.degree) for a in shared_accesses(part.program)]
    for kind in dict.fromkeys(kinds):
        name, buffer, degree = kind
        conflicts = "no bank conflicts" if degree == 1 else f"{degree}-way bank conflicts"
        lines.append(f"       {kinds.count(kind)} of {name} on {buffer}: {conflicts}")
    return lines


def _shared_lines(shared: SharedMemory) -> list[str]:
    """The arrays in shared memory.  Declared ones are placed by the assembler, those in dynamic memory here."""
    if not shared.offsets:
        return ["  shared memory: none"]
    kind = "dynamic, which the launch gives" if shared.dynamic else "in declared arrays"
    lines = [f"  shared memory: {shared.bytes} bytes {kind}"]
    for b, begin in shared.offsets.items():
        where = f" from byte {begin}" if shared.dynamic else ""
        lines.append(f"    {b.role}: {b.bytes} bytes{where}, {b.dtype}, aligned to {b.alignment}")
    return lines


__all__ = ["BARRIER", "LoweredSequence", "sequence"]
