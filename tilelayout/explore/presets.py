"""Layouts to begin with: swizzled tiles, tensor memory, device meshes.  Other packages bring their own."""

from __future__ import annotations

from typing import NamedTuple

from ..draw.places import as_layout, drawn_shape
from ..errors import LayoutError
from ..layout import TileLayout
from ..swizzled import SwizzledLayout
from ..swizzled.text import read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, Final

    from ..draw.places import Layout


class Preset(NamedTuple):
    """A layout that the explorer offers by name.

    Attributes:
        group: the list that it stands in.
        name: what it is called there.
        layout: its text.
        shape: the shape to show it in.
        bits: width of an element.
        view: "both", "logical", "hardware" or "banks".
    """

    group: str
    name: str
    layout: str
    shape: tuple[int, ...]
    bits: int = 16
    view: str = "both"


def parsed(text: str) -> Layout:
    """The layout that a text writes, swizzled or not.  Errors: LayoutError with the position.

    >>> parsed("S[8, 4]"), parsed("Swizzle(1, 0, 1) o S[4]")
    (TileLayout(S[(8, 4):(4, 1)]), SwizzledLayout(S[4:1], Swizzle(1, 0, 1)))
    """
    return TileLayout.parse(text) if read(text) is None else SwizzledLayout.parse(text)


def preset(
    group: str,
    name: str,
    layout: Any,
    shape: Sequence[int] | int | None = None,
    bits: int = 16,
    view: str = "both",
) -> Preset:
    """A preset of a layout, checked against its shape.

    >>> preset("mine", "a row", TileLayout(S[(2, 4) : (1 @ laneid, 1)])).shape
    (2, 4)
    """
    value = as_layout(parsed(layout) if isinstance(layout, str) else layout, "preset")
    return Preset(group, name, str(value), drawn_shape(value, shape, "preset"), bits, view)


_SWIZZLES: Final = (
    # name, layout, shape.  The swizzles of TMA and wgmma, counted in 16-bit elements (PTX ISA, "Swizzling modes").
    ("128-byte rows, no swizzle", "S[8, 64]", (8, 64)),
    ("128-byte swizzle", "Swizzle(3, 3, 3) o S[8, 64]", (8, 64)),
    ("64-byte swizzle", "Swizzle(2, 3, 3) o S[8, 32]", (8, 32)),
    ("32-byte swizzle", "Swizzle(1, 3, 3) o S[8, 16]", (8, 16)),
    ("rows padded by 16 bytes", "S[(32, 64):(72, 1)]", (32, 64)),
)

_TENSOR_MEMORY: Final = (
    # PTX ISA, "Tensor Memory": 128 lanes, columns of 32 bits.
    ("accumulator 128 x 64, a row to a lane", "S[(128, 64) : (1 @ TLane, 1 @ TCol)]", (128, 64), 32),
    ("accumulator 256 x 64 of two CTAs", "S[(2, 128, 64) : (1 @ cbx, 1 @ TLane, 1 @ TCol)]", (256, 64), 32),
    (
        "block scales 128 x 4, the same in each quarter of the lanes",
        "S[(4, 32, 4) : (1 @ TCol, 1 @ TLane, 1)] + R[4 : 32 @ TLane]",
        (128, 4),
        8,
    ),
)

_MESHES: Final = (
    ("rows over 4 devices", "S[(4, 2, 8) : (1 @ pid, 8, 1)]", (8, 8)),
    ("2 x 4 devices, blocks", "S[(2, 4, 4, 2) : (4 @ pid, 2, 1 @ pid, 1)]", (8, 8)),
    ("2 x 4 devices, columns split, rows copied", "S[(8, 4, 2) : (2, 1 @ pid, 1)] + R[2 : 4 @ pid]", (8, 8)),
)

_WARPS: Final = (
    ("accumulator of mma.m16n8, 16 x 8", "S[(2, 8, 4, 2) : (2, 4 @ laneid, 1 @ laneid, 1)]", (16, 8), 32),
    (
        "32 x 16 over 2 x 2 warps",
        "S[(2, 2, 8, 2, 4, 2) : (2 @ warpid, 2, 4 @ laneid, 1 @ warpid, 1 @ laneid, 1)]",
        (32, 16),
        32,
    ),
    (
        "an operand that 2 warps share",
        "S[(2, 8, 2, 4, 2) : (2, 4 @ laneid, 4, 1 @ laneid, 1)] + R[2 : 1 @ warpid]",
        (16, 16),
        16,
    ),
)


def presets() -> tuple[Preset, ...]:
    """The presets that need nothing but layouts.

    >>> [p.name for p in presets() if p.group == "device meshes"][0]
    'rows over 4 devices'
    """
    return (
        *[preset("warps", name, layout, shape, bits) for name, layout, shape, bits in _WARPS],
        *[preset("swizzles", name, layout, shape, 16, "banks") for name, layout, shape in _SWIZZLES],
        *[preset("tensor memory", name, layout, shape, bits) for name, layout, shape, bits in _TENSOR_MEMORY],
        *[preset("device meshes", name, layout, shape, 32) for name, layout, shape in _MESHES],
    )


ENTRY_POINT_GROUP: Final = "tilelayout.presets"


def offered() -> tuple[Preset, ...]:
    """The presets of this package, and those that installed packages offer through the group `tilelayout.presets`.

    An entry point names a function without arguments that gives presets; `lowering` brings the fragments of every
    tensor-core instruction that way.
    Errors: LayoutError naming an entry point that does not load, or gives something else.
    """
    from importlib.metadata import entry_points

    found = list(presets())
    points = {
        point.value: point for point in entry_points(group=ENTRY_POINT_GROUP)
    }  # an install may be listed twice
    for value in sorted(points):
        try:
            found += as_presets(points[value].load()())
        except Exception as error:
            raise LayoutError(
                "explore",
                f"the presets of {value} are not to be had: {type(error).__name__}: {error}",
                "presets=()",
            ) from error
    return tuple(found)


def as_presets(given: Iterable[Any]) -> tuple[Preset, ...]:
    """The presets that a caller hands in.  Errors: LayoutError for what is none."""
    out: list[Preset] = []
    for x in given:
        if not isinstance(x, Preset):
            raise LayoutError("explore", f"a Preset is expected, got {x!r}", "tilelayout.explore.preset(...)")
        out.append(x)
    return tuple(out)
