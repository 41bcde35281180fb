"""Values show themselves: in a notebook, in a rich console, and by `draw`."""

from __future__ import annotations

import subprocess
import sys
from xml.etree import ElementTree

import pytest
import sympy
from hypothesis import given

from lowering import Tile, gemm, lower
from lowering.fragments import A_FRAG, B_FRAG, D_FRAG
from lowering.isa import MMA_INSTRUCTIONS
from property_tests import strategies as own
from property_tests.draw.hostile import D
from tilelayout import LayoutError, S, Swizzle, SwizzledLayout, TileLayout
from tilelayout.draw import hardware, iters, logical
from tilelayout.draw.painter import VIEWS

k = sympy.Symbol("k", integer=True, positive=True)

TD = Tile("D", (16, 8), "float32", D_FRAG)
TA = Tile("A", (16, 16), "float16", A_FRAG)
TB = Tile("B", (16, 8), "float16", B_FRAG)
CALL = gemm(TD, TA, TB, TD)
LOWERED = lower(CALL, target="sm_80", scope="warp")

SHOWN = {
    "layout": D,
    "swizzled": SwizzledLayout(S[8, 64], Swizzle(3, 3, 3)),
    "large": TileLayout(S[4096, 4096]),
    "symbolic": TileLayout(S[8, k]),
    "tile": TA,
    "region": TA[0:8, 8:16],
    "call": CALL,
    "lowered": LOWERED,
    "instruction": MMA_INSTRUCTIONS[0],
}


@pytest.mark.parametrize("name", SHOWN)
def test_a_notebook_gets_text_and_a_picture(name: str) -> None:
    value = SHOWN[name]
    bundle = value._repr_mimebundle_(include=None, exclude=None)
    assert bundle["text/plain"] == repr(value)
    assert ElementTree.fromstring(bundle["image/svg+xml"]).tag.endswith("svg")
    assert bundle["text/html"].startswith("<figure")
    assert len(bundle["text/html"]) < 2_000_000


@given(own.layouts())
def test_any_layout_shows_itself(layout) -> None:
    assert set(layout._repr_mimebundle_()) == {"text/plain", "text/html", "image/svg+xml"}


@pytest.mark.parametrize("name", SHOWN)
def test_rich_prints_it_within_the_width(name: str) -> None:
    console = pytest.importorskip("rich.console").Console(width=60, record=True, file=open_nothing())
    console.print(SHOWN[name])
    lines = console.export_text().splitlines()
    assert len(lines) > 2
    assert max(map(len, lines)) <= 60


def open_nothing():
    import io

    return io.StringIO()


def test_what_a_notebook_shows_of_a_lowered_call_holds_the_nest() -> None:
    html = LOWERED._repr_mimebundle_()["text/html"]
    assert "<details>" in html
    assert "d_local" in html


def test_draw_is_the_view_of_that_name() -> None:
    assert D.draw("logical", (16, 8)) == D.draw(shape=(16, 8)) == logical(D, (16, 8))
    assert D.draw("hardware", (16, 8), bits=32) == hardware(D, (16, 8), bits=32)
    assert TA.draw("hardware").panels == hardware(A_FRAG, (16, 16), bits=16).panels
    assert TA.draw("iters").panels == iters(A_FRAG).panels
    assert set(VIEWS) == {*"logical hardware shared tiling bits iters operation before_after".split()}
    with pytest.raises(LayoutError, match="unknown view 'hardwre', did you mean 'hardware'"):
        D.draw("hardwre")


def test_the_pictures_of_a_gemm() -> None:
    picture = LOWERED.draw(at=(9, 5))
    assert [panel.grid.shown for panel in picture.panels] == [(16, 8), (16, 16), (16, 8)]
    cell = picture.panels[1].grid.cells[5][9]
    assert cell.holders == A_FRAG.owners(5, 9, shape=(16, 16))
    assert "lane 20, slot 5 (register 2, bits 16-31; bytes 10-11)" in cell.title
    assert LOWERED.draw("A registers").grid.cells[20][5].elements == ((5, 9),)
    assert CALL.draw("B").panels == logical(B_FRAG, (16, 8), bits=16).panels
    with pytest.raises(LayoutError, match="did you mean 'A registers'"):
        LOWERED.draw("A register")


def test_a_transposed_operand_is_drawn_upright() -> None:
    from lowering.fragments import transposed

    at = Tile("A", (16, 16), "float16", transposed(A_FRAG, (16, 16)))
    turned = gemm(TD, at, TB, TD, transpose_a=True).draw()
    upright = CALL.draw()
    assert [[c.lines for c in row] for row in turned.panels[1].grid.cells] == [
        [c.lines for c in row] for row in upright.panels[1].grid.cells
    ]


def test_a_region_shows_the_holders_of_its_elements() -> None:
    grid = TA[0:8, 8:16].draw().grid
    for row in range(8):
        for column in range(8):
            expected = A_FRAG.owners(row, 8 + column, shape=(16, 16))
            found = grid.cells[row][column].holders
            assert [dict(p) for p in found] == [dict(p) for p in expected]


def test_symbols_are_refused_by_views_and_shown_as_a_table() -> None:
    with pytest.raises(LayoutError, match="symbolic"):
        logical(SHOWN["symbolic"], (8, k))
    assert "8*k elements" in iters(SHOWN["symbolic"]).text()
    assert "8*k" in SHOWN["symbolic"]._repr_mimebundle_()["text/html"]


def test_a_layout_does_not_load_its_painter_before_it_is_shown() -> None:
    code = """
import sys
from tilelayout import S, TileLayout
x = TileLayout(S[8, 4])
assert "tilelayout.draw" not in sys.modules
x._repr_mimebundle_()
assert "tilelayout.draw" in sys.modules and "rich" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
