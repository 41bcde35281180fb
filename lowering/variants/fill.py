"""``fill`` of a tile in registers with one number: variant ``fill.registers``."""

from __future__ import annotations

from tilelayout import LayoutError

from ..dispatch import register_dispatch
from ..dtypes import dtype
from ..errors import fail
from ..isa.arithmetic import constant
from ..isa.elements import pack
from ..isa.record import Instruction
from ..ops import FillCall
from ..program import Instr, Program, Registers
from ..scope import Context
from .register_operands import common_shape, conditions, held
from .threads import check_registers


@register_dispatch("fill", "cuda", variant="fill.registers", priority=10, when=conditions("a fill"))
def fill_registers(call: FillCall, context: Context) -> Program:
    """One constant a register."""
    dst = held("dst", call.dst, common_shape(call.operands()), context)
    record = filler(dst.registers, call.value)
    body = [Instr(record, ((dst.slot(r),),)) for r in dst.elements]
    inputs = () if call.dst.is_full else (dst.registers,)
    program = Program(f"fill_{dst.registers.name}", context.warps, inputs, (dst.registers,), tuple(body))
    check_registers(program)
    return program


def filler(registers: Registers, value: object) -> Instruction:
    """The constant that has a number in every element of a register; declines one that the type has no place for."""
    import numpy as np

    from ..narrow import from_float

    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.number):
        fail(f"value {value!r} is no number")
    try:
        one = from_float(np.array([value], np.float64), registers.dtype)
    except (LayoutError, OverflowError) as error:
        fail(f"value {value!r}: {getattr(error, 'rule', error)}")
    if dtype(registers.dtype).is_integer and int(one[0]) != value:
        fail(f"value {value!r} is no {registers.dtype}")
    bits = np.repeat(one.view(f"u{one.dtype.itemsize}"), registers.per_register)
    words = pack(bits, registers.dtype, registers.container)
    whole = sum(int(w) << 32 * i for i, w in enumerate(words))
    return constant(registers.kind, whole)  # type: ignore[arg-type]
