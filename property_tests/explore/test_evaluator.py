"""What the page calculates against Python, on random layouts: places, text, formulas, views."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from property_tests import strategies
from property_tests.algebra.swizzling import swizzled_layouts
from property_tests.explore.evaluator import Evaluator, as_texts
from property_tests.explore.pages import AXES_ON_PAGE, anything
from tilelayout import R, S, Swizzle, SwizzledLayout, TileLayout, laneid, warpid
from tilelayout.analysis import Access, bank_conflicts
from tilelayout.draw import hardware, logical, shared
from tilelayout.draw.places import natural_shape
from tilelayout.draw.wording import place_text
from tilelayout.explore import presets
from tilelayout.explore.presets import parsed

BITS = (1, 2, 4, 8, 16, 32, 64, 128)

small = st.one_of(
    strategies.layouts(strides=strategies.SMALL_STRIDES, among=AXES_ON_PAGE, max_size=64),
    swizzled_layouts(),
)


@st.composite
def shaped(draw: st.DrawFn, among: st.SearchStrategy[Any]) -> tuple[Any, tuple[int, ...]]:
    """A layout and a shape of its size, of one dimension at least."""
    layout = draw(among)
    shape = draw(strategies.factorizations(layout.size()))
    return layout, shape or (1,)


@given(layout=anything)
def test_text_round_trips_through_the_page(evaluator: Evaluator, layout: Any) -> None:
    assert evaluator.told("text", layout) == str(layout)
    assert evaluator.told("text", repr(layout).replace("TileLayout(", "T.TileLayout(T.")) == str(layout)
    assert parsed(str(layout)) == layout


@given(layout=anything)
def test_every_element_has_the_holders_that_python_gives(evaluator: Evaluator, layout: Any) -> None:
    expected = [as_texts(layout.owners(flat)) for flat in range(layout.size())]
    assert evaluator.told("owners", layout) == expected


@given(layout=anything)
def test_the_shape_without_one_is_python_s(evaluator: Evaluator, layout: Any) -> None:
    assert evaluator.told("shape", layout) == [str(n) for n in natural_shape(layout)]


@given(layout=anything, bits=st.sampled_from(BITS))
def test_places_are_worded_as_python_words_them(evaluator: Evaluator, layout: Any, bits: int) -> None:
    expected = [[place_text(place, bits) for place in layout.owners(x)] for x in range(layout.size())]
    assert evaluator.told("words", layout, bits=bits) == expected


@given(drawn=shaped(anything), data=st.data())
def test_the_formula_adds_up(evaluator: Evaluator, drawn: Any, data: st.DataObject) -> None:
    """Every term that is shown is there, every line of sums is true, and the result is the holders."""
    layout, shape = drawn
    flat = data.draw(st.integers(0, layout.size() - 1))
    told = evaluator.told("explain", layout, shape=[str(n) for n in shape], flat=str(flat))
    plain = layout.layout if isinstance(layout, SwizzledLayout) else layout
    assert [int(x) for x in told["coordinate"]] == list(unflattened(flat, shape))
    digits = unflattened(flat, [it.extent for it in plain.shard])
    assert [int(d["digit"]) for d in told["digits"]] == list(digits)
    assert [d["term"] for d in told["digits"]] == [
        str(c * it.stride) for c, it in zip(digits, plain.shard, strict=True)
    ]
    for line in [told["flatText"], *[s["text"] for s in told["sums"]]]:
        # Symbolic part first: c0 * 4 + ...; every part after it is arithmetic that can be checked.
        parts = [part for part in line.split(" = ") if "c" not in part]
        assert len({calculated(part) for part in parts}) == 1, line
    assert {s["axis"]: int(s["value"]) for s in told["sums"]} == {
        str(a): v for a, v in plain.apply(flat).items()
    }
    assert [h["place"] for h in told["holders"]] == as_texts(layout.owners(flat))
    for holder in told["holders"]:
        rows = [re.findall(r"(?:m|XOR) = (-?\d+)", line) for line in holder["lines"]]
        assert [int(found[0]) for found in rows if found][-1:] in ([], [int(holder["place"].get("m", 0))])


def unflattened(flat: int, shape: Any) -> tuple[int, ...]:
    digits: list[int] = []
    for n in reversed(shape):
        flat, digit = divmod(flat, n)
        digits.append(digit)
    return tuple(reversed(digits))


def calculated(text: str) -> int:
    """A sum of products of integers, negative ones in parentheses."""
    total = 0
    for term in text.split(" + "):
        value = 1
        for factor in term.split(" * "):
            value *= int(factor.strip("()"))
        total += value
    return total


# --- views -------------------------------------------------------------------------------------------------


def lines_of(cells: Any) -> list[list[list[str]]]:
    return [[list(cell["lines"] if isinstance(cell, dict) else cell.lines) for cell in row] for row in cells]


@given(drawn=shaped(small))
def test_the_logical_view_is_python_s(evaluator: Evaluator, drawn: Any) -> None:
    layout, shape = drawn
    told = evaluator.told("logical", layout, shape=[str(n) for n in shape], color="")
    grid = logical(layout, shape).grid
    assert lines_of(told["cells"]) == lines_of(grid.cells)
    assert (told["rowLabels"], told["columnLabels"]) == (list(grid.row_labels), list(grid.column_labels))
    keys = [[None if cell["key"] is None else int(cell["key"]) for cell in row] for row in told["cells"]]
    assert keys == [[cell.key for cell in row] for row in grid.cells]


@given(drawn=shaped(small))
def test_the_hardware_view_is_python_s(evaluator: Evaluator, drawn: Any) -> None:
    layout, shape = drawn
    told = evaluator.told("hardware", layout, shape=[str(n) for n in shape], color="")
    grid = hardware(layout, shape).grid
    assert lines_of(told["cells"]) == lines_of(grid.cells)
    assert (told["rowLabels"], told["columnLabels"]) == (list(grid.row_labels), list(grid.column_labels))


TILES = st.sampled_from(
    [
        (TileLayout(S[8, 64]), (8, 64)),
        (SwizzledLayout(S[8, 64], Swizzle(3, 3, 3)), (8, 64)),
        (SwizzledLayout(S[16, 32] + 64, Swizzle(2, 3, 3)), (16, 32)),
        (TileLayout(S[(32, 32) : (33, 1)]), (32, 32)),
        (TileLayout(S[(16, 32) : (1, 16)]), (16, 32)),
        (TileLayout(S[(4, 8, 16) : (128, 16, 1)]), (4, 8, 16)),
    ]
)


@given(tile=TILES, bits=st.sampled_from(BITS), chunk=st.sampled_from([4, 8, 16]), data=st.data())
def test_the_bank_view_is_python_s(
    evaluator: Evaluator, tile: Any, bits: int, chunk: int, data: st.DataObject
) -> None:
    layout, shape = tile
    kind = data.draw(st.sampled_from(["", "rows", "column", "ldmatrix"]))
    vector = data.draw(st.sampled_from([1, 2, 4, 8]))
    start = data.draw(st.integers(0, 3))
    answer = evaluator.ask(
        "banks",
        layout,
        shape=[str(n) for n in shape],
        bits=bits,
        chunk=chunk,
        access=kind,
        vector=vector,
        start=start,
    )
    try:
        access = access_of(kind, shape, vector, start, bits)
        grid = shared(layout, shape, bits, access=access, chunk=chunk).grid
    except ValueError:
        grid = None
    if grid is None:
        assert "refused" in answer
        return
    told = answer["is"]
    assert lines_of(told["cells"]) == lines_of(grid.cells)
    assert [[cell["marks"] for cell in row] for row in told["cells"]] == [
        [list(cell.marks) for cell in row] for row in grid.cells
    ]
    assert (told["rowLabels"], told["columnLabels"]) == (list(grid.row_labels), list(grid.column_labels))
    if access is not None:
        assert told["report"]["text"] == str(bank_conflicts(layout, access, bits))


def access_of(kind: str, shape: Any, vector: int, start: int, bits: int) -> Access | None:
    """The access that the page makes of its three fields."""
    size, columns = product(shape), shape[-1]
    flat = (size // columns, columns)
    rows = flat[0]
    if not kind:
        return None
    if kind == "rows":
        lanes = min(32, (size - start * columns) // vector)
        made = Access.rows(flat, vector, lanes, (start, 0))
    elif kind == "column":
        made = Access.column(flat, start, 0, vector, min(32, rows))
    else:
        made = Access.matrices(flat, ((0, start),), bits)
    return Access(shape, made.lanes, made.kind)


def product(numbers: Any) -> int:
    total = 1
    for n in numbers:
        total *= n
    return total


# --- limits and named cases --------------------------------------------------------------------------------


def test_integers_do_not_round(evaluator: Evaluator) -> None:
    huge = TileLayout(S[(3, 5) : (2**53 + 1, -(10**30))] + (2**64 + 1))
    told = evaluator.told("owners", huge)
    assert told == [as_texts(huge.owners(flat)) for flat in range(15)]


def test_a_large_layout_is_cropped_and_says_so(evaluator: Evaluator) -> None:
    told = evaluator.told("logical", "S[1000, 3000]", shape=["1000", "3000"])
    assert (len(told["cells"]), len(told["cells"][0])) == (64, 64)
    assert told["notes"] == ["cropped: rows 0 to 63 of 1000, columns 0 to 63 of 3000; the arrow keys move on"]
    told = evaluator.told("hardware", "S[1000, 3000]", shape=["1000", "3000"])
    assert told["notes"][0] == "of the first 65536 elements only: more are not listed"


def test_many_copies_are_counted_and_the_first_are_listed(evaluator: Evaluator) -> None:
    layout = TileLayout(S[64, 64] + R[65536 : 1 @ laneid])
    told = evaluator.told("logical", layout, shape=["64", "64"], color="")
    assert told["cells"][0][0]["lines"] == [*[f"T{k}:0" for k in range(8)], "65528 more"]
    answer = evaluator.ask("logical", "S[4] + R[65537:1]", shape=["2", "2"])
    assert "more than the 65536 copies that are listed" in answer["refused"]


def test_a_shape_of_another_size_is_refused(evaluator: Evaluator) -> None:
    answer = evaluator.ask("owners", "S[8, 4]", shape=["4", "4"])
    assert answer["refused"] == "shape: shape (4, 4) has 16 elements, the layout has 32"


def test_c25_prints_what_it_evaluates(evaluator: Evaluator) -> None:
    """The tf32 tile at (0, 1): counted in elements the swizzle takes 32 to 36, and in bytes it is another."""
    layout = SwizzledLayout(S[(32, 8) : (1, 32)], Swizzle(3, 2, 3))
    told = evaluator.told("explain", layout, shape=["32", "8"], flat="1")
    assert told["holders"][0]["place"] == {"m": "36"}
    assert told["holders"][0]["lines"][-1].split() == ["XOR", "=", "36", "00100100"]


def test_every_preset_is_evaluated_as_python_does(evaluator: Evaluator) -> None:
    offered = presets()
    assert len({p.group for p in offered}) >= 4
    for preset in offered:
        layout = parsed(preset.layout)
        for flat, places in enumerate(
            evaluator.told("owners", preset.layout, shape=list(map(str, preset.shape)))
        ):
            assert places == as_texts(layout.owners(flat)), preset


def test_copies_are_all_there(evaluator: Evaluator) -> None:
    layout = TileLayout(S[(4, 2) : (1 @ laneid, 1)] + R[(2, 3) : (4 @ laneid, 1 @ warpid)] + 5 @ warpid)
    assert [len(places) for places in evaluator.told("owners", layout)] == [6] * 8
