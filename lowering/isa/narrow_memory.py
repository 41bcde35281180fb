"""Loads and stores of one or two bytes from and to a part of a 32-bit register; the rest of the register stays.

What remains of vectors at the rim of a tensor, and all there is of halves and bytes that nothing aligns further.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .memory import Meaning
from .record import Instruction, Kind, Operand, Space

_LD = "Data Movement and Conversion Instructions: ld"
_ST = "Data Movement and Conversion Instructions: st"
_ADDRESS: dict[Space, Kind] = {"global": "address", "shared": "shared"}


def _loaded(width: int, at: int) -> Meaning:
    def load(values: Mapping[str, Any]) -> dict[str, Any]:
        """`width` bits from each lane's place, into the register's bits from `at` on."""
        import numpy as np

        place = values["p"]
        raw = place.data.view(f"u{place.data.dtype.itemsize}")
        units = place.index[..., None] + np.arange(width // 8 // raw.itemsize)
        bits = np.ascontiguousarray(raw[units]).view(f"<u{width // 8}")[..., 0].astype(np.uint32)
        kept = values["d"][..., 0] & np.uint32(~(((1 << width) - 1) << at) & 0xFFFFFFFF)
        return {"d": (kept | bits << np.uint32(at))[..., None]}

    return load


def _stored(width: int, at: int) -> Meaning:
    def store(values: Mapping[str, Any]) -> dict[str, Any]:
        import numpy as np

        place = values["p"]
        raw = place.data.view(f"u{place.data.dtype.itemsize}")
        units = place.index[..., None] + np.arange(width // 8 // raw.itemsize)
        bits = (values["a"][..., :1] >> np.uint32(at)).astype(f"<u{width // 8}")
        raw[units] = np.ascontiguousarray(bits).view(raw.dtype)
        return {}

    return store


def _load(space: Space, width: int, at: int) -> Instruction:
    return Instruction(
        f"load.{'shared.' * (space == 'shared')}b{width}.into.{at}",
        f"{{{{ .reg .b32 x; ld.{space}.u{width} x, [{{p}}]; bfi.b32 {{d}}, x, {{d}}, {at}, {width}; }}}}",
        (Operand("d", 1, "b32", "update"), Operand("p", 1, _ADDRESS[space], "read", width // 8)),
        75,
        (6, 3),
        f"{_LD}; Integer Arithmetic Instructions: bfi",
        _loaded(width, at),
        effect="memory",
    )


def _store(space: Space, width: int, at: int) -> Instruction:
    text = f"st.{space}.u{width} [{{p}}], {{a}};"
    if at:
        text = f"{{{{ .reg .b32 x; shr.b32 x, {{a}}, {at}; st.{space}.u{width} [{{p}}], x; }}}}"
    return Instruction(
        f"store.{'shared.' * (space == 'shared')}b{width}.from.{at}",
        text,
        (Operand("p", 1, _ADDRESS[space], "read", width // 8), Operand("a", 1, "b32", "read")),
        75,
        (6, 3),
        _ST,
        _stored(width, at),
        effect="memory",
    )


_PLACES = [(width, at) for width in (8, 16) for at in range(0, 32, width)]

LOAD_INTO: dict[tuple[Space, int, int], Instruction] = {
    (space, width, at): _load(space, width, at) for space in _ADDRESS for width, at in _PLACES
}
"""(memory, bits, lowest bit) -> the load of 8 or 16 bits into a register from that bit on."""

STORE_FROM: dict[tuple[Space, int, int], Instruction] = {
    (space, width, at): _store(space, width, at) for space in _ADDRESS for width, at in _PLACES
}
"""The reverse."""
