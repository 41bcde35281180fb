"""What every derivation has to show, for the tests of `explain`."""

from __future__ import annotations

from typing import Any

from tilelayout import LayoutError, SwizzledLayout, TileLayout
from tilelayout.explain.derivation import Derivation


def check_explained(
    layout: TileLayout | SwizzledLayout, operation: str, *arguments: Any, **options: Any
) -> Derivation:
    """The derivation ends with the method's own answer.

    `explain` refuses where the steps lead elsewhere, so that getting a derivation says that they lead there.
    """
    found = layout.explain(operation, *arguments, **options)
    result, error = None, None
    try:
        result = getattr(layout, operation)(*arguments, **options)
    except LayoutError as refused:
        error = refused
    last = str(found).splitlines()[-1]
    if error is None:
        assert found.error is None
        assert found.result == result
        assert last == f"=> {result!r}"
    else:
        assert type(found.error) is type(error)
        assert str(found.error) == str(error)
        assert found.result is None
        assert last == f"=> {type(error).__name__}: {error}"
    assert str(found).startswith(f"{layout}  .{operation}(")
    assert all(f"{i}. {step.title}" in str(found) for i, step in enumerate(found.steps, 1))
    return found
