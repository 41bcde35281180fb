"""The record of one ``mma.sync``: everything else about it follows from these fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

from tilelayout.display import Displayed
from tilelayout.errors import LayoutError
from tilelayout.parts import as_extent, product

from ...dtypes import dtype
from ..operand_map import LANES, Places, as_arrays, quadpair_places, scale_map, warp_places
from ..record import Emulated, Instruction, Kind, Operand
from .kinds import KINDS
from .scale import BlockScale

Role = Literal["A", "B", "C", "D"]
ROLES: tuple[Role, ...] = ("A", "B", "C", "D")

MOST_WORDS = 255
"""32-bit registers that a thread has, of which no operand can take more."""

_ACCUMULATORS = {
    "float64": "float64",
    **dict.fromkeys(("int8", "uint8", "int4", "uint4", "uint1"), "int32"),
}
_CHOICES = {
    "rule": ("warp", "quadpair"),
    "operation": ("", "xor", "and"),
    "a_layout": ("row", "col"),
    "b_layout": ("row", "col"),
}
_REGISTERS: dict[str, Kind] = {"float32": "f32", "float64": "f64"}


@dataclass(frozen=True)
class MmaInstruction(Displayed):
    """One concrete ``mma.sync``: ``d[m, n] = a[m, k] @ b[k, n] + c[m, n]``, in place where C has D's type.

    Attributes:
        m, n, k: the shape of one product.
        a, b, c, d: element types by name.
        k_pack: elements along K that share a register of A and B (32 bits; 64 for float64).  Stated, not derived: it
            is not 32 / bits for every type.
        sm, ptx: the first architecture and PTX version that have it.
        kind: the qualifier ``.kind::``, without it; empty for none.
        satfinite: an integer result is clamped to its type's range instead of wrapping.
        operation: "xor" or "and" for one-bit factors: products are that, and sums count ones (``.popc``).
        scale: scale factors of A and B, for the block-scaled kinds.
        a_layout, b_layout: the order qualifiers; another than row and col has sm_70's m8n8k4 alone.
        rule: where elements are: "warp", the one rule of `operand_map`, or "quadpair", four products a warp.
        specific: see `Instruction`: compute capabilities whose specific targets alone have it.
        emulated: architectures on which it is assembled into other instructions.

    Errors: LayoutError naming the extent, or the field, that is none of such an instruction: an operand of more than
    `MOST_WORDS` registers, scale factors or types of factors that the kind does not go with.
    """

    m: int
    n: int
    k: int
    a: str
    b: str
    c: str
    d: str
    k_pack: int
    sm: int
    ptx: tuple[int, int]
    kind: str = ""
    satfinite: bool = False
    operation: Literal["", "xor", "and"] = ""
    scale: BlockScale | None = None
    a_layout: Literal["row", "col"] = "row"
    b_layout: Literal["row", "col"] = "col"
    rule: Literal["warp", "quadpair"] = "warp"
    specific: tuple[int, ...] = ()
    emulated: tuple[Emulated, ...] = ()
    _painter: ClassVar[str] = "lowering.display"
    _explorer: ClassVar[str] = "lowering.explore"

    def __post_init__(self) -> None:
        for name in ("m", "n", "k", "k_pack"):
            object.__setattr__(self, name, as_extent(getattr(self, name), "MmaInstruction", name))
            if type(getattr(self, name)) is not int:
                raise LayoutError("MmaInstruction", f"{name} must be a number, got {getattr(self, name)}")
        steps = {"m": 8, "n": 8, "k": 4 * self.k_pack if self.rule == "warp" else 4}
        for name, step in steps.items():
            if getattr(self, name) % step:
                raise LayoutError(
                    "MmaInstruction", f"{name} must be a multiple of {step}, got {getattr(self, name)}"
                )
        for wrong, rule in self._rules():
            if wrong:
                raise LayoutError("MmaInstruction", rule)
        for role in ROLES:
            self.places(role)  # proves that the operand's elements are all there, each once

    def _rules(self) -> Iterator[tuple[bool, str]]:
        """(whether the record breaks it, what to say)."""
        yield type(self.sm) is not int, f"sm must be an integer, as 80 for sm_80, got {self.sm!r}"
        version = isinstance(self.ptx, tuple) and len(self.ptx) == 2 and all(type(x) is int for x in self.ptx)
        yield not version, f"ptx must be two integers, as (7, 8) for PTX 7.8, got {self.ptx!r}"
        for name, there in _CHOICES.items():
            value = getattr(self, name)
            known = ", ".join(x for x in there if x)
            yield value not in there, f"unknown {name} {value!r}; there are {known}"
        yield self.n != 8, f"n must be 8, as in every warp-level mma, got {self.n}"
        quadpair = self.rule == "quadpair"
        yield quadpair and self.shape != "m8n8k4", f"quadpairs do m8n8k4, this is {self.shape}"
        other = (self.a_layout, self.b_layout) != ("row", "col")
        yield other and not quadpair, "another order than row and col have quadpairs alone"
        for role in ROLES:
            kind, container = dtype(self.element(role)), self.container(role)
            yield (
                container < kind.bits,
                f"{role}: {kind.name} does not fit {container} bits, k_pack is {self.k_pack}",
            )
            words = self.elements(role) * container // 32
            yield (
                words > MOST_WORDS,
                f"{role} of {self.shape} would take {words} registers of a lane, which has {MOST_WORDS}",
            )
        yield (
            not isinstance(self.kind, str) or self.kind not in KINDS,
            f"unknown kind {self.kind!r}; there are {', '.join(filter(None, KINDS))}",
        )
        other = self.scale is not None and not isinstance(self.scale, BlockScale)
        yield other, f"scale must be a BlockScale or None, got {self.scale!r}"
        scale = None if self.scale is None else (self.scale.vector, self.scale.type)
        refusal = KINDS[self.kind].refusal(self.kind, self.signature, scale)
        yield bool(refusal), refusal
        integer = dtype(self.d).is_integer
        yield self.satfinite and not integer, f"satfinite clamps integers, D is {self.d}"
        one_bit = self.a == self.b == "uint1"
        yield (
            bool(self.operation) and not one_bit,
            f"{self.operation} is for factors of one bit, not {self.a} and {self.b}",
        )
        yield one_bit and not self.operation, "factors of one bit need an operation, xor or and"

    # --- names ----------------------------------------------------------------------------------

    @property
    def shape(self) -> str:
        return f"m{self.m}n{self.n}k{self.k}"

    @property
    def signature(self) -> tuple[str, str, str, str]:
        """Element types of A, B, C, D."""
        return self.a, self.b, self.c, self.d

    @property
    def name(self) -> str:
        """Short and unique: the shape, the type of the factors (all four types where they do not follow from it),
        and the qualifiers.
        """
        plain = self.a == self.b and self.c == self.d == _ACCUMULATORS.get(self.a, "float32")
        types = (self.a,) if plain else (self.d, self.a, self.b, self.c)
        parts = [self.shape, self.kind]
        if self.rule == "quadpair":
            parts += [self.a_layout, self.b_layout]
        parts += [dtype(x).ptx for x in types]
        parts += ["satfinite" if self.satfinite else "", self.operation]
        if self.scale:
            parts += [f"{self.scale.vector}X", dtype(self.scale.type).ptx, self.scale.suffix]
        return ".".join([p for p in parts if p])

    @property
    def section(self) -> str:
        """Where the PTX ISA defines its fragments and its text."""
        several = {"m8n8k4": ("f16", "f64"), "m16n8k16": ("floating point", "integer")}.get(self.shape)
        which = ""
        if several:
            second = self.a == "float64" if self.shape == "m8n8k4" else dtype(self.a).bits == 8
            which = f" with {several[second]} type"
        found = f"Matrix Fragments for mma.{self.shape}{which}; Warp Level Matrix Instructions: mma"
        return f"{found}; Block Scaling for mma.sync" if self.scale else found

    # --- operands -------------------------------------------------------------------------------

    @property
    def products(self) -> int:
        """Products that one instruction carries out; four in quadpairs."""
        return 1 if self.rule == "warp" else 4

    def operand_shape(self, role: Role) -> tuple[int, ...]:
        """A (M, K), B (K, N), C and D (M, N); with a leading 4 for quadpairs."""
        shape = {"A": (self.m, self.k), "B": (self.k, self.n)}.get(role, (self.m, self.n))
        return shape if self.products == 1 else (self.products, *shape)

    def index(self, role: Role) -> tuple[Any, ...]:
        """Which element of `operand_shape` each lane's slot holds: index arrays ``[32 lanes, slots]``, a bijection."""
        return as_arrays(self.places(role))

    def places(self, role: Role) -> Places:
        """The same as plain integers, proved to be a bijection."""
        if self.rule == "quadpair":
            order = {"A": self.a_layout, "B": self.b_layout}.get(role, "row")
            return quadpair_places(role, order, self.element(role))
        if role == "B":  # PTX holds B as (N, K)
            return warp_places(self.n, self.k, self.k_pack)[::-1]
        return warp_places(self.m, self.k, self.k_pack) if role == "A" else warp_places(self.m, self.n, 2)

    def scale_index(self, role: Literal["SFA", "SFB"]) -> tuple[Any, ...]:
        """Where each scale factor is: (row, block, lane, byte), see `scale_map`; rows M or N.

        Errors: LayoutError for an instruction without scale factors, and for another role.
        """
        if role not in ("SFA", "SFB"):
            raise LayoutError("MmaInstruction", f"scale factors have role SFA or SFB, got {role!r}")
        if self.scale is None:
            raise LayoutError("MmaInstruction", f"{self.name} has no scale factors")
        return scale_map(role, self.scale.vector, *self.scale.selector(role))

    def container(self, role: Role) -> int:
        """Bits of a lane's registers that one element of the operand takes; `elements` says where in them it sits."""
        if role in "AB":
            return 64 if dtype(self.a).bits == 64 else 32 // self.k_pack
        return dtype(self.element(role)).bits

    def element(self, role: Role) -> str:
        """The operand's element type."""
        return getattr(self, role.lower())  # type: ignore[no-any-return]

    def elements(self, role: Role) -> int:
        """Elements of the operand that each lane holds."""
        return int(product(self.operand_shape(role))) // LANES

    def registers(self, role: Role) -> int:
        """Registers of the operand that each lane holds."""
        container = self.container(role)
        return self.elements(role) * container // max(32, container)

    @property
    def packing(self) -> str:
        """For the catalogue: elements that a lane holds of each operand, by the bits that each takes."""
        parts = [f"{role} {self.elements(role)} x {self.container(role)}" for role in ("A", "B", "D")]
        if self.c != self.d:
            parts.append(f"C {self.elements('C')} x {self.container('C')}")
        return ", ".join(parts)

    @property
    def row_blocks(self) -> int:
        """rM: blocks of 8 rows of A and D, each a register of its own in A."""
        return self.m // 8

    @property
    def column_registers(self) -> int:
        """rN: neighboring columns of D that one lane holds."""
        return self.n // 4

    @property
    def k_blocks(self) -> int:
        """kHi: blocks of ``4 * k_pack`` along K, each a register of its own."""
        return self.k // (4 * self.k_pack)

    @property
    def a_registers(self) -> int:
        return self.registers("A")

    @property
    def b_registers(self) -> int:
        return self.registers("B")

    @property
    def d_registers(self) -> int:
        return self.registers("D")

    # --- the instruction ------------------------------------------------------------------------

    @property
    def mnemonic(self) -> str:
        """The opcode with its qualifiers."""
        qualifiers = [f"{self.shape}.{self.a_layout}.{self.b_layout}"]
        qualifiers += [f"kind::{self.kind}"] if self.kind else []
        qualifiers += [f"block_scale.scale_vec::{self.scale.vector}X"] if self.scale else []
        qualifiers += ["satfinite"] if self.satfinite else []
        qualifiers += [dtype(x).ptx for x in (self.d, self.a, self.b, self.c)]
        qualifiers += [f"{self.operation}.popc"] if self.operation else []
        qualifiers += [dtype(self.scale.type).ptx] if self.scale else []
        return f"mma.sync.aligned.{'.'.join(qualifiers)}"

    @cached_property
    def instruction(self) -> Instruction:
        """The record that programs use."""
        in_place = self.c == self.d
        operands = [self._operand("D", "update" if in_place else "write")]
        operands += [self._operand("A", "read"), self._operand("B", "read")]
        operands += [] if in_place else [self._operand("C", "read")]
        text = f"{self.mnemonic} {{D}}, {{A}}, {{B}}, {{{'D' if in_place else 'C'}}}"
        if self.scale:
            operands += [Operand("SFA", 1, "b32", "read"), Operand("SFB", 1, "b32", "read")]
            text += self.scale.text
        return Instruction(
            self.name,
            f"{text};",
            tuple(operands),
            self.sm,
            self.ptx,
            self.section,
            self.multiply,
            collective=True,
            specific=self.specific,
            emulated=self.emulated,
        )

    def _operand(self, role: Role, access: Literal["read", "write", "update"]) -> Operand:
        kind = _REGISTERS.get(self.element(role), "b32") if role in "CD" or self.a == "float64" else "b32"
        return Operand(role, self.registers(role), kind, access)

    def multiply(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The meaning, see `meaning.multiply`."""
        from .meaning import multiply  # with numpy and the models, which nobody needs who only lowers

        return multiply(self, values)
