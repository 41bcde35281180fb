"""``show``, ``banks`` and ``explore``: pictures in every form, with what the layout says in them."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings

from property_tests import strategies as own
from property_tests.cli.shell import answer, run
from tilelayout import S, Swizzle, SwizzledLayout, TileLayout, laneid
from tilelayout.analysis import Access, bank_conflicts
from tilelayout.cli.inputs import layout_of

D = TileLayout(S[(2, 8, 4, 2) : (2, 4 @ laneid, 1 @ laneid, 1)])
TILE = "Swizzle(3, 3, 3) o S[8, 64]"


def cells(data: dict) -> list[dict]:
    return [cell for panel in data["panels"] for row in panel["grid"]["cells"] for cell in row]


@settings(max_examples=40)
@given(layout=own.layouts(max_size=48))
def test_the_cells_are_the_owners(layout: TileLayout) -> None:
    data = json.loads(answer("show", str(layout), "--json", "-"))
    found = {tuple(cell["elements"][0]): cell["holders"] for cell in cells(data)}
    assert len(found) == layout.size()
    for flat, holders in enumerate(found[key] for key in sorted(found)):
        assert holders == [{str(a): v for a, v in place.items()} for place in layout.owners(flat)]


@pytest.mark.parametrize("view", ["logical", "hardware", "shared", "bits", "iters"])
@pytest.mark.parametrize("layout", [TILE, "S[8, 64]"])
def test_every_view_has_every_form(view: str, layout: str, tmp_path: Path) -> None:
    asked = ["show", layout, "--shape", "8,64", "--view", view, "--element-bits", "16"]
    files = {form: tmp_path / f"x.{form}" for form in ("svg", "html", "json")}
    said = answer(*asked, *[word for form, path in files.items() for word in (f"--{form}", str(path))])
    assert said == "", "what goes to files is not written twice"
    assert ElementTree.fromstring(files["svg"].read_text()).tag.endswith("svg")
    assert files["html"].read_text().startswith("<!doctype html>")
    assert cells(json.loads(files["json"].read_text()))
    assert answer(*asked, "--svg", "-") == files["svg"].read_text()
    assert answer(*asked).startswith(str(layout_of(layout)))


def test_pictures_are_those_of_the_library() -> None:
    assert answer("show", str(D), "--shape", "16,8") == f"{D.draw('logical', (16, 8))}\n"
    hardware = D.draw("hardware", (16, 8), bits=32, color="laneid")
    asked = (
        "show",
        str(D),
        "--shape",
        "16,8",
        "--view",
        "hardware",
        "--element-bits",
        "32",
        "--color-by",
        "laneid",
    )
    assert answer(*asked) == f"{hardware}\n"
    assert answer(*asked, "--svg", "-") == hardware.svg().rstrip("\n") + "\n"


def test_the_width_and_the_crop_are_kept() -> None:
    text = answer("show", "S[100, 100]", "--rows", "5", "--columns", "50", "--width", "40")
    assert max(map(len, text.splitlines())) <= 40
    assert "the first 5 of 100 rows" in " ".join(text.split())
    data = json.loads(answer("show", "S[100, 100]", "--rows", "5", "--columns", "7", "--json", "-"))
    assert len(cells(data)) == 35


ACCESSES = [
    (["rows"], Access.rows((8, 64))),
    (["rows", "--vector", "8"], Access.rows((8, 64), vector=8)),
    (["rows", "--vector", "4", "--lanes", "8", "--at", "2,0"], Access.rows((8, 64), 4, 8, (2, 0))),
    (["column", "--lanes", "8", "--vector", "8", "--at", "0,16"], Access.column((8, 64), 16, 0, 8, 8)),
    (["ldmatrix"], Access.matrices((8, 64))),
    (["stmatrix", "--at", "0,0", "--at", "0,8"], Access.matrices((8, 64), [(0, 0), (0, 8)], kind="stmatrix")),
]


@pytest.mark.parametrize(("words", "access"), ACCESSES)
@pytest.mark.parametrize("layout", [TileLayout(S[8, 64]), SwizzledLayout(S[8, 64], Swizzle(3, 3, 3))])
def test_banks_says_what_the_analysis_says(words: list[str], access: Access, layout: TileLayout) -> None:
    report = bank_conflicts(layout, access, 16)
    ran = run("banks", str(layout), "--element-bits", "16", "--access", *words)
    assert (ran.out, ran.err) == (f"{report}\n", "")
    assert ran.code == (0 if report.is_free else 1)


def test_banks_of_a_column_by_hand() -> None:
    """32 lanes down a column of 32 words a row are all in one bank; a padding of one word spreads them."""
    plain = answer("banks", "S[32, 32]", "--element-bits", "32", "--access", "column", code=1)
    assert "32-way conflicts, 32 wavefronts where 1 would do" in plain
    padded = answer("banks", "S[(32, 32) : (33, 1)]", "--element-bits", "32", "--access", "column")
    assert "no conflicts, 1 wavefront" in padded


def test_banks_draws_and_finds_the_best(tmp_path: Path) -> None:
    svg = tmp_path / "banks.svg"
    asked = ["banks", "S[8, 64]", "--element-bits", "16", "--access", "ldmatrix"]
    assert "8-way" in answer(*asked, "--svg", str(svg), code=1)
    assert "bank conflict" in svg.read_text()
    assert "Swizzle(3, 3, 3)" in answer(*asked, "--access", "rows", "--vector", "8", "--best", code=1)
    marked = answer(*asked, "--draw", code=1)
    assert marked.count("8-way conflicts") == 1
    assert "! bank conflict" in marked


def test_the_explorers_page_is_the_librarys(tmp_path: Path) -> None:
    from tilelayout.explore import explore

    page = tmp_path / "page.html"
    step = ("--step", "tile_to 16,16 16,8")
    assert answer("explore", str(D), "--shape", "16,8", "--element-bits", "32", *step, "-o", str(page)) == ""
    made = explore(D, (16, 8), bits=32, steps=[("tile_to", (16, 16), (16, 8))])
    assert page.read_text() == made.html().rstrip("\n") + "\n"
    assert str(D) in page.read_text()
