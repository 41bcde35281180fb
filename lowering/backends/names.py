"""Identifiers of emitted text: readable ones, wished for by the program, that collide with nothing.

PTX and C share the letters that they allow; what each reserves is said by the backend.
"""

from __future__ import annotations

import re
from collections.abc import Iterable


class Names:
    """The identifiers of one text; each is given out once.

    A wish that is taken, or that the language reserves, is met with underscores behind it.

    >>> names = Names({"float"})
    >>> names.one("acc"), names.one("acc"), names.one("float"), names.one("π2")
    ('acc', 'acc_', 'float_', '_u3c02')
    >>> names.family("r", 12), names.family("held1", 4), names.family("t"), names.one("t7")
    ('r', 'held1_', 't', 't7_')
    """

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self._taken = set(reserved)
        self._endless: list[str] = []

    def one(self, wish: str) -> str:
        """An identifier like `wish`."""
        return self._free(wish, 0)

    def family(self, wish: str, count: int | None = None) -> str:
        """A base like `wish` whose numbered names ``base0 ... base<count - 1>`` are identifiers too.

        Without a count, all numbers are taken.  No base ends in a digit: the assembler takes all digits at the end of
        ``%held10`` for the number, and knows no ``%held`` where ``%held1<4>`` was declared.
        """
        return self._free(f"{wish}_" if wish[-1:].isdigit() else wish, count)

    def _free(self, wish: str, count: int | None) -> str:
        base = re.sub(r"\W", lambda found: f"_u{ord(found[0]):x}", wish, flags=re.ASCII)
        while True:
            mine = {base, *[f"{base}{i}" for i in range(count or 0)]}
            clash = not self._taken.isdisjoint(mine) or any(_is_of(n, e) for n in mine for e in self._endless)
            if count is None:
                clash = clash or any(_is_of(n, base) for n in self._taken)
            if not clash:
                break
            base += "_"
        self._taken |= mine
        if count is None:
            self._endless.append(base)
        return base


def _is_of(name: str, base: str) -> bool:
    """Whether a name is one of an endless family."""
    return name.startswith(base) and (name == base or name[len(base) :].isdigit())


def comment_line(text: str) -> str:
    """A program's comment as one ``//`` line, which nothing in it can end or continue."""
    line = " ".join(["//", *text.split()])
    return line + "." if line.endswith("\\") else line
