"""Executes a notebook in this process and gives it back with the outputs that Jupyter would store.

Without a kernel it takes a second for a notebook instead of five.  Values are shown by IPython's own formatter, so that
what is stored is what Jupyter stores; `property_tests/notebooks` compares with a real kernel in the slow tier.
Nothing may be needed here that the test group does not install.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import linecache
import re
import warnings
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent


class NotebookError(RuntimeError):
    """A cell failed; the message names the notebook, the cell and its code, the cause is the cell's exception."""


def notebooks() -> list[Path]:
    """The notebooks in the order of the path."""
    return sorted(FOLDER.glob("[0-9][0-9]_*.ipynb"))


def read(path: Path) -> dict[str, Any]:
    """A notebook as JSON."""
    return json.loads(path.read_text(encoding="utf-8"))


def execute(notebook: dict[str, Any], name: str = "notebook") -> tuple[dict[str, Any], dict[str, Any]]:
    """The notebook with fresh outputs in normal form, and the namespace that its cells left.

    Every warning is an error.
    Errors: NotebookError for a cell that raises or that is no plain Python.
    """
    namespace: dict[str, Any] = {"__name__": "__main__"}
    cells: list[dict[str, Any]] = []
    count = 0
    for number, cell in enumerate(notebook["cells"], 1):
        if cell["cell_type"] == "code":
            count += 1
            outputs = _run(text_of(cell["source"]), f"{name}, cell {number}", count, namespace)
            cell = {**cell, "outputs": outputs, "execution_count": count}
        cells.append(cell)
    return normal({**notebook, "cells": cells}), namespace


def normal(notebook: dict[str, Any]) -> dict[str, Any]:
    """The form in which a notebook is stored: what changes from run to run or from machine to machine is left out.

    Cells are numbered from 1, have no metadata, and keep the identifiers that they have.  Where a value shows itself
    both as HTML and as SVG, the SVG is kept: a code host shows it, and strips the styles of HTML.
    """
    cells: list[dict[str, Any]] = []
    count = 0
    for name, cell in zip(_identifiers(notebook["cells"]), notebook["cells"], strict=True):
        kept: dict[str, Any] = {
            "cell_type": cell["cell_type"],
            "id": name,
            "metadata": {},
            "source": lines_of(cell["source"]),
        }
        if cell["cell_type"] == "code":
            count += 1
            kept["execution_count"] = count
            kept["outputs"] = [_normal_output(output, count) for output in cell["outputs"]]
        cells.append(kept)
    return {
        "cells": cells,
        "metadata": {
            "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def as_text(notebook: dict[str, Any]) -> str:
    """A notebook as it is written: one line of JSON for each line of text, so that changes can be read."""
    return json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def text_of(source: str | list[str]) -> str:
    """Text that a notebook keeps whole or in lines."""
    return source if isinstance(source, str) else "".join(source)


def lines_of(source: str | list[str]) -> list[str]:
    """Text in the lines in which notebooks keep it."""
    return re.findall(r"[^\n]*\n|[^\n]+", text_of(source))


def _identifiers(cells: list[dict[str, Any]]) -> list[str]:
    """An identifier for each cell: its own, or the next free number.  Jupyter would add random ones."""
    names: list[str] = []
    taken = {cell["id"] for cell in cells if "id" in cell}
    free = (f"cell-{n}" for n in range(1, 2 * len(cells) + 1) if f"cell-{n}" not in taken)
    for cell in cells:
        names.append(cell["id"] if "id" in cell and cell["id"] not in names else next(free))
    return names


def _normal_output(output: dict[str, Any], count: int) -> dict[str, Any]:
    kept = dict(output)
    if "data" in kept:
        dropped = "text/html" if "image/svg+xml" in kept["data"] else None
        kept["data"] = {kind: lines_of(value) for kind, value in kept["data"].items() if kind != dropped}
    if "text" in kept:
        kept["text"] = lines_of(kept["text"])
    if "execution_count" in kept:
        kept["execution_count"] = count
    return kept


class _Recorder(io.TextIOBase):
    """What a cell prints and displays, in the order in which it does so."""

    def __init__(self) -> None:
        from IPython.core.formatters import DisplayFormatter

        self.outputs: list[dict[str, Any]] = []
        self._formatter = DisplayFormatter()

    def write(self, text: str) -> int:
        if not self.outputs or self.outputs[-1]["output_type"] != "stream":
            self.outputs.append({"output_type": "stream", "name": "stdout", "text": ""})
        self.outputs[-1]["text"] += text
        return len(text)

    def display(self, *values: Any) -> None:
        """Jupyter's `display`."""
        for value in values:
            self.outputs.append({"output_type": "display_data", **self._shown(value)})

    def result(self, value: Any, count: int) -> None:
        """The value of a cell's last expression."""
        if value is not None:
            self.outputs.append(
                {"output_type": "execute_result", "execution_count": count, **self._shown(value)}
            )

    def _shown(self, value: Any) -> dict[str, Any]:
        data, metadata = self._formatter.format(value)
        return {"data": data, "metadata": metadata}


def _run(source: str, where: str, count: int, namespace: dict[str, Any]) -> list[dict[str, Any]]:
    recorder = _Recorder()
    namespace["display"] = recorder.display
    file = f"<{where}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    try:
        tree = ast.parse(source, file)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        with warnings.catch_warnings(), contextlib.redirect_stdout(recorder):
            warnings.simplefilter("error")
            exec(compile(tree, file, "exec"), namespace)  # noqa: S102 - a notebook is code that is run
            if last is not None:
                value = eval(compile(ast.Expression(last.value), file, "eval"), namespace)  # noqa: S307 - same
                recorder.result(value, count)
    except Exception as error:
        raise NotebookError(f"{where}: {type(error).__name__}: {error}\n{source}") from error
    return recorder.outputs
