"""Numbers to bits to registers, for any operand of a product.  Only exact conversions."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowering.dtypes import dtype
from lowering.isa.elements import pack, to_numbers, unpack
from lowering.isa.mma import MmaInstruction
from lowering.isa.mma.record import Role
from lowering.isa.sparse import SparseMma

Matrices = MmaInstruction | SparseMma
"""A record of a product, dense or sparse."""


def dense_of(record: Matrices) -> MmaInstruction:
    """The record itself, or the product with A written out."""
    return record.dense if isinstance(record, SparseMma) else record


def in_place(record: Matrices) -> bool:
    """Whether C is D's registers."""
    return all(o.name != "C" for o in record.instruction.operands)


def read_operands(record: Matrices) -> tuple[tuple[Role, str], ...]:
    """The matrices that it reads, each with the name of the operand that holds it."""
    return (("A", "A"), ("B", "B"), ("C", "D" if in_place(record) else "C"))


def bits_of(numbers: Any, element: str) -> Any:
    """Numbers that the type has -> their bits, uint64.

    >>> [hex(int(x)) for x in bits_of(np.array([1.0, -2.0]), "bfloat16")]
    ['0x3f80', '0xc000']
    """
    kind = dtype(element)
    if kind.is_integer:
        return numbers.astype(np.int64).astype(np.uint64) & np.uint64(2**kind.bits - 1)
    with np.errstate(invalid="ignore", over="ignore"):
        held = np.asarray(numbers, np.float64, order="C").astype(kind.numpy)
    if not np.array_equal(held.astype(np.float64), numbers, equal_nan=True):
        raise ValueError(f"numbers that no {element} is")
    return held.view(f"u{held.dtype.itemsize}").astype(np.uint64)


def registers(record: Matrices, role: Role, bits: Any) -> Any:
    """Bits of the operand's elements ``[warps, *operand_shape]`` -> its registers ``[warps, 32, words]``."""
    dense = dense_of(record)
    return pack(bits[:, *record.index(role)], dense.element(role), dense.container(role))


def slot_registers(record: Matrices, role: Role, bits: Any) -> Any:
    """Bits by slot, ``[warps, 32, slots]`` -> registers ``[warps, 32, words]``: no map takes part."""
    dense = dense_of(record)
    return pack(bits, dense.element(role), dense.container(role))


def slot_bits(record: Matrices, role: Role, words: Any) -> Any:
    """Registers ``[warps, 32, words]`` -> bits by slot, uint64 ``[warps, 32, slots]``."""
    dense = dense_of(record)
    return unpack(words, dense.element(role), dense.container(role))


def slot_numbers(record: Matrices, role: Role, words: Any) -> Any:
    """Registers ``[warps, 32, words]`` -> the numbers by slot, float64 ``[warps, 32, slots]``."""
    return to_numbers(slot_bits(record, role, words), dense_of(record).element(role))
