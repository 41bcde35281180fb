"""Bad input gets a clear refusal: the right error, the word of the rule, nothing emitted."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import sympy

from lowering import DispatchError, GemmCall, Tile, gemm, lower
from lowering.fragments import A_FRAG, A_FRAG_K8, B_FRAG, B_FRAG_K8, D_FRAG, tiled
from lowering.isa import MMA_INSTRUCTIONS
from tilelayout import LayoutError, P, R, S, TileLayout, laneid, warpid

from .gemm_answers import check, refusal

A = Tile("A", (16, 16), "float16", A_FRAG)
B = Tile("B", (16, 8), "float16", B_FRAG)
D = Tile("D", (16, 8), "float32", D_FRAG)


def tile(
    name: str, layout: TileLayout, shape: tuple[int, ...] | None = None, dtype: str | None = None
) -> Tile:
    known = {"A": A, "B": B, "C": D, "D": D}[name]
    return Tile(name, shape or known.shape, dtype or known.dtype, layout)


def call_with(role: str, other: Tile) -> GemmCall:
    operands = {"D": D, "A": A, "B": B, "C": D, role: other}
    if role == "D":
        operands["C"] = other
    return gemm(**operands, beta=1.0)


def test_the_table_of_the_refusal() -> None:
    with pytest.raises(DispatchError) as error:
        lower(gemm(D, A, B, D, alpha=2), target="sm_80", scope="warp")
    assert str(error.value).splitlines() == [
        "no variant lowers gemm (D = 2 * A @ B + 0.0 * D) for sm_80 at warp scope:",
        "  variant      priority  reason",
        "  mma.m16n8k*        10  alpha is 2: mma.sync does not scale, only alpha = 1 is lowered",
        "  mma.m8n8k*          9  alpha is 2: mma.sync does not scale, only alpha = 1 is lowered",
    ]
    assert isinstance(error.value, RuntimeError)


# --- the six that TIRx accepts ------------------------------------------------------------------


def test_lanes_of_a_shifted_by_an_offset_that_d_does_not_have() -> None:
    for shift in (1, 4, 16, 32, -4):
        text = refusal(call_with("A", tile("A", TileLayout.from_iters(A_FRAG.shard, (), {"laneid": shift}))))
        assert f"lane offset on laneid differs: D is at 0, A at {shift}" in text


def test_a_lane_offset_on_every_operand_leaves_the_warp() -> None:
    moved = [
        Tile(t.name, t.shape, t.dtype, TileLayout.from_iters(t.layout.shard, (), {"laneid": 4}))
        for t in (D, A, B)
    ]
    assert "lane offset 4 on laneid shifts every operand past the 32 lanes" in refusal(gemm(*moved, moved[0]))


@pytest.mark.parametrize("offset", [1, 3, 5])
@pytest.mark.parametrize("role", "AB")
def test_a_register_offset_that_splits_a_word(role: str, offset: int) -> None:
    layout = TileLayout.from_iters({"A": A_FRAG, "B": B_FRAG}[role].shard, (), {"m": offset})
    text = refusal(call_with(role, tile(role, layout)))
    assert f"{role}: register offset {offset} splits a 32-bit register of 2 elements" in text


@pytest.mark.parametrize("stride", [3, 5, 7, 9])
def test_an_odd_rm_stride(stride: int) -> None:
    a = tile("A", TileLayout(S[(2, 8, 2, 4, 2) : (stride, 4 @ laneid, 4, 1 @ laneid, 1)]))
    assert f"rM stride {stride} splits a 32-bit register" in refusal(call_with("A", a))
    k8 = Tile("A", (16, 8), "float16", TileLayout(S[(2, 8, 4, 2) : (stride, 4 @ laneid, 1 @ laneid, 1)]))
    assert f"rM stride {stride} splits" in refusal(gemm(D, k8, Tile("B", (8, 8), "float16", B_FRAG_K8), D))


def test_an_odd_khi_or_tile_stride() -> None:
    for role, layout in (
        ("A", S[(2, 8, 2, 4, 2) : (2, 4 @ laneid, 5, 1 @ laneid, 1)]),
        ("B", S[(2, 4, 2, 8) : (3, 1 @ laneid, 1, 4 @ laneid)]),
    ):
        assert "kHi stride" in refusal(call_with(role, tile(role, TileLayout(layout))))
    d = Tile("D", (32, 8), "float32", tiled(MMA_INSTRUCTIONS[0], "D", (2, 1)))
    a = Tile(
        "A", (32, 16), "float16", TileLayout(S[(2, 2, 8, 2, 4, 2) : (9, 2, 4 @ laneid, 4, 1 @ laneid, 1)])
    )
    assert "Mo stride 9 splits a 32-bit register" in refusal(gemm(d, a, B, d))


def test_rm_and_khi_strides_that_collide() -> None:
    for rM, kHi in ((2, 2), (4, 4), (4, -4), (0, 2)):
        low = 4 if kHi < 0 else 0
        layout = TileLayout(S[(2, 8, 2, 4, 2) : (rM, 4 @ laneid, kHi, 1 @ laneid, 1)] + low)
        text = refusal(call_with("A", tile("A", layout)))
        assert "A: register strides collide" in text, (rM, kHi, text)
        assert "share a register" in text


def test_accumulators_that_collide() -> None:
    for stride in (0, 1, -1):
        layout = TileLayout(S[(2, 8, 4, 2) : (stride, 4 @ laneid, 1 @ laneid, 1)] + 1)
        for role in "DC":
            text = refusal(call_with(role, tile(role, layout)))
            assert f"{role}: register strides collide" in text


@pytest.mark.parametrize("role", "DAB")
def test_warpid_where_laneid_is_meant(role: str) -> None:
    layout = {"D": D_FRAG, "A": A_FRAG, "B": B_FRAG}[role]
    shard = [(e, s, "warpid" if a == "laneid" else a) for e, s, a in layout.shard]
    assert f"{role}: iter" in refusal(call_with(role, tile(role, TileLayout.from_iters(shard))))
    assert "is on axis warpid" in refusal(call_with(role, tile(role, TileLayout.from_iters(shard))))


def test_d_on_another_warp_than_a_and_b() -> None:
    d = tile("D", TileLayout.from_iters(D_FRAG.shard, (), {"warpid": 1}))
    assert "warp offset on warpid differs: D is at 1, A at 0" in refusal(call_with("D", d))


# --- one wrong stride ---------------------------------------------------------------------------

WRONG = {
    "D rM on lanes": ("D", S[(2, 8, 4, 2) : (2 @ laneid, 4 @ laneid, 1 @ laneid, 1)], "D.M"),
    "D lanes of M": ("D", S[(2, 8, 4, 2) : (2, 2 @ laneid, 1 @ laneid, 1)], "must have lane stride 4"),
    "D lanes of N": ("D", S[(2, 8, 4, 2) : (2, 4 @ laneid, 2 @ laneid, 1)], "must have lane stride 1"),
    "D rN": ("D", S[(2, 8, 4, 2) : (1, 4 @ laneid, 1 @ laneid, 2)], "must have register stride 1"),
    "A lanes of M": ("A", S[(2, 8, 2, 4, 2) : (2, 1 @ laneid, 4, 8 @ laneid, 1)], "must have lane stride 4"),
    "A lanes of K": ("A", S[(2, 8, 2, 4, 2) : (2, 4 @ laneid, 4, 2 @ laneid, 1)], "must have lane stride 1"),
    "A k_pack": ("A", S[(2, 8, 2, 4, 2) : (2, 4 @ laneid, 8, 1 @ laneid, 4)], "must have register stride 1"),
    "B lanes of N": ("B", S[(2, 4, 2, 8) : (2, 1 @ laneid, 1, 1 @ laneid)], "B.N"),
    "B lanes of K": ("B", S[(2, 4, 2, 8) : (2, 8 @ laneid, 1, 4 @ laneid)], "must have lane stride 1"),
    "B k_pack": ("B", S[(2, 4, 2, 8) : (1, 1 @ laneid, 2, 4 @ laneid)], "B.K"),
    "B row by row": ("B", S[(16, 8) : (8, 1)], "axis m"),
    "A in plain memory": ("A", S[16, 16], "A."),
    "A's k_pack on P": ("A", S[(2, 8, 2, 4, 2) : (2, 4 @ laneid, 4, 1 @ laneid, 1 @ P)], "is on axis P"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_fragment_with_one_wrong_stride(name: str) -> None:
    role, notation, words = WRONG[name]
    assert words in refusal(call_with(role, tile(role, TileLayout(notation))))


def test_a_layout_that_does_not_tile() -> None:
    a = Tile(
        "A", (48, 16), "float16", TileLayout(S[(2, 3, 8, 2, 4, 2) : (24, 8, 4 @ laneid, 4, 1 @ laneid, 1)])
    )
    text = refusal(gemm(Tile("D", (48, 8), "float32", tiled(MMA_INSTRUCTIONS[0], "D", (3, 1))), a, B, D))
    assert "M differs" in text  # C is 16 x 8
    odd = Tile("A", (16, 16), "float16", TileLayout(S[(256,) : (1,)]))
    assert "A.M" in refusal(gemm(D, odd, B, D))
    turned = Tile("A", (12, 16), "float16", TileLayout(S[(32, 6) : (1 @ laneid, 1)]))
    assert "M differs" in refusal(gemm(D, turned, B, D))


def test_a_layout_that_cannot_be_grouped_to_its_dimensions() -> None:
    uneven = TileLayout(
        S[(12, 32, 4) : (1, 1 @ laneid, 12)]
    )  # 1536 elements; 64 x 24 cuts 12 x 32 at 64 / 12
    a = Tile("A", (64, 24), "float16", uneven)
    b = Tile("B", (24, 8), "float16", tiled(MMA_INSTRUCTIONS[2], "B", (3, 1)))
    d = Tile("D", (64, 8), "float32", tiled(MMA_INSTRUCTIONS[0], "D", (4, 1)))
    text = refusal(gemm(d, a, b, d))
    assert "A (A): layout S[(12, 32, 4)" in text
    assert "cannot be read as 64 x 24" in text


# --- scalars ------------------------------------------------------------------------------------

X = sympy.Symbol("x")


@pytest.mark.parametrize(
    "one",
    [1, 1.0, np.float16(1), np.int8(1), np.float32(1), Fraction(2, 2), Decimal("1.0"), sympy.Integer(1),
     sympy.Float(1), sympy.Rational(3, 3), X / X, (X + 1) ** 2 - X**2 - 2 * X,
     (1 + sympy.sqrt(2)) * (sympy.sqrt(2) - 1), np.array(1.0)],
    ids=str,
)  # fmt: skip
def test_scalars_that_fold(one: object) -> None:
    assert (
        lower(gemm(D, A, B, D, alpha=one, beta=one), target="sm_80", scope="warp").program.inputs[2].role
        == "C"
    )
    assert (
        len(lower(gemm(D, A, B, D, alpha=one, beta=one - one), target="sm_80", scope="warp").program.inputs)
        == 2
    )


@pytest.mark.parametrize(
    "value",
    [2, 2.0, -1, 0, 0.5, 1 + 2**-52, Fraction(1, 2), Fraction(10**20 + 1, 10**20), sympy.Rational(1, 3), sympy.pi,
     10**400, float("inf"), float("nan"), np.float32(0.999), sympy.oo],
    ids=lambda x: str(x)[:20],
)  # fmt: skip
def test_alpha_that_is_not_one(value: object) -> None:
    assert "alpha is " in (text := refusal(gemm(D, A, B, D, alpha=value)))
    assert "only alpha = 1 is lowered" in text


@pytest.mark.parametrize(
    "value",
    [0.5, 2, -1, 2**-1074, Fraction(1, 10**30), Fraction(10**20 + 1, 10**20), float("nan"), 10**400],
    ids=lambda x: str(x)[:20],
)
def test_beta_that_is_neither_zero_nor_one(value: object) -> None:
    assert "beta is " in (text := refusal(gemm(D, A, B, D, beta=value)))
    assert "only beta = 0 and beta = 1 are lowered" in text


@pytest.mark.parametrize(
    "value",
    [X, X + 1, sympy.sin(X), "1", "1.0", b"1", None, 1 + 0j, [1], np.array([1.0, 1.0]), object],
    ids=repr,
)
@pytest.mark.parametrize("name", ["alpha", "beta"])
def test_scalars_that_do_not_fold(name: str, value: object) -> None:
    assert f"{name} is " in (text := refusal(gemm(D, A, B, D, **{name: value})))
    assert "does not fold to a constant" in text


def test_minus_zero_is_zero() -> None:
    assert "c_local" not in str(check(gemm(D, A, B, D, beta=-0.0)))


# --- sizes --------------------------------------------------------------------------------------


def test_sizes_that_do_not_match() -> None:
    k8 = Tile("B", (8, 8), "float16", B_FRAG_K8)
    assert "K differs: A has K = 16, B has K = 8 (transpose_a=False, transpose_b=False)" in refusal(
        gemm(D, A, k8, D)
    )
    tall = Tile("D", (32, 8), "float32", tiled(MMA_INSTRUCTIONS[0], "D", (2, 1)))
    assert "M differs: A has M = 16, D has M = 32" in refusal(gemm(tall, A, B, tall))
    assert "M differs: A has M = 16, C has M = 32" in refusal(gemm(D, A, B, Tile("C", *astuple(tall)[1:])))
    wide = Tile("D", (16, 16), "float32", tiled(MMA_INSTRUCTIONS[0], "D", (1, 2)))
    assert "N differs: B has N = 8, D has N = 16" in refusal(gemm(wide, A, B, wide))
    assert "K differs: A has K = 16, B has K = 8 (transpose_a=False, transpose_b=True)" in refusal(
        gemm(D, A, B, D, transpose_b=True)
    )


def astuple(t: Tile) -> tuple:
    return t.name, t.shape, t.dtype, t.layout, t.scope


@pytest.mark.parametrize(
    ("m", "n", "k", "words"),
    [(8, 8, 16, "M = 8 is not a multiple of 16"), (16, 4, 16, "N = 4 is not a multiple of 8"),
     (16, 8, 4, "K = 4 is not a multiple of 8"), (24, 12, 20, "M = 24 is not a multiple of 16")],
)  # fmt: skip
def test_sizes_that_are_no_multiples(m: int, n: int, k: int, words: str) -> None:
    d = Tile("D", (m, n), "float32", TileLayout(S[m, n]))
    call = gemm(
        d,
        Tile("A", (m, k), "float16", TileLayout(S[m, k])),
        Tile("B", (k, n), "float16", TileLayout(S[k, n])),
        d,
    )
    assert words in refusal(call)


def test_a_matrix_has_two_dimensions() -> None:
    flat = Tile("A", (256,), "float16", A_FRAG)
    cube = Tile("A", (2, 8, 16), "float16", A_FRAG)
    for bad, extents in ((flat, "(256,)"), (cube, "(2, 8, 16)"), (A[0], "(1, 16)")):
        assert f"must have two dimensions that are not 1, it has extents {extents}" in refusal(
            gemm(D, bad, B, D)
        )


def test_symbolic_extents() -> None:
    n, k = sympy.symbols("n k", integer=True, positive=True)
    a = Tile("A", (16, 16 * n), "float16", TileLayout(S[16, 16 * n]))
    assert "A (A) has a symbolic extent 16*n; extents must fold to numbers" in refusal(gemm(D, a, B, D))
    wide = Tile("A", (16, 32), "float16", tiled(MMA_INSTRUCTIONS[0], "A", (1, 2)))
    assert "symbolic extent -k + n" in refusal(gemm(D, wide[:, k:n], B, D))
    assert "A (A[0:16, k:k + 16])" in refusal(gemm(D, wide[:, k : k + 16], B, D))
    stack = Tile(
        "A", (16 * n, 16), "float16", TileLayout(S[(n, 2, 8, 2, 4, 2) : (8, 2, 4 @ laneid, 4, 1 @ laneid, 1)])
    )
    assert "symbolic" in refusal(gemm(D, stack[0:16], B, D))
    plain = S[(2, 8, 2, 4, 2) : (2, 4 @ laneid, 4, 1 @ laneid, 1)]
    for layout in (S[(2, 8, 2, 4, 2) : (n, 4 @ laneid, 4, 1 @ laneid, 1)], plain + 2 * n):
        assert "symbolic value" in refusal(gemm(D, Tile("A", (16, 16), "float16", TileLayout(layout)), B, D))


# --- types --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("signature", "known"),
    [
        # Pairs of factors with instructions: their own; others: all that there are.
        (("float16", "float16", "float16", "bfloat16"), ["float16"]),
        (("bfloat16", "bfloat16", "bfloat16", "bfloat16"), ["bfloat16"]),
        (("float16", "bfloat16", "float32", "float32"), ["float16", "bfloat16", "tfloat32"]),
        (("bfloat16", "float16", "float32", "float32"), ["float16", "bfloat16", "tfloat32"]),
        (("uint16", "uint16", "float32", "float32"), ["float16", "bfloat16", "float8_e5m2"]),
        (("float32", "float32", "float32", "float32"), ["tfloat32"]),
    ],
)
def test_types_that_the_table_lacks(signature: tuple[str, str, str, str], known: list[str]) -> None:
    a, b, c, d = signature
    call = gemm(
        Tile("D", (16, 8), d, D_FRAG),
        Tile("A", (16, 16), a, A_FRAG),
        Tile("B", (16, 8), b, B_FRAG),
        Tile("C", (16, 8), c, D_FRAG),
    )
    text = refusal(call)
    assert f"dtype signature {d} = {a} @ {b} + {c} has no instruction" in text
    for name in known:
        assert f"float32 = {name} @ {name} + float32" in text
    assert (len(known) > 1) == ("int32 = int8 @ int8 + int32" in text)
    assert ("declare float32 factors as tfloat32" in text) == (a == "float32")


def test_products_of_bfloat16_have_no_sixteen_bit_sums() -> None:
    sixteen = Tile("D", (16, 8), "float16", D_FRAG)
    operands = [Tile(n, s, "bfloat16", x) for n, s, x in (("A", (16, 16), A_FRAG), ("B", (16, 8), B_FRAG))]
    text = refusal(gemm(sixteen, *operands, sixteen))
    assert "on any architecture: products of bfloat16 are added up in float32 alone" in text


# --- scopes of tiles -------------------------------------------------------------------------


@pytest.mark.parametrize("scope", ["shared", "global", "tensor"])
@pytest.mark.parametrize("role", "DABC")
def test_an_operand_outside_registers(role: str, scope: str) -> None:
    known = {"A": A, "B": B}.get(role, D)
    other = Tile(role, known.shape, known.dtype, known.layout, scope)
    text = refusal(call_with(role, other))
    assert f"{role} ({role}) is in {scope} scope; every operand must be in local scope" in text


# --- storage ------------------------------------------------------------------------------------


def test_two_tiles_of_one_name() -> None:
    other = Tile("D", (16, 8), "float32", TileLayout.from_iters(D_FRAG.shard, (), {"m": 4}))
    assert "two different tiles share the name 'D'" in refusal(gemm(D, A, B, other, beta=1.0))
    assert "two different tiles share the name 'A'" in refusal(
        gemm(D, A, Tile("A", (16, 8), "float16", B_FRAG), D)
    )


# --- the call as a whole ----------------------------------------------------------------------


@pytest.mark.parametrize("call", [None, "gemm", D, lambda: None, (D, A, B, D)])
def test_what_is_no_call(call: object) -> None:
    with pytest.raises(DispatchError, match="takes an unresolved call"):
        lower(call, target="sm_80", scope="warp")


def test_a_refusal_leaves_nothing_behind() -> None:
    before = lower(gemm(D, A, B, D), target="sm_80", scope="warp")
    refusal(gemm(D, A, B, D, alpha=2))
    after = lower(gemm(D, A, B, D), target="sm_80", scope="warp")
    assert str(before) == str(after)
    assert before.ptx == after.ptx


def test_the_layout_itself_is_refused_where_it_is_made() -> None:
    for make in (
        lambda: S[(2, 3) : (1,)],
        lambda: S[(0, 3) : (1, 1)],
        lambda: TileLayout.parse("S[(2, 8) : (2, 4 @ lanid)]"),
        lambda: TileLayout.parse("S[(2, 8) : (2, 4 @ laneid]"),
        lambda: A_FRAG.apply(16, 0, shape=(16, 16)),
        lambda: A_FRAG.apply(0, 0, 0, shape=(16, 16)),
        lambda: A_FRAG_K8.tile_to((16, 20), (16, 8)),
        lambda: Tile("A", (16, 16), "float16", A_FRAG)[0:17],
    ):
        with pytest.raises(LayoutError):
            make()


def test_a_replica_at_warp_scope() -> None:
    b = tile("B", TileLayout(S[(2, 4, 2, 8) : (2, 1 @ laneid, 1, 4 @ laneid)] + R[2 : 1 @ warpid]))
    text = refusal(gemm(D, A, b, D))
    assert "no_replica: B (B) has a replica" in text
