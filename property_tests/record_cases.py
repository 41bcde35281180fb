"""A gemm for every dense record of the catalogue: calls, operands whose sums are exact, and what must come out.

The answer is computed on the arrays themselves, in int64 or float64: nothing of a layout, nothing of a meaning.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lowering import GemmCall, Lowered, Tile, gemm, lower
from lowering.dtypes import dtype
from lowering.fragments import partition
from lowering.isa import DENSE, MmaInstruction
from lowering.target import TARGETS, Target
from lowering.variants.mma_table import untried

RECORDS = tuple(i for i in DENSE if not untried(i))
"""What ``gemm`` tries."""

FAMILIES = tuple(
    {(i.m, dtype(i.a).ptx, dtype(i.d).ptx, i.kind, i.operation): i for i in reversed(RECORDS)}.values()
)
"""One record for each shape of rows, type of A and D, kind and operation: the first of each in the table."""


def call_of(
    record: MmaInstruction,
    tiling: tuple[int, int, int] = (1, 1, 1),
    warps: tuple[int, int] = (1, 1),
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    beta: float = 1.0,
    in_place: bool = False,
) -> GemmCall:
    """A gemm on that record's fragments: `tiling` instructions of each of the warps along M, N, K."""
    m, n, k = record.m * tiling[0] * warps[0], record.n * tiling[1] * warps[1], record.k * tiling[2]
    found = partition(record, m, n, k, warps, transpose_a=transpose_a, transpose_b=transpose_b)
    a = Tile("A", (k, m) if transpose_a else (m, k), record.a, found.A)
    b = Tile("B", (n, k) if transpose_b else (k, n), record.b, found.B)
    d = Tile("D", (m, n), record.d, found.D)
    c = d if in_place else Tile("C", (m, n), record.c, found.C)
    return gemm(d, a, b, c, transpose_a=transpose_a, transpose_b=transpose_b, beta=beta)


def config_of(record: MmaInstruction) -> dict[str, Any]:
    """What makes ``gemm`` take records with this one's qualifiers."""
    return {"satfinite": record.satfinite, "operation": record.operation or None, "kind": record.kind}


def first_target(record: MmaInstruction) -> Target:
    """The first that has the record."""
    return next(t for t in TARGETS.values() if not record.instruction.refusal(t))


def lowered_of(
    record: MmaInstruction, call: GemmCall, target: Any = None, warps: tuple[int, int] = (1, 1)
) -> Lowered:
    """Lowered for the first target that has the record, at warp scope for one warp and at CTA scope for several."""
    count = warps[0] * warps[1]
    scope, launch = ("warp", None) if count == 1 else ("cta", 32 * count)
    where = target or first_target(record)
    return lower(call, target=where, scope=scope, launch=launch, config=config_of(record))


def whole(call: GemmCall, rng: np.random.Generator) -> dict[str, Any]:
    """Small integers of each tile's type: every sum is exact in any order, also in float16."""
    out = {}
    for role in "ABC":
        tile = call.tiles[role]
        low = 0 if tile.dtype.startswith("uint") else -2
        values = rng.integers(low, 2 if tile.dtype == "uint1" else 3, tile.shape)
        out[role] = values.astype(np.float32).astype(tile.element.numpy)
    return out


def any_values(call: GemmCall, rng: np.random.Generator) -> dict[str, Any]:
    """Integers of the whole range of their types; floats from a normal distribution, rounded to their types."""
    out = {}
    for role in "ABC":
        element, shape = call.tiles[role].element, call.tiles[role].shape
        if element.name == "int32":
            out[role] = rng.integers(-(2**31), 2**31, shape, dtype=np.int64).astype(np.int32)
        elif element.is_integer:
            low = -(2 ** (element.bits - 1)) if element.ptx.startswith("s") else 0
            out[role] = rng.integers(low, low + 2**element.bits, shape).astype(np.int8 if low else np.uint8)
            out[role] = out[role].astype(element.numpy)
        else:
            out[role] = rng.standard_normal(shape).astype(np.float32).astype(element.numpy)
    return out


def given(call: GemmCall, arrays: dict[str, Any]) -> dict[str, Any]:
    """The arrays that the call reads."""
    return {role: x for role, x in arrays.items() if role != "C" or call.beta == 1}


def numbers(tile: Tile, array: Any) -> Any:
    """The numbers that the instruction sees, in int64 or float64; of a tfloat32 the low 13 bits are gone."""
    if tile.element.is_integer:
        return array.astype(np.int64)
    if tile.dtype == "tfloat32":
        array = (array.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    return array.astype(np.float64)


def answer(record: MmaInstruction, call: GemmCall, arrays: dict[str, Any]) -> tuple[Any, Any]:
    """``A @ B + beta * C`` as int64 or float64, before D's type wraps, clamps or rounds it, and the sum of the terms'
    magnitudes.
    """
    a, b, c = (numbers(call.tiles[r], arrays[r]) for r in "ABC")
    a, b = a.T if call.transpose_a else a, b.T if call.transpose_b else b
    c = c if call.beta == 1 else 0 * c
    if record.operation == "xor":
        a, b = np.concatenate([a, 1 - a], 1), np.concatenate([1 - b, b], 0)
    return a @ b + c, np.abs(a) @ np.abs(b) + np.abs(c)
