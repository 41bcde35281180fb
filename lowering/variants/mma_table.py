"""Which ``mma.sync`` records could carry out a call, judged by table alone: types, shape, qualifiers, architecture.

The records are `isa.DENSE`, those of `register_instruction` and those of ``config["records"]``.  Whether a record
fits the operands' layouts is `mma_fit`'s to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from ..errors import fail
from ..isa import DENSE, MmaInstruction
from ..isa.catalogue import signature_text
from ..isa.registered import added
from ..ops import GemmCall
from ..scope import Context
from ..target import Target
from .gemm_operands import Problem

OPERATIONS = ("and", "xor")
"""What one-bit factors are multiplied by; the first is the product of numbers 0 and 1."""


def untried(record: MmaInstruction) -> str:
    """Why a record is none that carries out a ``gemm``, whatever its operands; empty where it may."""
    if record.products != 1:
        return "four products of quadpairs, no tile of a warp"
    if record.scale:
        return "needs operands of scale factors, which gemm does not have"
    if record.c != record.d:
        return "C and D differ in type, so that a sum over K cannot stay in its registers"
    return ""


def matching_records(call: GemmCall, context: Context, problem: Problem, m: int) -> list[MmaInstruction]:
    """The records of ``m{m}n8`` to try: the caller's own first, then larger K first, native ones before emulated ones.

    Declines, naming what there is, for types, qualifiers, sizes and a target that have none.
    """
    own = _own(context)
    pool = (*own, *[i for i in (*added(), *DENSE) if i not in own])
    found = _shaped(_typed(call, pool), m)
    found = _qualified(found, context, pool)
    found = _sized(found, problem)
    kept = [i for i in found if not i.instruction.refusal(context.target)]
    if not kept:
        fail(_missing(found, context.target))
    return sorted(kept, key=lambda i: (i not in own, -i.k, bool(i.instruction.emulation(context.target))))


def _own(context: Context) -> tuple[MmaInstruction, ...]:
    """The caller's own records, ``config["records"]``; declines for what is no record, and for a name that is taken."""
    given = context.config.get("records", ())
    if not isinstance(given, (list, tuple)) or not all(isinstance(i, MmaInstruction) for i in given):
        fail(f"config records must be a list of MmaInstruction, got {given!r}")
    if not given:
        return ()
    names: dict[str, MmaInstruction] = {i.name: i for i in (*DENSE, *added())}
    for i in given:
        other = names.setdefault(i.name, i)
        if other != i:
            differ = [f"{x.name} {getattr(i, x.name)}, not {getattr(other, x.name)}" for x in fields(i)
                      if getattr(i, x.name) != getattr(other, x.name)]  # fmt: skip
            fail(f"config records: another record has the name {i.name}; yours has {'; '.join(differ)}")
    return tuple(given)


def _typed(call: GemmCall, pool: Sequence[MmaInstruction]) -> list[MmaInstruction]:
    """Those with the operands' element types."""
    a, b, c, d = signature = tuple(region.tile.dtype for region in (call.A, call.B, call.C, call.D))
    same = [i for i in pool if i.signature == signature]
    found = [i for i in same if not untried(i)]
    if found:
        return found
    text = f"dtype signature {d} = {a} @ {b} + {c} has no instruction"
    if same:
        text += f" for gemm ({_names(same)}: {untried(same[0])})"
    elif (a, b, d) == ("bfloat16", "bfloat16", "float16"):
        text += " on any architecture: products of bfloat16 are added up in float32 alone"
    if "float32" in (a, b):
        text += "; declare float32 factors as tfloat32, of which the tensor cores drop the low 13 bits"
    usable = [i for i in pool if not untried(i)]
    pairs = {(a, b)} if "float32" not in (a, b) else {("tfloat32", "tfloat32")}
    related = [i for i in usable if (i.a, i.b) in pairs] or usable
    return fail(f"{text}; there are: {', '.join(dict.fromkeys(map(signature_text, related)))}")


def _shaped(records: Sequence[MmaInstruction], m: int) -> list[MmaInstruction]:
    found = [i for i in records if i.m == m]
    if not found:
        fail(
            f"no m{m}n8 instruction of {signature_text(records[0])}, there are {_unique(i.shape for i in records)}"
        )
    return found


def _qualified(
    records: Sequence[MmaInstruction], context: Context, pool: Sequence[MmaInstruction]
) -> list[MmaInstruction]:
    """By the caller's wishes, ``config``: "satfinite" (default: False), "operation" of one-bit factors (default:
    "and") and "kind", the qualifier ``.kind::`` (default: any, "" for none).
    """
    config, what = context.config, signature_text(records[0])
    check_spelling(config, ("satfinite", "operation", "kind", "records"))
    one_bit = any(i.operation for i in records)
    if config.get("operation") and not one_bit:
        fail(f"config operation={config['operation']!r} is for factors of one bit, not {what}")
    wishes = {"satfinite": config.get("satfinite", False), "kind": config.get("kind")}
    if one_bit:
        wishes["operation"] = config.get("operation") or OPERATIONS[0]
    found = list(records)
    for name, wish in wishes.items():
        there = dict.fromkeys(getattr(i, name) for i in found)
        if wish is None:
            continue
        found = [i for i in found if getattr(i, name) == wish]
        if not found:
            known = ", ".join(map(repr, there))
            others = [i for i in pool if i.signature == records[0].signature and getattr(i, name) == wish]
            why = f"; {_names(others)}: {untried(others[0])}" if others and untried(others[0]) else ""
            fail(f"config {name} is {wish!r}, the instructions of {what} have {known}{why}")
    return found


def check_spelling(config: Mapping[str, Any], known: Sequence[str]) -> None:
    """Decline a key of ``config`` that is nearly one of these: misspelled, a wish must not be ignored.

    Other keys may be those of other variants, which get the same ``config``.
    """
    from difflib import get_close_matches

    for key in config:
        close = [] if key in known else get_close_matches(str(key).lower(), known, n=1, cutoff=0.75)
        if close:
            fail(f"config has no {key!r} here, did you mean {close[0]!r}?")


def _sized(records: Sequence[MmaInstruction], problem: Problem) -> list[MmaInstruction]:
    """Those whose shape divides the problem's."""
    wrong: list[str] = []
    for dim, size in (("M", problem.M), ("N", problem.N), ("K", problem.K)):
        steps = sorted({getattr(i, dim.lower()) for i in records})
        if all(size % step for step in steps):
            wrong.append(f"{dim} = {size} is not a multiple of {' or '.join(map(str, steps))}")
    found = [i for i in records if not (problem.M % i.m or problem.N % i.n or problem.K % i.k)]
    if not found:
        fail(f"{'; '.join(wrong)} (instructions of {signature_text(records[0])}: {_names(records)})")
    return found


def _missing(records: Sequence[MmaInstruction], target: Target) -> str:
    """Every record's own refusal, which names the first target that has it."""
    reasons: dict[str, list[str]] = {}
    for i in records:
        reasons.setdefault(i.instruction.refusal(target), []).append(i.name)
    return "; ".join(f"{', '.join(names)}: {reason}" for reason, names in reasons.items())


def _names(records: Iterable[MmaInstruction]) -> str:
    return _unique(i.name for i in records)


def _unique(names: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(names))
