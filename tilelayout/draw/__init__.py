"""Pictures of layouts as values: text that is returned, never files that are written."""

from .text import holders_grid

__all__ = ["holders_grid"]
