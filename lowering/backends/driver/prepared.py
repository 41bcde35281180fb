"""A launch that is decided to the last byte: made once, started at the cost of the driver's own call.

What the driver reads lies in memory that nothing writes any more, so any thread may start it at any time.  The driver's
functions are called at their addresses with arguments that are ready made; the bindings convert eleven at each launch.
The call gives the interpreter's lock away, as the bindings' does: it may wait for room in a full queue, and what it
waits for may be Python.  No array may enter.
"""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from .bindings import entry_point
from .devices import current
from .parameters import Frame

if TYPE_CHECKING:
    from .module import LoadedKernel

_CONFIG = struct.Struct("7I4xQQI4x")
"""``CUlaunchConfig``: grid, threads, bytes of shared memory, stream, and no attributes."""

_pointer = ctypes.c_void_p.from_param
"""An address as an argument that is ready made: of ctypes' ways to pass one that which converts nothing."""


class _Cell(threading.local):
    """This thread's room for the driver's answer."""

    def __init__(self) -> None:
        number = ctypes.c_int(-1)
        self.cell = ctypes.byref(number), number


_HERE = _Cell()


class _Calls(NamedTuple):
    """Functions of the driver, called through ctypes.

    Attributes:
        launch: ``cuLaunchKernelEx``, without the interpreter's lock.
        ask: ``cuCtxGetDevice``, with it: it never waits.
    """

    launch: Callable[..., int]
    ask: Callable[..., int]


@cache
def quick_calls() -> _Calls | None:
    """What a launch calls; None where the driver does not tell their addresses."""
    launch, ask = entry_point("cuLaunchKernelEx"), entry_point("cuCtxGetDevice")
    if launch is None or ask is None:
        return None
    return _Calls(ctypes.CFUNCTYPE(ctypes.c_int)(launch), ctypes.PYFUNCTYPE(ctypes.c_int)(ask))


class Prepared:
    """One launch; see `LoadedKernel.prepare`."""

    __slots__ = (
        "_arguments",
        "_ask",
        "_config",
        "_held",
        "_kernel",
        "_launch",
        "_loaded",
        "_ordinal",
        "_shape",
    )

    def __init__(
        self,
        loaded: LoadedKernel,
        calls: _Calls,
        grid: tuple[int, int, int],
        threads: int,
        frame: Frame,
        stream: int,
    ) -> None:
        memory = ctypes.create_string_buffer(
            _CONFIG.pack(*grid, threads, 1, 1, loaded.dynamic_shared, stream, 0, 0), _CONFIG.size
        )
        self._loaded, self._shape, self._ordinal = loaded, (grid, threads), loaded.device.ordinal
        self._held = memory, frame  # arguments that are ready made hold nothing
        self._config, self._arguments = _pointer(ctypes.addressof(memory)), _pointer(frame.arguments)
        self._kernel = _pointer(loaded.handle)
        self._launch, self._ask = calls

    def start(self, _: Any = None) -> None:
        """Launch, and return at once.

        Errors: as of `LoadedKernel.launch`.
        """
        where, number = _HERE.cell
        if self._ask(where) or number.value != self._ordinal:
            with current(self._ordinal):
                status = self._launch(self._config, self._kernel, self._arguments, None)
        else:
            status = self._launch(self._config, self._kernel, self._arguments, None)
        if status:
            raise self._loaded.failed(status, *self._shape)


class Deferred(NamedTuple):
    """The same through the bindings, where the driver does not tell its functions' addresses."""

    loaded: LoadedKernel
    grid: tuple[int, int, int]
    threads: int
    frame: Frame
    stream: int

    def start(self, _: Any = None) -> None:
        """See `Prepared.start`."""
        self.loaded.launch(self.grid, self.threads, self.frame.arguments, self.stream)


__all__ = ["Deferred", "Prepared", "quick_calls"]
