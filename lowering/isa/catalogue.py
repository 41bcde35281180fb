"""Every matrix instruction by name, and the search for one by what it should do.

A search that finds nothing says why and what there is.  Records of other tables than `CATALOGUE` can be searched too:
every function takes the records.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from tilelayout.errors import LayoutError, nearest

from ..dtypes import dtype
from ..target import TARGETS, Target, target
from .ldmatrix import LDMATRIX
from .mma import DENSE, MmaInstruction
from .movmatrix import MOVMATRIX
from .record import Instruction
from .sparse import MMA_SP
from .stmatrix import STMATRIX


class Record(Protocol):
    """What every record has: a name, and the instruction that programs use."""

    @property
    def name(self) -> str: ...
    @property
    def instruction(self) -> Instruction: ...


FAMILIES: dict[str, tuple[Record, ...]] = {
    "mma.sync": DENSE,
    "mma.sp.sync": MMA_SP,
    "ldmatrix": LDMATRIX,
    "stmatrix": STMATRIX,
    "movmatrix": MOVMATRIX,
}
"""The tables, by what their instructions are called."""

CATALOGUE: tuple[Record, ...] = tuple([record for records in FAMILIES.values() for record in records])
"""Every record."""


SUGGESTED = 6
"""Names that the refusal of an unknown one says at the most."""


def named(name: str, records: Iterable[Record] = CATALOGUE) -> Record:
    """The record of that name, or of that mnemonic.

    Errors: LayoutError for one that is not known, with the nearest.

    >>> named("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32").name
    'm16n8k32.s8'
    >>> named("m16n8k23.s8")
    Traceback (most recent call last):
    tilelayout.errors.LayoutError: instruction: unknown instruction 'm16n8k23.s8': did you mean 'm16n8k32.s8' ...?
    """
    records = tuple(records)
    by_name: dict[str, Record] = {}
    for record in records:
        by_name.setdefault(record.instruction.mnemonic, record)
        by_name[record.name] = record
    if not isinstance(name, str) or name not in by_name:
        raise unknown(name, [r.name for r in records], [r.instruction.mnemonic for r in records])
    return by_name[name]


def unknown(name: Any, names: Sequence[str], mnemonics: Sequence[str]) -> LayoutError:
    """The refusal of a name that is neither of these."""
    return LayoutError("instruction", f"unknown instruction {name!r}", _nearest(str(name), names, mnemonics))


def _nearest(name: str, names: Sequence[str], mnemonics: Sequence[str]) -> str:
    """The remedy for an unknown name: what begins with it, or what resembles it, or how many there are and where."""
    longer = [x for x in names if name and x.startswith(f"{name}.")]
    if longer:
        more = f" and {len(longer) - SUGGESTED} more" if len(longer) > SUGGESTED else ""
        return f"there are {', '.join(longer[:SUGGESTED])}{more}"
    found = nearest(name, [*names, *mnemonics])
    if found.startswith("did you mean") or len(names) <= SUGGESTED:
        return found
    some = ", ".join(names[:SUGGESTED])
    return f"there are {len(names)}, listed by `tilelayout mma` and in docs/reference/instructions.md: {some} ..."


def find(
    a: str,
    b: str,
    c: str | None = None,
    d: str | None = None,
    *,
    m: int | None = None,
    k: int | None = None,
    kind: str | None = None,
    satfinite: bool | None = None,
    operation: str | None = None,
    target: str | Target | None = None,
    ptx: tuple[int, int] | None = None,
    records: Sequence[MmaInstruction] = DENSE,
) -> tuple[MmaInstruction, ...]:
    """The records that multiply `a` by `b`, in the table's order; what is None may be anything.

    Arguments:
        a, b, c, d: element types by name; d is c's if only c is given.
        m, k: extents of the instruction.
        kind, satfinite, operation: as in `MmaInstruction`; "" for none.
        target, ptx: what must have it.

    Errors: LayoutError where there is none: for types, with the signatures that the given factors have; for an extent,
    with those there are; for a target or a PTX version, with the first that has it; for a `ptx` that is no version.

    >>> [i.name for i in find("float16", "float16", "float32", k=8, target="sm_75")]
    ['m16n8k8.f16']
    >>> find("int8", "int8", k=8)
    Traceback (most recent call last):
    tilelayout.errors.LayoutError: find: no instruction of int32 = int8 @ int8 + int32 has k = 8: there are k = 16, 32
    """
    wanted = {"a": dtype(a).name, "b": dtype(b).name}
    found = _typed(wanted, c, d, records)
    for name, value in (
        ("m", m),
        ("k", k),
        ("kind", kind),
        ("satfinite", satfinite),
        ("operation", operation),
    ):
        if value is None:
            continue
        kept = [i for i in found if getattr(i, name) == value]
        if not kept:
            there = ", ".join(
                str(x) if x != "" else "none" for x in sorted({getattr(i, name) for i in found})
            )
            signatures = ", ".join(dict.fromkeys(signature_text(i) for i in found))
            raise LayoutError(
                "find", f"no instruction of {signatures} has {name} = {value}", f"there are {name} = {there}"
            )
        found = kept
    return tuple(_accepted(found, target, ptx))


def signature_text(record: MmaInstruction) -> str:
    """``d = a @ b + c`` with the element types."""
    a, b, c, d = record.signature
    return f"{d} = {a} @ {b} + {c}"


def _typed(
    wanted: dict[str, str], c: str | None, d: str | None, records: Sequence[MmaInstruction]
) -> list[MmaInstruction]:
    """The records with those element types; refused with the signatures that there are for the factors."""
    if c is not None:
        wanted["c"] = dtype(c).name
    if d is not None or c is not None:
        wanted["d"] = dtype(d if d is not None else c).name
    found = [i for i in records if all(getattr(i, x) == name for x, name in wanted.items())]
    if found:
        return found
    a, b = wanted["a"], wanted["b"]
    text = " ".join(f"{x} {name}" for x, name in wanted.items())
    related = [i for i in records if (i.a, i.b) == (a, b)] or [i for i in records if i.a == a or i.b == b]
    if "float32" in (a, b):
        related = [i for i in records if i.a == "tfloat32"]
    if related:
        remedy = "there are " + ", ".join(dict.fromkeys(signature_text(i) for i in related))
    else:
        remedy = f"there are factors of {', '.join(dict.fromkeys(x for i in records for x in (i.a, i.b)))}"
    if "float32" in (a, b):
        remedy = f"declare tfloat32, of which the tensor cores drop the low 13 bits: {remedy}"
    raise LayoutError("find", f"no instruction has {text}", remedy)


def _accepted(
    found: list[MmaInstruction], where: str | Target | None, ptx: tuple[int, int] | None
) -> list[MmaInstruction]:
    """Those that a target and a PTX version have; refused with the first that has one."""
    names = ", ".join(i.name for i in found)
    if where is not None:
        chosen = target(where)
        kept = [i for i in found if not i.instruction.refusal(chosen)]
        if not kept:
            first = next(t for t in TARGETS.values() if any(not i.instruction.refusal(t) for i in found))
            raise LayoutError("find", f"{chosen} does not have {names}", f"{first} is the first that has")
        found = kept
    if ptx is not None:
        if not (isinstance(ptx, tuple) and len(ptx) == 2 and all(type(x) is int for x in ptx)):
            raise LayoutError("find", f"ptx must be two integers, as (7, 8) for PTX 7.8, got {ptx!r}")
        kept = [i for i in found if i.ptx <= ptx]
        if not kept:
            need = min(i.ptx for i in found)
            raise LayoutError(
                "find",
                f"PTX {_version(ptx)} does not have {names}",
                f"PTX {_version(need)} is the first that has",
            )
        found = kept
    return found


def _version(ptx: Any) -> str:
    return ".".join(map(str, ptx))
