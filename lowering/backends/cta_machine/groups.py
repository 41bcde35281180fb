"""Groups of what threads begin and wait for in order: asynchronous copies, bulk stores.

Each thread has groups of its own; lanes that commit together are kept together.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .lanes import Lanes


@dataclass
class Group:
    """What the lanes of a mask have committed at once: (operation, mask of the lanes that it is of)."""

    mask: int
    parts: list[tuple[Any, int]] = field(default_factory=list[tuple[Any, int]])


class Groups:
    """The groups of a warp's lanes that have not been waited for, oldest first."""

    def __init__(self) -> None:
        self._open: list[tuple[Any, int]] = []
        self._groups: list[Group] = []

    def begin(self, operation: Any, lanes: Lanes) -> None:
        """An operation of those lanes, in no group yet."""
        self._open.append((operation, lanes.mask))

    def commit(self, lanes: Lanes) -> None:
        """What the lanes have begun is one more group of each."""
        mask = lanes.mask
        self._groups.append(Group(mask, [(x, m & mask) for x, m in self._open if m & mask]))
        self._open = [(x, m & ~mask) for x, m in self._open if m & ~mask]

    def wait(self, pending: int, lanes: Lanes) -> list[tuple[Any, int]]:
        """(operation, lanes) of what must be done once no more than the latest `pending` groups of a lane are not."""
        if all(group.mask == lanes.mask for group in self._groups):  # as a rule
            ended = max(0, len(self._groups) - pending)
            done = [part for group in self._groups[:ended] for part in group.parts]
            self._groups = self._groups[ended:]
            return done
        seen = dict.fromkeys(lanes.index.tolist(), 0)
        done = []
        kept: list[Group] = []
        for group in reversed(self._groups):
            finished = 0
            for lane in seen:
                if group.mask >> lane & 1:
                    seen[lane] += 1
                    finished |= (seen[lane] > pending) << lane
            done = [(x, m & finished) for x, m in group.parts if m & finished] + done
            if group.mask & ~finished:
                rest = [(x, m & ~finished) for x, m in group.parts if m & ~finished]
                kept.append(Group(group.mask & ~finished, rest))
        self._groups = kept[::-1]
        return done

    def left(self) -> list[tuple[Any, int]]:
        """What nobody has waited for."""
        return [*[part for group in self._groups for part in group.parts], *self._open]
