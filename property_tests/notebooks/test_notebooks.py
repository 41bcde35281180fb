"""The notebooks run without a warning, show what is stored, and are what a reader can follow."""

from __future__ import annotations

import ast
import re
from typing import Any
from xml.etree import ElementTree

import pytest

from notebooks.session import FOLDER, as_text, normal, read, text_of

from .executed import PATHS, code, fresh, prose, shown

pytestmark = pytest.mark.parametrize("name", PATHS)


def test_shows_what_is_stored(name: str) -> None:
    new, old = fresh(name)[0], read(PATHS[name])
    stale = [
        n
        for n, (x, y) in enumerate(zip(new["cells"], old["cells"], strict=True), 1)
        if as_text(x) != as_text(y)
    ]
    assert not stale, f"{name}: cells {stale} show something else now: read it, then make notebooks-refresh"
    assert as_text(new) == PATHS[name].read_text(encoding="utf-8")


def test_claims_stand_in_the_notebook(name: str) -> None:
    asserts = [
        node for cell in code(name) for node in ast.walk(ast.parse(cell)) if isinstance(node, ast.Assert)
    ]
    assert len(asserts) >= 8
    assert len(shown(name, "image/svg+xml")) >= 2


def test_reads_well(name: str) -> None:
    text = prose(name)
    assert text.startswith(f"# {int(name[:2])}. ")
    assert "## Try it" in text
    assert max(len(line) for line in text.splitlines() if line[:1] != "|") <= 120
    assert max(cell.count("\n") + 1 for cell in code(name)) <= 30
    titles = re.findall(r"^# .*$", text, re.MULTILINE)
    assert len(titles) == 1


def test_links_exist(name: str) -> None:
    for link in re.findall(r"\]\(([^)#:]+)\)", prose(name)):
        assert (FOLDER / link).exists(), link


def test_stores_nothing_of_a_machine_or_a_run(name: str) -> None:
    text = PATHS[name].read_text(encoding="utf-8")
    assert not re.search(r"0x[0-9a-f]{6,}|/(home|tmp|root)/|site-packages|iopub", text)


def test_pictures_are_xml_and_have_text_beside_them(name: str) -> None:
    for svg in shown(name, "image/svg+xml"):
        ElementTree.fromstring(svg)
    for cell in read(PATHS[name])["cells"]:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "image/svg+xml" in data:
                assert not text_of(data["text/plain"]).startswith("<")


def test_is_a_notebook(name: str) -> None:
    import nbformat

    nbformat.validate(nbformat.read(PATHS[name], as_version=4))


@pytest.mark.slow
def test_a_kernel_stores_the_same(name: str) -> None:
    """`session` stands in for Jupyter; here Jupyter runs it.

    When a kernel sends the last of what is printed is its own affair, so text and values are compared apart.
    """
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(PATHS[name], as_version=4)
    resources = {"metadata": {"path": str(FOLDER.parent)}}
    NotebookClient(notebook, timeout=120, kernel_name="python3", resources=resources).execute()
    for number, (new, old) in enumerate(
        zip(normal(notebook)["cells"], read(PATHS[name])["cells"], strict=True), 1
    ):
        assert printed(new) == printed(old), number
        assert values(new) == values(old), number


def printed(cell: dict[str, Any]) -> str:
    return "".join(text_of(o["text"]) for o in cell.get("outputs", []) if o["output_type"] == "stream")


def values(cell: dict[str, Any]) -> list[dict[str, Any]]:
    return [o for o in cell.get("outputs", []) if o["output_type"] != "stream"]
