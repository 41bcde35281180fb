"""Groups of asynchronous copies inside kernels: ``commit_group()`` closes one, ``wait_group(pending)`` waits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba.cuda import types
from numba.cuda.core.errors import TypingError
from numba.cuda.extending import intrinsic

from ...isa.cp_async import CP_ASYNC_COMMIT, CP_ASYNC_WAIT
from . import inline_asm


@intrinsic
def commit_group(typingctx: Any) -> Any:
    """``commit()``: what the thread has begun to copy since its last commit is one more group."""

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Sequence[ir.Value]) -> ir.Value:
        inline_asm.call(builder, CP_ASYNC_COMMIT, {})
        return context.get_dummy_value()

    return types.void(), codegen


@intrinsic
def wait_group(typingctx: Any, pending: Any) -> Any:
    """``wait(pending)``: until no groups of the thread but its latest `pending`, a constant, are under way."""
    if not isinstance(pending, types.IntegerLiteral) or not 0 <= pending.literal_value < 64:
        raise TypingError(f"wait: the number of groups must be a constant from 0 on, got {pending}")
    number = pending.literal_value

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Sequence[ir.Value]) -> ir.Value:
        inline_asm.call(builder, CP_ASYNC_WAIT, {"pending": [number]})
        return context.get_dummy_value()

    return types.void(pending), codegen
