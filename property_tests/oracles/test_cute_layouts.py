"""What only one of pycute and tensor-layouts has, and what is known of both by name; `test_peers` compares the rest.

CuTe counts the first mode fastest: modes are reversed on the way, and the tables of values are then the same list.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from property_tests.algebra import compacts
from property_tests.oracles.client import Peer
from property_tests.oracles.interpreter import interpreter
from property_tests.oracles.peer_questions import modes

pytestmark = [pytest.mark.slow, pytest.mark.oracle]

CUTE_SERVER = Path(__file__).with_name("cute_server.py")
PEERS = ("pycute", "tensor_layouts")


@pytest.fixture(scope="module")
def cute() -> Iterator[Peer]:
    """The interpreter that has pycute and tensor-layouts."""
    peer = Peer(interpreter("pycute", "tensor_layouts"), CUTE_SERVER)
    yield peer
    peer.close()


@pytest.mark.parametrize("do", ["blocked_product", "raked_product"])
def test_products_by_dimension(cute: Peer, do: str) -> None:
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


def test_the_witnesses_above(cute: Peer) -> None:
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
