"""The page in a real browser: links that bring everything back, and the keyboard."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

if TYPE_CHECKING:
    pass

from property_tests.explore.pages import Open, cell, link_of, texts

# --- links -------------------------------------------------------------------------------------------------


def test_a_deep_link_brings_everything_back(opened: Open) -> None:
    layout = quote("S[(8, 4) : (4 @ laneid, 1)] + 5 @ warpid")
    link = f"#layout={layout}&shape=8x4&bits=32&view=hardware&on=warpid:5,laneid:12,m:2&color=m&palette=ramp"
    page = opened(link=link)
    assert page.input_value("#layout") == "S[(8, 4) : (4 @ laneid, 1)] + 5 @ warpid"
    assert page.input_value("#bits") == "32"
    assert page.is_checked("input[value=hardware]")
    assert page.locator("#logical").count() == 0
    assert "warp 5, lane 12, slot 2" in page.inner_text("#details")
    assert "(3, 2)" in page.inner_text("#holds")
    assert (page.input_value("#color"), page.input_value("#palette")) == ("m", "ramp")
    before = page.inner_html("#grids")
    page.reload()
    assert page.inner_html("#grids") == before


def test_following_a_link_in_the_page_changes_it(opened: Open) -> None:
    page = opened()
    page.evaluate("location.hash = '#layout=S%5B4%2C+4%5D&shape=4x4&at=1,2'")
    page.wait_for_function("document.querySelector('#layout').value === 'S[4, 4]'")
    assert "element (1, 2)" in page.inner_text("#details")


@pytest.mark.parametrize(
    "link",
    [
        "#at=99,0", "#at=1", "#on=nothing:3", "#on=laneid:", "#%%%", "#shape=0x4",
        "#view=sideways&bits=7&palette=x&vector=-1",
        "#layout=%3Cimg+src%3Dx+onerror%3Dalert(1)%3E",
    ],
)  # fmt: skip
def test_a_broken_link_breaks_nothing(opened: Open, link: str) -> None:
    page = opened(link=link)
    page.fill("#layout", "S[4, 4]")
    page.fill("#shape", "4x4")
    assert len(texts(page, "logical")) == 4
    assert page.locator("#error img").count() == 0


# --- the keyboard ------------------------------------------------------------------------------------------


def test_the_keyboard_does_it_all(opened: Open) -> None:
    page = opened()
    page.focus("#palette")
    for _ in range(20):  # past the operations, which are folded
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.tagName") == "TD":
            break
    assert page.evaluate("document.activeElement.closest('table').id") == "logical"
    assert page.evaluate("document.activeElement.matches(':focus-visible')")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    for key in ["ArrowDown"] * 5 + ["ArrowRight"] * 9:
        page.keyboard.press(key)
    assert link_of(page)["at"] == "5,9"
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowUp")
    assert link_of(page)["at"] == "4,8"
    page.keyboard.press("End")
    assert link_of(page)["at"] == "4,15"
    page.keyboard.press("ArrowRight")  # the edge holds
    assert link_of(page)["at"] == "4,15"
    page.keyboard.press("Control+Home")
    assert link_of(page)["at"] == "0,0"
    page.keyboard.press("Tab")  # one stop a grid
    assert page.evaluate("document.activeElement.closest('table').id") == "hardware"
    page.keyboard.press("ArrowLeft")  # the label of the lane
    assert link_of(page)["on"] == "laneid:0"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowUp")
    assert link_of(page)["on"] == "m:0"
    page.keyboard.press("Escape")
    assert "on" not in link_of(page)
    assert page.text_content("#said") == "nothing selected"


def test_the_grids_have_their_roles(opened: Open) -> None:
    page = opened()
    grid = page.get_by_role("grid", name="logical: each element, its holders")
    assert grid.get_by_role("gridcell").count() == 256
    assert grid.get_attribute("aria-rowcount") == "17"
    assert grid.locator("[tabindex='0']").count() == 1
    unnamed = page.evaluate(
        "[...document.querySelectorAll('input, select')].filter((x) => !x.labels.length).map((x) => x.id)"
    )
    assert unnamed == []


def test_the_arrows_move_the_window_of_a_large_layout(opened: Open) -> None:
    page = opened("S[100, 200]", (100, 200), view="logical", link="")
    assert "cropped: rows 0 to 63 of 100, columns 0 to 63 of 200" in page.inner_text("#grids")
    cell(page, "logical", 63, 63).click()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert link_of(page)["at"] == "64,65"
    assert "cropped: rows 1 to 64 of 100, columns 2 to 65 of 200" in page.inner_text("#grids")
    assert page.evaluate("document.activeElement.innerText") == str(64 * 200 + 65)


def test_a_link_to_an_element_outside_the_window_shows_it(opened: Open) -> None:
    page = opened("S[100, 200]", (100, 200), view="logical", link="#view=logical&at=90,150")
    assert page.locator("#logical .chosen").inner_text() == str(90 * 200 + 150)
