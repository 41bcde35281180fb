"""The result through shared memory by the threads that collected it: whole rows, for every alignment and target."""

from __future__ import annotations

from ...api import Lowered, lower
from ...compose import relocated
from ...isa.barrier import BAR_WARP
from ...ops import copy
from ...program import Instr, Registers, Statement
from ..epilogue import Finish
from .globals import moved_to
from .store_rows import Rows


def sent(rows: Rows, row: int) -> Lowered:
    """A block from a slot of one warp to D."""
    return lower(
        copy(rows.window(row), rows.slot.full), target=rows.target, scope="warp", dispatch="copy.predicated"
    )


def scratch(rows: Rows) -> tuple[Registers, ...]:
    """Registers that the sending takes."""
    return sent(rows, 0).program.registers


def block(rows: Rows, finish: Finish, row: int) -> list[Statement]:
    """Into a slot when all lanes have read it; from there to D."""
    send = sent(rows, row).program
    moved = {**rows.of_slot(sent(rows, row), row), **moved_to(send, rows.problem.D)}
    # The barrier of a block between says that the slot has been read.
    read = [Instr(BAR_WARP, ())] if rows.younger(row) == 0 else []
    return [
        *finish.fetch(rows.sums(row + 1)),
        *finish.packed(rows.sums(row), rows.into),
        *read,
        *rows.collected(row),
        Instr(BAR_WARP, ()),
        *relocated(send.body, buffers=moved),  # type: ignore[arg-type]
    ]
