"""Scale factors of the block-scaled kinds: which bytes of which lanes scale A and B."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tilelayout.errors import LayoutError
from tilelayout.parts import as_integer


@dataclass(frozen=True)
class BlockScale:
    """Scale factors of A's rows and B's columns, `vector` of them along K for each.

    Attributes:
        vector: 1, 2 or 4: the qualifier ``.scale_vec::``.
        type: element type of the factors, "float8_e8m0fnu" or "float8_ue4m3".
        byte_a, byte_b: the selectors' first halves: the byte of the 32-bit scale register that holds the first factor.
        thread_a, thread_b: their second halves: which lanes of each four hold factors: for A lanes 2 thread and
            2 thread + 1, for B lane `thread`.

    Errors: LayoutError for a vector that is none, a byte from which the factors would run out of their alignment, a
    thread that is none.

    >>> BlockScale(2, "float8_e8m0fnu", byte_a=1)
    Traceback (most recent call last):
    tilelayout.errors.LayoutError: BlockScale: byte_a must be one of 0, 2 for scale_vec::2X, got 1: ...
    """

    vector: int
    type: str
    byte_a: int = 0
    thread_a: int = 0
    byte_b: int = 0
    thread_b: int = 0

    def __post_init__(self) -> None:
        if self.vector not in (1, 2, 4):
            raise LayoutError("BlockScale", f"scale_vec must be 1, 2 or 4, got {self.vector!r}")
        if self.type not in ("float8_e8m0fnu", "float8_ue4m3"):
            raise LayoutError(
                "BlockScale",
                f"no scale factor is a {self.type!r}",
                "there are float8_e8m0fnu and float8_ue4m3",
            )
        bytes_ = tuple(range(0, 4, self.vector))
        allowed = {"byte_a": bytes_, "byte_b": bytes_, "thread_a": (0, 1), "thread_b": (0, 1, 2, 3)}
        for name, values in allowed.items():
            x = as_integer(getattr(self, name), "BlockScale", name)
            if x not in values:
                what = f" for scale_vec::{self.vector}X" if name.startswith("byte") else ""
                raise LayoutError(
                    "BlockScale",
                    f"{name} must be one of {', '.join(map(str, values))}{what}, got {x}",
                    "factors are aligned to their number in bytes" if what else None,
                )
            object.__setattr__(self, name, x)

    def selector(self, role: Literal["SFA", "SFB"]) -> tuple[int, int]:
        """(byte, thread) of the factors of A or of B."""
        return (self.byte_a, self.thread_a) if role == "SFA" else (self.byte_b, self.thread_b)

    @property
    def text(self) -> str:
        """The operands behind C in a template."""
        return f", {{SFA}}, {{{{{self.byte_a}, {self.thread_a}}}}}, {{SFB}}, {{{{{self.byte_b}, {self.thread_b}}}}}"

    @property
    def suffix(self) -> str:
        """The selectors in a record's name; empty where they are all 0."""
        selectors = (self.byte_a, self.thread_a, self.byte_b, self.thread_b)
        return "_".join(map(str, selectors)) if any(selectors) else ""
