"""Register moves and constants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .record import Instruction, Operand


def _zero(values: Mapping[str, Any]) -> dict[str, Any]:
    import numpy as np

    warps, lanes = values["lanes"]
    return {"d": np.zeros((warps, lanes, 1), np.uint32)}


def _copy(values: Mapping[str, Any]) -> dict[str, Any]:
    return {"d": values["a"]}


_MOV = "Data Movement and Conversion Instructions: mov"

ZERO_F32 = Instruction(
    "zero.f32", "mov.f32 {d}, 0f00000000;", (Operand("d", 1, "f32", "write"),), 75, (6, 3), _MOV, _zero
)
COPY = {
    kind: Instruction(
        f"copy.{kind}",
        f"mov.{kind} {{d}}, {{a}};",
        (Operand("d", 1, kind, "write"), Operand("a", 1, kind, "read")),
        75,
        (6, 3),
        _MOV,
        _copy,
    )
    for kind in ("f32", "b32")
}
