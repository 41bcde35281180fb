"""`peers` with fewer instances: nothing that we answer is wrong, nothing that a peer has right is refused.

docs/peers.md says what the disagreements are.  Its first table, of named inputs, is made again and must be what it was:
when a peer answers one of them otherwise, the page is out of date.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from property_tests.oracles import peers
from property_tests.oracles.client import Peer
from property_tests.oracles.interpreter import interpreter

pytestmark = [pytest.mark.slow, pytest.mark.oracle]

COUNT = 500
OPERATIONS = [(name, draw[0]) for name, library in peers.LIBRARIES.items() for draw in library.draws()]


@pytest.fixture(scope="module")
def python() -> Path:
    """The interpreter that has all peers."""
    return interpreter("tvm", "pycute", "tensor_layouts", "triton")


@pytest.fixture(scope="module")
def servers(python: Path) -> Iterator[dict[str, Peer]]:
    made = {x.server: Peer(python, peers.HERE / x.server) for x in peers.LIBRARIES.values()}
    yield made
    for peer in made.values():
        peer.close()


@pytest.mark.parametrize(("name", "operation"), OPERATIONS, ids=lambda x: str(x).replace(" ", "-"))
def test_no_disagreement_is_our_fault(servers: dict[str, Peer], name: str, operation: str) -> None:
    library = peers.LIBRARIES[name]
    row = peers.compare(servers[library.server], operation, dict(library.draws())[operation], 2, COUNT)
    assert not any(row.counts[column] for column in peers.FAULTS), row
    assert row.counts[peers.AGREE] > 0


def test_named_inputs_are_answered_as_the_document_says(python: Path) -> None:
    text = peers.DOCUMENT.read_text()
    written = text.split("<!-- named: begin -->\n")[1].split("\n<!-- named: end -->")[0]
    assert peers.named_table(python) == written
