"""What a picture refuses, and how it says so."""

from __future__ import annotations

import pytest

from tilelayout import LayoutError, R, S, Swizzle, SwizzledLayout, TileLayout, laneid, warpid
from tilelayout.analysis import Access
from tilelayout.draw import bits, gemm, hardware, iters, logical, operation, shared, tiling

D = TileLayout(S[(2, 8, 4, 2) : (2, 4 @ laneid, 1 @ laneid, 1)])
TILE = TileLayout(S[8, 64])


@pytest.mark.parametrize(
    ("draw", "words"),
    [
        (lambda: logical("S[8]"), "logical: a layout is expected, got str"),
        (lambda: logical(D, (16, 9)), r"shape \(16, 9\) has 144 elements, layout .* has 128"),
        (lambda: logical(D, ()), "shape of one or more"),
        (lambda: logical(D, (16, 8), bits="16"), "logical: bits, the width of an element, .* got '16'"),
        (lambda: logical(D, (16, 8), bits=0), "logical: bits, .* at least 1, got 0"),
        (lambda: hardware(D, (16, 8), bits=-8), "hardware: bits, .* at least 1, got -8"),
        (lambda: gemm(D, D, D, (16, 8, 8), bits=(16, True, 32)), "gemm: bits, .* got True"),
        (lambda: operation(D, "canonicalize", bits=1.5), "before_after: bits, .* got 1.5"),
        (lambda: hardware(D, rows="laneid", columns="laneid"), "axis laneid is given twice"),
        (lambda: hardware(D, rows="laneid", at={"laneid": 3}), "axis laneid is given twice"),
        (lambda: hardware(D, rows="lanid"), "did you mean 'laneid'"),
        (lambda: shared(TILE, chunk=6), "cell of 6 bytes"),
        (lambda: shared(TILE, (8, 64), 12), "12 bits"),
        (lambda: shared(D, (16, 8)), "only m is an address"),
        (lambda: shared(TileLayout(S[8] + R[2:8])), "replica"),
        (lambda: shared(TileLayout(S[8:-1]), 8), "element .*bit -.*before address 0"),
        (
            lambda: shared(TILE, (8, 64), access=Access.column((32, 16))),
            r"the access is to a tile \(32, 16\)",
        ),
        (lambda: gemm(D, D, D, (16, 8)), r"shape is \(M, N, K\)"),
        (lambda: gemm(D, D, D, (16, 8, 4)), "gemm, operand B: shape"),
        (lambda: gemm(D, TileLayout(S[8, 8]), D, (16, 8, 8), at=(16, 0)), r"at \(16, 0\) is no element"),
        (lambda: tiling(D, (16, 8), (5, 8)), "dimension 0: a tile of 5 doesn't divide the extent 16"),
        (lambda: tiling(D, (16, 8), (8,)), "different ranks"),
        (lambda: operation(D, "permute"), "no operation 'permute', did you mean 'permute_"),
        (lambda: operation(D, "_parts"), "no operation '_parts'"),
        (lambda: operation(D, "pack", 3), "pack"),
        (lambda: bits(TileLayout(S[6:1])), r"dimension \d of .* is no power of two|no power of two"),
        (lambda: bits(TileLayout(S[(4, 4) : (3, 1)])), "1 on m carries into another|carries into another"),
        (lambda: bits(TileLayout(S[4:-1])), "is negative"),
        (lambda: bits(TileLayout(S[4:1] + 1)), "carries into another"),
        (lambda: iters(5), "a layout is expected"),
    ],
)
def test_refusals_name_what_is_wrong(draw, words: str) -> None:
    with pytest.raises(LayoutError, match=words):
        draw()


def test_what_is_not_linear_is_never_drawn_as_if_it_were() -> None:
    """A swizzle after a carrying layout is refused too; disjoint bits are taken in any order."""
    with pytest.raises(LayoutError, match="linear over F2"):
        bits(SwizzledLayout(S[(4, 4) : (3, 1)], Swizzle(1, 0, 1)))
    assert bits(TileLayout(S[(2, 2) : (1 @ warpid, 4 @ laneid)] + 8)).grid.size == (1 + 3 + 4, 3)
