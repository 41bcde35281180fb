"""The page in a real browser: load, edit, point, select, link, keyboard, steps, banks, themes, speed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote

import pytest

from property_tests.explore.test_evaluator import FRAGMENT
from tilelayout import LayoutError, R, S, Swizzle, SwizzledLayout, TileLayout, laneid, warpid
from tilelayout.analysis import Access, bank_conflicts
from tilelayout.draw import logical
from tilelayout.draw.colors import PALETTES, contrast
from tilelayout.explore import explore, offered

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

Open = Callable[..., "Page"]
SHAPE = (16, 16)


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Open]:
    """Opens an explorer from a file; at the end nothing may have failed in it or gone out to a network."""
    context = browser.new_context(viewport={"width": 1500, "height": 950})
    context.set_default_timeout(20_000)
    complaints: list[str] = []
    asked: list[str] = []

    def open_(layout: Any = FRAGMENT, shape: Any = SHAPE, link: str = "", **options: Any) -> Page:
        path = tmp_path / "page.html"
        explore(layout, shape, path=path, **options)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda message: complaints.append(message.text))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"{path.as_uri()}{link}")
        return page

    yield open_
    context.close()
    assert complaints == []
    assert [url for url in asked if not url.startswith("file:")] == []


def texts(page: Page, name: str) -> list[list[str]]:
    """What the cells of a grid say, row by row."""
    rows = f"[...document.querySelectorAll('#{name} tbody tr')]"
    return page.evaluate(
        f"{rows}.map((row) => [...row.querySelectorAll('td')].map((cell) => cell.innerText))"
    )


def cell(page: Page, name: str, r: int, c: int) -> Any:
    return page.locator(f"#{name} tbody tr").nth(r).locator("td").nth(c)


def link_of(page: Page) -> dict[str, str]:
    fragment = page.evaluate("location.hash")
    assert page.input_value("#link") == fragment
    return {key: values[0] for key, values in parse_qs(fragment[1:]).items()}


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


# --- steps, banks, presets ---------------------------------------------------------------------------------


def test_steps_made_by_python_are_walked_through(opened: Open) -> None:
    page = opened(steps=[("tile_to", (32, 16), SHAPE), ("pack", 2)])
    steps = page.locator("#steps button")
    assert steps.count() == 3
    steps.nth(1).click()
    assert page.input_value("#shape") == "32 x 16"
    assert len(texts(page, "logical")) == 32
    assert steps.nth(1).get_attribute("aria-current") == "step"
    cell(page, "logical", 21, 9).click()
    assert page.inner_text("#origin") == "element (5, 9) of (16, 16)"
    steps.nth(2).click()  # a step that only Python performs
    packed = FRAGMENT.tile_to((32, 16), SHAPE).pack(2)
    assert page.input_value("#layout") == str(packed)


def test_operations_are_performed_on_the_page(opened: Open) -> None:
    page = opened()
    page.click("summary")
    layout: Any = FRAGMENT
    for operation, arguments in (
        ("tile_to", ((32, 16), (16, 16))),
        ("slice", ((32, 16), ((16, 32), (0, 8)))),
        ("permute_dims", ((1, 0, 2, 3, 4),)),
    ):
        page.select_option("#operation", operation)
        page.fill("#arguments", ", ".join(map(str, arguments)))
        if operation == "permute_dims":
            page.fill("#arguments", "(" + ", ".join(["1", "0", *map(str, range(2, len(layout.shard)))]) + ")")
            arguments = ((1, 0, *range(2, len(layout.shard))),)
        page.keyboard.press("Enter")
        layout = getattr(layout, operation)(*arguments)
        assert page.input_value("#layout") == str(layout)
    assert page.locator("#steps button").count() == 4
    page.fill("#arguments", "(0, 0)")
    page.click("text=perform")
    assert "is not a permutation" in (page.text_content("#refusal") or "")
    assert page.input_value("#layout") == str(layout)


def test_the_bank_view_marks_conflicts(opened: Open) -> None:
    plain = TileLayout(S[8, 64])
    page = opened(plain, (8, 64), view="banks")
    page.select_option("#access", "ldmatrix")
    page.select_option("#chunk", "16")
    report = bank_conflicts(plain, Access.matrices((8, 64)), 16)
    assert "\n".join(page.locator(".note").all_inner_texts()[: len(str(report).splitlines())]) == str(report)
    assert page.locator("#banks .conflict").count() == 8
    assert "!" in page.locator("#banks .conflict").first.inner_text()  # color is not the only cue
    page.fill("#layout", "Swizzle(3, 3, 3) o S[8, 64]")
    assert "no conflicts" in page.inner_text("#grids")
    assert page.locator("#banks .conflict").count() == 0
    cell(page, "banks", 1, 0).click()
    assert "(1, 8)" in page.inner_text("#holds")
    assert link_of(page)["on"] == "bit:1024"


def test_a_crowd_of_copies_does_not_hang_the_page(opened: Open) -> None:
    page = opened("S[64, 64] + R[65536 : 1 @ laneid]", (64, 64))
    cell(page, "logical", 3, 3).click()
    assert page.locator("#holders > li").count() == 64
    assert "and 65472 more holders" in page.inner_text("#details")
    assert "of the first 1 elements only" in page.inner_text("#grids")


def test_a_view_that_cannot_be_shown_says_why(opened: Open) -> None:
    page = opened(view="banks")
    assert "places elements along laneid, and only m is an address" in page.inner_text("#grids")


def test_every_preset_opens(opened: Open) -> None:
    page = opened()
    every = offered()
    groups = list(dict.fromkeys(p.group for p in every))
    for k, group in enumerate(groups):
        page.select_option("#group", str(k))
        for n, preset in enumerate(
            [p for p in every if p.group == group][:3]
        ):  # the evaluator's tests have all
            page.select_option("#preset", str(n))
            assert page.input_value("#layout") == preset.layout
            assert page.input_value("#bits") == str(preset.bits)
            assert page.text_content("#error") == ""
            assert page.locator("#grids [role=alert]").count() == 0
            assert page.locator("#grids td").count() > 0


# --- colors, themes, size ----------------------------------------------------------------------------------


@pytest.mark.parametrize("palette", list(PALETTES))
def test_the_colors_are_those_of_the_pictures(opened: Open, palette: str) -> None:
    page = opened(link=f"#palette={palette}")
    used = page.evaluate(
        """[...document.querySelectorAll('#logical td')].map((cell) => {
          const style = getComputedStyle(cell);
          return [style.backgroundColor, style.color].map((rgb) =>
            '#' + rgb.match(/\\d+/g).map((n) => Number(n).toString(16).padStart(2, '0')).join(''));
        })"""
    )
    assert {fill for fill, _ in used} == set(PALETTES[palette])
    assert min(contrast(fill, ink) for fill, ink in used) >= 4.5


def test_coloring_by_an_axis(opened: Open) -> None:
    page = opened(TileLayout(S[(4, 8) : (1 @ warpid, 1 @ laneid)]), (4, 8))
    page.select_option("#color", "warpid")
    rows = page.evaluate(
        "[...document.querySelectorAll('#logical tbody tr')]"
        ".map((r) => new Set([...r.querySelectorAll('td')].map((c) => c.className)).size)"
    )
    assert rows == [1, 1, 1, 1]
    assert "color: warpid" in page.inner_text("#legend")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_reads_in_light_and_dark(opened: Open, scheme: Any) -> None:
    page = opened()
    page.emulate_media(color_scheme=scheme)
    for _ in range(2):  # as the system has it, and after the button
        style = page.evaluate("((s) => [s.backgroundColor, s.color])(getComputedStyle(document.body))")
        back, front = ["#" + "".join(f"{int(n):02x}" for n in rgb[4:-1].split(",")) for rgb in style]
        assert contrast(back, front) >= 7
        assert (back == "#ffffff") == (scheme == "light")
        page.click("#theme")
        scheme = "dark" if scheme == "light" else "light"


def test_4096_cells_stay_fluid(opened: Open) -> None:
    """An edit and a pointer's move at 64 x 64, both views: far below what a person notices on an idle machine."""
    page = opened("S[(8, 8, 64) : (1 @ warpid, 64, 1)]", (64, 64), view="logical")
    spent = page.evaluate(
        """() => {
          const time = (work) => {
            const start = performance.now();
            work();
            document.body.getBoundingClientRect(); // the browser lays it out now
            return performance.now() - start;
          };
          const least = (work) => Math.min(...Array.from({ length: 5 }, () => time(work)));
          const input = document.getElementById("layout");
          const edit = () => {
            input.value = input.value.includes("+") ? input.value.split(" +")[0] : input.value + " + 1";
            input.dispatchEvent(new Event("input"));
          };
          const point = () => document.querySelectorAll("#logical td")[Math.floor(4095 * Math.random())]
            .dispatchEvent(new MouseEvent("mouseover", { bubbles: true }));
          return [least(edit), least(point)];
        }"""
    )
    assert page.locator("#logical td").count() == 4096
    edit, point = spent
    assert edit < 500, spent
    assert point < 100, spent


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
