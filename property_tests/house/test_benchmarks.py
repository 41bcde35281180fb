"""The rows of the algebra's measurement answer what plain arithmetic says; nothing is timed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count, islice, product
from typing import Any

import pytest

from benchmarks import algebra_ours
from benchmarks.algebra_on_m import (
    BLOCK,
    DIVIDED,
    EDGE,
    FRAGMENT,
    FUSING,
    GAPS,
    MATRIX,
    PARTIAL,
    RAGGED,
    SPREAD,
    STEPS,
    TRANSPOSED,
    places,
)
from benchmarks.worker import Row

ROWS = {row.name: row for row in algebra_ours.rows() if not row.name.startswith("map")}


def fragment(row: int, column: int) -> dict[str, int]:
    """Lane and register of A of m16n8k16, from the figure in the PTX ISA; what is 0 is left out."""
    lane, register = row % 8 * 4 + column % 8 // 2, row // 8 * 2 + column // 8 * 4 + column % 2
    return nonzero({"laneid": lane, "m": register})


def nonzero(x: dict[str, int]) -> dict[str, int]:
    return {a: v for a, v in x.items() if v}


def moved(place: dict[str, int], by: int) -> dict[str, int]:
    return nonzero({**place, "m": place.get("m", 0) + by})


def free(held: Sequence[int]) -> Any:
    """The offsets at which copies fit between one another, each the least one left, without an end."""
    taken: set[int] = set()
    for x in count():
        if x not in taken:
            taken.update(x + place for place in held)
            yield x


def swizzled(x: int) -> int:
    return x ^ (x >> 3 & 0b111000)


WHOLE = [fragment(i, j) for i, j in product(range(16), repeat=2)]
SPAN = 8  # of the registers of one fragment, over which copies are placed
TILED = [fragment(i % 16, j % 16) for i, j in product(range(64), repeat=2)]
COPY = [4 * (i // 16) + j // 16 for i, j in product(range(64), repeat=2)]
ON_M, FUSED = places(*FRAGMENT), places(*FUSING)
DIVIDED_BY = places((4,), (2,))

EXPECTED: dict[str, Any] = {
    "construct": WHOLE,
    "apply, (16, 16)": fragment(0, 0),
    "apply, flat index": fragment(0, 0),
    "apply, per iter": fragment(0, 0),
    "apply, new layout": fragment(3, 5),
    "canonicalize": WHOLE,
    "canonicalize, fusing": [nonzero({"m": x}) for x in FUSED],
    "group": [WHOLE, [0, 2, 5]],
    "group, splitting": [WHOLE, [0, 2, 3, 5, 7]],
    "slice, of a fragment": [fragment(i, j) for i in range(8) for j in range(8, 16)],
    "slice, aligned": [
        moved(fragment(i % 16, j % 16), SPAN * (4 * (i // 16) + j // 16))
        for i in range(16, 48)
        for j in range(32)
    ],
    "slice, row-major": [nonzero({"m": 16 * i + j}) for i in range(3, 7) for j in range(5, 12)],
    "tile_to, 4 x 4": [moved(x, SPAN * k) for x, k in zip(TILED, COPY, strict=True)],
    "permute_by_groups": [fragment(i, j) for j in range(16) for i in range(16)],
    "tile": [
        moved(fragment(i % 16, j % 16), SPAN * (i // 16 + 2 * (j // 16)))
        for i, j in product(range(32), repeat=2)
    ],
    "tile_to, k8 to k16": [
        nonzero({"laneid": i % 8 * 4 + j % 8 // 2, "m": i // 8 * 2 + j % 2 + 4 * (j // 8)})
        for i, j in product(range(16), repeat=2)
    ],
    "permute_dims": [
        fragment(8 * a + b, 8 * c + 2 * d + e)
        for e, d, c, b, a in product(range(2), range(4), range(2), range(8), range(2))
    ],
    "group_many": [WHOLE, [[0, 3, 6], [0, 2, 6]]],
    "storage": [nonzero({"m": 2 * a + 4 * b + c}) for a, b, c in product(range(2), repeat=3)],
    "broadcast": [x for x in WHOLE for _ in range(4)],
    "direct_sum": [
        moved(fragment(i % 16, j % 16), 8 * (i // 16) + 16 * (j // 16))
        for i, j in product(range(32), repeat=2)
    ],
    "recover_outer": [nonzero({"m": k}) for k in (0, 2, 1, 3)],
    "recover_inner": WHOLE,
    "recover_left": [nonzero({"m": k}) for k in (0, 16, 8, 24)],
    "recover_right": WHOLE,
    "pack": [nonzero({"m": x}) for x in range(128)],
    "unpack": [nonzero({"m": x}) for x in range(512)],
    "equality": True,
    "construct, on m": ON_M,
    "apply, on m": ON_M[37],
    "canonicalize, on m": FUSED,
    "group, on m": FUSED,
    "slice, on m": [FUSED[16 * i + j] for i in range(4, 8) for j in range(8, 16)],
    "tile_to, on m": [
        64 * (4 * (i // 8) + j // 8) + 8 * (i % 8) + j % 8 for i, j in product(range(32), repeat=2)
    ],
    "compose": [places(*RAGGED)[x] for x in places(*STEPS)],
    "compose, powers of two": [ON_M[x] for x in places(*TRANSPOSED)],
    "complement": list(islice(free(places(*GAPS)), 6)),
    "inverse": [ON_M.index(x) for x in range(256)],
    "right_inverse": [places(*PARTIAL).index(x) for x in range(48)],
    "left_inverse": list(range(256)),
    "left_inverse, with gaps": list(range(len(places(*SPREAD)))),
    "logical_divide": [places(*DIVIDED)[r + t] for r in islice(free(DIVIDED_BY), 6) for t in DIVIDED_BY],
    "zipped_divide, (8, 4)": [
        places(*MATRIX)[(8 * i + x) * 12 + 4 * j + y]
        for i, j, x, y in product(range(4), range(3), range(8), range(4))
    ],
    "logical_product": [c + x for c in islice(free(places(*BLOCK)), 6) for x in places(*BLOCK)],
    "raked_product": [
        64 * (4 * (i % 4) + j % 4) + 8 * (i // 4) + j // 4 for i, j in product(range(32), repeat=2)
    ],
    "swizzled layout, apply": swizzled(37),
    "swizzle, apply": swizzled(37),
    "equality, on m": True,
}


def test_every_row_has_an_answer_here() -> None:
    assert set(ROWS) - set(EXPECTED) == {"hash, first time", "hash, again", "hash, on m"}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_row_answers_what_arithmetic_says(name: str) -> None:
    row: Row = ROWS[name]
    assert row.answer(row.call(row.prepare(1)[0])) == EXPECTED[name]


def test_the_map_is_that_of_tiles() -> None:
    layout = algebra_ours.tiles(1)[0]
    for i, j in product(range(0, EDGE, 509), repeat=2):
        at = i // 32 * 131072 + i % 32 * 32 + j // 32 * 1024 + j % 32
        assert layout.apply(i, j, shape=(EDGE, EDGE)) == {"m": at}
