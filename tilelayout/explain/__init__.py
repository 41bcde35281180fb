"""Derivations: an operation on a layout, written step by step with its values, as at the blackboard.

The steps are put together from what the real functions return on the way, and have to lead to what the operation
itself returns.  Nothing here may calculate a layout that the algebra could give.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .derivation import Derivation


class Explained:
    """What explains itself, as a method of `TileLayout` and `SwizzledLayout`."""

    __slots__ = ()

    def explain(self, operation: str, /, *arguments: Any, **options: Any) -> Derivation:
        """The derivation of ``self.<operation>(*arguments, **options)``, a value that prints step by step.

        Explained are apply, owners, canonicalize, group, slice, tile, tile_to, permute_dims, permute_by_groups, pack,
        unpack, compose, complement, inverse; of a swizzled layout all but the last two.
        Post-condition: the last line shows ``derivation.result``, what the method returns; where the method refuses,
        ``derivation.error``, the `LayoutError` that it raises, is shown in its place.
        Errors: LayoutError for an operation that isn't explained, naming the nearest.

        >>> TileLayout(S[(2, 8, 4, 2) : (2, 4 @ laneid, 1 @ laneid, 1)]).explain("apply", 9, 5, shape=(16, 8))
        S[(2, 8, 4, 2) : (2, 4 @ laneid, 1 @ laneid, 1)]  .apply(9, 5, shape=(16, 8))
        1. the flat index, row-major in (16, 8)
             9 * 8 + 5 = 77
        2. one digit per iter, c_k = flat // weight % extent
             c_0 = 77 // 64 % 2 = 1
             c_1 = 77 // 8 % 8 = 1
             c_2 = 77 // 2 % 4 = 2
             c_3 = 77 // 1 % 2 = 1
        3. digits times strides, axis by axis
             m = 1*2 + 1*1 = 3
             laneid = 1*4 + 2*1 = 6
        4. the owners
             no replica: this is the only place that holds the element
        => {m: 3, laneid: 6}
        >>> TileLayout(S[(2, 3, 4) : (12, 4, 1)]).explain("canonicalize")
        S[(2, 3, 4):(12, 4, 1)]  .canonicalize()
        1. neighbors merge where the outer stride is inner extent times inner stride
             (2:12)(3:4): 12 = 3 * 4, so they merge into 6:4
             (6:4)(4:1): 4 = 4 * 1, so they merge into 24:1
        => TileLayout(S[24:1])
        >>> TileLayout(S[8, 64]).swizzle(3, 3, 3).explain("apply", 137)
        Swizzle(3, 3, 3) o S[(8, 64):(64, 1)]  .apply(137)
        1. the flat index is 137, of 512 elements
        2. one digit per iter, c_k = flat // weight % extent
             c_0 = 137 // 64 % 8 = 2
             c_1 = 137 // 1 % 64 = 9
        3. digits times strides, axis by axis
             m = 2*64 + 9*1 = 137
        4. Swizzle(3, 3, 3) of the coordinate on m
             x ^ ((x & 0b111000000) >> 3) with x = 137 = 0b10001001
             137 & 448 = 128, and 128 >> 3 = 16
             m = 137 ^ 16 = 153
        => {m: 153}
        """
        from .derivation import explain

        return explain(self, operation, arguments, options)
