"""TVM as a peer, and layouts in the words of its servers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from property_tests.oracles.client import Peer
from tilelayout import Swizzle, SwizzledLayout, TileLayout

SERVER = Path(__file__).with_name("tvm_server.py")
SWIZZLE_SERVER = Path(__file__).with_name("tvm_swizzle_server.py")


def as_data(layout: TileLayout) -> dict[str, Any]:
    """A layout in the server's words."""
    parts = [[[it.extent, it.stride, it.axis.name] for it in part] for part in (layout.shard, layout.replica)]
    return {"shard": parts[0], "replica": parts[1], "offset": {a.name: v for a, v in layout.offset.items()}}


def as_layout(data: dict[str, Any]) -> TileLayout:
    return TileLayout.from_iters(
        *[[tuple(it) for it in data[p]] for p in ("shard", "replica")], data["offset"]
    )


class Tvm(Peer):
    """Asks TVM about tile layouts."""

    def __init__(self, python: Path, server: Path = SERVER) -> None:
        super().__init__(python, server)


def data_of(layout: SwizzledLayout) -> dict[str, Any]:
    """A swizzled layout in the words of the server that knows them."""
    f = layout.swizzle
    return {**as_data(layout.layout), "swizzle": [f.base, f.bits, abs(f.shift), f.shift >= 0]}


def layout_of(data: dict[str, Any]) -> SwizzledLayout:
    base, bits, shift, inner = data["swizzle"]
    return SwizzledLayout(as_layout(data), Swizzle(bits, base, shift if inner else -shift))
