"""Single elements of a fragment, by slots that are constants when the kernel is compiled.

A slot counts elements: slot s of a 16-bit type is half ``s % 2`` of word ``s // 2``, of float64 the words ``2 * s`` and
``2 * s + 1``.  A slot that is only known at run
time would move the fragment to local memory, and is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba.cuda import types
from numba.cuda.core.errors import TypingError
from numba.cuda.extending import intrinsic

from .fragment import WORD, FragmentType

DOUBLE_WORD = ir.IntType(64)


@intrinsic
def get_element(typingctx: Any, fragment: Any, slot: Any) -> Any:
    """``get(fragment, slot)``: the element where numba has its type, else its bits, see `FragmentType.value_type`."""
    word, shift = _place("get", fragment, slot)

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Sequence[ir.Value]) -> ir.Value:
        if fragment.container > WORD.width:
            bits = joined(builder, *[builder.extract_value(args[0], word + i) for i in range(2)])
        else:
            bits = builder.lshr(builder.extract_value(args[0], word), ir.Constant(WORD, shift))
            bits = builder.trunc(bits, ir.IntType(fragment.container))
        bits = builder.zext(bits, ir.IntType(signature.return_type.bitwidth))
        return builder.bitcast(bits, context.get_value_type(signature.return_type))

    return fragment.value_type(fragment, slot), codegen


@intrinsic
def set_element(typingctx: Any, fragment: Any, slot: Any, value: Any) -> Any:
    """``set(fragment, slot, value) -> fragment`` with that element replaced, by a value as `get_element` gives it."""
    word, shift = _place("set", fragment, slot)
    accepted = types.Number if isinstance(fragment.value_type, types.Float) else types.Integer
    if not isinstance(types.unliteral(value), accepted) or isinstance(value, types.Complex):
        raise TypingError(
            f"set takes {fragment.value_type} for an element of {fragment}, got {types.unliteral(value)}"
        )
    mask = ((1 << fragment.container) - 1) << shift

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Sequence[ir.Value]) -> ir.Value:
        bits = builder.bitcast(args[2], ir.IntType(fragment.value_type.bitwidth))
        if fragment.container > WORD.width:
            for i, part in enumerate(halves(builder, bits)):
                args = [builder.insert_value(args[0], part, word + i), *args[1:]]
            return args[0]
        bits = builder.zext(builder.trunc(bits, ir.IntType(fragment.container)), WORD)
        bits = builder.shl(bits, ir.Constant(WORD, shift))
        kept = builder.and_(builder.extract_value(args[0], word), ir.Constant(WORD, 0xFFFFFFFF ^ mask))
        return builder.insert_value(args[0], builder.or_(kept, bits), word)

    return fragment(fragment, slot, fragment.value_type), codegen


def zeros(name: str, fragment: FragmentType) -> Any:
    """``zeros() -> fragment`` with all bits 0."""

    def typed(typingctx: Any) -> Any:
        def codegen(
            context: Any, builder: ir.IRBuilder, signature: Any, args: Sequence[ir.Value]
        ) -> ir.Value:
            return ir.Constant(context.get_value_type(fragment), None)

        return fragment(), codegen

    typed.__name__ = typed.__qualname__ = name
    return intrinsic(typed)


def joined(builder: ir.IRBuilder, low: ir.Value, high: ir.Value) -> ir.Value:
    """64 bits of two words."""
    upper = builder.shl(builder.zext(high, DOUBLE_WORD), ir.Constant(DOUBLE_WORD, WORD.width))
    return builder.or_(builder.zext(low, DOUBLE_WORD), upper)


def halves(builder: ir.IRBuilder, bits: ir.Value) -> tuple[ir.Value, ir.Value]:
    """The low and the high word of 64 bits."""
    upper = builder.lshr(bits, ir.Constant(DOUBLE_WORD, WORD.width))
    return builder.trunc(bits, WORD), builder.trunc(upper, WORD)


def _place(operation: str, fragment: Any, slot: Any) -> tuple[int, int]:
    """Word and shift of a slot; TypingError for what is no fragment, no constant, or outside."""
    if not isinstance(fragment, FragmentType):
        raise TypingError(f"{operation} takes a Fragment, got {fragment}")
    if not isinstance(slot, types.IntegerLiteral):
        raise TypingError(f"{operation}: the slot must be a constant integer, got {slot}")
    number = slot.literal_value
    if not 0 <= number < fragment.slots:
        raise TypingError(f"{operation}: slot {number} is not in the {fragment.slots} slots of {fragment}")
    return fragment.place(number)  # type: ignore[no-any-return]
