"""``wgmma.mma_async`` of Hopper (sm_90a) as data: shapes, types, register fragments, fields of its descriptors.

A warpgroup of four warps multiplies A (64 x K) by B (K x N); K is 32 bytes.  A comes from registers or shared memory, B
from shared memory, D stays in registers.  Warp w has rows 16w to 16w + 15 of D and of a register A, and there the one
rule of `operand_map` holds.  Source: PTX ISA, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Operation using
wgmma.mma_async instruction" and the figures of its "Register Fragments and Shared Memory Matrix Layouts".

Meaning, completion and the movement of data are not here: a record says what exists and where registers' elements are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Literal

from tilelayout.display import Displayed
from tilelayout.errors import LayoutError

from ..dtypes import dtype
from .operand_map import operand_map

WARPS = 4
"""Warps of a warpgroup."""

M = 64
"""Rows of every ``wgmma``, 16 a warp."""

K_BYTES = 32
"""Bytes along K that one instruction takes."""

SECTION = (
    "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Operation using wgmma.mma_async instruction"
)

SWIZZLES = {128: 1, 64: 2, 32: 3, 0: 0}
"""Bytes of a swizzled row -> the descriptor's swizzle field (bits 62 and 63).  TMA's enum runs the other way."""

DESCRIPTOR_FIELDS = {
    "start_address": (0, 14, 4),
    "leading_byte_offset": (16, 14, 4),
    "stride_byte_offset": (32, 14, 4),
    "base_offset": (49, 3, 0),
    "swizzle": (62, 2, 0),
}
"""Field of a matrix descriptor -> (lowest bit, bits, bits that are shifted out of its value first).

Addresses and offsets count bytes and are stored without their low 4 bits.  Source: PTX ISA, "Matrix Descriptor Format".
"""


def descriptor(
    start_address: int = 0,
    leading_byte_offset: int = 0,
    stride_byte_offset: int = 0,
    base_offset: int = 0,
    swizzle: int = 0,
) -> int:
    """The 64-bit matrix descriptor of those fields; addresses and offsets in bytes, `swizzle` in bytes of a row.

    >>> hex(descriptor(start_address=0x400, stride_byte_offset=1024, swizzle=128))
    '0x4000004000000040'

    Errors: LayoutError for a value that its field does not hold, or a swizzle that there is not.
    """
    if swizzle not in SWIZZLES:
        raise LayoutError("wgmma descriptor", f"no swizzle of {swizzle} bytes; there are 0, 32, 64 and 128")
    values = {
        "start_address": start_address,
        "leading_byte_offset": leading_byte_offset,
        "stride_byte_offset": stride_byte_offset,
        "base_offset": base_offset,
        "swizzle": SWIZZLES[swizzle],
    }
    out = 0
    for name, (low, bits, dropped) in DESCRIPTOR_FIELDS.items():
        value = values[name]
        if value % (1 << dropped) or not 0 <= value >> dropped < 1 << bits:
            raise LayoutError(
                "wgmma descriptor",
                f"{name} {value} is no multiple of {1 << dropped} from 0 to {((1 << bits) - 1) << dropped}",
            )
        out |= (value >> dropped) << low
    return out


@dataclass(frozen=True)
class Wgmma(Displayed):
    """One ``wgmma.mma_async``: shape, types, and the places of register elements.

    Attributes:
        n: columns of B and D.
        a, b, d: element types by name; the accumulator is read and written in place.
        sm, ptx, specific, section: sm_90a alone, since PTX 8.0.

    >>> one = next(r for r in WGMMA_FRAGMENTS if r.name == "wgmma.m64n256k16.f32.bf16")
    >>> one.k, one.a_registers, one.d_registers, one.transposes
    (16, 4, 128, True)
    >>> warp, lane, slot = 1, 9, 6
    >>> [int(x[warp, lane, slot]) for x in one.fragment("D")]  # row and column
    [26, 10]

    Errors: LayoutError for an N that the types do not have.
    """

    n: int
    a: str
    b: str
    d: str
    sm: int = 90
    ptx: tuple[int, int] = (8, 0)
    specific: tuple[int, ...] = (90,)
    section: str = SECTION
    _painter: ClassVar[str] = "lowering.display"
    _explorer: ClassVar[str] = "lowering.explore"

    def __post_init__(self) -> None:
        allowed = columns(self.a)
        if self.n not in allowed:
            raise LayoutError(
                "wgmma", f"N = {self.n} with {self.a}", f"N is one of {', '.join(map(str, allowed))}"
            )

    @property
    def m(self) -> int:
        return M

    @property
    def k(self) -> int:
        return 8 * K_BYTES // dtype(self.a).bits

    @property
    def name(self) -> str:
        return f"wgmma.m{M}n{self.n}k{self.k}.{'.'.join(self._types)}"

    @property
    def _types(self) -> list[str]:
        d, a, b = (dtype(x).ptx for x in (self.d, self.a, self.b))
        return [d, a] if a == b else [d, a, b]

    @property
    def mnemonic(self) -> str:
        d, a, b = (dtype(x).ptx for x in (self.d, self.a, self.b))
        end = ".and.popc" if a == "b1" else ""
        return f"wgmma.mma_async.sync.aligned.m{M}n{self.n}k{self.k}.{d}.{a}.{b}{end}"

    @property
    def a_registers(self) -> int:
        """32-bit registers of a lane that hold A, where it comes from registers: always 4."""
        return M * K_BYTES // (WARPS * 32 * 4)

    @property
    def d_registers(self) -> int:
        """32-bit registers of a lane that hold D: two f16 elements share one."""
        return M * self.n // (WARPS * 32 * self.per_register("D"))

    @property
    def transposes(self) -> bool:
        """Whether a shared operand may also be contiguous along M or N: for 16-bit elements only."""
        return dtype(self.a).bits == 16

    @property
    def scales(self) -> bool:
        """Whether A and B can be negated (``imm-scale``): floating-point types."""
        return not dtype(self.a).is_integer

    def per_register(self, role: Literal["A", "D"]) -> int:
        """Elements of an operand in a 32-bit register."""
        return 32 // min(32, dtype(self.a if role == "A" else self.d).bits)

    def shape(self, role: Literal["A", "D"]) -> tuple[int, int]:
        """A as (M, K), D as (M, N)."""
        if role not in ("A", "D"):
            raise LayoutError("wgmma", f"role must be A or D, got {role!r}", "B has no registers")
        return (M, self.k if role == "A" else self.n)

    def fragment(self, role: Literal["A", "D"]) -> tuple[Any, Any]:
        """(row, column) of every register element: integer arrays ``[4 warps, 32 lanes, elements of a lane]``.

        Neighboring elements share a register, low bits first; a 32-bit D has pairs of columns too.
        """
        return _fragment(self.shape(role)[1], self.neighbors(role))

    def neighbors(self, role: Literal["A", "D"]) -> int:
        """Neighboring columns that a lane has: those of a register of A, always two of D."""
        return 2 if role == "D" else self.per_register("A")


@cache
def _fragment(width: int, neighbors: int) -> tuple[Any, Any]:
    import numpy as np

    row, column = operand_map(M // WARPS, width, neighbors)
    row = row + M // WARPS * np.arange(WARPS)[:, None, None]
    column = np.broadcast_to(column, row.shape)
    row.setflags(write=False)
    return row, column


def columns(element: str) -> tuple[int, ...]:
    """The N that exist for inputs of a type: multiples of 8 to 256; of integers, above 32 only multiples of 16.

    Source: PTX ISA, "Matrix Shape" of wgmma.
    """
    return tuple([n for n in range(8, 257, 8) if not dtype(element).is_integer or n <= 32 or n % 16 == 0])


_TYPES = (
    ("float16", "float16", ("float16", "float32")),
    ("bfloat16", "bfloat16", ("float32",)),
    ("tfloat32", "tfloat32", ("float32",)),
    *[
        (a, b, ("float16", "float32"))
        for a in ("float8_e4m3fn", "float8_e5m2")
        for b in ("float8_e4m3fn", "float8_e5m2")
    ],
    ("int8", "int8", ("int32",)),
    ("uint8", "uint8", ("int32",)),
    ("uint1", "uint1", ("int32",)),
)

WGMMA_FRAGMENTS = tuple([Wgmma(n, a, b, d) for a, b, ds in _TYPES for d in ds for n in columns(a)])
