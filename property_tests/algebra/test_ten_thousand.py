"""`ten_thousand` with a few instances of each operation, and that its checks do find wrong answers."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from property_tests.algebra import instances, ten_thousand
from tilelayout import LayoutError, SwizzledLayout, TileLayout, m

COUNT = 30
NO_LAYOUT = {
    "apply", "owners", "table", "span", "is_injective", "is_surjective", "is_bijective", "equivalent", "elements",
    "Swizzle.compose", "Swizzle.inverse", "swizzled apply, owners, table", "swizzled span", "swizzled equivalent",
    "swizzled is_injective", "swizzled is_surjective, is_bijective",
}  # fmt: skip
"""Operations whose answer holds no layout."""


@pytest.mark.parametrize("name", instances.OPERATIONS)
def test_a_few_instances(name: str) -> None:
    row = ten_thousand.measure(name, 7, COUNT)
    assert not row.faults, row
    assert row.counts["answered"] > 0
    assert sum(row.counts.values()) == COUNT


def moved(found: Any) -> Any:
    """The same answer, one place further on `m`."""
    if isinstance(found, TileLayout):
        return TileLayout.from_iters(
            found.shard, found.replica, {**found.offset, m: found.offset.get(m, 0) + 1}
        )
    if isinstance(found, SwizzledLayout):
        return SwizzledLayout(moved(found.layout), found.swizzle)
    if isinstance(found, tuple) and isinstance(found[0], int):  # a start and the rest
        return found[0] + 1, found[1]
    layout, *rest = found
    again = moved(layout), *rest
    return type(found)(*again) if type(found) is not tuple else again


@pytest.mark.parametrize("name", [name for name in instances.OPERATIONS if name not in NO_LAYOUT])
def test_an_answer_that_is_one_place_off_is_found_out(name: str) -> None:
    caught = 0
    for seed in range(COUNT):
        instance = instances.OPERATIONS[name](Random(f"{name} {seed}"))
        try:
            wrong = moved(instance.ask())
        except LayoutError:
            continue
        with pytest.raises((AssertionError, IndexError)):
            instance.check(wrong)
        caught += 1
    assert caught > 0


@pytest.mark.parametrize("name", ["is_injective", "is_surjective", "is_bijective", "equivalent"])
def test_the_other_answer_is_found_out(name: str) -> None:
    for seed in range(COUNT):
        instance = instances.OPERATIONS[name](Random(f"{name} {seed}"))
        with pytest.raises(AssertionError):
            instance.check(not instance.ask())


@pytest.mark.parametrize(
    "name", ["group", "slice", "pack", "join", "compose", "complement", "logical_product"]
)
def test_a_refusal_of_what_exists_is_found_out(name: str) -> None:
    caught = 0
    for seed in range(COUNT):
        instance = instances.OPERATIONS[name](Random(f"{name} {seed}"))
        try:
            instance.ask()
        except LayoutError:
            continue
        with pytest.raises(AssertionError):
            instance.check(LayoutError(name, "refused without a reason"))
        caught += 1
    assert caught > 0
