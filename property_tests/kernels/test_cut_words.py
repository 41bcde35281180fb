"""Tiles and CTAs that cannot be are refused in the fields of `Config`, and the remedies hold."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lowering import (
    DispatchError,
)
from lowering.backends.assemble import AssemblerError
from lowering.kernels import Config, gemm
from lowering.kernels.gemm.built import Built
from lowering.kernels.gemm.config import Feed
from lowering.kernels.gemm.config_check import check_config
from lowering.kernels.gemm.cut import check_cut
from lowering.target import target
from tilelayout import LayoutError

from .refusing import FEEDS, A, B, kernel, refused


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
        field = int(message[len("gemm: tile[")])
        assert f"tile[{field}] = {cut.tile[field]}" in message
        remedies = message.partition("(remedy: ")[2].rstrip(")")
        for remedy in remedies.split(" or "):
            better = changed(cut, remedy)
            assert f"tile[{field}]" not in said(better), (message, remedy)
        cut = changed(cut, remedies.split(" or ")[0])
    assert not said(cut)


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
            fewer = int(str(error).partition("remedy: resident=")[2].rstrip(")").split(" or ")[0])
            assert fewer < resident
            check_config(
                problem, replace(cut, resident=fewer), None, where
            )  # whatever there is too little of


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


def test_a_configuration_that_spills_is_refused_by_name() -> None:
    """With what a user can change; the kernel's own choice needs no local memory."""
    config = Config((128, 192, 32), (2, 2), 3, "cp_async")
    with pytest.raises(
        LayoutError, match=rf"gemm: {config} takes \d+ bytes of local memory .*remedy: more warps"
    ):
        gemm("float16", target="sm_80", config=config).cubin  # noqa: B018
    assert gemm("float16", target="sm_80").cubin.local_bytes == 0
