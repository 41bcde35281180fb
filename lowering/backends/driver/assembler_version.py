"""Which nvJitLink assembles here, without loading it: that takes longer than reading a cached kernel."""

from __future__ import annotations

from functools import cache
from importlib import metadata

from ..assemble import nvidia_library


@cache
def assembler_version() -> str:
    """The version of the library that `assemble` uses.

    Errors: ImportError where it is not installed, with what installs it.
    """
    for name in ("nvidia-nvjitlink", "nvidia-nvjitlink-cu13", "nvidia-nvjitlink-cu12"):
        try:
            return f"{name} {metadata.version(name)}"
        except metadata.PackageNotFoundError:
            continue
    return "nvJitLink " + ".".join(map(str, nvidia_library("nvjitlink").version()))
