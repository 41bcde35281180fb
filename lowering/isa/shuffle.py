"""Values that change lanes within a warp, choices by lane, and parts of registers taken out and put in.

Lanes are constants of a record: each pattern is one of its own, made when it is first asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from .operand_map import LANES
from .record import Instruction, Kind, Operand

_SHFL = "Data Movement and Conversion Instructions: shfl.sync"
_SELP = "Comparison and Selection Instructions: selp"
_SHIFT = "Logic and Shift Instructions: shr; Integer Arithmetic Instructions: bfi"
_DIGITS = "0123456789abcdefghijklmnopqrstuv"


def _record(name: str, kind: Kind, names: str, template: str, section: str, meaning: Any) -> Instruction:
    operands = [Operand("d", 1, kind, "write"), *[Operand(n, 1, kind, "read") for n in names]]
    return Instruction(name, template, tuple(operands), 75, (6, 3), section, meaning, collective=True)


@cache
def shuffle(kind: Kind, lanes: tuple[int, ...]) -> Instruction:
    """Lane l gets what lane ``lanes[l]`` has in `a`."""

    def meaning(values: Mapping[str, Any]) -> dict[str, Any]:
        return {"d": values["a"][:, list(lanes)]}

    apart = {lane ^ source for lane, source in enumerate(lanes)}
    if len(apart) == 1:
        (distance,) = apart
        name, before, how = f"shfl.xor.{distance}.{kind}", "", f"bfly.b32 {{}}, {{}}, {distance}"
    else:
        masks = [sum((s >> i & 1) << lane for lane, s in enumerate(lanes)) for i in range(5)]
        name = f"shfl.from.{''.join(_DIGITS[s] for s in lanes)}.{kind}"
        before = f".reg .b32 l, t, from; mov.u32 l, %laneid; shr.u32 from, {masks[0]:#x}, l; and.b32 from, from, 1; "
        for i, mask in enumerate(masks[1:], 1):
            before += f"shr.u32 t, {mask:#x}, l; bfi.b32 from, t, from, {i}, 1; "
        how = "idx.b32 {}, {}, from"
    step = f"shfl.sync.{how}, 31, 0xffffffff;"
    if kind == "f64":
        both = " ".join([step.format(half, half) for half in ("low", "high")])
        apart, whole = "mov.b64 {{low, high}}, {a};", "mov.b64 {d}, {{low, high}};"
        text = f"{{{{ .reg .b32 low, high; {apart} {before}{both} {whole} }}}}"
    else:
        text = step.format("{d}", "{a}")
        text = f"{{{{ {before}{text} }}}}" if before else text
    return _record(name, kind, "a", text, _SHFL, meaning)


@cache
def select(kind: Kind, lanes: int) -> Instruction:
    """`a` in the lanes whose bit is set, `b` in the others."""

    def meaning(values: Mapping[str, Any]) -> dict[str, Any]:
        import numpy as np

        mine = np.array([bool(lanes >> lane & 1) for lane in range(LANES)])[None, :, None]
        return {"d": np.where(mine, values["a"], values["b"])}

    bits = 64 if kind == "f64" else 32
    text = (
        f"{{{{ .reg .b32 l; .reg .pred P; mov.u32 l, %laneid; shr.u32 l, {lanes:#x}, l; and.b32 l, l, 1; "
        f"setp.ne.u32 P, l, 0; selp.b{bits} {{d}}, {{a}}, {{b}}, P; }}}}"
    )
    return _record(f"select.{lanes:08x}.{kind}", kind, "ab", text, _SELP, meaning)


@cache
def extract(at: int) -> Instruction:
    """A register's bits from `at` on, as the low ones."""

    def meaning(values: Mapping[str, Any]) -> dict[str, Any]:
        import numpy as np

        return {"d": values["a"] >> np.uint32(at)}

    return _record(f"extract.{at}", "b32", "a", f"shr.b32 {{d}}, {{a}}, {at};", _SHIFT, meaning)


@cache
def insert(at: int, width: int) -> Instruction:
    """The low `width` bits of `a` in place of those from `at` on; all others stay."""

    def meaning(values: Mapping[str, Any]) -> dict[str, Any]:
        import numpy as np

        mask = np.uint32((1 << width) - 1)
        kept = values["d"] & ~np.uint32(int(mask) << at)
        return {"d": kept | (values["a"] & mask) << np.uint32(at)}

    return Instruction(
        f"insert.{at}.{width}",
        f"bfi.b32 {{d}}, {{a}}, {{d}}, {at}, {width};",
        (Operand("d", 1, "b32", "update"), Operand("a", 1, "b32", "read")),
        75,
        (6, 3),
        _SHIFT,
        meaning,
    )
