"""Which nvJitLink assembles here, without loading it: that takes longer than reading a cached kernel."""

from __future__ import annotations

from functools import cache
from importlib import import_module, metadata


@cache
def assembler_version() -> str:
    """The version of the library that `assemble` uses.

    Errors: ImportError where it is not installed.
    """
    for name in ("nvidia-nvjitlink", "nvidia-nvjitlink-cu13", "nvidia-nvjitlink-cu12"):
        try:
            return f"{name} {metadata.version(name)}"
        except metadata.PackageNotFoundError:
            continue
    return "nvJitLink " + ".".join(map(str, import_module("cuda.bindings.nvjitlink").version()))
