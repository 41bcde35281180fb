"""Python functions of numbers as instruction records: their PTX, inlined wherever a program applies them.

numba compiles a plain function to a PTX device function; what stands in its body becomes one block of text with names
of its own.  The record's meaning is that text, executed (`isa.scalar`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from types import CellType, FunctionType
from typing import Any, Literal

import numpy as np
from numba.cuda import types
from numba.cuda.cudadrv.error import CudaSupportError

from tilelayout import LayoutError

from ...isa.record import Instruction, Kind, Operand
from ...isa.scalar.machine import ScalarMeaning
from ...target import Target
from ...target import target as as_target
from ..assemble import AssemblerError, assemble
from . import scalar_language, scalar_literals
from .ptx import CompileError, compile_device_ptx

NUMBERS = {"f32": types.float32, "f64": types.float64, "s32": types.int32}
"""Kind of an operand -> its numba type."""
CLASSES: dict[str, Kind] = {"f32": "f32", "f64": "f64", "s32": "b32"}
"""Kind of an operand -> the class of its register."""

Number = Literal["f32", "f64", "s32"]

_SMALL = 1 << 15


def scalar_instruction(
    function: Callable[..., Any],
    target: Target | str,
    *,
    kinds: Sequence[Number] = ("f32",),
    result: Number = "f32",
    name: str | None = None,
    literals: Literal["f32", "python"] = "f32",
) -> Instruction:
    r"""A Python function of numbers as an instruction: ``d = function(x0, x1, ...)``.

    The function may use ``math``, comparisons, ``abs``, ``min``, ``max``, branches and loops, and constants from
    around it: what numba compiles for a GPU, without memory.

    Args:
        function: a plain function (or a lambda) of as many parameters as there are kinds.
        target: what its PTX is made for.
        kinds: of the parameters: "f32", "f64" or "s32".
        result: of the result, to which it is converted.
        name: of the record; default: the function's.
        literals: "f32" takes the number literals of the function, and the numbers that it finds around it, as float32
            (small integers too, where they meet a float), so that a function of f32 stays one; "python" as numba takes
            them: as float64 and int64, so that ``0.5 * x`` is computed in float64, which most GPUs do slowly.  It
            matters only for functions of f32.

    It means what its text does, on a CPU too: each float32 is rounded at each step, and what is no ordinary number is
    as PTX has it.  Of a NaN ``max(x, 0.0)`` is 0 (``max.f32``), and so is ``x if x > 0 else 0.0``; ``max(x, 0)``, which
    compares, is a NaN.  ``int(x)`` and ``round(x)`` end at 64 bits, where integers wrap.  ``x % y`` and ``x // y`` go
    by the rounded quotient, which may be a whole number where the exact one is not; ``math.fmod`` is exact.  A GPU's
    last bits may differ where the text has approximations (``ex2.approx``, in exp and tanh), and nowhere else: products
    and sums that numba has not fused stay two, each rounded.

    Post-condition: the text has one operand a parameter, writes its result last, and names nothing outside itself.
    The name ends with a digest of the text, so that two functions of one name are two instructions.

    Errors: LayoutError naming the function, and what numba, or this module, has against it: a language feature, a call
    that is not inlined, memory of its own, a literal that a GPU's numbers do not hold.  ValueError for an unknown
    target; CompileError for one that the installed libraries do not know.

    >>> double = scalar_instruction(lambda x: 2 * x, "sm_80", name="double")
    >>> print(double.text({"d": ["%d"], "x0": ["%x"]}).replace("; ", ";\n"))
    { .reg .f32 u_f<3>;
    .reg .f32 u_x0;
    .reg .f32 u_d;
    mov.f32 u_x0, %x;
    mov.f32 u_f1, u_x0;
    add.rn.f32 u_f2, u_f1, u_f1;
    mov.f32 u_d, u_f2;
    u_end: mov.f32 %d, u_d;
    }
    """
    where = as_target(target)
    what = name or getattr(function, "__name__", type(function).__name__)
    _check_kinds(function, what, kinds, result)
    scalar_language.check(function, what)
    plain = "f32" in kinds and "f64" not in (*kinds, result) and literals == "f32"
    scalar_literals.check(function, what, plain)
    compiled = with_numbers(function, _narrow) if plain else function
    signature = NUMBERS[result](*[NUMBERS[k] for k in kinds])
    try:
        ptx = compile_device_ptx(compiled, signature, where)
    except CompileError:
        raise
    except Exception as error:  # numba raises whatever a pass of its runs into
        fault = scalar_language.guess(function, str(error))
        if fault is not None:
            raise scalar_language.refused(function, what, fault) from None
        raise LayoutError(
            f"function {what}",
            f"numba does not compile it: {_first_line(error)}",
            "arithmetic, comparisons, branches, abs, min, max and functions of math, on numbers alone",
        ) from error
    template = inlined(ptx, what, kinds, result)
    digest = hashlib.sha256(template.encode()).hexdigest()[:8]
    safe = re.sub(r"\W", "", what) or "function"
    operands = (
        Operand("d", 1, CLASSES[result], "write"),
        *[Operand(f"x{i}", 1, CLASSES[k], "read") for i, k in enumerate(kinds)],
    )
    version = _version(template, operands, where, ptx)
    return Instruction(
        f"{safe}.{digest}",
        template,
        operands,
        where.sm,
        version,
        f"the Python function {what}",
        _meaning(template, operands, what),
    )


def _meaning(template: str, operands: tuple[Operand, ...], what: str) -> ScalarMeaning:
    """The text, executed: each operand under ``%`` and its name."""
    names = {o.name: f"%{o.name}" for o in operands}
    read = tuple([o.name for o in operands if o.reads])
    return ScalarMeaning(template.format(**names), read, name=f"function {what}")


def _check_kinds(function: Any, what: str, kinds: Sequence[str], result: str) -> None:
    if not isinstance(function, FunctionType):
        raise LayoutError(
            f"function {what}",
            f"a plain Python function is needed, got {type(function).__name__}",
            "write a def or a lambda around it",
        )
    for kind in (*kinds, result):
        if kind not in NUMBERS:
            raise LayoutError(f"function {what}", f"unknown kind {kind!r}", f"one of {', '.join(NUMBERS)}")
    code = function.__code__
    more = bool(code.co_flags & 0x0C or code.co_kwonlyargcount)  # *args, **kwargs
    if more or code.co_argcount != len(kinds):
        raise LayoutError(
            f"function {what}",
            f"it takes {code.co_argcount} parameters{' and more' * more}, {len(kinds)} are given",
            "write a lambda that takes what is given",
        )


def _first_line(error: BaseException) -> str:
    """The lines of numba's message that say what is wrong."""
    if isinstance(error, CudaSupportError):
        return "it calls what is no arithmetic on numbers"
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    skipped = ("Failed in", "During:", "File ", "-", "^", "<source", "Traceback")
    telling = [x for x in lines if not x.startswith(skipped)] or lines or [type(error).__name__]
    return " ".join(telling[: 2 if telling[0].endswith(":") else 1])


# --- literals -----------------------------------------------------------------------------------


def with_numbers(function: FunctionType, change: Callable[[Any], Any]) -> FunctionType:
    """The function with its numbers changed: of its text, its closure, and of its module's names."""
    code = function.__code__
    around = {n: change(function.__globals__[n]) for n in code.co_names if n in function.__globals__}
    cells = tuple([_cell(c, change) for c in function.__closure__ or ()])
    return FunctionType(
        code.replace(co_consts=tuple([change(c) for c in code.co_consts])),
        {**function.__globals__, **around},
        function.__name__,
        None,
        cells or None,
    )


def _narrow(value: Any) -> Any:
    """float64 as float32, and integers whose negatives are small too as int16, which float32 absorbs."""
    if type(value) is tuple:
        return tuple([_narrow(x) for x in value])
    if type(value) is float:
        return np.float32(value)
    return np.int16(value) if type(value) is int and -_SMALL < value < _SMALL else value


def _cell(cell: CellType, change: Callable[[Any], Any]) -> CellType:
    try:
        return CellType(change(cell.cell_contents))
    except ValueError:  # a name that is not bound yet: numba says so
        return cell


# --- text ---------------------------------------------------------------------------------------

_PARAMETER = re.compile(r"ld\.param\.\w+\s+(%\w+),\s*\[(\w+?)_param_(\d+)\]$")
_RESULT = re.compile(r"st\.param\.\w+\s+\[func_retval0(?:\+0)?\],\s*(%?[\w.]+)$")
_OUTSIDE = re.compile(
    r"^\s*(\.extern[^;]*|\.func[^(]*\([^)]*\)\s*\w+|\.(?:global|const)\b[^;=]*)", re.MULTILINE
)
"""Functions and variables of a module; the one device function that is looked for stands behind ``.visible``."""
_LABEL = re.compile(r"^\s*(\$\w+):\s*", re.MULTILINE)
_MOVES = {"f32": "f32", "f64": "f64", "s32": "b32"}


def inlined(ptx: str, what: str, kinds: Sequence[str], result: str) -> str:
    """The body of the module's one device function as a template: one block, whose registers and labels are its own.

    Errors: LayoutError naming what is not in the body, or not of numbers: other functions, memory, special registers.
    """
    text = re.sub(r"//[^\n]*", "", ptx)
    header, _, rest = text.partition(".visible .func")
    found = re.findall(
        r"^\s*(\.extern[^;]*|\.func[^(]*\([^)]*\)\s*\w+|\.(?:global|const)\b[^;=]*)", header + rest, re.M
    )
    if found:
        names = ", ".join(dict.fromkeys(" ".join(x.split()) for x in found))
        _refuse(what, f"needs {names} beside its own code", "use other functions of math")
    body = rest[rest.index("{") + 1 : rest.rindex("}")]
    if ".local" in body:
        _refuse(
            what,
            "keeps an array in local memory, as sin, cos and tan do for large arguments",
            "write it with other functions of math",
        )
    lines = [x for x in _statements(body) if x]
    for line in lines:
        opcode = line.split()[0]
        if opcode.startswith(("call", "ld.global", "st.global", "ld.const", "trap", "bar.", "atom.")):
            _refuse(what, f"does more than compute a number: {line}")
    special = re.search(r"%(?:n?ctaid|n?tid|laneid|warpid|clock\w*|globaltimer\w*)\b", body)
    if special:
        _refuse(what, f"reads {special[0]}, which is not one of its parameters")
    declared = [f".reg .{_MOVES[k]} u_x{i};" for i, k in enumerate(kinds)] + [f".reg .{_MOVES[result]} u_d;"]
    entered = [f"mov.{_MOVES[k]} u_x{i}, {{x{i}}};" for i, k in enumerate(kinds)]
    registers = [_renamed(x) for x in lines if x.startswith(".reg") and "<" in x]
    code = [
        _rounded(_renamed(_moved(x, kinds, result))) for x in lines if not (x.startswith(".reg") and "<" in x)
    ]
    while code and code[-1] == "bra u_end;":
        code.pop()
    left = [f"mov.{_MOVES[result]} {{d}}, u_d;"]
    escaped = [x.replace("{", "{{").replace("}", "}}") for x in (*registers, *declared)]
    middle = [x.replace("{", "{{").replace("}", "}}") for x in code]
    return " ".join(["{{", *escaped, *entered, *middle, "u_end:", *left, "}}"])


def _refuse(what: str, why: str, remedy: str | None = None) -> None:
    raise LayoutError(f"function {what}", f"its PTX {why}; it can't be inlined as an instruction", remedy)


def _statements(body: str) -> list[str]:
    """Statements, braces and labels, one an item, statements with their semicolons."""
    out: list[str] = []
    for part in re.split(r"(;)", _LABEL.sub(r"\1: ;", body)):
        if part == ";":
            # A vector ends in a brace too.
            if out and out[-1] not in ("", "{", "}") and not out[-1].endswith(":"):
                out[-1] += ";"
            continue
        flat = " ".join(part.split())
        while flat and flat[0] in "{}" and not re.match(r"\{[^{};]*\}", flat):  # a scope, no vector
            out.append(flat[0])
            flat = flat[1:].strip()
        out.append(flat)
    return [x for x in out if x]


def _moved(line: str, kinds: Sequence[str], result: str) -> str:
    """A load of a parameter, the store of the result and a return as moves and a branch."""
    bare = line.rstrip(";")
    loaded, stored = _PARAMETER.search(bare), _RESULT.search(bare)
    if loaded:
        i = int(loaded[3])
        return f"{bare[: loaded.start()]}mov.{_MOVES[kinds[i]]} {loaded[1]}, u_x{i};"
    if stored:
        return f"{bare[: stored.start()]}mov.{_MOVES[result]} u_d, {stored[1]};"
    return re.sub(r"\bret(?:\.uni)?$", "bra u_end", bare) + line[len(bare) :]


def _rounded(line: str) -> str:
    """A sum, a difference or a product that is rounded to nearest, and says so (PTX ISA, "add", "mul").

    The assembler fuses a product and a sum that name no rounding mode, as it sees fit, and another number comes out.
    """
    return re.sub(r"\b(add|sub|mul)((?:\.ftz|\.sat)*\.f(?:32|64))\b", r"\1.rn\2", line)


def _renamed(line: str) -> str:
    """Registers and labels under names that no other text has."""
    return re.sub(r"[%$](\w+)", r"u_\1", line)


def _version(template: str, operands: tuple[Operand, ...], target: Target, ptx: str) -> tuple[int, int]:
    """The first PTX ISA version that is known to take the text: the target's own, else what the compiler wrote."""
    probe = Instruction("probe", template, operands, target.sm, target.ptx, "", lambda values: {})
    registers = {o.name: [f"%{o.name}"] for o in operands}
    declared = "".join(f".reg .{o.kind} %{o.name};\n" for o in operands)
    try:
        assemble(
            f".version {target.ptx[0]}.{target.ptx[1]}\n.target {target}\n.address_size 64\n"
            f".visible .entry probe()\n{{\n{declared}{probe.text(registers)}\nret;\n}}\n",
            target,
            allow_spills=True,
        )
    except AssemblerError:
        made = re.search(r"^\.version (\d+)\.(\d+)", ptx, re.MULTILINE)
        return (int(made[1]), int(made[2])) if made else target.ptx
    return target.ptx
