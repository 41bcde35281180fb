"""``gemm`` on register fragments as an unrolled nest of ``mma.sync.aligned.m16n8k*``: variant ``mma.m16n8k*``."""

from __future__ import annotations

from typing import Any

from tilelayout import LayoutError
from tilelayout.axis import axis
from tilelayout.expr import Var

from ..dispatch import predicate, register_dispatch
from ..dtypes import dtype
from ..errors import DispatchFail, fail
from ..isa import COPY, MMA_INSTRUCTIONS, ZERO_F32, MmaInstruction
from ..ops import GemmCall
from ..program import Comment, For, Instr, Program, Registers, Slot, Statement, View
from ..registers import register_file, register_span
from ..scope import Context
from ..tile import Tile
from .gemm_operands import (
    Operand,
    Problem,
    check_axes,
    check_offsets,
    check_scopes,
    check_storage,
    check_tile,
    fold_problem,
    region_slots,
    take_apart,
)
from .mma_fit import Fit, check_all_warps, fit

MAX_REGISTERS = 255
"""32-bit registers that a thread can have, on every architecture so far (CUDA programming guide, appendix on
compute capabilities)."""

LANE = axis("laneid")


def full_active_lanes(call: GemmCall, context: Context) -> Any:
    """mma.sync.aligned is executed by all lanes together, so nothing may narrow the active threads."""
    if context.scope not in ("warp", "warpgroup", "cta"):
        return f"{context.scope} scope: mma.sync is carried out by whole warps (scope warp, warpgroup or cta)"
    for a, bounds in context.active.items():
        if a not in context.full:
            return f"active axis {a} is not one of {context.scope} scope's ({', '.join(context.full)})"
        if bounds != context.full[a]:
            unit = "lanes" if a == LANE else "warps"
            return f"active {unit} on {a} are [{bounds[0]}, {bounds[1]}), all of [0, {context.full[a][1]}) are needed"
    missing = [a for a in context.full if a not in context.active]
    return f"active set does not mention {', '.join(missing)}" if missing else True


def no_replica(call: GemmCall, context: Context) -> Any:
    """In one warp there is nobody to hold a copy; at wider scopes `mma_fit` says which replica is needed."""
    if context.warp_axis is not None:
        return True
    for role, region in call.operands():
        replica = region.tile.layout.canonicalize().replica
        if replica:
            layout = region.tile.layout
            return f"{role} ({region.tile.name}) has a replica {layout}; at warp scope no replica is accepted"
    return True


@register_dispatch(
    "gemm",
    "cuda",
    variant="mma.m16n8k*",
    priority=10,
    when=[predicate("full_active_lanes", full_active_lanes), predicate("no_replica", no_replica)],
)
def gemm_mma_sync(call: GemmCall, context: Context) -> Program:
    """D = A @ B + beta * C on local tiles of 16-bit inputs, f32 accumulation; see docs/architecture.md."""
    check_scopes(call)
    problem = fold_problem(call)
    records = matching_records(call)
    operands = {
        "D": take_apart("D", call.D, "MN"),
        "A": take_apart("A", call.A, "KM" if call.transpose_a else "MK"),
        "B": take_apart("B", call.B, "NK" if call.transpose_b else "KN"),
        "C": take_apart("C", call.C, "MN"),
    }
    for operand in operands.values():
        check_axes(operand, LANE, context.warp_axis)
    check_offsets(list(operands.values()), LANE, context.warp_axis)
    for role, region in call.operands():
        check_tile(role, region, LANE, context.warp_axis, context.warps)
    check_storage(call)
    reasons: dict[str, list[str]] = {}
    for record in records:
        try:
            program = build(call, context, problem, operands, record)
        except DispatchFail as reason:
            reasons.setdefault(str(reason), []).append(record.name)
        else:
            check_registers(program)
            return program
    return fail("; ".join(f"{', '.join(names)}: {reason}" for reason, names in reasons.items()))


def matching_records(call: GemmCall) -> list[MmaInstruction]:
    """The records for the operands' element types; declines with the signatures that exist."""
    signature = (call.A.tile.dtype, call.B.tile.dtype, call.C.tile.dtype, call.D.tile.dtype)
    found = [r for r in MMA_INSTRUCTIONS if r.signature == signature]
    if not found:
        known = dict.fromkeys(_signature_text(r.signature) for r in MMA_INSTRUCTIONS)
        fail(
            f"dtype signature {_signature_text(signature)} has no instruction; there are: {', '.join(known)}"
        )
    return found


def _signature_text(signature: tuple[str, str, str, str]) -> str:
    a, b, c, d = signature
    return f"{d} = {a} @ {b} + {c}"


def build(
    call: GemmCall, context: Context, problem: Problem, operands: dict[str, Operand], record: MmaInstruction
) -> Program:
    """The program on one instruction, or DispatchFail with what is in the way."""
    if record.sm > context.target.sm:
        fail(f"needs sm_{record.sm}, the target is {context.target}")
    sizes = {"M": problem.M, "N": problem.N, "K": problem.K}
    found = fit(record, operands, sizes, LANE, context.warp_axis)
    check_all_warps(found.carved, context.warps, context.scope)
    return nest(call, context, problem, found, register_views(call, found, operands))


def check_registers(program: Program) -> None:
    """No fragment, and nothing that must be live at once, takes more registers than a thread has."""
    remedy = "use smaller tiles or spread them over more warps"
    for r in program.registers:
        if r.count > MAX_REGISTERS:
            fail(f"{r.role} takes {r.count} registers a thread, there are {MAX_REGISTERS}: {remedy}")
    total = sum(r.count for r in program.registers)  # a bound that is cheap, and nearly always enough
    if total > MAX_REGISTERS and program.peak_registers > MAX_REGISTERS:
        fail(
            f"{program.peak_registers} registers a thread would be live at once, there are {MAX_REGISTERS}: {remedy}"
        )


# --- registers ----------------------------------------------------------------------------------

NAMES = {"A": "a_words", "B": "b_words", "C": "c_local", "D": "d_local"}


def register_views(call: GemmCall, found: Fit, operands: dict[str, Operand]) -> dict[str, View]:
    """Per lane, in element slots: D and C as [Mo, No, rM, rN], A as [Mo, Ko, rM, kHi, k_pack], B as
    [Ko, No, kHi, k_pack].
    """
    record, (mt, nt, kt) = found.instruction, found.tiles
    at = found.carved
    rM, rN, kHi, p = record.row_blocks, record.column_registers, record.k_blocks, record.k_pack
    out: dict[str, View] = {}
    for role, region in call.operands():
        tile = region.tile
        offset = int(operands[role].offset.get(axis("m"), 0))
        if role == "A":
            m, k = at["A", "M"], at["A", "K"]
            shape = (mt, kt, rM, kHi, p)
            strides = (m.tile_stride, k.tile_stride, m.stride(1), k.stride(1), k.stride(2))
        elif role == "B":
            k, n = at["B", "K"], at["B", "N"]
            shape = (kt, nt, kHi, p)
            strides = (k.tile_stride, n.tile_stride, k.stride(1), k.stride(2))
        else:
            m, n = at[role, "M"], at[role, "N"]
            shape = (mt, nt, rM, rN)
            strides = (m.tile_stride, n.tile_stride, m.stride(1), n.stride(1))
        view = View(register_group(role, tile), shape, strides, offset)
        check_view(role, view, p if role in "AB" else 1)
        out[role] = view
    return out


def register_group(role: str, tile: Tile) -> Registers:
    """A tile's registers: as many 32-bit words as its whole register span takes."""
    try:
        span = register_span(tile.layout)
    except LayoutError as error:
        fail(f"{role} ({tile.name}): {error.rule}")
    bits = dtype(tile.dtype).bits * span
    return Registers(
        NAMES[role], role, tile.dtype, -(-bits // 32), "f32" if tile.dtype == "float32" else "b32"
    )


def check_view(role: str, view: View, packed: int) -> None:
    """The words that a view names are whole and distinct."""
    names = {
        "A": ("Mo", "Ko", "rM", "kHi"),
        "B": ("Ko", "No", "kHi"),
        "C": ("Mo", "No", "rM", "rN"),
        "D": ("Mo", "No", "rM", "rN"),
    }
    if view.offset % packed:
        fail(f"{role}: register offset {view.offset} splits a 32-bit register of {packed} elements")
    for name, n, stride in zip(names[role], view.shape, view.strides, strict=False):
        if n > 1 and stride % packed:
            fail(f"{role}: {name} stride {stride} splits a 32-bit register of {packed} elements")
    slots = view.slots()
    if len(set(slots)) != len(slots):
        steps = ", ".join(
            f"{name} {n}:{s}" for name, n, s in zip(names[role], view.shape, view.strides, strict=False)
        )
        fail(f"{role}: register strides collide ({steps}): two elements of a lane share a register")


# --- the nest -----------------------------------------------------------------------------------


def nest(call: GemmCall, context: Context, problem: Problem, found: Fit, views: dict[str, View]) -> Program:
    """For each (m, n): initialize D once, then one mma in place for each k."""
    record, (mt, nt, kt) = found.instruction, found.tiles
    m, n, k = Var("m", 0, mt - 1), Var("n", 0, nt - 1), Var("k", 0, kt - 1)
    d, c, a, b = (views[role] for role in "DCAB")
    rMs, rNs, kHis = range(record.row_blocks), range(record.column_registers), range(record.k_blocks)
    d_slots = tuple([Slot(d.registers, d.word(m, n, rM, rN)) for rM in rMs for rN in rNs])
    c_slots = tuple([Slot(c.registers, c.word(m, n, rM, rN)) for rM in rMs for rN in rNs])
    a_slots = tuple([Slot(a.registers, a.word(m, k, rM, kHi, 0)) for kHi in kHis for rM in rMs])
    b_slots = tuple([Slot(b.registers, b.word(k, n, kHi, 0)) for kHi in kHis])
    if problem.accumulate:
        start = [Instr(COPY["f32"], ((x,), (y,))) for x, y in zip(d_slots, c_slots, strict=True)]
    else:
        start = [Instr(ZERO_F32, ((x,),)) for x in d_slots]
    multiply = Instr(record.instruction, (d_slots, a_slots, b_slots))
    tile = For(n, (Comment("m = {m}, n = {n}"), *start, For(k, (multiply,))))
    kept, keeping = untouched(call, problem, views)
    inputs = [a.registers, b.registers, *([c.registers] if problem.accumulate or kept == "C" else [])]
    if kept == "D":
        inputs.append(d.registers)
    name = f"gemm_m{problem.M}n{problem.N}k{problem.K}_{dtype(record.a).ptx}"
    return Program(
        name,
        context.warps,
        tuple(inputs),
        (d.registers,),
        (*keeping, For(m, (tile,))),
        views=tuple(views[r] for r in "DABC"),
    )


def untouched(call: GemmCall, problem: Problem, views: dict[str, View]) -> tuple[str | None, list[Statement]]:
    """Registers of D's tile that hold elements outside D's region keep what they had.

    Returns where that comes from: "C" when C is a region of the same tile (its registers come in as C), "D" when
    D's own come in, None when D's region is its tile.
    """
    if call.D.is_full:
        return None, []
    rest = sorted(
        set(register_file(call.D.tile.layout, call.D.tile.shape).coordinates) - region_slots(call.D)
    )
    if not (problem.accumulate and call.C.tile == call.D.tile):
        return "D", []
    d, c = views["D"].registers, views["C"].registers
    return "C", [Instr(COPY["f32"], ((Slot(d, i),), (Slot(c, i),))) for i in rest]
