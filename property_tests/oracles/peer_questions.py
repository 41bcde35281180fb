"""What `peers` asks each library, thousands of times: random instances, and what judges the answers.

Every `Case` can be put to the library (`question`) and to us (`instance.ask`), and one check judges both answers by
brute force.  Where the answers are tables of values, `instance.check` takes a list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any, NamedTuple

from property_tests.algebra import compacts, instances, instances_axes, instances_swizzled, reference
from property_tests.algebra.filling import filling, free
from property_tests.algebra.instances import Instance, PlainRandom
from property_tests.oracles import linear as f2
from property_tests.oracles.tvm_client import as_data, as_layout, data_of, layout_of
from tilelayout import LayoutError, Swizzle, SwizzledLayout, TileLayout

REGISTERED = (instances_axes, instances_swizzled)
"""Importing them registers their operations."""


class Case(NamedTuple):
    """One instance, put to a peer.

    `read` turns the peer's value into what the check takes (None for a refusal), `kind` says what sets the operands
    apart, `shown` writes them down.
    """

    instance: Instance
    question: dict[str, Any]
    read: Callable[[Any], Any]
    kind: str
    shown: str


Draw = Callable[[Random], Case | None]


# --- TVM ------------------------------------------------------------------------------------------------

RECOGNIZERS = {
    "recover_outer": "is_tile_inner",
    "recover_inner": "is_tile_outer",
    "recover_left": "is_direct_sum_right",
    "recover_right": "is_direct_sum_left",
}

TILE = (
    "table", "span", "is_injective", "canonicalize", "group", "group_many", "slice", "tile", "tile_to", "direct_sum",
    "recover_outer", "recover_inner", "recover_left", "recover_right", "broadcast", "permute_dims",
    "permute_by_groups", "pack", "unpack",
)  # fmt: skip
SWIZZLED = ("span", "canonicalize", "slice", "tile_to", "pack", "unpack")


def features(layouts: list[TileLayout]) -> str:
    """What sets these layouts apart from plain ones: positive strides, no replica, no offset."""
    iters = [it for x in layouts for it in (*x.shard, *x.replica)]
    numbers = [n for it in iters for n in (it.extent, it.stride)] + [
        v for x in layouts for v in x.offset.values()
    ]
    axes = [*[it.axis for it in iters], *[a for x in layouts for a in x.offset]]
    found = {
        "past 2^31": any(abs(n) >= 2**31 for n in numbers),
        "negative or zero strides": any(it.stride <= 0 and it.extent > 1 for it in iters),
        "a replica": any(x.replica for x in layouts),
        "an offset": any(x.offset for x in layouts),
        "the axis pid": any(str(a) == "pid" for a in axes),
        "the axis P": any(str(a) == "P" for a in axes),
        "thread axes": any(a.kind == "thread" for a in axes),
        "no iters": not all(x.shard for x in layouts),
    }
    return ", ".join(name for name, holds in found.items() if holds) or "plain"


def inner(x: Any) -> TileLayout:
    return x.layout if isinstance(x, SwizzledLayout) else x


def tvm_case(instance: Instance) -> Case | None:
    asked = instance.question
    if asked is None:
        return None
    operands = {name: x for name, x in asked.items() if isinstance(x, (TileLayout, SwizzledLayout))}
    if any(isinstance(x, SwizzledLayout) and not isinstance(x.swizzle, Swizzle) for x in operands.values()):
        return None
    swizzled = isinstance(asked["layout"], SwizzledLayout)
    question = {
        name: data_of(x) if isinstance(x, SwizzledLayout) else as_data(x) if name in operands else x
        for name, x in asked.items()
    }
    do = asked["do"]
    if do in RECOGNIZERS:
        question |= {"do": "recover", "name": RECOGNIZERS[do]}
    elif do == "span":
        question["do"] = "measure_memory" if swizzled else "measure"
    return Case(
        instance,
        question,
        lambda value: read_tvm(asked, value),
        features([inner(x) for x in operands.values()]),
        ", ".join(str(x) for name, x in asked.items() if name != "do"),
    )


def read_tvm(asked: dict[str, Any], value: Any) -> Any:
    do = asked["do"]
    if value is None or do == "is_injective":
        return value
    if do == "table":
        import numpy as np

        return {a: np.array(v, dtype=object).reshape(asked["shape"]) for a, v in value.items()}
    if do == "span":
        return value["span"]
    if do in ("group", "group_many"):
        seps = value["seps"]
        return as_layout(value["layout"]), tuple(tuple(x) if isinstance(x, list) else x for x in seps)
    return layout_of(value) if "swizzle" in value else as_layout(value)


def tvm_draws(plain: bool) -> Iterator[tuple[str, Draw]]:
    """Tile layouts and swizzled ones; `plain` asks for layouts of the kind that TVM is made for."""
    for do in TILE:
        yield do, lambda rng, do=do: _tvm_draw(rng, do, plain)
    for do in SWIZZLED:
        yield f"swizzled {do}", lambda rng, do=do: _tvm_draw(rng, f"swizzled {do}", plain)


def _tvm_draw(rng: Random, do: str, plain: bool) -> Case | None:
    if plain:
        return tvm_case(instances.OPERATIONS[do](PlainRandom(rng.random())))
    case = tvm_case(instances.OPERATIONS[do](rng))
    if case is None or case.kind in ("plain", "thread axes") or "no iters" in case.kind:
        return None  # TVM refuses whatever has no iters, which one of the named inputs says
    return case


# --- pycute and tensor-layouts ----------------------------------------------------------------------------


def modes(x: Any) -> Any:
    """A layout as CuTe writes it, the first mode fastest: the table of values is then the same list."""
    return x if isinstance(x, int) else [[it.extent, it.stride] for it in reversed(x.shard)]


def cute_text(x: Any) -> str:
    if isinstance(x, int):
        return str(x)
    extents, strides = ([str(n) for n in column] for column in zip(*modes(x), strict=True))
    if len(extents) == 1:
        return f"{extents[0]}:{strides[0]}"
    return f"({','.join(extents)}):({','.join(strides)})"


def positive(rng: Random, largest: int) -> TileLayout:
    """Strides as CuTe has them, none negative, no offset; half of the time they nest."""
    while True:
        found = compacts.anything(rng, largest)
        found = TileLayout.from_iters([(it.extent, abs(it.stride), it.axis) for it in found.shard])
        if rng.random() < 0.8 or len(found.shard) > 1:
            return found


def nesting(x: TileLayout) -> str:
    """How the strides of a layout lie to each other."""
    places = compacts.places(x)
    if len(set(places)) < len(places):
        return (
            "zero strides"
            if any(it.extent > 1 and not it.stride for it in x.shard)
            else "overlapping strides"
        )
    filled = 1
    for it in sorted((it for it in x.shard if it.extent > 1), key=lambda it: it.stride):
        if it.stride % filled:
            return "interleaving strides"
        filled = it.stride * it.extent
    return "nesting strides"


def cute_case(do: str, ours: Callable[..., TileLayout], right: Callable[..., bool], *operands: Any) -> Case:
    def check(found: Any) -> None:
        if not isinstance(found, LayoutError):
            assert right(*operands, found if isinstance(found, list) else compacts.places(found))

    kind = f"A with {nesting(operands[0])}"
    if len(operands) > 1:
        b = operands[1]
        if isinstance(b, TileLayout):
            several = sum(it.extent > 1 for it in b.shard) > 1
            kind += f", B with {nesting(b)}" if several else ", B of one mode"
        elif b % operands[0].size():
            kind += ", whose size does not divide the cosize"
        elif b % (max(compacts.places(operands[0])) + 1):
            kind += ", whose reach does not divide the cosize"
    question = {"do": do, **dict(zip("ab", map(modes, operands), strict=False))}
    shown = ", ".join(map(cute_text, operands))
    return Case(Instance(lambda: ours(*operands), check), question, lambda value: value["table"], kind, shown)


def composition_right(a: TileLayout, b: TileLayout, table: list[int]) -> bool:
    places, indices = compacts.places(a), compacts.places(b)
    return len(table) == len(indices) and all(
        0 <= i < len(places) and places[i] == v for i, v in zip(indices, table, strict=True)
    )


def _compose(rng: Random) -> Case | None:
    a, b = positive(rng, 48), positive(rng, 16)
    if max(compacts.places(b)) >= a.size():
        return None
    return cute_case("compose", TileLayout.compose, composition_right, a, b)


def complement_right(a: TileLayout, cosize: int, table: list[int]) -> bool:
    return sorted(table) == filling(compacts.places(a), cosize) and len(set(table)) == len(table)


def _complement(rng: Random) -> Case:
    a = positive(rng, 24)
    cosize = (max(compacts.places(a)) + 1) * rng.randint(1, 3) + rng.choice((0, 0, 0, 1, 5))
    return cute_case("complement", TileLayout.complement, complement_right, a, cosize)


def right_inverse_right(a: TileLayout, table: list[int]) -> bool:
    places = compacts.places(a)
    reads = [places[i] for i in table if i < len(places)] == list(range(len(table)))
    return reads and len(table) >= a.right_inverse().size()


def _right_inverse(rng: Random) -> Case:
    return cute_case("right_inverse", TileLayout.right_inverse, right_inverse_right, positive(rng, 24))


def left_inverse_right(a: TileLayout, table: list[int]) -> bool:
    places = compacts.places(a)
    return [table[p] for p in places if p < len(table)] == list(range(len(places)))


def _left_inverse(rng: Random) -> Case:
    return cute_case("left_inverse", TileLayout.left_inverse, left_inverse_right, positive(rng, 16))


def divide_right(a: TileLayout, b: TileLayout, table: list[int]) -> bool:
    places, tile = compacts.places(a), compacts.places(b)
    begins = filling(tile, len(places))
    return begins is not None and table == [places[x + y] for x in begins for y in tile]


def _divide(rng: Random) -> Case:
    ours = lambda a, b: a.logical_divide(b).layout  # noqa: E731
    return cute_case("logical_divide", ours, divide_right, positive(rng, 48), positive(rng, 12))


def product_right(a: TileLayout, b: TileLayout, table: list[int]) -> bool:
    places, numbers = compacts.places(a), compacts.places(b)
    offsets: list[int] | None = [0]
    if max(numbers):
        offsets = free(places, max(numbers) + 1) if len(set(places)) == len(places) else None
    return offsets is not None and table == [offsets[j] + p for j in numbers for p in places]


def _product(rng: Random) -> Case:
    ours = lambda a, b: a.logical_product(b).layout  # noqa: E731
    return cute_case("logical_product", ours, product_right, positive(rng, 12), positive(rng, 8))


def cute_draws(library: str) -> Iterator[tuple[str, Draw]]:
    def of(draw: Draw) -> Draw:
        def drawn(rng: Random) -> Case | None:
            case = draw(rng)
            return case and case._replace(question={"of": library, **case.question})

        return drawn

    for draw in (_compose, _complement, _right_inverse, _left_inverse, _divide, _product):
        yield (
            {"_divide": "logical_divide", "_product": "logical_product"}.get(
                draw.__name__, draw.__name__[1:]
            ),
            of(draw),
        )


# --- Triton -----------------------------------------------------------------------------------------------


def triton_case(
    do: str, ours: Callable[[], Any], right: list[list[int]] | Any, shown: str, **question: Any
) -> Case:
    def check(found: Any) -> None:
        if not isinstance(found, LayoutError):
            assert found == right

    return Case(Instance(ours, check), {"do": do, **question}, lambda value: value, "linear", shown)


def rows(layout: TileLayout | SwizzledLayout, axes: list[str]) -> list[list[int]]:
    return [[at.get(a, 0) for a in axes] for at in (layout.apply(i) for i in range(layout.size()))]


def _apply(rng: Random) -> Case:
    x: Any = f2.a_layout(rng, rng.randint(1, 7))
    if rng.random() < 0.5:
        x = SwizzledLayout(x, rng.choice((f2.a_swizzle, f2.a_map))(rng, 7))
    axes = f2.axes_of(x)
    return triton_case("apply", lambda: rows(x, axes), f2.places(x, axes), str(x), layout=f2.linear(x))


def _linear_compose(rng: Random) -> Case:
    outer = f2.a_layout(rng, rng.randint(1, 7))
    b = f2.a_layout(rng, rng.randint(1, outer.size().bit_length() - 1), ["m"], gaps=False)
    axes = f2.axes_of(outer)
    table = f2.places(outer, axes)
    right = [table[i] for (i,) in f2.places(b, ["m"])]
    question = {"outer": f2.linear(outer, "m"), "inner": f2.linear(b, sizes={"m": outer.size()})}
    return triton_case("compose", lambda: rows(outer.compose(b), axes), right, f"{outer} o {b}", **question)


def _invert(rng: Random) -> Case:
    """A bijection half of the time; else a layout with gaps, which has no inverse."""
    x = f2.a_layout(rng, rng.randint(1, 7), ["m"], gaps=rng.random() < 0.2, zeros=False)
    places = [p for (p,) in f2.places(x, ["m"])]
    right = None
    if sorted(places) == list(range(len(places))):
        right = [[places.index(p)] for p in range(len(places))]
    return triton_case("invert", lambda: rows(x.inverse(), ["m"]), right, str(x), layout=f2.linear(x))


def _pseudoinvert(rng: Random) -> Case | None:
    x = f2.a_layout(rng, rng.randint(1, 7), ["m"], gaps=False)
    places = [p for (p,) in f2.places(x, ["m"])]
    if set(places) != set(range(max(places) + 1)):
        return None
    right = [[places.index(p)] for p in range(max(places) + 1)]
    return triton_case(
        "pseudoinvert", lambda: rows(x.right_inverse(), ["m"]), right, str(x), layout=f2.linear(x)
    )


def _invert_and_compose(rng: Random) -> Case:
    bits = rng.randint(1, 7)
    one, other = (f2.a_layout(rng, bits, ["m"], gaps=False, zeros=False) for _ in range(2))
    places = [p for (p,) in f2.places(other, ["m"])]
    right = [[places.index(p)] for (p,) in f2.places(one, ["m"])]
    ours = lambda: rows(other.inverse().compose(one), ["m"])  # noqa: E731
    question = {"layout": f2.linear(one), "other": f2.linear(other)}
    return triton_case("invert_and_compose", ours, right, f"{other}^-1 o {one}", **question)


def triton_draws() -> Iterator[tuple[str, Draw]]:
    draws: dict[str, Draw] = {
        "apply": _apply,
        "compose": _linear_compose,
        "invert": _invert,
        "pseudoinvert": _pseudoinvert,
        "invert_and_compose": _invert_and_compose,
    }
    yield from draws.items()


__all__ = ["Case", "Draw", "cute_draws", "reference", "triton_draws", "tvm_draws"]
