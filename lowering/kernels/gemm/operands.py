"""Matrices as users describe them: "row", "column", or a layout of a fixed shape."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tilelayout import LayoutError, TileLayout
from tilelayout.parts import as_extent

from .placed import WIDEST, placed
from .problem import ORDERS, Matrix, Problem

SWAPPED = {"A": "B", "B": "A"}
"""User's name of a factor -> the kernel's, and back, of a problem that is carried out transposed."""


def matrix(name: str, dtype: str, given: Any, shape: tuple[int, int] | None = None) -> Matrix:
    """A matrix of a kernel, as well aligned as can be.

    Errors: LayoutError for what is neither an order nor a layout, a layout without a shape or that is none in memory,
    and any layout for D.
    """
    if isinstance(given, str) and given in ORDERS:
        return Matrix(name, dtype, given, WIDEST)
    if name == "D":
        what = "D is placed by a layout" if isinstance(given, TileLayout) else f"D={given!r}"
        raise LayoutError("gemm", what, "D='row' or D='column'")
    if not isinstance(given, TileLayout):
        none = ", or None" if name == "C" else ""
        raise LayoutError("gemm", f"{name}={given!r}", f"'row', 'column', or a TileLayout on memory{none}")
    if shape is None:
        raise LayoutError("gemm", f"{name} is a layout, and its shape is not known", "pass shape=(M, N, K)")
    return placed(name, dtype, given, shape)


def is_extents(x: Any, count: int) -> bool:
    """Whether that is so many positive integers."""
    try:
        return (
            isinstance(x, tuple | list)
            and len(x) == count
            and all(type(as_extent(n, "gemm", "extent")) is int for n in x)
        )
    except LayoutError:
        return False


def turned(problem: Problem) -> Problem:
    """The transposed problem: the user's for the kernel's, and back."""
    p = problem
    return replace(
        p,
        A=flipped(p.B, "A"),  # type: ignore[arg-type]
        B=flipped(p.A, "B"),  # type: ignore[arg-type]
        C=flipped(p.C, "C"),
        D=flipped(p.D, "D"),  # type: ignore[arg-type]
        bias={"row": "column", "column": "row", "": ""}[p.bias],
    )


def flipped(m: Matrix | None, name: str) -> Matrix | None:
    """The transposed matrix under another name."""
    if m is None:
        return None
    other = {"row": "column", "column": "row"}[m.order]
    if m.layout is None or m.shape is None:
        return Matrix(name, m.dtype, other, m.alignment)
    grouped, seps = m.layout.group(m.shape)
    return Matrix(name, m.dtype, other, m.alignment, grouped.permute_by_groups(seps, (1, 0)), m.shape[::-1])
