"""Arrays of a row on the GPU, what its product must be, and the libraries' calls for it.  Needs torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from .gemm_rows import Row

LIMITS = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 1e-5, "float64": 1e-13, "int32": 0.0}
"""Type of the result -> how far it may be from float64's, in the norm, as a share."""
OTHERS = {"tfloat32": 2e-3, "float8_e4m3fn": 1e-2}
"""Type of the factors -> what a library may be off by: it rounds float32 its own way, and adds 8-bit floats roughly."""
POISON = 0x7F7F7F7F


def torch_type(name: str) -> Any:
    return torch.float32 if name == "tfloat32" else getattr(torch, name)


@dataclass
class Set:
    """Operands of one launch."""

    A: Any
    B: Any
    D: Any


def operand(row: Row, rows: int, columns: int, order: str, kind: str, generator: Any) -> Any:
    """A matrix, or one for each batch, of random normal numbers (of any integers), rows padded as the row says."""
    across, along = (rows, columns) if order == "row" else (columns, rows)
    leading = -(-along // row.align) * row.align
    shape = (row.batches or 1, across, leading)
    if kind == "int8":
        made = torch.randint(-128, 128, shape, device="cuda", generator=generator, dtype=torch.int8)
    else:
        wide = torch.float64 if kind == "float64" else torch.float32
        made = torch.randn(shape, device="cuda", generator=generator, dtype=wide).to(torch_type(kind))
    found = made[:, :, :along]
    found = found if order == "row" else found.transpose(-1, -2)
    return found if row.batches else found[0]


def make(row: Row, seed: int) -> Set:
    """One set of operands; D is poisoned."""
    generator = torch.Generator(device="cuda").manual_seed(seed)
    a = operand(row, row.M, row.K, row.A, row.dtype, generator)
    b = operand(row, row.K, row.N, row.B, row.dtype, generator)
    leading = -(-row.N // row.align) * row.align
    d = torch.empty((row.batches or 1, row.M, leading), device="cuda", dtype=torch_type(row.out))[
        :, :, : row.N
    ]
    found = Set(a, b, d if row.batches else d[0])
    poison(found.D)
    return found


def poison(D: Any) -> None:
    D.fill_(float("nan") if D.dtype.is_floating_point else POISON)


def sets(row: Row, l2_bytes: int) -> list[Set]:
    """As many sets as make the second-level cache forget the first one before its turn comes again."""
    count = min(16, max(2, -(-2 * l2_bytes // row.bytes) + 1))
    return [make(row, 11 + i) for i in range(count)]


def reference(row: Row, x: Set) -> Any:
    """The product in float64, of what the tensor cores read."""
    a, b = x.A, x.B
    if row.dtype == "tfloat32":
        a, b = ((y.contiguous().view(torch.int32) & ~0x1FFF).view(torch.float32) for y in (a, b))
    return a.to(torch.float64) @ b.to(torch.float64)


def check(row: Row, call: Callable[[Set], Any], x: Set, ours: bool) -> float:
    """The error as a share of the product, in the norm.

    Errors: ValueError beyond what is allowed; for two launches of ours that differ in a bit.
    """
    limit = LIMITS[row.out] if ours else OTHERS.get(row.dtype, LIMITS[row.out])
    wanted = reference(row, x)
    poison(x.D)
    found = call(x).clone()
    if ours:
        poison(x.D)
        again = call(x)
        if not torch.equal(found.contiguous().view(torch.uint8), again.contiguous().view(torch.uint8)):
            raise ValueError("two launches differ")
    error = float((found.to(torch.float64) - wanted).norm() / wanted.norm())
    if not error <= limit:
        raise ValueError(f"off by {error:.3g} of the product's norm, {limit:.3g} is allowed")
    return error


def library(row: Row) -> Callable[[Set], Any]:
    """cuBLAS's product, through torch, into D."""
    torch.backends.cuda.matmul.allow_tf32 = row.dtype == "tfloat32"
    if row.batches:
        return lambda x: torch.bmm(x.A, x.B, out=x.D)
    if row.dtype == "int8":
        return lambda x: torch._int_mm(x.A, x.B, out=x.D)
    if row.dtype == "float8_e4m3fn":
        one = torch.ones((), device="cuda")
        return lambda x: torch._scaled_mm(x.A, x.B, one, one, out_dtype=torch.float16)
    return lambda x: torch.mm(x.A, x.B, out=x.D)
