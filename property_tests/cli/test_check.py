"""``check`` answers as going through all elements does, shows a true witness, and says it with the exit code."""

from __future__ import annotations

import itertools
import json

from hypothesis import given, settings
from hypothesis import strategies as st

from property_tests import strategies as own
from property_tests.cli.shell import answer, run
from tilelayout import TileLayout

FEW = settings(max_examples=40)
AMONG = ("m", "laneid")
SMALL = st.builds(
    TileLayout.from_iters,
    own.shards(24, among=AMONG, strides=own.SMALL_STRIDES),
    own.replicas(4, among=AMONG, strides=own.SMALL_STRIDES),
    own.offsets(AMONG, (0, 1, -3)),
)


def place(found: dict[str, int]) -> frozenset[tuple[str, int]]:
    return frozenset((str(a), int(v)) for a, v in found.items() if v != 0)


def holders(layout: TileLayout) -> list[set[frozenset[tuple[str, int]]]]:
    return [{place(p) for p in layout.owners(flat)} for flat in range(int(layout.size()))]


def box(layout: TileLayout) -> set[frozenset[tuple[str, int]]]:
    """Every place of the box that the layout spans."""
    places = [dict(p) for mine in holders(layout) for p in mine]
    axes = sorted({a for p in places for a in p})
    ranges = []
    for axis in axes:
        values = [p.get(axis, 0) for p in places]
        ranges.append(range(min(values), max(values) + 1))
    return {place(dict(zip(axes, values, strict=True))) for values in itertools.product(*ranges)}


@FEW
@given(layout=SMALL)
def test_answers_are_those_of_going_through_all_elements(layout: TileLayout) -> None:
    ran = run("check", str(layout), "--json")
    assert ran.err == ""
    found = json.loads(ran.out)
    held = holders(layout)
    injective = all(not (a & b) for a, b in itertools.combinations(held, 2))
    surjective = set().union(*held) == box(layout)
    assert found["size"] == layout.size()
    assert found["injective"]["answer"] is injective
    assert found["surjective"]["answer"] is surjective
    assert found["bijective"]["answer"] is (injective and surjective)
    assert found["canonical"]["answer"] is (layout.canonicalize() == layout)
    assert ran.code == (0 if injective and surjective else 1)
    if not injective:
        one, two = found["injective"]["witness"]
        assert held[one] & held[two]
    if not surjective:
        assert place(found["surjective"]["witness"]) in box(layout) - set().union(*held)
    if layout.canonicalize() != layout:
        assert TileLayout.parse(found["canonical"]["witness"]) == layout.canonicalize()
    text = run("check", str(layout))
    assert text.code == ran.code
    said = {line.split()[0]: line.split()[1] for line in text.lines[1:]}
    assert said == {
        name: "yes" if found[name]["answer"] else "no"
        for name in ("injective", "surjective", "bijective", "canonical")
    }


@FEW
@given(layout=SMALL)
def test_one_question_decides_the_exit_code(layout: TileLayout) -> None:
    found = json.loads(run("check", str(layout), "--json").out)
    for name in ("injective", "surjective", "bijective", "canonical"):
        assert run("check", str(layout), f"--{name}").code == (0 if found[name]["answer"] else 1)
    both = found["injective"]["answer"] and found["canonical"]["answer"]
    assert run("check", str(layout), "--injective", "--canonical").code == (0 if both else 1)


@FEW
@given(one=SMALL, data=st.data())
def test_equality_is_that_of_functions(one: TileLayout, data: st.DataObject) -> None:
    two = data.draw(st.one_of(SMALL, st.just(one.canonicalize())))
    ran = run("check", str(one), "--equal", str(two), "--json")
    mine, theirs = holders(one), holders(two)
    assert ran.err == ""
    assert ran.code == (0 if mine == theirs else 1)
    witness = json.loads(ran.out)["equal"]["witness"]
    if mine == theirs:
        assert witness is None
    else:
        assert mine[witness : witness + 1] != theirs[witness : witness + 1]


def test_the_words_of_a_witness() -> None:
    text = answer("check", "S[(3, 2) : (1, 2)]", "--shape", "3,2", "--injective", code=1)
    assert "elements (0, 1) and (2, 0) share a place: m=2" in text
    text = answer("check", "S[8, 64]", "--shape", "8,64", "--equal", "Swizzle(3, 3, 3) o S[8, 64]", code=1)
    assert "they differ at (1, 0): m=64 and m=72" in text
    assert "no element is at laneid=1,m=0" in answer(
        "check", "S[(8, 4) : (4 @ laneid, 1)]", "--surjective", code=1
    )
    assert "the canonical form is S[24:1]" in answer(
        "check", "S[(2, 3, 4) : (12, 4, 1)]", "--canonical", code=1
    )


def test_a_swizzled_layout_is_asked_like_any() -> None:
    found = json.loads(answer("check", "Swizzle(3, 3, 3) o S[8, 64]", "--json"))
    assert [found[name]["answer"] for name in ("injective", "surjective", "bijective", "canonical")] == [
        True, True, True, False,
    ]  # fmt: skip


def test_layouts_of_other_sizes_differ_where_one_ends() -> None:
    assert "they differ at 8" in answer("check", "S[8]", "--equal", "S[9]", code=1)
