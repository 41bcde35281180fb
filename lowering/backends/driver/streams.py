"""Streams: which one a launch goes to, and waiting for arrays that are ready on another.  No kernel may enter."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from tilelayout import LayoutError

from .arrays import DeviceArray
from .bindings import bindings, call
from .devices import current
from .readers import LEGACY


def stream_of(arrays: Sequence[DeviceArray], stream: Any = None) -> int:
    """The handle of the stream that a kernel on `arrays` is launched on.

    `stream` is a handle, or a stream of torch, cupy, numba or any library with ``__cuda_stream__``.  None is the
    current stream of the first array's library on its GPU (torch, cupy), or the one that the array is ready on, or the
    legacy default stream (0).

    Errors: LayoutError for what is no stream, or a stream of another GPU.
    """
    if stream is None:
        return _current(arrays[0])
    return handle_of(stream, arrays[0].device)


def _current(x: DeviceArray) -> int:
    """The stream that an array is ready on."""
    if x.library == "torch":
        return torch_stream()(x.device)
    if x.library == "cupy":
        return cupy_stream()(x.device)
    return x.stream or 0


def handle_of(stream: Any, device: int | None = None) -> int:
    """The handle of a stream, given as such or as a library's object; of the GPU `device`, where that is known.

    Errors: LayoutError for what is no stream, or a stream of another GPU.
    """
    if type(stream) is int:
        if stream < 0:
            raise LayoutError("launch", f"stream {stream} is no handle of a stream")
        return stream
    ordinal = getattr(stream, "device_index", getattr(stream, "device_id", None))  # torch, cupy
    if isinstance(ordinal, int) and ordinal >= 0 and device not in (None, ordinal):
        raise LayoutError("launch", f"the stream is one of GPU {ordinal}, the arrays lie on GPU {device}")
    for name in ("cuda_stream", "ptr"):  # torch, cupy
        handle = getattr(stream, name, None)
        if isinstance(handle, int):
            return handle
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1])
    handle = getattr(stream, "handle", stream)  # numba before that protocol, cuda.bindings
    if not isinstance(handle, bool | float | str) and hasattr(handle, "__int__"):
        return int(handle)
    value = getattr(handle, "value", stream)  # a ctypes pointer, whose 0 is None
    if value is None or type(value) is int:
        return value or 0
    raise LayoutError(
        "launch",
        f"{stream!r} is no stream",
        "pass a stream of torch, cupy or numba, its handle, or None for the current one",
    )


@cache
def torch_stream() -> Callable[[int], int]:
    """GPU -> torch's current stream there."""
    torch: Any = sys.modules["torch"]
    raw = getattr(
        torch._C, "_cuda_getCurrentRawStream", None
    )  # what torch's own compiler asks: 20 times as quick
    if raw is not None:
        return raw  # type: ignore[no-any-return]
    return lambda device: int(torch.cuda.current_stream(device).cuda_stream)


@cache
def cupy_stream() -> Callable[[int], int]:
    """GPU -> cupy's current stream there."""
    get = sys.modules["cupy"].cuda.get_current_stream
    try:
        get(0)
    except TypeError:  # of the current GPU alone
        return lambda device: int(get().ptr)
    return lambda device: int(get(device).ptr)


def wait_for(arrays: Sequence[DeviceArray], stream: int) -> None:
    """Make `stream` wait for what arrays are ready after, on other streams; a kernel launched on it then finds them.

    That is the stream that an array's interface names, and for an array of another library than the first one's, the
    current stream of its own.  Work on the first array's library is in the caller's hands, as it is in that library.
    """
    library = arrays[0].library
    for x in arrays:
        if x.stream is not None or x.library != library:
            break
    else:
        return  # nearly always
    mine = stream or LEGACY
    found = {
        (x.device, _current(x) or LEGACY) for x in arrays if x.stream is not None or x.library != library
    }
    for device, other in sorted(found):
        if other != mine:
            _wait(device, other, stream)


def _wait(device: int, other: int, stream: int) -> None:
    """Make `stream` wait for what `other` has been given so far."""
    with current(device):
        event = call("cuEventCreate", bindings().CUevent_flags.CU_EVENT_DISABLE_TIMING)
        try:
            call("cuEventRecord", event, other)
            call("cuStreamWaitEvent", stream, event, 0)
        finally:
            call("cuEventDestroy", event)  # it is freed when the wait is over
