"""TVM, asked by the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from property_tests.oracles.tvm_client import Tvm


@pytest.fixture(scope="session")
def tvm(tvm_python: Path) -> Iterator[Tvm]:
    peer = Tvm(tvm_python)
    found = peer.ask([{"do": "version", "layout": {"shard": [[1, 1, "m"]]}}])
    assert "is" in found[0], f"{tvm_python} runs no TVM: {found}"
    yield peer
    peer.close()
