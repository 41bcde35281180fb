"""The rows of the GEMM measurement: which problem, how its arrays lie, how it is cut.  No torch may enter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Row:
    """One problem.

    Attributes:
        name: of the row.
        dtype: of A and B.
        M, N, K: extents of each product.
        batches: how many products; None for one of plain matrices.
        A, B: orders.
        align: elements that leading dimensions are padded to a multiple of; 1: rows follow one another.
        feed: the feed that the kernel must take; "" for its own choice.
        main: whether it is measured in all rounds, as the rows that are looked at first are, or in one.
    """

    name: str
    dtype: str
    M: int
    N: int
    K: int
    batches: int | None = None
    A: str = "row"
    B: str = "column"
    align: int = 8
    feed: str = ""
    main: bool = False

    @property
    def flops(self) -> float:
        return 2.0 * self.M * self.N * self.K * (self.batches or 1)

    @property
    def out(self) -> str:
        return {"int8": "int32", "tfloat32": "float32", "float64": "float64", "bfloat16": "bfloat16"}.get(
            self.dtype, "float16"
        )

    @property
    def bytes(self) -> int:
        """Of all arrays of one problem."""
        one = (
            self.M * self.K * WIDTH[self.dtype]
            + self.K * self.N * WIDTH[self.dtype]
            + self.M * self.N * WIDTH[self.out]
        )
        return one * (self.batches or 1)


WIDTH: Mapping[str, int] = {
    "float16": 2, "bfloat16": 2, "tfloat32": 4, "float32": 4, "float64": 8, "int8": 1, "int32": 4, "float8_e4m3fn": 1,
}  # fmt: skip


def square(name: str, dtype: str, n: int, **more: Any) -> Row:
    return Row(name, dtype, n, n, n, **more)


def skinny(m: int) -> Row:
    return Row(f"f16 M={m}, N=K=8192", "float16", m, 8192, 8192)


ROWS: tuple[Row, ...] = (
    square("f16 4096", "float16", 4096, main=True),
    square("f16 8192", "float16", 8192, main=True),
    square("bf16 4096", "bfloat16", 4096, main=True),
    square("bf16 8192", "bfloat16", 8192),
    square("f16 4096, cp.async", "float16", 4096, feed="cp_async", main=True),
    square("f16 8192, cp.async", "float16", 8192, feed="cp_async"),
    square("f16 4096, A row, B row", "float16", 4096, B="row"),
    square("f16 4096, A column, B row", "float16", 4096, A="column", B="row"),
    square("f16 4096, A column, B column", "float16", 4096, A="column"),
    Row("f16 4095 x 4097 x 4099, padded", "float16", 4095, 4097, 4099, B="row"),
    Row("f16 4095 x 4097 x 4099, padded to 64", "float16", 4095, 4097, 4099, B="row", align=64),
    Row("f16 4095 x 4097 x 4099, not padded", "float16", 4095, 4097, 4099, B="row", align=1),
    skinny(1),
    skinny(16),
    skinny(64),
    square("s8 4096", "int8", 4096, align=16),
    square("s8 8192", "int8", 8192, align=16),
    square("tf32 4096", "tfloat32", 4096),
    square("e4m3 4096", "float8_e4m3fn", 4096, align=16),
    square("f64 4096", "float64", 4096),
    Row("f16 64 x 512^3", "float16", 512, 512, 512, batches=64),
)


@dataclass(frozen=True)
class Ceiling:
    """An instruction in a loop that touches nothing but registers.

    Attributes:
        name: of the row.
        text: of the instruction.
        a, b, d: registers of each operand.
        kind: PTX type of the accumulators' registers.
        shape: M, N, K of one instruction.
        slots: of the pipe that one takes, in those of m16n8k16 of 16-bit floats.
        fill: bits that are cleared and set in random words, to make numbers around 1 of them.
    """

    name: str
    text: str
    a: int
    b: int
    d: int
    kind: str
    shape: tuple[int, int, int]
    fill: tuple[int, int] = field(default=(0xFFFFFFFF, 0))
    factor: str = "b32"


CEILINGS: Mapping[str, Ceiling] = {
    "float16": Ceiling("mma loop, f16", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", 4, 2, 4, "f32",
                       (16, 8, 16), (0x83FF83FF, 0x3C003C00)),
    "bfloat16": Ceiling("mma loop, bf16", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", 4, 2, 4, "f32",
                        (16, 8, 16), (0x807F807F, 0x3F803F80)),
    "tfloat32": Ceiling("mma loop, tf32", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", 4, 2, 4, "f32",
                        (16, 8, 8), (0x807FE000, 0x3F800000)),
    "int8": Ceiling("mma loop, s8", "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", 4, 2, 4, "b32", (16, 8, 32)),
    "float8_e4m3fn": Ceiling("mma loop, e4m3", "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", 4, 2, 4, "f32",
                             (16, 8, 32), (0x87878787, 0x38383838)),
    "float64": Ceiling("mma loop, f64", "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64", 8, 4, 4, "f64",
                       (16, 8, 16), (0x800FFFFF, 0x3FF00000), "f64"),
}  # fmt: skip
"""Element type -> the loop whose speed nothing built of that instruction passes."""
