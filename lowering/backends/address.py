"""Index expressions as PTX integer instructions, and how wide the integers of an address must be.

Values are two's complement registers, of 32 bits where the expression's bounds fit and of 64 elsewhere.  An
instruction that was emitted before is not emitted again.
"""

from __future__ import annotations

from typing import Any, ClassVar

from tilelayout import LayoutError
from tilelayout.expr import Bitwise, Division, Expr, FloorDiv, Index, Polynomial, Shift, Var, bounds

from ..dtypes import dtype
from ..program import Address, Buffer

_LIMIT = {32: 1 << 31, 64: 1 << 63}


def byte_offset(address: Address) -> Index:
    """The place of an address in its buffer, in bytes; of the byte, where elements share one."""
    return address.unit * address.buffer.unit_bytes


def packing(buffer: Buffer) -> str:
    """How a buffer holds elements narrower than a byte, for its comment; empty for others."""
    if buffer.per_unit > 1:
        return f", {buffer.per_unit} elements a byte, low bits first"
    return ", a byte for each element, as in registers" if dtype(buffer.dtype).bits < 8 else ""


def split_constant(x: Index) -> tuple[Index, int]:
    """``(rest, constant)`` with ``x == rest + constant``, `rest` without a constant term."""
    if isinstance(x, int):
        return 0, x
    constant = x.terms.get((), 0) if isinstance(x, Polynomial) else 0
    return x - constant, constant


def finite(x: Index) -> tuple[int, int]:
    """The least and the largest value.

    Errors: LayoutError where a variable is unbounded.
    """
    low, high = bounds(x)
    if low is None or high is None:
        raise LayoutError("address", f"{x} is unbounded", "give its variables bounds")
    return low, high


def reach(x: Index) -> int:
    """The largest absolute value that `x` or a part of it can take, in whatever order sums are formed.

    Errors: LayoutError where a variable is unbounded.

    >>> lane = Var("lane", 0, 31)
    >>> reach(100 * (lane // 4)), reach(8 - lane), reach(lane % 4 * 2)
    (700, 39, 31)
    """
    if isinstance(x, int):
        return abs(x)
    if isinstance(x, Polynomial):
        total, most = 0, 0
        for mono, k in x.terms.items():
            term = abs(k)
            for atom in mono:
                term *= max(abs(b) for b in finite(atom))
                most = max(most, reach(atom))
            total += term
        return max(total, most)
    parts: tuple[Index, ...] = ()
    if isinstance(x, Division):
        parts = (x.dividend, x.divisor)
    elif isinstance(x, Bitwise):
        parts = x.operands
    elif isinstance(x, Shift):
        parts = (x.operand, x.count)
    return max([abs(b) for b in finite(x)] + [reach(part) for part in parts])


def width(x: Index) -> int:
    """Bits of a signed register that holds every value of `x`: 32 or 64.

    Errors: LayoutError where 64 do not suffice.
    """
    low, high = finite(x)
    for bits, limit in _LIMIT.items():
        if -limit <= low and high < limit:
            return bits
    raise LayoutError("address", f"{x} reaches {low if -low > high else high}, which 64 bits do not hold")


def index_bits(address: Address) -> int:
    """32 or 64: bits of signed integers that hold an address in bytes, however its parts are arranged.

    Errors: LayoutError where 64 do not suffice.
    """
    most = reach(byte_offset(address))
    for bits, limit in _LIMIT.items():
        if most < limit:
            return bits
    raise LayoutError(
        "address", f"{address.element} of {address.buffer.name} reaches {most} bytes, beyond 64 bits"
    )


def literal(x: int, bits: int) -> str:
    """`x` modulo ``2**bits``, as a signed number."""
    limit = _LIMIT[bits]
    return str((x + limit) % (2 * limit) - limit)


class IndexCode:
    """Emits the instructions of expressions, in order, into `lines`.

    Attributes:
        lines: the instructions so far.
        used: registers taken so far, by width in bits; they are numbered ``base0, base1 ...`` on the base
            name of their width.
        variables: the variables met, by name.
        fused: whether a term is multiplied and added in one instruction.
    """

    fused: ClassVar[bool] = True

    def __init__(self, lines: list[str], variables: dict[str, str], base: dict[int, str]) -> None:
        self.lines = lines
        self.used = dict.fromkeys(base, 0)
        self.variables: set[str] = set()
        self._registers = variables
        self._base = base
        self._known: dict[str, str] = {}

    def emit(self, operation: str, bits: int, *operands: str) -> str:
        """The register that holds the result of an instruction, emitted unless it has been before."""
        text = f"{operation} {', '.join(operands)}"
        found = self._known.get(text)
        if found is None:
            found = self._known[text] = f"{self._base[bits]}{self.used[bits]}"
            self.used[bits] += 1
            self.lines.append(f"{operation} {', '.join((found, *operands))};")
        return found

    def value(self, x: Index, bits: int) -> str:
        """A register, or a literal, that holds `x` modulo ``2**bits``.

        Errors: LayoutError for a variable that a kernel does not have, or a value beyond 64 bits.
        """
        if isinstance(x, int):
            return literal(x, bits)
        own = width(x)
        register = self._compute(x, own)
        if own == bits:
            return register
        if bits < own:
            return self.emit("cvt.u32.u64", 32, register)
        return self.emit("cvt.u64.u32" if finite(x)[0] >= 0 else "cvt.s64.s32", 64, register)

    def _compute(self, x: Expr, bits: int) -> str:
        """`x` in a register of the width that it needs."""
        if isinstance(x, Var):
            register = self._variable(x)  # of 32 bits, whatever bounds the variable claims
            return register if bits == 32 else self.emit("cvt.s64.s32", 64, register)
        if isinstance(x, Polynomial):
            return self._sum(x, bits)
        if isinstance(x, Division):
            return self._division(x, bits)
        if isinstance(x, Bitwise):
            operation = {"^": "xor", "&": "and", "|": "or"}[x.symbol] + f".b{bits}"
            result = self._register(x.operands[0], bits)
            for operand in x.operands[1:]:
                result = self.emit(operation, bits, result, self.value(operand, bits))
            return result
        if isinstance(x, Shift):
            left = x.symbol == "<<"
            wide = bits if left else max(bits, width(x.operand))
            operation = f"shl.b{wide}" if left else f"shr.{'u' if finite(x.operand)[0] >= 0 else 's'}{wide}"
            # PTX lets a shift by more than the width give what unlimited integers give.
            operand = self._register(x.operand, wide)
            return self._narrowed(self.emit(operation, wide, operand, self.value(x.count, 32)), wide, bits)
        raise LayoutError("address", f"{type(x).__name__} {x} has no PTX")

    def _variable(self, x: Var) -> str:
        """The register of a variable, which has been met now."""
        if x.name not in self._registers:
            known = ", ".join(self._registers)
            raise LayoutError("address", f"the kernel has no variable {x.name!r}", f"it has {known}")
        self.variables.add(x.name)
        return self._registers[x.name]

    def _register(self, x: Index, bits: int) -> str:
        """Like `value`, but a literal is moved to a register."""
        text = self.value(x, bits)
        return self.emit(f"mov.b{bits}", bits, text) if isinstance(x, int) else text

    def _narrowed(self, register: str, wide: int, bits: int) -> str:
        return register if wide == bits else self.emit("cvt.u32.u64", 32, register)

    def _sum(self, x: Polynomial, bits: int) -> str:
        """Wrapping arithmetic: the sum fits, so it is right whatever its parts do."""
        terms = [(mono, k) for mono, k in x.terms.items() if mono]
        total = ""
        for mono, k in sorted(terms, key=lambda term: self._order(*term)):
            total = self._term(mono, k, total, bits)
        constant = x.terms.get((), 0)
        return self.emit(f"add.s{bits}", bits, total, literal(constant, bits)) if constant else total

    def _order(self, mono: tuple[Expr, ...], k: int) -> tuple[Any, ...]:
        """What the terms of a sum are sorted by."""
        return -k, [a.order() for a in mono]

    def _term(self, mono: tuple[Expr, ...], k: int, total: str, bits: int) -> str:
        """``total + k * mono``; an empty total is none."""
        product = self.value(mono[0], bits)
        for atom in mono[1:]:
            product = self.emit(f"mul.lo.s{bits}", bits, product, self.value(atom, bits))
        if total and k != 1 and self.fused:
            return self.emit(f"mad.lo.s{bits}", bits, product, literal(k, bits), total)
        if k != 1:
            power = k > 0 and not k & k - 1
            operation, factor = (
                ("shl.b", str(k.bit_length() - 1)) if power else ("mul.lo.s", literal(k, bits))
            )
            product = self.emit(f"{operation}{bits}", bits, product, factor)
        return self.emit(f"add.s{bits}", bits, total, product) if total else product

    def _division(self, x: Division, bits: int) -> str:
        quotient = isinstance(x, FloorDiv)
        power = isinstance(x.divisor, int) and not x.divisor & x.divisor - 1
        own = width(x.dividend)
        wide = own if power and x.divisor <= 1 << 31 else max(own, width(x.divisor))  # type: ignore[operator]
        dividend, divisor = self._register(x.dividend, wide), self.value(x.divisor, wide)
        sign = "u" if finite(x.dividend)[0] >= 0 else "s"
        if power:
            # Arithmetic shifts and masks floor, also below zero.
            if quotient:
                result = self.emit(f"shr.{sign}{wide}", wide, dividend, str(x.divisor.bit_length() - 1))  # type: ignore[union-attr]
            else:
                result = self.emit(f"and.b{wide}", wide, dividend, str(x.divisor - 1))
        elif sign == "u":
            result = self.emit(f"{'div' if quotient else 'rem'}.u{wide}", wide, dividend, divisor)
        else:
            # PTX divides towards zero: where the remainder is negative, its sign (-1) corrects both.
            remainder = self.emit(f"rem.s{wide}", wide, dividend, divisor)
            negative = self.emit(f"shr.s{wide}", wide, remainder, str(wide - 1))
            if quotient:
                towards_zero = self.emit(f"div.s{wide}", wide, dividend, divisor)
                result = self.emit(f"add.s{wide}", wide, towards_zero, negative)
            else:
                correction = self.emit(f"and.b{wide}", wide, negative, divisor)
                result = self.emit(f"add.s{wide}", wide, remainder, correction)
        return self._narrowed(result, wide, bits)
