"""`DeviceFunction`: what a kernel calls, and the helpers that belong to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from llvmlite import ir
from numba.cuda import types
from numba.cuda.core.errors import TypingError
from numba.cuda.extending import intrinsic

from ...program import Program
from ...tile import Tile
from .callable import KernelFunction
from .elements import get_element, set_element, zeros
from .emit import check, emit
from .fragment import of_registers, of_tile
from .memory import load, store


def device_function(core: Program, tiles: Mapping[str, Tile]) -> DeviceFunction:
    """A register program for use in numba.cuda kernels.  No driver and no GPU are touched.

    Args:
        core: a program over registers with one output.
        tiles: the operands' tiles by role ("A", "B", "C", "D").

    Errors: LayoutError for a program over buffers, or a layout that does not say which element a lane holds.
    """
    return DeviceFunction(core, tiles)


class DeviceFunction(KernelFunction):
    """``d = f(a, b)`` or ``d = f(a, b, c)`` inside a kernel: a program on fragments, all lanes together.

    Arguments follow `roles`.  A program that reads no C takes one all the same, and ignores it.  Wrong arguments, and a
    kernel that is compiled for a target without one of the program's instructions, are a numba TypingError.

    Attributes, each usable inside kernels as ``f.name`` or under a name of its own:
        load_a, load_b, load_c, load_d: ``load(array) -> fragment``.  The array has the tile's rank and at least its
            extents, and one of the fragment's `array_types`: float16 (or its bits as uint16), bfloat16 as uint16 bits,
            8-bit floats as uint8 bits, int4 packed in uint8 along the last dimension, and so on.
        store: ``store(array, d)``.
        zeros_d: ``zeros_d() -> fragment``.
        get: ``get(fragment, slot)``: the element, or its bits where numba has no type for it or it is a float16
            (`FragmentType.value_type`).  A slot is a constant, and counts elements: for 16-bit types two share a word.
        set: ``set(fragment, slot, value) -> fragment``.

    And outside:
        program: the program.
        roles: the roles of the arguments, in order.
        types: role -> FragmentType.
    """

    def __init__(self, core: Program, tiles: Mapping[str, Tile]) -> None:
        output = check(core)
        super().__init__(core)
        self.roles = tuple([r.role for r in core.inputs])
        self.types = {r.role: of_registers(r) for r in (*core.inputs, output)}
        self.types = {
            role: self.types.get(role) or of_tile(tile) for role, tile in tiles.items()
        } | self.types
        self.types.setdefault("C", self.types[output.role])
        for role, tile in {"C": tiles[output.role], **tiles}.items():
            name = f"load_{role.lower()}"
            setattr(self, name, load(name, tile, self.types[role], core.warps))
        self.store = store("store", tiles[output.role], self.types[output.role], core.warps)
        self.zeros_d = zeros("zeros_d", self.types[output.role])
        self.get = get_element
        self.set = set_element
        self._output = self.types[output.role]
        self._intrinsic = self._make_intrinsic()

    def __repr__(self) -> str:
        arguments = ", ".join(f"{role.lower()}: {self.types[role]}" for role in self.roles)
        return f"<DeviceFunction {self.program.name}({arguments}) -> {self._output}>"

    def accept(self, given: Sequence[Any], keywords: Mapping[str, Any]) -> None:
        name = self.program.name
        self.check_target()
        expected = ", ".join(f"{role} {self.types[role]}" for role in self.roles)
        if keywords:
            raise TypingError(f"{name} takes its fragments by position: {expected}")
        roles = self._roles_of(len(given))
        if roles is None:
            raise TypingError(f"{name} takes {len(self.roles)} fragments ({expected}), got {len(given)}")
        for role, found in zip(roles, given, strict=True):
            if found != self.types[role]:
                raise TypingError(f"{name}: {role} is a {self.types[role]}, got {found}")

    def _roles_of(self, count: int) -> tuple[str, ...] | None:
        """The roles of that many arguments; None where the count is wrong."""
        if count == len(self.roles):
            return self.roles
        with_c = (*self.roles[:2], "C", *self.roles[2:])
        return (
            with_c
            if self.roles[:2] == ("A", "B") and "C" not in self.roles and count == len(with_c)
            else None
        )

    def _make_intrinsic(self) -> Any:
        """The program under numba's interface for code generation.  Arguments have been accepted before."""

        def typed(typingctx: Any, *fragments: Any) -> Any:
            roles = self._roles_of(len(fragments)) or ()

            def codegen(
                context: Any, builder: ir.IRBuilder, signature: Any, args: Sequence[ir.Value]
            ) -> ir.Value:
                given = {role: builder.extract_value(args[0], i) for i, role in enumerate(roles)}
                (found,) = emit(builder, self.program, [given[role] for role in self.roles])
                return found

            return self._output(types.StarArgTuple.from_types(fragments)), codegen

        typed.__name__ = typed.__qualname__ = self.program.name
        return intrinsic(typed)
