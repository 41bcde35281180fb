"""Tables of words in the formats that a shell, a spreadsheet, a program or a page takes."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from typing import Any

FORMATS = ("text", "csv", "json", "markdown")


def written(head: Sequence[str], rows: Sequence[Sequence[Any]], form: str) -> str:
    """A table as aligned text, CSV, a JSON list of objects, or Markdown.

    >>> print(written(["lane", "register"], [[0, 1], [12, 3]], "markdown"))
    | lane | register |
    | --- | --- |
    | 0 | 1 |
    | 12 | 3 |
    >>> print(written(["lane", "register"], [[0, 1], [12, 3]], "text"))
    lane  register
       0         1
      12         3
    """
    if form == "json":
        return json.dumps([dict(zip(head, row, strict=True)) for row in rows], indent=1)
    if form == "csv":
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerows([head, *rows])
        return out.getvalue().rstrip("\n")
    table = [[str(cell) for cell in row] for row in (head, *rows)]
    if form == "markdown":
        lines = [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in table]
        return "\n".join([lines[0], f"| {' | '.join(['---'] * len(head))} |", *lines[1:]])
    widths = [max(len(row[c]) for row in table) for c in range(len(head))]
    number = [all(isinstance(row[c], int) for row in rows) for c in range(len(head))]
    return "\n".join(
        [
            "  ".join(
                [
                    cell.rjust(w) if n else cell.ljust(w)
                    for cell, w, n in zip(row, widths, number, strict=True)
                ]
            ).rstrip()
            for row in table
        ]
    )
