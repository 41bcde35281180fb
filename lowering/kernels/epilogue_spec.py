"""What an epilogue does to each sum, as data."""

from __future__ import annotations

from dataclasses import dataclass

from tilelayout import LayoutError

from ..control import Parameter
from ..isa.convert import PACK, UNPACK
from ..isa.record import Instruction, Kind

BIASES = ("", "row", "column")
AT_ONCE = 16
"""Elements of a lane that are worked on together, at most."""
ALONG = {"row": -1, "column": -2}
"""Of a bias: the dimension of the result that it is a vector along."""


@dataclass(frozen=True)
class Epilogue:
    """What is done to each sum.

    Attributes:
        out: element type of the result.
        acc: of the sums: float32, float64, int32 or float16.
        scaled: whether sums are multiplied by the parameter ``alpha``.
        has_c: whether C times the parameter ``beta`` is added.
        bias: "" for none, "row" for a vector along the result's columns, the same for all rows; "column" for one along
            its rows.
        function: of one number, done last before rounding; an instruction of one result and one operand.

    Errors: LayoutError for types that are not converted, and a function of other registers.

    >>> Epilogue("float16", "float32", scaled=True).kind, Epilogue("int32", "int32").kind
    ('f32', 'b32')
    >>> Epilogue("int32", "int32", has_c=True).kind
    'f64'
    """

    out: str
    acc: str
    scaled: bool = False
    has_c: bool = False
    bias: str = ""
    function: Instruction | None = None

    def __post_init__(self) -> None:
        what = f"epilogue {self.acc} to {self.out}"
        if self.bias not in BIASES:
            raise LayoutError(what, f"bias {self.bias!r}", "one of 'row' and 'column', or '' for none")
        wide = ("int32",) if self.acc == "int32" else ("float64", "float32")
        outputs = {"f32": tuple(PACK), "f64": wide, "b32": ("int32",)}[self.kind]
        if (self.acc != "float64" and self.acc not in UNPACK) or self.out not in outputs:
            raise LayoutError(what, f"computed in {self.kind}", f"results are {', '.join(outputs)}")
        f = self.function
        if f is not None:
            kinds = [(o.kind, o.count, o.access) for o in f.operands]
            if kinds != [(self.kind, 1, "write"), (self.kind, 1, "read")]:
                raise LayoutError(
                    what, f"function {f.name} has operands {kinds}", f"it takes one {self.kind} and gives one"
                )

    @property
    def transforms(self) -> bool:
        """Whether anything but rounding happens to the sums."""
        return self.scaled or self.has_c or bool(self.bias) or self.function is not None

    @property
    def kind(self) -> Kind:
        """Class of the registers that it is computed in: of int32 that stays int32 one that holds it exactly.

        A function is made for float32, but for sums of float64.
        """
        if self.acc == "float64":
            return "f64"
        if self.acc == self.out == "int32" and self.function is None:
            return "f64" if self.transforms else "b32"
        return "f32"

    @property
    def at_once(self) -> int:
        """Elements of a lane that are worked on together: few where their numbers are not in the sums' registers."""
        return AT_ONCE // 4 if self.kind == "f64" and self.acc != "float64" else AT_ONCE

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """``alpha`` and ``beta``, those that there are."""
        names = ["alpha"] * self.scaled + ["beta"] * self.has_c
        return tuple([Parameter(n, "f64" if self.kind == "f64" else "f32") for n in names])


__all__ = ["ALONG", "AT_ONCE", "BIASES", "Epilogue"]
