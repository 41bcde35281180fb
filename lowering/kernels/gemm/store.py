"""What stores a tile of the result: statements, and what they need beside."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ...control import Parameter, TensorMap
from ...program import Buffer, Instr, Registers, Statement, every


@dataclass(frozen=True)
class Store:
    """The end of a tile.

    Attributes:
        statements: that store the sums of the tile at ``(row, column)``.
        end: that come after the last tile.
        buffers: shared and further global ones.
        scratch: registers.
        parameters: numbers that a launch gives.
    """

    statements: tuple[Statement, ...]
    end: tuple[Statement, ...] = ()
    buffers: tuple[Buffer, ...] = ()
    scratch: tuple[Registers, ...] = ()
    parameters: tuple[Parameter, ...] = ()


def tensor_maps(body: Iterable[Statement]) -> tuple[TensorMap, ...]:
    """The tensor maps that statements use, each once."""
    found = [
        a for s in every(tuple(body)) if isinstance(s, Instr) for a in s.arguments if isinstance(a, TensorMap)
    ]
    return tuple(dict.fromkeys(found))
