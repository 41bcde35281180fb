"""What a `MemoryFunction` takes in a kernel: arrays, fragments and integers, and what each array says of itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from llvmlite import ir
from numba.cuda import cgutils, types
from numba.cuda.core.errors import TypingError

from tilelayout.expr import Expr, Index, Var, variables

from ...control import GRID, If, Set, assigned, mentioned
from ...program import Address, Buffer, Instr, Program, every
from ...window import Window
from .fragment import FragmentType
from .index import INDEX

_BYTE = ir.IntType(8)
_SPACES = {"global": 1, "shared": 3}
"""Memory -> number of its address space in NVVM (NVVM IR specification, "Address Spaces")."""
_BITS = {"global": 64, "shared": 32}
"""Memory -> bits of an address in PTX as instructions take it here."""


@dataclass(frozen=True)
class Memory:
    """An array argument.

    Attributes:
        role: of the operand.
        buffer: its memory in the program.
        window: the window, where that is what the operand is.
        written: whether the program stores to it.
    """

    role: str
    buffer: Buffer
    window: Window | None
    written: bool

    @property
    def described(self) -> dict[str, tuple[str, int]]:
        """Variables that the array itself knows: name -> ("shape" or "strides", dimension).

        Of a window all of whose extents and strides are variables, but for strides of 1; else none, and the array is
        flat memory.
        """
        if self.window is None or self.window.base != 0:
            return {}
        found: dict[str, tuple[str, int]] = {}
        for d, (iters, size) in enumerate(zip(self.window.dims, self.window.sizes, strict=True)):
            for what, x in (("shape", size), ("strides", iters[0][1])):
                if x == 1 and what == "strides":
                    continue
                if len(iters) > 1 or not isinstance(x, Var) or x.name in found:
                    return {}
                found[x.name] = (what, d)
        return found

    @property
    def rank(self) -> int:
        """Dimensions of the array."""
        return len(self.window.box) if self.window is not None and self.described else 1

    @property
    def accepted(self) -> tuple[types.Type, ...]:
        """Element types of the array."""
        return FragmentType(self.buffer.dtype, 2, self.buffer.container).array_types

    def __str__(self) -> str:
        kind = " or ".join(map(str, self.accepted))
        return f"{self.role}: {self.rank}-d {kind} in {self.buffer.space} memory"

    def check(self, name: str, given: Any) -> None:
        """TypingError, in words, unless an array of that type is taken."""
        what = f"{name}: {self.role} ({self.buffer.name})"
        if not isinstance(given, types.Array) or given.dtype not in self.accepted:
            raise TypingError(
                f"{what} is a {self.rank}-d array of {' or '.join(map(str, self.accepted))} in {self.buffer.space} "
                f"memory, got {given}"
            )
        if given.ndim != self.rank:
            flat = (
                "the tile's layout says where elements are: give its memory as a 1-d array"
                if self.rank == 1
                else f"the window has {self.rank} dimensions"
            )
            raise TypingError(f"{what} is a {self.rank}-d array, got {given}; {flat}")
        if self.written and not given.mutable:
            raise TypingError(f"{what} is written, and {given} is read-only")
        near = self._contiguous(given)
        wanted = 0 if self.window is None or self.rank == 1 else self.window.contiguous
        if wanted is not None and near != wanted:
            raise TypingError(
                f"{what} must be contiguous along dimension {wanted}, and {given} is not known to be; "
                f"{'give the whole array' if self.window is not None else 'slice it by stages of a 2-d array'}"
            )

    def _contiguous(self, given: Any) -> int | None:
        """The dimension of stride 1, as the type says."""
        return {"C": self.rank - 1, "F": 0}.get(given.layout)

    def begin(self, builder: ir.IRBuilder, view: Any) -> ir.Value:
        """Where its first element is, as instructions take it."""
        space = self.buffer.space
        pointer = builder.bitcast(view.data, _BYTE.as_pointer())
        near = builder.addrspacecast(pointer, ir.PointerType(_BYTE, _SPACES[space]))
        place = builder.ptrtoint(near, ir.IntType(64))
        return place if _BITS[space] == 64 else builder.trunc(place, ir.IntType(_BITS[space]))

    def values(self, builder: ir.IRBuilder, array_type: Any, view: Any) -> Iterator[tuple[str, ir.Value]]:
        """The variables that it knows, strides in elements."""
        shift = ir.Constant(INDEX, (array_type.dtype.bitwidth // 8).bit_length() - 1)
        for name, (what, d) in self.described.items():
            found = cgutils.unpack_tuple(builder, getattr(view, what), array_type.ndim)[d]
            yield name, builder.ashr(found, shift) if what == "strides" else found


def free_variables(program: Program, regions: Mapping[str, Any]) -> list[str]:
    """Names of the run-time variables that a program needs: first those of the regions, in order, then all others."""
    needed: dict[str, None] = {}
    for s in every(program.body):
        if isinstance(s, Set):
            values: list[Index] = [s.value]
        elif isinstance(s, Instr):
            values = [x for a in s.arguments for x in (a.coordinate if isinstance(a, Address) else (a,))]  # type: ignore[misc]
        elif isinstance(s, If):
            needed.update(dict.fromkeys(sorted(v.name for v in mentioned(s.condition))))
            continue
        else:
            continue
        for x in values:
            if isinstance(x, Expr):
                needed.update(dict.fromkeys(sorted(v.name for v in variables(x))))
    own = {v.name for v in assigned(program.body)} | {"lane", "warp", *GRID}
    first = [v for region in regions.values() for x in _begins(region) for v in _names(x)]
    ordered = dict.fromkeys([*[n for n in first if n in needed], *needed])
    return [name for name in ordered if name not in own]


def _begins(region: Any) -> tuple[Any, ...]:
    return region.origin if isinstance(region, Window) else tuple([begin for begin, _ in region.bounds])


def _names(x: Any) -> list[str]:
    return sorted(v.name for v in variables(x)) if isinstance(x, Expr) else []
