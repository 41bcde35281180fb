"""Operations on the page: Python's results, or a refusal; and the way back from an element to the one it came from."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from property_tests import strategies
from property_tests.algebra.swizzling import swizzled_layouts, tiles
from property_tests.explore.evaluator import Evaluator, as_texts
from property_tests.explore.pages import FRAGMENT, anything
from tilelayout import LayoutError, R, S, Swizzle, SwizzledLayout, TileLayout, laneid, warpid
from tilelayout.explore import explore
from tilelayout.explore.steps import performed

Call = tuple[str, tuple[Any, ...]]


def iters_of(layout: Any) -> list[Any]:
    return [*(layout.layout if isinstance(layout, SwizzledLayout) else layout).shard]


@st.composite
def calls(draw: st.DrawFn, among: st.SearchStrategy[Any]) -> tuple[Any, Call]:
    """A layout and an operation on it; mostly one that fits."""
    layout = draw(among)
    extents = [it.extent for it in iters_of(layout)]
    fitting = draw(strategies.fitting_shapes(extents)) or (1,)
    shape = draw(
        st.sampled_from([fitting, fitting, fitting, draw(strategies.factorizations(layout.size())) or (1,)])
    )
    operation = draw(
        st.sampled_from(["group", "tile_to", "slice", "slice", "permute_dims", "permute_by_groups"])
    )
    if operation == "group":
        return layout, (operation, (shape,))
    if operation == "tile_to":
        to = tuple(n * draw(st.integers(1, 3)) + draw(st.sampled_from([0, 0, 0, 0, 0, 1])) for n in shape)
        return layout, (operation, (to, shape))
    if operation == "slice":
        return layout, (operation, (shape, tuple(draw(strategies.regions(shape)))))
    if operation == "permute_dims":
        return layout, (operation, (tuple(draw(st.permutations(range(len(extents))))),))
    cuts = sorted({0, len(extents), *draw(st.lists(st.integers(0, len(extents)), max_size=3))})
    return layout, (operation, (tuple(cuts), tuple(draw(st.permutations(range(len(cuts) - 1))))))


def by_python(layout: Any, call: Call) -> Any:
    """The layout after an operation, None where it is refused."""
    operation, arguments = call
    try:
        result = getattr(layout, operation)(*arguments)
    except LayoutError:
        return None
    return result[0] if operation == "group" else result


def argument_text(call: Call) -> str:
    return ", ".join(map(str, call[1])) if call[1] else ""


def check(evaluator: Evaluator, layout: Any, call: Call) -> dict[str, Any]:
    """Python's result, a refusal where Python refuses, or the word that this page does not decide it."""
    answer = evaluator.ask("perform", layout, operation=call[0], **{"with": argument_text(call)})
    expected = by_python(layout, call)
    if answer.get("kind") == "NotHere":
        return answer
    if expected is None:
        assert "refused" in answer, (str(layout), call, answer)
    else:
        assert answer.get("is", {}).get("layout") == str(expected), (str(layout), call, answer)
    return answer


@given(
    drawn=calls(st.one_of(anything, strategies.layouts(strides=strategies.SMALL_STRIDES), swizzled_layouts()))
)
@example((TileLayout(S[8:1]), ("group", ((2, 4),))))
@example((TileLayout(S[(2, 3) : (3, 1)]), ("group", ((3, 2),))))
@example((TileLayout(S[(4, 6) : (10, 1)]), ("slice", ((24,), ((3, 9),)))))
@example((TileLayout(S[(4, 4) : (10, 1)]), ("slice", ((16,), ((1, 7),)))))
@example((SwizzledLayout(S[8, 64], Swizzle(3, 3, 3)), ("tile_to", ((16, 64), (8, 64)))))
@example((SwizzledLayout(S[4, 64], Swizzle(3, 3, 3)), ("tile_to", ((8, 64), (4, 64)))))
@example((TileLayout(S[(8, 4) : (4 @ laneid, 1)] + R[2 : 1 @ warpid]), ("tile_to", ((16, 8), (8, 4)))))
def test_an_operation_gives_python_s_layout(evaluator: Evaluator, drawn: tuple[Any, Call]) -> None:
    check(evaluator, *drawn)


@given(drawn=calls(strategies.layouts()))
def test_the_page_performs_most_of_what_python_does(evaluator: Evaluator, drawn: tuple[Any, Call]) -> None:
    """Only slices in a shape that cuts across the iters are left to Python."""
    layout, call = drawn
    answer = check(evaluator, layout, call)
    if answer.get("kind") == "NotHere":
        assert call[0] == "slice"
        assert by_python(layout, ("group", (call[1][0],))) is None


@given(drawn=calls(anything))
@example((TileLayout(S[2, 3, 4]), ("permute_dims", ((1, 2, 0),))))
@example((TileLayout(S[2, 3, 4, 5]), ("permute_by_groups", ((0, 1, 3, 4), (2, 0, 1)))))
def test_an_element_is_held_where_the_one_it_came_from_was(
    evaluator: Evaluator, drawn: tuple[Any, Call]
) -> None:
    layout, call = drawn
    options = {"operation": call[0], "with": argument_text(call)}
    answer = evaluator.ask("sources", layout, **options)
    if "refused" in answer:
        return
    after = by_python(layout, call)
    assert len(answer["is"]) == after.size()
    for flat, source in enumerate(answer["is"]):
        there = layout.owners(int(source))
        here = after.owners(flat)
        if call[0] != "tile_to":
            assert trimmed(here) == trimmed(there)
        elif not isinstance(layout, SwizzledLayout):
            apart = {place.get("m", 0) - other.get("m", 0) for place, other in zip(here, there, strict=True)}
            assert len(apart) == 1  # the copy's distance from the first, the same for every holder


def trimmed(places: Any) -> set[tuple[tuple[str, int], ...]]:
    return {tuple(sorted((str(a), v) for a, v in place.items() if v)) for place in places}


@given(first=st.one_of(tiles(), strategies.layouts(max_size=64)), second=tiles(max_size=32))
@example(TileLayout(S[4, 8]), TileLayout(S[(8, 4) : (1, 8)]))
@example(FRAGMENT, TileLayout(S[(16, 16) : (1, 16)]))
def test_a_composition_is_python_s_or_is_left_to_it(evaluator: Evaluator, first: Any, second: Any) -> None:
    answer = evaluator.ask("perform", first, operation="compose", **{"with": str(second)})
    if answer.get("kind") == "NotHere":
        return
    try:
        expected = first.compose(second)
    except LayoutError:
        assert "refused" in answer
        return
    assert answer.get("is", {}).get("layout") == str(expected)


def test_every_range_of_small_layouts(evaluator: Evaluator) -> None:
    """All slices of two digits and of three: those that stay in a run, cross a wrap, or break the pattern."""
    strides = (0, 1, 2, 3, 10, -1)
    shards = [((a, s), (b, t)) for a in (2, 3, 4) for b in (2, 3) for s in strides for t in strides]
    shards += [((2, s), (2, t), (2, u)) for s in strides for t in (1, 3, 10) for u in (1, 2)]
    performed_here = 0
    for shard in shards:
        layout = TileLayout.from_iters(shard)
        size = layout.size()
        for begin in range(0, size, 2 if len(shard) > 2 else 1):
            for end in range(begin + 2, size + 1):
                answer = check(evaluator, layout, ("slice", ((size,), ((begin, end),))))
                performed_here += "is" in answer
    assert performed_here > 1000


def test_every_composition_of_small_layouts(evaluator: Evaluator) -> None:
    """Right sides that carry in the left one must not come out as if they did not."""
    left = [TileLayout(S[(4, 4) : (10, 1)]), TileLayout(S[(2, 3, 4) : (1 @ laneid, 1, 5)])]
    left.append(FRAGMENT.slice((256,), [(0, 32)]))
    shapes = [(2, 2), (2, 3), (3, 2), (4, 2), (2, 4), (3, 3)]
    performed_here = 0
    for first in left:
        for a, b in shapes:
            for s in (1, 2, 3, 4, 5, 6):
                for t in (1, 2, 3, 4, 8, -1):
                    second = TileLayout.from_iters([(a, s), (b, t)], (), {"m": 0 if t > 0 else b - 1})
                    answer = evaluator.ask("perform", first, operation="compose", **{"with": str(second)})
                    if answer.get("kind") == "NotHere":
                        continue
                    try:
                        expected = first.compose(second)
                    except LayoutError:
                        assert "refused" in answer, (str(first), str(second))
                        continue
                    assert answer.get("is", {}).get("layout") == str(expected), (str(first), str(second))
                    performed_here += 1
    assert performed_here > 100


def test_compositions_are_performed(evaluator: Evaluator) -> None:
    transposed = TileLayout(S[(16, 16) : (1, 16)])
    told = evaluator.told("perform", FRAGMENT, operation="compose", **{"with": f"TileLayout({transposed})"})
    assert told["layout"] == str(FRAGMENT.compose(transposed))
    sources = evaluator.told("sources", FRAGMENT, operation="compose", **{"with": str(transposed)})
    assert sources == [str(transposed.apply(flat)["m"]) for flat in range(256)]


@pytest.mark.parametrize(
    ("operation", "text", "word"),
    [
        ("tile_to", "(32, 16)", "2 arguments are expected, got 1"),
        ("tile_to", "(32, 16), (16, 16", "expected ')'"),
        ("tile_to", "(32, 16), (16, x)", "expected an integer"),
        ("tile_to", "", "arguments are missing"),
        ("tile_to", "(24, 16), (16, 16)", "16 does not divide 24"),
        ("group", "(0, 256)", "must be at least 1"),
        ("slice", "(16, 16), (0, 8)", "each dimension has a range"),
        ("slice", "(16, 16), ((0, 8), (0, 17))", "ends past the extent 16"),
        ("slice", "(16, 16), ((0, 8, 2), (0, 16))", "ask Python"),
        ("permute_dims", "(0, 0, 1, 2, 3)", "is not a permutation"),
        ("compose", "S[4 @ laneid : 1]", "at position 0"),
        ("pack", "2", "this page performs group, tile_to"),
    ],
)
def test_a_refusal_says_why(evaluator: Evaluator, operation: str, text: str, word: str) -> None:
    answer = evaluator.ask("perform", FRAGMENT, operation=operation, **{"with": text})
    assert word in answer["refused"]


# --- steps that Python performs ----------------------------------------------------------------------------


def test_the_steps_of_a_page_are_python_s() -> None:
    steps = [
        ("tile_to", (32, 16), (16, 16)),
        ("slice", (32, 16), ((16, 32), (0, 8))),
        ("group", [4, 4, 8]),
        ("permute_dims", (1, 0)),
    ]
    layout: Any = FRAGMENT
    done = performed(layout, (16, 16), steps[:3])
    assert [step.shape for step in done] == [(16, 16), (32, 16), (16, 8), (4, 4, 8)]
    assert done[3].call == "group((4, 4, 8))"
    for operation, *arguments in steps[:3]:
        layout = getattr(layout, operation)(*arguments)
        layout = layout[0] if isinstance(layout, tuple) else layout
    assert done[-1].layout == str(layout)


@given(drawn=calls(anything))
def test_the_page_knows_the_way_back_through_python_s_steps(
    evaluator: Evaluator, drawn: tuple[Any, Call]
) -> None:
    """The text of a call as Python writes it is read by the page, which refuses none that Python performed."""
    layout, call = drawn
    if by_python(layout, call) is None:
        return
    _, step = performed(layout, (layout.size(),), [(call[0], *call[1])])
    operation, text = step.call.split("(", 1)
    answer = evaluator.ask("perform", layout, operation=operation, **{"with": text[:-1]})
    if "is" in answer:
        assert answer["is"]["layout"] == step.layout
        assert answer["is"]["shape"] == [str(n) for n in step.shape]
    else:
        assert answer["kind"] == "NotHere"


@pytest.mark.parametrize(
    ("steps", "word"),
    [
        ([("tile_too", (2, 2))], "did you mean 'tile_to'?"),
        (["tile_to"], r"a step is \(operation, \*arguments\)"),
        ([()], "a step is"),
        ([("size",)], "gives no layout"),
        ([("tile_to", (24, 16), (16, 16))], "does not divide"),
    ],
)
def test_a_step_that_is_none_is_refused(steps: Any, word: str) -> None:
    with pytest.raises(LayoutError, match=word):
        explore(FRAGMENT, (16, 16), steps=steps)


def test_divisions_and_products_are_steps_too() -> None:
    done = performed(TileLayout(S[8, 8]), (8, 8), [("blocked_product", TileLayout(S[2, 2]))])
    assert done[1].call == "blocked_product(S[(2, 2):(2, 1)])"
    assert as_texts(TileLayout.parse(done[1].layout).owners(0)) == [{"m": "0"}]
