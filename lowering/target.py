"""Targets: the GPU architectures that code is made for, and what each needs from PTX.

A target that is not in the table is refused with its nearest neighbors; nothing is ever rounded down to a
known one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, order=True)
class Target:
    """A GPU architecture.

    Attributes:
        sm: compute capability as major * 10 + minor.
        specific: "a" for code that uses the architecture's own instructions (and runs on it alone), "f" for code that
            uses those of its family (and runs on the family from this architecture on), else "".
        ptx: the first PTX ISA version that has this target, as (major, minor).  Source: the PTX ISA's
            release notes, table of targets.
    """

    sm: int
    specific: str
    ptx: tuple[int, int]

    @property
    def name(self) -> str:
        return f"sm_{self.sm}{self.specific}"

    @property
    def compute_capability(self) -> tuple[int, int]:
        return divmod(self.sm, 10)

    def __str__(self) -> str:
        return self.name


TARGETS = {
    t.name: t
    for t in (
        Target(75, "", (6, 3)),
        Target(80, "", (7, 0)),
        Target(86, "", (7, 1)),
        Target(87, "", (7, 4)),
        Target(88, "", (9, 0)),
        Target(89, "", (7, 8)),
        Target(90, "", (7, 8)),
        Target(90, "a", (8, 0)),
        Target(100, "", (8, 6)),
        Target(100, "a", (8, 6)),
        Target(100, "f", (8, 8)),
        Target(103, "", (8, 8)),
        Target(103, "a", (8, 8)),
        Target(103, "f", (8, 8)),
        Target(110, "", (9, 0)),
        Target(110, "a", (9, 0)),
        Target(110, "f", (9, 0)),
        Target(120, "", (8, 7)),
        Target(120, "a", (8, 7)),
        Target(120, "f", (8, 8)),
        Target(121, "", (8, 8)),
        Target(121, "a", (8, 8)),
        Target(121, "f", (8, 8)),
    )
}


def target(name: Any) -> Target:
    """The target of that name.

    Errors: ValueError for one that is not known, naming the nearest known ones below and above.

    >>> target("sm_80").ptx
    (7, 0)
    >>> target("sm_99")
    Traceback (most recent call last):
    ValueError: unknown target 'sm_99': nearest known are sm_90a and sm_100 (known: sm_75, ...)
    """
    if isinstance(name, Target):
        return name
    if isinstance(name, str) and name in TARGETS:
        return TARGETS[name]
    found = re.search(r"\d+", str(name))
    hint = ""
    same = [t.name for t in TARGETS.values() if found and t.sm == int(found[0])]
    if same:
        hint = f"did you mean {' or '.join(same)}? "
    elif found:
        sm = int(found[0])
        below = [t for t in TARGETS.values() if t.sm <= sm]
        above = [t for t in TARGETS.values() if t.sm > sm]
        near = [t.name for t in (below[-1:] + above[:1])]
        hint = f"nearest known {'is' if len(near) == 1 else 'are'} {' and '.join(near)} "
    raise ValueError(f"unknown target {name!r}: {hint}(known: {', '.join(TARGETS)})")
