"""Tensor maps: what the copy engine knows of a tensor, as the driver encodes it for a pointer and run-time sizes.

Rules are those of ``cuTensorMapEncodeTiled`` (CUDA driver API, "Tensor Map Object Management"), checked before the
driver does, which gives one error for all of them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from functools import lru_cache

from tilelayout import LayoutError
from tilelayout.expr import Expr, Index, variables

from ...control import SWIZZLES, TensorMap
from ...errors import DriverError
from ...program import compiled
from .bindings import bindings, failure
from .devices import current, current_device

_BYTES = 128
_REMEMBERED = 1024

_TYPES = {
    "float64": "FLOAT64", "float32": "FLOAT32", "tfloat32": "FLOAT32", "float16": "FLOAT16", "bfloat16": "BFLOAT16",
    "int32": "INT32", "uint32": "UINT32", "int16": "UINT16", "uint16": "UINT16",
}  # fmt: skip
"""Element type -> ``CUtensorMapDataType``; the plain ones, that copy bits as they are.  All of a byte are UINT8."""


FETCHED = (256, 128)
"""Bytes that the second-level cache fetches at once where rows begin at multiples of them; the least where none do.

Rows that begin elsewhere would have it fetch what lies beside each box: it cost a tenth of a product's time on an H200.
"""


def fetched(pointer: int, strides: tuple[int, ...]) -> int:
    """Bytes that the second-level cache is told to fetch at once, of a tensor there with rows so many bytes apart."""
    return next((n for n in FETCHED if not any(x % n for x in (pointer, *strides))), FETCHED[-1])


class MapEncoder:
    """Encodes one tensor map; what was encoded lately is remembered."""

    def __init__(self, tensor: TensorMap) -> None:
        self.tensor = tensor
        buffer = tensor.buffer
        if buffer.container % 8:
            raise self._refused(
                f"elements of {buffer.container} bits",
                "describe the tensor in bytes: the copy engine has no type that is packed as memory is",
            )
        self.width = buffer.container // 8
        self._type = "UINT8" if self.width == 1 else _TYPES.get(buffer.dtype)
        if self._type is None:
            raise self._refused(f"elements of {buffer.dtype}, which the copy engine has no type for", None)
        every: tuple[Index, ...] = (*tensor.sizes, *tensor.strides)
        self.names = tuple(sorted({v.name for x in every if isinstance(x, Expr) for v in variables(x)}))
        self._compute = compiled(every, self.names)
        self._known: dict[tuple[int, tuple[int, ...]], bytes] = {}

    def __call__(self, pointer: int, values: Mapping[str, int]) -> bytes:
        """The 128 bytes of the map of a tensor at `pointer`, with the values of the variables that it uses.

        Errors: LayoutError for what the copy engine cannot address; DriverError where the driver refuses.
        """
        try:
            key = pointer, tuple([values[name] for name in self.names])
        except KeyError as error:
            raise self._refused(f"no value for {error.args[0]}", f"it uses {', '.join(self.names)}") from None
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            found = self._known[key] = self._encoded(pointer, values)
        return found

    def bound(self, values: Mapping[str, int]) -> BoundMap:
        """Pointer -> the 128 bytes, for fixed values: what a launch of known sizes looks up.

        Errors, at look-up: as the encoder itself.
        """
        return BoundMap(self, {name: values[name] for name in self.names if name in values})

    def extents(self, values: Mapping[str, int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The sizes in elements, and the strides of dimensions 1 and on in bytes.

        A dimension of one element is never stepped along: its stride is made one that the copy engine takes.
        """
        numbers = self._compute(*[values[name] for name in self.names])
        rank = len(self.tensor.sizes)
        sizes, strides = numbers[:rank], [s * self.width for s in numbers[rank:]]
        for k, n in enumerate(sizes[1:]):
            if n == 1:
                strides[k] = -(-sizes[0] * self.width // 16) * 16
        return sizes, tuple(strides)

    def _encoded(self, pointer: int, values: Mapping[str, int]) -> bytes:
        sizes, strides = self.extents(values)
        self._check(pointer, sizes, strides)
        cu = bindings()
        long, short, box = cu.cuuint64_t, cu.cuuint32_t, self.tensor.box
        arguments = (
            getattr(cu.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{self._type}"),
            len(sizes),
            pointer,
            [long(n) for n in sizes],
            [long(n) for n in strides],
            [short(n) for n in box],
            [short(1)] * len(sizes),
            cu.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
            getattr(cu.CUtensorMapSwizzle, f"CU_TENSOR_MAP_SWIZZLE_{SWIZZLES[self.tensor.swizzle]}"),
            getattr(cu.CUtensorMapL2promotion, f"CU_TENSOR_MAP_L2_PROMOTION_L2_{fetched(pointer, strides)}B"),
            cu.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )
        try:
            with current(current_device()):  # the driver asks for a context, and it does not matter which
                status, found = cu.cuTensorMapEncodeTiled(*arguments)
        except RuntimeError as error:
            raise DriverError(
                f"cuTensorMapEncodeTiled: the driver is too old to have it ({error})"
            ) from error
        if status != 0:
            raise failure(
                f"cuTensorMapEncodeTiled of {self.tensor.name}",
                status,
                f"{self._type} at {pointer:#x}, sizes {sizes}, strides {strides} bytes, box {box}, "
                f"swizzle {self.tensor.swizzle}; tensor maps are for compute capability 9.0 and newer",
            )
        return ctypes.string_at(found.getPtr(), _BYTES)

    def _check(self, pointer: int, sizes: tuple[int, ...], strides: tuple[int, ...]) -> None:
        """LayoutError for the first rule of the copy engine that is broken."""
        name = self.tensor.buffer.name
        if pointer % 16:
            raise self._refused(
                f"{name} begins at address {pointer:#x}, no multiple of 16 bytes",
                "copy it, or feed it otherwise",
            )
        for k, n in enumerate(sizes):
            if not 1 <= n <= 1 << 32:
                raise self._refused(f"{n} elements in dimension {k}: each has 1 to 2**32", None)
        if self.tensor.whole_units and sizes[0] * self.width % 16:
            raise self._refused(
                f"rows of {sizes[0] * self.width} bytes of {name}, which are promised to be whole units of 16: storing "
                f"would overwrite what is behind them",
                "store without the copy engine",
            )
        for k, stride in enumerate(strides, 1):
            if stride % 16:
                raise self._refused(
                    f"a stride of {stride} bytes in dimension {k} of {name}, no multiple of 16",
                    "pad the rows, or feed it otherwise",
                )
            if not 0 <= stride < 1 << 40:
                raise self._refused(
                    f"a stride of {stride} bytes in dimension {k} of {name}: 0 to 2**40 - 16", None
                )

    def _refused(self, rule: str, remedy: str | None) -> LayoutError:
        return LayoutError(f"tensor map {self.tensor.name}", rule, remedy)


class BoundMap(dict[int, bytes]):
    """The maps of tensors that differ in their address alone, by it."""

    def __init__(self, encode: MapEncoder, values: Mapping[str, int]) -> None:
        super().__init__()
        self._encode, self._values = encode, values

    def __missing__(self, pointer: int) -> bytes:
        if len(self) >= _REMEMBERED:
            self.clear()
        found = self[pointer] = self._encode(pointer, self._values)
        return found


@lru_cache(maxsize=256)
def encoder(tensor: TensorMap) -> MapEncoder:
    """The encoder of a map.  Keep it: finding it costs more than what it does.

    Errors: LayoutError for elements that the copy engine has no type for.
    """
    return MapEncoder(tensor)


def encode(tensor: TensorMap, pointer: int, values: Mapping[str, int]) -> bytes:
    """The 128 bytes of a map; see `MapEncoder`."""
    return encoder(tensor)(pointer, values)
