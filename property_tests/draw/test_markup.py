"""SVG and HTML: well-formed whatever is in them, without anything from outside, the same each time."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given

from property_tests.draw.hostile import COPIED, NASTY, D, composite, pictures
from tilelayout import LayoutError, S, TileLayout
from tilelayout.draw import Cell, Grid, Legend, Panel, Picture, logical
from tilelayout.draw.colors import EMPTY, PALETTES
from tilelayout.draw.gallery import gallery, main

ROOT = Path(__file__).resolve().parents[2]
STORED = ROOT / "docs" / "pictures"
SVG = "{http://www.w3.org/2000/svg}"
VOID = {"br", "meta"}


def elements(picture: Picture):
    return ElementTree.fromstring(picture.svg())


def shown(text: str) -> str:
    """Text as the renderers clean it."""
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]", "\ufffd", text)


class Balanced(HTMLParser):
    """Collects elements, and fails where an end tag doesn't fit."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag, attrs) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag) -> None:
        assert self.open.pop() == tag

    @classmethod
    def of(cls, text: str) -> Balanced:
        parser = cls()
        parser.feed(text)
        parser.close()
        assert parser.open == []
        return parser


@given(pictures())
def test_svg_is_well_formed_and_says_what_the_cells_say(picture: Picture) -> None:
    root = elements(picture)
    assert root.tag == f"{SVG}svg"
    groups = root.findall(f"{SVG}g")
    cells = list(picture.cells)
    assert len(groups) == len(cells)
    for group, cell in zip(groups, cells, strict=True):
        assert group.find(f"{SVG}title").text == shown(cell.title)
        lines = [x.text or "" for x in group.findall(f"{SVG}text")]
        assert lines[: len(cell.lines)] == [
            shown(x).replace("\n", " ").replace("\t", " ") for x in cell.lines
        ]
        fill = EMPTY if cell.color is None else PALETTES[picture.palette][cell.color]
        assert group.find(f"{SVG}rect").get("fill") == fill
    assert {x.tag for x in root.iter()} <= {SVG + t for t in ("svg", "style", "rect", "text", "g", "title")}


@given(pictures())
def test_html_is_balanced_and_holds_no_foreign_element(picture: Picture) -> None:
    for text in (picture.html(), picture.html(document=True)):
        seen = Balanced.of(text).seen
        allowed = (
            "figure figcaption strong br table tr th td div span sup html head meta title style body".split()
        )
        assert {tag for tag, _ in seen} <= set(allowed)
        assert not [
            name for _, found in seen for name in found if name.startswith("on") or name in ("src", "href")
        ]
        cells = [found for tag, found in seen if tag == "td"]
        assert [found.get("title") for found in cells] == [shown(c.title) for c in picture.cells]


@given(pictures())
def test_data_survives_json(picture: Picture) -> None:
    data = picture.data()
    text = json.dumps(data)
    assert json.loads(text) == data
    flat = [cell for panel in data["panels"] for row in panel["grid"]["cells"] for cell in row]
    assert [tuple(map(tuple, c["elements"])) for c in flat] == [c.elements for c in picture.cells]


@pytest.mark.parametrize("form", ["svg", "html"])
def test_nothing_comes_from_outside(form: str) -> None:
    for picture in (*gallery().values(), composite(), logical(D, (16, 8), title=NASTY)):
        text = getattr(picture, form)()
        assert not re.search(
            r"https?://(?!www\.w3\.org/2000/svg\")|url\(|@import|<script|<image|<use|\bsrc=|href=", text
        )


def test_a_nasty_title_and_a_nasty_label_are_escaped() -> None:
    picture = logical(TileLayout(S[2, 2]), (2, 2), title=NASTY, label=lambda _: NASTY, color=lambda *_: NASTY)
    for text in (picture.svg(), picture.html(), picture.html(document=True)):
        assert "<script" not in text
        assert "&lt;script&gt;" in text
        assert "&amp;amp;" in text
        assert "\x1b" not in text
    assert "\x1b" not in picture.text()
    assert picture.text().isprintable() or all(c == "\n" or c.isprintable() for c in picture.text())


def test_nothing_in_a_picture_is_trusted() -> None:
    """Other tools fill the data model too: every text of it is escaped."""
    cell = Cell((NASTY,), NASTY, color=0, marks=("conflict",))
    grid = Grid(((cell,),), (NASTY,), (NASTY,), NASTY, NASTY, NASTY, (2, 2), NASTY, (NASTY,))
    picture = Picture(
        NASTY, (Panel(grid), Panel(grid, 0, 1)), NASTY, (NASTY,), Legend(NASTY, ((0, NASTY),)), arrow="->"
    )
    root = elements(picture)
    assert root.find(f"{SVG}g").find(f"{SVG}title").text == shown(NASTY)
    parsed = Balanced.of(picture.html(document=True))
    assert "script" not in [tag for tag, _ in parsed.seen]
    assert all(c == "\n" or c.isprintable() for c in picture.text())


def test_every_holder_is_in_the_cell_and_in_the_hover() -> None:
    group = elements(logical(COPIED, (4, 4))).findall(f"{SVG}g")[5]
    assert [x.text for x in group.findall(f"{SVG}text")] == ["T2:1", "T3:1"]
    assert group.find(f"{SVG}title").text == "element (1, 1)\nlane 2, slot 1\nlane 3, slot 1"


def test_the_panels_of_a_composite_stand_where_the_figure_has_them() -> None:
    def corner(cells):
        rect = cells.find(f"{SVG}rect")
        return float(rect.get("x")), float(rect.get("y"))

    groups = elements(composite()).findall(f"{SVG}g")
    b, a, c = corner(groups[0]), corner(groups[64]), corner(groups[64 + 128])
    assert b[0] == c[0] > a[0]  # B's columns above C's
    assert a[1] == c[1] > b[1]  # A's rows beside C's


def test_cells_do_not_overlap_and_lie_inside() -> None:
    for picture in gallery().values():
        root = elements(picture)
        width, height = float(root.get("width")), float(root.get("height"))
        boxes = [group.find(f"{SVG}rect") for group in root.findall(f"{SVG}g")]
        corners = {(float(r.get("x")), float(r.get("y"))) for r in boxes}
        assert len(corners) == len(boxes)
        for r in boxes:
            assert float(r.get("x")) + float(r.get("width")) <= width
            assert float(r.get("y")) + float(r.get("height")) <= height
        for text in root.iter(f"{SVG}text"):
            assert 0 <= float(text.get("x")) <= width
            assert 0 <= float(text.get("y")) <= height


# --- what is stored -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(gallery()))
def test_the_stored_pictures_are_what_is_drawn(name: str) -> None:
    """Snapshots: `make pictures` writes them anew when a picture is meant to change."""
    assert (STORED / f"{name}.svg").read_text(encoding="utf-8") == gallery()[name].svg()


def test_no_other_pictures_are_stored(tmp_path: Path) -> None:
    assert main([str(tmp_path)]) == 0
    assert (
        {p.name for p in STORED.iterdir()}
        >= {p.name for p in tmp_path.iterdir()}
        == {f"{n}.svg" for n in gallery()}
    )


def test_light_and_dark_are_both_cared_for() -> None:
    style = elements(logical(D, (16, 8))).find(f"{SVG}style").text
    assert "@media (prefers-color-scheme:dark)" in style
    assert "color-scheme:light dark" in logical(D, (16, 8)).html(document=True)


# --- saving -------------------------------------------------------------------------------------


def test_saving_takes_the_form_from_the_suffix(tmp_path: Path) -> None:
    picture = logical(D, (16, 8))
    for suffix in ("svg", "html", "txt", "ansi", "json"):
        picture.save(tmp_path / f"d.{suffix}")
    assert (tmp_path / "d.svg").read_text() == picture.svg()
    assert (tmp_path / "d.html").read_text() == picture.html(document=True)
    assert (tmp_path / "d.txt").read_text() == picture.text() + "\n"
    with pytest.raises(LayoutError, match=r"no picture has the suffix '\.exe', known: \.svg, .*one of \.svg"):
        picture.save(tmp_path / "d.exe")
    assert "\x1b[" in (tmp_path / "d.ansi").read_text()
    assert json.loads((tmp_path / "d.json").read_text()) == picture.data()
    with pytest.raises(LayoutError, match="svg"):
        picture.save(tmp_path / "d.sgv")
    assert not (tmp_path / "d.sgv").exists()


@given(pictures())
def test_a_picture_shrinks_to_the_width_of_its_page(picture: Picture) -> None:
    """A wide one would be cut off in a notebook; that it keeps its proportions takes the box of what is drawn."""
    root = elements(picture)
    assert root.get("style") == "max-width:100%;height:auto"
    assert root.get("viewBox") == f"0 0 {root.get('width')} {root.get('height')}"


def test_drawing_writes_nothing(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    picture = composite()
    assert all([picture.svg(), picture.html(), picture.text(), picture.ansi(), picture.data()])
    assert list(tmp_path.iterdir()) == []
    assert capsys.readouterr() == ("", "")
