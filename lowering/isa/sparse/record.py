"""The record of one ``mma.sp``: a dense product whose A is stored at half its width, with metadata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from tilelayout.display import Displayed
from tilelayout.errors import LayoutError

from ..mma.record import MmaInstruction, Role
from ..operand_map import Places, as_arrays, warp_places
from ..record import Emulated, Instruction, Operand
from .compress import compress, decompress
from .metadata import CODE_BITS, ROWS, Sparsity


@dataclass(frozen=True)
class SparseMma(Displayed):
    """One concrete ``mma.sp``: ``d[m, n] = a[m, k] @ b[k, n] + c[m, n]``, in place, A structured sparse.

    Attributes:
        dense: the product with A written out: its shape, types, and the places of B, C and D.  (Not an instruction
            that exists: ``mma.sp`` takes twice the K of the dense ones.)
        ordered: ``mma.sp::ordered_metadata``, which takes rising indices only; plain ``mma.sp`` takes any two.
        selector: which lanes of each quad contribute metadata, see `Sparsity`; part of the instruction's text.
        sm, ptx, specific, emulated: as in `MmaInstruction`.
        family: as in `Instruction`.

    The kept elements of A are a matrix (M, K/2), and lie in registers as A of a dense instruction of that K does.

    >>> import numpy as np
    >>> from lowering.isa.sparse import MMA_SP
    >>> one = next(r for r in MMA_SP if r.name == "sp.ordered.m16n8k32.f16")
    >>> one.registers("A"), one.registers("B"), one.sparsity.lanes, one.sparsity.selectors
    (4, 4, 2, 2)
    >>> A = np.zeros((16, 32), np.float16)
    >>> A[3, [4, 6]] = 1, 2
    >>> values, words = one.compress(A)
    >>> values[3, :4].tolist(), hex(words[12])  # lane 12 has row 3 in its low half
    ([0.0, 0.0, 1.0, 2.0], '0x44444484')
    >>> bool((one.decompress(values, words) == A).all())
    True

    Errors: LayoutError for a selector that names no lanes, or a type whose sparsity is not known.
    """

    dense: MmaInstruction
    ordered: bool
    sm: int
    ptx: tuple[int, int]
    selector: int = 0
    specific: tuple[int, ...] = ()
    emulated: tuple[Emulated, ...] = ()
    family: bool = True
    _painter: ClassVar[str] = "lowering.display"
    _explorer: ClassVar[str] = "lowering.explore"

    def __post_init__(self) -> None:
        if self.dense.m != ROWS or self.dense.k_pack not in (1, 2, 4, 8):
            raise LayoutError("SparseMma", f"there is no sparse {self.dense.name}")
        self.sparsity.check_selector(self.selector)
        self._stored()

    @cached_property
    def sparsity(self) -> Sparsity:
        """Groups of A and the places of the metadata, from the width of A's elements in registers."""
        group = {1: 2, 2: 4, 4: 4, 8: 8}[self.dense.k_pack]
        return Sparsity(self.dense.k, group, rows_of_word=2 if self.dense.k_pack <= 2 else 1)

    # --- names --------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """Short and unique."""
        chosen = f".selector{self.selector}" if self.selector else ""
        return f"sp{'.ordered' * self.ordered}.{self.dense.name}{chosen}"

    @property
    def shape(self) -> str:
        return self.dense.shape

    @property
    def signature(self) -> tuple[str, str, str, str]:
        """Element types of A, B, C, D."""
        return self.dense.signature

    @property
    def mnemonic(self) -> str:
        variant = "mma.sp::ordered_metadata" if self.ordered else "mma.sp"
        return variant + self.dense.mnemonic.removeprefix("mma")

    @property
    def section(self) -> str:
        """Where the PTX ISA defines its fragments and its text."""
        types = {1: ".tf32", 2: ".f16 and .bf16", 4: ".u8 / .s8 / .e4m3 / .e5m2", 8: ".u4 / .s4"}[
            self.dense.k_pack
        ]
        found = f"Matrix Fragments for sparse mma.{self.shape} with {types} types; Sparse matrix storage"
        return f"{found}; Block Scaling for mma.sync" if self.dense.scale else found

    # --- operands -----------------------------------------------------------------------------------

    def operand_shape(self, role: Role) -> tuple[int, ...]:
        """A (M, K/2) as it is stored, B (K, N), C and D (M, N)."""
        return (ROWS, self.dense.k // 2) if role == "A" else self.dense.operand_shape(role)

    def index(self, role: Role) -> tuple[Any, ...]:
        """Which element of `operand_shape` each lane's slot holds: index arrays ``[32 lanes, slots]``, a bijection."""
        if role != "A":
            return self.dense.index(role)
        return as_arrays(self._stored())

    def _stored(self) -> Places:
        """Where the stored elements of A are, proved to be a bijection."""
        return warp_places(ROWS, self.dense.k // 2, self.dense.k_pack)

    def elements(self, role: Role) -> int:
        """Elements of the operand that each lane holds; of A, kept ones."""
        return self.dense.elements(role) // (2 if role == "A" else 1)

    def registers(self, role: Role) -> int:
        """Registers of the operand that each lane holds."""
        return self.dense.registers(role) // (2 if role == "A" else 1)

    @property
    def packing(self) -> str:
        """For the catalogue: elements that a lane holds of each operand, by the bits that each takes.

        Of the metadata e, codes in the word of a contributing lane.
        """
        roles: tuple[Role, ...] = ("A", "B", "D")
        parts = [f"{role} {self.elements(role)} x {self.dense.container(role)}" for role in roles]
        return ", ".join([*parts, f"e {32 // CODE_BITS} x {CODE_BITS}"])

    @cached_property
    def instruction(self) -> Instruction:
        """The record that programs use: the operands of the dense one, and ``e``, a register of metadata."""
        whole = self.dense.instruction
        stored = Operand("A", self.registers("A"), "b32", "read")
        operands = [stored if o.name == "A" else o for o in whole.operands]
        operands.insert(3, Operand("e", 1, "b32", "read"))
        scale = self.dense.scale.text if self.dense.scale else ""
        return Instruction(
            self.name,
            f"{self.mnemonic} {{D}}, {{A}}, {{B}}, {{D}}, {{e}}, {self.selector:#x}{scale};",
            tuple(operands),
            self.sm,
            self.ptx,
            self.section,
            self.multiply,
            collective=True,
            specific=self.specific,
            emulated=self.emulated,
            family=self.family,
        )

    # --- meaning ------------------------------------------------------------------------------------

    def multiply(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The meaning, see `meaning.multiply`."""
        from .meaning import multiply  # with numpy and the models, which nobody needs who only lowers

        return multiply(self, values)

    def compress(self, A: Any) -> tuple[Any, Any]:
        """Kept elements (16, K/2) of A's type, and the metadata words, uint32 ``[32 lanes]``.

        Pre-condition and errors: see `compress.compress`.
        """
        kept, codes = compress(A, self.sparsity)
        return kept, self.sparsity.words_of(codes, self.selector)

    def decompress(self, values: Any, words: Any) -> Any:
        """A (16, K) whose kept elements and metadata words are given.  Errors: LayoutError naming row and group."""
        codes = self.sparsity.codes_of(words, self.selector)
        return decompress(values, codes, self.sparsity, self.ordered)
