"""A PTX module around one instruction: registers come from global memory as raw words, and go there."""

from __future__ import annotations

from lowering.isa.record import Instruction, Operand
from lowering.target import Target

LINES = 48
"""Lines of 16 bytes in a warp's shared buffer: more than lanes, so that some stay untouched; 6 words for each lane."""

MEMORY_BYTES = 16 * LINES

_TYPES = {"f32": "f32", "f64": "f64", "b32": "b32", "shared": "b32"}


def words_in(operand: Operand) -> int:
    """32-bit words per lane that the kernel reads for an operand; an address in shared memory is one."""
    if operand.kind == "shared":
        return 1
    return operand.words if operand.reads else 0


def words_out(operand: Operand) -> int:
    """32-bit words per lane that the kernel writes for an operand."""
    return operand.words if operand.writes else 0


def uses_memory(instruction: Instruction) -> bool:
    """Whether an operand is an address in shared memory."""
    return any(o.kind == "shared" for o in instruction.operands)


def module(instruction: Instruction, where: Target) -> str:
    """``kernel(inputs, outputs, memory)``, one warp a CTA.

    `inputs` and `outputs` are uint32 ``[warps, 32 lanes, words]``, the operands' words one behind the other in the
    operands' order; an address is in bytes from the start of the warp's shared buffer.  `memory` is uint8 ``[warps,
    MEMORY_BYTES]``, copied to shared memory before and back after the instruction.

    Errors: ValueError for an operand in global memory.
    """
    if any(o.kind not in _TYPES for o in instruction.operands):
        raise ValueError(f"{instruction.name} has operands that this probe does not know")
    names = {o.name: [f"%{o.name}_{i}" for i in range(o.count)] for o in instruction.operands}
    declared = [f".reg .{_TYPES[o.kind]} {', '.join(names[o.name])};" for o in instruction.operands]
    taken = sum(map(words_in, instruction.operands))
    given = sum(map(words_out, instruction.operands))
    major, minor = max(where.ptx, instruction.ptx)
    memory = uses_memory(instruction)
    body = [
        ".reg .b64 %in, %out, %memory; .reg .b32 %lane, %warp, %at, %buffer, %to, %x, %y;",
        *declared,
        "ld.param.u64 %in, [inputs]; ld.param.u64 %out, [outputs]; ld.param.u64 %memory, [memory];",
        "mov.u32 %lane, %tid.x; mov.u32 %warp, %ctaid.x; mad.lo.u32 %at, %warp, 32, %lane;",
        f"mad.wide.u32 %in, %at, {4 * taken}, %in; mad.wide.u32 %out, %at, {4 * given}, %out;",
        *(_buffer() if memory else ()),
        *(_copy("ld.global.b32 %x, [%memory+{at}]; st.shared.b32 [%to+{at}], %x;") if memory else ()),
        "bar.sync 0;",
        *_loads(instruction, names),
        instruction.text(names),
        "bar.sync 0;",
        *_stores(instruction, names),
        *(_copy("ld.shared.b32 %x, [%to+{at}]; st.global.b32 [%memory+{at}], %x;") if memory else ()),
        "ret;",
    ]
    head = f".version {major}.{minor}\n.target {where}\n.address_size 64\n"
    shared = f".shared .align 16 .b8 shared_memory[{MEMORY_BYTES}];\n" if memory else ""
    text = "\n".join(body)
    return (
        f"{head}{shared}.visible .entry kernel(.param .u64 inputs, .param .u64 outputs, .param .u64 memory)\n"
        f".reqntid 32\n{{\n{text}\n}}\n"
    )


def _loads(instruction: Instruction, names: dict[str, list[str]]) -> list[str]:
    out: list[str] = []
    at = 0
    for o in instruction.operands:
        for name in names[o.name] if words_in(o) else ():
            if o.kind == "f64":
                out.append(f"ld.global.b32 %x, [%in+{at}]; ld.global.b32 %y, [%in+{at + 4}];")
                out.append(f"mov.b64 {name}, {{%x, %y}};")
            else:
                out.append(f"ld.global.{_TYPES[o.kind]} {name}, [%in+{at}];")
            if o.kind == "shared":
                out.append(f"add.u32 {name}, {name}, %buffer;")
            at += 4 * words_in(o) // o.count
    return out


def _stores(instruction: Instruction, names: dict[str, list[str]]) -> list[str]:
    out: list[str] = []
    at = 0
    for o in instruction.operands:
        for name in names[o.name] if words_out(o) else ():
            if o.kind == "f64":
                out.append(f"mov.b64 {{%x, %y}}, {name};")
                out.append(f"st.global.b32 [%out+{at}], %x; st.global.b32 [%out+{at + 4}], %y;")
            else:
                out.append(f"st.global.{_TYPES[o.kind]} [%out+{at}], {name};")
            at += 4 * words_out(o) // o.count
    return out


def _buffer() -> list[str]:
    """Where the lane's first word is, in global and in shared memory."""
    return [
        f"mad.wide.u32 %memory, %warp, {MEMORY_BYTES}, %memory; mad.wide.u32 %memory, %lane, 4, %memory;",
        "mov.u32 %buffer, shared_memory; mad.lo.u32 %to, %lane, 4, %buffer;",
    ]


def _copy(move: str) -> list[str]:
    """Each lane moves every 32nd word of the shared buffer."""
    return [move.format(at=at) for at in range(0, MEMORY_BYTES, 128)]
