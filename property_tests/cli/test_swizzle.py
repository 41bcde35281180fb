"""``swizzle``: maps of coordinates, compared at every coordinate of a range with XORs written out here."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from property_tests.cli.shell import answer

PARAMETERS = st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 2)).map(
    lambda p: (p[0], p[1], p[0] + p[2])
)
RANGE = range(300)
ALL = ",".join(map(str, RANGE))
FEW = settings(max_examples=40)


def swizzled(parameters: tuple[int, int, int], x: int) -> int:
    bits, base, shift = parameters
    return x ^ ((x >> (base + shift) & (1 << bits) - 1) << base)


def text(parameters: tuple[int, int, int]) -> str:
    return f"S<{','.join(map(str, parameters))}>"


def applied(*arguments: str) -> list[int]:
    lines = answer("swizzle", *arguments, "--at", ALL).splitlines()
    pairs = [tuple(map(int, re.fullmatch(r"(\d+) -> (\d+)", line).groups())) for line in lines]  # type: ignore[union-attr]
    assert [x for x, _ in pairs] == list(RANGE)
    return [y for _, y in pairs]


@FEW
@given(one=PARAMETERS, two=PARAMETERS)
def test_maps_products_and_inverses(one: tuple[int, int, int], two: tuple[int, int, int]) -> None:
    assert applied(text(one)) == [swizzled(one, x) for x in RANGE]
    both = [swizzled(two, swizzled(one, x)) for x in RANGE]
    assert applied(text(one), "--then", text(two)) == both
    product = answer("swizzle", text(one), "--then", text(two)).strip()
    assert applied(product) == both
    back = answer("swizzle", product, "--inverse").strip()
    assert applied(product, "--then", back) == list(RANGE)


@FEW
@given(parameters=PARAMETERS, scale=st.integers(0, 3))
def test_units(parameters: tuple[int, int, int], scale: int) -> None:
    """Elements of 2**scale bytes: the byte swizzle moves byte 0 of an element where the element goes."""
    found = answer("swizzle", text(parameters), "--from-bits", str(8 << scale), "--to-bits", "8").strip()
    size = 1 << scale
    elements = range(len(RANGE) // size)
    assert [applied(found)[e * size] for e in elements] == [swizzled(parameters, e) * size for e in elements]


@FEW
@given(one=PARAMETERS, two=PARAMETERS)
def test_equality_is_that_of_maps(one: tuple[int, int, int], two: tuple[int, int, int]) -> None:
    here, there = ([swizzled(p, x) for x in range(2048)] for p in (one, two))
    said = answer("swizzle", text(one), "--equal", text(two), code=0 if here == there else 1)
    if here == there:
        assert said == "yes\n"
    else:
        x, a, b = map(int, re.fullmatch(r"no: (\d+) goes to (\d+) and to (\d+)\n", said).groups())  # type: ignore[union-attr]
        assert (swizzled(one, x), swizzled(two, x)) == (a, b)
        assert a != b
