"""What executes and refreshes the notebooks: outputs as Jupyter has them, failures with their place."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from notebooks.refresh import main, refresh
from notebooks.session import FOLDER, NotebookError, as_text, execute, normal, notebooks
from tilelayout import S, TileLayout


def made_of(*sources: str) -> dict[str, Any]:
    return {"cells": [{"cell_type": "code", "source": s, "outputs": []} for s in sources]}


def outputs(*sources: str) -> list[list[dict[str, Any]]]:
    return [cell["outputs"] for cell in execute(made_of(*sources))[0]["cells"]]


def test_outputs_stand_in_their_order() -> None:
    (found,) = outputs("print('a')\nprint('b')\ndisplay(1)\nprint('c', end='')\n2")
    assert [o["output_type"] for o in found] == ["stream", "display_data", "stream", "execute_result"]
    assert found[0]["text"] == ["a\n", "b\n"]
    assert found[2]["text"] == ["c"]
    assert (found[1]["data"], found[3]["data"]) == ({"text/plain": ["1"]}, {"text/plain": ["2"]})


def test_cells_share_a_namespace_and_are_numbered() -> None:
    notebook, space = execute(made_of("x = 1", "x += 1\nx", "None"))
    assert space["x"] == 2
    assert [cell["execution_count"] for cell in notebook["cells"]] == [1, 2, 3]
    assert [len(cell["outputs"]) for cell in notebook["cells"]] == [0, 1, 0]
    assert notebook["cells"][1]["outputs"][0]["execution_count"] == 2


def test_a_failure_names_its_cell() -> None:
    with pytest.raises(NotebookError, match=r"(?s)^some, cell 2: ZeroDivisionError: .*x / 0"):
        execute(made_of("x = 1", "x / 0"), "some")
    with pytest.raises(NotebookError, match="cell 1: SyntaxError"):
        execute(made_of("%matplotlib inline"))
    with pytest.raises(NotebookError, match="cell 1: AssertionError: claim"):
        execute(made_of("assert 1 == 2, 'claim'"))


def test_a_warning_is_a_failure() -> None:
    with pytest.raises(NotebookError, match="DeprecationWarning: old"):
        execute(made_of("import warnings\nwarnings.warn('old', DeprecationWarning)"))


def test_values_show_themselves_as_in_jupyter() -> None:
    """SVG without the HTML that says the same; the picture's text, although a picture is a tuple."""
    (first,), (second,), (third,) = outputs(
        "from tilelayout import S, TileLayout\nlayout = TileLayout(S[2, 2])\nlayout",
        "layout.draw()",
        "from IPython.core.formatters import DisplayFormatter as F\nF().format(layout)[0]['text/html'][:7]",
    )
    picture = TileLayout(S[2, 2]).draw()
    assert set(first["data"]) == {"image/svg+xml", "text/plain"}
    assert "".join(second["data"]["image/svg+xml"]) == picture.svg()
    assert "".join(second["data"]["text/plain"]) == picture.text()
    assert third["data"] == {"text/plain": ["'<figure'"]}


def test_the_normal_form_is_normal() -> None:
    notebook = execute(made_of("1", "print(2)"))[0]
    assert normal(notebook) == notebook
    noisy = {**notebook, "metadata": {"language_info": {"version": "3.99"}}}
    noisy["cells"] = [
        {
            **cell,
            "metadata": {"execution": {"iopub.execute_input": "now"}},
            "execution_count": 77,
        }
        for cell in notebook["cells"]
    ]
    assert as_text(normal(noisy)) == as_text(notebook)


def test_cells_keep_their_identifiers_and_get_new_ones_once() -> None:
    notebook = made_of("1", "2", "3", "4")
    for cell, name in zip(notebook["cells"], ("ab12", None, "cell-1", "ab12"), strict=True):
        if name:
            cell["id"] = name
    assert [cell["id"] for cell in normal(notebook)["cells"]] == ["ab12", "cell-2", "cell-1", "cell-3"]
    assert normal(normal(notebook)) == normal(notebook)


def test_refresh_finds_and_mends_what_is_stale(tmp_path: Path) -> None:
    path = tmp_path / "01_some.ipynb"
    path.write_text(as_text(normal(made_of("1 + 1"))))
    assert refresh(path, check=True) == 1
    assert refresh(path, check=False) == 0
    assert refresh(path, check=True) == 0
    good = path.read_text()
    path.write_text(good.replace('"2"', '"3"'))
    assert refresh(path, check=True) == 1
    path.write_text(as_text(normal(made_of("1 / 0"))))
    assert refresh(path, check=False) == 1


def test_refresh_knows_its_notebooks(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["no-such-notebook"])
    assert "no notebook begins with no-such-notebook" in capsys.readouterr().err


def test_the_path_is_in_its_readme() -> None:
    """In order, each with a line of what it is about."""
    text = (FOLDER / "README.md").read_text()
    assert re.findall(r"\]\((\d\d_\w+\.ipynb)\)", text) == [path.name for path in notebooks()]
    assert [int(path.name[:2]) for path in notebooks()] == list(range(1, len(notebooks()) + 1))
    for link in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (FOLDER / link).exists(), link
    targets = set(re.findall(r"^([a-z-]+):", (FOLDER.parent / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"`?make ([a-z-]+)", text)) <= targets
