"""Swizzled layouts and TVM TIRx's ComposeLayout, thousands at a time.

Wherever the two disagree the definition decides, evaluated by brute force, and it must decide for us, always.
Disagreements are counted by their reason; a kind that isn't listed fails.

What is known of TVM 0.27 (layouts on m, positive strides, an offset, no replica):
  - span is the tile layout's: places that the XOR reaches beyond it aren't counted, nor are they in tile_to;
  - tile_to keeps the swizzle over all copies: where the tile doesn't span whole periods of it, later copies are
    swizzled by other numbers than the first, though Axe's definition asks for copies;
  - tile_to, pack and unpack move or forget offsets, as they do without a swizzle;
  - pack and unpack look at the parameters only: a swizzle that does nothing to the values stands in their way;
  - slice inherits what the slices of tile layouts get wrong and miss; pack takes strides that split an element.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from property_tests.algebra import reference, swizzling
from property_tests.oracles import sampling
from property_tests.oracles.test_tvm_layouts import attempt
from property_tests.oracles.tvm_client import SWIZZLE_SERVER, Tvm, data_of, layout_of
from tilelayout import LayoutError, S, Swizzle, SwizzledLayout, TileLayout

pytestmark = pytest.mark.slow

CASES = 3000


@pytest.fixture(scope="module")
def tvm(tvm_python: Path) -> Iterator[Tvm]:
    peer = Tvm(tvm_python, SWIZZLE_SERVER)
    yield peer
    peer.close()


def sample(seed: int, count: int = CASES) -> tuple[Random, list[SwizzledLayout]]:
    rng = Random(seed)
    found = []
    for _ in range(count):
        inner = sampling.layout(rng, axes=("m",))
        if rng.random() < 0.3:
            inner = TileLayout.from_iters(inner.shard, (), {"m": rng.choice((1, 4, 8, 64, 72, 100))})
        if rng.random() < 0.3:  # the tiles that swizzles are made for
            inner = TileLayout(S[rng.choice((2, 4, 8)), rng.choice((4, 8, 16))])
        bits, base = rng.randint(0, 3), rng.randint(0, 3)
        shift = bits + rng.randint(0, 3)
        found.append(SwizzledLayout(inner, Swizzle(bits, base, rng.choice((shift, shift, -shift)))))
    return rng, found


def rows(
    tvm: Tvm, cases: list[tuple[SwizzledLayout, dict[str, Any]]], do: str, read: Any = layout_of
) -> list[tuple[SwizzledLayout, dict[str, Any], Any]]:
    """Layout, arguments and TVM's answer, None where it was refused."""
    answers = tvm.ask([{"do": do, "layout": data_of(layout), **arguments} for layout, arguments in cases])
    out = []
    for (layout, arguments), answer in zip(cases, answers, strict=True):
        assert "crashed" not in answer, (do, layout, arguments)
        theirs = answer.get("is")
        out.append((layout, arguments, None if theirs is None else read(theirs)))
    return out


def values(layout: SwizzledLayout) -> list[int]:
    return [swizzling.image(layout.swizzle, at["m"]) for at in displacements(layout)]


def displacements(layout: SwizzledLayout) -> list[dict[str, int]]:
    return [{"m": 0, **reference.displacement(layout.layout, i)} for i in range(swizzling.size(layout))]


def test_evaluation(tvm: Tvm) -> None:
    rng, layouts = sample(21, 1500)
    cases = [(layout, {"shape": sampling.factors(rng, layout.size())}) for layout in layouts]
    for layout, arguments, theirs in rows(tvm, cases, "table", dict):
        assert theirs["m"] == layout.table(arguments["shape"])["m"].ravel().tolist(), (layout, arguments)


def test_size_and_span(tvm: Tvm) -> None:
    kinds: Counter[str] = Counter()
    for layout, _, theirs in rows(tvm, [(x, {}) for x in sample(22)[1]], "measure_memory", dict):
        assert theirs["size"] == layout.size()
        found = values(layout)
        assert layout.span() == max(found) - min(found) + 1
        kinds["agree" if theirs["span"] == layout.span() else "TVM leaves the XOR out"] += 1
    assert kinds["agree"] > CASES // 2, kinds
    assert kinds["TVM leaves the XOR out"] > 0, kinds


def test_canonicalize(tvm: Tvm) -> None:
    for layout, _, theirs in rows(tvm, [(x, {}) for x in sample(23)[1]], "canonicalize"):
        assert layout.equivalent(theirs), layout
        assert theirs.layout == layout.layout.canonicalize() or layout.size() == 1
        assert theirs.canonicalize() == layout.canonicalize()


def test_slice(tvm: Tvm) -> None:
    rng, layouts = sample(24)
    cases = []
    for layout in layouts:
        shape = rng.choice(([layout.size()], sampling.fitting_shape(rng, layout.layout)))
        cases.append((layout, {"shape": shape, "region": sampling.region(rng, shape)}))
    kinds: Counter[str] = Counter()
    for layout, arguments, theirs in rows(tvm, cases, "slice"):
        box = [values(layout)[flat] for flat in reference.box(**arguments)]
        mine = attempt(lambda layout=layout, arguments=arguments: layout.slice(**arguments))
        assert mine is None or values(mine) == box, (layout, arguments)
        if theirs is None:
            kinds["both refuse" if mine is None else "TVM misses it"] += 1
        elif values(theirs) == box:
            assert mine is not None, (layout, arguments)
            kinds["agree"] += 1
        else:
            kinds["TVM is wrong"] += 1
    assert kinds["agree"] > CASES // 2, kinds
    assert kinds["TVM is wrong"] < CASES // 50, kinds


def test_c26_columns(tvm: Tvm) -> None:
    """The slice that TVM gets right."""
    layout = SwizzledLayout(S[8, 64], Swizzle(3, 3, 3))
    arguments = {"shape": [8, 64], "region": [(0, 8), (4, 12)]}
    ((_, _, theirs),) = rows(tvm, [(layout, arguments)], "slice")
    assert layout.slice(**arguments) == theirs


def test_tile_to(tvm: Tvm) -> None:
    """Axe's definition: copies as far apart as the layout spans, each with the places of the first."""
    rng, layouts = sample(25)
    cases = []
    for layout in layouts:
        current = sampling.fitting_shape(rng, layout.layout)
        cases.append(
            (layout, {"to_shape": [n * rng.choice((1, 1, 2, 3)) for n in current], "current_shape": current})
        )
    kinds: Counter[str] = Counter()
    for layout, arguments, theirs in rows(tvm, cases, "tile_to"):
        expected = copies(layout, **arguments)
        mine = attempt(lambda layout=layout, arguments=arguments: layout.tile_to(**arguments))
        assert mine is None or values(mine) == expected, (layout, arguments)
        if theirs is None:
            kinds["TVM refuses"] += 1
        elif values(theirs) == expected:
            assert mine is not None, (layout, arguments)
            kinds["agree"] += 1
        elif layout.layout.offset:
            kinds["TVM moves the offset"] += 1
        elif layout.span() != layout.layout.span():
            kinds["TVM leaves the XOR out of the span"] += 1
        else:
            assert layout.span() % (1 << layout.swizzle.width), (layout, arguments)
            kinds["TVM swizzles over the copies" + (", we refuse" if mine is None else "")] += 1
    assert kinds["agree"] > CASES // 2, kinds
    assert kinds["TVM swizzles over the copies"] > 0, kinds
    assert kinds["TVM leaves the XOR out of the span"] > 0, kinds
    assert kinds["TVM moves the offset"] > 0, kinds
    assert kinds["TVM refuses"] == 0, kinds


def copies(layout: SwizzledLayout, to_shape: list[int], current_shape: list[int]) -> list[int]:
    inner = values(layout)
    span = max(inner) - min(inner) + 1
    counts = [n // k for n, k in zip(to_shape, current_shape, strict=True)]
    out = []
    for coord in reference.coordinates(to_shape):
        copy = reference.flatten([c // k for c, k in zip(coord, current_shape, strict=True)], counts)
        within = reference.flatten([c % k for c, k in zip(coord, current_shape, strict=True)], current_shape)
        out.append(copy * span + inner[within])
    return out


def test_unpack(tvm: Tvm) -> None:
    rng, layouts = sample(26)
    cases = [(layout, {"num": rng.choice((2, 4, 8, 3))}) for layout in layouts]
    kinds: Counter[str] = Counter()
    for layout, arguments, theirs in rows(tvm, cases, "unpack"):
        n = arguments["num"]
        expected = [v * n + j for v in values(layout) for j in range(n)]
        mine = attempt(lambda layout=layout, n=n: layout.unpack(n))
        assert mine is None or values(mine) == expected, (layout, n)
        if theirs is None:
            kinds["both refuse" if mine is None else "TVM doesn't see the identity"] += 1
        elif values(theirs) == expected:
            assert mine is not None, (layout, n)
            kinds["agree"] += 1
        else:
            assert layout.layout.offset, (layout, n)
            kinds["TVM leaves the offset as it was"] += 1
    assert min(kinds[k] for k in ("agree", "both refuse", "TVM leaves the offset as it was")) > 50, kinds


def test_pack(tvm: Tvm) -> None:
    rng, layouts = sample(27)
    cases = [(layout, {"num": rng.choice((2, 4, 8, 3))}) for layout in layouts]
    kinds: Counter[str] = Counter()
    for layout, arguments, theirs in rows(tvm, cases, "pack"):
        n, found = arguments["num"], values(layout)
        whole = len(found) % n == 0 and all(v == found[i // n * n] + i % n for i, v in enumerate(found))
        mine = attempt(lambda layout=layout, n=n: layout.pack(n))
        if mine is not None:
            assert whole, (layout, n)
            assert [v * n for v in values(mine)] == found[::n], (layout, n)
        if theirs is None:
            kinds["both refuse" if mine is None else "we alone"] += 1
        elif [v * n for v in values(theirs)] == found[::n] and whole:
            assert mine is not None, (layout, n)
            kinds["agree"] += 1
        else:
            kinds["TVM splits an element" if mine is None else "TVM leaves the offset as it was"] += 1
            assert mine is None or layout.layout.offset, (layout, n)
    assert min(kinds[k] for k in ("agree", "both refuse")) > 50, kinds


def test_printed_text_of_tvm_is_read(tvm: Tvm) -> None:
    for layout, _, text in rows(tvm, [(x, {}) for x in sample(28, 500)[1]], "text", str):
        assert SwizzledLayout.parse(text) == layout, text


def test_shorter_shifts_are_refused_by_both(tvm: Tvm) -> None:
    question = {"do": "version", "layout": {"shard": [[64, 1, "m"]], "swizzle": [3, 3, 2, True]}}
    assert "refused" in tvm.ask([question])[0]
    with pytest.raises(LayoutError, match="at least 3"):
        Swizzle(3, 3, 2)
