"""``copy`` between registers and memory by ordinary loads and stores: variants ``copy.vector`` and ``copy.scalar``.

How wide an access is follows from the layouts: registers of a lane whose elements are neighbors in memory, in every
lane of every warp, the first at a multiple of all their bytes.  Any registers of a lane make a vector, in any order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..dispatch import register_dispatch
from ..errors import fail
from ..isa import GATHERS, LOADS, SCATTERS, STORES
from ..isa.memory import WIDEST
from ..ops import CopyCall
from ..program import Instr, Program
from ..scope import Context
from .copy_operands import CONDITIONS, Pieces, take_apart


@dataclass(frozen=True)
class Run:
    """Registers that are neighbors in memory, in order, and what ends the run; the reason is empty at 16 bytes."""

    registers: tuple[int, ...]
    limit: str


@register_dispatch("copy", "cuda", variant="copy.vector", priority=20, when=CONDITIONS)
def copy_vector(call: CopyCall, context: Context) -> Program:
    """Accesses of up to 16 bytes a lane; registers whose elements are not neighbors are gathered or scattered."""
    pieces = take_apart(call, context)
    runs, _, reason = find_runs(pieces)
    bits = pieces.registers.bits
    widest = max([len(run.registers) * bits for run in runs], default=0)
    if widest <= pieces.element_bits:
        fail(f"no access is wider than an element: {reason or runs[0].limit}")
    return pieces.program(_name(call, "vector"), *accesses(pieces), context)


@register_dispatch("copy", "cuda", variant="copy.scalar", priority=10, when=CONDITIONS)
def copy_scalar(call: CopyCall, context: Context) -> Program:
    """Element by element, whatever the layouts."""
    pieces = take_apart(call, context)
    body = [element_by_element(pieces, r) for r in pieces.held]
    count = len(body) * pieces.registers.per_register
    note = f"{count} accesses of one {pieces.registers.dtype} a lane"
    return pieces.program(_name(call, "scalar"), [note], body, context)


def _name(call: CopyCall, how: str) -> str:
    return f"copy_{how}_{call.src.tile.name}_to_{call.dst.tile.name}"


def accesses(pieces: Pieces) -> tuple[list[str], list[Instr]]:
    """The widest accesses that there are, whatever their width, and what is to be said of them."""
    runs, rest, reason = find_runs(pieces)
    body = [_access(pieces, run) for run in runs] + [element_by_element(pieces, r) for r in rest]
    return _notes(pieces, runs, rest, reason), body


def _notes(pieces: Pieces, runs: list[Run], rest: list[int], reason: str) -> list[str]:
    """How many accesses of which width, and why no wider."""
    size = pieces.registers.bits // 8
    notes: list[str] = []
    for width in sorted({len(run.registers) for run in runs}, reverse=True):
        mine = [run for run in runs if len(run.registers) == width]
        limit = f"; no wider: {mine[0].limit}" if mine[0].limit else ""
        notes.append(f"{len(mine)} accesses of {width * size} bytes a lane{limit}")
    if rest:
        notes.append(f"{len(rest)} registers element by element: {reason}")
    return notes


# --- widths -------------------------------------------------------------------------------------


def find_runs(pieces: Pieces) -> tuple[list[Run], list[int], str]:
    """The widest accesses that cover the registers; registers that are no whole access, and why the first is none."""
    starts: dict[int, Any] = {}
    rest: list[int] = []
    first_reason = ""
    for register, at in pieces.at.items():
        reason = _not_whole(pieces, register, at)
        if reason:
            rest.append(register)
            first_reason = first_reason or reason
        else:
            starts[register] = at[..., 0] * pieces.element_bits // 8
    runs: list[Run] = []
    by_start = {start.tobytes(): register for register, start in starts.items()}
    free = dict.fromkeys(sorted(starts, key=lambda r: int(starts[r].min())))
    while free:
        register = next(iter(free))
        run = _widest(pieces, register, starts, by_start, free)
        runs.append(run)
        for taken in run.registers:
            del free[taken]
    return runs, rest, first_reason


def _not_whole(pieces: Pieces, register: int, at: Any) -> str:
    """Why a register's elements are no single access; empty where they are."""
    import numpy as np

    name, bits = pieces.registers.name, pieces.element_bits
    steps = at - at[..., :1]
    wrong = steps != np.arange(at.shape[-1])
    if wrong.any():
        warp, lane, k = (int(x) for x in np.argwhere(wrong)[0])
        return (
            f"elements 0 and {k} of {name}[{register}] in {_thread(warp, lane)} lie at positions "
            f"{int(at[warp, lane, 0])} and {int(at[warp, lane, k])}"
        )
    return _misaligned(pieces, at[..., 0] * bits, pieces.registers.bits // 8)


def _misaligned(pieces: Pieces, start_bits: Any, size: int) -> str:
    """Why accesses of `size` bytes from those bits on are not aligned; empty where they are."""
    import numpy as np

    wrong = start_bits % (8 * size) != 0
    if wrong.any():
        warp, lane = (int(x) for x in np.argwhere(wrong)[0])
        return f"{_thread(warp, lane)} would take {size} bytes at byte {int(start_bits[warp, lane]) // 8}"
    if pieces.alignment % size:
        return f"{pieces.alignment_text}, not to {size}"
    return ""


def _thread(warp: int, lane: int) -> str:
    return f"lane {lane} of warp {warp}"


def _widest(
    pieces: Pieces, register: int, starts: dict[int, Any], by_start: dict[bytes, int], free: dict[int, None]
) -> Run:
    """The widest access that begins with a register."""
    size = pieces.registers.bits // 8
    found, limit = [register], ""
    while len(found) * size < WIDEST:
        wider = 2 * len(found)
        limit = _misaligned(pieces, starts[register] * 8, wider * size)
        chain = [register, *[by_start.get((starts[register] + i * size).tobytes()) for i in range(1, wider)]]
        missing = next((i for i, r in enumerate(chain) if r is None or r not in free), None)
        if missing is not None:
            limit = (
                f"no register holds in every lane what follows {pieces.registers.name}[{chain[missing - 1]}]"
            )
        if limit:
            break
        found = [r for r in chain if r is not None]
    return Run(tuple(found), limit)


# --- instructions -------------------------------------------------------------------------------


def _access(pieces: Pieces, run: Run) -> Instr:
    """One access of neighboring registers."""
    table = LOADS if pieces.load else STORES
    instruction = table[pieces.buffer.space, pieces.registers.kind, len(run.registers)]  # type: ignore[index]
    address = pieces.element(run.registers[0], 0)
    slots = tuple([pieces.slot(r) for r in run.registers])
    return Instr(instruction, (slots, address) if pieces.load else (address, slots))


def element_by_element(pieces: Pieces, register: int) -> Instr:
    """One register from, or to, an address for each of its elements; declines where there is no such instruction."""
    r = pieces.registers
    addresses = tuple([pieces.element(register, k) for k in range(r.per_register)])
    if len(addresses) == 1:
        whole = (LOADS if pieces.load else STORES)[pieces.buffer.space, r.kind, 1]  # type: ignore[index]
        problem = _misaligned(pieces, pieces.at[register][..., 0] * pieces.element_bits, r.bits // 8)
        if problem:
            fail(problem)
    else:
        table = GATHERS if pieces.load else SCATTERS
        key = (pieces.buffer.space, r.container)
        if key not in table:
            fail(f"no instruction {'gathers' if pieces.load else 'scatters'} elements of {r.container} bits")
        whole = table[key]  # type: ignore[index]
    slots = (pieces.slot(register),)
    return Instr(whole, (slots, *addresses) if pieces.load else (*addresses, slots))
