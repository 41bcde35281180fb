"""fuse_threads, split_threads and canonical forms in a scope: the same threads under other axes."""

from __future__ import annotations

from itertools import product

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from property_tests import strategies
from property_tests.algebra import reference
from property_tests.algebra.refusals import check_refusal
from tilelayout import LayoutError, R, S, TileLayout, laneid, m, tid_in_wg, tx, warpid, wgid, wid_in_wg

# Written down once more, not taken from the code: axis -> (threads per step, extent), for each way to count tx.
SYSTEMS = [
    {tx: (1, None)},
    {warpid: (32, None), laneid: (1, 32)},
    {wgid: (128, None), wid_in_wg: (32, 4), laneid: (1, 32)},
    {wgid: (128, None), tid_in_wg: (1, 128)},
]
ROWS = [
    (tx, warpid, laneid, 32),
    (tid_in_wg, wid_in_wg, laneid, 32),
    (warpid, wgid, wid_in_wg, 4),
    (tx, wgid, tid_in_wg, 128),
]


def places(layout: TileLayout) -> list[list[dict]]:
    return [[dict(place) for place in owners] for owners in reference.function(layout)]


def fused(place: dict, whole: str, weights: dict) -> reference.Place:
    out = {a: v for a, v in place.items() if a not in weights}
    out[whole] = sum(place.get(a, 0) * weight for a, weight in weights.items())
    return reference.place(out)


def recount(layout: TileLayout, whole: str, weights: dict) -> list[frozenset]:
    """The owners with several axes replaced by what they make up."""
    return [frozenset(fused(place, whole, weights) for place in owners) for owners in places(layout)]


# --- fusing -------------------------------------------------------------------------------------

INNER = (1, 2, 4, 8, 16, 0, -1, 3)


@st.composite
def of_threads(draw: st.DrawFn, axes: tuple, strides: tuple = INNER, size: int = 64) -> TileLayout:
    shard = draw(strategies.shards(size, 5, (*axes, m), strides))
    replica = draw(strategies.replicas(4, 2, axes, strides))
    offset = draw(
        st.dictionaries(st.sampled_from(axes), st.sampled_from((0, 1, 7, 16, 31, -1, 64)), max_size=2)
    )
    return TileLayout.from_iters(shard, replica, offset)


@pytest.mark.parametrize("system", SYSTEMS[1:], ids=lambda s: "+".join(s))
@given(data=st.data())
def test_fusing_keeps_the_threads(system: dict, data: st.DataObject) -> None:
    """Refused exactly when an inner axis leaves its range."""
    layout = data.draw(of_threads(tuple(system)))
    inside = all(
        0 <= place.get(a, 0) < extent
        for owners in places(layout)
        for place in owners
        for a, (_, extent) in system.items()
        if extent
    )
    try:
        found = layout.fuse_threads(tx)
    except LayoutError as error:
        check_refusal(error, "fuse_threads")
        assert not inside
        return
    assert inside
    assert reference.function(found) == recount(layout, "tx", {a: w for a, (w, _) in system.items()})


def test_axes_that_count_the_same_threads_are_refused() -> None:
    thread_axes = (tx, warpid, laneid, wgid, wid_in_wg, tid_in_wg)
    for one, other in product(thread_axes, repeat=2):
        layout = TileLayout.from_iters([(2, 1, one), (2, 1, other)])
        if one is other or any(one in system and other in system for system in SYSTEMS):
            assert set(layout.fuse_threads(tx).shard) <= {(2, w, tx) for w in (1, 32, 128)}
            continue
        with pytest.raises(LayoutError, match=r"count the same threads"):
            layout.fuse_threads(tx)
    with pytest.raises(
        LayoutError, match=r"(warpid and tid_in_wg|tid_in_wg and warpid) count the same threads"
    ):
        TileLayout(S[(2, 32) : (1 @ warpid, 1 @ laneid)]).fuse_threads("tid_in_wg")


def test_fusing_part_of_the_way() -> None:
    layout = TileLayout(S[(2, 4, 32) : (1 @ wgid, 1 @ wid_in_wg, 1 @ laneid)])
    assert layout.fuse_threads("warpid") == TileLayout(S[(2, 4, 32) : (4 @ warpid, 1 @ warpid, 1 @ laneid)])
    assert layout.fuse_threads("tid_in_wg") == TileLayout(
        S[(2, 4, 32) : (1 @ wgid, 32 @ tid_in_wg, 1 @ tid_in_wg)]
    )
    assert layout.fuse_threads("tx").canonicalize() == TileLayout(S[256 : 1 @ tx])
    plain = TileLayout(S[(2, 4) : (1 @ m, 2)])
    assert plain.fuse_threads("tx") is not None
    assert plain.fuse_threads("tx") == plain


# --- splitting ----------------------------------------------------------------------------------


def can_split(layout: TileLayout, whole: str, outer: str, inner: str, n: int) -> bool:
    """Whether a shard and an offset have the coordinates, for a layout without a replica on the whole."""
    axes = sorted({it.axis.name for it in layout.shard} - {whole} | {outer, inner})
    values = []
    for flat in range(reference.size(layout)):
        at = reference.displacement(layout, flat)
        at[outer], at[inner] = divmod(at.pop(whole, 0), n)
        values.append(tuple(at.get(a, 0) for a in axes))
    return reference.greedy_is_layout(values)


WIDE = (1, 2, 4, 16, 32, 64, 128, 8, 3, 96, 0, -1, -32, 24, 48)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]}-{row[1]}")
@given(data=st.data())
def test_splitting_is_exact(row: tuple, data: st.DataObject) -> None:
    whole, outer, _, n = row
    shard = data.draw(strategies.shards(128, 4, (whole, whole, m), WIDE, (1, 2, 2, 3, 4, 8, 16, 32)))
    offset = data.draw(st.sampled_from((0, 0, n, 3, n // 2, -1, n - 1, 2 * n - 1)))
    layout = TileLayout.from_iters(shard, (), {whole: offset})
    check_split(layout, row)
    if all(it.stride == 0 or it.extent == 1 or it.axis is not whole for it in shard) and not offset:
        return
    exists = can_split(layout, *row)
    try:
        layout.split_threads(whole, outer)
    except LayoutError:
        assert not exists
    else:
        assert exists


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]}-{row[1]}")
@given(data=st.data())
def test_splitting_with_replicas(row: tuple, data: st.DataObject) -> None:
    whole, _, _, n = row
    layout = data.draw(of_threads((whole,), (1, 2, n, 2 * n, n // 2, -1, -n, 4)))
    check_split(layout, row)


def check_split(layout: TileLayout, row: tuple) -> None:
    whole, outer, inner, n = row
    try:
        found = layout.split_threads(whole, outer)
    except LayoutError as error:
        check_refusal(error, "split_threads", "straddles")
        return
    assert recount(found, whole, {outer: n, inner: 1}) == reference.function(layout)
    assert all(0 <= place.get(inner, 0) < n for owners in places(found) for place in owners)
    assert all(whole not in place for owners in places(found) for place in owners)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]}-{row[1]}")
def test_every_small_iter(row: tuple) -> None:
    whole, *_, n = row
    for extent in (2, 3, 4, 6, n, 2 * n, 3 * n // 2):
        for stride in {1, 2, 3, n // 2, n // 4, n, n + 1, 3 * n // 4, 2 * n, -1, -n, -2} - {0}:
            for offset in {0, 1, n // 2, n - 1, n, -1}:
                layout = TileLayout.from_iters([(extent, stride, whole)], (), {whole: offset})
                check_split(layout, row)
                try:
                    layout.split_threads(whole, row[1])
                except LayoutError:
                    assert not can_split(layout, *row), layout
                else:
                    assert can_split(layout, *row), layout


def test_an_iter_that_straddles_is_named() -> None:
    with pytest.raises(LayoutError, match=r"the iter 3:16 @ tx of the shard straddles the boundaries of 32"):
        TileLayout(S[3 : 16 @ tx]).split_threads("tx")
    with pytest.raises(LayoutError, match=r"the iter 3:16 @ tx of the replica straddles"):
        TileLayout(S[4] + R[3 : 16 @ tx]).split_threads("tx")
    with pytest.raises(LayoutError, match=r"tx has no outer axis wid_in_wg \(remedy: one of warpid, wgid\)"):
        TileLayout(S[3 : 16 @ tx]).split_threads("tx", "wid_in_wg")
    for do in (TileLayout.split_threads, TileLayout.fuse_threads):
        with pytest.raises(LayoutError, match="laneid is not made up of other axes"):
            do(TileLayout(S[3 : 16 @ tx]), "laneid")


def test_a_run_that_fits_only_when_it_is_fused() -> None:
    found = TileLayout(S[(32, 3) : (3 @ tx, 1 @ tx)]).split_threads("tx")
    assert found == TileLayout(S[(3, 32) : (1 @ warpid, 1 @ laneid)])


def test_symbols() -> None:
    n = sympy.Symbol("n", integer=True, positive=True)
    k = sympy.Symbol("k", integer=True, nonnegative=True)
    layout = TileLayout(S[(n, 32) : (32 @ tx, 1 @ tx)] + (32 * k) @ tx)
    found = layout.split_threads("tx")
    assert found == TileLayout(S[(n, 32) : (1 @ warpid, 1 @ laneid)] + k @ warpid)
    assert found.fuse_threads("tx") == layout
    with pytest.raises(LayoutError, match="straddles"):
        TileLayout(S[n : 1 @ tx]).split_threads("tx")


# --- canonical forms ----------------------------------------------------------------------------


@given(st.data())
def test_layouts_with_the_same_threads_have_the_same_form(data: st.DataObject) -> None:
    """However they count them, in every scope that has a form."""
    layout = data.draw(of_threads((warpid, laneid), (1, 2, 4, 8, 16), 128))
    try:
        one = layout.canonicalize("warp")
    except LayoutError:
        return
    assert reference.function(one) == reference.function(layout)
    whole = layout.canonicalize("cta")
    assert reference.function(whole) == recount(layout, "tx", {warpid: 32, laneid: 1})
    assert whole.canonicalize("warp") == one
    assert one.canonicalize("cta") == whole
    try:
        groups = whole.canonicalize("warpgroup")
    except LayoutError as error:
        check_refusal(error, "canonicalize", "straddles")
        return
    assert recount(groups, "tx", {wgid: 128, tid_in_wg: 1}) == reference.function(whole)
    assert groups.canonicalize("warp") == one
    assert groups.canonicalize("warpgroup") == groups


def test_scopes_by_name() -> None:
    layout = TileLayout(S[(2, 4, 8, 4, 2) : (1 @ wgid, 1 @ wid_in_wg, 4 @ laneid, 1 @ laneid, 1)])
    assert layout.canonicalize("cta") == TileLayout(S[(256, 2) : (1 @ tx, 1)])
    assert layout.canonicalize("warp") == TileLayout(S[(8, 32, 2) : (1 @ warpid, 1 @ laneid, 1)])
    assert layout.canonicalize(scope="warpgroup") == TileLayout(S[(2, 128, 2) : (1 @ wgid, 1 @ tid_in_wg, 1)])
    assert layout.canonicalize() != layout.canonicalize("cta"), "nothing is assumed without a scope"
    for scope in ("warps", 5, ["cta"]):
        with pytest.raises(LayoutError, match="canonicalize: unknown scope"):
            layout.canonicalize(scope)
