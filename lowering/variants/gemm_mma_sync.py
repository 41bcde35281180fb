"""``gemm`` on register fragments as an unrolled nest of ``mma.sync``: variants ``mma.m16n8k*`` and ``mma.m8n8k*``.

They differ in the rows of one instruction alone.  What they try is every dense record of the catalogue, by table.
"""

from __future__ import annotations

from typing import Any

from tilelayout.expr import Var

from ..dispatch import predicate, register_dispatch
from ..dtypes import dtype
from ..errors import DispatchFail, fail
from ..isa import COPY, ZERO, MmaInstruction
from ..ops import GemmCall
from ..program import Comment, For, Instr, Program, Slot, Statement, View
from ..registers import register_file
from ..scope import Context
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
from .mma_table import matching_records
from .mma_views import register_views
from .threads import LANE, check_registers, narrowed


def full_active_lanes(call: GemmCall, context: Context) -> Any:
    """mma.sync.aligned is executed by all lanes together, so nothing may narrow the active threads."""
    return narrowed(context, "mma.sync") or True


def no_replica(call: GemmCall, context: Context) -> Any:
    """In one warp there is nobody to hold a copy; at wider scopes `mma_fit` says which replica is needed."""
    if context.warp_axis is not None:
        return True
    for role, region in call.operands():
        if region.tile.scope != "local":  # refused for that, and perhaps swizzled
            continue
        replica = region.tile.layout.canonicalize().replica
        if replica:
            layout = region.tile.layout
            return f"{role} ({region.tile.name}) has a replica {layout}; at warp scope no replica is accepted"
    return True


CONDITIONS = (predicate("full_active_lanes", full_active_lanes), predicate("no_replica", no_replica))


@register_dispatch("gemm", "cuda", variant="mma.m16n8k*", priority=10, when=CONDITIONS)
def gemm_m16n8(call: GemmCall, context: Context) -> Program:
    """D = A @ B + beta * C on local tiles, 16 rows an instruction; see docs/architecture.md.

    ``config``: "satfinite" True clamps integer sums; "operation" "xor" counts ``a ^ b`` of one-bit factors, where "and"
    is the default; "kind" asks for the qualifier ``.kind::`` of that name; "records" are `MmaInstruction`s of
    one's own, tried first.
    """
    return gemm_mma_sync(call, context, 16)


@register_dispatch("gemm", "cuda", variant="mma.m8n8k*", priority=9, when=CONDITIONS)
def gemm_m8n8(call: GemmCall, context: Context) -> Program:
    """The same, 8 rows an instruction."""
    return gemm_mma_sync(call, context, 8)


def gemm_mma_sync(call: GemmCall, context: Context, rows: int) -> Program:
    """The program on the first record of that many rows that fits, or DispatchFail with what is in the way of each."""
    check_scopes(call)
    problem = fold_problem(call)
    records = matching_records(call, context, problem, rows)
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


def build(
    call: GemmCall, context: Context, problem: Problem, operands: dict[str, Operand], record: MmaInstruction
) -> Program:
    """The program on one instruction, or DispatchFail with what is in the way."""
    sizes = {"M": problem.M, "N": problem.N, "K": problem.K}
    found = fit(record, operands, sizes, LANE, context.warp_axis)
    check_all_warps(found.carved, context.warps, context.scope)
    return nest(call, context, problem, found, register_views(call, found, operands))


# --- the nest -----------------------------------------------------------------------------------


def nest(call: GemmCall, context: Context, problem: Problem, found: Fit, views: dict[str, View]) -> Program:
    """For each (m, n): initialize D once, then one mma in place for each k."""
    record, (mt, nt, kt) = found.instruction, found.tiles
    m, n, k = Var("m", 0, mt - 1), Var("n", 0, nt - 1), Var("k", 0, kt - 1)
    d, c, a, b = (views[role] for role in "DCAB")
    rMs, kHis = range(record.row_blocks), range(record.k_blocks)
    rNs = range(0, record.column_registers, d.registers.per_register)
    d_slots = tuple([Slot(d.registers, d.word(m, n, rM, rN)) for rM in rMs for rN in rNs])
    c_slots = tuple([Slot(c.registers, c.word(m, n, rM, rN)) for rM in rMs for rN in rNs])
    a_slots = tuple([Slot(a.registers, a.word(m, k, rM, kHi, 0)) for kHi in kHis for rM in rMs])
    b_slots = tuple([Slot(b.registers, b.word(k, n, kHi, 0)) for kHi in kHis])
    kind = d.registers.kind
    if problem.accumulate:
        start = [Instr(COPY[kind], ((x,), (y,))) for x, y in zip(d_slots, c_slots, strict=True)]
    else:
        start = [Instr(ZERO[kind], ((x,),)) for x in d_slots]
    multiply = Instr(record.instruction, (d_slots, a_slots, b_slots))
    tile = For(n, (Comment("m = {m}, n = {n}"), *start, For(k, (multiply,))))
    kept, keeping = untouched(call, problem, views)
    inputs = [a.registers, b.registers, *([c.registers] if problem.accumulate or kept == "C" else [])]
    if kept == "D":
        inputs.append(d.registers)
    factors = "_".join(dict.fromkeys(dtype(x).ptx for x in (record.a, record.b)))
    name = f"gemm_m{problem.M}n{problem.N}k{problem.K}_{factors}"
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
    whole = set(register_file(call.D.tile.layout, call.D.tile.shape).coordinates)
    rest = whole_registers(whole - region_slots(call.D), views["D"])
    if not (problem.accumulate and call.C.tile == call.D.tile):
        return "D", []
    d, c = views["D"].registers, views["C"].registers
    return "C", [Instr(COPY[d.kind], ((Slot(d, i),), (Slot(c, i),))) for i in rest]


def whole_registers(slots: set[int], view: View) -> list[int]:
    """The registers that those elements fill; declines where one is filled in part, which no move could keep."""
    per = view.registers.per_register
    numbers = sorted({slot // per for slot in slots})
    for i in numbers:
        if not slots.issuperset(range(i * per, (i + 1) * per)):
            fail(
                f"D: its tile holds only a part of register {i}, of {per} elements, beside the region that is written"
            )
    return numbers
