"""The measurement of where a kernel's clocks go: the text that notes them, and what is made of what it noted."""

from __future__ import annotations

import os
import re
from dataclasses import replace

import numpy as np
import pytest

from benchmarks import gemm_try
from benchmarks.gemm import called_with
from benchmarks.gemm_clocks import BEGUN, MARKS, MULTIPLIED, NAME, STORED, TILES, marked, summary
from lowering.backends.assemble import assemble
from lowering.kernels import Config, gemm
from lowering.target import target

CUTS = (
    "128x256x64_w2x4_s4_tma_u4_g16_o2",
    "160x256x64_w2x4_s4_tma_u4_g16_o1_f1",
    "128x256x64_w2x4_s4_cp_async_u4_g16_o1t",
    "64x64x64_w2x2_s8_cp_async_u1_g16",
)


@pytest.mark.parametrize("cut", CUTS)
def test_a_marked_kernel_is_the_kernel_and_three_marks(cut: str) -> None:
    config = Config.parse(cut)
    plain = gemm("float16", B="column", target="sm_90a", config=config).ptx
    text = marked(plain, config.multipliers, 132)
    added = f"{NAME}[{132 * config.multipliers * TILES * MARKS}]"
    assert text.count(NAME) == 1 + MARKS
    assert added in text
    places = [text.index(f"mad.lo.u32 i, i, {MARKS}, {which};") for which in (BEGUN, MULTIPLIED, STORED)]
    first, last = text.index("mma.sync", text.index("LOOP")), text.rindex("mma.sync")
    assert places[0] < first < last < places[1] < places[2]
    assert places[1] < text.rindex("ret;")
    rest = re.sub(
        r"\{ \.reg \.b64 clock.*?clock; \}\n|add\.u32 %noted, %noted, 1;\n", "", text, flags=re.DOTALL
    )
    rest = re.sub(rf"\.visible \.global [^\n]*{NAME}[^\n]*\n|[^\n]*%noted[^\n]*\n", "", rest)
    assert rest == plain
    assert assemble(text, target("sm_90a"), allow_spills=True).data


def test_a_kernel_without_roles_has_no_such_loops() -> None:
    config = Config((64, 64, 64), (2, 2), 2, "registers")
    with pytest.raises(ValueError, match="has two loops over tiles"):
        marked(gemm("float16", target="sm_90a", config=config).ptx, 4, 132)


def test_a_kernel_is_called_with_other_machine_code() -> None:
    """What a launch looks at is that of the edited text, whatever the call asks for; what was built stays as it was."""
    kernel = gemm("float16", target="sm_90a", config=Config.parse(CUTS[3]))
    built = kernel.best
    other = replace(built.cubin, data=b"other")
    called_with(kernel, built, other)
    assert kernel.built(None, scaled=True).kept.data == b"other"
    assert kernel.built().cubin is other
    assert kernel.built().kept.shell.name == built.program.name
    assert built.cubin is not other


def test_a_row_is_found_by_a_part_of_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gemm_try, "find_spec", lambda name: name)
    monkeypatch.setenv("TILELAYOUT_NO_CACHE", "0")
    parser = gemm_try.row_parser("gemm_try", None, "*")
    assert gemm_try.row_of(parser, "s8 81").name == "s8 8192"
    assert os.environ["TILELAYOUT_NO_CACHE"] == "1"
    with pytest.raises(SystemExit):
        gemm_try.row_of(parser, "no such row")


def test_what_clocks_say() -> None:
    """Two CTAs of four warps: three tiles and two, products of 1000 clocks, stores of 200, a warp 30 behind."""
    noted = np.zeros((2, 4, TILES, MARKS), np.int64)
    for cta, tiles in enumerate((3, 2)):
        for warp in range(4):
            for tile in range(tiles):
                begun = 10_000 * (cta + 1) + 1200 * tile
                done = begun + 1000 + 30 * (warp == 3)
                noted[cta, warp, tile] = begun, done, done + 200
    found = summary(noted, 900.0)
    assert found["clocks"] == 2 * 1200 + 1230
    assert [t["CTAs"] for t in found["tiles"]] == [2, 2, 1]
    for t in found["tiles"]:
        assert (t["products"], t["store"], t["apart"]) == (1000, 200, 30)
        assert t["slots"] == pytest.approx(0.9)
