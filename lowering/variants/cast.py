"""``cast`` between tiles in registers: variant ``cast.registers``.

Each lane converts what it holds.  Which register an element is in may differ: an accumulator becomes a factor of the
next product without leaving its lane.
"""

from __future__ import annotations

from ..dispatch import register_dispatch
from ..errors import fail
from ..isa import COPY
from ..isa.convert import INT32_TO_FLOAT64, PACK, UNPACK
from ..ops import CastCall
from ..program import Program, Slot
from ..scope import Context
from .register_operands import Held, Place, check_names, common_shape, conditions, held, same_elements
from .threads import check_registers
from .values import Values, converted


@register_dispatch(
    "cast", "cuda", variant="cast.registers", priority=10, when=conditions("a cast")
)  # fmt: skip
def cast_registers(call: CastCall, context: Context) -> Program:
    """By way of f32, but for copies and between float64 and int32."""
    check_names(call.operands())
    shape = common_shape(call.operands())
    if call.src.tile == call.dst.tile:
        fail(f"dst and src are one tile, {call.dst}: there is nothing to convert")
    dst, src = (held(role, region, shape, context) for role, region in call.operands())
    source = same_elements(dst, src)
    check_types(src.registers.dtype, dst.registers.dtype)
    name = f"cast_{src.registers.name}_to_{dst.registers.name}"
    scratch_name = f"{dst.registers.name}_{src.registers.name}"
    body, scratch = converted(context.target, scratch_name, lambda v: _convert(v, dst, src, source))
    inputs = (src.registers,) if call.dst.is_full else (src.registers, dst.registers)
    program = Program(name, context.warps, inputs, (dst.registers,), tuple(body), scratch=scratch)
    check_registers(program)
    return program


def check_types(src: str, dst: str) -> None:
    """Declines a conversion that is none, or that would round twice."""
    if src == dst:
        return
    for role, element, table in (("src", src, UNPACK), ("dst", dst, PACK)):
        if element not in table:
            fail(f"{role} is {element}; conversions are known of {', '.join(table)}")
    if src == "float64" and dst != "float32":
        fail(f"float64 to {dst} would be rounded twice, on its way through float32; cast to float32 first")


def _convert(values: Values, dst: Held, src: Held, source: dict[Place, Place]) -> None:
    """All registers of dst."""
    target = {origin: place for place, origin in source.items()}
    known: dict[Place, Slot] = {}
    for register in dst.elements:
        wanted = [source[register, k] for k in range(dst.registers.per_register)]
        if _moves(values, dst, src, register, wanted):
            continue
        for r, _ in wanted:
            if (r, 0) not in known:
                into = None
                if dst.registers.dtype == "float32" != src.registers.dtype:
                    into = [
                        _place(values, dst, target.get((r, k))) for k in range(src.registers.per_register)
                    ]
                known |= {(r, k): s for k, s in enumerate(values.unpack(src.slot(r), into))}
        if dst.registers.dtype != "float32":
            values.pack(dst.slot(register), [known[place] for place in wanted])


def _place(values: Values, dst: Held, place: Place | None) -> Slot:
    """Where a number that comes out of a source register goes: to its register of dst, if it has one."""
    return values.take() if place is None else dst.slot(place[0])


def _moves(values: Values, dst: Held, src: Held, register: int, wanted: list[Place]) -> bool:
    """Whether one instruction from register to register does it, which is then emitted."""
    first = wanted[0][0]
    types = src.registers.dtype, dst.registers.dtype
    whole = wanted == [(first, k) for k in range(src.registers.per_register)]
    if types[0] == types[1] and whole:
        values.do(COPY[dst.registers.kind], dst.slot(register), src.slot(first))  # type: ignore[index]
    elif types == ("int32", "float64"):
        values.do(INT32_TO_FLOAT64, dst.slot(register), src.slot(first))
    else:
        return False
    return True
