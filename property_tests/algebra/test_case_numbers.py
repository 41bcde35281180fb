"""Inputs that have tripped systems of this kind go by numbers; each of the algebra's is a test that is named by it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent.parent
NUMBERS = (1, 4, 5, 7, 8, 10, 13, 14, 16, 17, 19, 20, 22, 23, 25, 26, 28, 30, 31, 33, 34, 37, 51, 59, 63)


@pytest.mark.parametrize("number", NUMBERS)
def test_every_case_of_the_algebra_has_a_test(number: int) -> None:
    named = re.compile(rf"^def test_c{number:02}_", re.MULTILINE)
    homes = ("algebra", "analysis")
    assert any(named.search(path.read_text()) for home in homes for path in (TESTS / home).glob("test_*.py"))
