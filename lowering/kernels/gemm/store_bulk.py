"""The result through shared memory to the copy engine, which reads a block while the next is collected."""

from __future__ import annotations

from tilelayout.expr import Var

from ...api import Lowered, lower
from ...compose import relocated
from ...control import Compare, If
from ...isa.barrier import BAR_WARP
from ...isa.bulk import BULK_COMMIT, BULK_WAIT, BULK_WAIT_READ, FENCE_PROXY_ASYNC
from ...ops import copy
from ...program import Instr, Statement
from ..epilogue import Finish
from .store_rows import Rows

LANE = Var("lane", 0, 31)
END = (If(Compare(LANE, "==", 0), (Instr(BULK_WAIT, (0,)),)),)
"""What comes after the last tile: shared memory must stay until it has been read."""


def sent(rows: Rows, row: int) -> Lowered:
    """A block from a slot of one warp to D; `choose` and a launch see to whole units of 16 bytes in its rows."""
    return lower(
        copy(rows.window(row), rows.slot.full),
        target=rows.target,
        scope="warp",
        dispatch="copy.bulk_tensor",
        config={"whole_units": True},
    )


def block(rows: Rows, finish: Finish, row: int) -> list[Statement]:
    """Into a slot when it has been read; from there by the copy engine."""
    send = sent(rows, row)
    sending = relocated(send.program.body, buffers=rows.of_slot(send, row))  # type: ignore[arg-type]
    return [
        *finish.fetch(rows.sums(row + 1)),
        If(Compare(LANE, "==", 0), (Instr(BULK_WAIT_READ, (rows.younger(row),)),)),
        Instr(BAR_WARP, ()),
        *finish.packed(rows.sums(row), rows.into),
        *rows.collected(row),
        Instr(FENCE_PROXY_ASYNC, ()),
        Instr(BAR_WARP, ()),
        If(Compare(LANE, "==", 0), (*sending, Instr(BULK_COMMIT, ()))),
    ]
