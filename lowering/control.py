"""What a whole kernel has beside straight code: run-time variables, loops, roles, parameters and tensor maps.

Data only.  Conditions and values are `tilelayout.expr` expressions in terms of

- ``lane`` and ``warp``, the thread's place in its CTA,
- ``cta``, ``cta_y``, ``cta_z`` and ``ctas``, ``ctas_y``, ``ctas_z``: the CTA's place in the grid, and the grid,
- the program's integer parameters and what `Set` has assigned.

A `While` turns together for all threads of a warp that are active, an `If` may divide them.  No instruction and no
layout may enter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from tilelayout import LayoutError
from tilelayout.expr import Expr, Index, Var, substitute, variables

from .storage import Address, Buffer

GRID = {
    "cta": ("%ctaid.x", "blockIdx.x"),
    "cta_y": ("%ctaid.y", "blockIdx.y"),
    "cta_z": ("%ctaid.z", "blockIdx.z"),
    "ctas": ("%nctaid.x", "gridDim.x"),
    "ctas_y": ("%nctaid.y", "gridDim.y"),
    "ctas_z": ("%nctaid.z", "gridDim.z"),
}
"""Name of a place in the grid -> what PTX and CUDA C++ call it."""

CTA, CTA_Y, CTA_Z = Var("cta", 0, (1 << 31) - 2), Var("cta_y", 0, 65534), Var("cta_z", 0, 65534)
CTAS, CTAS_Y, CTAS_Z = Var("ctas", 1, (1 << 31) - 1), Var("ctas_y", 1, 65535), Var("ctas_z", 1, 65535)

Relation = Literal["<", "<=", "==", "!=", ">", ">="]
RELATIONS: dict[str, str] = {"<": "lt", "<=": "le", "==": "eq", "!=": "ne", ">": "gt", ">=": "ge"}
"""Relation -> what PTX calls it."""


@dataclass(frozen=True)
class Compare:
    """``left relation right``, of integers."""

    left: Index
    relation: Relation
    right: Index

    def __str__(self) -> str:
        return f"{self.left} {self.relation} {self.right}"


@dataclass(frozen=True)
class All:
    """Every one of the comparisons; of none: true."""

    comparisons: tuple[Compare, ...]

    def __str__(self) -> str:
        return " and ".join(map(str, self.comparisons)) or "always"


Condition = Compare | All


def comparisons(condition: Condition) -> tuple[Compare, ...]:
    """What must hold, one by one."""
    return (condition,) if isinstance(condition, Compare) else condition.comparisons


@dataclass(frozen=True)
class Set:
    """``variable = value``, for each active thread.  The first assignment that is met declares the variable.

    Its bounds are a promise that every value keeps, and decide the width of its register: 32 or 64 bits.
    """

    variable: Var
    value: Index


@dataclass(frozen=True)
class Draw:
    """``variable`` = what a counter in global memory holds, which is one more from then on.

    A warp draws once, and all its threads, which must draw together, have the number: no two warps of a launch, or of
    several, have the same one.  Which has which is open, so that work is done by whoever is there to do it.

    Attributes:
        variable: as of `Set`.
        counter: an integer of 32 bits in global memory.
    """

    variable: Var
    counter: Address

    def __post_init__(self) -> None:
        buffer, v = self.counter.buffer, self.variable
        if buffer.space != "global" or buffer.dtype not in ("int32", "uint32"):
            raise LayoutError(
                "Draw",
                f"{buffer.name} holds {buffer.dtype} in {buffer.space} memory, a counter is an integer of 32 bits in "
                "global memory",
                "a buffer of int32 there",
            )
        if v.lo is None or v.hi is None or v.lo > 0 or not 0 <= v.hi < 1 << 31:
            raise LayoutError(
                "Draw",
                f"{v.name} has bounds {v.lo} to {v.hi}, a counter begins at 0",
                "0 to 2**31 - 1 at most",
            )


@dataclass(frozen=True)
class If:
    """`body` for the threads where the condition holds, `orelse` for the others."""

    condition: Condition
    body: tuple[Any, ...]
    orelse: tuple[Any, ...] = ()


@dataclass(frozen=True)
class While:
    """`body` as long as the condition holds, for all active threads of a warp alike.

    Attributes:
        hoist: whether what does not change in the loop is worth computing before it; false for a loop of so few and
            long turns that the registers to keep it are dearer.
    """

    condition: Condition
    body: tuple[Any, ...]
    hoist: bool = True


@dataclass(frozen=True)
class Parameter:
    """A number that a launch gives.

    Attributes:
        name: of the kernel's parameter, and of the variable that expressions use for an integer.
        kind: "s32" or "s64" for integers, "f32" or "f64" for numbers that instructions take.
        lo, hi: of integers: bounds that every launch keeps.
    """

    name: str
    kind: Literal["s32", "s64", "f32", "f64"]
    lo: int | None = None
    hi: int | None = None

    def __post_init__(self) -> None:
        integer, bounded = self.kind in ("s32", "s64"), self.lo is not None and self.hi is not None
        if integer != bounded:
            raise LayoutError(
                f"parameter {self.name}", f"of kind {self.kind} with bounds {self.lo} to {self.hi}"
            )
        if integer:
            limit = 1 << int(self.kind[1:]) - 1
            if not -limit <= self.lo <= self.hi < limit:  # type: ignore[operator]
                raise LayoutError(f"parameter {self.name}", f"{self.lo} to {self.hi} do not fit {self.kind}")

    @property
    def bytes(self) -> int:
        return int(self.kind[1:]) // 8

    @property
    def variable(self) -> Var:
        """The variable that expressions use for an integer."""
        return Var(self.name, self.lo, self.hi)


SWIZZLES = {0: "NONE", 32: "32B", 64: "64B", 128: "128B"}
"""Bytes of a swizzled row -> what the driver calls it; the 16-byte units of each row are permuted by exclusive or with
the number of the row among those of ``8 * bytes`` (CUDA driver API, ``CUtensorMapSwizzle``)."""


@dataclass(frozen=True)
class TensorMap:
    """What the copy engine knows of a tensor in global memory: the driver encodes it from these at each launch.

    Dimension 0 is the contiguous one, as in the driver's interface; values may use the program's integer parameters.

    Attributes:
        name: of the kernel's parameter, 128 bytes aligned to 64.
        buffer: the tensor.
        sizes: extents in elements; coordinates beyond them read as zero and are not written.
        strides: of dimensions 1 and on, in elements; in bytes they are multiples of 16.
        box: extents in shared memory, of at most 256 each.
        swizzle: bytes of a swizzled row of the box, a key of `SWIZZLES`; that of dimension 0 is no more.
        whole_units: whether ``sizes[0]`` is promised to be a multiple of 16 bytes, as boxes that are stored need where
            nothing behind a row may change; a launch for which it is not is refused.
    """

    name: str
    buffer: Buffer
    sizes: tuple[Index, ...]
    strides: tuple[Index, ...]
    box: tuple[int, ...]
    swizzle: int = 0
    whole_units: bool = False

    def __post_init__(self) -> None:
        what, rank = f"tensor map {self.name}", len(self.sizes)
        if not 1 <= rank <= 5 or len(self.strides) != rank - 1 or len(self.box) != rank:
            raise LayoutError(what, f"{rank} sizes, {len(self.strides)} strides, a box of {len(self.box)}")
        if not all(1 <= n <= 256 for n in self.box):
            raise LayoutError(what, f"box {self.box}: each extent is 1 to 256")
        inner = self.box[0] * self.buffer.container // 8
        if self.swizzle not in SWIZZLES or inner % 16 or (self.swizzle and inner > self.swizzle):
            raise LayoutError(what, f"rows of {inner} bytes with a swizzle of {self.swizzle}")

    @property
    def bytes(self) -> int:
        """That one box is."""
        elements = 1
        for n in self.box:
            elements *= n
        return elements * self.buffer.container // 8


def assigned(body: tuple[Any, ...]) -> Iterator[Var]:
    """The variables that statements assign, however deep."""
    for s in body:
        if isinstance(s, Set | Draw):
            yield s.variable
        for part in ("body", "orelse"):
            yield from assigned(getattr(s, part, ()))


def mentioned(condition: Condition) -> frozenset[Var]:
    """The variables of a condition."""
    return frozenset(
        v
        for c in comparisons(condition)
        for x in (c.left, c.right)
        for v in variables(x)
        if isinstance(x, Expr)
    )


def replaced(condition: Condition, values: dict[str, Index]) -> Condition:
    """The condition with variables replaced, by name."""
    found = tuple(
        Compare(substitute(c.left, values), c.relation, substitute(c.right, values))
        for c in comparisons(condition)
    )
    return found[0] if isinstance(condition, Compare) else All(found)
