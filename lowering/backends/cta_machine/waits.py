"""What a warp can be blocked on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Done = Callable[[], bool]
Why = Callable[[], str]


@dataclass
class Wait:
    """A warp waits.

    Attributes:
        done: whether it may go on.
        why: what it waits for, as text.
    """

    done: Done
    why: Why
