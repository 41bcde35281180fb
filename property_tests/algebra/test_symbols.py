"""Symbolic sizes: whatever numbers are put in later, the answer is the one for numbers."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from itertools import pairwise, product

import pytest
import sympy

from property_tests.algebra import reference
from tilelayout import Iter, LayoutError, R, S, TileLayout, laneid, warpid

N = sympy.Symbol("n", integer=True, positive=True)
Q = sympy.Symbol("q", integer=True, positive=True)
K = sympy.Symbol("k", integer=True)
VALUES = [{N: n, Q: q, K: k} for n, q, k in product((1, 2, 3), (1, 4), (-2, 0, 5))]


def number(x: object, values: dict) -> int:
    found = sympy.sympify(x).subs(values)
    assert found.is_Integer, found
    return int(found)


def at(layout: TileLayout, values: dict) -> TileLayout:
    """The layout with numbers for its symbols."""
    parts = [
        [Iter(*[number(x, values) for x in it[:2]], it[2]) for it in p]
        for p in (layout.shard, layout.replica)
    ]
    return TileLayout.from_iters(*parts, {a: number(v, values) for a, v in layout.offset.items()})


# --- sizes ------------------------------------------------------------------------------------------

LAYOUTS = [
    TileLayout(S[N, 4]),
    TileLayout(S[(4, N) : (N, 1)]),
    TileLayout(S[(N, Q, 2) : (2 * Q, 2, 1)] + K @ laneid + N),
    TileLayout(S[(2, N + 1) : (K, -N)] + R[2 : N @ warpid]),
    TileLayout(S[(N, 2, Q) : (1 @ warpid, K @ laneid, 3)] + (K - N)),
    TileLayout(S[(2 * N, 1, 4) : (4, K, 1)] + R[(2, 2) : (K, N)]),
    TileLayout(S[(N, N) : (N, 1)]),
    TileLayout(S[(6, N) : (0, 0)] + R[3:-N]),
]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_apply_of_symbolic_layouts(layout: TileLayout) -> None:
    """Flat symbols, numbers, one per iter: for every choice of numbers, at every index."""
    i = sympy.Symbol("i", integer=True, nonnegative=True)
    found = layout.owners(i)
    coord = sympy.symbols(f"c:{len(layout.shard)}", integer=True, nonnegative=True)
    per_iter = layout.apply(*coord)
    for values in VALUES[::2]:
        concrete = at(layout, values)
        extents = [it.extent for it in concrete.shard]
        for flat, point in enumerate(reference.coordinates(extents)):
            places = {
                reference.place({a: number(v, {**values, i: flat}) for a, v in o.items()}) for o in found
            }
            assert places == reference.owners(concrete, flat)
            chosen = {**values, **dict(zip(coord, point, strict=True))}
            place = reference.place({a: number(v, chosen) for a, v in per_iter.items()})
            assert place == reference.place(reference.displacement(concrete, flat))


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_canonical_symbolic_layouts(layout: TileLayout) -> None:
    canonical = layout.canonicalize()
    assert canonical.canonicalize() == canonical
    for values in VALUES:
        assert reference.function(at(canonical, values)) == reference.function(at(layout, values))


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize(
    "operation",
    [
        lambda x: x.permute_dims(range(len(x.shard))[::-1]),
        lambda x: x.tile_to((3 * x.size(),), (x.size(),)),
        lambda x: x.tile(TileLayout(S[Q:K] + K), (Q,), (x.size(),)),
        lambda x: x.unpack(4),
        lambda x: x.unpack(Q),
        lambda x: x.unpack(N).pack(N),
        lambda x: x.storage(),
        lambda x: x.slice((x.size(),), [(0, x.size())]),
        lambda x: x.group((x.size(), 1))[0],
        lambda x: x.group([it.extent for it in x.shard])[0],
    ],
    ids=[
        "permute",
        "tile_to",
        "tile",
        "unpack",
        "unpack q",
        "pack",
        "storage",
        "slice",
        "group",
        "group iters",
    ],
)
def test_operations_commute_with_putting_numbers_in(layout: TileLayout, operation: object) -> None:
    """Or refuse: then some sign or divisibility isn't known, and the message says of what."""
    refusal = ""
    try:
        found = operation(layout)
    except LayoutError as error:
        refusal = str(error)
    if refusal:
        assert re.search(r"the sign of .*\b[nqk]\b.* is not known", refusal)
        return
    for values in VALUES[::2]:
        expected = operation(at(layout, values)) if not uses(operation) else None
        if expected is not None:
            assert reference.function(at(found, values)) == reference.function(expected)


def uses(operation: object) -> bool:
    """Whether the operation has a symbol of its own, which needs its number too."""
    return any(isinstance(x, str) and x in ("N", "Q", "K") for x in operation.__code__.co_names)


@pytest.mark.parametrize(
    ("layout", "canonical"),
    [
        (S[(N, 4) : (4, 1)], S[4 * N : 1]),
        (S[(4, N) : (N, 1)], S[4 * N : 1]),
        (S[(N, Q) : (Q, 1)], S[N * Q : 1]),
        (S[(2, N + 1) : (K * N + K, K)], S[2 * N + 2 : K]),
        (S[(N, 4) : (N, 1)], S[(N, 4) : (N, 1)]),
        (S[(N, 4) : (4 @ laneid, 1)], S[(N, 4) : (4 @ laneid, 1)]),
        (S[(1, N) : (K, 1)], S[N:1]),
        (S[N:1] + R[(N, 2) : (1, 1)], S[N:1] + R[N + 1 : 1]),
        (S[N:1] + R[(N, 2) : (1, 2)], S[N:1] + R[(N, 2) : (1, 2)]),
        (S[N:1] + R[(N + 2, 3) : (1, 4)], S[N:1] + R[(N + 2, 3) : (1, 4)]),
        (S[N:1] + R[(N + 2, 3) : (1, 3)], S[N:1] + R[N + 8 : 1]),
        (S[N:1] + R[(N + 2, 3) : (1, 2)], S[N:1] + R[N + 6 : 1]),
        (S[N:1] + R[4:-N], S[N:1] + R[4:N] - 3 * N),
    ],
)
def test_what_is_proved_is_merged(layout: object, canonical: object) -> None:
    assert TileLayout(layout).canonicalize() == TileLayout(canonical)


def test_different_symbols_of_one_name_are_not_taken_for_one() -> None:
    """sympy tells them apart; a proof by name would merge iters that don't merge."""
    for one, other in (
        (sympy.Dummy("n", integer=True, positive=True), sympy.Dummy("n", integer=True, positive=True)),
        (N, sympy.Symbol("n", integer=True, positive=True, even=True)),
    ):
        layout = TileLayout(S[(2, one) : (other, 1)])
        assert layout.canonicalize() == layout
        with pytest.raises(LayoutError):
            layout.group((2 * other,))
        with pytest.raises(LayoutError):
            layout.apply(one, other, shape=(2 * one, other))
        assert TileLayout(S[(2, one) : (one, 1)]).canonicalize() == TileLayout(S[2 * one : 1])


@pytest.mark.parametrize(
    ("layout", "shape", "grouped", "seps"),
    [
        (S[4 * N, 8], (N, 4, 8), S[(N, 4, 8) : (32, 8, 1)], (0, 1, 2, 3)),
        (S[4 * N, 8], (N, 32), S[(N, 4, 8) : (32, 8, 1)], (0, 1, 3)),
        (S[(N, 4, Q) : (1, 2, 3)], (4 * N, Q), S[(N, 4, Q) : (1, 2, 3)], (0, 2, 3)),
        (S[N * Q], (N, Q), S[(N, Q) : (Q, 1)], (0, 1, 2)),
        (S[(4, N) : (N, 1)], (N, 4), S[(N, 4) : (4, 1)], (0, 1, 2)),
        (S[N * (N + 1)], (N + 1, N), S[(N + 1, N) : (N, 1)], (0, 1, 2)),
    ],
)
def test_symbolic_groups(layout: object, shape: tuple, grouped: object, seps: tuple) -> None:
    found = TileLayout(layout).group(shape)
    assert found[1] == seps
    assert [it.axis for it in found[0].shard] == [it.axis for it in TileLayout(grouped).shard]
    for it, expected in zip(found[0].shard, TileLayout(grouped).shard, strict=True):
        assert sympy.expand(it.extent - expected.extent) == 0
        assert sympy.expand(it.stride - expected.stride) == 0


@pytest.mark.parametrize(
    ("layout", "shape", "word"),
    [
        (S[(N, 4) : (9, 1)], (2, 2 * N), "unevenly"),
        (S[N, 4], (N, 5), "elements"),
        (S[N, 4], (N, Q), "elements"),
        (S[8], (N,), "elements"),
        (S[N], (8,), "elements"),
        (S[N], (K,), "not known to be positive"),
        (S[N], (N / 2, 2), "integer"),
    ],
)
def test_shapes_that_are_not_known_to_fit_are_refused(layout: object, shape: tuple, word: str) -> None:
    with pytest.raises(LayoutError, match=word):
        TileLayout(layout).group(shape)


# --- slices (C34 and its kind) ----------------------------------------------------------------------


def test_bounds_that_fold_are_numbers() -> None:
    k = sympy.Symbol("k", integer=True, nonnegative=True)
    layout = TileLayout(S[64])
    expected = layout.slice((64,), [(8, 16)])
    for bounds in (
        ((8 * 2) - (4 * 2), 16),
        (2 * k + 8 - 2 * k, 2 * k + 16 - 2 * k),
        (sympy.Integer(8), sympy.Integer(16)),
        ((k + 1) ** 2 - k * (k + 2) + 7, (k + 2) * (k + 8) - k * (k + 10)),
    ):
        assert layout.slice((64,), [bounds]) == expected


def test_a_symbolic_begin_moves_into_the_offset() -> None:
    k = sympy.Symbol("k", integer=True, nonnegative=True)
    layout = TileLayout(S[(N + k, 16) : (16, 1)] + 3)
    found = layout.slice((N + k, 16), [(k, k + 1), (4, 8)])
    assert found == TileLayout(S[(1, 4) : (0, 1)] + 16 * k + 7)
    whole_rows = layout.slice((16 * (N + k),), [(16 * k, 16 * k + 16)])
    assert whole_rows.canonicalize() == TileLayout(S[16:1] + 16 * k + 3)


@pytest.mark.parametrize(
    ("shape", "region", "word"),
    [
        ((64,), [(0, N)], "dimension 0: .*n"),
        ((64,), [(N, N + 4)], "not known to end by"),
        ((64,), [(K, 8)], "length 8 - k is symbolic"),
        ((8, 8), [(0, 8), (0, K)], "dimension 1: length k is symbolic"),
        ((64,), [(0, N / 2)], "integer"),
    ],
)
def test_truly_symbolic_bounds_are_refused_by_name(shape: tuple, region: list, word: str) -> None:
    with pytest.raises(LayoutError, match=word):
        TileLayout(S[64]).slice(shape, region)


def test_a_begin_that_may_be_negative_is_refused() -> None:
    below = sympy.Symbol("j", integer=True, nonpositive=True)
    with pytest.raises(LayoutError, match="begin j is not known to be nonnegative"):
        TileLayout(S[N]).slice((N,), [(below, below + 1)])


# --- births and refusals ----------------------------------------------------------------------------


def test_what_folds_is_an_int() -> None:
    layout = TileLayout(S[(sympy.Integer(4), N - N + 2) : (N - N, sympy.Integer(1))] + (N - N) @ laneid)
    assert layout == TileLayout(S[(4, 2) : (0, 1)])
    assert {type(x) for it in layout.shard for x in it[:2]} == {int}


def test_symbolic_layouts_are_values() -> None:
    one, other = (TileLayout(S[(N, 4) : (K, 1)] + N @ laneid) for _ in range(2))
    assert one == other
    assert hash(one) == hash(other)
    assert one != TileLayout(S[(Q, 4) : (K, 1)] + N @ laneid)
    assert one.size() == 4 * N
    assert TileLayout(S[(N, 4) : (4, 1)]).span() == 4 * (N - 1) + 4


@pytest.mark.parametrize(
    ("attempt", "word"),
    [
        (lambda: S[K], "k is not known to be positive"),
        (lambda: S[N - 1], "not known to be positive"),
        (lambda: S[-N], "positive"),
        (lambda: S[N / 2], "integer"),
        (lambda: S[sympy.Symbol("x", positive=True)], "x is not known to be an integer"),
        (lambda: S[8 : sympy.Symbol("x")], "x is not known to be an integer"),
        (lambda: S[8] + sympy.Symbol("x") @ laneid, "x is not known to be an integer"),
        (lambda: TileLayout(S[8:K]).span(), "the sign of stride k"),
        (lambda: TileLayout(S[N]).table(), "n is symbolic"),
        (lambda: TileLayout(S[8:K]).table(), "k is symbolic"),
        (lambda: TileLayout(S[8] + K).table(), "k is symbolic"),
        (lambda: TileLayout(S[8] + R[N:1]).owners(0), "n is symbolic"),
        (lambda: TileLayout(S[8]).apply(sympy.Symbol("x")), "x"),
        (lambda: TileLayout(S[8]).apply(N / 2), "integer"),
        (lambda: TileLayout(S[8]).apply(3, shape=(N,)), "elements"),
        (lambda: TileLayout(S[8]).apply(N, shape=(2, 4)), "1 entries"),
        (lambda: TileLayout(S[8]).apply(N, 8, shape=(2, 4)), "8 of dimension 1 is outside"),
        (lambda: TileLayout(S[8]).apply(N, shape=()), "entries"),
        (lambda: TileLayout(S[8]).apply(N, True, shape=(2, 4)), "integer"),
        (lambda: TileLayout(S[8]).apply(N, 1.0, shape=(2, 4)), "integer"),
        (lambda: TileLayout(S[8]).permute_dims((K,)), "permutation"),
        (lambda: TileLayout(S[8, 2]).permute_by_groups((0, N, 2), (0, 1)), "separators"),
        (lambda: TileLayout(S[2 * N + 1]).pack(2), "does not divide"),
        (lambda: TileLayout(S[N]).tile_to((N + 1,), (N,)), "does not divide"),
    ],
)
def test_what_is_not_known_is_refused(attempt: object, word: str) -> None:
    with pytest.raises(LayoutError, match=word):
        attempt()


def test_symbolic_packs() -> None:
    """C22: 16:1 packs to 8:1, whether 16 is static or not."""
    assert TileLayout(S[2 * N : 1]).pack(2) == TileLayout(S[N:1])
    assert TileLayout(S[(N, 4) : (8 * K, 1)] + 4 * N).pack(4).canonicalize() == TileLayout(S[N : 2 * K] + N)


def test_symbolic_tiles() -> None:
    found = TileLayout(S[8, 4]).tile_to((8 * N, 8), (8, 4))
    for values in VALUES:
        numbers = TileLayout(S[8, 4]).tile_to((8 * values[N], 8), (8, 4))
        assert reference.function(at(found, values)) == reference.function(numbers)


# --- how much work it takes -----------------------------------------------------------------------


def calls(run: Callable[[], object]) -> int:
    """How many functions are called: a measure of work that doesn't depend on the machine."""
    count = 0

    def seen(_frame: object, event: str, _arg: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(seen)
    try:
        run()
    finally:
        sys.setprofile(None)
    return count


def row_major(rank: int) -> TileLayout:
    """As many symbols as iters, all of which are one run."""
    extents = [sympy.Symbol(f"e{d}", integer=True, positive=True) for d in range(rank)]
    return TileLayout(S[tuple(extents)])


def test_ten_symbols_are_one_run() -> None:
    layout = row_major(10)
    assert layout.canonicalize() == TileLayout(S[layout.size() : 1])


I = sympy.Symbol("i", integer=True, nonnegative=True)  # noqa: E741 - an index


@pytest.mark.parametrize(
    "operation",
    [
        lambda x: x.canonicalize(),
        lambda x: x.group((x.size(),)),
        lambda x: x.group([it.extent for it in x.canonicalize().shard] + [1]),
        lambda x: x.apply(I, shape=(x.size(),)),
        lambda x: x.apply(*[I] * len(x.shard)),
        lambda x: x.slice((x.size(),), [(0, 1)]),
        lambda x: x.is_bijective(),
        lambda x: x.inverse(),
        lambda x: x.pack(x.shard[-1].extent),
        lambda x: x.canonicalize(assuming=sympy.Eq(x.shard[0].extent, 4 * x.shard[-1].extent)),
        lambda x: x.canonicalize(assuming=[sympy.Eq(sympy.Mod(it.extent, 4), 0) for it in x.shard]),
    ],
    ids=lambda f: None,
)
def test_no_call_grows_fivefold_with_a_level_more(operation: Callable[[TileLayout], object]) -> None:
    work = []
    for rank in (4, 5, 6, 7, 8):
        layout = row_major(rank)
        operation(layout)  # sympy keeps what it has seen
        work.append(calls(lambda layout=layout: operation(layout)))
    assert all(more < 5 * less for less, more in pairwise(work)), work
    assert work[-1] < 5 * 2**3 * work[0], "far below fivefold a level in the long run"
