"""One array library a function: what lies behind its arrays, read the quickest way.

A reader gives ``(pointer, type, shape, strides, device, stream, read only, library, owner)``.  The type is a name or
torch's own object, which is told by its text; strides are in bytes, torch's in elements: what its caller looks up in a
table is not computed here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from typing import Any, cast

from tilelayout import LayoutError

from .bindings import bindings, failure
from .carriers import is_known
from .devices import current_device
from .dlpack import CPU, CUDA, CUDA_HOST, CUDA_MANAGED, contiguous, exchange

Found = tuple[int, Any, tuple[int, ...], tuple[int, ...], int, int | None, bool, str, Any]
Reader = Callable[[Any, str, int | None], Found]

LEGACY, PER_THREAD = 1, 2
"""Names of the default streams where 0 would leave open which is meant: CUDA's own handles for them."""

_READERS: dict[type, Reader] = {}


def read(x: Any, role: str, stream: int | None) -> Found:
    """What lies behind an array.

    Errors: LayoutError for an array on the CPU, one that is no array, and one that its library does not hand out.
    """
    kind = cast("type[object]", type(x))
    reader = _READERS.get(kind)
    if reader is None:
        reader = _READERS.setdefault(kind, _reader(kind))
    return reader(x, role, stream)


@cache
def is_torch(kind: type[object]) -> bool:
    """Whether a type is torch's tensor, or derived from it."""
    return _derives(kind, "torch", "Tensor")


@cache
def is_cupy(kind: type[object]) -> bool:
    """Whether a type is cupy's array, or derived from it."""
    return _derives(kind, "cupy", "ndarray")


def _derives(kind: type[object], library: str, name: str) -> bool:
    return any(
        base.__module__.partition(".")[0] == library and base.__name__ == name for base in kind.__mro__
    )


def _reader(kind: type[object]) -> Reader:
    return _torch if is_torch(kind) else _cupy if is_cupy(kind) else _other


def _torch(x: Any, role: str, stream: int | None) -> Found:
    if not x.is_cuda:
        if x.device.type == "cpu":
            raise _on_the_cpu("a torch tensor", role, ".cuda()")
        raise LayoutError("launch", f"{role} is a torch tensor on {x.device}", "move it to the GPU: .cuda()")
    try:
        if x.is_neg():
            raise LayoutError("launch", f"{role} is a view whose elements torch negates when it reads them",
                              "resolve it: .resolve_neg()")  # fmt: skip
        return x.data_ptr(), x.dtype, x.shape, x.stride(), x.get_device(), None, False, "torch", x
    except (
        RuntimeError,
        AttributeError,
    ) as error:  # sparse, fake and functional tensors have no strides or no memory
        raise LayoutError("launch", f"{role}, a {type(x).__name__} of layout {x.layout}, has no plain memory: {error}",
                          "make it a dense tensor") from error  # fmt: skip


def _cupy(x: Any, role: str, stream: int | None) -> Found:
    memory = x.data
    return memory.ptr, _named(x.dtype, role), x.shape, x.strides, memory.device_id, None, False, "cupy", x


def _other(x: Any, role: str, stream: int | None) -> Found:
    """By a protocol: those that know streams first."""
    interface = getattr(x, "__cuda_array_interface__", None)
    if interface is not None:
        return _interface(x, interface, role)
    if hasattr(x, "__dlpack_device__") and hasattr(x, "__dlpack__"):
        return _dlpack(x, role, stream)
    if hasattr(x, "__array__") or type(x) in (list, tuple, memoryview, bytes, bytearray):
        raise _on_the_cpu(f"a {_of(x)}", role, "torch.as_tensor or cupy.asarray")
    raise LayoutError(
        "launch",
        f"{role} is a {_of(x)}, which is no array on a GPU",
        "pass a torch tensor, a cupy or numba array, or one with __cuda_array_interface__ or __dlpack__",
    )


def _of(x: Any) -> str:
    """The type of an object, in words."""
    kind = cast("type[object]", type(x))
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def _on_the_cpu(what: str, role: str, how: str) -> LayoutError:
    return LayoutError(
        "launch",
        f"{role} is {what}, in the memory of the CPU; a kernel is launched on arrays on a GPU",
        f"move it to the GPU ({how}), or use kernel.simulate, which takes numpy arrays",
    )


# --- __cuda_array_interface__ ---------------------------------------------------------------------------------

_TYPES = {"f": "float", "i": "int", "u": "uint", "b": "bool", "V": "void", "c": "complex"}


def _interface(x: Any, interface: Any, role: str) -> Found:
    """CUDA Array Interface, versions 2 and 3 (numba's documentation defines it)."""
    try:
        pointer, read_only = interface["data"]
        shape, typestr = tuple(interface["shape"]), interface["typestr"]
    except (KeyError, TypeError, ValueError) as error:
        raise LayoutError(
            "launch", f"{role} has a __cuda_array_interface__ that lacks what it must have: {error!r}"
        ) from None
    if interface.get("mask") is not None:
        raise LayoutError("launch", f"{role} is a masked array, and a kernel knows no mask", "fill it")
    name, width = _of_typestr(typestr, role)
    strides = interface.get("strides")
    strides = contiguous(shape, width) if strides is None else tuple(strides)
    ready = interface.get("stream")
    if ready is not None and (isinstance(ready, bool) or not isinstance(ready, int) or ready <= 0):
        raise LayoutError("launch", f"{role} says that it is ready on stream {ready!r}, which names none")
    pointer = int(pointer or 0)
    return pointer, name, shape, strides, _device_of(pointer, role), ready, bool(read_only), "interface", x


def _of_typestr(typestr: str, role: str) -> tuple[str, int]:
    """(type, width in bytes) of e.g. "<f2"."""
    order, kind, digits = typestr[:1], typestr[1:2], typestr[2:]
    big = order == ">" or (order == "=" and sys.byteorder == "big")
    if kind not in _TYPES or not digits.isdigit() or (big and digits != "1"):
        raise LayoutError("launch", f"{role} has elements of {typestr!r}, which no kernel takes")
    width = int(digits)
    name = "bool" if kind == "b" else f"{_TYPES[kind]}{8 * width}"
    if not is_known(name):
        raise LayoutError("launch", f"{role} has elements of {name}, which no kernel takes")
    return name, width


def _device_of(pointer: int, role: str) -> int:
    """The number of the GPU that an address is of."""
    if not pointer:  # an empty array
        return current_device()
    cu = bindings()
    status, ordinal = cu.cuPointerGetAttribute(
        cu.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pointer
    )
    if status != 0:
        raise LayoutError("launch", f"{role} lies at {pointer:#x}, which is no memory of a GPU: "
                          f"{failure('cuPointerGetAttribute', status)}")  # fmt: skip
    return int(ordinal)


# --- others ---------------------------------------------------------------------------------------------------


def _dlpack(x: Any, role: str, stream: int | None) -> Found:
    """DLPack: the array's library makes its contents ready on the stream that it is told."""
    kind, _ = x.__dlpack_device__()
    if kind == CPU:
        raise _on_the_cpu(f"a {_of(x)}", role, "torch.as_tensor or cupy.asarray")
    if kind not in (CUDA, CUDA_MANAGED):
        where = "the pinned memory of the CPU" if kind == CUDA_HOST else f"DLPack device {int(kind)}"
        raise LayoutError(
            "launch", f"{role} lies in {where}, not in that of an NVIDIA GPU", "move it to the GPU"
        )
    ready = stream or LEGACY  # the protocol has no 0, which may be either of the default streams
    found = exchange(x, role, ready)
    if not is_known(found.dtype):
        raise LayoutError("launch", f"{role} has elements of {found.dtype}, which no kernel takes")
    return (found.pointer, found.dtype, found.shape, found.strides, found.device, ready, found.read_only, "dlpack",
            found.owner)  # fmt: skip


def _named(kind: Any, role: str) -> str:
    """The name of a numpy type."""
    name = _NAMES.get(kind)
    if name is None:
        name = kind.name
        if not kind.isnative or not is_known(name):
            raise LayoutError("launch", f"{role} has elements of {kind.str} ({name}), which no kernel takes")
        _NAMES[kind] = name
    return name


_NAMES: dict[Any, str] = {}
