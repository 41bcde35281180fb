"""The guide's picture of the explorer: ``python -m property_tests.explore.screenshot [FILE]``.

It is a photograph of a real browser, whose fonts and versions differ, so no test compares it.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from lowering.explore import explore
from lowering.isa import MMA_INSTRUCTIONS
from property_tests.explore import browsers

FILE = Path(__file__).resolve().parents[2] / "docs" / "pictures" / "explorer.png"
LINK = "#at=5,9"


def take(target: Path) -> None:
    """The page of A of m16n8k16 with A[5, 9] selected, as PNG."""
    from playwright.sync_api import sync_playwright

    path, reason = browsers.find()
    if path is None:
        sys.exit(f"{target} is left as it is: {reason}")
    page_of_a = explore(MMA_INSTRUCTIONS[0], role="A", steps=[("tile_to", (32, 16), (16, 16))])
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        file = Path(folder) / "explorer.html"
        page_of_a.save(file)
        browser = driver.chromium.launch(executable_path=path, args=browsers.ARGUMENTS)
        page = browser.new_page(viewport={"width": 1500, "height": 900})
        page.goto(f"{file.as_uri()}{LINK}")
        page.wait_for_selector("#logical .chosen")
        page.screenshot(path=target)
        browser.close()


if __name__ == "__main__":
    take(Path(sys.argv[1]) if len(sys.argv) > 1 else FILE)
