"""What every test shares: the hypothesis profiles and the way to the oracles."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from property_tests.oracles.interpreter import interpreter

ROOT = Path(__file__).resolve().parent.parent

# Both profiles are deterministic: an unchanged tree gives an unchanged result. No deadline and no `too_slow`:
# a busy machine is not a bug.
for _name, _examples in {"default": 100, "thorough": 300}.items():
    settings.register_profile(
        _name,
        max_examples=_examples,
        derandomize=True,
        database=None,
        deadline=None,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile(os.environ.get("TILELAYOUT_HYPOTHESIS_PROFILE", "default"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark `oracle` whatever asks for an oracle, so that nobody has to remember to."""
    for item in items:
        if "tvm_python" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.oracle)


@pytest.fixture(scope="session")
def tvm_python() -> Path:
    """The interpreter that has apache-tvm, to be run as a subprocess: see `interpreter`."""
    return interpreter("tvm")
