"""Whoever follows what refusals of a configuration say, field by field, comes to one that is accepted, and is built."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowering.kernels import Config, GemmKernel, gemm
from lowering.kernels.gemm.built import Built
from lowering.kernels.gemm.choose import configs as choices
from lowering.kernels.gemm.config_check import check_config
from lowering.kernels.gemm.occupancy import occupancy
from lowering.kernels.gemm.stages import choose_record
from lowering.kernels.gemm.takes import shared_bytes
from tilelayout import LayoutError, S, TileLayout

MOST = 3
"""Refusals that are followed, beside one for each extent of the tile."""
FEEDS_OF = {
    "sm_75": ("registers",),
    "sm_80": ("cp_async", "registers"),
    "sm_86": ("cp_async", "registers"),
    "sm_90a": ("tma", "cp_async", "registers"),
    "sm_120": ("tma", "cp_async", "registers"),
}
ORDERS = ("row", "column")
SHAPE = (64, 64, 64)
PLACED = (
    TileLayout(S[(64, 64) : (72, 1)]),
    TileLayout(S[(64, 64) : (1, 65)]),
    TileLayout(S[(16, 4, 8, 8) : (32, 8, 512, 1)]),
)


@st.composite
def kernels(draw: st.DrawFn) -> GemmKernel:
    """Of any type, order and target; factors may be placed by layouts."""
    where = draw(st.sampled_from(list(FEEDS_OF)))
    old = where == "sm_75"
    types = ("float16", "int8") if old else ("float16", "int8", "tfloat32", "float64", "bfloat16")
    lying: dict[str, Any] = {x: draw(st.sampled_from(ORDERS)) for x in "ABD"}
    placed = draw(st.sampled_from(["", "", "A", "B"]))
    if placed:
        lying |= {placed: draw(st.sampled_from(PLACED)), "shape": SHAPE}
    return gemm(draw(st.sampled_from(types)), target=where, **lying)


@st.composite
def configs(draw: st.DrawFn, made: GemmKernel) -> Config:
    """Valid of itself, for a feed that the target has: few warps for large tiles, tiles of little depth, many CTAs."""

    def of(*values: Any) -> Any:
        return draw(st.sampled_from(values))

    tile = (
        of(16, 32, 48, 64, 96, 128, 192, 256, 384),
        of(8, 16, 24, 32, 64, 96, 128, 192, 256),
        of(4, 8, 12, 16, 32, 64, 96, 128, 256),
    )
    warps = (of(1, 1, 2, 3, 4), of(1, 1, 2, 4))
    return Config(
        tile, warps, of(2, 3, 4, 6, 8), of(*FEEDS_OF[made.target.name]), splits=of(1, 1, 2),
        resident=of(1, 1, 1, 2, 4, 6, 32), slots=of(0, 0, 1, 2), fragments=of(1, 2), sender=of("bulk", "threads"),
    )  # fmt: skip


def refusal(made: GemmKernel, config: Config) -> str:
    try:
        check_config(made.problem, config, None, made.target, made.transposed)
    except LayoutError as error:
        return str(error)
    return ""


def changed(config: Config, remedy: str) -> Config | None:
    """The configuration with one remedy's fields; None for the kernel's own choice."""
    if remedy == "leave config= out":
        return None
    for change in remedy.split(" and "):
        found = re.fullmatch(r"(\w+)(?:\[(\d)\])?=(.*)", change)
        assert found is not None, remedy
        name, at, text = found.groups()
        value: Any = text[1:-1] if text[0] == "'" else tuple(map(int, re.findall(r"\d+", text)))
        if text[0] not in "'(":
            (value,) = value
        if at is not None:
            sizes = getattr(config, name)
            value = (*sizes[: int(at)], value, *sizes[int(at) + 1 :])
        config = replace(config, **{name: value})
    return config


def remedies(said: str) -> list[str]:
    """Of a refusal: those that change a field, or leave the choice to the kernel."""
    text = said.partition("(remedy: ")[2].removesuffix(")").partition(";")[0]
    alike = re.sub(r"feed='(\w+)' or '(\w+)'", r"feed='\1' or feed='\2'", text)
    return [x for x in re.split(r" or |, or |, (?=[a-z])", alike) if x != "pad its leading dimension"]


def rule(said: str) -> str:
    """What is said of whatever numbers."""
    return re.sub(r"^gemm: \S*\d+x\d+x\S*|\d+", "", said.partition(" (remedy")[0])


@given(st.data())
def test_remedies_lead_to_what_is_accepted(data: st.DataObject) -> None:
    made = data.draw(kernels())
    config: Config | None = data.draw(configs(made))
    followed: list[str] = []
    while config is not None:
        said = refusal(made, config)
        if not said:
            break
        followed.append(said)
        offered = remedies(said)
        assert offered, said
        for other in offered[1:]:
            instead = changed(config, other)
            assert instead is None or rule(refusal(made, instead)) != rule(said), (said, other)
        config = changed(config, offered[0])
    extents = [x for x in followed if x.startswith("gemm: tile[")]
    assert len({x[: len("gemm: tile[0]")] for x in extents}) == len(extents), followed
    assert len(followed) - len(extents) <= MOST, followed


@pytest.mark.parametrize("where", ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120"])
@pytest.mark.parametrize("kind", ["float16", "int8", "tfloat32", "float64", "float8_e4m3fn"])
def test_what_the_kernel_chooses_is_never_refused(kind: str, where: str) -> None:
    """Nothing is counted twice: all that fits by the tables of tiles does so here."""
    for a, b in product(ORDERS, ORDERS):
        try:
            made = gemm(kind, A=a, B=b, target=where)
        except LayoutError as error:
            assert f"{where} has" in str(error)  # noqa: PT017  the target multiplies no such types
            return
        for alignment in (16, 4, 1):
            lying = {m.name: max(alignment, m.bytes) for m in made.problem.matrices}
            problem = made.problem.aligned(**lying)
            for config in choices(problem, made.target):
                check_config(problem, config, None, made.target)


@pytest.mark.slow
@given(st.data())
def test_what_is_accepted_is_built(data: st.DataObject) -> None:
    """With the shared memory that was counted, of which a multiprocessor has enough."""
    made = data.draw(kernels())
    config: Config | None = data.draw(configs(made))
    while config is not None and (said := refusal(made, config)):
        config = changed(config, remedies(said)[0])
    if config is None:
        return
    built = Built(made.problem, config, made.target)
    used = built.shared_memory.bytes
    assert used == shared_bytes(made.problem, config, choose_record(made.problem, made.target))
    assert occupancy(made.target, built.threads, 0, used).ctas >= config.resident


NAMED: list[tuple[str, str, Config, str]] = [
    ("float16", "sm_80", Config((128, 32, 128), (1, 1), 2, "registers", fragments=1),
     "feed='registers' holds the next stage of 128 x 32 x 128 in 320 registers of each thread of 1 warps, beside sums "
     "in 128; there are 255 (remedy: tile[2]=32 or warps[0]=2)"),
    ("float16", "sm_90a", Config((128, 128, 256), (2, 2), 2, "tma"),
     "takes 262176 bytes of shared memory, a CTA has 232448 on sm_90a (remedy: tile[2]=192 or tile[1]=64)"),
    ("float16", "sm_75", Config((128, 128, 128), (4, 4), 6, "registers"),
     "128x128x128_w4x4_s6_registers_u1_g16 takes 131072 bytes of shared memory, a CTA has 65536 on sm_75 (remedy: "
     "tile[2]=64)"),
    ("float16", "sm_80", Config((64, 64, 64), (2, 2), 8, "cp_async", resident=2),
     "resident = 2: 2 CTAs of 256 threads take 131200 bytes of shared memory each; a multiprocessor of sm_80 has "
     "167936 (remedy: resident=1 or stages=5)"),
    ("float16", "sm_90", Config((384, 24, 128), (1, 3), 2, "registers", resident=32),
     "in 272 registers of each thread of 3 warps, beside sums in 96; there are 255 (remedy: resident=1 and tile[2]=64"),
    ("float16", "sm_90", Config((64, 64, 4), (2, 2), 2, "tma"),
     "tile[2] = 4 are 8 bytes of A, along which the copy engine takes 16 at least (remedy: tile[2]=32)"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "where", "config", "words"), NAMED, ids=lambda x: str(x)[:40])
def test_words_that_newcomers_missed(kind: str, where: str, config: Config, words: str) -> None:
    lying = {"B": "column"} if "24x128" in str(config) else {}
    with pytest.raises(LayoutError) as error:
        gemm(kind, target=where, config=config, **lying).ptx  # noqa: B018
    said = " ".join(str(error.value).split())
    assert words in said, said


def test_rows_that_the_copy_engine_permutes_together() -> None:
    """A stage of 12 rows begins within a pattern of 8: its elements would be taken for others."""
    a, b = np.arange(16.0 * 24).reshape(16, 24), np.arange(24.0 * 16).reshape(24, 16)
    config = Config((16, 16, 12), (1, 1), 3, "tma", fragments=1)
    with pytest.raises(LayoutError) as error:
        gemm("float64", A="column", target="sm_120", config=config).simulate(a, b)
    assert "tile[2] = 12 is no multiple of 8, the rows of A that the copy engine permutes" in str(error.value)
    better = changed(config, remedies(str(error.value))[0])
    assert (gemm("float64", A="column", target="sm_120", config=better).simulate(a, b) == a @ b).all()
