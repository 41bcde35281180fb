"""The evaluator, and a real browser."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from property_tests.explore import browsers
from property_tests.explore.evaluator import Evaluator

if TYPE_CHECKING:
    from playwright.sync_api import Browser


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
