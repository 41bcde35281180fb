"""Finding and starting the browser, for the tests and for the screenshot in the guide."""

from __future__ import annotations

import os
import shutil

NAMES = ("chromium", "chromium-browser", "google-chrome")

# As root a sandbox is not to be had; the rest keeps the browser from looking for its maker's servers.
ARGUMENTS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage"
).split()


def find() -> tuple[str | None, str]:
    """The path of a Chromium and what to say where there is none: TILELAYOUT_CHROMIUM, else one on the PATH."""
    named = os.environ.get("TILELAYOUT_CHROMIUM")
    if named:
        return (
            named if os.path.exists(named) else None
        ), f"no browser: TILELAYOUT_CHROMIUM={named} does not exist"
    path = next((found for name in NAMES if (found := shutil.which(name))), None)
    return path, f"no browser: {' and '.join(NAMES)} not found (Debian's package is chromium)"
