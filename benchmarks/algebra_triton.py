"""The algebra's rows on Triton's LinearLayout: linear over the bits, so powers of two only; written in C++."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from triton._C.libtriton.linear_layout import LinearLayout

from .algebra_on_m import FRAGMENT, TRANSPOSED, Iters, places
from .worker import Row

VERSION = f"triton {version('triton')}"

Bits = tuple[str, list[list[int]]]

# A of m16n8k16: each iter's bits, the lowest first, as steps on (laneid, m).
DIGITS = [[[0, 2]], [[4, 0], [8, 0], [16, 0]], [[0, 4]], [[1, 0], [2, 0]], [[0, 1]]]
NAMES = ["c0", "c1", "c2", "c3", "c4"]


def bits(digits: Sequence[list[list[int]]]) -> list[list[int]]:
    """The bits of a dimension that runs over several iters, the last fastest."""
    return [bit for digit in reversed(digits) for bit in digit]


def fragment(dimensions: Sequence[Bits]) -> Any:
    return LinearLayout.from_bases(dimensions, ["laneid", "m"], [32, 8], True)


def linear(iters: Iters) -> Any:
    """A layout on m of extents that are powers of two."""
    table = places(*iters)
    steps = [[table[1 << k]] for k in range(len(table).bit_length() - 1)]
    return LinearLayout.from_bases([("i", steps)], ["i"], [len(table)], True)


def nonzero(x: dict[str, int]) -> dict[str, int]:
    return {a: v for a, v in sorted(x.items()) if v}


def rows() -> list[Row]:
    rows_columns: list[Bits] = [("row", bits(DIGITS[:2])), ("column", bits(DIGITS[2:]))]
    flat_bits: list[Bits] = [("i", bits(DIGITS))]
    warm, flat = fragment(rows_columns), fragment(flat_bits)
    digits = fragment([(name, digit) for name, digit in zip(NAMES, DIGITS, strict=True)])

    def per_digit(c: tuple[int, ...]) -> Any:
        return digits.apply({"c0": c[0], "c1": c[1], "c2": c[2], "c3": c[3], "c4": c[4]})

    def places_of(x: Any) -> list[int]:
        return [x.apply({"i": i})["i"] for i in range(256)]

    def whole(x: Any) -> list[dict[str, int]]:
        return [nonzero(x.apply({"row": i // 16, "column": i % 16})) for i in range(256)]

    return [
        Row("construct", lambda n: [None] * n, lambda _: fragment(rows_columns), whole),
        Row(
            "apply, (16, 16)",
            lambda n: [(i % 16, i * 7 % 16) for i in range(n)],
            lambda c: warm.apply({"row": c[0], "column": c[1]}),
            nonzero,
        ),
        Row(
            "apply, flat index",
            lambda n: [i % 256 for i in range(n)],
            lambda i: flat.apply({"i": i}),
            nonzero,
        ),
        Row(
            "apply, per iter",
            lambda n: [(i % 2, i % 8, i // 2 % 2, i % 4, i // 4 % 2) for i in range(n)],
            per_digit,
            nonzero,
        ),
        Row("inverse", lambda n: [linear(FRAGMENT) for _ in range(n)], lambda x: x.invert(), places_of),
        Row(
            "compose, powers of two",
            lambda n: [(linear(FRAGMENT), linear(TRANSPOSED)) for _ in range(n)],
            lambda x: x[1].compose(x[0]),
            places_of,
        ),
        Row(
            "equality, on m",
            lambda n: [(linear(FRAGMENT), linear(FRAGMENT)) for _ in range(n)],
            lambda x: x[0] == x[1],
            bool,
        ),
    ]
