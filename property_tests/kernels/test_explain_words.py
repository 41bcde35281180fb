"""What explain refuses, as a launch does; and the order in which it names variants."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lowering import (
    DispatchError,
    Tile,
    Window,
    copy,
    lower,
)
from lowering.kernels import Config
from lowering.kernels.gemm.shapes import Shaped
from tilelayout import S, TileLayout

from .refusing import FEEDS, TMA, kernel, refused


@pytest.mark.parametrize("order", ["row", "column"])
@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ((1 << 40, 64, 64), "M = 1099511627776 is beyond 1073741823"),
        ((64, 1 << 31, 64), "N = 2147483648 is beyond 1073741823"),
        ((64, 64, 1 << 30), "K = 1073741824 is beyond 1073741823"),
        ((64, 64, (1 << 29) + 8), "the leading dimension of A = 536870920 is beyond 536870911"),
    ],
)
def test_explain_refuses_what_a_launch_does(sizes: tuple[int, int, int], words: str, order: str) -> None:
    made = kernel(D=order)
    refused(lambda: made.explain(*sizes), words)
    m, n, k = sizes
    shaped = {"A": Shaped((m, k), (k, 1)), "B": Shaped((k, n), (n, 1)),
              "D": Shaped((m, n), (n, 1) if order == "row" else (1, m))}  # fmt: skip
    refused(lambda: made.for_call(made.internal(shaped), 1.0, False, 132), words)


def test_more_tiles_than_are_counted() -> None:
    made = kernel(config=Config((16, 16, 32), (1, 1), 2, "registers"))
    refused(lambda: made.explain(1 << 28, 1 << 28, 16), "tiles", "is beyond")


def test_explain_lists_variants_in_the_order_in_which_they_are_tried() -> None:
    from lowering import registered

    tried = [v.name for v in sorted(registered("copy"), key=lambda v: (-v.priority, v.name))]
    for feed in FEEDS:
        text = kernel(config=replace(TMA, feed=feed, stages=2)).explain()
        pieces = [p for p in text.split("\n\n") if ": copy." in p.splitlines()[0]]
        assert len(pieces) >= 4
        for piece in pieces:
            reasons = [
                line.removeprefix("  not ") for line in piece.splitlines() if line.startswith("  not ")
            ]
            names = [name for reason in reasons for name in reason.partition(":")[0].split(", ")]
            assert names == [n for n in tried if n in names], piece


def test_a_window_names_the_variants_in_their_order() -> None:
    shared = Tile("s", (64, 64), "float16", TileLayout(S[64, 64]), "shared")
    with pytest.raises(DispatchError) as error:
        lower(copy(shared, Window.matrix("A", "float16", (64, 64))), target="sm_80", scope="cta", launch=128,
              dispatch="copy.vector")  # fmt: skip
    said = " ".join(str(error.value).split())
    assert "copy.predicated and copy.bulk_tensor and copy.cp_async take those" in said
