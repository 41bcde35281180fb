"""Index expressions as LLVM integers of 64 bits.

Two's complement: shifts and masks floor also below zero, so a division by a power of two is right for every dividend.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llvmlite import ir

from tilelayout import LayoutError
from tilelayout.expr import (
    Bitwise,
    Division,
    Expr,
    FloorDiv,
    Index,
    Polynomial,
    Shift,
    Var,
    bounds,
    variables,
)

INDEX = ir.IntType(64)


class IndexValues:
    """Emits expressions in given variables; one that was emitted before is not emitted again.

    Attributes:
        variables: their values, by name.
        known: the values of expressions so far.
        bases: the same of addresses, by buffer and the part that is no constant.
    """

    def __init__(self, builder: ir.IRBuilder, variables: Mapping[str, ir.Value]) -> None:
        self._builder = builder
        self.variables = dict(variables)
        self.known: dict[Expr, ir.Value] = {}
        self.bases: dict[tuple[Any, Index], ir.Value] = {}

    def inner(self) -> IndexValues:
        """The same for a branch: what is emitted there is not known behind it."""
        found = IndexValues(self._builder, self.variables)
        found.known, found.bases = dict(self.known), dict(self.bases)
        return found

    def assign(self, name: str, value: ir.Value) -> None:
        """Give a variable a value; what was known of its former one is forgotten."""
        if name in self.variables:
            self.known = {x: v for x, v in self.known.items() if not _mentions(x, name)}
            self.bases = {x: v for x, v in self.bases.items() if not _mentions(x[1], name)}
        self.variables[name] = value

    def value(self, x: Index) -> ir.Value:
        """The value of an expression.  Errors: LayoutError for a variable or a division that has none here."""
        if isinstance(x, int):
            return ir.Constant(INDEX, x)
        if x not in self.known:
            self.known[x] = self._compute(x)
        return self.known[x]

    def _compute(self, x: Expr) -> ir.Value:
        if isinstance(x, Var):
            if x.name not in self.variables:
                known = ", ".join(self.variables)
                raise LayoutError("address", f"a thread has no variable {x.name!r}", f"it has {known}")
            return self.variables[x.name]
        if isinstance(x, Polynomial):
            return self._sum(x)
        if isinstance(x, Division):
            return self._division(x)
        if isinstance(x, Bitwise):
            operation = {"^": self._builder.xor, "&": self._builder.and_, "|": self._builder.or_}[x.symbol]
            result = self.value(x.operands[0])
            for operand in x.operands[1:]:
                result = operation(result, self.value(operand))
            return result
        if isinstance(x, Shift):
            operation = self._builder.shl if x.symbol == "<<" else self._builder.ashr
            return operation(self.value(x.operand), self.value(x.count))
        raise LayoutError("address", f"{type(x).__name__} {x} has no LLVM form")

    def _sum(self, x: Polynomial) -> ir.Value:
        total: ir.Value = ir.Constant(INDEX, x.terms.get((), 0))
        for mono, k in x.terms.items():
            if mono:
                product: ir.Value = ir.Constant(INDEX, k)
                for atom in mono:
                    product = self._builder.mul(product, self.value(atom))
                total = self._builder.add(total, product)
        return total

    def _division(self, x: Division) -> ir.Value:
        quotient = isinstance(x, FloorDiv)
        dividend = self.value(x.dividend)
        if isinstance(x.divisor, int) and not x.divisor & x.divisor - 1:
            if quotient:
                return self._builder.ashr(dividend, ir.Constant(INDEX, x.divisor.bit_length() - 1))
            return self._builder.and_(dividend, ir.Constant(INDEX, x.divisor - 1))
        low, _ = bounds(x.dividend)
        if low is None or low < 0:
            raise LayoutError("address", f"{x} divides what may be negative, by no power of two")
        operation = self._builder.udiv if quotient else self._builder.urem
        return operation(dividend, self.value(x.divisor))


def _mentions(x: Index, name: str) -> bool:
    return any(v.name == name for v in variables(x))
