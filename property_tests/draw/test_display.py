"""Values show themselves: in a notebook, in a rich console, and by `draw`."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
import sympy
from hypothesis import given

from lowering import Tile, gemm, lower
from lowering.display import composite, operands_of
from lowering.fragments import A_FRAG, B_FRAG, D_FRAG
from lowering.isa import DENSE, MMA_INSTRUCTIONS
from lowering.isa.ldmatrix import LDMATRIX
from lowering.isa.movmatrix import MOVMATRIX
from lowering.isa.sparse import MMA_SP
from lowering.isa.stmatrix import STMATRIX
from lowering.isa.wgmma import WGMMA_FRAGMENTS
from property_tests import strategies as own
from property_tests.draw.hostile import D
from tilelayout import LayoutError, S, Swizzle, SwizzledLayout, TileLayout
from tilelayout.draw import beside, hardware, iters, logical
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
    "kernel": LOWERED.kernel,
    "instruction": MMA_INSTRUCTIONS[0],
    "quadpairs": next(r for r in DENSE if r.rule == "quadpair"),
    "block scaled": next(r for r in DENSE if r.scale),
    "sparse": MMA_SP[0],
    "wgmma": WGMMA_FRAGMENTS[1],
    "ldmatrix": LDMATRIX[2],
    "stmatrix": STMATRIX[0],
    "movmatrix": MOVMATRIX[0],
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


@pytest.mark.parametrize("value", [LOWERED, LOWERED.kernel], ids=["lowered", "kernel"])
def test_what_a_notebook_shows_of_a_lowered_call_holds_the_nest(value) -> None:
    html = value._repr_mimebundle_()["text/html"]
    assert "<details>" in html
    assert "d_local" in html
    assert ("ld.global" in html) == (value is LOWERED.kernel)


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


# --- instructions and kernels: cells against the operand maps of isa -----------------------------------


def held(picture, *axes: str) -> dict[tuple[int, ...], tuple[int, ...]]:
    """Element -> its place on the axes, of a picture whose elements have one holder each."""
    found = {}
    for cell in picture.cells:
        (place,) = cell.holders
        found[cell.elements[0]] = tuple([place.get(axis, 0) for axis in axes])
    return found


def of_maps(maps) -> dict[tuple[int, ...], tuple[int, ...]]:
    """Element -> where it is, of the index arrays ``[(warps,) lanes, slots]`` of an operand."""
    return {tuple([int(x[at]) for x in maps]): at for at in np.ndindex(maps[0].shape)}


WHOLE = {"max_rows": 256, "max_columns": 256}


@pytest.mark.parametrize("record", DENSE[::5], ids=lambda r: r.name)
def test_the_operands_of_a_dense_instruction(record) -> None:
    for role in "ABCD":
        assert held(record.draw(role, **WHOLE), "laneid", "m") == of_maps(record.index(role))
    if record.scale:
        row, block, lanes, slots = (x.ravel().tolist() for x in record.scale_index("SFA"))
        wanted = dict(zip(zip(row, block, strict=True), zip(lanes, slots, strict=True), strict=True))
        assert held(record.draw("SFA"), "laneid", "m") == wanted


def test_a_narrow_element_in_a_byte_is_said_to_take_one() -> None:
    record = next(r for r in DENSE if r.name == "m16n8k32.f8f6f4.e2m1")
    (cell,) = [c for c in record.draw("A").cells if c.elements == ((0, 1),)]
    assert "register 0, bits 8-15" in cell.title


@pytest.mark.parametrize("record", MMA_SP[::9], ids=lambda r: r.name)
def test_the_operands_of_a_sparse_instruction(record) -> None:
    for role in "ABCD":
        assert held(record.draw(role, **WHOLE), "laneid", "m") == of_maps(record.index(role))
    codes = {(r, g): record.sparsity.place(r, g) for r in range(16) for g in range(record.sparsity.groups)}
    assert held(record.draw("metadata"), "laneid", "m") == codes
    headings = [panel.grid.heading.split(":")[0] for panel in record.draw().panels]
    assert headings == ["A", "metadata", "B", "D"]


@pytest.mark.parametrize("record", [*LDMATRIX, *STMATRIX], ids=lambda r: r.name)
def test_the_matrices_of_a_move(record) -> None:
    assert held(record.draw("matrices", **WHOLE), "laneid", "m") == of_maps(record.fragment)
    lines = {(q, i): (record.address_lane(q, i),) for q in range(record.count) for i in range(record.lines)}
    assert held(record.draw("addresses"), "laneid") == lines


@pytest.mark.parametrize("record", WGMMA_FRAGMENTS[::60], ids=lambda r: r.name)
def test_the_registers_of_wgmma(record) -> None:
    for role in "AD":
        found = held(record.draw(role, **WHOLE), "wid_in_wg", "laneid", "m")
        assert found == of_maps(record.fragment(role))


def test_movmatrix_transposes() -> None:
    before, after = (held(MOVMATRIX[0].draw(role), "laneid", "m") for role in "ad")
    assert before == {(i, j): (4 * i + j // 2, j % 2) for i in range(8) for j in range(8)}
    assert after == {(i, j): before[j, i] for i, j in before}


def test_a_kernel_shows_its_tensors() -> None:
    kernel = LOWERED.kernel
    assert repr(kernel) == (
        "<Kernel gemm_m16n8k16_f16_kernel of 32 threads on A: float16[16, 16], B: float16[16, 8], D: float32[16, 8]>"
    )
    assert str(kernel) == str(kernel.program)
    assert kernel.draw("A").panels == logical(A_FRAG, (16, 16), bits=16).panels
    assert [panel.grid.heading for panel in kernel.draw().panels] == ["A: 16 x 16", "B: 16 x 8", "D: 16 x 8"]
    with pytest.raises(LayoutError, match="did you mean 'A registers'"):
        kernel.draw("A register")
    with pytest.raises(LayoutError, match="built without the layouts"):
        replace(kernel, tiles=()).draw()
    assert replace(kernel, tiles=())._repr_mimebundle_() == {"text/plain": repr(kernel)}


@pytest.mark.parametrize("name", ["kernel", "sparse", "wgmma", "ldmatrix", "movmatrix", "quadpairs"])
def test_it_can_be_explored(name: str) -> None:
    page = SHOWN[name].explore(presets=())
    first = next(iter(SHOWN[name].draw("operands").panels)).grid
    role = "D" if name in ("kernel", "sparse", "wgmma", "quadpairs") else first.heading.split(":")[0]
    assert page.steps[0].layout == str(operands_of(SHOWN[name]).drawn[role][0])


def test_what_has_no_product_has_no_figure_of_one() -> None:
    with pytest.raises(LayoutError, match="unknown view 'gemm'"):
        SHOWN["quadpairs"].draw("gemm")
    with pytest.raises(LayoutError, match="don't meet"):
        composite(MMA_SP[0])
    with pytest.raises(LayoutError, match="at least one tensor"):
        beside({})


@given(own.layouts(max_size=64), own.layouts(max_size=64))
def test_beside_shows_what_the_logical_view_does(one, two) -> None:
    shapes = [(int(x.size()),) for x in (one, two)]
    picture = beside({"a": (one, shapes[0], 16), "b": (two, shapes[1], None)}, color="m")
    assert [(panel.row, panel.column) for panel in picture.panels] == [(0, 0), (1, 0)]
    for panel, alone in zip(
        picture.panels,
        (logical(one, shapes[0], bits=16, color="m"), logical(two, shapes[1], color="m")),
        strict=True,
    ):
        assert [[c.holders for c in row] for row in panel.grid.cells] == [
            [c.holders for c in row] for row in alone.grid.cells
        ]
        assert [[c.title for c in row] for row in panel.grid.cells] == [
            [c.title for c in row] for row in alone.grid.cells
        ]
