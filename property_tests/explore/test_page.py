"""The page in a real browser: load, edit, point, select, and where else it stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from property_tests.explore.pages import FRAGMENT
from tilelayout import LayoutError, R, S, Swizzle, SwizzledLayout, TileLayout, laneid, warpid
from tilelayout.draw import logical

if TYPE_CHECKING:
    from playwright.sync_api import Browser

from property_tests.explore.pages import SHAPE, Open, cell, link_of, texts

# --- load and edit -----------------------------------------------------------------------------------------


def test_the_page_shows_who_holds_each_element(opened: Open) -> None:
    page = opened()
    expected = [["\n".join(cell.lines) for cell in row] for row in logical(FRAGMENT, SHAPE).grid.cells]
    assert texts(page, "logical") == expected
    assert page.title() == str(FRAGMENT)
    assert cell(page, "hardware", 20, 5).inner_text() == "5,9"


def test_editing_the_text_draws_anew(opened: Open) -> None:
    page = opened()
    page.fill("#layout", "S[(4, 8) : (1 @ warpid, 2)] + R[2 : 4 @ warpid]")
    page.fill("#shape", "4 x 8")
    layout = TileLayout(S[(4, 8) : (1 @ warpid, 2)] + R[2 : 4 @ warpid])
    expected = [["\n".join(cell.lines) for cell in row] for row in logical(layout, (4, 8)).grid.cells]
    assert texts(page, "logical") == expected
    assert link_of(page)["layout"] == str(layout)
    page.fill("#shape", "")  # as square as a cut between the iters allows
    assert len(texts(page, "logical")) == 4


@pytest.mark.parametrize("text", ["S[(8, 4) : (4 @ lanid, 1)]", "S[(8, 4", "S[8, 4] S[2]", "R[2:1]", ""])
def test_bad_text_shows_the_parser_s_error(opened: Open, text: str) -> None:
    with pytest.raises(LayoutError) as refused:
        TileLayout.parse(text)
    page = opened()
    before = texts(page, "logical")
    page.fill("#layout", text)
    assert page.text_content("#error") == str(refused.value)
    assert page.get_attribute("#layout", "aria-invalid") == "true"
    assert texts(page, "logical") == before  # what was last understood stays, and looks stale
    assert "stale" in (page.get_attribute("#grids", "class") or "")
    page.fill("#layout", str(FRAGMENT))
    assert page.text_content("#error") == ""
    assert page.get_attribute("#layout", "aria-invalid") == "false"


def test_a_layout_of_another_size_gets_a_shape_of_its_own(opened: Open) -> None:
    """Typing a layout needs no edit of the shape, and the shape that was asked for comes back where it fits."""
    page = opened()
    for text, shape, shown, rows in (
        ("S[(4, 8) : (8, 1)]", "", "4 x 8", 4),
        ("S[(2, 128) : (128, 1)]", "16 x 16", "2 x 128", 16),  # again 256 elements
        ("S[64]", "", "2 x 32", 2),
        ("S[64", "", "2 x 32", 2),  # what can't be read changes nothing
    ):
        page.fill("#layout", text)
        assert (page.text_content("#error") == "") == text.endswith("]")
        assert page.get_attribute("#shape", "aria-invalid") == "false"
        assert page.input_value("#shape") == shape
        assert page.get_attribute("#shape", "placeholder") == shown
        assert len(texts(page, "logical")) == rows
    page.fill("#layout", "S[64]")
    page.fill("#shape", "16 x 8")  # asked for, before the layout that it is for
    assert "has 128 elements, the layout has 64" in (page.text_content("#error") or "")
    page.fill("#layout", "S[128]")
    assert page.text_content("#error") == ""
    assert link_of(page)["shape"] == "16 x 8"
    assert len(texts(page, "logical")) == 16
    page.fill("#shape", "sixteen")
    page.fill("#layout", "S[64]")
    assert "is no shape of positive integers" in (page.text_content("#error") or "")


def test_a_shape_that_does_not_fit_is_said_beside_it(opened: Open) -> None:
    page = opened()
    page.fill("#shape", "16 x 8")
    assert "shape (16, 8) has 128 elements, the layout has 256" in (page.text_content("#error") or "")
    assert page.get_attribute("#shape", "aria-invalid") == "true"
    page.fill("#shape", "sixteen")
    assert "is no shape of positive integers" in (page.text_content("#error") or "")


# --- point and select --------------------------------------------------------------------------------------


def test_pointing_at_an_element_explains_it(opened: Open) -> None:
    page = opened()
    cell(page, "logical", 5, 9).hover()
    said = page.inner_text("#details")
    assert "element (5, 9) of 16 bits" in said
    assert "lane 20, slot 5 (register 2, bits 16-31; bytes 10-11)" in said
    assert "5 * 16 + 9 = 89" in said
    assert "laneid = c1 * 4 + c3 * 1 = 5 * 4 + 0 * 1 = 20" in said
    assert "m = c0 * 2 + c2 * 4 + c4 * 1 = 0 * 2 + 1 * 4 + 1 * 1 = 5" in said
    assert page.locator("#hardware .on").all_inner_texts() == ["5,9"]
    page.locator("h1").hover()
    assert page.locator(".on").count() == 0  # nothing was selected


def test_every_copy_and_the_swizzle_are_explained(opened: Open) -> None:
    layout = SwizzledLayout(S[8, 64] + R[2:512], Swizzle(3, 3, 3))
    page = opened(layout, (8, 64))
    cell(page, "logical", 2, 9).click()
    said = page.locator("#holders > li").all_inner_texts()
    assert len(said) == 2
    assert "position 153 (bytes 306-307; bank 12, bits 16-31)" in said[0]
    assert "XOR = 153  010011001" in said[0]
    assert "position 665" in said[1]
    assert "r0 = 1: m + 1 * 512, from 137" in said[1]
    assert page.locator("#hardware .on").count() == 2


def test_a_click_selects_and_stays(opened: Open) -> None:
    page = opened()
    cell(page, "logical", 5, 9).click()
    cell(page, "logical", 0, 0).hover()
    assert "element (0, 0)" in page.inner_text("#details")
    page.locator("h1").hover()
    assert "element (5, 9)" in page.inner_text("#details")
    assert link_of(page)["at"] == "5,9"
    assert cell(page, "logical", 5, 9).get_attribute("aria-selected") == "true"
    assert "lane 20, slot 5" in (page.text_content("#said") or "")


def test_a_place_tells_its_elements(opened: Open) -> None:
    page = opened(TileLayout(S[(4, 4) : (1 @ laneid, 0)]), (4, 4))  # four elements in one place
    cell(page, "hardware", 0, 2).click()
    held = page.locator("#holds button").all_inner_texts()
    assert held == ["(2, 0)", "(2, 1)", "(2, 2)", "(2, 3)"]
    assert page.locator("#logical .on").count() == 4
    assert link_of(page)["on"] == "laneid:2"
    page.locator("#holds button").nth(1).click()
    assert link_of(page)["at"] == "2,1"


def test_a_lane_and_a_register_tell_their_elements(opened: Open) -> None:
    page = opened()
    page.locator("#hardware tbody th").nth(20).click()
    listed = page.locator("#holds tr").all_inner_texts()
    held = [(m, flat) for m in range(8) for flat in FRAGMENT.elements({"laneid": 20, "m": m})]
    expected = [f"m:{m}\t({', '.join(map(str, divmod(flat, 16)))})" for m, flat in held]
    assert listed == expected
    assert link_of(page)["on"] == "laneid:20"
    assert page.locator("#logical .on").count() == 8
    page.locator("#hardware thead th").nth(1 + 5).click()
    assert link_of(page)["on"] == "m:5"
    assert page.locator("#logical .on").count() == 32


# --- elsewhere ---------------------------------------------------------------------------------------------


def test_it_works_inside_a_notebook_cell(browser: Browser) -> None:
    page = browser.new_page()
    failed: list[str] = []
    page.on("pageerror", lambda error: failed.append(str(error)))
    page.set_content(f"<!doctype html><body>{FRAGMENT.explore(SHAPE)._repr_html_()}</body>")
    frame = page.frame_locator("iframe")
    frame.locator("#logical tbody tr").nth(5).locator("td").nth(9).click()
    assert "lane 20, slot 5" in frame.locator("#details").inner_text()
    assert "at=5%2C9" in frame.locator("#link").input_value()
    assert failed == []
    page.close()


def test_a_hostile_title_is_only_text(opened: Open) -> None:
    title = "</title><script>document.x = 1</script>/*script*//*style*/<!--title-->&amp;"
    page = opened(title=title)
    assert page.title() == title
    assert page.evaluate("document.x") is None
    assert page.locator("#logical td").count() == 256
