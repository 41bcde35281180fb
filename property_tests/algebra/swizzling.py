"""Swizzles for the tests: the formulas as CuTe and F2 algebra write them, and Hypothesis strategies.

Written against the definitions and not against the code; slow on purpose.
"""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from property_tests import strategies
from property_tests.algebra import reference
from tilelayout import Swizzle, SwizzledLayout, TileLayout, XorMap, laneid, m, warpid


def image(f: XorMap, x: int) -> int:
    """The image of x, bit by bit."""
    if isinstance(f, Swizzle):
        out = x
        for k in range(f.bits):
            low, high = f.base + k, f.base + k + abs(f.shift)
            read, written = (high, low) if f.shift > 0 else (low, high)
            if x >> read & 1:
                out ^= 1 << written
        return out
    width = len(f.images)
    out = x >> width << width
    for i, column in enumerate(f.images):
        if x >> i & 1:
            out ^= column
    return out


def owners(layout: TileLayout | SwizzledLayout, flat: int) -> frozenset[reference.Place]:
    """L: every place that holds the element, swizzled on m."""
    if isinstance(layout, TileLayout):
        return reference.owners(layout, flat)
    return frozenset(swizzled(layout.swizzle, place) for place in reference.owners(layout.layout, flat))


def swizzled(f: XorMap, place: reference.Place) -> reference.Place:
    values = dict(place)
    return reference.place({**values, "m": image(f, values.get("m", 0))})


def size(layout: TileLayout | SwizzledLayout) -> int:
    return reference.size(layout if isinstance(layout, TileLayout) else layout.layout)


def function(layout: TileLayout | SwizzledLayout) -> list[frozenset[reference.Place]]:
    """The owners at every flat index."""
    return [owners(layout, flat) for flat in range(size(layout))]


def values(layout: SwizzledLayout, axis: str = "m") -> set[int]:
    """Every coordinate on an axis that some copy of some element has."""
    return {dict(place).get(axis, 0) for places in function(layout) for place in places}


def preimages(layout: SwizzledLayout) -> set[int]:
    """Every coordinate on m that some copy of some element has before the swizzle."""
    return {
        dict(p).get("m", 0) for flat in range(size(layout)) for p in reference.owners(layout.layout, flat)
    }


def is_plain(layout: SwizzledLayout) -> bool:
    """Whether any tile layout has these values; of layouts that have no replica on m."""
    axes = sorted({"m", *[it.axis.name for it in layout.layout.shard]})
    values = []
    for flat in range(size(layout)):
        at = {str(a): v for a, v in reference.displacement(layout.layout, flat).items()}
        at["m"] = image(layout.swizzle, at.get("m", 0))
        values.append(tuple(at.get(axis, 0) for axis in axes))
    return reference.greedy_is_layout(values)


def interleaved(
    outer: TileLayout,
    inner: list[frozenset],
    spans: dict[str, int],
    shapes: tuple[tuple[int, ...], tuple[int, ...]],
) -> list[frozenset]:
    """``f_outer(x) * span + f_inner(y)`` over the interleaved shape, given the owners of the inner layout."""
    out = []
    for coord in reference.coordinates([a * b for a, b in zip(*shapes, strict=True)]):
        x = [c // n for c, n in zip(coord, shapes[1], strict=True)]
        y = [c % n for c, n in zip(coord, shapes[1], strict=True)]
        places = set()
        for far in map(dict, reference.owners(outer, reference.flatten(x, shapes[0]))):
            for near in map(dict, inner[reference.flatten(y, shapes[1])]):
                places.add(reference.place({k: far.get(k, 0) * spans[k] + near.get(k, 0) for k in spans}))
        out.append(frozenset(places))
    return out


# --- strategies -------------------------------------------------------------------------------------


@st.composite
def swizzles(draw: st.DrawFn, most_base: int = 3, most_width: int = 9) -> Swizzle:
    bits = draw(st.sampled_from([1, 2, 1, 2, 3, 0]))
    base = draw(st.integers(0, most_base))
    shift = draw(st.integers(bits, max(bits, most_width - bits - base)))
    return Swizzle(bits, base, draw(st.sampled_from([shift, shift, -shift])))


@st.composite
def xor_maps(draw: st.DrawFn, most_width: int = 6) -> XorMap:
    """Any linear bijection: a permutation of the bits after random XORs of one image into another."""
    width = draw(st.integers(0, most_width))
    images = [1 << i for i in range(width)]
    if draw(st.integers(0, 3)) == 3:
        images = draw(st.permutations(images))
    places = st.integers(0, max(width - 1, 0))
    for i, j in draw(st.lists(st.tuples(places, places), min_size=1, max_size=8)):
        if i != j:
            images[i] ^= images[j]
    return XorMap(images)


def maps() -> st.SearchStrategy[XorMap]:
    return st.one_of(swizzles(), swizzles(1, 5), xor_maps())


POWERS = (1, 1, 2, 4, 8, 8, 16, 32, 64, 128, 256, 512)
STRIDES = (*POWERS, *POWERS, 0, 3, 6, 9, 12, 24, 72, -1, -2, -8, -64, 2**33, -(2**40), 10**25)
AXES = (m, m, m, m, laneid, warpid)
OFFSETS = strategies.offsets(AXES, (0, 0, 1, 4, 8, 64, 72, 512, -8, 2**40))


@st.composite
def tiles(draw: st.DrawFn, max_size: int = 64) -> TileLayout:
    """Compact, or with a pad or a lane here and there: what swizzles are made for."""
    iters: list[tuple[int, int, object]] = []  # innermost first
    stride, room = draw(st.sampled_from([1, 1, 1, 2])), max_size
    for _ in range(draw(st.integers(1, 4))):
        extent = draw(st.sampled_from([e for e in (2, 2, 4, 4, 8, 8, 16, 3, 5) if e <= room] or [1]))
        room //= extent
        if draw(st.integers(0, 9)) == 9:
            iters.append((extent, 1, laneid))
            continue
        iters.append((extent, stride, m))
        stride = stride * extent + draw(st.sampled_from([0, 0, 0, 0, 0, 8]))
    order = draw(st.permutations(iters)) if draw(st.booleans()) else iters[::-1]
    return TileLayout.from_iters(order, (), draw(OFFSETS) if draw(st.booleans()) else {})


@st.composite
def any_layouts(
    draw: st.DrawFn, max_size: int = 64, replicated: bool = True, strides: Sequence[int] = STRIDES
) -> TileLayout:
    extents = draw(st.sampled_from([(2, 2, 4, 8, 1), (2, 2, 4, 8, 1), strategies.EXTENTS]))
    shard = draw(strategies.shards(max_size, 4, AXES, strides, extents))
    replica = draw(strategies.replicas(4, 2, AXES, (0, 1, 2, 8, 64, -8))) if replicated else ()
    return TileLayout.from_iters(shard, replica, draw(OFFSETS))


def inner_layouts(max_size: int = 64, **options: object) -> st.SearchStrategy[TileLayout]:
    return st.one_of(tiles(max_size), tiles(max_size), any_layouts(max_size, **options))


def swizzled_layouts(max_size: int = 64, **options: object) -> st.SearchStrategy[SwizzledLayout]:
    return st.builds(SwizzledLayout, inner_layouts(max_size, **options), maps())
