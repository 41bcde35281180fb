"""Lowering of tile primitives on layouts to tensor-core instructions.

from lowering import Tile, gemm, lower

lowered = lower(gemm(D, A, B, D), target="sm_80", scope="warp")
print(lowered)
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .api import Lowered, lower, registered, temporary_variants
    from .dispatch import predicate, register_dispatch
    from .errors import DispatchError, DispatchFail, MachineError, PluginError, fail
    from .isa.registered import register_instruction
    from .joined import BARRIER, LoweredSequence, sequence
    from .kernels.matmul import matmul
    from .ops import (
        CastCall,
        CopyCall,
        ElementwiseCall,
        FillCall,
        GemmCall,
        cast,
        copy,
        elementwise,
        fill,
        gemm,
    )
    from .tile import Tile, TileRegion
    from .window import Window

_HOMES = {
    "BARRIER": "joined",
    "CastCall": "ops",
    "CopyCall": "ops",
    "DispatchError": "errors",
    "DispatchFail": "errors",
    "ElementwiseCall": "ops",
    "FillCall": "ops",
    "GemmCall": "ops",
    "Lowered": "api",
    "LoweredSequence": "joined",
    "MachineError": "errors",
    "PluginError": "errors",
    "Tile": "tile",
    "TileRegion": "tile",
    "Window": "window",
    "cast": "ops",
    "copy": "ops",
    "elementwise": "ops",
    "fail": "errors",
    "fill": "ops",
    "gemm": "ops",
    "lower": "api",
    "matmul": "kernels.matmul",
    "predicate": "dispatch",
    "register_dispatch": "dispatch",
    "register_instruction": "isa.registered",
    "registered": "api",
    "sequence": "joined",
    "temporary_variants": "api",
}

__all__ = [
    "BARRIER", "CastCall", "CopyCall", "DispatchError", "DispatchFail", "ElementwiseCall", "FillCall", "GemmCall",
    "Lowered", "LoweredSequence", "MachineError", "PluginError", "Tile", "TileRegion", "Window", "cast", "copy",
    "elementwise", "fail", "fill", "gemm", "lower", "matmul", "predicate", "register_dispatch", "register_instruction",
    "registered", "sequence", "temporary_variants",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _HOMES:
        from tilelayout.errors import nearest

        hint = "" if name.startswith("__") else f", {nearest(name, list(_HOMES))}"
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")
    found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*__all__, *globals()})
