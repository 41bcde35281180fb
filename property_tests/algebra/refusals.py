"""What every refusal must say, for the tests that take a refusal for an answer."""

from __future__ import annotations

from tilelayout import LayoutError


def check_refusal(error: LayoutError, operation: str, *words: str) -> None:
    """It names the operation, and the words of the rule."""
    assert error.operation == operation
    assert error.rule
    for word in words:
        assert word in error.rule
