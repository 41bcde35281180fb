"""The layouts that CUTLASS's headers state for an instruction, read from their text and evaluated.

apache-tvm carries the headers.  A CuTe layout ``Layout<Shape<...>, Stride<...>>`` counts coordinates with the first
mode fastest; its two modes here are the thread and the value.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

_FIND = "import importlib.util as u; print(u.find_spec('tvm').submodule_search_locations[0])"


def header(python: Path, name: str) -> str:
    """The text of ``cute/atom/<name>.hpp`` that belongs to an interpreter."""
    found = subprocess.run([python, "-c", _FIND], capture_output=True, text=True, check=True, timeout=60)
    path = Path(found.stdout.strip()) / "3rdparty/cutlass/include/cute/atom" / f"{name}.hpp"
    return path.read_text()


def layouts_of(text: str, after: str, n: int = 0) -> dict[str, tuple[Any, Any]]:
    """Name -> (shape, stride) of the aliases of a struct (or the rest of the file), first of each name; N as given."""
    rest = text[text.index(after) :]
    end = rest.find("\n};")
    if after.startswith("struct"):
        rest = rest[:end]
    rest = re.sub(r"//[^\n]*", "", rest)
    found: dict[str, tuple[Any, Any]] = {}
    for name, body in re.findall(r"using (\w+)\s*=\s*Layout\s*<(Shape.*?)>\s*;", rest, re.DOTALL):
        if "Int<M" in body or "Int<K" in body:
            continue  # a family of layouts of shared memory
        tokens = re.findall(r"\w+|[<>,]", body.replace("Int<N/8>", str(n // 8)))
        shape, at = _nested(tokens, 0)
        stride, _ = _nested(tokens, at + 1)
        found.setdefault(name, (shape, stride))
    return found


def _nested(tokens: list[str], at: int) -> tuple[Any, int]:
    token = tokens[at]
    if token not in ("Shape", "Stride"):
        return int(token.lstrip("_")), at + 1
    parts: list[Any] = []
    at += 1
    while tokens[at] != ">":
        part, at = _nested(tokens, at + 1)
        parts.append(part)
    return tuple(parts), at + 1


def size(shape: Any) -> int:
    if isinstance(shape, int):
        return shape
    out = 1
    for part in shape:
        out *= size(part)
    return out


def value(shape: Any, stride: Any, index: int) -> int:
    """The layout's value at an index of a mode."""
    if isinstance(shape, int):
        return index * stride  # type: ignore[no-any-return]
    total = 0
    for part, step in zip(shape, stride, strict=True):
        total += value(part, step, index % size(part))
        index //= size(part)
    return total


def table(layout: tuple[Any, Any]) -> list[list[int]]:
    """Thread -> value -> what the layout says."""
    (threads, values), (by_thread, by_value) = layout
    columns = [value(values, by_value, v) for v in range(size(values))]
    return [[value(threads, by_thread, t) + x for x in columns] for t in range(size(threads))]
