"""Loads and stores of one 32-bit register from and to global memory.

A register of 16-bit elements is filled by two loads when its elements are not neighbors in memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .record import Instruction, Operand, Place


def _gather(place: Place, count: int) -> Any:
    """uint32 [warps, lanes] of `count` consecutive elements from each lane's place, low bits first."""
    import numpy as np

    raw = place.data.view(f"u{place.data.dtype.itemsize}")
    bits = 8 * raw.itemsize
    out = np.zeros(place.index.shape, np.uint32)
    for i in range(count):
        out |= raw[place.index + i].astype(np.uint32) << np.uint32(bits * i)
    return out


def _scatter(place: Place, words: Any, count: int) -> None:
    import numpy as np

    raw = place.data.view(f"u{place.data.dtype.itemsize}")
    bits = 8 * raw.itemsize
    for i in range(count):
        raw[place.index + i] = (words >> np.uint32(bits * i)).astype(raw.dtype)


def _load_word(values: Mapping[str, Any]) -> dict[str, Any]:
    place = values["p"]
    return {"d": _gather(place, 4 // place.data.dtype.itemsize)[..., None]}


def _load_pair(values: Mapping[str, Any]) -> dict[str, Any]:
    import numpy as np

    low, high = _gather(values["p"], 1), _gather(values["q"], 1)
    return {"d": (low | high << np.uint32(16))[..., None]}


def _store_word(values: Mapping[str, Any]) -> dict[str, Any]:
    place = values["p"]
    _scatter(place, values["a"][..., 0], 4 // place.data.dtype.itemsize)
    return {}


_LD = "Data Movement and Conversion Instructions: ld"
_ST = "Data Movement and Conversion Instructions: st"

LOAD_WORD = {
    kind: Instruction(
        f"load.{kind}",
        f"ld.global.{kind} {{d}}, [{{p}}];",
        (Operand("d", 1, kind, "write"), Operand("p", 1, "address", "read")),
        75,
        (6, 3),
        _LD,
        _load_word,
        effect="memory",
    )
    for kind in ("f32", "b32")
}
"""One register from an address that is a multiple of 4 bytes."""

LOAD_PAIR = Instruction(
    "load.2xb16",
    "{{ .reg .b16 low, high; ld.global.b16 low, [{p}]; ld.global.b16 high, [{q}]; mov.b32 {d}, {{low, high}}; }}",
    (Operand("d", 1, "b32", "write"), Operand("p", 1, "address", "read"), Operand("q", 1, "address", "read")),
    75,
    (6, 3),
    _LD,
    _load_pair,
    effect="memory",
)
"""One register from two 16-bit elements, `p` into the low half and `q` into the high half."""

STORE_WORD = {
    kind: Instruction(
        f"store.{kind}",
        f"st.global.{kind} [{{p}}], {{a}};",
        (Operand("p", 1, "address", "read"), Operand("a", 1, kind, "read")),
        75,
        (6, 3),
        _ST,
        _store_word,
        effect="memory",
    )
    for kind in ("f32", "b32")
}
"""One register to an address that is a multiple of 4 bytes."""
