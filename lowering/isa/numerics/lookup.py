"""The model of an instruction by its types, its K and an architecture; refused with what exists where there is none."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from tilelayout.errors import LayoutError, nearest
from tilelayout.parts import as_extent

from .formats import FORMATS
from .published import ENTRIES
from .record import PTX_FUSED, PTX_INTEGER, Model

INTEGERS = ("int8", "uint8", "int4", "uint4", "uint1")
NUMERICS = ("exact", *dict.fromkeys(m.numerics for rows in ENTRIES.values() for m in rows))
"""The names to choose from."""


@cache
def model(
    numerics: str,
    a: str,
    b: str,
    accumulator: str,
    k: int,
    *,
    unit: str = "mma",
    scale: str = "",
    blocks: int = 0,
    saturate: bool = False,
) -> Model:
    """How ``d[m, n] = sum_k a[m, k] * b[k, n] + c[m, n]`` is added up by one instruction.

    Arguments:
        numerics: "exact" (the exact sum, rounded once to nearest even) or an architecture; "sm_90a" is "sm_90".
        a, b, accumulator: element types by name; C and D have the accumulator's.
        k: the instruction's extent along K; for "mma.sp" half of it, the kept elements.
        unit: "mma" (``mma.sync``), "mma.sp" or "wgmma".
        scale, blocks: the type of the block scales and how many there are along K.
        saturate: integers: ``.satfinite``.

    Integers and float64 are what the PTX ISA defines, under every name (NaN words of float64: what an H200 gives).

    Errors: LayoutError for a name that is not known, and for an instruction whose accumulation nobody published; both
    list what exists.

    >>> model("sm_80", "float16", "float16", "float32", 16).steps
    ((0, 1, 2, 3, 4, 5, 6, 7), (8, 9, 10, 11, 12, 13, 14, 15))
    >>> [model(x, "bfloat16", "bfloat16", "float32", 16).fraction for x in ("sm_80", "sm_90")]
    [24, 25]
    """
    name = check_numerics(numerics)
    if unit not in ENTRIES:
        raise LayoutError("numerics", f"unknown unit {unit!r}", nearest(unit, list(ENTRIES)))
    k = _extent(k)
    if a in INTEGERS and b in INTEGERS and accumulator == "int32" and not scale:
        return Model(name, a, b, accumulator, k, "integer", "defined", PTX_INTEGER, saturate)
    if saturate:
        raise LayoutError("numerics", f".satfinite is for int32 accumulators, not {accumulator}")
    if a == b == accumulator == "float64" and not scale:
        return Model(name, a, b, accumulator, k, "fused chain", "defined", PTX_FUSED)
    if name == "exact":
        return _exact(a, b, accumulator, k, scale, blocks)
    for entry in ENTRIES[unit]:
        if (entry.numerics, entry.a, entry.b, entry.accumulator) == (name, a, b, accumulator) and (
            entry.k,
            entry.scale,
            entry.blocks,
        ) == (k, scale, blocks):
            return entry
    raise _missing(name, a, b, accumulator, k, unit, scale, blocks)


def check_numerics(numerics: str) -> str:
    """The name without an architecture's "a" or "f"; LayoutError, with the names there are, for another."""
    name = re.sub(r"(?<=\d)[af]$", "", str(numerics))
    if name not in NUMERICS:
        raise LayoutError("numerics", f"unknown model {numerics!r}", f"known: {', '.join(NUMERICS)}")
    return name


def _extent(k: Any) -> int:
    found = as_extent(k, "numerics", "k")
    if not isinstance(found, int):
        raise LayoutError("numerics", f"k is an instruction's extent, and {found} is no number")
    return found


def _exact(a: str, b: str, accumulator: str, k: int, scale: str, blocks: int) -> Model:
    known = [x for x in FORMATS if not x.startswith(("float8_e8m0", "float8_ue"))]
    for operand, name in (("A", a), ("B", b)):
        if name not in known:
            raise LayoutError(
                "numerics", f"{operand} has no floating-point format: {name!r}", nearest(name, known)
            )
    if accumulator not in ("float32", "float16"):
        raise LayoutError("numerics", f"{a} x {b} isn't added up in {accumulator!r}", "float32 or float16")
    if scale and (scale not in ("float8_e8m0fnu", "float8_ue4m3") or blocks < 1 or k % blocks):
        raise LayoutError(
            "numerics", f"{blocks} scales of type {scale!r} don't go with K = {k}", "blocks divides K"
        )
    source = "the exact sum, rounded once to nearest even"
    return Model(
        "exact",
        a,
        b,
        accumulator,
        k,
        "rounded once",
        "defined",
        source,
        seen=(a, b),
        scale=scale,
        blocks=blocks,
    )


def _missing(
    name: str, a: str, b: str, accumulator: str, k: int, unit: str, scale: str, blocks: int
) -> LayoutError:
    """The refusal: elsewhere with these types, or here with others."""
    wanted = f"{a} x {b} -> {accumulator}" + (f" with {blocks} scales of {scale}" if scale else "")
    rows = [m for m in ENTRIES[unit] if bool(m.scale) == bool(scale)]
    same = [m for m in rows if (m.a, m.b, m.accumulator) == (a, b, accumulator)]
    here = sorted({m.k for m in same if m.numerics == name and (m.scale, m.blocks) == (scale, blocks)})
    if here:
        remedy = f"on {name} K is one of {', '.join(map(str, here))}"
    elif same:
        found = dict.fromkeys(f"{m.numerics} (K = {m.k}{_scales(m)})" for m in same)
        remedy = f'published for these types: {", ".join(found)}; or use "exact"'
    else:
        found = dict.fromkeys(f"{m.a} x {m.b} -> {m.accumulator}" for m in rows if m.numerics == name)
        shown = ", ".join(list(found)[:8]) + (", ..." if len(found) > 8 else "") if found else "nothing"
        remedy = f'published for {name}\'s {unit}: {shown}; or use "exact"'
    return LayoutError("numerics", f"no published model of {wanted} with K = {k} on {name}'s {unit}", remedy)


def _scales(entry: Model) -> str:
    return f", {entry.blocks} of {entry.scale}" if entry.scale else ""
