"""What kernels call: constants of numba's that have a name, a check of their arguments, code, and helpers.

A subclass says what it accepts and what is emitted; numba sees all of them as one kind of type.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from llvmlite import ir
from numba.cuda import types
from numba.cuda.core.errors import TypingError
from numba.cuda.core.targetconfig import ConfigStack
from numba.cuda.extending import infer_getattr, lower_getattr_generic
from numba.cuda.typing.templates import AttributeTemplate

from ...program import Program
from .ptx import CompileError, compiled_for, instruction_refusal


class KernelFunction(ABC):
    """A program that kernels call.  Public attributes that numba can use are attributes inside kernels, too.

    Attributes:
        program: the program.
    """

    _intrinsic: Any

    def __init__(self, program: Program) -> None:
        self.program = program
        self._numba_type_ = KernelFunctionType(self)

    @abstractmethod
    def accept(self, given: Sequence[Any], keywords: Mapping[str, Any]) -> None:
        """TypingError, in words, unless the function takes arguments of these types."""

    def __call__(self, *given: Any) -> NoReturn:
        """Only kernels can call it."""
        raise TypeError(f"{self!r} is device code: call it inside a function under @cuda.jit")

    def check_target(self) -> None:
        """TypingError where what is being compiled is for a target without one of the instructions.

        The assembler would say it too, but of a line of PTX that the user didn't write.
        """
        flags = ConfigStack.top_or_none()
        capability = getattr(flags, "compute_capability", None)
        if capability is None:
            return
        try:
            refusals = [instruction_refusal(self.program, where) for where in compiled_for(capability)]
        except CompileError as error:
            refusals = [str(error)]
        if all(refusals):
            raise TypingError(f"{self.program.name}: {refusals[0]}")


class KernelFunctionType(types.Callable, types.Opaque):
    """The numba type of one `KernelFunction`: a constant that can be called and has attributes."""

    def __init__(self, function: KernelFunction) -> None:
        self.function = function
        self._callee: Any = None
        super().__init__(name=f"{type(function).__name__}({function.program.name} {id(function):#x})")

    @property
    def key(self) -> KernelFunction:
        return self.function

    def get_call_type(self, context: Any, args: Sequence[Any], kws: Mapping[str, Any]) -> Any:
        self.function.accept(args, kws)
        self._callee = context.resolve_value_type(self.function._intrinsic)
        return self._callee.get_call_type(context, args, kws)

    def get_call_signatures(self) -> tuple[list[Any], bool]:
        return [], True

    def get_impl_key(self, sig: Any) -> Any:
        return self._callee.get_impl_key(sig)


@infer_getattr
class _Attributes(AttributeTemplate):
    """The helpers that kernels reach through the function."""

    key = KernelFunctionType

    def generic_resolve(self, typ: KernelFunctionType, attr: str) -> Any:
        value = vars(typ.function).get(attr) if not attr.startswith("_") else None
        return None if value is None else self.context.resolve_value_type(value)


@lower_getattr_generic(KernelFunctionType)
def _get_attribute(context: Any, builder: ir.IRBuilder, typ: Any, value: ir.Value, attr: str) -> ir.Value:
    """Functions are constants without a value of their own."""
    return context.get_dummy_value()
