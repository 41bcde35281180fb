"""``bar.sync``: all threads of a CTA wait for one another, and see what each wrote to shared memory before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .record import Instruction


def _nothing(values: Mapping[str, Any]) -> dict[str, Any]:
    """No register changes; the reference machine knows what is ordered."""
    return {}


BAR_SYNC = Instruction(
    "bar.sync",
    "bar.sync 0;",
    (),
    75,
    (6, 3),
    "Parallel Synchronization and Communication Instructions: bar, barrier",
    _nothing,
    effect="memory",
    collective=True,
)
"""On barrier 0, by every thread of the CTA."""
