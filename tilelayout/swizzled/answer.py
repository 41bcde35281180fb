"""What a question returns: an answer that is true or false and says why."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Answer:
    """The answer to a question: its truth value, the witness against it, and a sentence."""

    __slots__ = ("holds", "reason", "witness")

    holds: bool
    witness: Any
    reason: str

    def __init__(self, holds: bool, witness: Any, reason: str) -> None:
        self.holds, self.witness, self.reason = holds, witness, reason

    def __bool__(self) -> bool:
        return self.holds

    def __repr__(self) -> str:
        return f"{self.holds}: {self.reason}"
