"""What the views say is what evaluation says: every cell of every view (case C25 included)."""

from __future__ import annotations

from collections import defaultdict
from itertools import product

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from property_tests import strategies as own
from tilelayout import R, S, Swizzle, SwizzledLayout, TileLayout, XorMap, axes, laneid, m, warpid
from tilelayout.analysis import Access, bank_conflicts
from tilelayout.draw import (
    before_after,
    bit_matrix,
    bits,
    gemm,
    hardware,
    iters,
    logical,
    operation,
    shared,
    tiling,
)
from tilelayout.draw import places as _places
from tilelayout.draw.places import natural_shape

D = TileLayout(S[(2, 8, 4, 2) : (2, 4 @ laneid, 1 @ laneid, 1)])
B = TileLayout(S[(4, 2, 8) : (1 @ laneid, 1, 4 @ laneid)])
SMALL = (0, 1, 2, 3, 4, 8, -1, -2)


def full(place):
    """A place with every axis written out."""
    return tuple(place.get(a, 0) for a in axes())


def owners(layout, where, shape):
    return {full(place) for place in layout.owners(*where, shape=shape)}


def layouts(**options):
    plain = own.layouts(**options)
    return st.one_of(plain, st.builds(SwizzledLayout, plain, st.sampled_from(
        [Swizzle(1, 0, 1), Swizzle(2, 1, 3), Swizzle(3, 3, 3), Swizzle(2, 0, -2), XorMap((1, 3, 6))])))  # fmt: skip


@st.composite
def shaped(draw, **options):
    layout = draw(layouts(**options))
    return layout, draw(own.factorizations(int(layout.size()))) or (1,)


# --- logical ------------------------------------------------------------------------------------


@given(shaped())
def test_every_cell_of_the_logical_view_shows_the_owners(drawn) -> None:
    layout, shape = drawn
    grid = logical(layout, shape, max_rows=100, max_columns=100).grid
    assert grid.crop == ""
    seen = []
    for row in grid.cells:
        for cell in row:
            (where,) = cell.elements
            seen.append(where)
            assert {full(p) for p in cell.holders} == owners(layout, where, shape)
            assert len(cell.lines) == min(len(cell.holders), 8) + (len(cell.holders) > 8)
            assert f"element ({', '.join(map(str, where))})" in cell.title
    assert seen == list(product(*map(range, shape)))


@given(shaped(max_size=30))
def test_without_a_shape_the_natural_one_is_taken(drawn) -> None:
    layout, _ = drawn
    rows, columns = natural_shape(layout)
    assert rows * columns == layout.size()
    assert logical(layout).grid.size == (rows, columns)


def test_case_c25_the_swizzled_numbers_are_those_of_evaluation() -> None:
    half = SwizzledLayout(S[(8, 16) : (16, 1)], Swizzle(1, 3, 3))
    assert half.apply(4, 0, shape=(8, 16)) == {"m": 72}
    picture = logical(half, (8, 16), bits=16)
    assert picture.grid.cells[4][0].lines == ("72",)
    assert picture.grid.cells[4][0].title.endswith("position 72 (bytes 144-145; bank 4, bits 0-15)")
    assert "Swizzle(1, 3, 3) counts elements of 16 bits; on bytes it is Swizzle(1, 4, 3)" in picture.text()
    tf32 = TileLayout(S[(32, 8) : (1, 32)])
    by_element = SwizzledLayout(tf32, Swizzle(3, 4, 3))
    by_byte = SwizzledLayout(tf32, Swizzle(3, 4, 3).in_units(8, 32))
    assert logical(by_element, (32, 8)).grid.cells[0][1].lines == ("32",)
    assert logical(by_byte, (32, 8)).grid.cells[0][1].lines == ("36",)
    assert "bytes 144-147" in logical(by_byte, (32, 8), bits=32).grid.cells[0][1].title


def test_all_holders_are_written_and_of_too_many_the_number() -> None:
    many = logical(TileLayout(S[2:1] + R[70 : 1 @ laneid]), (1, 2))
    cell = many.grid.cells[0][1]
    assert len(cell.holders) == 70
    assert cell.lines[-1] == "62 more"
    assert cell.title.endswith("and 6 more holders")
    assert many.grid.cells[0][0].title.count("\n") == 65


@pytest.mark.parametrize(
    ("bits_", "expected"),
    [
        (4, "lane 6, slot 3 (register 0, bits 12-15; byte 1, bits 4-7)"),
        (8, "lane 6, slot 3 (register 0, bits 24-31; byte 3)"),
        (16, "lane 6, slot 3 (register 1, bits 16-31; bytes 6-7)"),
        (64, "lane 6, slot 3 (registers 6-7; bytes 24-31)"),
        (1, "lane 6, slot 3 (register 0, bit 3; byte 0, bit 3)"),
    ],
)
def test_the_hover_says_register_bits_and_bytes(bits_: int, expected: str) -> None:
    assert logical(D, (16, 8), bits=bits_).grid.cells[9][5].title.splitlines()[1] == expected


# --- hardware -----------------------------------------------------------------------------------


@given(shaped(strides=SMALL, max_size=32), st.booleans())
def test_a_place_shows_exactly_its_elements(drawn, listed: bool) -> None:
    layout, shape = drawn
    there = defaultdict(set)
    for where in product(*map(range, shape)):
        for place in layout.owners(*where, shape=shape):
            there[full(place)].add(where)
    with pytest.MonkeyPatch.context() as patch:
        if not listed:
            patch.setattr(_places, "LISTED", -1)
        picture = hardware(layout, shape, max_rows=3000, max_columns=3000)
    assume("cropped" not in picture.text())
    shown = {full(cell.holders[0]): set(cell.elements) for cell in picture.cells}
    assert {place: found for place, found in shown.items() if found} == there


@pytest.mark.parametrize("listed", [True, False])
def test_a_map_that_is_not_its_own_inverse_is_read_backwards(listed: bool, monkeypatch) -> None:
    gray = SwizzledLayout(S[8, 8] + 16, XorMap((1, 3, 6, 12)))
    if not listed:
        monkeypatch.setattr(_places, "LISTED", -1)
    for cell in hardware(gray, (8, 8)).cells:
        assert set(cell.elements) == {
            where
            for where in product(range(8), repeat=2)
            if gray.apply(*where, shape=(8, 8)) == cell.holders[0]
        }


@given(own.layouts(max_size=64))
def test_any_layout_can_be_drawn_however_far_apart_its_places_are(layout) -> None:
    for picture in (
        hardware(layout, max_rows=4, max_columns=4),
        hardware(layout, rows="m", max_rows=4, max_columns=4),
    ):
        for cell in picture.cells:
            for where in cell.elements:
                assert any(
                    all(p.get(a, 0) == v for a, v in cell.holders[0].items())
                    for p in layout.owners(*where, shape=natural_shape(layout))
                )


def test_axes_are_chosen_and_held() -> None:
    two = D.tile(TileLayout(S[(2, 1) : (1 @ warpid, 0)]), (2, 1), (16, 8))
    assert [p.grid.heading for p in hardware(two, (32, 8), rows="laneid").panels] == ["warpid 0", "warpid 1"]
    held = hardware(two, (32, 8), rows="laneid", at={"warpid": 1}).grid
    assert (held.row_title, held.column_title, held.heading) == ("laneid", "m", "warpid 1")
    assert held.cells[6][3].elements == ((25, 5),)
    turned = hardware(two, (32, 8), rows="m", columns=("warpid", "laneid"), max_columns=100).grid
    assert turned.cells[3][32 + 6].elements == ((25, 5),)
    assert turned.column_labels[32 + 6] == "W1 T6"


# --- shared memory ------------------------------------------------------------------------------


@st.composite
def memory_tiles(draw):
    rows, columns = draw(st.sampled_from([(8, 8), (4, 16), (8, 64), (16, 32)]))
    pitch = columns + draw(st.sampled_from([0, 0, 2, 8]))
    layout = TileLayout(S[(rows, columns) : (pitch, 1)] + draw(st.sampled_from([0, 16])))
    if draw(st.booleans()):
        layout = SwizzledLayout(
            layout, draw(st.sampled_from([Swizzle(3, 3, 3), Swizzle(2, 2, 3), Swizzle(1, 0, 4)]))
        )
    return (
        layout,
        (rows, columns),
        draw(st.sampled_from([4, 8, 16, 32, 64])),
        draw(st.sampled_from([4, 8, 16])),
    )


@given(memory_tiles())
def test_a_word_holds_the_elements_whose_bits_lie_in_it(drawn) -> None:
    layout, shape, width, chunk = drawn
    plain = getattr(layout, "layout", layout)
    grid = shared(layout, shape, width, chunk=chunk, base=64).grid
    assert grid.crop == ""
    expected, moved = defaultdict(set), set()
    for where in product(*map(range, shape)):
        start = layout.apply(*where, shape=shape)["m"] * width + 8 * 64
        for bit in range(start, start + width):
            expected[bit // (8 * chunk)].add(where)
        if start // (8 * chunk) != (plain.apply(*where, shape=shape)["m"] * width + 8 * 64) // (8 * chunk):
            moved.add(where)
    found = {
        (int(label) * 128 // chunk + c): cell
        for label, row in zip(grid.row_labels, grid.cells, strict=True)
        for c, cell in enumerate(row)
    }
    assert {k: set(cell.elements) for k, cell in found.items() if cell.elements} == expected
    for cell in found.values():
        assert ("moved" in cell.marks) == bool(moved & set(cell.elements))


@pytest.mark.parametrize("swizzle", [Swizzle(0, 0, 0), Swizzle(1, 3, 3), Swizzle(3, 3, 3)])
@pytest.mark.parametrize("chunk", [4, 16])
def test_conflicts_are_marked_where_the_analysis_finds_them(swizzle: Swizzle, chunk: int) -> None:
    tile = SwizzledLayout(S[8, 64], swizzle)
    access = Access.matrices((8, 64))
    report = bank_conflicts(tile, access, 16)
    waiting = {
        (lane, bank) for p in report.phases for c in p.conflicts for lane in c.lanes for bank in c.banks
    }
    grid = shared(tile, (8, 64), 16, access=access, chunk=chunk).grid
    for line, row in enumerate(grid.cells):
        for c, cell in enumerate(row):
            banks = range(c * chunk // 4, (c + 1) * chunk // 4)
            lanes = [k for k in range(8) if set(access.coordinates(k)) & set(cell.elements)]
            assert ("conflict" in cell.marks) == any((k, b) in waiting for k in lanes for b in banks), (
                line,
                c,
            )
            assert f"touched by lanes {lanes[0]}" in cell.title if lanes else "touched" not in cell.title
    assert any("conflict" in cell.marks for row in grid.cells for cell in row) == (report.degree > 1)


# --- the others ---------------------------------------------------------------------------------


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
def test_the_operands_of_a_gemm_show_their_owners(transpose_a: bool, transpose_b: bool) -> None:
    def turned(layout, shape):
        grouped, seps = layout.group(shape)
        return grouped.permute_by_groups(seps, (1, 0))

    a = turned(D, (16, 8)) if transpose_a else D
    b = turned(B, (8, 8)) if transpose_b else B
    picture = gemm(a, b, D, (16, 8, 8), transpose_a=transpose_a, transpose_b=transpose_b, at=(9, 5))
    operands = ((b, (8, 8), transpose_b), (a, (16, 8), transpose_a), (D, (16, 8), False))
    for panel, (layout, (rows, columns), turn) in zip(picture.panels, operands, strict=True):
        assert panel.grid.shown == panel.grid.size == (rows, columns)
        for i, j in product(range(rows), range(columns)):
            cell = panel.grid.cells[i][j]
            where, shape = ((j, i), (columns, rows)) if turn else ((i, j), (rows, columns))
            assert {full(p) for p in cell.holders} == owners(layout, where, shape)
    chosen = [sum("chosen" in c.marks for row in p.grid.cells for c in row) for p in picture.panels]
    assert chosen == [8, 8, 1]
    assert all("chosen" in row[5].marks for row in picture.panels[0].grid.cells)
    assert all("chosen" in cell.marks for cell in picture.panels[1].grid.cells[9])


@given(layouts(max_size=64, strides=SMALL), st.data())
def test_a_tile_shows_exactly_the_owners_of_its_elements(layout, data) -> None:
    shape = data.draw(own.factorizations(int(layout.size()))) or (1,)
    tile = tuple(data.draw(st.sampled_from([d for d in range(1, n + 1) if n % d == 0])) for n in shape)
    named = data.draw(st.sampled_from([["warpid"], ["laneid", "warpid"], ["m", "pid"]]))
    for cell in tiling(layout, shape, tile, axes=named, max_rows=100, max_columns=100).cells:
        corner = cell.elements[0]
        each = [
            frozenset(tuple(p.get(a, 0) for a in named) for p in layout.owners(*where, shape=shape))
            for where in product(*[range(c, c + t) for c, t in zip(corner, tile, strict=True)])
        ]
        assert {tuple(p.get(a, 0) for a in named) for p in cell.holders} == set().union(*each)
        assert ("mixed" in cell.marks) == (len(set(each)) > 1)


@given(layouts(max_size=40), st.data())
def test_changed_elements_are_marked(layout, data) -> None:
    order = data.draw(st.permutations(range(len(getattr(layout, "layout", layout).shard))))
    picture = operation(layout, "permute_dims", order, max_rows=100, max_columns=100)
    after = layout.permute_dims(order)
    shape = picture.panels[1].grid.size
    for cell in picture.panels[1].grid.cells:
        for one in cell:
            (where,) = one.elements
            flat = where[0] * shape[1] + where[1]
            assert {full(p) for p in one.holders} == {full(p) for p in after.owners(flat)}
            same = {full(p) for p in layout.owners(flat)} == {full(p) for p in after.owners(flat)}
            assert ("changed" in one.marks) == (not same)


def test_an_operation_that_returns_more_than_a_layout() -> None:
    assert operation(TileLayout(S[8:1]), "group", (2, 4)).panels[1].grid.size == (2, 4)
    divided = operation(TileLayout(S[8, 8]), "zipped_divide", (4, 4), (8, 8))
    assert divided.panels[1].grid.size == (4, 16)
    assert not any(c.marks for c in before_after(D, D.canonicalize()).cells)


@given(st.data())
def test_the_xor_of_the_chosen_columns_is_the_place(data) -> None:
    layout = data.draw(linear_layouts())
    size = int(layout.size())
    matrix = bit_matrix(layout, (size,))
    copies = len(matrix.inputs) - (size.bit_length() - 1)
    for flat in range(size):
        index = [flat >> b & 1 for b in range(size.bit_length() - 2, -1, -1)]
        found = set()
        for extra in product((0, 1), repeat=copies):
            place = dict(matrix.constant)
            for on, image in zip((*index, *extra), matrix.images, strict=True):
                for axis, value in image.items():
                    place[axis] = place.get(axis, 0) ^ (value if on else 0)
            found.add(full(place))
        assert found == {full(p) for p in layout.owners(flat)}
    ones = {
        (r, c)
        for r, row in enumerate(bits(layout, (size,)).grid.cells)
        for c, cell in enumerate(row)
        if cell.lines
    }
    labels = bits(layout, (size,)).grid.row_labels
    columns = [*matrix.images, *([matrix.constant] if matrix.constant else [])]
    for r, label in enumerate(labels):
        axis, bit = label.rsplit(".", 1)
        assert [(r, c) in ones for c in range(len(columns))] == [
            bool(v.get(axis, 0) >> int(bit) & 1) for v in columns
        ]


@st.composite
def linear_layouts(draw):
    """Bits handed out to iters, replica and offset, so that none is used twice."""
    weights = draw(st.permutations([(1 << b, a) for b in range(4) for a in (m, laneid, warpid)]))
    count = draw(st.integers(0, 6))
    shard = [(2, w, a) for w, a in weights[:count]]
    replica = [(2, w, a) for w, a in weights[count : count + draw(st.integers(0, 2))]]
    offset = {a: w for w, a in weights[8 : 8 + draw(st.integers(0, 1))]}
    layout = TileLayout.from_iters(shard, replica, offset)
    return (
        SwizzledLayout(layout, draw(st.sampled_from([Swizzle(1, 0, 2), Swizzle(2, 0, -2)])))
        if draw(st.booleans())
        else layout
    )


@given(own.layouts(max_size=32))
def test_the_table_of_iters_makes_the_layout_again(layout) -> None:
    grid = iters(layout).grid
    parts = {"shard": [], "replica": []}
    offset = {}
    for label, row in zip(grid.row_labels, grid.cells, strict=True):
        kind = label.split()[0]
        extent, stride, axis = (cell.lines[0] if cell.lines else None for cell in row[:3])
        if kind == "offset":
            offset[axis] = int(stride)
        else:
            parts[kind].append((int(extent), int(stride), axis))
    assert TileLayout.from_iters(parts["shard"], parts["replica"], offset) == layout


# --- large layouts ------------------------------------------------------------------------------


def test_only_what_is_shown_is_evaluated(monkeypatch) -> None:
    """A picture costs its cells, whatever the size of the layout."""
    asked = []
    evaluate = TileLayout.owners

    def counting(self, *coord, shape=None):
        asked.append(coord)
        return evaluate(self, *coord, shape=shape)

    monkeypatch.setattr(TileLayout, "owners", counting)
    huge = TileLayout(S[(2**40, 2**40) : (1 @ laneid, 1)])
    assert len(list(logical(huge, (2**40, 2**40), max_rows=3, max_columns=5).cells)) == len(asked) == 15
    grid = hardware(huge, (2**40, 2**40), max_rows=3, max_columns=5).grid
    assert grid.cells[2][4].elements == ((2, 4),)
    assert grid.size == (2**40, 2**40)
