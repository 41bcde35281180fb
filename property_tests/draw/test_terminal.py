"""Text and color in a terminal: width, NO_COLOR, rich and its absence."""

from __future__ import annotations

import io
import re
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from property_tests.draw.hostile import D, composite, pictures
from tilelayout import LayoutError, S, TileLayout
from tilelayout.draw import Picture, before_after, holders_grid, logical, shared
from tilelayout.draw.text import grid_lines

ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch) -> None:
    for name in ("NO_COLOR", "COLORTERM", "COLUMNS", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


def columns(line: str) -> int:
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line
    )


@given(pictures(), st.integers(8, 90))
def test_no_line_is_wider_than_asked_for(picture: Picture, width: int) -> None:
    for text in (picture.text(width), ESCAPES.sub("", picture.ansi(width, "truecolor"))):
        assert [line for line in text.split("\n") if columns(line) > width] == []


@given(pictures(), st.integers(8, 60))
def test_what_does_not_fit_is_said_to_be_left_out(picture: Picture, width: int) -> None:
    text = " ".join(picture.text(width).split())
    rows, shown = picture.grid.size
    if picture.grid.shown != (rows, shown):
        assert "cropped" in text
    if any(used > width for _, used in grid_lines(picture.grid, None, None)[1:]):
        assert "cropped:" in text or "…" in text


def test_the_rule_of_a_crop_is_written() -> None:
    big = logical(TileLayout(S[100, 200]), (100, 200))
    rule = "cropped: the first 64 of 100 rows and the first 64 of 200 columns"
    assert rule in big.text()
    assert rule in big.svg()
    assert rule in big.html()
    assert rule in big.data()["panels"][0]["grid"]["notes"]
    assert len(list(big.cells)) == 64 * 64
    narrow = big.text(40)
    assert "(width 40)" in " ".join(narrow.split())
    assert "cropped: the first 3 of 64 rows" in shared(TileLayout(S[64, 64]), (64, 64), 16, max_rows=3).text()
    with pytest.raises(LayoutError, match="max_rows"):
        logical(D, (16, 8), max_rows=0)
    with pytest.raises(LayoutError, match="width"):
        big.text(3)


def test_the_grid_of_text_is_what_it_was() -> None:
    tile = TileLayout(S[40, 40])
    lines = holders_grid(tile, (40, 40)).split("\n")
    assert len(lines) == 34
    assert lines[-1] == "cropped: the first 32 of 40 rows and the first 32 of 40 columns"
    assert lines[1].split() == ["0", *[str(c) for c in range(32)]]
    assert holders_grid(D, (16, 8)).splitlines()[10].split()[6] == "T6:3"
    with pytest.raises(LayoutError, match="two numbers"):
        holders_grid(tile, (1600,))


def test_marks_are_text_too() -> None:
    picture = before_after(TileLayout(S[2, 2]), TileLayout(S[(2, 2) : (1, 2)]), (2, 2))
    assert "2*" in picture.text()
    assert "* another holder than before" in picture.text()
    assert "* another holder than before" in picture.svg()


# --- color --------------------------------------------------------------------------------------


def test_color_needs_a_terminal_and_no_objection(monkeypatch) -> None:
    picture = logical(D, (16, 8))
    assert picture.ansi(stream=io.StringIO()) == picture.text()
    assert "\x1b[38;5;" in picture.ansi(stream=Terminal())
    monkeypatch.setenv("COLORTERM", "truecolor")
    assert "\x1b[38;2;" in picture.ansi(stream=Terminal())
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in picture.ansi(stream=Terminal())
    assert "\x1b[" in picture.ansi(color="256", stream=Terminal())  # asked for in so many words
    monkeypatch.setenv("NO_COLOR", "")  # empty does not count (no-color.org)
    assert "\x1b[" in picture.ansi(stream=Terminal())
    monkeypatch.setenv("TERM", "dumb")
    assert "\x1b" not in picture.ansi(stream=Terminal())
    with pytest.raises(LayoutError, match="did you mean 'truecolor'"):
        picture.ansi(color="truecolour")


@given(pictures())
def test_colored_text_is_the_text(picture: Picture) -> None:
    plain = picture._replace(legend=None).text()
    colored = picture._replace(legend=None).ansi(color="truecolor")
    assert [x.rstrip() for x in ESCAPES.sub("", colored).split("\n")] == plain.split("\n")


def test_a_cell_has_its_fill_and_ink() -> None:
    from tilelayout.draw.colors import PALETTES, ink

    picture = logical(TileLayout(S[1, 3]), color="m")
    codes = re.findall(
        r"\x1b\[38;2;(\d+);(\d+);(\d+);48;2;(\d+);(\d+);(\d+)m *(\d)\x1b\[0m", picture.ansi(color=True)
    )
    for *rgb, k in codes:
        both = ["#" + "".join(f"{int(x):02x}" for x in part) for part in (rgb[:3], rgb[3:])]
        fill = PALETTES["categories"][int(k)]
        assert both == [ink(fill), fill]
    assert [code[-1] for code in codes] == ["0", "1", "2"]


def test_columns_gives_the_width(monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    text = logical(D, (16, 8)).ansi(stream=io.StringIO())
    assert max(map(len, text.split("\n"))) <= 30
    monkeypatch.setenv("COLUMNS", "1")
    assert logical(D, (16, 8)).ansi(stream=io.StringIO())


@pytest.mark.parametrize("with_rich", [True, False])
def test_print_uses_rich_where_it_is(monkeypatch, with_rich: bool) -> None:
    if with_rich:
        pytest.importorskip("rich")
    else:
        for name in [n for n in sys.modules if n.split(".")[0] == "rich"]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, "rich", None)
        monkeypatch.setitem(sys.modules, "rich.console", None)
    monkeypatch.setenv("COLUMNS", "70")
    out = Terminal()
    logical(D, (16, 8)).print(out)
    plain = ESCAPES.sub("", out.getvalue())
    assert "\x1b[" in out.getvalue()
    assert plain.splitlines()[11].split()[:3] == ["8", "T0:2", "T0:3"]
    assert max(map(len, plain.splitlines())) <= 70
    monkeypatch.setenv("NO_COLOR", "1")
    quiet = Terminal()
    logical(D, (16, 8)).print(quiet)
    assert not re.search(r"[34]8;[25];", quiet.getvalue())
    piped = io.StringIO()
    composite().print(piped)
    assert "\x1b" not in piped.getvalue()


def test_panels_stand_below_one_another_where_they_must() -> None:
    wide, narrow = composite().text().split("\n"), composite().text(60).split("\n")
    assert any(line.count("0     1") > 1 or line.count(" 0 ") > 1 for line in wide)
    heads = [line for line in narrow if line.startswith(("A<: ", "B&: ", 'C": '))]
    assert len(heads) == 3
