"""The same questions put to pycute and tensor-layouts, thousands at a time.

CuTe counts the first mode fastest: modes are reversed on the way, and the tables of values are then the same list.
Wherever two disagree the post-condition decides, evaluated by brute force, and it must decide for us, always: what a
peer has right we have too, and nothing that we return is wrong.

What is known of pycute (of nvidia-cutlass 4.2) and tensor-layouts 0.3.2, with the least witness, in their order:
  - composition by mode misses carries: (6,2):(1,7) o (3,2):(2,3) is (3,2):(2,3) for both (its last value is 8, not 7);
    both refuse or lose what isn't divisible mode by mode;
  - complement rounds up to a multiple and takes overlapping layouts: (4:2, 7) is 2:1, (2,3):(2,1) has zero extents;
  - left and right inverses of layouts that aren't injective, or whose strides don't nest, are wrong or refused;
  - divide and product inherit the compositions and complements; blocked_product of tensor-layouts leaves gaps free.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from property_tests.algebra import compacts
from property_tests.algebra.test_complement import filling
from property_tests.algebra.test_product import free
from property_tests.conftest import ROOT
from tilelayout import LayoutError, TileLayout

pytestmark = [pytest.mark.slow, pytest.mark.oracle]

SERVER = Path(__file__).with_name("cute_server.py")
PEERS = ("pycute", "tensor_layouts")
CASES = 3000
BATCH = 200

Table = list[int]
Rule = Callable[[TileLayout, Any, Table], bool]


class Cute:
    """Asks the peers: each answer is ``{"is": {"table": .., "text": ..}}`` or ``{"refused": message}``."""

    def __init__(self, python: Path) -> None:
        self.process = subprocess.Popen(
            [python, SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def ask(self, questions: list[dict[str, Any]]) -> list[dict[str, Any]]:
        assert self.process.stdin
        assert self.process.stdout
        found: list[dict[str, Any]] = []
        for at in range(0, len(questions), BATCH):
            self.process.stdin.write(json.dumps(questions[at : at + BATCH]) + "\n")
            self.process.stdin.flush()
            found += json.loads(self.process.stdout.readline())
        return found

    def close(self) -> None:
        for stream in (self.process.stdin, self.process.stdout):
            if stream:
                stream.close()
        self.process.wait()


@pytest.fixture(scope="module")
def cute() -> Iterator[Cute]:
    """The interpreter that has pycute and tensor-layouts: TILELAYOUT_CUTE_PYTHON, or that of .venv-oracles."""
    named = os.environ.get("TILELAYOUT_CUTE_PYTHON")
    python = Path(named) if named else ROOT / ".venv-oracles" / "bin" / "python"
    has = (
        python.is_file()
        and not subprocess.run([python, "-c", "import pycute, tensor_layouts"], check=False).returncode
    )
    if not has:
        reason = f"no oracle: {python} has no pycute and tensor_layouts (`make test-slow` installs them)"
        if named or os.environ.get("TILELAYOUT_REQUIRE_ORACLES") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    peer = Cute(python)
    yield peer
    peer.close()


def modes(x: Any) -> Any:
    """A layout as CuTe writes it."""
    return x if isinstance(x, int) else [[it.extent, it.stride] for it in reversed(x.shard)]


def positive(rng: Random, largest: int) -> TileLayout:
    """Strides as CuTe has them, none negative, no offset; half of the time they nest."""
    while True:
        found = compacts.anything(rng, largest)
        found = TileLayout.from_iters([(it.extent, abs(it.stride), it.axis) for it in found.shard])
        if rng.random() < 0.8 or len(found.shard) > 1:
            return found


def compare(
    cute: Cute,
    do: str,
    cases: list[tuple[Any, ...]],
    ours: Callable[..., TileLayout],
    right: Callable[..., bool],
) -> dict[str, Counter[str]]:
    """Per peer how often it agrees, refuses, or is wrong; fails where we are wrong, or refuse what a peer has right."""
    kinds = {peer: Counter[str]() for peer in PEERS}
    for peer in PEERS:
        questions = [
            {"of": peer, "do": do, **dict(zip("ab", map(modes, case), strict=False))} for case in cases
        ]
        for case, answer in zip(cases, cute.ask(questions), strict=True):
            theirs = answer["is"]["table"] if "is" in answer else None
            found = compacts.attempt(lambda case=case: ours(*case))
            if isinstance(found, LayoutError):
                assert theirs is None or not right(*case, theirs), (peer, do, case, answer, found)
                kinds[peer]["both refuse" if theirs is None else "is wrong, we refuse"] += 1
                continue
            mine = compacts.places(found)
            assert right(*case, mine), (do, case, found)
            if theirs is None:
                kinds[peer]["refuses, we answer"] += 1
            elif not right(*case, theirs):
                kinds[peer]["is wrong, we answer"] += 1
            else:
                kinds[peer]["agrees" if mine == theirs else "is right too"] += 1
    return kinds


def composition_right(a: TileLayout, b: TileLayout, table: Table) -> bool:
    places, indices = compacts.places(a), compacts.places(b)
    return len(table) == len(indices) and all(
        0 <= i < len(places) and places[i] == v for i, v in zip(indices, table, strict=True)
    )


def test_composition(cute: Cute) -> None:
    rng = Random(1)
    cases = []
    while len(cases) < CASES:
        a, b = positive(rng, 48), positive(rng, 16)
        if max(compacts.places(b)) < a.size():
            cases.append((a, b))
    kinds = compare(cute, "compose", cases, TileLayout.compose, composition_right)
    for found in kinds.values():
        assert found["agrees"] > CASES // 10
        assert found["is wrong, we refuse"] > 0


def test_complement(cute: Cute) -> None:
    def right(a: TileLayout, cosize: int, table: Table) -> bool:
        return sorted(table) == filling(compacts.places(a), cosize) and len(set(table)) == len(table)

    rng = Random(2)
    cases = []
    for _ in range(CASES):
        a = positive(rng, 24)
        cases.append((a, (max(compacts.places(a)) + 1) * rng.randint(1, 3) + rng.choice((0, 0, 0, 1, 5))))
    kinds = compare(cute, "complement", cases, TileLayout.complement, right)
    assert all(found["agrees"] > CASES // 10 for found in kinds.values())


def test_right_inverse(cute: Cute) -> None:
    """The largest is asked for: a peer that reads fewer places back than there could be is not right."""

    def right(a: TileLayout, table: Table) -> bool:
        places = compacts.places(a)
        return [places[i] for i in table if i < len(places)] == list(range(len(table))) and len(
            table
        ) >= best[a]

    rng = Random(3)
    cases = [(positive(rng, 24),) for _ in range(CASES)]
    best = {a: a.right_inverse().size() for (a,) in cases}
    kinds = compare(cute, "right_inverse", cases, TileLayout.right_inverse, right)
    assert all(found["agrees"] > CASES // 2 for found in kinds.values())


def test_left_inverse(cute: Cute) -> None:
    def right(a: TileLayout, table: Table) -> bool:
        places = compacts.places(a)
        return [table[p] for p in places if p < len(table)] == list(range(len(places)))

    rng = Random(4)
    cases = [(positive(rng, 16),) for _ in range(CASES)]
    kinds = compare(cute, "left_inverse", cases, TileLayout.left_inverse, right)
    assert all(found["agrees"] + found["is right too"] > CASES // 10 for found in kinds.values())


def test_logical_divide(cute: Cute) -> None:
    def right(a: TileLayout, b: TileLayout, table: Table) -> bool:
        places, tile = compacts.places(a), compacts.places(b)
        begins = filling(tile, len(places))
        return begins is not None and table == [places[x + y] for x in begins for y in tile]

    rng = Random(5)
    cases = [(positive(rng, 48), positive(rng, 12)) for _ in range(CASES)]
    kinds = compare(cute, "logical_divide", cases, lambda a, b: a.logical_divide(b).layout, right)
    assert all(found["agrees"] > CASES // 50 for found in kinds.values())


def test_logical_product(cute: Cute) -> None:
    rng = Random(6)
    cases = [(positive(rng, 12), positive(rng, 8)) for _ in range(CASES)]
    kinds = compare(cute, "logical_product", cases, lambda a, b: a.logical_product(b).layout, product_right)
    assert all(found["agrees"] > CASES // 10 for found in kinds.values())


def product_right(a: TileLayout, b: TileLayout, table: Table) -> bool:
    places, numbers = compacts.places(a), compacts.places(b)
    offsets = [0]
    if max(numbers):
        offsets = free(places, max(numbers) + 1) if len(set(places)) == len(places) else None
    return offsets is not None and table == [offsets[j] + p for j in numbers for p in places]


@pytest.mark.parametrize("do", ["blocked_product", "raked_product"])
def test_products_by_dimension(cute: Cute, do: str) -> None:
    """tensor-layouts alone has these.  It keeps whole spans of A apart and leaves its gaps free, where CuTe's
    definition fills them, as its own logical_product does: without gaps the two are the same.
    """
    rng = Random(7)
    two = [x for size in (4, 6, 9, 10, 15) for x in compacts.compact(size)]
    assert {len(x.shard) for x in two} == {2}
    cases = [(rng.choice(two), compacts.with_gaps(rng.choice(two), rng, backwards=False)) for _ in range(500)]
    questions = [{"of": "tensor_layouts", "do": do, "a": modes(a), "b": modes(b)} for a, b in cases]
    for (a, b), answer in zip(cases, cute.ask(questions), strict=True):
        assert answer["is"]["table"] == compacts.places(getattr(a, do)(b).layout), (do, a, b, answer)


def test_the_witnesses_above(cute: Cute) -> None:
    """Should a later version get one right, the list is out of date."""

    def theirs(peer: str, do: str, a: list, b: Any = None) -> Any:
        question = {"of": peer, "do": do, "a": a} | ({} if b is None else {"b": b})
        (answer,) = cute.ask([question])
        return answer.get("is", {}).get("text", "refused").replace(" ", "")

    for peer in PEERS:
        assert theirs(peer, "compose", [[6, 1], [2, 7]], [[3, 2], [2, 3]]) == "(3,2):(2,3)"
    assert theirs("pycute", "compose", [[4, 3], [2, 12], [8, 97]], [[3, 3]]) == "refused"
    assert theirs("pycute", "complement", [[4, 2]], 7) == "2:1"
    assert (
        theirs("tensor_layouts", "blocked_product", [[2, 1], [2, 4]], [[2, 1], [1, 1]])
        == "((2,2),(2,1)):((1,6),(4,6))"
    )
    assert theirs("pycute", "complement", [[2, 2], [3, 1]], 6) == "(0,2):(3,4)"
