"""A CTA's shared memory: its bytes, as arrays of the buffers' elements, and the history of each buffer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .clocks import Clocks
from .plan import Plan, held_type
from .shadow import Shadow


class CTAShared:
    """Shared memory when a CTA begins: nothing in it.

    Attributes:
        bytes: all of it.
        arrays: by name, the buffers' elements, views of `bytes`; packed ones as bytes.
        shadows: by name, who touched what; of buffers of mbarriers none.
    """

    def __init__(self, plan: Plan, clocks: Clocks, describe: Callable[[int], str]) -> None:
        self.bytes = np.full(-(-plan.bytes // 16) * 16, 0xFF, np.uint8)
        self.arrays: dict[str, Any] = {}
        self.shadows: dict[str, Shadow] = {}
        for name, place in plan.shared.items():
            part = self.bytes[place.offset : place.offset + place.buffer.bytes]
            self.arrays[name] = part.view(held_type(place.buffer))
            if not place.barriers:
                self.shadows[name] = Shadow(place.buffer, place.granule, clocks, place.by_threads, describe)
