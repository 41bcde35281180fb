"""What a kernel object keeps of its launches: plans, and launches that are decided whole."""

from __future__ import annotations

from typing import Any


class Plans(dict[Any, Any]):
    """Plans by what decides them; forgetting them forgets what was made by them.

    Attributes:
        ready: launches by all that decides them: what is seen of the arrays, alpha, beta, whether there is no C.
        once: what decides launches that were made once: the second time they are made ready.
        alike: what launches have in common that differ in the arrays' addresses alone, by the rest of that.
    """

    def __init__(self) -> None:
        super().__init__()
        self.ready: dict[Any, Any] = {}
        self.once: set[Any] = set()
        self.alike: dict[Any, Any] = {}

    def clear(self) -> None:
        super().clear()
        self.ready.clear()
        self.once.clear()
        self.alike.clear()


__all__ = ["Plans"]
