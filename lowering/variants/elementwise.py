"""``elementwise`` on tiles in registers: variant ``elementwise.registers``.

Each lane applies the function to what it holds.  Elements that a register holds several of, or of another type than the
function takes, are converted on the way.
"""

from __future__ import annotations

from typing import Any

from ..dispatch import register_dispatch
from ..errors import fail
from ..isa.convert import PACK, UNPACK
from ..isa.record import Instruction, Operand
from ..ops import ElementwiseCall
from ..program import Program, Slot
from ..scope import Context
from .register_operands import Held, Place, check_names, common_shape, conditions, held, same_elements
from .threads import check_registers
from .values import Values, converted

WHOLE = {"f64": ("float64",), "b32": ("int32", "uint32")}
"""Class of an operand that is no f32 -> the element types that it takes as they are."""


@register_dispatch(
    "elementwise",
    "cuda",
    variant="elementwise.registers",
    priority=10,
    when=conditions("an elementwise function"),
)
def elementwise_registers(call: ElementwiseCall, context: Context) -> Program:
    """Register by register of dst."""
    check_function(call.function, len(call.srcs), context)
    check_names(call.operands())
    shape = common_shape(call.operands())
    roles = dict(call.operands())
    dst = held("dst", roles.pop("dst"), shape, context)
    srcs = [held(role, region, shape, context) for role, region in roles.items()]
    result, *operands = call.function.operands
    _check_type(result, dst, PACK)
    for operand, src in zip(operands, srcs, strict=True):
        _check_type(operand, src, UNPACK)
    maps = [same_elements(dst, src) for src in srcs]
    # A source that is dst's own tile is read from the registers that are written.
    srcs = [dst if src.region.tile == dst.region.tile else src for src in srcs]
    body, scratch = converted(
        context.target, f"{dst.registers.name}_numbers", lambda v: _apply(v, call.function, dst, srcs, maps)
    )
    inputs = dict.fromkeys(src.registers for src in srcs)
    if not call.dst.is_full:
        inputs[dst.registers] = None
    name = f"{call.function.name.replace('.', '_')}_{dst.registers.name}"
    program = Program(name, context.warps, tuple(inputs), (dst.registers,), tuple(body), scratch=scratch)
    check_registers(program)
    return program


def check_function(function: Any, sources: int, context: Context) -> None:
    """Declines what is no record of one result and one register for each source, or is not the target's."""
    if not isinstance(function, Instruction):
        fail(
            f"the function must be an instruction record, got {function!r}; "
            "lowering.backends.numba_cuda.scalar_instruction makes one of a Python function"
        )
    result, *operands = function.operands or (Operand("nothing", 0, "value", "read"),)
    single = all(o.is_registers and o.count == 1 for o in function.operands)
    if result.access != "write" or not single or any(o.access != "read" for o in operands):
        fail(f"{function.name} is no function of registers of one number each, the first of which it writes")
    if len(operands) != sources:
        fail(f"{function.name} takes {len(operands)} operands, got {sources}")
    if function.effect != "none" or function.protocol:
        fail(f"{function.name} does more than compute its result")
    if function.refusal(context.target):
        fail(f"{function.name} {function.refusal(context.target)}")


def _check_type(operand: Operand, held: Held, table: Any) -> None:
    """Declines elements that the operand's registers do not take."""
    element = held.registers.dtype
    known = WHOLE.get(operand.kind, tuple(table))
    if element not in known or (operand.kind == "f32" and element == "float64"):
        has = [x for x in known if x != "float64" or operand.kind != "f32"]
        fail(f"{held.role} is {element}; {operand.name} is of class {operand.kind}, for {', '.join(has)}")


def _apply(
    values: Values, function: Instruction, dst: Held, srcs: list[Held], maps: list[dict[Place, Place]]
) -> None:
    result, *operands = function.operands
    direct = result.kind != "f32" or dst.registers.dtype == "float32"
    known: list[dict[Place, Slot]] = [{} for _ in srcs]
    for register in dst.elements:
        results: list[Slot] = []
        for k in range(dst.registers.per_register):
            given = [
                _operand(values, operand, src, at[register, k], cache)
                for operand, src, at, cache in zip(operands, srcs, maps, known, strict=True)
            ]
            out = dst.slot(register) if direct else values.take(result.kind)  # type: ignore[arg-type]
            values.do(function, out, *given)
            values.release(*given)
            results.append(out)
        if not direct:
            values.pack(dst.slot(register), results)


def _operand(values: Values, operand: Operand, src: Held, place: Place, known: dict[Place, Slot]) -> Slot:
    """The register of one number of a source."""
    if operand.kind != "f32":
        return src.slot(place[0])
    if place not in known:
        register = place[0]
        known |= {(register, k): s for k, s in enumerate(values.unpack(src.slot(register)))}
    return known[place]
