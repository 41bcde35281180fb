"""What an ``mma.sp`` computes: kept elements of A times the elements of B that they meet.

What meets no kept element takes no part: it is not multiplied by zero, so that an infinity there does nothing.
(Measured on an H200, by property_tests/gpu/probe.)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..elements import to_numbers, unpack
from ..mma.meaning import decode, encode, model_of, scales
from ..numerics import accumulate

if TYPE_CHECKING:
    from .record import SparseMma


def multiply(record: SparseMma, values: Mapping[str, Any]) -> dict[str, Any]:
    """Decode the registers, gather what the kept elements meet, multiply and add by the model of numerics, encode.

    ``values["numerics"]`` names the model; "exact" is the default.

    Errors: LayoutError naming row and group for metadata that breaks the pattern; where there is no model of that name
    for the instruction.
    """
    import numpy as np

    dense = record.dense
    a, b, c = gather(record, values)
    how = model_of(dense, values.get("numerics", "exact"), dense.k // 2, unit="mma.sp")
    factors = scales(dense, values)
    if factors:
        blocks, n = factors[1].shape[1:]
        factors = factors[0][:, :, None], np.broadcast_to(factors[1][:, None], (*b.shape[:2], blocks, n))
    return {"D": encode(dense, accumulate(a, b, c, how, *factors)[:, :, 0])}


def gather(record: SparseMma, values: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    """The operands as products of one row each: A ``[warps, 16, 1, k / 2]``, B ``[warps, 16, k / 2, N]``, and C.

    B of a row is what the kept elements of that row meet; C is ``[warps, 16, 1, N]``.
    """
    import numpy as np

    dense = record.dense
    codes = record.sparsity.codes_of(values["e"][..., 0], record.selector)
    record.sparsity.check_codes(codes, record.ordered)
    a = np.empty((codes.shape[0], *record.operand_shape("A")))
    a[:, *record.index("A")] = to_numbers(unpack(values["A"], dense.a, dense.container("A")), dense.a)
    b, c = decode(dense, "B", values["B"]), decode(dense, "C", values["D"])
    columns = record.sparsity.columns_of(codes)  # [warps, 16, k / 2]
    met = np.take_along_axis(b[:, None], columns[..., None], axis=2)
    return a[:, :, None], met, c[:, :, None]
