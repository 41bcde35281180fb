"""Arrays handed over by DLPack: the tensor behind a capsule, without copying.

The structures are those of ``dlpack.h`` (versions 0 and 1): a capsule named "dltensor" or "dltensor_versioned" is
consumed by renaming it, after which the consumer calls the tensor's deleter once.  No kernel may enter.
"""

from __future__ import annotations

import ctypes
from ctypes import (
    POINTER,
    c_char_p,
    c_int32,
    c_int64,
    c_uint8,
    c_uint16,
    c_uint32,
    c_uint64,
    c_void_p,
    py_object,
)
from typing import Any, NamedTuple

from tilelayout import LayoutError

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13
"""Kinds of device (``DLDeviceType``)."""

_READ_ONLY, _COPIED = 1, 2  # DLPACK_FLAG_BITMASK_READ_ONLY, DLPACK_FLAG_BITMASK_IS_COPIED
_KINDS = {
    0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex", 6: "bool", 7: "float8_e3m4", 8: "float8_e4m3",
    9: "float8_e4m3b11fnuz", 10: "float8_e4m3fn", 11: "float8_e4m3fnuz", 12: "float8_e5m2", 13: "float8_e5m2fnuz",
    14: "float8_e8m0fnu", 15: "float6_e2m3fn", 16: "float6_e3m2fn", 17: "float4_e2m1fn",
}  # fmt: skip
"""``DLDataTypeCode``."""


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32), ("ndim", c_int32), ("code", c_uint8),
        ("bits", c_uint8), ("lanes", c_uint16), ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    )  # fmt: skip


class _Managed(ctypes.Structure):
    _fields_ = (("tensor", _Tensor), ("manager_ctx", c_void_p), ("deleter", c_void_p))


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("major", c_uint32), ("minor", c_uint32), ("manager_ctx", c_void_p), ("deleter", c_void_p),
        ("flags", c_uint64), ("tensor", _Tensor),
    )  # fmt: skip


_FORMS = {b"dltensor": _Managed, b"dltensor_versioned": _Versioned}

# The calls hold the lock of the interpreter, as those of the C interface of Python must.
_get_name = ctypes.PYFUNCTYPE(c_char_p, py_object)(("PyCapsule_GetName", ctypes.pythonapi))
_get_pointer = ctypes.PYFUNCTYPE(c_void_p, py_object, c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
_set_name = ctypes.PYFUNCTYPE(ctypes.c_int, py_object, c_char_p)(("PyCapsule_SetName", ctypes.pythonapi))
_DELETER = ctypes.PYFUNCTYPE(None, c_void_p)
_USED = {
    name: b"used_" + name for name in _FORMS
}  # a capsule keeps the address of its name, so these must live on


class Owner:
    """Keeps a tensor alive that was handed over, and gives it back when it is dropped."""

    def __init__(self, address: int, deleter: int | None) -> None:
        self.address, self.deleter = address, deleter

    def __del__(self) -> None:
        if self.deleter:
            _DELETER(self.deleter)(self.address)
            self.deleter = None


class Exchanged(NamedTuple):
    """A tensor that was handed over.

    Attributes:
        pointer: the address of its first element.
        dtype: its element type, as numpy or ml_dtypes have it.
        shape, strides: the latter in bytes.
        kind, device: the kind of device and its number.
        read_only: whether it must not be written, or is a copy, which nobody would see written.
        owner: what keeps it alive.
    """

    pointer: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    kind: int
    device: int
    read_only: bool
    owner: Owner


def exchange(x: Any, role: str, stream: int | None) -> Exchanged:
    """The tensor that an array with ``__dlpack__`` hands over for work on `stream` (None: a CPU's).

    Errors: LayoutError for an array that refuses, or whose elements have no whole bytes.
    """
    try:
        try:
            capsule = x.__dlpack__(stream=stream, max_version=(1, 0))
        except TypeError:  # a producer of version 0 knows no versions
            capsule = x.__dlpack__(stream=stream)
    except Exception as error:  # what a producer raises is its own affair
        raise LayoutError(
            "launch", f"{role}, a {type(x).__name__}, hands over no DLPack tensor: {error}"
        ) from error
    return consume(capsule, role)


def consume(capsule: Any, role: str) -> Exchanged:
    """The tensor of a capsule, which is consumed by it.

    Errors: LayoutError for a capsule that holds none or was consumed before, a version that is not known, and elements
    that have no whole bytes.
    """
    name = _get_name(capsule)
    if name not in _FORMS:
        raise LayoutError(
            "launch", f"{role} hands over a DLPack capsule named {name!r}: consumed before, or no tensor"
        )
    address = _get_pointer(capsule, name)
    managed = _FORMS[name].from_address(address)
    if name == b"dltensor_versioned" and managed.major != 1:  # its deleter stands where all versions have it
        raise LayoutError("launch", f"{role} hands over DLPack version {managed.major}, known are 0 and 1")
    _set_name(capsule, _USED[name])
    owner = Owner(address, managed.deleter)
    flags = managed.flags if name == b"dltensor_versioned" else 0
    return _read(managed.tensor, role, bool(flags & (_READ_ONLY | _COPIED)), owner)


def _read(tensor: _Tensor, role: str, read_only: bool, owner: Owner) -> Exchanged:
    kind = _KINDS.get(tensor.code)
    bits = tensor.bits * tensor.lanes
    if kind is None or bits % 8 or tensor.lanes != 1:
        raise LayoutError(
            "launch",
            f"{role} hands over elements of DLPack type {tensor.code} of {tensor.bits} bits times {tensor.lanes}, "
            "which no kernel takes",
        )
    name = f"{kind}{'' if kind == 'bool' or '_' in kind else tensor.bits}"
    shape = tuple(tensor.shape[: tensor.ndim]) if tensor.ndim else ()
    width = bits // 8
    if tensor.strides:
        strides = tuple([s * width for s in tensor.strides[: tensor.ndim]])
    else:
        strides = contiguous(shape, width)
    pointer = (tensor.data or 0) + tensor.byte_offset
    return Exchanged(pointer, name, shape, strides, tensor.device_type, tensor.device_id, read_only, owner)


def contiguous(shape: tuple[int, ...], width: int) -> tuple[int, ...]:
    """The strides of a row-major array of elements of `width` bytes, in bytes.

    >>> contiguous((2, 3, 4), 2)
    (24, 8, 2)
    """
    strides: list[int] = []
    for n in reversed(shape):
        strides.append(width)
        width *= max(1, n)
    return tuple(reversed(strides))
