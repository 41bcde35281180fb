"""A second way to execute a dense mma.sync: element by element, on Python numbers, by the PTX ISA's formulas.

It takes from a record only what its PTX text says.  Registers are plain lists of words per lane.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np

from .mma_isa import Fragment, fragment, quadpair, scale_lane

FLOATS: dict[str, Any] = {
    "f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16,
    "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "e3m2": ml_dtypes.float6_e3m2fn,
    "e2m3": ml_dtypes.float6_e2m3fn, "e2m1": ml_dtypes.float4_e2m1fn, "ue8m0": ml_dtypes.float8_e8m0fnu,
    "ue4m3": ml_dtypes.float8_e4m3fn,
}  # fmt: skip
BITS = {
    "f64": 64, "f32": 32, "tf32": 32, "s32": 32, "f16": 16, "bf16": 16, "s8": 8, "u8": 8, "e4m3": 8, "e5m2": 8,
    "e3m2": 6, "e2m3": 6, "e2m1": 4, "s4": 4, "u4": 4, "b1": 1,
}  # fmt: skip

_TEXT = re.compile(
    r"mma\.sync\.aligned\.(?P<shape>m(?P<m>\d+)n(?P<n>\d+)k(?P<k>\d+))\.(?P<order_a>row|col)\.(?P<order_b>row|col)"
    r"(\.kind::(?P<kind>\w+))?(\.block_scale\.scale_vec::(?P<vector>\d)X)?(?P<satfinite>\.satfinite)?"
    r"\.(?P<d>\w+)\.(?P<a>\w+)\.(?P<b>\w+)\.(?P<c>\w+?)(\.(?P<operation>xor|and)\.popc)?(\.(?P<scale>ue\w+))? "
    r".*?(\{(?P<byte_a>\d), (?P<thread_a>\d)\}.*\{(?P<byte_b>\d), (?P<thread_b>\d)\})?;"
)


class Parsed:
    """One instruction's text, taken apart."""

    def __init__(self, text: str) -> None:
        found = _TEXT.fullmatch(text)
        assert found, text
        self.field: dict[str, Any] = found.groupdict()
        self.m, self.n, self.k = (int(self.field[x]) for x in "mnk")
        self.quadpairs = self.field["shape"] == "m8n8k4" and self.field["a"] == "f16"

    def element(self, role: str) -> str:
        return self.field[role.lower()]  # type: ignore[no-any-return]

    def place(self, role: str) -> int:
        """Bits that an element of the operand takes in a register."""
        if role in "AB" and self.field["kind"] in ("f8f6f4", "mxf8f6f4"):
            return 8
        return BITS[self.element(role)]

    def fragment(self, role: str) -> Fragment:
        if self.quadpairs:
            return quadpair(role, self.field.get(f"order_{role.lower()}", ""), self.element(role))
        return fragment(role, self.field["shape"], self.place("A"))

    def bits_at(self, role: str, i: int) -> tuple[int, int, int]:
        """(word, lowest bit, width) of element number i of a lane; a 64-bit element begins its first word."""
        place = self.place(role)
        shift = 2 if place == 8 and self.element(role) == "e2m1" else 0
        return i * place // 32, i * place % 32 + shift, BITS[self.element(role)]


def put(parsed: Parsed, role: str, codes: dict[tuple[int, ...], int], words: Any) -> None:
    """Write the elements' codes into registers ``words[lane, word]``."""
    for element, (lane, i) in parsed.fragment(role).items():
        word, low, width = parsed.bits_at(role, i)
        if width == 64:
            words[lane, word], words[lane, word + 1] = codes[element] & 0xFFFFFFFF, codes[element] >> 32
        else:
            mask = (1 << width) - 1
            words[lane, word] = int(words[lane, word]) & ~(mask << low) | (codes[element] & mask) << low


def get(parsed: Parsed, role: str, words: Any) -> dict[tuple[int, ...], int]:
    """Read the elements' codes from registers ``words[lane, word]``."""
    out = {}
    for element, (lane, i) in parsed.fragment(role).items():
        word, low, width = parsed.bits_at(role, i)
        if width == 64:
            out[element] = int(words[lane, word]) | int(words[lane, word + 1]) << 32
        else:
            out[element] = int(words[lane, word]) >> low & ((1 << width) - 1)
    return out


def number(code: int, element: str) -> Fraction | int:
    """What a code stands for; finite codes only."""
    if element[0] in "su" and not element.startswith("ue"):
        width = int(element[1:])
        return code - (1 << width) if element[0] == "s" and code >> (width - 1) else code
    if element == "b1":
        return code
    if element == "tf32":
        code, element = code & ~0x1FFF, "f32"
    kind = np.dtype(FLOATS[element])
    return Fraction(float(np.array([code], f"u{kind.itemsize}").view(kind).astype(np.float64)[0]))


def sums(parsed: Parsed, words: dict[str, Any]) -> dict[tuple[int, ...], Fraction | int]:
    """The exact sums that D is made of (before rounding, wrapping or clamping), by element."""
    a, b, c = (get(parsed, r, words[r if r in words else "D"]) for r in "ABC")
    numbers = {
        r: {x: number(code, parsed.element(r)) for x, code in codes.items()}
        for r, codes in zip("ABC", (a, b, c), strict=True)
    }
    scale = {r: scales(parsed, r, words) for r in "AB"} if parsed.field["scale"] else None
    out: dict[tuple[int, ...], Fraction | int] = {}
    for element in c:
        *product, row, column = element
        total = numbers["C"][element]
        for k in range(parsed.k):
            x, y = numbers["A"][*product, row, k], numbers["B"][*product, k, column]
            if parsed.field["operation"]:
                x, y = (x & y if parsed.field["operation"] == "and" else x ^ y), 1  # type: ignore[operator]
            if scale:
                block = k * int(parsed.field["vector"]) // parsed.k
                x, y = x * scale["A"][row, block], y * scale["B"][column, block]
            total += x * y
        out[element] = total
    return out


def scales(parsed: Parsed, role: str, words: dict[str, Any]) -> dict[tuple[int, int], Fraction | int]:
    """(row or column, block) -> factor, from the registers of the lanes that the selectors name."""
    byte, thread = (int(parsed.field[f"{x}_{role.lower()}"]) for x in ("byte", "thread"))
    out: dict[tuple[int, int], Fraction | int] = {}
    for index in range(parsed.m if role == "A" else parsed.n):
        word = int(words[f"SF{role}"][scale_lane(f"SF{role}", index, thread), 0])
        for block in range(int(parsed.field["vector"])):
            out[index, block] = number(word >> 8 * (byte + block) & 0xFF, parsed.field["scale"])
    return out
