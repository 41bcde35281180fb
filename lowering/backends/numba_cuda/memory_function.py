"""`MemoryFunction`: a program that works on arrays, as kernels call it: copies, and sequences of lowered calls.

Addresses go into inline assembly as integers, 32 bits in shared memory, and every instruction that touches memory is
volatile and clobbers it: numba's own loads, stores and barriers stay on their side of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from llvmlite import ir
from numba.cuda import cgutils, types
from numba.cuda.core.errors import TypingError
from numba.cuda.extending import intrinsic

from tilelayout import LayoutError

from ...control import GRID, Draw, While
from ...isa.protocols import CP_ASYNC
from ...program import Address, Buffer, Instr, Program, Registers, every
from ...window import Window
from .callable import KernelFunction
from .elements import get_element, set_element, zeros
from .emit import emit
from .fragment import of_registers
from .index import INDEX
from .memory import thread
from .memory_arguments import Memory, free_variables
from .shared import shared_array
from .waiting import commit_group, wait_group


def memory_function(program: Program, regions: Mapping[str, Any]) -> MemoryFunction:
    """A program over buffers for use in numba.cuda kernels.  No driver and no GPU are touched.

    Args:
        program: whose buffers and register groups have the roles of `regions`.
        regions: role -> region of a tile, or window, in the order in which they are arguments.

    Errors: LayoutError for tensor maps, parameters and run-time loops, which need a whole kernel.
    """
    return MemoryFunction(program, regions)


class MemoryFunction(KernelFunction):
    """``fragment = f(array)``, ``f(array, fragment)``, ``f(array, array)`` in a kernel, by all threads of the scope.

    Arguments are the operands in order, dst before src, and then integers.  An operand is

    - a tile in shared or global memory: a 1-d array that begins where the tile does.  Its elements lie where the tile's
      layout says, and it is aligned as the tile is, which `shared_array` sees to;
    - a window whose extents and strides are variables: the whole array, which knows them; else flat memory;
    - a tile in registers that is read, or written in part: a fragment.  What is written is returned.

    Integers, by position, are the run-time variables that are left, e.g. the stage that is copied to and where a box
    begins; `variables` has their names.  What tiles and windows promise of alignment and bounds, the kernel promises.
    Wrong arguments are a numba TypingError.

    Attributes, usable inside kernels:
        shared_array: ``shared_array() -> array`` for the one tile in shared memory, aligned; ``shared_array(n)`` has n
            stages, ``array[i]`` is one of them.  Only with one such tile.
        zeros_d: ``zeros_d() -> fragment`` of an operand D that is a fragment; likewise for each of them.
        get, set: elements of fragments, as of `DeviceFunction`.
        commit, wait: of asynchronous copies: ``commit()`` closes a group, ``wait(pending)`` waits for all but so many.

    And outside:
        program: the program.
        memory: the array arguments.
        variables: the names of the integers.
        types: role -> FragmentType of register operands.
    """

    def __init__(self, program: Program, regions: Mapping[str, Any]) -> None:
        super().__init__(program)
        if program.maps or program.parameters:
            names = ", ".join(x.name for x in (*program.maps, *program.parameters))
            raise LayoutError(
                "device_function", f"program {program.name} takes {names}, which only a launch gives"
            )
        for kind, what in ((While, "has a loop"), (Draw, "draws from a counter")):
            if any(isinstance(s, kind) for s in every(program.body)):
                raise LayoutError("device_function", f"program {program.name} {what}, as only a kernel does")
        touched = [s for s in every(program.body) if isinstance(s, Instr)]
        written = {b for s in touched if _writes(s) for b in _memory(s)}
        used = {b for s in touched for b in _memory(s)}
        buffers = {b.role: b for b in program.buffers if b in used}
        groups = {r.role: r for r in program.inputs}
        order = dict.fromkeys([*regions, *buffers, *groups])
        windows = {role: x for role, x in regions.items() if isinstance(x, Window)}
        self.arguments: list[Memory | Registers] = []
        for role in order:
            if role in buffers:
                b = buffers[role]
                self.arguments.append(Memory(role, b, windows.get(role), b in written))
            elif role in groups:
                self.arguments.append(groups[role])
        self.memory = tuple([a for a in self.arguments if isinstance(a, Memory)])
        self.types = {r.role: of_registers(r) for r in (*program.inputs, *program.outputs)}
        known = {name for m in self.memory for name in m.described}
        self.variables = tuple([n for n in free_variables(program, regions) if n not in known])
        shared = [m.buffer for m in self.memory if m.buffer.space == "shared"]
        if len(shared) == 1:
            self.shared_array = shared_array(shared[0])
        for role, kind in self.types.items():
            name = f"zeros_{role.lower()}"
            setattr(self, name, zeros(name, kind))
        self.get, self.set = get_element, set_element
        if any(i.protocol == CP_ASYNC for i in program.instructions):
            self.commit, self.wait = commit_group, wait_group
        self._intrinsic = self._make_intrinsic()

    def __repr__(self) -> str:
        found = ", ".join(self._parameters)
        result = ", ".join(str(of_registers(r)) for r in self.program.outputs)
        return f"<MemoryFunction {self.program.name}({found}) -> {result or 'nothing'}>"

    @property
    def _parameters(self) -> list[str]:
        shown = [str(a) if isinstance(a, Memory) else f"{a.role}: {of_registers(a)}" for a in self.arguments]
        return [*shown, *[f"{name}: integer" for name in self.variables]]

    def accept(self, given: Sequence[Any], keywords: Mapping[str, Any]) -> None:
        name = self.program.name
        self.check_target()
        wanted = f"{name}({', '.join(self._parameters)})"
        if keywords:
            raise TypingError(f"{wanted} takes its arguments by position")
        if len(given) != len(self.arguments) + len(self.variables):
            raise TypingError(f"{wanted} takes {len(self._parameters)} arguments, got {len(given)}")
        for argument, found in zip(self.arguments, given, strict=False):
            if isinstance(argument, Memory):
                argument.check(name, found)
            elif found != of_registers(argument):
                raise TypingError(f"{name}: {argument.role} is a {of_registers(argument)}, got {found}")
        for variable, found in zip(self.variables, given[len(self.arguments) :], strict=True):
            if not isinstance(types.unliteral(found), types.Integer):
                raise TypingError(f"{name}: {variable} is an integer, got {found}")

    def _make_intrinsic(self) -> Any:
        """The program under numba's interface for code generation.  Arguments have been accepted before."""
        outputs = [of_registers(r) for r in self.program.outputs]
        returned: Any = (
            types.void if not outputs else outputs[0] if len(outputs) == 1 else types.Tuple(outputs)
        )

        def typed(typingctx: Any, *given: Any) -> Any:
            found = types.StarArgTuple.from_types([types.unliteral(x) for x in given])

            def codegen(
                context: Any, builder: ir.IRBuilder, signature: Any, args: Sequence[ir.Value]
            ) -> ir.Value:
                values = [builder.extract_value(args[0], i) for i in range(len(given))]
                results = self._emit(context, builder, list(found), values)
                if len(results) > 1:
                    return context.make_tuple(builder, returned, results)
                return results[0] if results else context.get_dummy_value()

            return returned(found), codegen

        typed.__name__ = typed.__qualname__ = self.program.name
        return intrinsic(typed)

    def _emit(
        self, context: Any, builder: ir.IRBuilder, kinds: list[Any], values: list[ir.Value]
    ) -> list[ir.Value]:
        variables = thread(builder, self.program.warps) | _grid(builder)
        places: dict[Any, ir.Value] = {}
        fragments: dict[Registers, ir.Value] = {}
        for argument, kind, value in zip(self.arguments, kinds, values, strict=False):
            if not isinstance(argument, Memory):
                fragments[argument] = value
                continue
            view = context.make_array(kind)(context, builder, value)
            places[argument.buffer] = argument.begin(builder, view)
            variables.update(argument.values(builder, kind, view))
        given = len(self.arguments)
        for name, kind, value in zip(self.variables, kinds[given:], values[given:], strict=True):
            variables[name] = context.cast(builder, value, kind, types.int64)
        return emit(builder, self.program, [fragments[r] for r in self.program.inputs], places, variables)


def _grid(builder: ir.IRBuilder) -> dict[str, ir.Value]:
    """The CTA's place in the grid, and the grid."""
    found: dict[str, ir.Value] = {}
    for name, (register, _) in GRID.items():
        function = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.IntType(32), ()),
            f"llvm.nvvm.read.ptx.sreg.{register.lstrip('%')}",
        )
        found[name] = builder.zext(builder.call(function, ()), INDEX)
    return found


def _writes(s: Instr) -> bool:
    return s.instruction.stores or s.instruction.protocol == CP_ASYNC


def _memory(s: Instr) -> list[Buffer]:
    return [a.buffer for a in s.arguments if isinstance(a, Address)]


__all__ = ["MemoryFunction", "memory_function"]
