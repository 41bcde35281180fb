"""The page in a real browser: steps, banks, presets, colors, themes, speed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from property_tests.explore.pages import FRAGMENT
from tilelayout import S, TileLayout, laneid, warpid
from tilelayout.analysis import Access, bank_conflicts
from tilelayout.draw.colors import PALETTES, contrast
from tilelayout.explore import offered

if TYPE_CHECKING:
    pass

from property_tests.explore.pages import SHAPE, Open, cell, link_of, texts

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
