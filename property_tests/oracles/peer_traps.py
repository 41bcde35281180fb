"""Inputs that have tripped peers, under the numbers they are known by, for the first table of docs/peers.md."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from property_tests.oracles import peer_questions as questions
from tilelayout import S, Swizzle, SwizzledLayout, TileLayout, laneid


class Named(NamedTuple):
    """An input that is known by a number (or a peer's trap), put to a peer; `right` is what we say to the same."""

    name: str
    library: str
    text: str
    question: dict[str, Any]
    right: Callable[[], Any]


def named() -> list[Named]:
    far = TileLayout(S[65536, 65536])
    wraps = TileLayout(S[(2, 2, 2) : (100, 10, 1)])
    overlap, lanes = TileLayout(S[(3, 2) : (1, 2)]), TileLayout(S[(8, 4) : (4 @ laneid, 1)])
    moved, nothing = TileLayout(S[4:1] + 1), TileLayout.from_iters([])

    def tvm(name: str, layout: Any, text: str, right: Callable[[], Any], **question: Any) -> Named:
        data = questions.data_of(layout) if isinstance(layout, SwizzledLayout) else questions.as_data(layout)
        return Named(name, "tvm", f"`{layout}` {text}", {**question, "layout": data}, right)

    def cute(
        name: str, do: str, a: TileLayout, b: Any, right: Callable[[], Any], library: str = "pycute"
    ) -> Named:
        question = {"of": library.replace("-", "_"), "do": do, "a": questions.modes(a)}
        operands = [questions.cute_text(a)]
        if b is not None:
            question["b"] = questions.modes(b)
            operands.append(questions.cute_text(b))
        return Named(name, library, f"{do}: `{', '.join(operands)}`", question, right)

    def layout(shape: Any, stride: Any) -> TileLayout:
        return TileLayout.from_iters(list(zip(shape, stride, strict=True))[::-1])

    carrying, step = layout((6, 2), (1, 7)), layout((3, 2), (2, 3))
    swizzled = SwizzledLayout(S[100], Swizzle(3, 0, 3))
    slabs = TileLayout(S[8, 16])
    return [
        tvm("C19", far, "canonicalize", far.canonicalize, do="canonicalize"),
        tvm("C19", far, "size and span", lambda: (far.size(), far.span()), do="measure", axis="m"),
        tvm("one wrap", wraps, "slice [3, 5)", lambda: wraps.slice((8,), [(3, 5)]), do="slice", shape=[8],
            region=[[3, 5]]),
        tvm("C08", overlap, "verify_well_formed", overlap.is_injective, do="is_injective"),
        tvm("C37", slabs, "tile_to (30, 32)", lambda: slabs.tile_to((30, 32), (8, 16)), do="tile_to", to_shape=[30, 32],
            current_shape=[8, 16]),
        tvm("no iters", nothing, "group (1)", lambda: nothing.group((1,)), do="group", shape=[1]),
        tvm("C26", swizzled, "span", swizzled.span, do="measure_memory"),
        tvm("lanes", lanes, "unpack 2", lambda: lanes.unpack(2), do="unpack", num=2),
        tvm("offset", moved, "tile_to (8) from (4)", lambda: moved.tile_to((8,), (4,)), do="tile_to", to_shape=[8],
            current_shape=[4]),
        cute("C01", "compose", carrying, step, lambda: carrying.compose(step)),
        cute("C01", "compose", carrying, step, lambda: carrying.compose(step), "tensor-layouts"),
        cute("C07", "complement", layout((4,), (2,)), 7, lambda: layout((4,), (2,)).complement(7)),
        cute("C08", "complement", layout((2, 3), (2, 1)), 6, lambda: layout((2, 3), (2, 1)).complement(6)),
        cute("C08", "complement", layout((2, 3), (3, 2)), 6, lambda: layout((2, 3), (3, 2)).complement(6)),
        cute("C10", "left_inverse", layout((4, 2), (1, 0)), None, layout((4, 2), (1, 0)).left_inverse),
        cute("C13", "logical_divide", layout((12, 4, 8), (7, 1, 30)), layout((128,), (1,)),
             lambda: layout((12, 4, 8), (7, 1, 30)).logical_divide(128)),
        cute("C16", "logical_product", layout((2, 2), (4, 1)), layout((5,), (1,)),
             lambda: layout((2, 2), (4, 1)).logical_product(5)),
    ]  # fmt: skip
