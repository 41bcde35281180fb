"""The widest vector: the figures of case C55, and a look at every vector of every layout that is drawn."""

from __future__ import annotations

from itertools import product

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from property_tests.analysis.memory_tiles import Xored, row_major, swizzles
from property_tests.strategies import fitting_shapes, layouts, replicas
from tilelayout import LayoutError, R, S, TileLayout, laneid, m, pid, warpid
from tilelayout.analysis import Access, VectorWidth, widest_access, widest_vector
from tilelayout.swizzle import Swizzle
from tilelayout.swizzled import SwizzledLayout

WIDTHS = (1, 2, 4, 8, 16)


class Table:
    """A layout of which only the table can be seen."""

    def __init__(self, layout: TileLayout) -> None:
        self.table = layout.table


def rules(found: VectorWidth) -> set[str]:
    return {limit.rule for limit in found.limits}


# --- the figures --------------------------------------------------------------------------------


def test_c55_a_column_of_halves_has_no_vectors() -> None:
    found = widest_vector(TileLayout(S[(64, 64) : (1, 64)]), 16)
    assert (found.bytes, found.elements, found.cp_async, rules(found)) == (2, 1, 0, {"contiguity"})
    assert widest_vector(TileLayout(S[(64, 64) : (1, 64)]), 16, along=0).bytes == 16


@pytest.mark.parametrize(
    ("pitch", "width", "asynchronous", "rule"),
    [(100, 8, 8, "stride"), (101, 2, 0, "stride"), (104, 16, 16, "instruction")],
)
def test_c55_the_leading_dimension_aligns_the_rows(
    pitch: int, width: int, asynchronous: int, rule: str
) -> None:
    found = widest_vector(row_major(64, 64, pitch), 16)
    assert (found.bytes, found.cp_async, rules(found)) == (width, asynchronous, {rule})


def test_c55_a_row_of_13_halves() -> None:
    found = widest_vector(TileLayout(S[13]), 16)
    assert (found.bytes, found.vectors, found.tail) == (16, 1, 5)
    assert str(found).startswith("16 bytes (8 elements) at once: 1 vector and 5 scalars\n")
    whole = widest_vector(TileLayout(S[13]), 16, whole=True)
    assert (whole.bytes, whole.vectors, whole.tail, rules(whole)) == (2, 13, 0, {"rim"})


def test_c55_a_base_pointer_two_bytes_on() -> None:
    found = widest_vector(row_major(64, 64), 16, base_alignment=2)
    assert (found.bytes, rules(found)) == (2, {"base"})
    moved = widest_vector(TileLayout(S[64, 64] + 1), 16)
    assert (moved.bytes, rules(moved)) == (2, {"offset"})


def test_c71_a_shared_array_that_nothing_is_said_of() -> None:
    """f16 shared arrays are aligned to 2 bytes unless told: no ldmatrix, no cp.async."""
    assert widest_vector(row_major(64, 64), 16, base_alignment=2).cp_async == 0


def test_a_short_row_and_all_reasons_at_once() -> None:
    assert rules(widest_vector(TileLayout(S[(4, 3) : (4, 1)]), 16)) == {"extent"}
    found = widest_vector(TileLayout(S[(4, 8) : (9, 1)] + 1), 16, base_alignment=2)
    assert rules(found) == {"stride", "offset", "base"}


@pytest.mark.parametrize(
    ("swizzle", "width"), [((3, 3, 3), 16), ((3, 2, 4), 8), ((3, 1, 5), 4), ((3, 0, 6), 2)]
)
def test_a_swizzle_keeps_vectors_below_its_base(swizzle: tuple[int, int, int], width: int) -> None:
    for layout in (Xored(row_major(64, 64), *swizzle), SwizzledLayout(row_major(64, 64), Swizzle(*swizzle))):
        found = widest_vector(layout, 16)
        assert found.bytes == width
        assert rules(found) == ({"swizzle"} if width < 16 else {"instruction"})


def test_the_registers_of_a_lane_are_a_memory_too() -> None:
    fragment = TileLayout(S[(2, 8, 4, 2) : (2, 4 @ laneid, 1 @ laneid, 1)])
    found = widest_vector(fragment, 16, (16, 8))
    assert (found.bytes, found.elements, rules(found)) == (4, 2, {"contiguity"})


def test_every_copy_has_to_be_aligned() -> None:
    found = widest_vector(TileLayout(S[64] + R[2:68]), 16)
    assert (found.bytes, found.limits[0].text) == (8, "stride 68 of iter 2:68 is no multiple of 8 elements")
    assert widest_vector(TileLayout(S[64] + R[2 : 1 @ warpid]), 16).bytes == 16


def test_symbols_count_as_far_as_they_are_known() -> None:
    k = sympy.Symbol("k", integer=True, positive=True)
    n = sympy.Symbol("n", integer=True, positive=True)
    assert widest_vector(TileLayout(S[(n, 64) : (8 * k, 1)]), 16).bytes == 16
    unknown = widest_vector(TileLayout(S[(n, 64) : (k, 1)]), 16)
    assert (unknown.bytes, unknown.limits[0].text) == (
        2,
        "stride k is not known to be a multiple of 2 elements",
    )
    rim = widest_vector(TileLayout(S[(4, n) : (1024, 1)]), 16)
    assert (rim.bytes, rim.vectors, rim.tail) == (16, sympy.floor(n / 8), sympy.Mod(n, 8))
    assert widest_vector(TileLayout(S[(4, n) : (1024, 1)]), 16, whole=True).bytes == 2
    assert widest_vector(TileLayout(S[(4, 4 * n) : (1024, 1)]), 16, whole=True).bytes == 8


def test_huge_extents_need_no_enumeration() -> None:
    assert widest_vector(TileLayout(S[(2**40, 2**40) : (2**41, 1)]), 16).bytes == 16


# --- against a look at every vector -------------------------------------------------------------


def fits(layout: TileLayout, shape: tuple[int, ...], d: int, count: int) -> bool:
    """Whether all whole vectors are neighbors in one memory, aligned; place by place, every copy."""
    others = [range(n) for k, n in enumerate(shape) if k != d]
    for rest in product(*others):
        for begin in range(0, shape[d] // count * count, count):
            places = []
            for j in range(count):
                at = [*rest]
                at.insert(d, begin + j)
                places.append(layout.apply(*at, shape=shape))
            first = places[0]
            for j, place in enumerate(places):
                here = {a: v for a, v in place.items() if a != m and v}
                if (
                    here != {a: v for a, v in first.items() if a != m and v}
                    or place.get(m, 0) != first.get(m, 0) + j
                ):
                    return False
            at = [*rest]
            at.insert(d, begin)
            if any(owner.get(m, 0) % count for owner in layout.owners(*at, shape=shape)):
                return False
    return True


def widest(layout: TileLayout, shape: tuple[int, ...], d: int, bits: int, alignment: int, whole: bool) -> int:
    best = 0
    for width in WIDTHS:
        count = width * 8 // bits
        if width * 8 % bits or count > shape[d] or (whole and shape[d] % count) or alignment % width:
            continue
        if count == 1 or fits(layout, shape, d, count):
            best = width
    return best


STRIDES = (1, 1, 2, 4, 8, 8, 16, 32, 3, 12, 24, 0, -1, -8, 2**40)


@given(st.data(), st.sampled_from([4, 8, 16, 32, 64]), st.booleans(), st.sampled_from([16, 16, 8, 4]))
def test_strides_agree_with_every_vector(data: st.DataObject, bits: int, whole: bool, alignment: int) -> None:
    alphabet = (m, m, m, laneid, pid)
    layout = data.draw(layouts(max_size=128, among=alphabet, strides=STRIDES, replicated=False, moved=False))
    if data.draw(st.integers(0, 2)) == 0:
        extra = data.draw(replicas(max_copies=4, among=(m, warpid), strides=(4, 8, 16, 2)))
        layout = TileLayout.from_iters(
            layout.shard, extra, {m: data.draw(st.sampled_from([0, 8, 16, 2, 6, -8]))}
        )
    shape = data.draw(fitting_shapes([it.extent for it in layout.shard])) or (1,)
    d = data.draw(st.integers(0, len(shape) - 1))
    expected = widest(layout, shape, d, bits, alignment, whole)
    if expected == 0:
        with pytest.raises(LayoutError, match="no access of their own"):
            widest_vector(layout, bits, shape, along=d, base_alignment=alignment, whole=whole)
        return
    found = widest_vector(layout, bits, shape, along=d, base_alignment=alignment, whole=whole)
    assert found.bytes == expected
    assert (found.vectors, found.tail) == divmod(shape[d], found.elements)
    assert found.limits


@given(st.data(), st.sampled_from([8, 16, 32]), st.booleans())
def test_tables_agree_with_strides(data: st.DataObject, bits: int, whole: bool) -> None:
    """The same layout behind a `table` alone gives the same width; a swizzle never gives a wider one than fits."""

    layout = data.draw(layouts(max_size=128, among=(m,), strides=STRIDES, replicated=False))
    shape = data.draw(fitting_shapes([it.extent for it in layout.shard])) or (1,)
    d = data.draw(st.integers(-len(shape), len(shape) - 1))
    assert (
        widest_vector(Table(layout), bits, shape, along=d, whole=whole)[:4]
        == widest_vector(layout, bits, shape, along=d, whole=whole)[:4]
    )


@given(st.data(), st.sampled_from([8, 16, 32]))
def test_swizzled_tiles_agree_with_every_vector(data: st.DataObject, bits: int) -> None:
    rows, columns = data.draw(st.integers(1, 8)), data.draw(st.sampled_from([4, 8, 12, 16, 32]))
    layout = Xored(
        row_major(rows, columns, columns + data.draw(st.sampled_from([0, 4, 8, 3]))), *data.draw(swizzles())
    )
    where = layout.table((rows, columns))["m"]
    best = 0
    for width in WIDTHS:
        count = width * 8 // bits
        if width * 8 < bits or count > columns:
            continue
        starts = range(0, columns // count * count, count)
        if all(
            row[k] % count == 0 and (row[k : k + count] == row[k] + range(count)).all()
            for row in where
            for k in starts
        ):
            best = width
    assert widest_vector(layout, bits, (rows, columns)).bytes == best


# --- what lanes want ----------------------------------------------------------------------------


def test_what_a_lane_wants_is_fetched_in_the_widest_pieces() -> None:
    fragment_rows = Access.of_layout(
        (16, 16), TileLayout(S[(8, 4, 8) : (16, 2, 1)]).slice((8, 4, 8), [(0, 8), (0, 1), (0, 8)]), 8
    )
    assert widest_access(row_major(16, 16), fragment_rows, 16).bytes == 16
    pairs = Access((16, 16), [(2 * j, 2 * j + 1, 2 * j + 8, 2 * j + 9) for j in range(4)])
    found = widest_access(row_major(16, 16), pairs, 16)
    assert (found.bytes, found.elements, found.vectors) == (4, 2, 2)
    assert found.limits[0].text == "lane 0: element 0 is at 0, element 2 at 8"
    shifted = widest_access(row_major(16, 16), Access((16, 16), [(1, 2, 3, 4)]), 16)
    assert (shifted.bytes, rules(shifted)) == (2, {"alignment"})


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (
            lambda: widest_vector(row_major(8, 8), 16, base_alignment=1),
            "base: position 0 is known to be aligned to 1 byte",
        ),
        (lambda: widest_vector(TileLayout(S[(8, 8) : (1, 8)]), 4), "no access of their own: contiguity"),
        (lambda: widest_vector(row_major(8, 8), 6), "6 bits is not a power of two"),
        (lambda: widest_vector(row_major(8, 8), 256), "of at most 128"),
        (lambda: widest_vector(row_major(8, 8), 16, along=2), "along 2 is no dimension"),
        (lambda: widest_vector(row_major(8, 8), 16, (4, 4)), "has 16 elements, the layout has 64"),
        (lambda: widest_vector(Table(row_major(8, 8)), 16), "needs a shape"),
        (lambda: widest_access(TileLayout(S[8] + R[2:8]), Access(8, [0]), 16), "has a replica"),
    ],
)
def test_refusals_say_what_is_wrong(ask: object, message: str) -> None:
    with pytest.raises(LayoutError, match=message):
        ask()  # type: ignore[operator]


def test_conditions_of_the_layout_and_of_the_caller_count() -> None:
    M, N, ld = sympy.symbols("M N ld", integer=True, positive=True)
    both = sympy.Eq(sympy.Mod(ld, 8), 0), sympy.Eq(sympy.Mod(N, 8), 0)
    matrix = TileLayout(S[(M, N) : (ld, 1)])
    assert widest_vector(matrix, 16, (M, N)).bytes == 2
    resting = matrix.canonicalize(assuming=both)
    for found in (
        widest_vector(resting, 16, (M, N)),
        widest_vector(resting, 16, (M, N), whole=True),
        widest_vector(matrix, 16, (M, N), whole=True, assuming=both),
    ):
        assert (found.bytes, found.tail, rules(found)) == (16, 0, {"instruction"})
    for rows, columns, step in ((3, 16, 24), (5, 8, 40)):  # what is said of the symbols holds for each number
        plain = matrix.subs({M: rows, N: columns, ld: step})
        assert widest_vector(plain, 16, (rows, columns), whole=True).bytes == 16
    column = Access.column((32, 32))
    tile = TileLayout(S[(32, 32) : (ld, 1)])
    assert widest_access(tile, column, 32, assuming=sympy.Eq(ld, 40)).bytes == 4
    with pytest.raises(LayoutError, match=r"ld is symbolic \(remedy: .*subs"):
        widest_access(tile, column, 32)
