"""``query`` in both directions says what `owners` says, for random layouts; what it writes it also reads."""

from __future__ import annotations

import json
import re
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from property_tests import strategies as own
from property_tests.cli.shell import answer, run
from tilelayout import SwizzledLayout, TileLayout
from tilelayout.swizzle import Swizzle

D = "S[(2, 8, 4, 2) : (2, 4 @ laneid, 1 @ laneid, 1)]"
FEW = settings(max_examples=40)

SMALL = own.layouts(max_size=32, strides=own.SMALL_STRIDES)


@st.composite
def asked(draw: st.DrawFn) -> TileLayout | SwizzledLayout:
    """Small layouts, swizzled ones among them."""
    layout = draw(own.layouts(max_size=32))
    if draw(st.booleans()):
        return layout
    bits = draw(st.integers(0, 2))
    return SwizzledLayout(layout, Swizzle(bits, draw(st.integers(0, 2)), bits + draw(st.integers(0, 1))))


def place(found: dict[str, int]) -> frozenset[tuple[str, int]]:
    """A place without the axes at 0, which may be left out."""
    return frozenset((str(a), v) for a, v in found.items() if v != 0)


def coordinates(shape: tuple[int, ...], flat: int) -> tuple[int, ...]:
    out: list[int] = []
    for n in reversed(shape):
        flat, digit = divmod(flat, n)
        out.insert(0, digit)
    return tuple(out)


@FEW
@given(layout=asked(), data=st.data())
def test_an_element_is_where_owners_says(layout: TileLayout | SwizzledLayout, data: st.DataObject) -> None:
    size = int(layout.size())
    shape = data.draw(own.factorizations(size)) or (1,)
    flat = data.draw(st.integers(0, size - 1))
    element = coordinates(shape, flat)
    arguments = ["--shape", ",".join(map(str, shape)), "--at", ",".join(map(str, element))]
    found = json.loads(answer("query", str(layout), *arguments, "--json"))
    assert found["element"] == list(element)
    expected = [place(p) for p in layout.owners(*element, shape=shape)]
    assert [place(p) for p in found["holders"]] == expected
    text = answer("query", str(layout), *arguments).splitlines()[1:]
    assert len(text) == len(expected)
    read = [dict(pair.split("=") for pair in line.split()[0].split(",")) for line in text]
    assert [place({a: int(v) for a, v in pairs.items()}) for pairs in read] == expected


@FEW
@given(layout=asked(), data=st.data())
def test_a_place_holds_the_elements_that_it_owns(
    layout: TileLayout | SwizzledLayout, data: st.DataObject
) -> None:
    """Every element and place is compared with `owners` of all elements; some axes are left open."""
    held = [(flat, p) for flat in range(int(layout.size())) for p in layout.owners(flat)]
    _, target = data.draw(st.sampled_from(held))
    named = [a for a in target if data.draw(st.booleans())] or list(target)[:1]
    if not named:  # a single element that mentions no axis
        return
    where = {a: data.draw(st.sampled_from([target[a], target[a], "*"])) for a in named}
    text = ",".join(f"{a}={v}" for a, v in where.items())
    found = json.loads(answer("query", str(layout), "--where", text, "--json"))["elements"]
    expected = {
        (flat, place(p)) for flat, p in held if all(v == "*" or p.get(a, 0) == v for a, v in where.items())
    }
    assert {(e["flat"], place(e["place"])) for e in found} == expected
    assert len(found) == len(expected)


@FEW
@given(layout=SMALL, lane=st.integers(0, 40), slot=st.integers(0, 6))
def test_nothing_there_is_exit_code_1(layout: TileLayout, lane: int, slot: int) -> None:
    held = [p for flat in range(int(layout.size())) for p in layout.owners(flat)]
    there = any(p.get("laneid", 0) == lane and p.get("m", 0) == slot for p in held)
    ran = run("query", str(layout), "--lane", str(lane), "--register", str(slot))
    assert ran.code == (0 if there else 1)
    assert ran.err == ""
    assert there != (f"no element is at laneid={lane},m={slot}" in ran.out)


@pytest.mark.parametrize("bits", [4, 8, 12, 16, 24, 32, 64])
@pytest.mark.parametrize("register", range(4))
def test_a_register_has_the_slots_with_a_bit_in_it(bits: int, register: int) -> None:
    layout = TileLayout.parse("S[(32, 32) : (1 @ laneid, 1)]")
    ran = run(
        "query",
        str(layout),
        "--shape",
        "32,32",
        "--lane",
        "7",
        "--register",
        str(register),
        "--element-bits",
        str(bits),
    )
    first, last = 32 * register, 32 * register + 31
    slots = [s for s in range(32) if s * bits <= last and s * bits + bits - 1 >= first]
    if bits == 64:  # a pair of registers is one element
        slots = [register // 2]
    assert ran.code == 0
    assert [int(x) for x in re.findall(r"m=(\d+)", ran.out)] == slots
    assert [tuple(map(int, x)) for x in re.findall(r"element \((\d+), (\d+)\)", ran.out)] == [
        (7, s) for s in slots
    ]


def test_the_article_fragment_both_ways() -> None:
    """Element (9, 5) of the accumulator of m16n8: g = 9 % 8, t = 5 // 2, slot 2 * (9 // 8) + 5 % 2."""
    assert (
        answer("query", D, "--shape", "16,8", "--at", "9,5").splitlines()[1] == "laneid=6,m=3  lane 6, slot 3"
    )
    back = answer("query", D, "--shape", "16,8", "--lane", "6", "--register", "3")
    assert back.split("  ")[0] == "element (9, 5)"
    with_bits = answer("query", D, "--shape", "16,8", "--at", "9,5", "--element-bits", "16")
    assert "register 1, bits 16-31; bytes 6-7" in with_bits


def test_a_flat_index_and_one_per_iter() -> None:
    assert "laneid=6,m=3" in answer("query", D, "--at", "77")
    assert "laneid=6,m=3" in answer("query", D, "--at", "1,1,2,1")


def test_a_long_list_is_cropped_and_says_so() -> None:
    text = answer("query", "S[1000:0]", "--where", "m=0").splitlines()
    assert len(text) == 257
    assert text[-1] == "and 744 more (--json gives all)"
    assert len(json.loads(answer("query", "S[1000:0]", "--where", "m=0", "--json"))["elements"]) == 1000


def test_explain_shows_the_derivation() -> None:
    text = answer("query", D, "--shape", "16,8", "--at", "9,5", "--explain")
    assert "9 * 8 + 5 = 77" in text
    assert "=> ({m: 3, laneid: 6},)" in text


def test_a_layout_comes_from_standard_input() -> None:
    ran = run("query", "-", "--shape", "16,8", "--at", "9,5", stdin=f"\n  {D}\n")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == answer("query", D, "--shape", "16,8", "--at", "9,5")


@given(numbers=st.lists(st.integers(1, 10**12), min_size=1, max_size=4))
def test_symbols_take_their_values(numbers: list[int]) -> None:
    names = [f"n{i}" for i in range(len(numbers))]
    options = [x for n, v in zip(names, numbers, strict=True) for x in ("--let", f"{n}={v}")]
    text = f"S[{', '.join(names)}]"
    found = answer("convert", text, *options).strip()
    assert TileLayout.parse(found).size() == prod(numbers)
