"""The number literals of a Python function: those that a GPU's numbers do not hold are refused, by name.

numba takes an integer beyond 64 bits modulo 2**64, computes with integers in 64 bits, and a float literal becomes a
float32 here; each would be another number than the function's.  What Python has not folded is folded here, as far as it
stands in one expression.
"""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from . import scalar_language
from .scalar_language import Fault

_LEAST, _MOST = -(2**63), 2**63 - 1
_QUIET = ("RESUME", "CACHE", "NOP", "EXTENDED_ARG", "COPY_FREE_VARS", "PRECALL", "PUSH_NULL", "NOT_TAKEN")
_BITS = 4096
"""A shift or a power of more is not computed, only known to be too large."""


class Known(NamedTuple):
    """A number, and how the function says it."""

    value: int
    text: str


def check(function: FunctionType, what: str, narrow: bool) -> None:
    """Refuse literals, and numbers around the function, that it would compute with another number for.

    Args:
        function: whose text and names are looked at.
        what: its name in messages.
        narrow: whether float literals become float32.

    Errors: LayoutError with the literal and its line.
    """
    for fault in _faults(function, narrow):
        raise scalar_language.refused(function, what, fault)


def _faults(function: FunctionType, narrow: bool) -> Iterator[Fault]:
    for name, value, line in scalar_language.names(function):
        yield from _of_number(value, f"`{name} = {_shown(value)}`", line, narrow)
    for i in dis.get_instructions(function.__code__):
        if i.opname in ("LOAD_CONST", "RETURN_CONST"):
            line = scalar_language.line_of(i, function)
            yield from _of_number(i.argval, f"`{_shown(i.argval)}`", line, narrow)
    yield from _folded(function)


def _shown(value: Any) -> str:
    """A number, the beginning of an integer that is very long."""
    return f"{hex(value)[:40]}..." if type(value) is int and value.bit_length() > 256 else repr(value)


def _of_number(value: Any, text: str, line: int | None, narrow: bool) -> Iterator[Fault]:
    """What is wrong with a number of the text, or around it; with those of a tuple."""
    if type(value) is tuple:
        for x in value:
            yield from _of_number(x, f"`{_shown(x)}`", line, narrow)
    if type(value) is int and not _LEAST <= value <= _MOST:
        yield _beyond(text, line)
    if type(value) is float and narrow:
        with np.errstate(all="ignore"):
            found = np.float32(value)
        if np.isfinite(value) and not np.isfinite(found):
            yield Fault(line, f"{text} is beyond float32", "a number from -3.402823e+38 to 3.402823e+38")
        if value != 0 and found == 0:
            yield Fault(line, f"{text} is 0 in float32", "0.0, or a number of at least 1.401298e-45")


def _beyond(text: str, line: int | None) -> Fault:
    return Fault(line, f"{text} is beyond the integers of 64 bits", "a float, as in `2.0**65` or `1e20`")


# --- what Python has not folded ------------------------------------------------------------------------


def _folded(function: FunctionType) -> Iterator[Fault]:
    """Integer arithmetic on literals and on numbers around, where its result is none of 64 bits."""
    code = list(dis.get_instructions(function.__code__))
    around = {n: v for n, v, _ in scalar_language.names(function) if type(v) is int}
    stored = [i.argval for i in code if i.opname.startswith("STORE_FAST")]
    straight = not any(i.is_jump_target for i in code)
    followed = {n for n in stored if isinstance(n, str) and (straight or stored.count(n) == 1)}
    variables: dict[str, Known] = {}
    stack: list[Known | None] = []
    for i in code:
        if i.is_jump_target:
            stack.clear()
        if i.opname in _QUIET:
            continue
        if i.opname.startswith("LOAD_"):
            stack.append(_loaded(i, around, variables))
        elif i.opname == "BINARY_OP" and len(stack) >= 2:
            right, left = stack.pop(), stack.pop()
            line = scalar_language.line_of(i, function)
            found = _result(left, right, i.argrepr, line) if left and right else None
            if isinstance(found, Fault):
                yield found
                return
            stack.append(found)
        elif i.opname == "UNARY_NEGATIVE" and stack and stack[-1]:
            stack[-1] = Known(-stack[-1].value, f"-{stack[-1].text}")
        elif i.opname == "STORE_FAST" and stack:
            top = stack.pop()
            variables.pop(i.argval, None)
            if top and i.argval in followed:
                variables[i.argval] = Known(top.value, i.argval)
        else:
            stack.clear()


def _loaded(i: dis.Instruction, around: dict[str, int], variables: dict[str, Known]) -> Known | None:
    """What an instruction pushes, where it is a number that is known."""
    if i.opname in ("LOAD_CONST", "LOAD_SMALL_INT"):
        return Known(i.argval, repr(i.argval)) if type(i.argval) is int else None
    if i.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF"):
        return Known(around[i.argval], i.argval) if i.argval in around else None
    return variables.get(i.argval) if isinstance(i.argval, str) else None


def _power(a: int, b: int) -> int | None:
    return a**b if b >= 0 and abs(a).bit_length() * b <= _BITS else None


def _shifted(a: int, b: int) -> int | None:
    return a << b if 0 <= b <= _BITS else None


_EXACT: dict[str, Callable[[int, int], int | None]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "**": _power,
    "<<": _shifted,
}


def _result(left: Known, right: Known, operator: str, line: int | None) -> Known | Fault | None:
    """What an operation on two known numbers gives; None where it is no matter here."""
    sign = operator.removesuffix("=")
    if sign not in _EXACT:
        return None
    text = f"{left.text} {sign} {right.text}"
    if sign == "**" and right.value < 0:
        return Fault(
            line,
            f"`{text}`, a power of integers below zero, is 0 in integers of 64 bits",
            "a float, as in `2.0**-1`",
        )
    value = _EXACT[sign](left.value, right.value)
    if value is None or not _LEAST <= value <= _MOST:
        return _beyond(f"`{text}`", line)
    return Known(value, f"({text})")


__all__ = ["check"]
