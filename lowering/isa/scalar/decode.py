"""Scalar PTX taken apart, once for each text: statements as functions of registers, and where branches go.

What is decoded is a block as `backends.numba_cuda.scalar` writes it: declarations, labels, scopes, statements.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tilelayout import LayoutError

from . import floats, integers
from .conversions import conversion
from .floats import Decoded, Function
from .integers import integer_operation
from .values import KINDS, bits, chosen, constant, read, widened


@dataclass(frozen=True)
class Step:
    """A statement.

    Attributes:
        text: as it stands.
        guard: the predicate that it depends on, "" for none.
        negated: whether it is done where the predicate does not hold.
        goes: the step that a branch goes to; None for what computes.
        results: registers that are written.
        sources: registers that are read, or constants.
        function: from the sources to the results, one value or a tuple of them.
    """

    text: str
    guard: str = ""
    negated: bool = False
    goes: int | None = None
    results: tuple[str, ...] = ()
    sources: tuple[Any, ...] = ()
    function: Callable[..., Any] | None = None


@lru_cache(maxsize=256)
def decoded(text: str, what: str = "scalar PTX") -> tuple[Step, ...]:
    """The statements of a block.

    Errors: LayoutError with that name, and the statement that is not known.
    """
    widths: dict[str, int] = {}
    labels: dict[str, int] = {}
    found: list[tuple[str, dict[str, int]]] = []
    for part in text.split(";"):
        rest = part.strip()
        while label := re.match(r"(\w+):\s*|[{}](?!\s*[%\w]+\s*,)\s*", rest):
            if label[1]:
                labels[label[1]] = len(found)
            rest = rest[label.end() :]
        if rest.startswith(".reg"):
            widths = widths | _declared(rest)
        elif rest and not rest.startswith(".pragma"):  # which advises a compiler
            found.append((rest, widths))
    return tuple([_step(line, labels, known, what) for line, known in found])


def _declared(line: str) -> dict[str, int]:
    """Registers of a declaration, or the prefix of a family of them, and their bytes."""
    _, kind, names = line.split(None, 2)
    size = 1 if kind == ".pred" else int(kind[2:]) // 8
    return {re.sub(r"<\d+>", "#", x.strip()): size for x in names.split(",")}


def _width(name: str, widths: dict[str, int]) -> int:
    """Bytes of a register; 0 for one that is not declared here."""
    return widths.get(name, widths.get(re.sub(r"\d+$", "#", name), 0))


_STATEMENT = re.compile(r"(?:@(!?)(\S+)\s+)?([\w.]+)(?:\s+(.*))?$")


def _step(line: str, labels: dict[str, int], widths: dict[str, int], what: str) -> Step:
    parsed = _STATEMENT.match(line)
    if parsed is None:
        raise _unknown(line, what)
    negated, guard, opcode, rest = parsed[1] == "!", parsed[2] or "", parsed[3], parsed[4] or ""
    operands = re.findall(r"\{[^}]*\}|[^,\s]+", rest)
    if opcode in ("bra", "bra.uni") and rest in labels:
        return Step(line, guard, negated, labels[rest])
    try:
        found = _computation(opcode.split("."), operands, widths)
    except (ValueError, KeyError, IndexError):
        found = None
    if found is None:
        raise _unknown(line, what)
    return Step(line, guard, negated, None, *found)


def _unknown(line: str, what: str) -> LayoutError:
    return LayoutError(
        what,
        f"its PTX `{line}` is not executed on a CPU, only on a GPU",
        "write the function with other functions of math, to simulate it",
    )


Computation = tuple[tuple[str, ...], tuple[Any, ...], Function]


def _computation(opcode: list[str], operands: list[str], widths: dict[str, int]) -> Computation | None:
    """Results, sources and the function of a statement that computes."""
    if opcode[0] == "mov":
        return _move(opcode[1], operands, widths)
    if opcode[0] == "setp":
        return _comparison(opcode[1:], operands)
    if opcode[0] == "selp":
        return _selection(opcode[1], operands, widths)
    found = _operation(opcode)
    if found is None or len(operands) != len(found[0]) + 1:
        return None
    kinds, function = found
    sources = tuple([_source(x, kind) for x, kind in zip(operands[1:], kinds, strict=True)])
    return (operands[0],), sources, _typed(kinds, function, _width(operands[0], widths))


def _typed(kinds: tuple[str, ...], function: Function, size: int) -> Function:
    """The function of registers, which are read as those types, into one of so many bytes."""
    types = tuple([KINDS[k] for k in kinds])

    def compute(*given: Any) -> Any:
        if tuple([x.dtype for x in given]) != types:
            given = tuple([read(x, kind) for x, kind in zip(given, kinds, strict=True)])
        value = function(*given)
        return value if not size or value.itemsize == size else widened(value, size)

    return compute


def _operation(opcode: list[str]) -> Decoded | None:
    """The types of operands, and the function, of an opcode."""
    name, *middle, kind = opcode
    if name == "cvt":
        return conversion(middle[:-1], middle[-1], kind)
    if name == "testp":
        return ((kind,), floats.TESTP[middle[0]])
    if kind in ("f32", "f64"):
        return floats.float_operation(name, middle, kind)
    if kind in KINDS and kind != "f16":
        return integer_operation(".".join([name, *middle]), kind)
    return None


def _source(text: str, kind: str) -> Any:
    """A register's name, or a constant."""
    return constant(text, kind) if re.match(r"-?\d", text) else text


def _names(operand: str) -> list[str]:
    return [x.strip() for x in operand.strip("{}").split(",")]


def _move(kind: str, operands: list[str], widths: dict[str, int]) -> Computation | None:
    """A copy of all bits, or of halves together or apart."""
    to, of = operands
    if of.startswith("{"):
        parts = _names(of)
        whole, each = KINDS[kind], KINDS[kind].itemsize // len(parts)

        def join(*given: Any) -> Any:
            total = whole.type(0)
            for i, x in enumerate(given):
                total = total | (bits(x).astype(whole) << whole.type(8 * each * i))
            return total

        return (to,), tuple([_source(x, f"b{8 * each}") for x in parts]), join
    if to.startswith("{"):
        parts = _names(to)
        whole, each = KINDS[kind], KINDS[kind].itemsize // len(parts)
        part = KINDS[f"b{8 * each}"]

        def split(x: Any) -> Any:
            word = read(x, kind)
            return tuple([(word >> whole.type(8 * each * i)).astype(part) for i in range(len(parts))])

        return tuple(parts), (of,), split
    return (to,), (_source(of, kind),), lambda x: x


def _comparison(opcode: list[str], operands: list[str]) -> Computation | None:
    """``setp``, with or without a predicate that its answer is joined with."""
    relation, *joined, kind = opcode
    table = floats.COMPARE if kind in ("f32", "f64") else integers.COMPARE
    compare, count = table[relation], 3 + len(joined)
    if len(operands) != count or len(joined) > 1 or "|" in operands[0]:
        return None
    join = {"and": lambda p, q: p & q, "or": lambda p, q: p | q, "xor": lambda p, q: p ^ q}[
        (joined or ["and"])[0]
    ]
    last = operands[3:]
    negated = bool(last) and last[0].startswith("!")

    def answer(a: Any, b: Any, *others: Any) -> Any:
        found = compare(read(a, kind), read(b, kind))
        for other in others:
            found = join(found, ~other if negated else other)
        return found

    sources = [_source(x, kind) for x in operands[1:3]] + [x.lstrip("!") for x in last]
    return (operands[0],), tuple(sources), answer


def _selection(kind: str, operands: list[str], widths: dict[str, int]) -> Computation | None:
    to, one, other, predicate = operands

    def select(a: Any, b: Any, p: Any) -> Any:
        return chosen(p, a, b)

    return (to,), (_source(one, kind), _source(other, kind), predicate), select
