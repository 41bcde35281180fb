"""What is wrong with an access, before it is known which instruction made it."""

from __future__ import annotations


class Wrong(Exception):
    """One of the accesses that lanes make at once is none that the hardware defines.

    Attributes:
        problem: what it does, without the instruction.
        which: its number among those of the instruction.
    """

    def __init__(self, problem: str, which: int = 0) -> None:
        super().__init__(problem)
        self.problem, self.which = problem, which
