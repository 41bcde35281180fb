"""Each notebook executed once for all tests of a process."""

from __future__ import annotations

from functools import cache
from typing import Any

from notebooks.session import execute, notebooks, read, text_of

PATHS = {path.stem: path for path in notebooks()}


@cache
def fresh(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The notebook as it comes out now, and the namespace that it leaves."""
    return execute(read(PATHS[name]), name)


def code(name: str) -> list[str]:
    return [text_of(cell["source"]) for cell in read(PATHS[name])["cells"] if cell["cell_type"] == "code"]


def prose(name: str) -> str:
    cells = read(PATHS[name])["cells"]
    return "\n\n".join(text_of(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")


def shown(name: str, kind: str) -> list[str]:
    """Everything of a MIME type that is stored."""
    outputs = [output for cell in read(PATHS[name])["cells"] for output in cell.get("outputs", [])]
    return [text_of(output["data"][kind]) for output in outputs if kind in output.get("data", {})]
