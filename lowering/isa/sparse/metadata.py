"""Structured sparsity: which elements of A are kept, how metadata names them, and which lane holds which metadata.

A row of A is cut into *groups* of four units, of which two are kept.  A unit is one element of 16 or 8 bits, a pair of
packed 4-bit elements, or half a tf32 element (so a tf32 group is two elements, one kept).  The *code* of a group is two
2-bit numbers, those of its kept units, first kept unit in the low bits.  Source: PTX ISA, "Sparse matrix storage" and
the metadata figures of "Matrix fragments for multiply-accumulate operation with sparse matrix A"; for the shapes that
it draws in parts, CUTLASS, ``ELayout`` in ``mma_traits_sm120_sparse.hpp`` and ``mma_traits_sm90_gmma_sparse.hpp``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tilelayout.errors import LayoutError
from tilelayout.parts import as_extent, as_integer

CODE_BITS = 4
"""Metadata of one group."""

ROWS = 16
"""Rows of A in every ``mma.sp``."""

_UNITS = 4


@dataclass(frozen=True)
class Sparsity:
    """How A of one ``mma.sp`` is thinned out, and where its metadata lies.

    Attributes:
        k: columns of A before it was compressed.
        group: elements of a group: 4, or 8 in pairs, or 2 of tf32.
        rows_of_word: rows whose codes one lane's word holds: 2 (g and g + 8) for elements of 16 and 32 bits, else 1.

    >>> f16 = Sparsity(k=32, group=4, rows_of_word=2)
    >>> (
    ...     f16.lanes,
    ...     f16.selectors,
    ...     f16.place(row=9, group=5),
    ... )  # quad 1: its second lane, upper half, second code
    (2, 2, (5, 5))
    """

    k: int
    group: int
    rows_of_word: int

    def __post_init__(self) -> None:
        for name in ("k", "group", "rows_of_word"):
            as_extent(getattr(self, name), "Sparsity", name)
        if self.rows_of_word not in (1, 2):
            raise LayoutError("Sparsity", f"rows_of_word must be 1 or 2, got {self.rows_of_word}")
        whole = 8 // self.rows_of_word  # codes of one row in a word
        if (
            self.group not in (2, 4, 8)
            or self.k % self.group
            or self.groups % whole
            or self.lanes not in (1, 2, 4)
        ):
            raise LayoutError("Sparsity", f"no metadata for K = {self.k} in groups of {self.group}")

    @property
    def kept(self) -> int:
        return self.group // 2

    @property
    def groups(self) -> int:
        """Groups of a row."""
        return self.k // self.group

    @property
    def lanes(self) -> int:
        """Lanes of each quad (4g to 4g + 3) that contribute metadata."""
        return 2 * self.groups * CODE_BITS // 32

    @property
    def selectors(self) -> int:
        """Values that the sparsity selector may have: which lanes of a quad contribute."""
        return 4 // self.lanes

    def place(self, row: int, group: int, selector: int = 0) -> tuple[int, int]:
        """(lane, number of the code in its word) of a row's group.

        Lane ``4g + i`` of the contributing ones holds rows g and g + 8 (low half and high half) of groups 4i to 4i + 3,
        or, where it holds one row only, row ``g + 8 (i % 2)`` of groups 8 (i // 2) on.
        """
        self.check_selector(selector)
        if not (0 <= row < ROWS and 0 <= group < self.groups):
            raise LayoutError("metadata", f"there is no group {group} in row {row} of 16 x {self.k}")
        half, quad = divmod(row, 8)
        lane, code = (
            (group // 4, 4 * half + group % 4)
            if self.rows_of_word == 2
            else (half + 2 * (group // 8), group % 8)
        )
        return 4 * quad + selector * self.lanes + lane, code

    def check_selector(self, selector: int) -> None:
        """Refuse a selector that names no lanes.  (PTX calls it undefined; the assembler lets some of them pass.)"""
        if not 0 <= as_integer(selector, "metadata", "sparsity selector") < self.selectors:
            allowed = "0" if self.selectors == 1 else f"0 to {self.selectors - 1}"
            raise LayoutError(
                "metadata",
                f"sparsity selector {selector} with {self.lanes} of 4 lanes contributing",
                f"it must be {allowed}",
            )

    @cached_property
    def _places(self) -> tuple[Any, Any]:
        """(lane, code number) of selector 0, integer arrays ``[16, groups]``; checked to be one to one."""
        import numpy as np

        found = np.array([[self.place(row, group) for group in range(self.groups)] for row in range(ROWS)])
        if len({(int(lane), int(code)) for lane, code in found.reshape(-1, 2)}) != ROWS * self.groups:
            raise LayoutError("metadata", f"two groups share a place in the metadata of {self}")
        return found[..., 0], found[..., 1]

    # --- codes --------------------------------------------------------------------------------------

    def codes_of(self, words: Any, selector: int = 0) -> Any:
        """uint8 ``[..., 16, groups]``: the codes in the words ``[..., 32]`` of all lanes; other lanes' are not read.

        Errors: LayoutError for words of another shape and for what are no integers.
        """
        import numpy as np

        self.check_selector(selector)
        words = np.asarray(words)
        _check_integers(words, "words", (32,))
        lane, code = self._places
        held = words[..., lane + selector * self.lanes] >> (CODE_BITS * code).astype(np.uint32)
        return (held & np.uint32(15)).astype(np.uint8)

    def words_of(self, codes: Any, selector: int = 0) -> Any:
        """uint32 ``[..., 32]``, the inverse of `codes_of`; words of lanes that do not contribute are zero.

        Codes without a meaning can be written, to say what is undefined; `check_codes` refuses them.

        Errors: LayoutError for codes of another shape, and for what are no integers of 4 bits.
        """
        import numpy as np

        self.check_selector(selector)
        codes = np.asarray(codes)
        _check_integers(codes, "codes", (ROWS, self.groups))
        if codes.size and not (codes.min() >= 0 and codes.max() < 1 << CODE_BITS):
            raise LayoutError(
                "metadata", f"codes have {CODE_BITS} bits, got {int(codes.min())} to {int(codes.max())}"
            )
        lane, code = self._places
        words = np.zeros((*codes.shape[:-2], 32), np.uint32)
        for number in range(32 // CODE_BITS):  # the codes of one number are in different lanes
            here = code == number
            words[..., lane[here] + selector * self.lanes] |= codes[..., here].astype(np.uint32) << (
                CODE_BITS * number
            )
        return words

    def valid_codes(self, ordered: bool = True) -> tuple[int, ...]:
        """The codes with a meaning: kept units rising; not ``ordered``, any two different units.

        >>> [format(c, "04b") for c in Sparsity(8, 2, 2).valid_codes()]
        ['0100', '1110']
        """
        if self.group == 2:
            return (0b0100, 0b1110)
        pairs = [(a, b) for a in range(_UNITS) for b in range(_UNITS) if a < b or (a != b and not ordered)]
        return tuple(sorted([a | b << 2 for a, b in pairs]))

    def check_codes(self, codes: Any, ordered: bool = True) -> None:
        """Refuse codes without a meaning: they would make the product undefined.

        Errors: LayoutError naming row, group, columns and the code.
        """
        import numpy as np

        codes = np.asarray(codes)
        _check_integers(codes, "codes", (ROWS, self.groups))
        wrong = ~np.isin(codes, self.valid_codes(ordered))
        if wrong.any():
            *_, row, group = (int(x) for x in np.argwhere(wrong)[0])
            code = int(codes[tuple(np.argwhere(wrong)[0])])
            rule = "must be two different units" + ", the lower one first" * ordered
            if self.group == 2:
                rule = "must be 0b0100 (first element) or 0b1110 (second)"
            raise LayoutError(
                "metadata",
                f"row {row}, group {group} (columns {group * self.group} to {(group + 1) * self.group - 1}): code "
                f"{code:#06b} {rule}",
            )

    def columns_of(self, codes: Any) -> Any:
        """The column of A of every kept element: integers ``[..., 16, k / 2]``."""
        import numpy as np

        first, second = codes & 3, codes >> 2
        if self.group == 2:
            within = (first // 2)[..., None]
        else:
            unit = self.group // _UNITS  # elements of a unit
            units = np.stack([first, second], axis=-1)
            within = (units[..., None] * unit + np.arange(unit)).reshape(*codes.shape, -1)
        start = self.group * np.arange(self.groups)[:, None]
        return (within.astype(np.int64) + start).reshape(*codes.shape[:-1], self.k // 2)


def _check_integers(array: Any, what: str, wanted: tuple[int, ...]) -> None:
    """Refuse arrays that are no integers, or whose last extents are others than wanted."""
    if array.dtype.kind not in "iu":
        raise LayoutError("metadata", f"{what} are integers, got {array.dtype}")
    if array.shape[-len(wanted) :] != wanted:
        raise LayoutError("metadata", f"{what} have shape {array.shape}, wanted {wanted} at its end")
