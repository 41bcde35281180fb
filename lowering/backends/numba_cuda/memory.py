"""Loads and stores of whole fragments: the elements that this lane and warp hold, at their logical coordinates.

The array may be any that numba knows (global, shared, a slice of one): elements are reached through its strides, one by
one, since nothing is known of its alignment.  Elements of less than a byte are packed along the last dimension.
lane = threadIdx.x % 32, warp = threadIdx.x // 32 % warps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from llvmlite import ir
from numba.cuda import cgutils, types
from numba.cuda.core.errors import TypingError
from numba.cuda.extending import intrinsic

from tilelayout.expr import Index

from ...registers import LANE, WARP, register_file
from ...tile import Tile
from ..address import split_constant
from .elements import halves, joined
from .fragment import WORD, FragmentType
from .index import INDEX, IndexValues

_BYTE = ir.IntType(8)

Values = Sequence[ir.Value]


def load(name: str, tile: Tile, fragment: FragmentType, warps: int) -> Any:
    """``load(array) -> fragment`` of a tile; what belongs to no element is 0.

    Errors: LayoutError where the layout does not say which element a lane holds; in a kernel, TypingError for another
    rank or element type.
    """
    held = _Held(name, tile, fragment, warps)

    def typed(typingctx: Any, array: Any) -> Any:
        held.check(array)

        def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Values) -> ir.Value:
            words: dict[int, ir.Value] = {}
            for word, shift, place, bit in held.places(context, builder, array, args[0]):
                bits = builder.load(place)
                if fragment.container > WORD.width:
                    words[word], words[word + 1] = halves(builder, bits)
                    continue
                bits = builder.zext(bits, WORD)
                if bit is not None:
                    bits = builder.and_(
                        builder.lshr(bits, bit), ir.Constant(WORD, (1 << fragment.container) - 1)
                    )
                bits = builder.shl(bits, shift)
                words[word] = builder.or_(words[word], bits) if word in words else bits
            result: ir.Value = ir.Constant(ir.ArrayType(WORD, fragment.count), None)
            for word, value in words.items():
                result = builder.insert_value(result, value, word)
            return result

        return fragment(array), codegen

    typed.__name__ = typed.__qualname__ = name
    return intrinsic(typed)


def store(name: str, tile: Tile, fragment: FragmentType, warps: int) -> Any:
    """``store(array, fragment)`` of a tile; an element that several warps hold is written by each.

    Errors: as `load`, and TypingError for a read-only array, another fragment, or elements that share a byte, which
    lanes would have to write together.
    """
    held = _Held(name, tile, fragment, warps)

    def typed(typingctx: Any, array: Any, value: Any) -> Any:
        held.check(array)
        if not array.mutable:
            raise TypingError(f"{name} writes its array, and {array} is read-only")
        if held.per_unit > 1:
            raise TypingError(
                f"{name}: {held.per_unit} {tile.dtype} share a byte, and no lane has all of one"
            )
        if value != fragment:
            raise TypingError(f"{name} takes the {fragment} of {tile.name}, got {value}")

        def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Values) -> ir.Value:
            for word, shift, place, _ in held.places(context, builder, array, args[0]):
                if fragment.container > WORD.width:
                    both = [builder.extract_value(args[1], word + i) for i in range(2)]
                    builder.store(joined(builder, *both), place)
                    continue
                bits = builder.lshr(builder.extract_value(args[1], word), shift)
                builder.store(builder.trunc(bits, held.unit), place)
            return context.get_dummy_value()

        return types.void(array, value), codegen

    typed.__name__ = typed.__qualname__ = name
    return intrinsic(typed)


class _Held:
    """What a thread holds of a tile, and where that is in an array."""

    def __init__(self, name: str, tile: Tile, fragment: FragmentType, warps: int) -> None:
        self.name, self.tile, self.fragment, self.warps = name, tile, fragment, warps
        self.coordinates = register_file(tile.layout, tile.shape).coordinates
        self.per_unit = max(1, 8 // fragment.container)
        self.unit = ir.IntType(max(8, fragment.container))

    def check(self, array: Any) -> None:
        """TypingError unless the array has the tile's rank and a type that carries its elements."""
        element = self.fragment.element.name
        accepted = self.fragment.array_types
        rank = len(self.tile.shape)
        if self.tile.shape[-1] % self.per_unit:
            raise TypingError(
                f"{self.name}: a row of {self.tile.name}, {element} {list(self.tile.shape)}, is no whole number of "
                f"bytes of {self.per_unit} elements: pad the rows"
            )
        if not (isinstance(array, types.Array) and array.ndim == rank and array.dtype in accepted):
            wanted = " or ".join(map(str, accepted))
            what = f"{self.tile.name}, {element} {list(self.tile.shape)}"
            what += f" ({self.per_unit} elements a byte along the last)" if self.per_unit > 1 else ""
            raise TypingError(f"{self.name} takes a {rank}-d array of {wanted} for {what}, got {array}")

    def places(
        self, context: Any, builder: ir.IRBuilder, array_type: Any, array: ir.Value
    ) -> Iterator[tuple[int, ir.Value, ir.Value, ir.Value | None]]:
        """Word, shift within it, pointer, and lowest bit in the byte at the pointer (None: 0), of every element.

        A coordinate's constant part is added last, so that the elements of a lane share one base address.
        """
        view = context.make_array(array_type)(context, builder, array)
        strides = _strides(builder, array_type, view)
        index = IndexValues(builder, thread(builder, self.warps))
        start = builder.bitcast(view.data, _BYTE.as_pointer())
        bases: dict[tuple[Index, ...], ir.Value] = {}
        for slot, coordinate in self.coordinates.items():
            place_of, bit = self._in_bytes(coordinate)
            moving, fixed = zip(*map(split_constant, place_of), strict=True)
            if moving not in bases:
                bases[moving] = builder.gep(start, [_dot(builder, [index.value(x) for x in moving], strides)])
            offset = _dot(builder, [ir.Constant(INDEX, x) for x in fixed], strides)
            place = builder.bitcast(builder.gep(bases[moving], [offset]), self.unit.as_pointer())
            word, shift = self.fragment.place(slot)
            low = None if bit is None else builder.trunc(index.value(bit), WORD)
            yield word, ir.Constant(WORD, shift), place, low

    def _in_bytes(self, coordinate: tuple[Index, ...]) -> tuple[tuple[Index, ...], Index | None]:
        """A coordinate in the array, and the element's lowest bit there, where elements share bytes."""
        if self.per_unit == 1:
            return coordinate, None
        *outer, last = coordinate
        return (*outer, last // self.per_unit), last % self.per_unit * self.fragment.container


def _strides(builder: ir.IRBuilder, array_type: Any, view: Any) -> list[ir.Value]:
    """In bytes; the one that the array's layout fixes is a constant."""
    strides = list(cgutils.unpack_tuple(builder, view.strides, array_type.ndim))
    fixed = {"C": -1, "F": 0}.get(array_type.layout)
    if fixed is not None:
        strides[fixed] = ir.Constant(INDEX, array_type.dtype.bitwidth // 8)
    return strides


def _dot(builder: ir.IRBuilder, values: Values, strides: Values) -> ir.Value:
    total: ir.Value = ir.Constant(INDEX, 0)
    for x, stride in zip(values, strides, strict=True):
        total = builder.add(total, builder.mul(x, stride))
    return total


def thread(builder: ir.IRBuilder, warps: int) -> dict[str, ir.Value]:
    """The variables of coordinates."""
    sreg = "llvm.nvvm.read.ptx.sreg.tid.x"
    function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(ir.IntType(32), ()), sreg)
    tid = builder.zext(builder.call(function, ()), INDEX)
    lane = builder.and_(tid, ir.Constant(INDEX, 31))
    warp = builder.urem(builder.lshr(tid, ir.Constant(INDEX, 5)), ir.Constant(INDEX, warps))
    return {LANE.name: lane, WARP.name: warp}
