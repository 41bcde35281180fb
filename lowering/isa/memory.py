"""Loads and stores of one register from and to global memory.

A register whose elements lie side by side in memory is one access.  Where they don't, it is gathered element by
element, or scattered: two halves, four bytes, or, from memory that packs them, eight or 32 elements of less than a
byte.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .record import Instruction, Kind, Operand, Place

_LD = "Data Movement and Conversion Instructions: ld"
_ST = "Data Movement and Conversion Instructions: st"
_BYTES: dict[Kind, int] = {"f32": 4, "b32": 4, "f64": 8}

Meaning = Callable[[Mapping[str, Any]], dict[str, Any]]


def _raw(place: Place) -> Any:
    return place.data.view(f"u{place.data.dtype.itemsize}")


def _load_word(size: int) -> Meaning:
    def load(values: Mapping[str, Any]) -> dict[str, Any]:
        """`size` consecutive bytes from each lane's place, low bytes first."""
        import numpy as np

        place = values["p"]
        step = place.data.dtype.itemsize
        units = place.index[..., None] + np.arange(size // step)
        return {"d": np.ascontiguousarray(_raw(place)[units]).view(np.uint32)}

    return load


def _store_word(size: int) -> Meaning:
    def store(values: Mapping[str, Any]) -> dict[str, Any]:
        import numpy as np

        place = values["p"]
        raw = _raw(place)
        units = place.index[..., None] + np.arange(size // raw.itemsize)
        raw[units] = np.ascontiguousarray(values["a"]).view(raw.dtype)
        return {}

    return store


def _gather(names: list[str], width: int) -> Meaning:
    def gather(values: Mapping[str, Any]) -> dict[str, Any]:
        import numpy as np

        word: Any = np.uint32(0)
        for i, name in enumerate(names):
            place = values[name]
            bits = _raw(place)[place.index].astype(np.uint32) >> np.asarray(place.bit, np.uint32)
            word = word | (bits & np.uint32((1 << width) - 1)) << np.uint32(width * i)
        return {"d": word[..., None]}

    return gather


def _scatter(names: list[str], width: int) -> Meaning:
    def scatter(values: Mapping[str, Any]) -> dict[str, Any]:
        import numpy as np

        word = values["a"][..., 0]
        for i, name in enumerate(names):
            place = values[name]
            raw = _raw(place)
            raw[place.index] = (word >> np.uint32(width * i)).astype(raw.dtype)
        return {}

    return scatter


def _memory(name: str, template: str, operands: list[Operand], section: str, meaning: Meaning) -> Instruction:
    return Instruction(name, template, tuple(operands), 75, (6, 3), section, meaning, effect="memory")


LOAD_WORD = {
    kind: _memory(
        f"load.{kind}",
        f"ld.global.{kind} {{d}}, [{{p}}];",
        [Operand("d", 1, kind, "write"), Operand("p", 1, "address", "read")],
        _LD,
        _load_word(size),
    )
    for kind, size in _BYTES.items()
}
"""One register from an address that is a multiple of its size, 4 bytes or 8."""

STORE_WORD = {
    kind: _memory(
        f"store.{kind}",
        f"st.global.{kind} [{{p}}], {{a}};",
        [Operand("p", 1, "address", "read"), Operand("a", 1, kind, "read")],
        _ST,
        _store_word(size),
    )
    for kind, size in _BYTES.items()
}
"""One register to an address that is a multiple of its size, 4 bytes or 8."""

LOAD_PAIR = _memory(
    "load.2xb16",
    "{{ .reg .b16 low, high; ld.global.b16 low, [{p}]; ld.global.b16 high, [{q}]; mov.b32 {d}, {{low, high}}; }}",
    [Operand("d", 1, "b32", "write"), Operand("p", 1, "address", "read"), Operand("q", 1, "address", "read")],
    _LD,
    _gather(["p", "q"], 16),
)
"""One register from two 16-bit elements, `p` into the low half and `q` into the high half."""

STORE_PAIR = _memory(
    "store.2xb16",
    "{{ .reg .b16 low, high; mov.b32 {{low, high}}, {a}; st.global.b16 [{p}], low; st.global.b16 [{q}], high; }}",
    [Operand("p", 1, "address", "read"), Operand("q", 1, "address", "read"), Operand("a", 1, "b32", "read")],
    _ST,
    _scatter(["p", "q"], 16),
)
"""The reverse of `LOAD_PAIR`."""


def _load_each(width: int) -> Instruction:
    names = [f"p{i}" for i in range(32 // width)]
    text = ["{{ .reg .b32 x; mov.b32 {d}, 0;"]
    for i, name in enumerate(names):
        text.append(f"ld.global.u8 x, [{{{name}}}];")
        if width < 8:
            text.append(f"shr.b32 x, x, {{{name}_bit}};")
        text.append(f"bfi.b32 {{d}}, x, {{d}}, {width * i}, {width};")
    operands = [Operand("d", 1, "b32", "write"), *[Operand(n, 1, "address", "read") for n in names]]
    return _memory(
        f"load.{len(names)}xb{width}", " ".join([*text, "}}"]), operands, _LD, _gather(names, width)
    )


def _store_bytes() -> Instruction:
    names = [f"p{i}" for i in range(4)]
    text = ["{{ .reg .b32 x;"]
    text += [f"shr.b32 x, {{a}}, {8 * i}; st.global.u8 [{{{name}}}], x;" for i, name in enumerate(names)]
    operands = [*[Operand(n, 1, "address", "read") for n in names], Operand("a", 1, "b32", "read")]
    return _memory("store.4xb8", " ".join([*text, "}}"]), operands, _ST, _scatter(names, 8))


GATHER = {16: LOAD_PAIR, **{width: _load_each(width) for width in (8, 4, 1)}}
"""One register from elements anywhere, by their width: one address each, low bits first.  Elements of less than a byte
are taken out of the bytes that they share.
"""

SCATTER = {16: STORE_PAIR, 8: _store_bytes()}
"""The reverse of `GATHER`; elements that share a byte would have to be written together, by lanes that don't meet."""
