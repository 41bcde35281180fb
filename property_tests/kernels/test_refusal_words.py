"""Refusals name the caller's operands and the fields of `Config`, and their remedies hold.

Beside them what newcomers had found refused and what works now.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lowering import (
    DispatchError,
    Tile,
    Window,
    copy,
    fill,
    lower,
    predicate,
    register_dispatch,
    temporary_variants,
)
from lowering.backends.assemble import AssemblerError
from lowering.kernels import Config, GemmKernel, gemm
from lowering.kernels.gemm.built import Built
from lowering.kernels.gemm.config import Feed
from lowering.kernels.gemm.config_check import check_config
from lowering.kernels.gemm.cut import check_cut
from lowering.kernels.gemm.problem import OUTPUTS
from lowering.kernels.gemm.shapes import Shaped, extents
from lowering.target import target
from tilelayout import LayoutError, S, TileLayout, laneid

A, B = np.ones((32, 64), np.float16), np.ones((64, 40), np.float16)
C = np.full((32, 40), 3, np.float16)
TMA = Config((64, 64, 64), (2, 2), 3, "tma")
FEEDS: tuple[Feed, ...] = ("tma", "cp_async", "registers")


def kernel(dtype: Any = "float16", target: str = "sm_90a", **more: Any) -> GemmKernel:
    return gemm(dtype, target=target, **more)


def refused(call: Callable[[], Any], *words: str, without: tuple[str, ...] = ()) -> None:
    with pytest.raises(LayoutError) as error:
        call()
    said = " ".join(str(error.value).split())
    assert not [w for w in words if w not in said], said
    assert not [w for w in without if w in said], said


# --- what a kernel is asked to be -------------------------------------------------------------------


@pytest.mark.parametrize("given_", ["yes", "", 1, 0, None, [True], np.True_], ids=repr)
def test_batched_is_a_bool(given_: Any) -> None:
    refused(lambda: kernel(batched=given_), f"batched={given_!r}", "True or False")


@pytest.mark.parametrize("order", ["row", "column"])
@pytest.mark.parametrize("types", [("float16", "bfloat16"), ("int8", "float16"), ("float64", "int8")])
def test_types_are_named_in_the_callers_order(types: tuple[str, str], order: str) -> None:
    refused(lambda: kernel(types, D=order), f"{types[0]} x {types[1]}", without=("int4",))


@pytest.mark.parametrize("where", ["sm_75", "sm_80", "sm_89", "sm_90a", "sm_120"])
def test_the_types_of_a_remedy_are_taken(where: str) -> None:
    with pytest.raises(LayoutError) as error:
        kernel("int8", accumulator="float64", target=where)
    remedy = str(error.value).partition(f"{where} has ")[2].rstrip(")")
    assert remedy
    for each in remedy.split(", "):
        factors, sums = each.split(" + ")
        a, b = factors.split(" x ")
        assert kernel((a, b), accumulator=sums, target=where).problem.accumulator == sums


def test_float64_needs_what_its_oldest_instruction_needs() -> None:
    refused(lambda: kernel("float64", target="sm_75"), "needs sm_80 or newer", without=("sm_90",))
    assert kernel("float64", target="sm_80")


OUT = [("sm_75", "bfloat16", "sm_80"), ("sm_75", "tfloat32", "sm_80"), ("sm_80", "float8_e4m3fn", "sm_89"),
       ("sm_80", "float8_e5m2", "sm_89")]  # fmt: skip


@pytest.mark.parametrize(("where", "out", "needed"), OUT)
@pytest.mark.parametrize("dtype", ["float16", "int8"])
def test_a_type_that_a_target_does_not_convert_to(dtype: str, where: str, out: str, needed: str) -> None:
    """Refused when the kernel is made; what the remedy offers is what such kernels are built with."""
    with pytest.raises(LayoutError) as error:
        kernel(dtype, out=out, target=where)
    said = str(error.value)
    assert f"out={out!r}" in said
    assert f"needs {needed} or newer, the target is {where}" in said
    a, b = (x.astype(OUTPUTS_OF[dtype]) for x in (A[:, :32], B[:32]))
    for other in said.partition("one of ")[2].rstrip(")").split(", "):
        found = kernel(dtype, out=other, target=where).simulate(a, b)
        assert (found.astype(float) == 32).all()


OUTPUTS_OF = {"float16": np.float16, "int8": np.int8}


@pytest.mark.slow
@pytest.mark.parametrize("dtype", OUTPUTS)
def test_every_type_that_is_accepted_is_built(dtype: str) -> None:
    """Over all targets and results: a kernel that is made has a program."""
    for where in ("sm_75", "sm_80", "sm_90a"):
        for out in (*OUTPUTS, "float32", "int32"):
            try:
                made = kernel(dtype, out=out, target=where)
            except LayoutError:
                continue
            assert made.program.body, (dtype, out, where)


# --- what a call is given -----------------------------------------------------------------------------

NO_NUMBERS = [
    np.full((32, 64), "1"),
    np.full((32, 64), b"1"),
    np.full((32, 64), None),
    np.ones((32, 64), complex),
]


@pytest.mark.parametrize("array", NO_NUMBERS, ids=lambda x: str(x.dtype))
@pytest.mark.parametrize("rows", [32, 0])
def test_arrays_of_no_numbers_are_refused_also_where_they_are_empty(array: Any, rows: int) -> None:
    refused(lambda: kernel().simulate(array[:rows], B), f"A has dtype {array.dtype}", "holds float16")
    refused(lambda: kernel(D="column").simulate(A, array.T[:, :rows]), f"B has dtype {array.dtype}")


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_empty_arrays_of_numbers_are_as_good_as_others(dtype: Any) -> None:
    assert kernel().simulate(np.zeros((0, 64), dtype), B).shape == (0, 40)
    assert (kernel().simulate(np.zeros((32, 0), dtype), B[:0]) == 0).all()


@pytest.mark.parametrize("name", ["alpha", "beta"])
@pytest.mark.parametrize("value", [1e39, -1e39, 3.5e38, 1e308, 10**60])
def test_numbers_beyond_float32(name: str, value: float) -> None:
    refused(
        lambda: kernel(C="row").simulate(A, B, C=C, **{name: value}),
        f"{name} = {float(value):g} is beyond float32", "3.402823e+38",
    )  # fmt: skip


def test_numbers_that_float32_or_float64_holds() -> None:
    largest = float(np.finfo(np.float32).max)
    wide = kernel("float64").simulate(A.astype(float), B.astype(float), alpha=1e300)
    assert (wide == 64e300).all()
    for alpha in (largest, -largest, math.inf, 1e-60):
        found = kernel(out="float32").simulate(A * 0 + 2.0**-8, B * 0 + 2.0**-8, alpha=alpha)
        assert (found == np.float32(2.0**-10) * np.float32(alpha)).all()
    assert np.isnan(kernel().simulate(A, B, alpha=math.nan)).all()


def batches(a: int, b: int, d: int, c: int | None = None) -> dict[str, Shaped]:
    def of(n: int, rows: int, columns: int) -> Shaped:
        return Shaped((n, rows, columns), (rows * columns, columns, 1))

    out = {"A": of(a, 32, 64), "B": of(b, 64, 40), "D": of(d, 32, 40)}
    return out if c is None else {**out, "C": of(c, 32, 40)}


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ((1, 1, 1, 2), "C has 2 batches, 1 is needed"),
        ((2, 1, 2, 3), "C has 3 batches, 2 or 1 are needed"),
        ((2, 1, 1), "D has 1 batches, 2 are needed"),
        ((3, 3, 2, 3), "D has 2 batches, 3 are needed"),
        ((2, 3, 3), "A has 2 batches, 3 or 1 are needed"),
    ],
)
@pytest.mark.parametrize("order", ["row", "column"])
def test_the_array_of_other_batches_is_named(counts: tuple[int, ...], words: str, order: str) -> None:
    made = kernel(batched=True, C=order, A=order, B=order, D=order)
    shaped = batches(*counts) if order == "row" else {n: turned(x) for n, x in batches(*counts).items()}
    refused(lambda: made.for_call(made.internal(shaped), 1.0, "C" in shaped, 4), words)


def turned(x: Shaped) -> Shaped:
    """Column-major, of the same shape."""
    n, rows, columns = x.shape
    return Shaped((n, rows, columns), (rows * columns, 1, rows))


def test_all_may_share_both_factors() -> None:
    p = kernel(batched=True, C="row").problem
    assert extents(p, batches(1, 1, 4, 4)).batches == 4
    assert extents(p, batches(1, 1, 4, 1)).batches == 4
    assert extents(p, batches(1, 4, 4, 1)).batches == 4


# --- column-major results: the kernel's operands are the caller's others ------------------------------------


@pytest.mark.parametrize("order", ["row", "column"])
@pytest.mark.parametrize("name", "AB")
def test_the_callers_operand_is_named(name: str, order: str) -> None:
    """Of an alignment, a stride, an extent: whichever way the problem is carried out."""
    wrong = {"A": Shaped((32, 64), (65, 1)), "B": Shaped((64, 40), (41, 1))}[name]
    right = {"A": Shaped((32, 64), (64, 1)), "B": Shaped((64, 40), (40, 1))}
    d = Shaped((32, 40), (40, 1) if order == "row" else (1, 32))
    other = "BA"["AB".index(name)]

    def call(x: Shaped, **how: Any) -> Callable[[], Any]:
        made = kernel(D=order, **how)
        return lambda: made.for_call(made.internal({**right, "D": d, name: x}), 1.0, False, 4)

    for feed in ("tma", "cp_async"):
        cut = replace(TMA, feed=feed)
        refused(call(wrong, config=cut), f"{name} is aligned to 2 bytes", without=(f"{other} is",))
    turned_ = Shaped(wrong.shape, (1, 64))
    refused(
        call(turned_), f"{name} is row-major in this kernel", f"ask for {name}='column'", str(wrong.shape)
    )
    refused(call(Shaped(wrong.shape, (-64, 1))), f"{name} has a negative stride -64")


def test_shapes_are_told_as_the_caller_has_them() -> None:
    for order in ("row", "column"):
        refused(
            lambda order=order: kernel(D=order).simulate(A, B[:60]),
            "B is (60, 40), (64, 40) is needed",
            "A (32, 64)",
        )
        made = kernel(D=order, bias="row")
        refused(lambda made=made: made.simulate(A, B, bias=C[:, 0]), "bias is (32,), (40,) is needed")
        assert (made.simulate(A, B, bias=C[0]) == 67).all()


def test_lines_of_a_result_that_overlap() -> None:
    for order, strides, word in (("row", (39, 1), "rows of 40"), ("column", (1, 31), "columns of 32")):
        made = kernel(D=order)
        given_ = {
            "A": Shaped((32, 64), (64, 1)),
            "B": Shaped((64, 40), (40, 1)),
            "D": Shaped((32, 40), strides),
        }
        refused(
            lambda m=made, g=given_: m.for_call(m.internal(g), 1.0, False, 4), f"D's {word} elements overlap"
        )


# --- no factor is read --------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["row", "column"])
@pytest.mark.parametrize("feed", FEEDS)
@pytest.mark.parametrize("splits", [1, 2])
def test_alpha_0_with_a_configuration_reads_no_factor(feed: Feed, order: str, splits: int) -> None:
    """NaN do not come through, as BLAS has it; a call of another alpha is cut as asked for."""
    cut = Config((64, 64, 64), (2, 2), 3 if feed != "registers" else 2, feed, splits=splits)
    made = kernel(config=cut, C="row", D=order, bias="row")
    none = np.full_like(A, np.nan), np.full_like(B, np.nan)
    found = made.simulate(*none, C=C, bias=C[0], alpha=0.0, beta=2.0)
    assert (found == 9).all()
    assert (made.simulate(A, B, C=C, bias=C[0], alpha=0.5, beta=-1.0) == 32).all()
    assert (made.simulate(A[:, :0], B[:0], C=C, bias=C[0]) == 6).all()
    assert {b.config.feed for _, b in made._built.items()} == {feed, "registers"}
    assert made.config == cut


# --- ways to cut ---------------------------------------------------------------------------------------


@given(
    st.sampled_from(["float16", "bfloat16", "tfloat32", "int8", "float64"]),
    st.tuples(st.integers(1, 140), st.integers(1, 140), st.integers(1, 140)),
    st.tuples(st.integers(1, 4), st.integers(1, 4)),
    st.sampled_from([1, 2]),
    st.sampled_from(["row", "column"]),
    st.sampled_from(["row", "column"]),
    st.booleans(),
)
def test_the_remedy_of_a_tile_holds(
    dtype: str, tile: tuple[int, int, int], warps: tuple[int, int], fragments: int, a: str, b: str, turn: bool
) -> None:
    """Whatever is changed as the message says, that extent is not refused again; and what passes is built."""
    cut = Config(tile, warps, 2, "registers", fragments=fragments)
    made = kernel(dtype, A=a, B=b, D="column" if turn else "row", target="sm_80")

    def said(c: Config) -> str:
        try:
            check_cut(made.problem, c, made.target, made.transposed)
        except LayoutError as error:
            return str(error)
        return ""

    for _ in range(3):
        message = said(cut)
        if not message:
            break
        if "registers of each thread" in message:
            return  # of a tile that is none too small
        field = int(message[len("gemm: tile[")])
        assert f"tile[{field}] = {cut.tile[field]}" in message
        remedies = message.partition("(remedy: ")[2].rstrip(")")
        for remedy in remedies.split(" or "):
            better = changed(cut, remedy)
            assert f"tile[{field}]" not in said(better), (message, remedy)
        cut = changed(cut, remedies.split(" or ")[0])
    assert not said(cut) or "registers of each thread" in said(cut)


def changed(c: Config, remedy: str) -> Config:
    name, _, value = remedy.partition("=")
    if name == "fragments":
        return replace(c, fragments=int(value))
    field, index = name.rstrip("]").split("[")
    sizes = [int(value) if i == int(index) else n for i, n in enumerate(getattr(c, field))]
    return replace(c, **{field: tuple(sizes)})


@contextmanager
def suppress_of_registers() -> Iterator[None]:
    """Of errors those that say that a thread has not so many registers."""
    try:
        yield
    except (DispatchError, LayoutError) as error:
        if "registers a thread" not in str(error):
            raise


@given(
    st.sampled_from(["float16", "tfloat32", "int8"]),
    st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9)),
    st.tuples(st.integers(1, 2), st.integers(1, 2)),
    st.sampled_from([1, 2]),
    st.sampled_from(["row", "column"]),
)
def test_a_tile_that_is_refused_has_no_stages_and_one_that_is_not_has(
    dtype: str, units: tuple[int, int, int], warps: tuple[int, int], fragments: int, b: str
) -> None:
    """The rules are those that the program's parts have."""
    from lowering.kernels.gemm.stages import build_stages

    tile = (16 * units[0], 8 * units[1], 16 * units[2])
    assume(tile[0] * tile[1] <= 96 * 96 * warps[0] * warps[1])
    cut = Config(tile, warps, 2, "registers", fragments=fragments)
    made = kernel(dtype, B=b, target="sm_80")
    try:
        check_cut(made.problem, cut, made.target)
    except LayoutError:
        with pytest.raises((LayoutError, DispatchError)):
            build_stages(made.problem, cut, made.target)
        return
    with suppress_of_registers():
        assert build_stages(made.problem, cut, made.target).steps * 8 <= tile[2]


@pytest.mark.parametrize("feed", FEEDS)
@pytest.mark.parametrize("resident", [8, 16, 32])
def test_too_many_ctas_of_a_multiprocessor(feed: Feed, resident: int) -> None:
    cut = Config((128, 64, 64), (2, 2), 2, feed, resident=resident)
    refused(lambda: kernel(config=cut).simulate(A, B), f"resident = {resident}", without=("setmaxnreg",))


@pytest.mark.parametrize("feed", FEEDS)
def test_the_remedy_for_too_many_ctas_holds(feed: Feed) -> None:
    """And what is refused for its sums could not have been assembled without local memory."""
    problem, where = kernel().problem, target("sm_90a")
    for resident in range(2, 33):
        cut = Config((64, 64, 64), (2, 2), 2, feed, resident=resident)
        try:
            check_config(problem, cut, None, where)
        except LayoutError as error:
            fewer = int(str(error).partition("remedy: resident=")[2].rstrip(")").split(",")[0])
            assert fewer < resident
            with suppress_of_registers():  # threads may do for more CTAs than registers do
                check_cut(problem, replace(cut, resident=fewer), where)


@pytest.mark.slow
@pytest.mark.parametrize("feed", FEEDS)
def test_what_is_refused_for_its_registers_needs_local_memory(
    feed: Feed,
) -> None:
    size, resident = (64, 16) if feed == "registers" else (128, 4)
    made = kernel(config=Config((size, size, 64), (2, 2), 2, feed, resident=resident))
    with pytest.raises(LayoutError, match=f"resident = {resident}: .* registers a thread, and the sums"):
        made.cubin  # noqa: B018
    with pytest.raises(AssemblerError, match="local memory"):
        Built(made.problem, made.config, made.target).cubin  # type: ignore[arg-type]  # noqa: B018


# --- explain ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["row", "column"])
@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ((1 << 40, 64, 64), "M = 1099511627776 is beyond 1073741823"),
        ((64, 1 << 31, 64), "N = 2147483648 is beyond 1073741823"),
        ((64, 64, 1 << 30), "K = 1073741824 is beyond 1073741823"),
        ((64, 64, (1 << 29) + 8), "the leading dimension of A = 536870920 is beyond 536870911"),
    ],
)
def test_explain_refuses_what_a_launch_does(sizes: tuple[int, int, int], words: str, order: str) -> None:
    made = kernel(D=order)
    refused(lambda: made.explain(*sizes), words)
    m, n, k = sizes
    shaped = {"A": Shaped((m, k), (k, 1)), "B": Shaped((k, n), (n, 1)),
              "D": Shaped((m, n), (n, 1) if order == "row" else (1, m))}  # fmt: skip
    refused(lambda: made.for_call(made.internal(shaped), 1.0, False, 132), words)


def test_more_tiles_than_are_counted() -> None:
    made = kernel(config=Config((16, 16, 32), (1, 1), 2, "registers"))
    refused(lambda: made.explain(1 << 28, 1 << 28, 16), "tiles", "is beyond")


def test_explain_lists_variants_in_the_order_in_which_they_are_tried() -> None:
    from lowering import registered

    tried = [v.name for v in sorted(registered("copy"), key=lambda v: (-v.priority, v.name))]
    for feed in FEEDS:
        text = kernel(config=replace(TMA, feed=feed, stages=2)).explain()
        pieces = [p for p in text.split("\n\n") if ": copy." in p.splitlines()[0]]
        assert len(pieces) >= 4
        for piece in pieces:
            reasons = [
                line.removeprefix("  not ") for line in piece.splitlines() if line.startswith("  not ")
            ]
            names = [name for reason in reasons for name in reason.partition(":")[0].split(", ")]
            assert names == [n for n in tried if n in names], piece


def test_a_window_names_the_variants_in_their_order() -> None:
    shared = Tile("s", (64, 64), "float16", TileLayout(S[64, 64]), "shared")
    with pytest.raises(DispatchError) as error:
        lower(copy(shared, Window.matrix("A", "float16", (64, 64))), target="sm_80", scope="cta", launch=128,
              dispatch="copy.vector")  # fmt: skip
    said = " ".join(str(error.value).split())
    assert "copy.predicated and copy.bulk_tensor and copy.cp_async take those" in said


# --- lowered calls -----------------------------------------------------------------------------------------

ROWS = TileLayout(S[(2, 8, 4, 2) : (2, 4 @ laneid, 1 @ laneid, 1)])  # type: ignore[operator]


def test_an_operand_is_given_by_the_name_of_its_tile() -> None:
    d = Tile("D", (16, 8), "float32", ROWS)
    filled = lower(fill(d, 3.0), target="sm_80", scope="warp")
    before = np.zeros((16, 8), np.float32)
    assert (filled.run(D=before) == 3).all()
    assert (filled.run(dst=before) == 3).all()
    assert (filled.run() == 3).all()
    refused(lambda: filled.run(E=before), "there is no operand E", "dst (tile D)")
    refused(lambda: filled.run(D=before, dst=before), "dst is given twice")


def test_a_role_goes_before_the_name_of_a_tile() -> None:
    """Of two operands of one name neither is meant."""
    held, other = (Tile("held", (16, 8), "float32", ROWS) for _ in range(2))
    memory = Tile("src", (16, 8), "float32", TileLayout(S[16, 8]), "shared")
    numbers = np.arange(128, dtype=np.float32).reshape(16, 8)
    load = lower(copy(held, memory), target="sm_80", scope="warp")
    assert (load.run(src=numbers) == numbers).all()
    store = lower(copy(memory, held), target="sm_80", scope="warp")  # tile "src" is dst here
    assert (store.run(src=numbers) == numbers).all()
    assert (store.run(held=numbers) == numbers).all()
    refused(lambda: store.run(held=numbers, src=numbers), "src is given twice")
    assert other == held


@pytest.mark.parametrize("where", ["function", "predicate"])
def test_an_exception_of_a_variant_is_the_cause_of_what_is_raised(where: str) -> None:
    """It is a reason in the table, and its traceback is not lost."""
    mine = ZeroDivisionError("mine")

    def broken(*_: Any) -> Any:
        raise mine

    d = Tile("D", (16, 8), "float32", ROWS)
    with temporary_variants():
        when = [predicate("asks", broken)] if where == "predicate" else []
        register_dispatch("fill", "cuda", variant="fill.mine", priority=99, when=when)(broken)
        with pytest.raises(DispatchError, match="unexpected ZeroDivisionError") as error:
            lower(fill(d, 3.0), target="sm_80", scope="warp", dispatch="fill.mine")
        assert error.value.__cause__ is mine
        found = lower(fill(d, 3.0), target="sm_80", scope="warp")
    assert found.variant == "fill.registers"
    assert "unexpected ZeroDivisionError" in str(found.declined)
