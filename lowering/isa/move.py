"""Register moves and constants."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .record import Instruction, Kind, Operand


def _zero(kind: Kind) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    def zero(values: Mapping[str, Any]) -> dict[str, Any]:
        import numpy as np

        warps, lanes = values["lanes"]
        return {"d": np.zeros((warps, lanes, 2 if kind == "f64" else 1), np.uint32)}

    return zero


def _copy(values: Mapping[str, Any]) -> dict[str, Any]:
    return {"d": values["a"]}


_MOV = "Data Movement and Conversion Instructions: mov"
_NOTHING: dict[Kind, str] = {"f32": "0f00000000", "f64": "0d0000000000000000", "b32": "0"}

ZERO = {
    kind: Instruction(
        f"zero.{kind}",
        f"mov.{kind} {{d}}, {nothing};",
        (Operand("d", 1, kind, "write"),),
        75,
        (6, 3),
        _MOV,
        _zero(kind),
    )
    for kind, nothing in _NOTHING.items()
}
"""All bits 0, by register class."""

ZERO_F32 = ZERO["f32"]

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
    for kind in _NOTHING
}
