"""The rows of the algebra's measurement, written once: both libraries have the same notation.

The layouts are the operand fragments of ``mma.m16n8k16`` and tilings of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .worker import Row

Plain = Any  # what JSON can say


def rows(
    S: Any, TileLayout: Any, laneid: Any, equal: Callable[[Any, Any], bool], hash_of: Callable[[Any], int]
) -> list[Row]:
    """The rows for a library of that notation, with its structural equality and hash."""

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

    def anew(make: Callable[[Any], Any]) -> Callable[[int], list[Any]]:
        return lambda n: [make(i) for i in range(n)]

    warm = a_frag()
    warm.apply(0, 0, shape=(16, 16))
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

    def nothing(_: Any) -> Plain:
        return None

    return [
        Row("construct", anew(lambda i: None), a_frag, whole),
        Row("apply, (16, 16)", coordinates, lambda c: warm.apply(c[0], c[1], shape=(16, 16)), place),
        Row("apply, flat index", anew(lambda i: i % 256), lambda i: warm.apply(i), place),
        Row("apply, per iter", digits, lambda c: warm.apply(c[0], c[1], c[2], c[3], c[4]), place),
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
        # TVM scales the lanes too, so these two are compared on memory alone.
        Row("pack", anew(row_major), lambda x: x.pack(2), whole),
        Row("unpack", anew(row_major), lambda x: x.unpack(2), whole),
        Row("equality", anew(lambda i: (a_frag(), a_frag())), lambda x: equal(x[0], x[1]), bool),
        Row("hash, first time", anew(a_frag), hash_of, nothing),
        Row("hash, again", lambda n: [warm] * n, hash_of, nothing),
    ]
