"""How many CTAs a multiprocessor holds at once, and what limits it.

Sources: CUDA programming guide, "Technical Specifications per Compute Capability"; how registers and shared memory are
given out: the occupancy calculator of the CUDA toolkit, which the tests ask the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...isa.operand_map import LANES
from ...target import Target


@dataclass(frozen=True)
class Multiprocessor:
    """What CTAs share.

    Attributes:
        threads, ctas: that are resident at most.
        shared: bytes of shared memory.
    """

    threads: int
    ctas: int
    shared: int


_AMPERE, _SMALL = Multiprocessor(2048, 32, 164 << 10), Multiprocessor(1536, 16, 100 << 10)
_HOPPER, _RTX = Multiprocessor(2048, 32, 228 << 10), Multiprocessor(1536, 24, 100 << 10)
MULTIPROCESSORS = {
    75: Multiprocessor(1024, 16, 64 << 10),
    80: _AMPERE,
    86: _SMALL,
    87: Multiprocessor(1536, 16, 164 << 10),
    88: _SMALL,
    89: _RTX,
    90: _HOPPER,
    100: _HOPPER,
    103: _HOPPER,
    110: Multiprocessor(1536, 24, 228 << 10),
    120: _RTX,
    121: _RTX,
}
"""Compute capability -> its multiprocessor."""
REGISTERS = 65536
"""32-bit registers of a multiprocessor, a quarter with each of its schedulers."""
_SCHEDULERS = 4
_REGISTER_UNIT = 256
"""Registers that a warp gets a multiple of."""


@dataclass(frozen=True)
class Occupancy:
    """CTAs of a multiprocessor.

    Attributes:
        limits: what there is too little of for one more -> CTAs that it would do for.
    """

    limits: dict[str, int]

    @property
    def ctas(self) -> int:
        """That are resident at once; 0 where one is too large."""
        return min(self.limits.values())

    @property
    def limited_by(self) -> tuple[str, ...]:
        """What limits them."""
        return tuple([name for name, n in self.limits.items() if n == self.ctas])


def occupancy(target: Target, threads: int, registers: int, shared: int) -> Occupancy:
    """CTAs that a multiprocessor of a target holds.

    Args:
        target: the architecture.
        threads: of a CTA.
        registers: of a thread when it starts.
        shared: bytes of shared memory of a CTA, static and dynamic.

    >>> from lowering.target import target
    >>> occupancy(target("sm_90a"), 384, 168, 200 << 10).limits
    {'threads': 5, 'registers': 1, 'shared memory': 1, 'CTAs': 32}
    """
    there = MULTIPROCESSORS[target.sm]
    warps = -(-threads // LANES)
    of_warp = -(-registers * LANES // _REGISTER_UNIT) * _REGISTER_UNIT
    by_registers = REGISTERS // _SCHEDULERS // of_warp * _SCHEDULERS // warps if registers else there.ctas
    unit, reserved = (128, 1024) if target.sm >= 80 else (256, 0)
    of_cta = -(-(shared + reserved) // unit) * unit
    return Occupancy(
        {
            "threads": there.threads // LANES // warps,
            "registers": by_registers,
            "shared memory": there.shared // of_cta if of_cta else there.ctas,
            "CTAs": there.ctas,
        }
    )
