"""The explorer: one HTML page that evaluates layouts itself, needs no server, and says why each element is where it is.

`explore` (or ``layout.explore(...)``) gives an `Explorer`: ``.html()``, ``.save(path)``, and itself in a notebook cell.
The page's sources are in `page/`; what they calculate is compared with Python on random layouts.
"""

from .explorer import Explorer, explore, page
from .presets import Preset, offered, preset, presets
from .steps import Step

__all__ = ["Explorer", "Preset", "Step", "explore", "offered", "page", "preset", "presets"]
