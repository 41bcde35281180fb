"""What an ``mma.sync`` computes, on the 32-bit registers of all lanes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from ...dtypes import dtype
from ..elements import pack, to_numbers, unpack
from ..numerics import Model, accumulate, bits
from ..numerics.lookup import model
from ..operand_map import scale_map

if TYPE_CHECKING:
    from .record import MmaInstruction, Role
    from .scale import BlockScale


def multiply(record: MmaInstruction, values: Mapping[str, Any]) -> dict[str, Any]:
    """Decode the registers by the PTX operand maps, multiply and add by the model of numerics, encode.

    ``values["numerics"]`` names the model; "exact" is the default.  Integers, bits and f64 (a chain of fused
    multiply-adds along K, NaN words included) are the same under every name, bit for bit what hardware gives.

    Errors: LayoutError where there is no model of that name for the instruction.
    """
    a, b = decode(record, "A", values["A"]), decode(record, "B", values["B"])
    c = decode(record, "C", values["D" if record.c == record.d else "C"])
    k = record.k
    if record.operation == "xor":  # a ^ b = a & ~b | ~a & b, as a product of twice the length
        a, b, k = _beside(a, 1 - a, -1), _beside(1 - b, b, -2), 2 * k
    how = model_of(record, values.get("numerics", "exact"), k)
    return {"D": encode(record, accumulate(a, b, c, how, *scales(record, values)))}


def model_of(record: MmaInstruction, numerics: str, k: int, unit: str = "mma") -> Model:
    """The model of that name for the record's types with so many products.  LayoutError where there is none."""
    scale = record.scale
    return model(
        numerics,
        record.a,
        record.b,
        record.d,
        k,
        unit=unit,
        scale=scale.type if scale else "",
        blocks=scale.vector if scale else 0,
        saturate=record.satfinite,
    )


def scales(record: MmaInstruction, values: Mapping[str, Any]) -> tuple[Any, ...]:
    """The factors ``[warps, M, vector]`` of A and ``[warps, vector, N]`` of B; nothing for a record without."""
    if not record.scale:
        return ()
    scale_a, scale_b = (factors(role, record.scale, values[role]) for role in ("SFA", "SFB"))
    return scale_a, scale_b.swapaxes(-1, -2)


def decode(record: MmaInstruction, role: Role, words: Any) -> Any:
    """Registers ``[warps, lanes, words]`` of an operand -> its numbers, ``[warps, *operand_shape]`` float64."""
    import numpy as np

    element = record.element(role)
    out = np.empty((words.shape[0], *record.operand_shape(role)))
    out[:, *record.index(role)] = to_numbers(unpack(words, element, record.container(role)), element)
    return out


def encode(record: MmaInstruction, d: Any) -> Any:
    """Numbers of D, ``[warps, *operand_shape]`` -> its registers, uint32 ``[warps, lanes, words]``."""
    width = dtype(record.d).bits
    held = bits(d, record.d).view(f"u{width // 8}")[:, *record.index("D")]
    return pack(held, record.d, record.container("D"))


def factors(role: Literal["SFA", "SFB"], scale: BlockScale, words: Any) -> Any:
    """Scale registers ``[warps, lanes, 1]`` -> the factors ``[warps, rows, vector]``, rows M or N."""
    import numpy as np

    row, block, lane, byte = scale_map(role, scale.vector, *scale.selector(role))
    out = np.empty((words.shape[0], *row.shape))
    out[:, row, block] = to_numbers(unpack(words, scale.type, 8), scale.type)[:, lane, byte]
    return out


def _beside(x: Any, y: Any, dimension: int) -> Any:
    import numpy as np

    return np.concatenate([x, y], axis=dimension)
