"""The evaluator, and a real browser."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from property_tests.explore import browsers
from property_tests.explore.evaluator import Evaluator
from property_tests.explore.pages import FRAGMENT, SHAPE, Open
from tilelayout.explore import explore

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@pytest.fixture(scope="session")
def evaluator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evaluator]:
    made = Evaluator(tmp_path_factory.mktemp("explorer"))
    yield made
    made.close()


# Not for the session: as long as the driver runs there is an event loop in this thread, which others may not want.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Headless Chromium: TILELAYOUT_CHROMIUM names it, otherwise it is looked for on the PATH.

    Where there is none the tests are skipped, unless TILELAYOUT_REQUIRE_BROWSER=1.
    """
    from playwright.sync_api import sync_playwright

    path, reason = browsers.find()
    if path is None:
        if "TILELAYOUT_CHROMIUM" in os.environ or os.environ.get("TILELAYOUT_REQUIRE_BROWSER") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=path, args=browsers.ARGUMENTS)
        yield started
        started.close()


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
