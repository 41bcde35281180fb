"""The errors of lowering."""

from __future__ import annotations

from typing import NoReturn


class DispatchError(RuntimeError):
    """No variant lowers the call, or the request itself cannot be met.  The message says why, variant by variant."""


class DispatchFail(Exception):
    """A variant declines a call; raised by `fail`, caught by the dispatcher, which goes on to the next variant."""


class PluginError(RuntimeError):
    """A plug-in could not be loaded, or breaks the registry's rules.  The message names its distribution."""


class MachineError(RuntimeError):
    """The reference machine met what no hardware defines: a read of a register or address that holds nothing."""


class DriverError(RuntimeError):
    """What needs a driver and a GPU was asked for where there is none, or one that cannot do it.

    Attributes:
        code: CUDA's number for the error; None where no driver said one.
    """

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(message)
        self.code = code

    def __reduce__(self) -> tuple[type[DriverError], tuple[str, int | None]]:
        return type(self), (str(self), self.code)


def fail(reason: str) -> NoReturn:
    """Decline the call, from inside a variant, with a reason for the table."""
    raise DispatchFail(reason)
