"""Modules that are loaded by the first call that needs them, and cost nothing more from the second on.

An import statement inside a method costs a microsecond each time, which is a good part of what these
operations take; an import at the top would cost everybody who only builds layouts.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any


class Later:
    """A module of this package: `Later("compose").compose` is ``algebra.compose.compose``."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        """Only asked for what isn't there yet; afterwards every name of the module is an attribute."""
        # importlib would do it too, and takes a tenth as long to load as all that a layout needs.
        module: ModuleType = __import__(f"{__package__}.{self._module}", fromlist=["*"])
        vars(self).update({k: v for k, v in vars(module).items() if not k.startswith("__")})
        return getattr(module, name)
