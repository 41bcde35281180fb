"""What the tests of the page share: how it is opened, and what is read off it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from hypothesis import strategies as st

from property_tests import strategies
from property_tests.algebra.swizzling import swizzled_layouts
from tilelayout import S, TileLayout, laneid, pid, warpid

if TYPE_CHECKING:
    from playwright.sync_api import Page


Open = Callable[..., "Page"]
FRAGMENT = TileLayout(S[(2, 8, 2, 4, 2) : (2, 4 @ laneid, 4, 1 @ laneid, 1)])
SHAPE = (16, 16)
AXES_ON_PAGE = (laneid, warpid, pid, "m", "TLane", "TCol", "P")
anything = st.one_of(strategies.layouts(), strategies.layouts(among=AXES_ON_PAGE), swizzled_layouts())


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
