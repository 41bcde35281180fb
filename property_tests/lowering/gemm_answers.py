"""What a gemm call must give, computed on the arrays themselves: numpy on slices, nothing of a layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lowering import DispatchError, GemmCall, Lowered, Tile, TileRegion, lower


def integers(tile: Tile, rng: np.random.Generator, largest: int = 4) -> Any:
    """Small integers: their products and sums are exact in f32 whatever the order."""
    return rng.integers(-largest, largest + 1, tile.shape).astype(tile.element.numpy)


def arrays_of(call: GemmCall, rng: np.random.Generator) -> dict[str, Any]:
    """Arrays by role for every operand that may be read; a tile that has several roles has one array."""
    by_tile: dict[Tile, Any] = {}
    for tile in call.tiles.values():
        if tile not in by_tile:
            by_tile[tile] = integers(tile, rng)
    return {role: by_tile[tile] for role, tile in call.tiles.items()}


def matrix(region: TileRegion, array: Any) -> Any:
    """The region's matrix in float64; extents of 1 dropped."""
    box = tuple(slice(b, e) for b, e in region.bounds)
    return np.squeeze(np.asarray(array[box], np.float64))


def product(call: GemmCall, arrays: dict[str, Any]) -> tuple[Any, Any]:
    """A @ B (+ C) as float64 (M, N), and the sum of the terms' magnitudes."""
    a, b = matrix(call.A, arrays["A"]), matrix(call.B, arrays["B"])
    a, b = a.T if call.transpose_a else a, b.T if call.transpose_b else b
    value, magnitude = a @ b, np.abs(a) @ np.abs(b)
    if call.beta == 1:
        c = matrix(call.C, arrays["C"])
        value, magnitude = value + c, magnitude + np.abs(c)
    return value, magnitude


def answer(call: GemmCall, arrays: dict[str, Any]) -> Any:
    """D's whole tile afterwards: its region computed, the rest as it was."""
    same_tile = call.C.tile == call.D.tile
    before = arrays["C"] if same_tile and call.beta == 1 else arrays["D"]
    out = np.array(before, np.float64)
    box = tuple(slice(b, e) for b, e in call.D.bounds)
    out[box] = product(call, arrays)[0].reshape(out[box].shape)
    return out


def run(lowered: Lowered, arrays: dict[str, Any]) -> Any:
    """`Lowered.run` with what it needs: C only if it is read, D's content before only if some of it stays."""
    given = {role: arrays[role] for role in "AB"}
    if lowered.call.beta == 1:
        given["C"] = arrays["C"]
    if not lowered.call.D.is_full:
        given["D"] = arrays["D"]
    return lowered.run(**given)


def check(
    call: GemmCall, scope: str = "warp", launch: int | None = None, target: str = "sm_80", seed: int = 0
) -> Lowered:
    """Lower, run on small integers, and demand every bit."""
    lowered = lower(call, target=target, scope=scope, launch=launch)
    arrays = arrays_of(call, np.random.default_rng(seed))
    copies = {role: np.array(x) for role, x in arrays.items()}
    found = run(lowered, arrays)
    assert found.dtype == np.float32
    assert found.shape == call.D.tile.shape
    np.testing.assert_array_equal(found, answer(call, arrays))
    for role, x in arrays.items():
        np.testing.assert_array_equal(x, copies[role], err_msg=f"run changed {role}")
    return lowered


def refusal(
    call: Any, scope: str = "warp", launch: int | None = None, target: str = "sm_80", **more: Any
) -> str:
    """The text of the DispatchError that lowering raises, on one line; a variant must decline, not stumble."""
    with pytest.raises(DispatchError) as error:
        lower(call, target=target, scope=scope, launch=launch, **more)
    text = " ".join(str(error.value).split())
    assert "unexpected" not in text, text
    return text
