"""Loads and stores of registers from and to global and shared memory.

Up to 16 neighboring bytes are one access.  A register whose elements do not lie side by side in memory is gathered
element by element, or scattered: two halves, four bytes, or, from memory that packs them, eight or 32 elements of less
than a byte.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .record import Instruction, Kind, Operand, Place, Space

_LD = "Data Movement and Conversion Instructions: ld"
_ST = "Data Movement and Conversion Instructions: st"
_BYTES: dict[Kind, int] = {"f32": 4, "b32": 4, "f64": 8}

Meaning = Callable[[Mapping[str, Any]], dict[str, Any]]


def _raw(place: Place) -> Any:
    return place.data.view(f"u{place.data.dtype.itemsize}")


def _load_word(size: int, d: str) -> Meaning:
    def load(values: Mapping[str, Any]) -> dict[str, Any]:
        """`size` consecutive bytes from each lane's place, low bytes first."""
        import numpy as np

        place = values["p"]
        step = place.data.dtype.itemsize
        units = place.index[..., None] + np.arange(size // step)
        return {d: np.ascontiguousarray(_raw(place)[units]).view(np.uint32)}

    return load


def _store_word(size: int, a: str) -> Meaning:
    def store(values: Mapping[str, Any]) -> dict[str, Any]:
        import numpy as np

        place = values["p"]
        raw = _raw(place)
        units = place.index[..., None] + np.arange(size // raw.itemsize)
        raw[units] = np.ascontiguousarray(values[a]).view(raw.dtype)
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


_ADDRESS: dict[Space, Kind] = {"global": "address", "shared": "shared"}
_MIDDLE: dict[Space, str] = {"global": "", "shared": "shared."}  # of a record's name
WIDEST = 16
"""Bytes of the widest access of a lane."""


def _load_wide(space: Space, kind: Kind, count: int) -> Instruction:
    """`count` registers from neighboring memory."""
    size = _BYTES[kind] * count
    vector, d = (f"v{count}.", "D") if count > 1 else ("", "d")
    return _memory(
        f"load.{_MIDDLE[space]}{vector}{kind}",
        f"ld.{space}.{vector}{kind} {{{d}}}, [{{p}}];",
        [Operand(d, count, kind, "write"), Operand("p", 1, _ADDRESS[space], "read", size)],
        _LD,
        _load_word(size, d),
    )


def _store_wide(space: Space, kind: Kind, count: int) -> Instruction:
    size = _BYTES[kind] * count
    vector, a = (f"v{count}.", "A") if count > 1 else ("", "a")
    return _memory(
        f"store.{_MIDDLE[space]}{vector}{kind}",
        f"st.{space}.{vector}{kind} [{{p}}], {{{a}}};",
        [Operand("p", 1, _ADDRESS[space], "read", size), Operand(a, count, kind, "read")],
        _ST,
        _store_word(size, a),
    )


def _load_pair(space: Space) -> Instruction:
    address = _ADDRESS[space]
    return _memory(
        f"load.{_MIDDLE[space]}2xb16",
        f"{{{{ .reg .b16 low, high; ld.{space}.b16 low, [{{p}}]; ld.{space}.b16 high, [{{q}}]; "
        "mov.b32 {d}, {{low, high}}; }}",
        [Operand("d", 1, "b32", "write"), Operand("p", 1, address, "read"), Operand("q", 1, address, "read")],
        _LD,
        _gather(["p", "q"], 16),
    )


def _store_pair(space: Space) -> Instruction:
    address = _ADDRESS[space]
    return _memory(
        f"store.{_MIDDLE[space]}2xb16",
        f"{{{{ .reg .b16 low, high; mov.b32 {{{{low, high}}}}, {{a}}; st.{space}.b16 [{{p}}], low; "
        f"st.{space}.b16 [{{q}}], high; }}}}",
        [Operand("p", 1, address, "read"), Operand("q", 1, address, "read"), Operand("a", 1, "b32", "read")],
        _ST,
        _scatter(["p", "q"], 16),
    )


def _load_each(space: Space, width: int) -> Instruction:
    names = [f"p{i}" for i in range(32 // width)]
    text = ["{{ .reg .b32 x; mov.b32 {d}, 0;"]
    for i, name in enumerate(names):
        text.append(f"ld.{space}.u8 x, [{{{name}}}];")
        if width < 8:
            text.append(f"shr.b32 x, x, {{{name}_bit}};")
        text.append(f"bfi.b32 {{d}}, x, {{d}}, {width * i}, {width};")
    operands = [Operand("d", 1, "b32", "write"), *[Operand(n, 1, _ADDRESS[space], "read") for n in names]]
    name = f"load.{_MIDDLE[space]}{len(names)}xb{width}"
    return _memory(name, " ".join([*text, "}}"]), operands, _LD, _gather(names, width))


def _store_bytes(space: Space) -> Instruction:
    names = [f"p{i}" for i in range(4)]
    text = ["{{ .reg .b32 x;"]
    text += [f"shr.b32 x, {{a}}, {8 * i}; st.{space}.u8 [{{{name}}}], x;" for i, name in enumerate(names)]
    operands = [*[Operand(n, 1, _ADDRESS[space], "read") for n in names], Operand("a", 1, "b32", "read")]
    name = f"store.{_MIDDLE[space]}4xb8"
    return _memory(name, " ".join([*text, "}}"]), operands, _ST, _scatter(names, 8))


_COUNTS: list[tuple[Kind, int]] = [
    (kind, count) for kind, size in _BYTES.items() for count in (1, 2, 4) if size * count <= WIDEST
]

LOADS: dict[tuple[Space, Kind, int], Instruction] = {
    (space, kind, count): _load_wide(space, kind, count) for space in _ADDRESS for kind, count in _COUNTS
}
"""(memory, register class, registers) -> the load of that many registers from neighboring memory, at an address that is
a multiple of all they take: 4, 8 or 16 bytes.
"""

STORES: dict[tuple[Space, Kind, int], Instruction] = {
    (space, kind, count): _store_wide(space, kind, count) for space in _ADDRESS for kind, count in _COUNTS
}
"""The reverse of `LOADS`."""

GATHERS: dict[tuple[Space, int], Instruction] = {
    **{(space, 16): _load_pair(space) for space in _ADDRESS},
    **{(space, width): _load_each(space, width) for space in _ADDRESS for width in (8, 4, 1)},
}
"""(memory, bits of an element) -> one register from elements anywhere: one address each, low bits first.  Elements of
less than a byte are taken out of the bytes that they share.
"""

SCATTERS: dict[tuple[Space, int], Instruction] = {
    **{(space, 16): _store_pair(space) for space in _ADDRESS},
    **{(space, 8): _store_bytes(space) for space in _ADDRESS},
}
"""The reverse of `GATHERS`; elements that share a byte would have to be written together, by lanes that don't meet."""

LOAD_WORD: dict[Kind, Instruction] = {kind: LOADS["global", kind, 1] for kind in _BYTES}
STORE_WORD: dict[Kind, Instruction] = {kind: STORES["global", kind, 1] for kind in _BYTES}
LOAD_PAIR = GATHERS["global", 16]
GATHER: dict[int, Instruction] = {width: x for (space, width), x in GATHERS.items() if space == "global"}
SCATTER: dict[int, Instruction] = {width: x for (space, width), x in SCATTERS.items() if space == "global"}
