"""Numbers that a launch gives, into registers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .record import Instruction, Kind, Operand


def _broadcast(values: Mapping[str, Any]) -> dict[str, Any]:
    """The words of the number, low ones first, in every lane."""
    import numpy as np

    warps, lanes = values["lanes"]
    words = np.asarray(values["p"], np.uint32)
    return {"d": np.broadcast_to(words, (warps, lanes, words.size)).copy()}


def _load(kind: Kind) -> Instruction:
    return Instruction(
        f"load.parameter.{kind}",
        f"ld.param.{kind} {{d}}, [{{p}}];",
        (Operand("d", 1, kind, "write"), Operand("p", 1, "parameter", "read")),
        75,
        (6, 3),
        "Data Movement and Conversion Instructions: ld",
        _broadcast,
    )


LOAD_PARAMETER: dict[Kind, Instruction] = {kind: _load(kind) for kind in ("f32", "f64")}
"""Register class -> the load of a parameter of that kind."""
