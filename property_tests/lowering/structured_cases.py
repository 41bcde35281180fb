"""Drawn programs with variables, branches and loops, whose bounds are honest; they observe their variables in memory.

A value is observed through loads from a table that holds each place's number, 16 bits at a time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

from lowering.backends.address import reach
from lowering.control import CTA, CTAS, All, Compare, Condition, If, Parameter, Set, While
from lowering.isa import LOADS, STORES
from lowering.program import Address, Buffer, Instr, Program, Registers, Slot, Statement
from lowering.registers import LANE
from tilelayout.expr import Expr, Index, Var, bounds, variables

WARPS, GRID = 2, (2, 1, 1)
WARP = Var("warp", 0, 31)
THREAD = 32 * WARP + LANE
DIGIT = 1 << 16
TABLE = Buffer("table", "A", "uint32", (0,), 0, "global", 16)
RESULT = Buffer("result", "D", "uint32", (0,), 0, "global", 16)
HELD = Registers("held", "R", "uint32", 4, "b32")

BOUNDS = [
    (0, 7),
    (0, (1 << 31) - 1),
    (-(1 << 31), (1 << 31) - 1),
    (-5, 1000),
    (0, 1 << 40),
    (-(1 << 40), 7),
    (-(1 << 60), (1 << 60) - 1),
]
NAMES = ["a", "p0", "r1", "rd2", "thread", "tid", "held0", "table", "b"]
"""Some that the text has uses of its own for."""
RELATIONS: Any = ["<", "<=", "==", "!=", ">", ">="]


def fits(x: Index) -> bool:
    """Whether no part leaves 62 bits, in whatever order sums are formed."""
    return reach(x) < 1 << 61


def within(x: Index, v: Var) -> Index:
    """The value, brought into the bounds of a variable."""
    (lo, hi), (first, last) = finite(x), finite(v)
    return x if first <= lo and hi <= last else x % (last - first + 1) + first


def finite(x: Index) -> tuple[int, int]:
    """Its bounds, which all here have."""
    lo, hi = bounds(x)
    assert lo is not None
    assert hi is not None
    return lo, hi


@dataclass
class Drawing:
    """A program that is being drawn.

    Attributes:
        declared: the variables with their own bounds, by name.
        variables: those that hold a value; in a branch, with the bounds that its condition has shown.
        uniform: names that all lanes of a warp agree in.
        turns: loops so far, which each count in their own variable.
        observed: places of the result so far, of each thread.
        counters: of the loops around.
        pool: expressions so far: the same ones come again, so that there is something to be known.
    """

    draw: Any
    declared: dict[str, Var]
    variables: dict[str, Var]
    uniform: list[str]
    parameters: list[Var]
    turns: int = 0
    observed: int = 0
    counters: list[Var] = field(default_factory=list)
    pool: list[Index] = field(default_factory=list)

    def one_of(self, *options: Any) -> Any:
        return self.draw(st.sampled_from(options))

    def leaf(self, alike: bool) -> Index:
        names = self.uniform if alike else list(self.variables)
        common = [WARP, CTA, CTAS, *self.parameters, *self.counters, *[self.variables[n] for n in names]]
        return self.one_of(*common, 3) if alike else self.one_of(LANE, *common, -1, 5, 1 << 33)

    def expression(self, depth: int = 2, alike: bool = False) -> Index:
        if not alike and (known := self.known()) and self.one_of(True, False):
            return self.one_of(*known)
        x = self.leaf(alike)
        if depth == 0 or self.one_of(True, False, False):
            return x
        y = self.expression(depth - 1, alike)
        found = self.operation(self.one_of(*"+-*/%^&|<>"), y, x)
        if not fits(found):
            return y
        self.pool.append(found)
        return found

    def known(self) -> list[Index]:
        """Earlier expressions of variables that are there, with bounds that hold here."""
        there = {LANE, WARP, CTA, CTAS, *self.parameters, *self.counters, *self.variables.values()}
        return [x for x in self.pool[-8:] if isinstance(x, Expr) and variables(x) <= there]

    def operation(self, symbol: str, x: Index, y: Index) -> Index:
        """With operands that are made small where the result would be too large."""
        if symbol in "/%":
            divisor = self.one_of(3, 8, 1000, (1 << 31) + 1, 1 << 32, y % 13 + 1)
            return x // divisor if symbol == "/" else x % divisor
        if symbol in "<>":
            count = self.one_of(1, 5, 31, 33, y % 4)
            if symbol == ">":
                return x >> count
            found = x << count
            return found if fits(found) else x % 1000 << count
        if symbol == "*":
            found = x * y
            return found if fits(found) else x % 100003 * (y % 4093)
        if symbol in "+-":
            return x + y if symbol == "+" else x - y
        return x ^ y if symbol == "^" else x & y if symbol == "&" else x | y

    def compare(self, alike: bool = False) -> Compare:
        left = self.expression(1, alike)
        right = self.one_of(0, 5, 16, -(1 << 31), 3 << 30, -(1 << 35), self.leaf(alike))
        return Compare(left, self.one_of(*RELATIONS), right)

    def condition(self, alike: bool) -> Condition:
        parts = tuple(self.compare(alike) for _ in range(self.one_of(1, 1, 2, 0)))
        return parts[0] if len(parts) == 1 else All(parts)

    # --- statements ---------------------------------------------------------------------------------

    def block(self, depth: int, targets: list[str], alike: bool) -> tuple[Statement, ...]:
        """Statements that assign those variables; `alike`: all lanes of the warp come here."""
        kinds = ["set", "observe"] + ["if", "while", "shown", "while"] * (depth > 0)
        out: list[Statement] = []
        for _ in range(self.one_of(2, 1, 3)):
            kind = self.one_of(*kinds)
            if kind == "set":
                out += self.set(targets, alike)
            elif kind == "observe":
                out += self.observe(self.expression())
            else:
                seen = self.seen(targets)
                out += self.observe(seen, 1)
                if kind == "if":
                    out.append(self.branch(depth, targets, alike))
                elif kind == "shown":
                    out.append(self.shown(depth, targets))
                else:
                    out += self.loop(depth, targets, alike)
                out += self.observe(seen, 1)
        return tuple(out)

    def seen(self, targets: list[str]) -> Index:
        """An expression that is observed before, in and behind what may assign its variable."""
        v = self.one_of(*[self.declared[n] for n in targets] or [LANE])
        found = v // 3 + LANE
        self.pool.append(found)
        return found

    def set(self, targets: list[str], alike: bool) -> list[Statement]:
        names = [n for n in targets if alike or n not in self.uniform]
        if not names:
            return []
        name = self.one_of(*names)
        value = self.expression(alike=name in self.uniform)
        self.variables[name] = self.declared[name]
        return [Set(self.variables[name], within(value, self.variables[name]))]

    def branch(self, depth: int, targets: list[str], alike: bool) -> If:
        together = alike and self.one_of(True, False)
        condition = self.condition(together)
        shown = dict(self.variables)
        body = self.block(depth - 1, targets, together)
        after = dict(self.variables)
        self.variables = dict(shown)
        orelse = self.block(depth - 1, targets, together) if self.one_of(True, False) else ()
        self.variables = {n: v if v == after[n] else self.declared[n] for n, v in self.variables.items()}
        return If(condition, body, orelse)

    def shown(self, depth: int, targets: list[str]) -> If:
        """A branch in which a variable has the bounds that were tested."""
        name = self.one_of(*self.variables)
        before, hi = dict(self.variables), self.one_of(3, 1 << 20)
        v = self.variables[name]
        self.variables[name] = Var(name, 0, hi)
        body = self.block(depth - 1, targets, False)
        self.variables = {
            n: w if self.variables[n] in (w, Var(n, 0, hi)) else self.declared[n] for n, w in before.items()
        }
        return If(All((Compare(v, ">=", 0), Compare(v, "<=", hi))), body)

    def loop(self, depth: int, targets: list[str], alike: bool) -> list[Statement]:
        kept = self.one_of(*self.variables)
        mine = [n for n in targets if n != kept]
        for n in mine:
            self.variables[n] = self.declared[n]
        self.turns += 1
        turn, limit = Var(f"turn{self.turns}", 0, 5), self.expression(1, True) % 4
        forward, before = self.one_of(True, False), dict(self.variables)
        self.counters.append(turn)
        more = self.condition(True) if self.one_of(True, False, False) else All(())
        first = self.observe(self.seen(mine), 1)
        body = (*first, *self.block(depth - 1, mine, alike))
        self.counters.pop()
        assert all(v == before[n] for n, v in self.variables.items() if n not in mine)
        parts = (more,) if isinstance(more, Compare) else more.comparisons
        test = Compare(turn, "<", limit) if forward else Compare(turn, ">", 0)
        step = Set(turn, turn + 1 if forward else (turn + 5) % 6)
        start = Set(turn, 0 if forward else limit)
        return [start, While(All((test, *parts)), (*body, step), self.one_of(True, True, False))]

    def observe(self, x: Index, most: int = 4) -> list[Statement]:
        """Its 16-bit digits, `most` at the most, in the thread's own places of the result."""
        out: list[Statement] = []
        lo, hi = finite(x)
        for i in range(min(most, 2 if -(1 << 31) <= lo and hi < 1 << 31 else 4)):
            digit = x // (1 << 16 * i) % DIGIT
            if not fits(digit):  # a division of a division by more than there are numbers
                break
            load = Instr(LOADS["global", "b32", 1], ((Slot(HELD, i),), Address(TABLE, (digit,))))
            place = THREAD + 32 * WARPS * (CTA + GRID[0] * self.observed)
            self.observed += 1
            out += [load, Instr(STORES["global", "b32", 1], (Address(RESULT, (place,)), (Slot(HELD, i),)))]
        if len(out) > 2 and self.one_of(True, False):
            out = [out[0], out[2], out[1], out[3], *out[4:]]
        return out


class Case:
    """A program and what it is launched with."""

    def __init__(self, program: Program, values: dict[str, int], size: int) -> None:
        self.program, self.values, self.size = program, values, size

    def __repr__(self) -> str:
        return f"{self.values}\n{self.program}"

    def memory(self) -> dict[str, Any]:
        return {
            "table": np.arange(DIGIT, dtype=np.uint32),
            "result": np.full(self.size, 0xFFFFFFFF, np.uint32),
        }


@st.composite
def programs(draw: Any, depth: int = 3) -> Case:
    """Programs of some variables, parameters, branches and loops."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=3, max_size=4, unique=True))
    variables = {n: Var(n, *draw(st.sampled_from(BOUNDS))) for n in names}
    numbers = [
        Parameter("n", "s32", -10, 1000),
        Parameter("wide", "s64", -(1 << 40), 1 << 40),
        Parameter("narrow", "s64", 0, 100),
    ]
    values = {p.name: draw(st.integers(p.lo, p.hi)) for p in numbers}  # type: ignore[arg-type]
    drawing = Drawing(draw, variables, {}, [], [p.variable for p in numbers])
    body: list[Statement] = []
    for i, (n, v) in enumerate(variables.items()):
        if i == 0:
            drawing.uniform.append(n)
        value = drawing.expression(1, alike=i == 0) if i else drawing.one_of(WARP, 3, CTA)
        drawing.variables[n] = v
        body.append(Set(v, within(value, v)))
    body += drawing.block(depth, names, True)
    drawing.variables = dict(variables)
    for x in (*variables.values(), *drawing.known()[-2:]):
        body += drawing.observe(x)
    program = Program(
        "kernel", WARPS, (), (), tuple(body), (TABLE, RESULT), (HELD,), parameters=tuple(numbers)
    )
    return Case(program, values, 32 * WARPS * GRID[0] * drawing.observed)
