"""What a Python function of numbers may not do on a GPU, found in its bytecode and said in its own line.

numba says such things in words of its passes, or of NVVM's; here they are looked for beforehand where they are certain
to fail (`check`), and afterwards where numba has failed for a reason that the function's names give away (`guess`).
"""

from __future__ import annotations

import builtins
import dis
import math
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

from tilelayout import LayoutError

_GENERATORS, _COROUTINES = 0x0020 | 0x0100, 0x0080 | 0x0200
"""Flags of a code object: CO_GENERATOR and CO_ITERABLE_COROUTINE; CO_COROUTINE and CO_ASYNC_GENERATOR (`inspect`)."""
_BRANCH = "a conditional expression, as in `x if x > 0 else 0.0`"
_SPECIAL = "an infinity or NaN, as a division has it on a GPU, is what math.isinf and math.isnan ask for"
FORBIDDEN: dict[str, tuple[str, str]] = {
    "LOAD_ASSERTION_ERROR": ("`assert` raises an error", _BRANCH),
    "RAISE_VARARGS": ("`raise` stops with an error", f"{_BRANCH}, or a NaN for what has no value"),
    "BEFORE_WITH": ("`with` enters a context", "arithmetic alone"),
    "LOAD_SPECIAL": ("`with` enters a context", "arithmetic alone"),
    "PUSH_EXC_INFO": ("`try` catches an error", f"{_BRANCH}; {_SPECIAL}"),
    "IMPORT_NAME": ("`import` loads a module", "import it outside the function"),
    "STORE_GLOBAL": ("it sets a global variable", "return the number"),
    "DELETE_GLOBAL": ("it deletes a global variable", "numbers alone"),
}
"""Opcode -> what is not done on a GPU, and what does instead."""
COLLECTIONS = {
    "BUILD_LIST": "a list",
    "BUILD_SET": "a set",
    "BUILD_MAP": "a dict",
    "LIST_APPEND": "a list",
    "BUILD_STRING": "a string",
    "FORMAT_VALUE": "a string",
    "FORMAT_SIMPLE": "a string",
}
"""Opcode -> what it makes in memory."""
_INVALID = "ERROR_INVALID_IR"
"""What NVVM says of code that raises."""
_FIELDS = ("LOAD_ATTR", "LOAD_METHOD")


class Fault(NamedTuple):
    """What is wrong in a function.

    Attributes:
        line: of its file, None where it has none.
        what: is not done.
        remedy: what does instead.
    """

    line: int | None
    what: str
    remedy: str


def check(function: FunctionType, what: str) -> None:
    """Refuse what is certain not to become an instruction.

    Errors: LayoutError with the line, for a generator, a coroutine, and statements that no arithmetic is.
    """
    flags = function.__code__.co_flags
    if flags & (_GENERATORS | _COROUTINES):
        kind = "is asynchronous (`async def`)" if flags & _COROUTINES else "is a generator (`yield`)"
        fault = Fault(
            function.__code__.co_firstlineno,
            f"it {kind}, and gives no number",
            "a plain def that returns one",
        )
        raise refused(function, what, fault)
    for code in _codes(function.__code__):
        for i in dis.get_instructions(code):
            name = "LOAD_ASSERTION_ERROR" if "AssertionError" in (i.argrepr or "") else i.opname
            if name in FORBIDDEN:
                raise refused(function, what, Fault(line_of(i, code), *FORBIDDEN[name]))
    for name, value, line in names(function):
        if value is print:
            raise refused(
                function,
                what,
                Fault(line, f"it calls `{name}`", "look at numbers where simulate computes them"),
            )


def guess(function: FunctionType, said: str) -> Fault | None:
    """Why numba, which said that, could not compile it; None where the function's names do not tell."""
    for name, value, line in names(function):
        fault = _of_value(name, value, line, said)
        if fault is not None:
            return fault
    for code in _codes(function.__code__):
        for i in dis.get_instructions(code):
            if i.opname in COLLECTIONS:
                return Fault(
                    line_of(i, code),
                    f"it makes {COLLECTIONS[i.opname]}, for which a thread has no memory",
                    "a variable for each number",
                )
    return next(_of_modules(function, said), None) or _of_result(function, said)


def refused(function: FunctionType, what: str, fault: Fault) -> LayoutError:
    """The error for a fault."""
    file = Path(function.__code__.co_filename).name
    where = f" ({file}, line {fault.line})" if fault.line is not None else ""
    return LayoutError(
        f"function {what}", f"{fault.what}{where}, which is not compiled into a kernel", fault.remedy
    )


# --- names -------------------------------------------------------------------------------------------

_MISSING = object()


def names(function: FunctionType) -> Iterator[tuple[str, Any, int | None]]:
    """Every name from outside, what it is (`_MISSING` where nothing), and the first line that uses it."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=False))
    seen: set[str] = set()
    for code in _codes(function.__code__):
        for i in dis.get_instructions(code):
            name = i.argval
            if name in seen or not isinstance(name, str):
                continue
            if i.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                value = function.__globals__.get(name, getattr(builtins, name, _MISSING))
            elif i.opname == "LOAD_DEREF" and name in cells:
                value = _content(cells[name])
            else:
                continue
            seen.add(name)
            yield name, value, line_of(i, code)


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not bound yet
        return _MISSING


def _of_value(name: str, value: Any, line: int | None, said: str) -> Fault | None:
    """A fault of a name by what it is."""
    if value is _MISSING:
        return Fault(line, f"the name `{name}` is not defined", "define it before the kernel is made")
    if isinstance(value, FunctionType):
        return Fault(line, f"`{name}` is another Python function", "write its body into this one")
    indexed = isinstance(value, tuple) and _INVALID in said  # by what raises an IndexError
    if indexed or isinstance(value, list | dict | set):
        return Fault(
            line,
            f"`{name}` is a {type(value).__name__} in the memory of the CPU",
            f"take the number out of it outside of the function, as in `scale = {name}[...]`",
        )
    return None


def _of_modules(function: FunctionType, said: str) -> Iterator[Fault]:
    """Fields of modules that are not compiled, and methods of numbers that there are not."""
    modules = {n: v for n, v, _ in names(function) if isinstance(v, ModuleType)}
    for code in _codes(function.__code__):
        module: tuple[str, ModuleType] | None = None
        for i in dis.get_instructions(code):
            if i.opname in _FIELDS and isinstance(i.argval, str):
                field = i.argval
                own = getattr(module[1], field, None) if module is not None else None
                spoken = {field, getattr(own, "__name__", field)}  # np.abs says that it is 'absolute'
                if module is not None and (
                    _is_foreign(module[1], own) or any(f"'{x}'" in said for x in spoken)
                ):
                    yield _of_field(*module, field, line_of(i, code))
                elif module is None and f"'{field}'" in said:
                    yield Fault(
                        line_of(i, code),
                        f"a number has no `.{field}` here",
                        "arithmetic, comparisons, abs, min, max and functions of math",
                    )
            module = (
                (i.argval, modules[i.argval]) if isinstance(i.argval, str) and i.argval in modules else None
            )


def _is_foreign(module: ModuleType, field: Any) -> bool:
    """Whether it is a function of a module that numba does not compile, whatever numba says about it."""
    return callable(field) and module.__name__.split(".")[0] not in (
        "math",
        "cmath",
        "numpy",
        "operator",
        "numba",
    )


def _of_field(name: str, module: ModuleType, field: str, line: int | None) -> Fault:
    own = {"absolute": "abs", "maximum": "max", "minimum": "min", "fabs": "abs", "power": "x ** y"}
    known = own.get(field) or (f"math.{field}" if module is not math and hasattr(math, field) else "")
    return Fault(line, f"`{name}.{field}`", known or "other functions of math, abs, min, max and arithmetic")


def _of_result(function: FunctionType, said: str) -> Fault | None:
    """A result that is no number."""
    code = function.__code__
    kinds = {"from none": "None (the end without a `return`, on some way)", "from UniTuple": "a tuple",
             "from Tuple": "a tuple", "from Literal[str]": "a string", "from unicode": "a string"}  # fmt: skip
    found = next((k for words, k in kinds.items() if words in said), None)
    return (
        Fault(code.co_firstlineno, f"it returns {found}", "return one number on every way") if found else None
    )


# --- bytecode ------------------------------------------------------------------------------------------


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The code of a function, and of those in it."""
    yield code
    for x in code.co_consts:
        if isinstance(x, CodeType):
            yield from _codes(x)


def line_of(i: dis.Instruction, of: CodeType | FunctionType) -> int | None:
    """The line of an instruction; where it has none, the function's first."""
    code = of if isinstance(of, CodeType) else of.__code__
    return i.positions.lineno if i.positions and i.positions.lineno else code.co_firstlineno


__all__ = ["Fault", "check", "guess", "line_of", "names", "refused"]
