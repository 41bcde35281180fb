"""How a layout is aligned decides what may copy it: derived from its strides, as of a leading dimension."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowering.backends.driver.tensor_map import encoder
from lowering.dtypes import dtype
from lowering.kernels import Config, gemm
from lowering.kernels.gemm.config import FEEDS, Feed
from lowering.kernels.gemm.operands import flipped
from lowering.kernels.gemm.placed import placed
from tilelayout import LayoutError, S, TileLayout

M, N, K = 24, 16, 32
TYPES = ("float16", "int8", "tfloat32", "float64")


@st.composite
def layouts(draw: st.DrawFn, rows: int, columns: int) -> TileLayout:
    """Of a matrix: its dimensions in one or two iters each, nested in any order, with gaps, and an offset."""
    digits: list[tuple[int, int]] = []
    for d, extent in enumerate((rows, columns)):
        inner = draw(st.sampled_from([n for n in range(1, extent + 1) if extent % n == 0]))
        digits += [(d, extent // inner), (d, inner)]
    strides, reach = [0] * len(digits), 1
    for k in draw(st.permutations(range(len(digits)))):
        strides[k] = reach
        reach = reach * digits[k][1] + draw(st.sampled_from([0, 0, 0, 1, 2, 8]))
    offset = draw(st.sampled_from([0, 0, 1, 4, 16]))
    return TileLayout(S[tuple([n for _, n in digits]) : tuple(strides)] + offset)


@given(layouts(M, K), st.sampled_from(TYPES))
def test_what_is_promised_of_every_element(layout: TileLayout, kind: str) -> None:
    """Vectors of the alignment begin at multiples of it, and are neighbors."""
    found = placed("A", kind, layout, (M, K))
    at = layout.table((M, K))["m"]
    lines = at if found.order == "row" else at.T
    each = dtype(kind).bits // 8
    count = found.alignment // each
    if count > 1:
        assert (lines[:, ::count] * each % found.alignment == 0).all()
        for k in range(lines.shape[1]):
            assert (lines[:, k] - lines[:, k // count * count] == k % count).all()
    turned = flipped(found, "B")
    assert turned is not None
    assert turned.alignment == placed("B", kind, turned.layout, (K, M)).alignment  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("order", ["row", "column"])
def test_rows_by_a_layout_are_aligned_as_rows_are(kind: str, order: str) -> None:
    """One rule for a leading dimension and for the layout that says the same."""
    each = dtype(kind).bits // 8
    for leading in range(32, 65):
        layout = TileLayout(S[(32, 32) : ((leading, 1) if order == "row" else (1, leading))])
        found = placed("A", kind, layout, (32, 32))
        widest = max(n for n in (1, 2, 4, 8, 16) if leading * each % n == 0)
        assert (found.order, found.alignment) == (order, max(each, widest))


def operands(seed: int = 5) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    return (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((M, K), (K, N)))  # type: ignore[return-value]


@pytest.mark.slow
@given(
    layouts(M, K), layouts(K, N), st.sampled_from(FEEDS), st.sampled_from(["row", "column"]),
    st.sampled_from([2, 4, 8, 16]),
)  # fmt: skip
def test_every_feed_that_is_not_refused_is_right(
    a: TileLayout, b: TileLayout, feed: Feed, d: str, alignment: int
) -> None:
    """And so is the one that is chosen; of a refused one a feed is named that is not."""
    cut = Config((16, 16, 32), (1, 1), 2, feed)
    left, right = operands()
    wanted = left.astype(float) @ right.astype(float)

    def result(config: Config | None) -> Any:
        made = gemm("float16", A=a, B=b, D=d, shape=(M, N, K), target="sm_90a", config=config)
        return made.simulate(left, right, alignment=alignment)

    try:
        found = result(cut)
    except LayoutError as error:
        said = str(error)
        other: Any = said.partition("feed='")[2].partition("'")[0]
        assert other in FEEDS, said
        assert other != feed
        found = result(Config(cut.tile, cut.warps, 2, other))
    np.testing.assert_array_equal(found.astype(float), wanted)
    np.testing.assert_array_equal(result(None).astype(float), wanted)


CUTS = (
    None,
    Config((16, 32, 32), (1, 1), 2, "cp_async", slots=1, sender="threads"),
    Config((16, 16, 32), (1, 1), 2, "registers", splits=2),
)


@pytest.mark.slow
@given(
    layouts(M, N), st.sampled_from(["row", "column"]), st.sampled_from([4, 8, 16]), st.sampled_from(CUTS),
    st.sampled_from(["float16", "float32"]),
)  # fmt: skip
def test_c_is_read_from_wherever_it_is(
    c: TileLayout, d: str, alignment: int, cut: Config | None, out: str
) -> None:
    left, right = operands()
    added = np.arange(M * N).reshape(M, N) % 7
    made = gemm("float16", C=c, D=d, out=out, shape=(M, N, K), target="sm_90a", config=cut)
    found = made.simulate(left, right, C=added.astype(out), beta=2.0, alignment=alignment)
    np.testing.assert_array_equal(found.astype(float), left.astype(float) @ right + 2.0 * added)


FEEDS_OF: dict[str, tuple[TileLayout, Feed]] = {
    "rows": (TileLayout(S[(64, 64) : (72, 1)]), "tma"),
    "columns": (TileLayout(S[(64, 64) : (1, 64)]), "tma"),
    "blocks": (TileLayout(S[(16, 4, 8, 8) : (32, 8, 512, 1)]), "cp_async"),
    "offset": (TileLayout(S[(64, 64) : (64, 1)] + 8), "cp_async"),
    "pairs": (TileLayout(S[(64, 32, 2) : (2, 128, 1)]), "cp_async"),
    "one row for all": (TileLayout(S[(64, 64) : (0, 1)]), "cp_async"),
    "odd": (TileLayout(S[(64, 64) : (65, 1)]), "registers"),
    "no neighbors": (TileLayout(S[(64, 64) : (128, 2)]), "registers"),
    "odd offset": (TileLayout(S[(64, 64) : (64, 1)] + 1), "registers"),
}


@pytest.mark.parametrize("name", FEEDS_OF)
@pytest.mark.parametrize("order", ["row", "column"])
def test_the_fastest_feed_is_taken(name: str, order: str) -> None:
    layout, feed = FEEDS_OF[name]
    made = gemm("float16", A=layout, D=order, shape=(64, 64, 64), target="sm_90a")
    assert made.best.config.feed == feed
    a = np.broadcast_to(np.ones((64, 64), np.float16), (64, 64))
    assert (made.simulate(a, a) == 64).all()


@pytest.mark.parametrize("order", ["row", "column"])
def test_what_the_copy_engine_is_told_of_a_layout(order: str) -> None:
    """Extents and strides are constants of the map, as those of the launch are beside it."""
    placed_ = gemm(
        "float16", A=TileLayout(S[(64, 48) : (56, 1)]), D=order, shape=(64, 40, 48), target="sm_90a"
    )
    plain = gemm("float16", D=order, target="sm_90a")
    extents: dict[str, int] = {"M": 64, "N": 40, "K": 48, "lda": 56, "ldb": 56}
    if order == "column":
        extents = {"M": 40, "N": 64, "K": 48, "lda": 56, "ldb": 56}
    which = "A" if order == "row" else "B"
    found = [
        encoder(next(m for m in made.program.maps if m.buffer.name == which)).extents(extents)
        for made in (placed_, plain)
    ]
    assert found[0] == found[1] == ((48, 64), (112,))
