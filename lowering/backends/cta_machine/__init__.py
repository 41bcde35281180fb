"""The reference machine for whole kernels: CTAs and grids of structured programs, on any CPU.

Warps execute statements for their 32 lanes with a mask of the active ones, in the order of a schedule.  Instructions do
what their records mean; those with a protocol do what `isa.protocols` says.  What no hardware defines is an error:
races by happens-before, reads before their wait, early releases, deadlocks, addresses outside.

    grid            a launch: arguments, one CTA after the other, so that none waits for one that comes later
    cta, schedule   warps stepped, in one of the orders that hardware may choose; deadlocks
    statements      branches, loops and straight runs, compiled once (plan: numbers and places that all runs share)
    instructions    functions of registers, many at once; loads and stores (access: where they point)
    protocols       barriers, mbarrier, cp_async, bulk (boxes: tensors and swizzles), groups of what is done later
    shadow, clocks  who touched what in shared memory and who knows; races
    order           which CTA has counted, and which has waited for it; global_memory: who wrote what there

`reference` runs straight programs on register fragments; this one runs kernels over memory.
"""

from .grid import run_grid
from .schedule import EXAMPLES, GREEDY, GREEDY_BACKWARDS, ROUND_ROBIN

__all__ = ["EXAMPLES", "GREEDY", "GREEDY_BACKWARDS", "ROUND_ROBIN", "run_grid"]
