"""Arrays in shared memory that are aligned as a tile needs it.

numba's ``cuda.shared.array`` aligns to the element unless its third argument says otherwise; matrix moves take lines
at multiples of 16 bytes, and the copy engine tiles at multiples of their swizzle's period.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

from llvmlite import ir
from numba.cuda import cgutils, types
from numba.cuda.core.errors import TypingError
from numba.cuda.extending import intrinsic

from ...program import Buffer
from .fragment import FragmentType

_SHARED = 3
_NUMBERS = count()


def shared_array(buffer: Buffer) -> Any:
    """``shared_array()``, inside kernels: a 1-d array that holds a buffer; ``shared_array(n)``: n of them, 2-d.

    Each call is an array of its own, of the type by which numba knows the elements (`FragmentType.array_types`).  In a
    kernel, TypingError for a number of stages that is no constant, or stages that would not be aligned all.
    """
    kind = FragmentType(buffer.dtype, 2, buffer.container).array_types[0]
    length = buffer.bytes * 8 // kind.bitwidth

    def typed(typingctx: Any, stages: Any = types.none) -> Any:
        single = isinstance(stages, types.NoneType | types.Omitted)
        if not single and not isinstance(stages, types.IntegerLiteral):
            raise TypingError(f"shared_array: the number of stages must be a constant, got {stages}")
        shape = (length,) if single else (stages.literal_value, length)
        if min(shape) < 1:
            raise TypingError(f"shared_array: {shape[0]} stages of {buffer.name}")
        if len(shape) > 1 and buffer.bytes % buffer.alignment:
            raise TypingError(
                f"shared_array: stages of {buffer.bytes} bytes are not all aligned to the {buffer.alignment} of "
                f"{buffer.name}; make the tile longer"
            )
        result = types.Array(kind, len(shape), "C")

        def codegen(
            context: Any, builder: ir.IRBuilder, signature: Any, args: Sequence[ir.Value]
        ) -> ir.Value:
            return _declared(context, builder, result, shape, buffer)

        return result(stages), codegen

    typed.__name__ = typed.__qualname__ = "shared_array"
    return intrinsic(typed)


def _declared(
    context: Any, builder: ir.IRBuilder, array_type: Any, shape: tuple[int, ...], buffer: Buffer
) -> ir.Value:
    """An array in the kernel's own shared memory, as numba's value."""
    size = array_type.dtype.bitwidth // 8
    elements = 1
    for n in shape:
        elements *= n
    place = cgutils.add_global_variable(
        builder.module,
        ir.ArrayType(ir.IntType(8), elements * size),
        f"tile_{buffer.name}_{next(_NUMBERS)}",
        _SHARED,
    )
    place.align = buffer.alignment
    place.initializer = ir.Constant(place.type.pointee, ir.Undefined)
    data = builder.addrspacecast(place, ir.IntType(8).as_pointer(), "generic")
    strides = [size]
    for n in reversed(shape[1:]):
        strides.insert(0, strides[0] * n)

    def constants(values: Sequence[int]) -> list[ir.Value]:
        return [context.get_constant(types.intp, x) for x in values]

    array = context.make_array(array_type)(context, builder)
    context.populate_array(
        array,
        data=builder.bitcast(data, array.data.type),
        shape=constants(shape),
        strides=constants(strides),
        itemsize=context.get_constant(types.intp, size),
        meminfo=None,
    )
    return array._getvalue()
