"""Rows for conversions, arithmetic and Python functions on registers: every bit as on the reference machine.

One CTA of 16 warps, a lane with 16 elements: 8192 at once.  Python functions whose PTX has approximations are bounded
instead, and are not a number, or infinite, where the reference machine says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from lowering import Lowered, Tile, cast, elementwise, lower
from lowering.backends import numba_cuda
from lowering.backends.numba_cuda import scalar_instruction
from lowering.dtypes import dtype
from lowering.isa.arithmetic import ADD, FMA, MUL
from lowering.isa.convert import PACK, UNPACK
from lowering.target import Target
from tilelayout import S, TileLayout, laneid, warpid

WARPS, EACH = 16, 16
SHAPE = (WARPS, 32, EACH)
LAYOUT = TileLayout(S[SHAPE : (1 @ warpid, 1 @ laneid, 1)])
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "relu": lambda x: max(x, 0.0),
    "gelu": lambda x: 0.5 * x * (1.0 + math.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))),
    "silu": lambda x: x / (1.0 + math.exp(-x)),
    "leaky": lambda x: x if x > 0 else 0.01 * x,
    "softplus": lambda x: math.log1p(math.exp(x)) if x < 20 else x,
}
EXACT: dict[str, Callable[[Any], Any]] = {
    "clamp": lambda x: min(max(x, 0.0), 6.0),
    "max with an integer": lambda x: max(x, 0),
    "floor": lambda x: math.floor(x),
    "ceil": lambda x: math.ceil(x),
    "trunc": lambda x: math.trunc(x),
    "int": lambda x: float(int(x)),
    "round": lambda x: float(round(x)),
    "hypotenuse": lambda x: math.sqrt(x * x + 1.0),
    "modulo": lambda x: x % 0.1,
    "fmod": lambda x: math.fmod(x, 0.3),
    "reciprocal": lambda x: x**-1,
    "third": lambda x: x / 3.0,
    "copysign": lambda x: math.copysign(1.0, x) + abs(x),
    "branches": lambda x: x if x > 0 else (-x if x < -1 else 0.25 * x),
}
"""Functions whose results no approximation in their PTX changes."""
BOUND = 2e-6


def tile(name: str, element: str) -> Tile:
    return Tile(name, SHAPE, element, LAYOUT)


def lowered(call: Any, where: Target) -> Lowered:
    return lower(call, target=where, scope="cta", launch=32 * WARPS)


def any_bits(element: str, seed: int) -> Any:
    """All the bits that an element can have, or as many as there is room for, its special numbers among them."""
    bits, room = dtype(element).bits, math.prod(SHAPE)
    kind = dtype(element).numpy
    if 1 << bits <= room:
        codes = np.resize(np.arange(1 << bits), room)
    else:
        words = np.random.default_rng(seed).integers(0, 1 << min(bits, 63), room)
        near = (np.random.default_rng(seed + 1).standard_normal(room) * 300).astype(np.float32)
        codes = np.where(np.arange(room) % 2, near.view(np.uint32), words) if element == "float32" else words
        codes[:8] = [0, 1, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 0x80000000, 0x477FF000]
    return np.ascontiguousarray(codes.astype(f"u{kind.itemsize}")).view(kind).reshape(SHAPE)


def equal(found: Any, wanted: Any) -> dict[str, Any]:
    """Bit for bit; NaNs are NaNs, and how many have other words is told."""
    raw = f"u{found.dtype.itemsize}"
    nan = np.isnan(wanted.astype(np.float64)) if found.dtype.kind not in "iu" else np.zeros(found.shape, bool)
    same = found.view(raw) == wanted.view(raw)
    if not same[~nan].all():
        at = np.argwhere(~same & ~nan)[0]
        raise ValueError(
            f"{(~same & ~nan).sum()} differ, the first is {found[tuple(at)]!r}, not {wanted[tuple(at)]!r}"
        )
    if not np.isnan(found[nan].astype(np.float64)).all():
        raise ValueError("a NaN was lost")
    return {"elements": found.size, "NaNs with other words": int((~same & nan).sum())}


def conversion(src: str, dst: str, where: Target) -> dict[str, Any]:
    kernel = lowered(cast(tile("y", dst), tile("x", src)), where)
    x = any_bits(src, 3)
    return equal(kernel.launch(src=x), kernel.run(src=x))


def operation(record: Any, element: str, where: Target) -> dict[str, Any]:
    count = len(record.operands) - 1
    tiles = [tile(f"x{i}", element) for i in range(count)]
    kernel = lowered(elementwise(tile("y", element), record, *tiles), where)
    given = {f"src{i}": any_bits(element, 10 * i) for i in range(count)}
    return equal(kernel.launch(**given), kernel.run(**given))


def function(name: str, where: Target) -> dict[str, Any]:
    """Within a few units in the last place of 1 or of the number, whichever is more."""
    record = scalar_instruction(FUNCTIONS[name], where, name=name)
    kernel = lowered(elementwise(tile("y", "float32"), record, tile("x", "float32")), where)
    x = np.linspace(-30, 30, math.prod(SHAPE), dtype=np.float32).reshape(SHAPE)
    found, wanted = kernel.launch(src=x), np.vectorize(lambda v: float(FUNCTIONS[name](float(v))))(x)
    error = bounded(found, wanted)
    x = any_bits("float32", 5)
    return {"error": error, "error, any bits": bounded(kernel.launch(src=x), kernel.run(src=x))}


def bounded(found: Any, wanted: Any) -> float:
    """The largest error of ordinary numbers; all others are the same."""
    ordinary = np.isfinite(wanted)
    strange = ~ordinary & ~((found == wanted) | (np.isnan(found) & np.isnan(wanted)))
    if strange.any():
        at = tuple(np.argwhere(strange)[0])
        raise ValueError(f"{strange.sum()} are others, the first is {found[at]!r}, not {wanted[at]!r}")
    there, found = wanted[ordinary].astype(np.float64), found[ordinary].astype(np.float64)
    error = float((np.abs(found - there) / np.maximum(1, np.abs(there))).max())
    if not error <= BOUND:
        raise ValueError(f"error {error:.2e} exceeds {BOUND:.0e}")
    return error


def exact(name: str, where: Target) -> dict[str, Any]:
    """Every bit as the reference machine has it."""
    record = scalar_instruction(EXACT[name], where, name=name.replace(" ", "_"))
    kernel = lowered(elementwise(tile("y", "float32"), record, tile("x", "float32")), where)
    x = any_bits("float32", 5)
    return equal(kernel.launch(src=x), kernel.run(src=x))


def rows(where: Target | None = None) -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    """(name, what to run)."""
    target = where or numba_cuda.gpu_target()
    for element, records in PACK.items():
        if element != "float32" and not all(i.refusal(target) for i in records):
            yield f"float32 to {element}", lambda e=element: conversion("float32", e, target)
    for element, records in UNPACK.items():
        if element != "float32" and not all(i.refusal(target) for i in records):
            yield f"{element} to float32", lambda e=element: conversion(e, "float32", target)
    yield "int32 to float64", lambda: conversion("int32", "float64", target)
    for table in (MUL, ADD, FMA):
        for kind, element in (("f32", "float32"), ("f64", "float64")):
            yield table[kind].name, lambda r=table[kind], e=element: operation(r, e, target)  # type: ignore[index]
    for name in FUNCTIONS:
        yield f"the function {name}", lambda n=name: function(n, target)
    for name in EXACT:
        yield f"the function {name}, exactly", lambda n=name: exact(n, target)
