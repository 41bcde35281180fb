"""Pictures of layouts as values: text, SVG, HTML and data that are returned, never files that are written.

A view (`logical`, `hardware`, `shared`, `gemm`, `beside`, `tiling`, `before_after`, `operation`, `bits`, `iters`)
computes a `Picture` from layouts; the picture turns into ``.svg()``, ``.html()``, ``.text()``, ``.ansi()`` or
``.data()``.
"""

from .model import Cell, Grid, Legend, Panel, Picture
from .text import holders_grid
from .views.beside import beside
from .views.bits import BitMatrix, bit_matrix, bits
from .views.change import before_after, operation
from .views.composite import gemm
from .views.hardware import hardware
from .views.iters import iters
from .views.logical import logical
from .views.shared import shared
from .views.tiling import tiling

__all__ = [
    "BitMatrix", "Cell", "Grid", "Legend", "Panel", "Picture", "before_after", "beside", "bit_matrix", "bits", "gemm",
    "hardware", "holders_grid", "iters", "logical", "operation", "shared", "tiling",
]  # fmt: skip
