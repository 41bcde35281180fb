"""The rows on layouts over named axes, written once: ours and TVM TIRx have the same notation.

The layouts are the operand fragments of ``mma.m16n8k16`` and tilings of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .worker import Row

Plain = Any  # what JSON can say

BETWEEN = (2, 16, 2, 16)  # a sum's dimensions, left and right in turn


@dataclass(frozen=True)
class Recognizers:
    """What takes tilings and sums apart: (known part, whole, shape, shape of the known part) -> the other part."""

    outer: Callable[[Any, Any, Any, Any], Any]
    inner: Callable[[Any, Any, Any, Any], Any]
    left: Callable[[Any, Any, Any, Any], Any]
    right: Callable[[Any, Any, Any, Any], Any]


def rows(
    S: Any,
    TileLayout: Any,
    laneid: Any,
    equal: Callable[[Any, Any], bool],
    hash_of: Callable[[Any], int],
    recognizers: Recognizers,
) -> list[Row]:
    """The rows for a library of that notation, with its structural equality and hash, and its recognizers."""

    def a_frag(_: Any = None) -> Any:
        """A of m16n8k16, as (M, K) = (16, 16)."""
        return TileLayout(S[(2, 8, 2, 4, 2) : (2, 4 @ laneid, 4, 1 @ laneid, 1)])

    def a_frag_k8(_: Any = None) -> Any:
        """A of m16n8k8, as (16, 8)."""
        return TileLayout(S[(2, 8, 4, 2) : (2, 4 @ laneid, 1 @ laneid, 1)])

    def row_major(_: Any = None) -> Any:
        return TileLayout(S[(2, 8, 2, 8) : (128, 16, 8, 1)])

    def a_tiled(_: Any = None) -> Any:
        """4 x 4 fragments, as (64, 64)."""
        return a_frag().tile_to((64, 64), (16, 16))

    def outer(_: Any = None) -> Any:
        """2 x 2 copies in memory, the columns first."""
        return TileLayout(S[(2, 2) : (1, 2)])

    def tiled(_: Any = None) -> tuple[Any, Any, Any]:
        """A tiling of 32 x 32, its parts before it."""
        inner, placed = a_frag(), outer()
        return inner, placed, inner.tile(placed, (2, 2), (16, 16))

    def addends(_: Any = None) -> tuple[Any, Any]:
        """Where tiles of 16 x 16 begin, and the fragment within one."""
        return TileLayout(S[(2, 2) : (8, 16)]), a_frag()

    def summed(_: Any = None) -> tuple[Any, Any, Any]:
        left, right = addends()
        return left, right, right.direct_sum(left, (2, 2), (16, 16))

    def anew(make: Callable[[Any], Any]) -> Callable[[int], list[Any]]:
        return lambda n: [make(i) for i in range(n)]

    warm, flat, digit = a_frag(), a_frag(), a_frag()  # each is asked in one way
    coordinates = anew(lambda i: (i % 16, i * 7 % 16))
    digits = anew(lambda i: (i % 2, i % 8, i // 2 % 2, i % 4, i // 4 % 2))

    def place(x: Any) -> Plain:
        """Axis -> value, where it isn't 0."""
        return {str(a): int(v) for a, v in sorted(x.items(), key=str) if int(v)}

    def whole(layout: Any) -> Plain:
        """The map, element by element."""
        return [place(layout.apply(i)) for i in range(int(layout.size()))]

    def grouped(x: Any) -> Plain:
        return [whole(x[0]), [int(s) for s in x[1]]]

    def refined(x: Any) -> Plain:
        return [whole(x[0]), [[int(s) for s in seps] for seps in x[1]]]

    def nothing(_: Any) -> Plain:
        return None

    return [
        Row("construct", anew(lambda i: None), a_frag, whole),
        Row("apply, (16, 16)", coordinates, lambda c: warm.apply(c[0], c[1], shape=(16, 16)), place),
        Row("apply, flat index", anew(lambda i: i % 256), lambda i: flat.apply(i), place),
        Row("apply, per iter", digits, lambda c: digit.apply(c[0], c[1], c[2], c[3], c[4]), place),
        Row("apply, new layout", anew(a_frag), lambda x: x.apply(3, 5, shape=(16, 16)), place),
        Row("canonicalize", anew(a_frag), lambda x: x.canonicalize(), whole),
        Row("canonicalize, fusing", anew(row_major), lambda x: x.canonicalize(), whole),
        Row("group", anew(a_frag), lambda x: x.group((16, 16)), grouped),
        Row("group, splitting", anew(a_frag), lambda x: x.group((4, 4, 4, 4)), grouped),
        Row("slice, aligned", anew(a_tiled), lambda x: x.slice((64, 64), [(16, 48), (0, 32)]), whole, 100),
        Row("slice, of a fragment", anew(a_frag), lambda x: x.slice((16, 16), [(0, 8), (8, 16)]), whole),
        Row("slice, row-major", anew(row_major), lambda x: x.slice((16, 16), [(3, 7), (5, 12)]), whole),
        Row("tile_to, k8 to k16", anew(a_frag_k8), lambda x: x.tile_to((16, 16), (16, 8)), whole),
        Row("tile_to, 4 x 4", anew(a_frag), lambda x: x.tile_to((64, 64), (16, 16)), whole),
        Row(
            "permute_by_groups",
            anew(lambda i: a_frag().group((16, 16))),
            lambda x: x[0].permute_by_groups(x[1], (1, 0)),
            whole,
        ),
        Row("permute_dims", anew(a_frag), lambda x: x.permute_dims((4, 3, 2, 1, 0)), whole),
        Row("group_many", anew(a_frag), lambda x: x.group_many([(16, 16), (4, 64)]), refined),
        Row("tile", anew(lambda i: (a_frag(), outer())), lambda x: x[0].tile(x[1], (2, 2), (16, 16)), whole),
        Row("broadcast", anew(a_frag), lambda x: x.broadcast(4), whole),
        Row("storage", anew(a_frag), lambda x: x.storage(), whole),
        Row("direct_sum", anew(addends), lambda x: x[1].direct_sum(x[0], (2, 2), (16, 16)), whole),
        Row("recover_outer", anew(tiled), lambda x: recognizers.outer(x[0], x[2], (32, 32), (16, 16)), whole),
        Row("recover_inner", anew(tiled), lambda x: recognizers.inner(x[1], x[2], (32, 32), (2, 2)), whole),
        Row("recover_left", anew(summed), lambda x: recognizers.left(x[1], x[2], BETWEEN, (16, 16)), whole),
        Row("recover_right", anew(summed), lambda x: recognizers.right(x[0], x[2], BETWEEN, (2, 2)), whole),
        # TVM scales the lanes too, so these two are compared on memory alone.
        Row("pack", anew(row_major), lambda x: x.pack(2), whole),
        Row("unpack", anew(row_major), lambda x: x.unpack(2), whole),
        Row("equality", anew(lambda i: (a_frag(), a_frag())), lambda x: equal(x[0], x[1]), bool),
        Row("hash, first time", anew(a_frag), hash_of, nothing),
        Row("hash, again", lambda n: [warm] * n, hash_of, nothing),
    ]
