"""The map of 4096 x 4096 as one writes it in numpy by hand, knowing the layout."""

from __future__ import annotations

from typing import Any

import numpy as np

from .algebra_on_m import EDGE
from .worker import Row

VERSION = f"numpy {np.__version__}"


def formula(_: Any) -> Any:
    """Tile, then place in the tile, of both coordinates: the index expression, broadcast."""
    i, j = np.arange(EDGE)[:, None], np.arange(EDGE)[None, :]
    return i // 32 * 131072 + i % 32 * 32 + j // 32 * 1024 + j % 32


def separated(_: Any) -> Any:
    """What depends on the row and what on the column, each calculated once, and one sum of all elements."""
    k = np.arange(EDGE)
    return (k // 32 * 131072 + k % 32 * 32)[:, None] + (k // 32 * 1024 + k % 32)[None, :]


def sample(x: Any) -> list[int]:
    return [int(x[i * 7 % EDGE, i * 13 % EDGE]) for i in range(64)] + [int(x.sum())]


def rows() -> list[Row]:
    return [
        Row("map, 4096 x 4096", lambda n: [None] * n, formula, sample, 1),
        Row("map, 4096 x 4096, separated by hand", lambda n: [None] * n, separated, sample, 1),
    ]
