"""Index expressions as PTX integer instructions where there are loops and branches.

An instruction is emitted once as long as what it computes from has not changed, and outside the loops in which it
does not change, so that a kernel's inner loop holds the work that is its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from tilelayout.expr import Expr, Index, Var, bounds, variables

from .address import IndexCode, width

Lines = list[Any]
"""Lines of text, and lists of them for what is nested."""


@dataclass
class Scope:
    """A stretch of text that is left as a whole.

    Attributes:
        lines: its text so far.
        assigned: of a loop: the variables that its turns change, by name; None of a branch.
        hoist: of a loop: whether what does not change is computed before it.
        known: instruction without its result -> the register of the result.
    """

    lines: Lines = field(default_factory=list)
    assigned: frozenset[str] | None = None
    hoist: bool = False
    known: dict[str, str] = field(default_factory=dict)


class ScopedCode(IndexCode):
    """Emits the instructions of expressions into the innermost scope, or further out where it may.

    Variables are registers that change; each other register is written once.
    """

    fused: ClassVar[bool] = False  # a product by itself may change less often than the sum

    def __init__(self, variables: dict[str, str], base: dict[int, str]) -> None:
        super().__init__([], variables, base)
        self.scopes = [Scope()]
        self.wide: set[str] = set()  # variables in registers of 64 bits
        self._names = {register: name for name, register in variables.items()}
        self._level: dict[str, int] = {}  # register -> scope in which it was written
        self._from: dict[str, frozenset[str]] = {}  # register -> variables that it was computed from

    # --- scopes -------------------------------------------------------------------------------------

    def enter(self, assigned: frozenset[str] | None = None, hoist: bool = False) -> Lines:
        """Begin a branch, or a loop that changes those variables; returns its lines."""
        if assigned is not None:
            for name in assigned:
                self.forget(name)
        self.scopes.append(Scope(assigned=assigned, hoist=hoist))
        return self.scopes[-1].lines

    def leave(self) -> None:
        """End the innermost scope: its lines follow those of the scope around it."""
        inner = self.scopes.pop()
        self.scopes[-1].lines.append(inner.lines)

    def line(self, text: str) -> None:
        """One line in the innermost scope."""
        self.scopes[-1].lines.append(text)

    def forget(self, name: str) -> None:
        """A variable is about to change: nothing computed from it is known any more."""
        for scope in self.scopes:
            stale = [text for text, register in scope.known.items() if name in self._from[register]]
            for text in stale:
                del scope.known[text]

    def declare(self, variable: Var, register: str) -> None:
        """A variable is in that register from here on."""
        self._registers[variable.name] = register
        self._names[register] = variable.name
        if width(variable) == 64:
            self.wide.add(variable.name)

    # --- instructions ---------------------------------------------------------------------------------

    def emit(self, operation: str, bits: int, *operands: str) -> str:
        text = f"{operation} {', '.join(operands)}"
        for scope in self.scopes:
            if text in scope.known:
                return scope.known[text]
        level = max([self._level_of(x) for x in operands], default=0)
        home = self._home(level)
        register = f"{self._base[bits]}{self.used[bits]}"
        self.used[bits] += 1
        self._level[register] = home
        self._from[register] = frozenset().union(*[self._sources(x) for x in operands])
        self.scopes[home].known[text] = register
        self.scopes[home].lines.append(f"{operation} {', '.join((register, *operands))};")
        return register

    def _home(self, level: int) -> int:
        """The scope for an instruction on registers of that scope: around the outermost loop that hoists it."""
        last = len(self.scopes) - 1
        kept = max([level, *[i for i, s in enumerate(self.scopes) if s.assigned is not None and not s.hoist]])
        loops = [i for i in range(kept + 1, last + 1) if self.scopes[i].assigned is not None]
        return loops[0] - 1 if loops else last

    def _level_of(self, register: str) -> int:
        """The innermost scope in which the register may change, or was written."""
        name = self._names.get(register)
        if name is None:
            return self._level.get(register, 0)
        loops = [i for i, s in enumerate(self.scopes) if s.assigned is not None and name in s.assigned]
        return loops[-1] if loops else 0

    def _sources(self, register: str) -> frozenset[str]:
        name = self._names.get(register)
        return frozenset([name]) if name is not None else self._from.get(register, frozenset())

    def value(self, x: Index, bits: int) -> str:
        if isinstance(x, Var) and x.name in self.wide and bits == 64:
            return self._compute(x, 64)  # as it is, however narrow its bounds
        return super().value(x, bits)

    def _compute(self, x: Expr, bits: int) -> str:
        if isinstance(x, Var):
            register, own = self._variable(x), 64 if x.name in self.wide else 32
            if bits == own:
                return register
            if bits < own:
                return self.emit("cvt.u32.u64", 32, register)
            return self.emit("cvt.u64.u32" if (bounds(x)[0] or 0) >= 0 else "cvt.s64.s32", 64, register)
        return super()._compute(x, bits)

    def _order(self, mono: tuple[Expr, ...], k: int) -> tuple[Any, ...]:
        """Terms that change least come first, so that their sum is computed least often."""
        return self._rank(mono), *super()._order(mono, k)

    def _rank(self, mono: tuple[Expr, ...]) -> int:
        """The innermost scope in which a product changes."""
        names = {v.name for atom in mono for v in variables(atom)}
        levels = [self._level_of(self._registers[n]) for n in names if n in self._registers]
        return max(levels, default=0)


def flat(lines: Lines, indent: str = "") -> list[str]:
    """The lines in order, what is nested further in."""
    out: list[str] = []
    for line in lines:
        out += flat(line, indent + "    ") if isinstance(line, list) else [f"{indent}{line}".rstrip()]
    return out
