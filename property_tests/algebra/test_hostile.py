"""What a hostile author would try: rank, size, recursion, odd types, threads.  An answer or a LayoutError, soon."""

from __future__ import annotations

import re
import sys
import threading
import time
from collections import OrderedDict, UserList, deque, namedtuple
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from property_tests import strategies
from tilelayout import Iter, LayoutError, R, S, TileLayout, laneid, m, warpid

HUGE = 10**30


def tower(rank: int) -> TileLayout:
    """`rank` iters of extent 2, on two axes in turn, so that nothing merges."""
    return TileLayout.from_iters([(2, 3**i, (m, laneid)[i % 2]) for i in range(rank)])


def test_a_thousand_iters() -> None:
    """Every operation is linear, or nearly so, and none recurses."""
    rank = 1000
    layout = tower(rank)
    shape = (2,) * rank
    start = time.process_time()
    assert layout.size() == 2**rank
    assert layout.canonicalize() == layout
    assert layout.group(shape) == (layout, tuple(range(rank + 1)))
    assert layout.group((2**500, 2**500))[1] == (0, 500, 1000)
    assert layout.apply(2**rank - 1) == layout.apply(*[1] * rank) == layout.apply(*[1] * rank, shape=shape)
    assert layout.slice(shape, [(1, 2)] * rank).apply(0) == layout.apply(2**rank - 1)
    assert layout.slice((2**rank,), [(2**999, 2**1000)]).size() == 2**999
    assert layout.permute_dims(range(rank)[::-1]).shard == layout.shard[::-1]
    assert layout.permute_by_groups(range(rank + 1), range(rank)) == layout
    assert layout.tile_to((2**rank * 2,), (2**rank,)).size() == 2 ** (rank + 1)
    assert layout.unpack(2).pack(2).canonicalize() == layout
    assert TileLayout.parse(str(layout)) == layout
    assert len({layout, tower(rank)}) == 1
    layout.span()
    layout.storage()
    assert time.process_time() - start < 5


def test_extents_of_any_size() -> None:
    layout = TileLayout(S[(HUGE, 7, HUGE) : (HUGE**2, -HUGE, 3)] + R[HUGE:HUGE] + HUGE**3)
    size = 7 * HUGE**2
    assert layout.size() == size
    assert layout.apply(size - 1) == {m: (HUGE - 1) * HUGE**2 - 6 * HUGE + (HUGE - 1) * 3 + HUGE**3}
    assert layout.group((7 * HUGE, HUGE))[1] == (0, 2, 3)
    assert layout.slice((size,), [(HUGE - 1, HUGE)]).apply(0) == layout.apply(HUGE - 1)
    assert layout.tile_to((2 * size,), (size,)).size() == 2 * size
    assert TileLayout.parse(str(layout)) == layout
    assert layout.canonicalize().canonicalize() == layout.canonicalize()


class Row(tuple):
    __slots__ = ()


def test_sequences_of_every_type_are_shapes() -> None:
    layout = TileLayout(S[8, 4])
    expected = layout.group((8, 4))
    pair = namedtuple("pair", "rows columns")
    for shape in (
        pair(8, 4),
        Row((8, 4)),
        UserList([8, 4]),
        deque([8, 4]),
        (n for n in (8, 4)),
        np.array([8, 4]),
    ):
        assert layout.group(shape) == expected


def ways(layout: TileLayout, x: object) -> list[Callable[[], object]]:
    """Every argument of every public method, given `x`."""
    return [
        lambda: TileLayout(x),
        lambda: TileLayout.from_iters(x),
        lambda: TileLayout.from_iters([x]),
        lambda: TileLayout.from_iters([(2, 1)], x),
        lambda: TileLayout.from_iters([(2, 1)], (), x),
        lambda: TileLayout.from_iters([(2, 1)], (), {x: 1}),
        lambda: TileLayout.from_iters([(2, 1)], (), {"m": x}),
        lambda: TileLayout.parse(x),
        lambda: Iter(x, 1),
        lambda: Iter(2, x),
        lambda: Iter(2, 1, x),
        lambda: S[x],
        lambda: S[2:x],
        lambda: S[x:2],
        lambda: S[(2, x) : (1, x)],
        lambda: S[2 : x @ laneid],
        lambda: R[x],
        lambda: layout.span(x),
        lambda: layout.apply(x),
        lambda: layout.apply(x, x),
        lambda: layout.apply(0, shape=x),
        lambda: layout.apply(x, shape=x),
        lambda: layout.owners(x),
        lambda: layout.owners(0, 0, shape=x),
        lambda: layout.table(x),
        lambda: layout.group(x),
        lambda: layout.group((x, x)),
        lambda: layout.slice(x, [(0, 1)]),
        lambda: layout.slice((8, 4), x),
        lambda: layout.slice((8, 4), [x, x]),
        lambda: layout.slice((8, 4), [(x, 8), (0, x)]),
        lambda: layout.tile(x, (1,), (32,)),
        lambda: layout.tile(layout, x, (32,)),
        lambda: layout.tile(layout, (32,), x),
        lambda: layout.tile_to(x, x),
        lambda: layout.tile_to((8, x), (8, 4)),
        lambda: layout.permute_dims(x),
        lambda: layout.permute_dims([x, x]),
        lambda: layout.permute_by_groups(x, (0, 1)),
        lambda: layout.permute_by_groups((0, 1, 2), x),
        lambda: layout.pack(x),
        lambda: layout.unpack(x),
    ]


def odd_values() -> list[object]:
    import decimal

    import sympy

    from tilelayout.expr import Var

    recursive: list = []
    recursive.append(recursive)
    return [
        None, True, -1, 0, HUGE, 1.5, float("nan"), float("inf"), 1j, "", "m", "S[8]", "\x00", b"ab", (), [], {}, set(),
        (1, (2, 3)), [[8], [4]], recursive, {"m": 1}, {8: 4}, {8, 4}, range(0), range(8), slice(None), slice(1, 2), ...,
        NotImplemented, object(), object, len, lambda: 8, iter(()), np.array(8), np.array([]), np.array([8, 4]),
        np.array([[8, 4]]), np.array([8.0]), np.array(["8"]), np.array([None]), np.float32(8), np.bool_(True),
        np.uint64(2**64 - 1), np.int8(-1), np.datetime64("2020"), decimal.Decimal(8), sympy.Symbol("x"), sympy.oo,
        sympy.Symbol("x", integer=True), sympy.Symbol("x", integer=True, positive=True), sympy.Integer(8), sympy.true,
        sympy.Matrix([8]), Var("x"), Var("x", 1, 8) + 1,
        laneid, 4 @ laneid, 4 @ laneid + 1, S, R, S[8], R[2:1], TileLayout(S[8]), Iter(8, 1),
        Exception("x"), threading.Lock(), sys, type("Odd", (), {"__index__": lambda self: "8"})(),
        type("Odd", (), {"__len__": lambda self: 2})(), type("Odd", (), {"__iter__": lambda self: iter((8, 4))})(),
        type("Odd", (str,), {})("m"), type("Odd", (dict,), {})(m=1), OrderedDict(m=1),
    ]  # fmt: skip


@pytest.mark.parametrize("x", odd_values(), ids=lambda x: type(x).__name__)
def test_odd_arguments_are_accepted_or_refused(x: object) -> None:
    """No AttributeError, IndexError, OverflowError ...; TypeError only where Python has no such operator."""
    layout = TileLayout(S[(8, 4) : (4 @ laneid, 1)] + R[2 : 4 @ warpid])
    for i, way in enumerate(ways(layout, x)):
        try:
            way()
        except LayoutError:
            pass
        except TypeError as error:
            if not re.search("unsupported operand type|unhashable type|__index__", str(error)):
                raise AssertionError(f"way {i}") from error


@given(strategies.layouts(), st.integers(-3, 3))
def test_unbound_strides_do_not_break_evaluation(layout: TileLayout, power: int) -> None:
    scaled = TileLayout.from_iters([(e, s * HUGE ** abs(power), a) for e, s, a in layout.shard])
    for flat in (0, layout.size() - 1):
        assert scaled.apply(flat) is not None
    assert scaled.table((scaled.size(),)) is not None


def test_threads_share_layouts() -> None:
    """The first use fills caches: size, hash, iters."""
    for _ in range(20):
        layout = tower(12)
        found: list[tuple] = []
        start = threading.Barrier(8)

        def use(layout: TileLayout = layout, found: list = found, start: threading.Barrier = start) -> None:
            start.wait()
            found.append((hash(layout), layout.size(), layout.shard, str(layout), layout.apply(77)[m]))

        threads = [threading.Thread(target=use) for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert len(found) == 8
        assert len(set(found)) == 1


def test_no_operation_is_stopped_by_an_optimizing_interpreter() -> None:
    """Refusals are no asserts: they hold under -O."""
    import os
    import subprocess

    code = """
from tilelayout import LayoutError, S, TileLayout
tries = [lambda: S[0], lambda: TileLayout(S[8]).group((3,)), lambda: TileLayout(S[8]).apply(8),
         lambda: TileLayout(S[8]).slice((8,), [(0, 9)]), lambda: TileLayout(S[8]).pack(3)]
for attempt in tries:
    try:
        attempt()
    except LayoutError:
        continue
    raise SystemExit("accepted")
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-O", "-c", code], env=environment, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
