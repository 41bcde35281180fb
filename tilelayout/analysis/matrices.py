"""Which lane points at which row: the ldmatrix and stmatrix accesses that fill or drain a register fragment."""

from __future__ import annotations

from typing import NamedTuple

from ..errors import LayoutError
from ..layout import TileLayout
from ..parts import product
from .access import MATRIX_ROW_BYTES, MATRIX_ROWS, Access, coordinate_of
from .holders import LANES, holders_of
from .memory import as_bits, as_extents, as_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Final, Literal

REGISTER_BITS: Final = 32


class MatrixAccesses(NamedTuple):
    """What `matrix_accesses` found.

    Attributes:
        accesses: one for each instruction, of 4, 2 or 1 matrices; together they serve the registers in order.
        transposed: whether they are the ``.trans`` form.
    """

    accesses: tuple[Access, ...]
    transposed: bool


def matrix_accesses(
    fragment: TileLayout,
    shape: Sequence[int],
    bits: int = 16,
    *,
    along: int = -1,
    kind: Literal["ldmatrix", "stmatrix"] = "ldmatrix",
    warp: int = 0,
) -> MatrixAccesses:
    """The matrix loads (or stores) that move a fragment, whose tile lies in shared memory contiguous along a dimension.

    Matrix r is register r of the fragment: lane 4i + j has elements e*j to e*j + e - 1 of row i, e = 32 / bits, and
    the address of row i is lane 8r + i's.  With ``.trans``, of 16-bit elements only, lane 4i + j has element i of
    rows 2j and 2j + 1.  Source: PTX ISA, "ldmatrix" and "stmatrix".

    Post-condition: executing the instructions on the tile leaves the fragment in the registers, exactly.

    Args:
        fragment: tile -> (laneid, warp, slot).
        shape: the tile's logical shape.
        bits: width of an element.
        along: the dimension whose neighbors are neighbors in shared memory (that rows of 16 bytes are aligned is asked
            by `bank_conflicts`).
        kind: load or store.
        warp: whose registers.

    >>> from tilelayout import S, TileLayout, laneid
    >>> B = TileLayout(S[(2, 4, 2, 8) : (2, 1 @ laneid, 1, 4 @ laneid)])  # (K, N) = (16, 8)
    >>> x2 = matrix_accesses(B, (16, 8))
    >>> x2.transposed, [x2.accesses[0].coordinates(lane)[0] for lane in (0, 1, 15)]
    (True, [(0, 0), (1, 0), (15, 0)])
    >>> matrix_accesses(B, (16, 8), along=0).transposed
    False

    Errors: LayoutError, saying which lane needs what, for a fragment that is no stack of such matrices, and for one
    that only a transposed load of narrower or wider elements would fill (scalar loads, or a transposed copy in shared
    memory, do).
    """
    what = "matrix_accesses"
    width = as_bits(bits, what)
    if not isinstance(fragment, TileLayout):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
        raise LayoutError(what, f"the fragment is a tile layout, got {type(fragment).__name__}")
    dims = as_extents(shape, what)
    if product(dims) != fragment.size():
        raise LayoutError(what, f"shape {dims} has {product(dims)} elements, the fragment {fragment.size()}")
    d = as_number(along, what, "along", -len(dims))
    if d >= len(dims):
        raise LayoutError(what, f"along {d} is no dimension of a shape of rank {len(dims)}")
    if width > REGISTER_BITS:
        raise LayoutError(what, f"an element of {width} bits is no part of a 32-bit register")
    words = _words(fragment, REGISTER_BITS // width, as_number(warp, what, "warp"))
    step = int(product(dims[d % len(dims) + 1 :]))
    line = 8 * MATRIX_ROW_BYTES // width
    rows = [_rows(word, step) for word in words]
    transposed = width == 16 and None in rows
    if transposed:
        rows = [_rows_transposed(word, step) for word in words]
    found: list[range] = []
    for r, starts in enumerate(rows):
        if starts is None:
            raise LayoutError(what, *_refusal(words[r], r, width, dims))
        for start in starts:
            if coordinate_of(start, dims)[d] + line > dims[d]:
                raise LayoutError(
                    what,
                    f"a row of {line} elements at {coordinate_of(start, dims)} leaves dimension {d} of {dims}",
                )
            found.append(range(start, start + line * step, step))
    accesses: list[Access] = []
    while found:
        count = next(n for n in (4, 2, 1) if n * MATRIX_ROWS <= len(found))
        accesses.append(Access(dims, found[: count * MATRIX_ROWS], kind))
        del found[: count * MATRIX_ROWS]
    return MatrixAccesses(tuple(accesses), transposed)


def _words(fragment: TileLayout, per_word: int, warp: int) -> list[list[tuple[int, ...]]]:
    """Register -> lane -> the elements in it, low bits first."""
    holders = holders_of(fragment, "matrix_accesses")
    words: list[list[tuple[int, ...]]] = []
    for first in range(0, holders.slots, per_word):
        word: list[tuple[int, ...]] = []
        for lane in range(LANES):
            places = [(LANES * warp + lane, first + i) for i in range(per_word)]
            if any(place not in holders.elements for place in places):
                raise LayoutError(
                    "matrix_accesses",
                    f"slots {first} to {first + per_word - 1} of lane {lane} of warp {warp} are not all in use, and "
                    "every lane gets whole registers",
                )
            word.append(tuple([holders.elements[place] for place in places]))
        words.append(word)
    return words


def _rows(word: list[tuple[int, ...]], step: int) -> list[int] | None:
    """The first elements of the rows (neighbors are `step` apart), or None where the register is no such matrix."""
    starts = [word[4 * i][0] for i in range(MATRIX_ROWS)]
    for lane, elements in enumerate(word):
        first = starts[lane // 4] + lane % 4 * len(elements) * step
        if elements != tuple([first + s * step for s in range(len(elements))]):
            return None
    return starts


def _rows_transposed(word: list[tuple[int, ...]], step: int) -> list[int] | None:
    starts = [word[j // 2][j % 2] for j in range(MATRIX_ROWS)]
    for lane, elements in enumerate(word):
        if elements != tuple([starts[2 * (lane % 4) + s] + lane // 4 * step for s in range(2)]):
            return None
    return starts


def _refusal(word: list[tuple[int, ...]], r: int, bits: int, dims: tuple[int, ...]) -> tuple[str, str]:
    needs = ", ".join(str(coordinate_of(flat, dims)) for flat in word[0])
    text = f"register {r} of lane 0 needs {needs}, and lanes 0 to 31 make no 8 rows of 16 contiguous bytes"
    if bits == 16:
        return f"{text}, nor their transpose", "plain loads, or a fragment of whole 8 x 8 matrices"
    return (
        f"{text}; a transposed load moves pairs of 16 bits, never single elements of {bits}",
        "plain loads, or a transposed copy in shared memory",
    )
