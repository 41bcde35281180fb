"""What every variant asks of the threads that carry out its program: all of them active, and registers enough."""

from __future__ import annotations

from tilelayout.axis import axis

from ..errors import fail
from ..program import Program
from ..scope import Context

MAX_REGISTERS = 255
"""32-bit registers that a thread can have, on every architecture so far (CUDA programming guide, appendix on
compute capabilities)."""

LANE = axis("laneid")


def narrowed(context: Context, who: str) -> str:
    """Why not all threads of whole warps are there; empty where they are.  `who` needs them, for the message."""
    if context.scope not in ("warp", "warpgroup", "cta"):
        return f"{context.scope} scope: {who} is carried out by whole warps (scope warp, warpgroup or cta)"
    for a, bounds in context.active.items():
        if a not in context.full:
            return f"active axis {a} is not one of {context.scope} scope's ({', '.join(context.full)})"
        if bounds != context.full[a]:
            unit = "lanes" if a == LANE else "warps"
            return f"active {unit} on {a} are [{bounds[0]}, {bounds[1]}), all of [0, {context.full[a][1]}) are needed"
    missing = [a for a in context.full if a not in context.active]
    return f"active set does not mention {', '.join(missing)}" if missing else ""


def check_registers(program: Program) -> None:
    """No fragment, and nothing that must be live at once, takes more registers than a thread has."""
    remedy = "use smaller tiles or spread them over more warps"
    for r in program.registers:
        if r.words > MAX_REGISTERS:
            fail(f"{r.role} takes {r.words} registers a thread, there are {MAX_REGISTERS}: {remedy}")
    total = sum(r.words for r in program.registers)  # a bound that is cheap, and nearly always enough
    if total > MAX_REGISTERS and program.peak_registers > MAX_REGISTERS:
        fail(
            f"{program.peak_registers} registers a thread would be live at once, there are {MAX_REGISTERS}: {remedy}"
        )
