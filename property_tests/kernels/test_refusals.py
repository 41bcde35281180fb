"""What is refused, and that the message says what, why, and what to do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sympy import Symbol

from lowering import sequence
from lowering.kernels import Config, GemmKernel, gemm
from lowering.kernels.gemm.shapes import Shaped, extents
from tilelayout import LayoutError, R, S, TileLayout, laneid

A, B, C = np.ones((8, 16), np.float16), np.ones((16, 24), np.float16), np.ones((8, 24), np.float16)
ROWS = TileLayout(S[8, 16])


def kernel(dtype: Any = "float16", target: str = "sm_80", **more: Any) -> GemmKernel:
    return gemm(dtype, target=target, **more)


def says(error: pytest.ExceptionInfo[Any], *words: str) -> None:
    said = " ".join(str(error.value).split())
    missing = [w for w in words if w not in said]
    assert not missing, f"{missing} in: {said}"


# --- what a kernel is asked to be ---------------------------------------------------------------


def of_two(x: float, y: float) -> float:
    return x


ASKED: list[tuple[dict[str, Any], tuple[str, ...]]] = [
    ({"A": "diagonal"}, ("A='diagonal'", "'row', 'column', or a TileLayout on memory")),
    ({"B": 3}, ("B=3", "'row', 'column'")),
    ({"C": "rows"}, ("C='rows'", "'row', 'column', or a TileLayout on memory, or None")),
    ({"D": TileLayout(S[8, 24]), "shape": (8, 24, 16)}, ("D is placed by a layout", "D='row' or D='column'")),
    ({"D": TileLayout(S[8, 24])}, ("D is placed by a layout (remedy: D='row' or D='column')",)),
    ({"D": "col"}, ("D='col' (remedy: D='row' or D='column')",)),
    ({"D": None}, ("D=None (remedy: D='row' or D='column')",)),
    ({"A": ROWS}, ("A is a layout, and its shape is not known", "pass shape=(M, N, K)")),
    ({"A": ROWS, "shape": (8, 24, 17)}, ("A is 8 x 17", "128 elements")),
    ({"A": ROWS, "shape": 8}, ("shape=8", "(M, N, K)")),
    ({"A": ROWS, "shape": (8, 16)}, ("shape=(8, 16)", "(M, N, K)")),
    ({"A": ROWS, "shape": ("a", "b", "c")}, ("shape=('a', 'b', 'c')", "(M, N, K), three positive integers")),
    ({"A": ROWS, "shape": (8.0, 24, 16)}, ("shape=(8.0, 24, 16)", "three positive integers")),
    ({"A": ROWS, "shape": (-8, 24, -16)}, ("shape=(-8, 24, -16)", "three positive integers")),
    (
        {"A": ROWS, "shape": (8, 24, 16), "batched": True},
        ("A is placed by a layout, which has no batches", "batched=False"),
    ),
    ({"C": ROWS, "batched": True}, ("C is placed by a layout, which has no batches", "batched=False")),
    (
        {"shape": (8, 24, 16)},
        ("shape=(8, 24, 16) without a layout", "leave it out: others come at each call"),
    ),
    ({"A": ROWS.swizzle(1, 3, 3), "shape": (8, 24, 16)}, ("A=SwizzledLayout", "a TileLayout on memory")),
    ({"bias": "both"}, ("bias='both'", "'row', 'column' or None")),
    ({"epilogue": "relu"}, ("epilogue='relu'", "a Python function of one number, or an instruction")),
    ({"epilogue": of_two}, ("it takes 2 parameters, 1 are given",)),
    ({"config": (32, 32, 32)}, ("config=(32, 32, 32)", "a Config")),
    ({"dtype": "float12"}, ("unknown element type 'float12'", "did you mean")),
    ({"dtype": "float32"}, ("float32 x float32", "tfloat32")),
    ({"dtype": "int4"}, ("int4 x int4", "factors are")),
    ({"dtype": ("int8", "int8", "int8")}, ("dtype=('int8', 'int8', 'int8')", "one type, or a pair")),
    (
        {"dtype": ("float16", "int8")},
        ("float16 x int8 + float32: there is no such instruction", "float16 x float16 + float32"),
    ),
    ({"dtype": ("float16", "float32")}, ("float16 x float32", "factors are")),
    ({"out": "int4"}, ("float32 to int4", "results are float32")),
    ({"dtype": "float64", "out": "float16"}, ("float64 to float16", "results are float64, float32")),
    (
        {"accumulator": "int32"},
        ("float16 x float16 + int32: there is no such instruction", "float16 x float16 + float16"),
    ),
    (
        {"dtype": "bfloat16", "accumulator": "float16"},
        ("bfloat16 x bfloat16 + float16: there is no such instruction",),
    ),
    (
        {"dtype": "bfloat16", "target": "sm_75"},
        ("needs sm_80 or newer, the target is sm_75", "sm_75 has float16 x float16"),
    ),
    ({"dtype": "float8_e4m3fn"}, ("needs sm_89 or newer, the target is sm_80",)),
    ({"dtype": "float64", "target": "sm_75"}, ("float64 x float64 + float64: needs sm_", "sm_75 has")),
]


@pytest.mark.parametrize(("asked", "words"), ASKED, ids=lambda x: str(x).split(" at 0x")[0][:60])
def test_a_kernel_that_there_is_not(asked: dict[str, Any], words: tuple[str, ...]) -> None:
    with pytest.raises(LayoutError) as error:
        kernel(**asked)
    says(error, *words)


def test_an_unknown_target_names_its_neighbors() -> None:
    with pytest.raises(ValueError, match="unknown target 'sm_81': nearest known are sm_80 and sm_86"):
        kernel(target="sm_81")


LAYOUTS: list[tuple[TileLayout, str, TileLayout]] = [
    (TileLayout(S[(8, 16) : (1 @ laneid, 1)]), "on laneid; global memory is on m alone (remedy: strides without "
     "an axis, as S[8, 16] has)", ROWS),
    (TileLayout(S[(8, 16) : (4 @ laneid, 1 @ laneid)]), "on laneid; global memory is on m alone", ROWS),
    (TileLayout(S[8, 16] + 3 @ laneid), "on laneid; global memory is on m alone", ROWS),
    (TileLayout(S[8, 16] + R[2:128]), "a replica; an element is read from one place (remedy: the layout without R",
     ROWS),
    (TileLayout(S[8, 16] + R[4 : 1 @ laneid]), "on laneid; global memory is on m alone", ROWS),
    (TileLayout(S[(8, 16) : (-16, 1)]), "backwards by a stride of -16 (remedy: copy it, and strides from 0)", ROWS),
    (TileLayout(S[(8, 16) : (-16, 1)] + 112), "goes backwards by a stride of -16", ROWS),
    (TileLayout(S[8, 16] + -4), "begins 4 elements before its pointer (remedy: an offset from 0)", ROWS),
    (TileLayout(S[(8, 16) : (1 << 60, 1)]), "strides of 1152921504606846977 elements are beyond 536870911", ROWS),
    (TileLayout(S[8, 16] + (1 << 70)), "offset of 1180591620717411303424 elements is beyond 68719476736", ROWS),
    (TileLayout(S[(8, 16) : (Symbol("n", integer=True), 1)]), "which has symbols (remedy: layout.subs(...))", ROWS),
    (TileLayout(S[8, 8]), "A is 8 x 16, its layout has 64 elements (remedy: a layout of 128 elements", ROWS),
]  # fmt: skip


@pytest.mark.parametrize(("layout", "words", "instead"), LAYOUTS, ids=lambda x: str(x)[:50])
@pytest.mark.parametrize("order", ["row", "column"])
def test_a_layout_that_is_none_in_memory(
    layout: TileLayout, words: str, instead: TileLayout, order: str
) -> None:
    """Refused when the kernel is made, in the caller's names; what the remedy says works."""
    with pytest.raises(LayoutError) as error:
        kernel(A=layout, shape=(8, 24, 16), D=order)
    says(error, "gemm: A is ", words)
    made = kernel(A=instead, shape=(8, 24, 16), D=order)
    assert (made.simulate(A, B) == 16).all()


def test_a_shape_beyond_what_a_kernel_calculates_with() -> None:
    with pytest.raises(LayoutError) as error:
        kernel(A=TileLayout(S[1 << 40, 4]), shape=(1 << 40, 4, 4))
    says(error, "gemm: M = 1099511627776 is beyond 1073741823", "divide the problem")


# --- what a call is given -----------------------------------------------------------------------

GIVEN: list[tuple[dict[str, Any], dict[str, Any], tuple[str, ...]]] = [
    ({}, {"B": np.ones((17, 24), np.float16)}, ("B is (17, 24), (16, 24) is needed", "A (8, 16)")),
    ({}, {"A": A[0]}, ("A has 1 dimensions (16,), a matrix has 2",)),
    ({}, {"A": None}, ("A is None",)),
    ({}, {"A": A[None], "B": B[None]}, ("A has 3 dimensions (1, 8, 16), a matrix has 2",)),
    ({"batched": True}, {}, ("A has 2 dimensions (8, 16), a batch of matrices has 3",)),
    (
        {"batched": True},
        {"A": np.stack([A, A]), "B": np.stack([B, B, B])},
        ("A has 2 batches and B 3", "or 1 of either"),
    ),
    ({"A": ROWS, "shape": (8, 24, 16)}, {"A": A[:4]}, ("A is (4, 16), its layout is for (8, 16)",)),
    ({}, {"A": A.astype(np.int8)}, ("A has dtype int8, tile A holds float16", "convert it")),
    ({}, {"A": A.astype(np.complex64)}, ("A has dtype complex64",)),
    (
        {"dtype": "int8"},
        {"A": np.full((8, 16), 300), "B": B.astype(np.int8)},
        ("A has 300, which is no int8",),
    ),
    ({"dtype": "int8"}, {"A": A, "B": B.astype(np.int8)}, ("A has dtype float16", "pass integers")),
    ({}, {"C": C}, ("C was given to a kernel without one", "make the kernel with C='row'")),
    ({}, {"beta": 2.0}, ("beta = 2.0 without C", "give C")),
    ({"C": "row"}, {"beta": 1.0}, ("beta = 1.0 without C", "give C")),
    ({"C": "row"}, {"C": C[:, 1:]}, ("C is (8, 23), (8, 24) is needed",)),
    ({"C": "row"}, {"C": C.astype(np.int32)}, ("C has dtype int32",)),
    ({"bias": "row"}, {}, ("the kernel takes a bias", "bias=, a vector of N elements of float16")),
    ({"bias": "column", "out": "float32"}, {}, ("takes a bias", "bias=, a vector of M elements of float32")),
    ({"bias": "row", "D": "column"}, {}, ("takes a bias", "a vector of N elements")),
    ({"bias": "column", "D": "column"}, {}, ("takes a bias", "a vector of M elements")),
    ({}, {"bias": C[0]}, ("the kernel takes none", "make the kernel with bias='row' or 'column'")),
    ({"bias": "row"}, {"bias": C[:, 0]}, ("bias is (8,), (24,) is needed",)),
    ({"bias": "column"}, {"bias": C[0]}, ("bias is (24,), (8,) is needed",)),
    ({"bias": "row"}, {"bias": C[:1]}, ("bias has 2 dimensions (1, 24), a vector has 1",)),
    ({}, {"alpha": None}, ("alpha=None", "a number")),
    ({}, {"alpha": "1"}, ("alpha='1'", "a number")),
    ({}, {"alpha": 1j}, ("alpha=1j", "a number")),
    ({}, {"alpha": 10**400}, ("alpha is beyond 1.8e308", "a number")),
    ({"C": "row"}, {"C": C, "beta": [1]}, ("beta=[1]", "a number")),
    ({"C": "row"}, {"C": C, "beta": 1j}, ("beta=1j", "a number")),
    ({"C": "row"}, {"C": C, "beta": "1"}, ("beta='1'", "a number")),
    ({"C": "row"}, {"C": C, "beta": "x"}, ("beta='x'", "a number")),
    ({"C": "row"}, {"C": C, "beta": 10**400}, ("beta is beyond 1.8e308", "a number")),
    ({}, {"beta": np.ones(2)}, ("beta=array", "a number")),
    ({"C": "row"}, {"C": 1.0}, ("C has 0 dimensions (), a matrix has 2",)),
    ({"C": "row"}, {"C": C[0]}, ("C has 1 dimensions (24,), a matrix has 2",)),
    ({"C": "row", "D": "column"}, {"C": 1.0}, ("C has 0 dimensions (), a matrix has 2",)),
    (
        {"C": "row", "batched": True},
        {"A": A[None], "B": B[None], "C": 1.0},
        ("C has 0 dimensions (), a batch of matrices has 3",),
    ),
    (
        {"C": "row", "batched": True},
        {"A": A[None], "B": B[None], "C": C},
        ("C has 2 dimensions (8, 24), a batch of matrices has 3",),
    ),
    (
        {"C": "row", "batched": True},
        {"A": A[None], "B": B[None], "C": C[None][:0]},
        ("C has 0 batches, 1 is needed",),
    ),
    ({"batched": True}, {"A": A[None][:0], "B": np.stack([B, B])}, ("A has 0 batches and B 2", "or 1")),
    ({"bias": "row"}, {"bias": 1.0}, ("bias has 0 dimensions (), a vector has 1",)),
    ({}, {"A": [[1], [1, 2]]}, ("A is no array of numpy", "inhomogeneous", "pass one")),
    ({"bias": "row"}, {"bias": [1, [1, 2]]}, ("bias is no array of numpy", "inhomogeneous")),
    ({}, {"config": "x"}, ("config='x'", "a Config, or leave it out")),
    ({}, {"config": (1, 2)}, ("config=(1, 2)", "a Config, or leave it out")),
    ({}, {"config": {}}, ("config={}", "a Config, or leave it out")),
    ({}, {"alignment": 3}, ("alignment=3", "1, 2, 4, 8 or 16")),
    ({}, {"alignment": 16.0}, ("alignment=16.0", "1, 2, 4, 8 or 16")),
    ({}, {"alignment": True}, ("alignment=True", "1, 2, 4, 8 or 16")),
    ({}, {"alignment": None}, ("alignment=None", "1, 2, 4, 8 or 16")),
    ({}, {"schedule": "a"}, ("schedule must be an integer", "'a'")),
    ({}, {"schedule": 1.5}, ("schedule must be an integer", "1.5")),
    ({}, {"schedule": None}, ("schedule must be an integer", "None")),
    ({}, {"numerics": "fast"}, ("unknown model 'fast'", "exact")),
]


@pytest.mark.parametrize(("asked", "given", "words"), GIVEN, ids=lambda x: str(x)[:50].replace("\n", " "))
def test_a_call_that_does_not_fit(
    asked: dict[str, Any], given: dict[str, Any], words: tuple[str, ...]
) -> None:
    arrays: dict[str, Any] = {"A": A, "B": B, **given}
    with pytest.raises(LayoutError) as error:
        kernel(**asked).simulate(arrays.pop("A"), arrays.pop("B"), **arrays)
    says(error, *words)


@pytest.mark.parametrize(("first", "second"), [(0, 1), (1, 0), (0, 0)])
def test_no_batches_are_an_empty_result(first: int, second: int) -> None:
    found = kernel(batched=True).simulate(np.stack([A])[:first], np.stack([B])[:second])
    assert found.shape == (0, 8, 24)


def test_a_sequence_is_of_lowered_calls() -> None:
    for parts in ([3], 3):
        with pytest.raises(LayoutError) as error:
            sequence(parts)  # type: ignore[arg-type]
        says(error, "part 0 is 3", "lowered calls, lower(...), and BARRIER")


@pytest.mark.parametrize("name", ["A", "B", "C"])
def test_a_column_major_operand_is_no_row_major_one(name: str) -> None:
    """As a launch sees it: the stride of the dimension that should be contiguous, and the remedy."""
    given = {"A": Shaped((8, 16), (16, 1)), "B": Shaped((16, 24), (24, 1)), "C": Shaped((8, 24), (24, 1))}
    given |= {"D": given["C"]}
    given[name] = replace(given[name], strides=(1, 40))
    with pytest.raises(LayoutError) as error:
        extents(kernel(C="row").problem, given)
    says(
        error,
        f"{name} is row-major in this kernel",
        "must have stride 1",
        f"ask for {name}='column', or copy it",
    )


def test_rows_of_the_result_may_not_overlap() -> None:
    given = {"A": Shaped((8, 16), (16, 1)), "B": Shaped((16, 24), (24, 1)), "D": Shaped((8, 24), (23, 1))}
    with pytest.raises(LayoutError) as error:
        extents(kernel().problem, given)
    says(error, "D's rows of 24 elements overlap")


# --- ways to cut --------------------------------------------------------------------------------

GOOD: dict[str, Any] = {"tile": (32, 32, 32), "warps": (1, 1), "stages": 2, "feed": "cp_async"}


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"feed": "ftp"}, ("feed = 'ftp'", "'tma', 'cp_async', 'registers'")),
        ({"stages": 1}, ("1 stages", "2 or more")),
        ({"stages": 10**7}, ("stages = 10000000", "at most 63")),
        ({"group": 1 << 31}, ("group = 2147483648", "at most 65536")),
        ({"resident": 100}, ("resident = 100", "at most 32")),
        ({"tile": (10**9, 32, 32)}, ("tile = (1000000000, 32, 32)", "at most 4096")),
        ({"warps": (8, 4)}, ("36 warps, 32 of which multiply", "32 at most")),
        ({"fragments": True}, ("True sets of fragments",)),
        ({"slots": True}, ("True slots",)),
        ({"slots": 10**6}, ("1000000 slots", "at most 63")),
        ({"stages": 2.5}, ("stages must be an integer", "2.5")),
        ({"stages": "2"}, ("stages must be an integer", "'2'")),
        ({"unroll": 3}, ("2 stages", "no multiple of unroll 3", "stages=3")),
        ({"unroll": 0}, ("unroll must be an integer of at least 1, got 0",)),
        ({"group": 0}, ("group must be an integer of at least 1, got 0",)),
        ({"resident": -1}, ("resident must be an integer of at least 1, got -1",)),
        ({"slots": -1}, ("-1 slots",)),
        ({"fragments": 3}, ("3 sets of fragments", "1 or 2")),
        ({"tile": (0, 32, 32)}, ("tile = (0, 32, 32)", "rows, columns and depth")),
        ({"tile": (32, 32)}, ("tile = (32, 32)", "rows, columns and depth")),
        ({"tile": 32}, ("tile = 32", "rows, columns and depth")),
        ({"warps": (1.5, 1)}, ("warps = (1.5, 1)", "rows and columns")),
        ({"warps": (1,)}, ("warps = (1,)", "rows and columns")),
    ],
    ids=lambda x: str(x)[:50],
)
def test_a_config_that_is_none(wrong: dict[str, Any], words: tuple[str, ...]) -> None:
    with pytest.raises(LayoutError) as error:
        Config(**{**GOOD, **wrong})
    says(error, "Config", *words)


UNFIT: list[tuple[dict[str, Any], dict[str, Any], type[Exception], tuple[str, ...]]] = [
    (
        {},
        {"feed": "tma"},
        LayoutError,
        ("feed='tma' is of sm_90 and later, the target is sm_80", "feed='cp_async'"),
    ),
    (
        {"target": "sm_75"},
        {},
        LayoutError,
        ("is of sm_80 and later, the target is sm_75", "feed='registers'"),
    ),
    (
        {"target": "sm_90a"},
        {"feed": "tma", "tile": (512, 32, 32), "warps": (32, 1)},
        LayoutError,
        ("36 warps", "32 at most"),
    ),
    (
        {},
        {"tile": (20, 32, 32)},
        LayoutError,
        ("tile[0] = 20 is no multiple of 16", "m16n8k16", "tile[0]=32"),
    ),
    ({}, {"tile": (32, 28, 32)}, LayoutError, ("tile[1] = 28 is no multiple of 8", "tile[1]=32")),
    ({}, {"tile": (32, 32, 40)}, LayoutError, ("tile[2] = 40 is no multiple of 32", "tile[2]=64")),
    (
        {},
        {"tile": (32, 32, 48)},
        LayoutError,
        ("tile[2] = 48 is no multiple of 32", "fragments = 2 sets", "tile[2]=64"),
    ),
    ({}, {"tile": (32, 24, 32)}, LayoutError, ("tile[1] = 24", "B's rows in shared memory", "tile[1]=32")),
    (
        {},
        {"tile": (128, 128, 64), "warps": (2, 2), "stages": 6},
        LayoutError,
        ("166912 on sm_80", "(remedy: stages=5 or tile[2]=32)"),
    ),
    (
        {},
        {"tile": (512, 256, 32), "warps": (2, 2)},
        LayoutError,
        ("take 1024 registers of each thread of 4 warps, 255 at most", "(remedy: tile[1]=32 or tile[0]=96)"),
    ),
]


@pytest.mark.parametrize(("asked", "cut", "kind", "words"), UNFIT, ids=lambda x: str(x)[:50])
def test_a_config_that_does_not_fit(
    asked: dict[str, Any], cut: dict[str, Any], kind: type[Exception], words: tuple[str, ...]
) -> None:
    with pytest.raises(kind) as error:
        kernel(**asked, config=Config(**{**GOOD, **cut})).simulate(A, B)
    says(error, *words)


ARRAYS: list[tuple[str, Callable[[GemmKernel], Any], tuple[str, ...]]] = [
    (
        "unaligned",
        lambda k: k.simulate(A, B, alignment=8),
        ("A is aligned to 8 bytes, the copy engine takes 16", "pad its leading dimension"),
    ),
    (
        "a row of 15",
        lambda k: k.simulate(np.ones((8, 15), np.float16), B[:15]),
        ("A is aligned to 2 bytes", "leave config= out"),
    ),
]


@pytest.mark.parametrize(("name", "call", "words"), ARRAYS, ids=lambda x: x if isinstance(x, str) else "")
def test_arrays_that_a_config_does_not_take(name: str, call: Any, words: tuple[str, ...]) -> None:
    with pytest.raises(LayoutError) as error:
        call(kernel(target="sm_90a", config=Config((32, 32, 32), (1, 1), 2, "tma")))
    says(error, *words)


@pytest.mark.parametrize(
    ("tile", "asked", "columns", "words"),
    [
        (
            (32, 16, 32),
            {},
            24,
            ("D (float16) are not collected in slots", "16 columns of a warp", "multiple of 32", "slots=0"),
        ),
        (
            (32, 32, 64),
            {"dtype": "int8", "out": "int8"},
            32,
            ("D (int8) are not collected in slots", "elements of 1 bytes", "slots=0"),
        ),
        ((32, 32, 32), {}, 20, ("whole units of 16 bytes", "rows of 20 elements of 2 bytes", "slots=0")),
    ],
)
def test_results_that_cannot_be_collected(
    tile: Any, asked: dict[str, Any], columns: int, words: tuple[str, ...]
) -> None:
    made = kernel(target="sm_90a", **asked, config=Config(tile, (1, 1), 2, "tma", slots=1))
    given = {
        "A": Shaped((8, 32), (32, 1)),
        "B": Shaped((32, columns), (32, 1)),
        "D": Shaped((8, columns), (32, 1)),
    }
    with pytest.raises(LayoutError) as error:
        made.for_call(given, 1.0, False, 4)
    says(error, *words)
