"""The algebra's rows on tilelayout."""

from __future__ import annotations

from operator import eq

import tilelayout
from tilelayout import S, TileLayout, laneid

from .algebra_rows import rows as _rows
from .worker import Row

VERSION = f"tilelayout {tilelayout.__version__}"


def rows() -> list[Row]:
    return _rows(S, TileLayout, laneid, eq, hash)
