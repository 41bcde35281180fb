"""Where the buffers of a program lie in the shared memory of its CTA."""

from __future__ import annotations

from dataclasses import dataclass

from ..program import Buffer, Program

STATIC_LIMIT = 48 * 1024
"""Bytes that a kernel may declare by itself; more must be dynamic (CUDA programming guide, "Shared Memory")."""


@dataclass(frozen=True)
class SharedMemory:
    """A map of a CTA's shared memory.

    Attributes:
        offsets: buffer -> its first byte.  Only one kind is used: all are declared arrays, or all lie in dynamic
            shared memory, so the two never overlap.
        bytes: from the first byte to the last in use.
    """

    offsets: dict[Buffer, int]
    bytes: int

    @classmethod
    def of(cls, program: Program) -> SharedMemory:
        """The most aligned buffers first, each at the next multiple of its alignment."""
        offsets: dict[Buffer, int] = {}
        end = 0
        shared = [b for b in program.buffers if b.space == "shared"]
        for b in sorted(shared, key=lambda b: -b.alignment):
            offsets[b] = -(-end // b.alignment) * b.alignment
            end = offsets[b] + b.bytes
        return cls(offsets, end)

    @property
    def dynamic(self) -> int:
        """Bytes of dynamic shared memory that a launch must give; 0 where the arrays are declared."""
        return self.bytes if self.bytes > STATIC_LIMIT else 0
