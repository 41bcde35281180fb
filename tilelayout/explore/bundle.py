"""The page as one text: the sources in `page/` put together, with the package's own tables as data.

`core` is what calculates, and needs no browser; `document` is the whole page.
"""

from __future__ import annotations

import re
from functools import cache

from ..axis import axes
from ..draw.colors import EMPTY, INKS, PALETTES, ink
from ..draw.model import SIGNS
from ..draw.places import LISTED, MAX_COLUMNS, MAX_ROWS
from ..draw.views.hardware import WRITTEN as ELEMENTS_WRITTEN
from ..draw.views.logical import WRITTEN
from ..draw.wording import LANES, LETTERS, NAMES, ORDER, TOLD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Final

CORE: Final = (
    "errors.js layout.js swizzle.js parser.js algebra.js slice.js wording.js grids.js banks.js formula.js steps.js "
    "answer.js"
).split()
"""What calculates, in the order in which it is read."""

SHOWN: Final = "state.js tables.js details.js render.js select.js main.js".split()
"""What draws and listens."""


@cache
def source(name: str) -> str:
    """One of the files in `page/`."""
    from importlib.resources import files

    return files(__name__.rpartition(".")[0]).joinpath("page", name).read_text(encoding="utf-8")


def house() -> dict[str, Any]:
    """What the page takes from the package instead of having it twice: axes, words, palettes, limits."""
    return {
        "axes": {axis.name: axis.kind for axis in axes()},
        "order": list(ORDER),
        "letters": dict(LETTERS),
        "names": dict(NAMES),
        "lanes": list(LANES),
        "palettes": {name: list(colors) for name, colors in PALETTES.items()},
        "inks": {color: ink(color) for colors in (*PALETTES.values(), (EMPTY, *INKS)) for color in colors},
        "empty": EMPTY,
        "signs": {name: list(sign) for name, sign in SIGNS.items()},
        "listed": LISTED,
        "max_rows": MAX_ROWS,
        "max_columns": MAX_COLUMNS,
        "written": WRITTEN,
        "elements_written": ELEMENTS_WRITTEN,
        "told": TOLD,
    }


def as_json(value: Any) -> str:
    """JSON that may stand inside a script: nothing in it ends the script or opens a comment."""
    import json

    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def core() -> str:
    """A script that defines ``answer(question)`` and all that it stands on, for a page or for a test."""
    return "\n".join([f"const HOUSE = {as_json(house())};", *[source(name) for name in CORE]])


def document(title: str, start: Mapping[str, Any]) -> str:
    """The page: HTML with its style, its script and what it shows first, and nothing from anywhere else."""
    from ..draw.svg import escape

    scripts = [core(), f"const START = {as_json(start)};", *[source(name) for name in SHOWN]]
    script = '"use strict";\n(() => {\n' + "\n".join(scripts) + "\n})();"
    marks = {"<!--title-->": escape(title), "/*style*/": source("page.css"), "/*script*/": script}
    parts = re.split("|".join(map(re.escape, marks)), source("page.html"))
    return "".join([text for pair in zip(parts, [*marks.values(), ""], strict=True) for text in pair])
