"""Arrays on a GPU, of whatever library, as a launch takes them: a pointer and the form of what lies behind it.

No array library is imported: an array is known by the module of its type.  No kernel may enter.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from tilelayout import LayoutError

from .carriers import taken_as, width_of
from .overlap import reach, self_sharing, share_bytes
from .readers import read


class Form:
    """How an array lies in memory: everything but where.  Two arrays that lie alike have one `Form`, the same object.

    So forms make a quick key for what was decided of arrays, in a table of a bounded size: forms of long ago are
    forgotten and made anew.

    Attributes:
        dtype: the kernel's element type, a name of `lowering.dtypes`.
        shape: extents; the last counts bytes where elements have fewer bits than one.
        strides: in bytes.
        width: bytes of an element.
        low, high: the first byte, counted from the pointer, and the one past the last; 0 and 0 where it is empty.
    """

    __slots__ = ("dtype", "high", "low", "shape", "strides", "width")

    def __init__(self, dtype: str, shape: tuple[int, ...], strides: tuple[int, ...], width: int) -> None:
        self.dtype, self.shape, self.strides, self.width = dtype, shape, strides, width
        self.low, self.high = reach(shape, strides, width)

    def lies_like(self, other: Form) -> bool:
        """Whether it is the same form, made anew perhaps."""
        return self is other or (
            (self.dtype, self.shape, self.strides) == (other.dtype, other.shape, other.strides)
        )

    def __repr__(self) -> str:
        return f"Form({self.dtype}, {self.shape}, strides of {self.strides} bytes)"


class DeviceArray(NamedTuple):
    """An array on a GPU.

    Attributes:
        role: what it is to the kernel, "A", "D", ...; messages name it.
        pointer: the address of its first element.
        form: how it lies in memory.
        device: the number of its GPU.
        stream: the stream that its contents are ready on, as its library said; None where it said none.
        library: "torch", "cupy", "interface" or "dlpack": how it was read.
        owner: what must live until the kernel is launched.
    """

    role: str
    pointer: int
    form: Form
    device: int
    stream: int | None
    library: str
    owner: Any

    @property
    def shape(self) -> tuple[int, ...]:
        return self.form.shape

    @property
    def strides(self) -> tuple[int, ...]:
        """In bytes."""
        return self.form.strides

    @property
    def dtype(self) -> str:
        return self.form.dtype


_FORMS: dict[tuple[str, tuple[int, ...], tuple[int, ...], int], Form] = {}
_ACCEPTED: dict[Any, Form] = {}
_REMEMBERED = 4096


def as_device_array(
    x: Any,
    role: str,
    dtype: str | None = None,
    *,
    rank: int | None = None,
    written: bool = False,
    stream: int | None = None,
) -> DeviceArray:
    """An array on a GPU as a launch takes it; nothing is copied.

    torch tensors, cupy and numba arrays, anything with ``__cuda_array_interface__`` (version 2 or 3), and anything
    with ``__dlpack__`` on a CUDA device.

    Pre-conditions: `dtype` is the kernel's element type, None for the array's own; an array that carries its bits
    (`carriers`) is taken.  `stream` is where the kernel will run, which DLPack tells the array's library; None means
    the legacy default stream.
    Post-conditions: the pointer is aligned to an element, strides are multiples of it; of `written` arrays each stride
    is positive and no two elements share a byte.
    Errors: LayoutError with the role for an array on the CPU, of another type, of another rank than `rank`, that its
    library does not hand out, or that must not be written.
    """
    pointer, kind, shape, strides, device, ready, read_only, library, owner = read(x, role, stream)
    key = (kind, shape, strides, dtype, rank, written)
    form = _ACCEPTED.get(key)
    if form is None:
        form = _accepted(key, library, role)
    if pointer % form.width:
        raise LayoutError(
            "launch",
            f"{role} begins at address {pointer:#x}, no multiple of its elements' {form.width} bytes",
            "copy it",
        )
    if read_only and written:
        raise LayoutError(
            "launch", f"{role} is written by the kernel, and its library says it is read-only", "copy it"
        )
    return DeviceArray(role, pointer, form, device, ready, library, owner)


def _accepted(key: Any, library: str, role: str) -> Form:
    """The form of arrays read so, if a kernel takes them."""
    kind, shape, strides, dtype, rank, written = key
    # torch's types name themselves "torch.float16", and its strides count elements.
    name = str(kind).removeprefix("torch.")
    element = taken_as(name, dtype, role)
    width = width_of(name)
    shape = tuple([int(n) for n in shape])
    unit = width if library == "torch" else 1
    strides = tuple([int(s) * unit for s in strides])
    if rank is not None and len(shape) != rank:
        raise LayoutError("launch", f"{role} has {len(shape)} dimensions {shape}, the kernel takes {rank}")
    if any(s % width and n > 1 for n, s in zip(shape, strides, strict=True)):
        raise LayoutError(
            "launch",
            f"{role} has strides of {strides} bytes, not all multiples of its elements' {width}",
            "copy it",
        )
    if written:
        check_writable(shape, strides, width, role)
    if len(_FORMS) >= _REMEMBERED or len(_ACCEPTED) >= _REMEMBERED:
        _FORMS.clear()
        _ACCEPTED.clear()
    form = _FORMS.setdefault((element, shape, strides, width), Form(element, shape, strides, width))
    _ACCEPTED[key] = form
    return form


def check_writable(shape: tuple[int, ...], strides: tuple[int, ...], width: int, role: str) -> None:
    """LayoutError for strides that are negative or zero, or that put two elements into one place."""
    for k, (n, s) in enumerate(zip(shape, strides, strict=True)):
        if n > 1 and s <= 0:
            what = "negative" if s else "zero: all its elements share one place"
            raise LayoutError(
                "launch", f"{role} is written, and its stride in dimension {k} is {what}", "copy it"
            )
    if self_sharing(shape, strides, width):
        raise LayoutError(
            "launch",
            f"{role} is written, and elements of its shape {shape} share bytes at strides of {strides} bytes",
            "copy it",
        )


def common_device(arrays: Iterable[DeviceArray]) -> int:
    """The number of the GPU that all arrays lie on.

    Errors: LayoutError naming two that lie on different ones.
    """
    first, *others = arrays
    for x in others:
        if x.device != first.device:
            raise LayoutError(
                "launch",
                f"{first.role} lies on GPU {first.device} and {x.role} on GPU {x.device}",
                "move them to one GPU",
            )
    return first.device


def check_overlap(out: DeviceArray, others: Iterable[DeviceArray], in_place: str | None = "C") -> None:
    """LayoutError where writing `out` would change an array that is read.

    Arrays that interleave and share no byte are fine.  The one whose role is `in_place` may be `out` itself: each of
    its elements is read by the thread that writes it, before.  None: none may.
    Errors: Undecided for arrays that interleave with strides too odd to tell.
    """
    form, begin = out.form, out.pointer + out.form.low
    end = out.pointer + form.high
    for x in others:
        if x.pointer + x.form.low >= end or begin >= x.pointer + x.form.high or x.device != out.device:
            continue
        if x.role == in_place and x.pointer == out.pointer and form.lies_like(x.form):
            continue
        if share_bytes(
            x.pointer - out.pointer,
            form.shape,
            form.strides,
            form.width,
            x.form.shape,
            x.form.strides,
            x.form.width,
        ):
            rule = (
                f" (only {in_place} may be {out.role} itself, with its shape, strides and type)"
                if in_place
                else ""
            )
            raise LayoutError(
                "launch",
                f"{out.role} is written and {x.role} is read, and they share memory{rule}",
                f"give another {out.role}, or copy {x.role}",
            )
