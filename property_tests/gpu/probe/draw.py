"""Random operands of a product: every sign, exponent and fraction, subnormal numbers and zeros of both signs.

Warps differ: in some all terms are near each other, in some far apart; in some the terms cancel C, in some they all
have one sign, in some many are zero.  No sum leaves the accumulator's range; `special_bits` is for what is not finite.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lowering.dtypes import dtype
from lowering.isa.numerics import FORMATS
from lowering.isa.sparse import SparseMma

from .elements import Matrices, bits_of, dense_of, read_operands, registers, slot_bits, slot_registers
from .relation import random_metadata


@dataclass(frozen=True)
class Range:
    """A format: fraction bits, the exponent below which numbers are subnormal, the largest number."""

    fraction: int
    smallest: int
    largest: float

    @property
    def bottom(self) -> int:
        """The exponent of the smallest number."""
        return self.smallest - self.fraction

    @property
    def top(self) -> int:
        return int(np.frexp(self.largest)[1]) - 1


def range_of(element: str) -> Range:
    if element == "float64":
        return Range(52, -1022, float(np.finfo(np.float64).max))
    form = FORMATS[element]
    return Range(form.fraction, form.smallest, form.largest)


def operands(record: Matrices, warps: int, rng: Any) -> dict[str, Any]:
    """Registers by operand, uint32 ``[warps, 32, words]``; C is in D's where it is updated in place."""
    dense = dense_of(record)
    matrices = (_integers if dtype(dense.a).is_integer else _floats)(record, warps, rng)
    values: dict[str, Any] = {}
    for (role, name), matrix in zip(read_operands(record), matrices, strict=True):
        words: Any = registers(record, role, bits_of(matrix, dense.element(role)))
        if dense.element(role) == "tfloat32":  # the hardware drops these
            words |= rng.integers(0, 2**13, words.shape, dtype=np.uint32)
        values[name] = words
    if isinstance(record, SparseMma):
        values["e"] = random_metadata(record, rng, warps)[1]
    return values


def _integers(record: Matrices, warps: int, rng: Any) -> tuple[Any, Any, Any]:
    """A and B over their whole range, in every eighth warp at its ends; C small, anything, or near an end of int32."""
    dense = dense_of(record)
    out: list[Any] = []
    for role in ("A", "B"):
        kind = dtype(dense.element(role))
        low = -(2 ** (kind.bits - 1)) if kind.ptx.startswith("s") else 0
        matrix = rng.integers(low, low + 2**kind.bits, (warps, *record.operand_shape(role)))
        ends = np.where(rng.integers(0, 2, matrix[::8].shape), low, low + 2**kind.bits - 1)
        matrix[::8] = ends
        out.append(matrix.astype(np.float64))
    shape = (warps, *record.operand_shape("C"))
    sign = rng.choice([-1, 1], shape)
    kinds = [
        rng.integers(-1000, 1000, shape),
        rng.integers(-(2**31), 2**31, shape),
        sign * (2**31 - 1 - rng.integers(0, 2**8, shape)),
        sign * (2**31 - 1 - rng.integers(0, 2**18, shape)),
    ]
    c = np.choose(np.arange(warps).reshape(-1, *[1] * (len(shape) - 1)) % 4, kinds)
    return out[0], out[1], c.astype(np.float64)


def _floats(record: Matrices, warps: int, rng: Any) -> tuple[Any, Any, Any]:
    dense = dense_of(record)
    a_range, b_range, c_range = (range_of(dense.element(role)) for role in ("A", "B", "C"))
    shapes = [record.operand_shape(role) for role in ("A", "B", "C")]
    matrices = [np.empty((warps, *shape)) for shape in shapes]
    for warp in range(warps):
        windows = _windows(dense.k, warp, a_range, b_range, c_range, rng)
        for matrix, shape, form, window in zip(
            matrices, shapes, (a_range, b_range, c_range), windows, strict=True
        ):
            matrix[warp] = _numbers(form, shape, window, rng)
            if warp % 4 == 1:
                zeros = rng.random(shape) < 0.4
                matrix[warp][zeros] *= 0.0  # keeps the sign
            if warp % 4 == 3:
                matrix[warp] = np.abs(matrix[warp])
    if not isinstance(record, SparseMma):
        cancel = slice(2, None, 4)
        total = matrices[0][cancel] @ matrices[1][cancel]
        matrices[2][cancel] = _nearest(
            -total * rng.choice([1, 1 + 2.0**-6, 1 + 2.0**-14], total.shape), c_range
        )
    return matrices[0], matrices[1], matrices[2]


def _windows(k: int, warp: int, a: Range, b: Range, c: Range, rng: Any) -> list[tuple[int, int]]:
    """Lowest and highest exponent of A, B and C."""
    most = min(c.top - 2, 1000) - k.bit_length()  # of A and B together
    spread = [0, 3, 8, 16, 40][int(rng.integers(0, 5))]
    if warp % 2:  # anywhere that the type has, else near 1
        lowest, highest = a.bottom, a.smallest if warp % 16 == 5 else a.top
    else:
        lowest, highest = max(a.bottom, -4), min(a.top, 2)
    low_a = min(int(rng.integers(lowest, highest + 1)), most - b.bottom)
    high_a = min(low_a + spread, a.top, most - b.bottom)
    high_b = min(b.top, most - high_a)
    floor = max(b.bottom, min(c.bottom - high_a, high_b)) if warp % 2 else max(b.bottom, min(-4, high_b))
    low_b = int(rng.integers(floor, high_b + 1))
    if warp % 16 == 13:  # subnormal
        low_b = int(rng.integers(b.bottom, min(b.smallest, high_b) + 1))
    high_b = min(low_b + spread, high_b)
    if warp % 8 == 7:  # C subnormal, the products near it where they can be
        low_b = high_b = int(np.clip(c.smallest - high_a - rng.integers(0, 20), b.bottom, high_b))
        low_c = int(rng.integers(c.bottom, c.smallest))
        return [(low_a, high_a), (low_b, high_b), (low_c, c.smallest)]
    near = high_a + high_b + int(rng.integers(-30, 30))
    low_c = int(np.clip(near, c.bottom, c.top - 2))
    return [(low_a, high_a), (low_b, high_b), (low_c, min(low_c + spread, c.top - 2))]


def _numbers(form: Range, shape: tuple[int, ...], window: tuple[int, int], rng: Any) -> Any:
    """Random numbers of the format with exponents in the window, below the smallest one subnormal."""
    exponent = rng.integers(window[0], window[1] + 1, shape)
    fraction = rng.integers(0, 2**form.fraction, shape).astype(np.float64) * 2.0**-form.fraction
    place = np.maximum(exponent, form.smallest) - form.fraction
    significand = np.ldexp(1 + fraction, exponent - place)  # in units of the last place
    value = np.minimum(np.ldexp(np.maximum(np.floor(significand), 1), place), form.largest)
    return value * rng.choice([-1.0, 1.0], shape)


def _nearest(values: Any, form: Range) -> Any:
    exponent = np.maximum(np.frexp(values)[1] - 1, form.smallest)
    place = np.ldexp(1.0, exponent - form.fraction)
    return np.clip(np.rint(values / place) * place, -form.largest, form.largest)


def special_bits(element: str) -> list[int]:
    """Bits of infinities and NaNs of a type, signaling ones and several payloads among them; none for integers."""
    kind = dtype(element)
    if kind.is_integer:
        return []
    if element == "float8_e4m3fn":
        return [0x7F, 0xFF]
    fraction = {"float16": 10, "bfloat16": 7, "float8_e5m2": 2, "float64": 52}.get(element, 23)
    infinity = (2 ** (kind.bits - 1 - fraction) - 1) << fraction
    sign, quiet = 1 << (kind.bits - 1), 1 << (fraction - 1)
    found = [infinity, infinity | sign, infinity | quiet, infinity | quiet | sign, infinity | 1]
    return [*found, infinity | quiet | 5 % 2**fraction] if fraction > 2 else found


def operands_with_specials(record: Matrices, warps: int, rng: Any) -> dict[str, Any]:
    """`operands` in which about one element in 60 is infinite or NaN."""
    dense = dense_of(record)
    values = operands(record, warps, rng)
    for role, name in read_operands(record):
        bits = slot_bits(record, role, values[name])
        here = rng.random(bits.shape) < 1 / 60
        bits[here] = rng.choice(np.array(special_bits(dense.element(role)), np.uint64), int(here.sum()))
        values[name] = slot_registers(record, role, bits)
    return values
