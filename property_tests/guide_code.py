"""The code of sections of the guide, executed: what other tests, and the GPU, ask of it beside what the guide shows."""

from __future__ import annotations

import contextlib
import doctest
import io
import re
from pathlib import Path
from typing import Any

GUIDE = Path(__file__).resolve().parents[1] / "docs" / "guide"


def executed(name: str, *sections: str) -> dict[str, Any]:
    """The namespace that the blocks of those sections leave, executed in their order.

    Examples that end in an exception are left out.
    """
    parts = dict(
        re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", (GUIDE / name).read_text(), re.DOTALL | re.MULTILINE)
    )
    space: dict[str, Any] = {}
    for section in sections:
        for block in re.findall(r"^```pycon\n(.*?)^```", parts[section], re.DOTALL | re.MULTILINE):
            for example in doctest.DocTestParser().get_examples(block):
                if example.exc_msg is None:
                    code = compile(example.source, f"<{name}>", "single", dont_inherit=True)
                    with contextlib.redirect_stdout(io.StringIO()):
                        exec(code, space)  # noqa: S102 - the guide is code that is run
    return space
