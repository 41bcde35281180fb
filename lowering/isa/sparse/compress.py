"""Dense A to kept elements and codes, and back."""

from __future__ import annotations

from typing import Any

from tilelayout.errors import LayoutError

from .metadata import ROWS, Sparsity


def compress(A: Any, sparsity: Sparsity) -> tuple[Any, Any]:
    """The kept elements ``[16, k / 2]`` and the codes, uint8 ``[16, groups]``, of a matrix ``[16, k]``.

    Pre-condition: at most half of every group is other than zero, in whole pairs where units are pairs.  Where fewer
    are, the lowest free units are kept too.  A zero of either sign is a zero.

    Post-condition: ``decompress(*compress(A, s), s)`` equals A; the kept units of a group rise.

    >>> import numpy as np
    >>> A = np.zeros((16, 16), np.float16)
    >>> A[0, [1, 3, 8]] = 5, 7, 9
    >>> values, codes = compress(A, Sparsity(16, group=4, rows_of_word=2))
    >>> values[0].tolist(), [format(c, "04b") for c in codes[0]]
    ([5.0, 7.0, 0.0, 0.0, 9.0, 0.0, 0.0, 0.0], ['1101', '0100', '0100', '0100'])

    Errors: LayoutError for another shape; naming row and group for a group with too much in it.
    """
    import numpy as np

    _check_sparsity(sparsity, "compress")
    matrix = np.asarray(A)
    if matrix.shape != (ROWS, sparsity.k):
        raise LayoutError(
            "compress", f"A has shape {matrix.shape}, this sparsity is of ({ROWS}, {sparsity.k})"
        )
    choices = min(4, sparsity.group)  # what is kept or not: four units, or the two elements of a tf32 group
    units = matrix.reshape(ROWS, sparsity.groups, choices, -1)
    used = (units.astype(np.float64) != 0).any(-1)
    _check_used(used, sparsity)
    kept = np.sort(np.argsort(~used, axis=-1, kind="stable")[..., : choices // 2], axis=-1)
    values = np.take_along_axis(units, kept[..., None], axis=2).reshape(ROWS, sparsity.k // 2)
    low, high = (2 * kept[..., 0], 2 * kept[..., 0] + 1) if choices == 2 else (kept[..., 0], kept[..., 1])
    return values, (low | high << 2).astype(np.uint8)


def _check_sparsity(sparsity: Sparsity, operation: str) -> None:
    if not isinstance(sparsity, Sparsity):
        raise LayoutError(
            operation, f"a Sparsity is expected, got {sparsity!r}", "every record of mma.sp has one"
        )


def _check_used(used: Any, sparsity: Sparsity) -> None:
    import numpy as np

    most = used.shape[-1] // 2
    wrong = used.sum(-1) > most
    if wrong.any():
        row, group = (int(x) for x in np.argwhere(wrong)[0])
        found = np.flatnonzero(used[row, group]).tolist()
        what = {2: "elements", 4: "elements", 8: "pairs of columns"}[sparsity.group]
        raise LayoutError(
            "compress",
            f"row {row}, group {group} (columns {group * sparsity.group} to {(group + 1) * sparsity.group - 1}) has "
            f"{len(found)} {what} other than zero (numbers {', '.join(map(str, found))} of the group), "
            f"{most} of {used.shape[-1]} are allowed",
        )


def decompress(values: Any, codes: Any, sparsity: Sparsity, ordered: bool = True) -> Any:
    """The matrices ``[..., 16, k]`` whose kept elements and codes are given; all else is zero.

    Errors: LayoutError for shapes that do not belong together, and for a code without a meaning.
    """
    import numpy as np

    _check_sparsity(sparsity, "decompress")
    values, codes = np.asarray(values), np.asarray(codes)
    wanted = (ROWS, sparsity.k // 2), (ROWS, sparsity.groups)
    if (
        values.shape[-2:] != wanted[0]
        or codes.shape[-2:] != wanted[1]
        or values.shape[:-2] != codes.shape[:-2]
    ):
        raise LayoutError(
            "decompress",
            f"kept elements {values.shape} and codes {codes.shape}, wanted {wanted[0]} and {wanted[1]}",
        )
    sparsity.check_codes(codes, ordered)
    out = np.zeros((*values.shape[:-1], sparsity.k), values.dtype)
    np.put_along_axis(out, sparsity.columns_of(codes), values, axis=-1)
    return out
