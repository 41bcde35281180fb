"""A layout algebra over named hardware axes: where each element of a tensor lives, and how to calculate with it.

    from tilelayout import S, R, TileLayout, laneid, warpid

Names are loaded when they are first used, so importing the package costs next to nothing.  Every registered
axis is a name here too.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from .axis import (
        Axis,
        Bank,
        F,
        P,
        TCol,
        TLane,
        axes,
        bx,
        by,
        bz,
        cbx,
        cby,
        cbz,
        laneid,
        m,
        pid,
        register_axis,
        tid_in_wg,
        tx,
        warpid,
        wgid,
        wid_in_wg,
    )
    from .errors import LayoutError, Undecided
    from .functions import Shaped
    from .layout import TileLayout
    from .parts import Iter
    from .questions import Answer
    from .spec import R, S
    from .swizzle import Swizzle, XorMap
    from .swizzled import SwizzledLayout

__version__ = "0.1.0"

_HOMES = {
    "Answer": "questions",
    "Axis": "axis",
    "Iter": "parts",
    "LayoutError": "errors",
    "R": "spec",
    "S": "spec",
    "Shaped": "functions",
    "Swizzle": "swizzle",
    "SwizzledLayout": "swizzled",
    "TileLayout": "layout",
    "Undecided": "errors",
    "XorMap": "swizzle",
    "axes": "axis",
    "register_axis": "axis",
}

_ROOMS = ("analysis", "draw", "explore", "expr")
"""Modules of the package that are names of it without being imported: ``tilelayout.analysis.bank_conflicts``."""

__all__ = [
    "Answer", "Axis", "Bank", "F", "Iter", "LayoutError", "P", "R", "S", "Shaped", "Swizzle",
    "SwizzledLayout", "TCol", "TLane", "TileLayout", "Undecided", "XorMap", "axes", "bx", "by", "bz", "cbx",
    "cby", "cbz", "laneid", "m", "pid", "register_axis", "tid_in_wg", "tx", "warpid", "wgid", "wid_in_wg",
]  # fmt: skip


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is not None:
        found = getattr(_room(home), name)
        globals()[name] = found
        return found
    if name in _ROOMS:
        return _room(name)
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    registry = _room("axis")
    for known in registry.axes():
        if known == name:
            return known
    from .errors import nearest

    hint = nearest(name, [*_HOMES, *registry.axes()])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}, {hint}")


def _room(name: str) -> ModuleType:
    """A module of the package.  importlib would do it too, and takes a tenth as long to load as all the rest."""
    return __import__(f"{__name__}.{name}", fromlist=["*"])


def __dir__() -> list[str]:
    from .axis import axes

    return sorted({*__all__, *_ROOMS, *axes(), *globals()})
