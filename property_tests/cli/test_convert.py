"""``convert``: notations that read back as the same layout, and plans that are the analysis's."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from property_tests import strategies as own
from property_tests.cli.shell import answer
from tilelayout import S, Swizzle, SwizzledLayout, TileLayout, XorMap, laneid
from tilelayout.analysis import conversion_plan
from tilelayout.cli.inputs import layout_of
from tilelayout.cli.notations import NOTATIONS, tvm_text

Layout = TileLayout | SwizzledLayout


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    layout = draw(own.layouts().filter(lambda x: len(x.shard) > 0))
    bits = draw(st.integers(0, 3))
    swizzle = Swizzle(
        bits, draw(st.integers(0, 4)), draw(st.sampled_from([1, -1])) * (bits + draw(st.integers(0, 2)))
    )
    return SwizzledLayout(layout, swizzle) if draw(st.booleans()) else layout


@pytest.mark.parametrize("notation", list(NOTATIONS))
@settings(max_examples=60)
@given(layout=layouts())
def test_every_notation_reads_back_as_the_same_layout(notation: str, layout: Layout) -> None:
    text = answer("convert", str(layout), "--to", notation).removesuffix("\n")
    assert "\n" not in text
    assert layout_of(text) == layout
    assert answer("convert", text) == f"{layout}\n"


@settings(max_examples=40)
@given(layout=layouts())
def test_the_canonical_form_is_canonicalizes(layout: Layout) -> None:
    assert answer("convert", str(layout), "--canonical") == f"{layout.canonicalize()}\n"


def test_a_product_of_swizzles_has_our_notation_alone() -> None:
    layout = SwizzledLayout(S[8, 8], XorMap((1, 3, 6)))
    assert layout_of(answer("convert", str(layout)).strip()) == layout


PRINTS = """
import json, sys
from tvm.tirx.layout import Iter, TileLayout
for shard, replica, offset in json.load(sys.stdin):
    layout = TileLayout.from_iters([Iter(*x) for x in shard], [Iter(*x) for x in replica], offset)
    print(json.dumps(str(layout)))
"""


def test_tvms_form_is_what_tvm_prints(tvm_python: Path) -> None:
    """Layouts with whatever TVM takes: its integers have 64 bits, and it sorts offsets by axis."""
    D = TileLayout(S[(2, 8, 4, 2) : (2, 4 @ laneid, 1 @ laneid, 1)])
    found = [D, D.tile_to((16, 16), (16, 8)), TileLayout(S[8:-1] + 7)]

    @settings(max_examples=150)
    @given(own.layouts(strides=own.SMALL_STRIDES).filter(lambda x: len(x.shard) > 0))
    def gather(layout: TileLayout) -> None:
        if all(-(2**31) < v < 2**31 for v in layout.offset.values()) and all(
            abs(it.stride) < 2**31 for it in layout.replica
        ):
            found.append(layout)

    gather()
    assert len(found) > 50
    questions = [
        [
            [[it.extent, it.stride, str(it.axis)] for it in x.shard],
            [[it.extent, it.stride, str(it.axis)] for it in x.replica],
            {str(a): v for a, v in x.offset.items()},
        ]
        for x in found
    ]
    done = subprocess.run(
        [str(tvm_python), "-c", PRINTS],
        input=json.dumps(questions),
        capture_output=True,
        text=True,
        check=True,
    )
    printed = [json.loads(line) for line in done.stdout.splitlines()]
    assert [tvm_text(x) for x in found] == printed


ROWS = TileLayout(S[(32, 2) : (1 @ laneid, 1)])
TURNED = TileLayout(S[(16, 2, 2) : (2 @ laneid, 1, 1 @ laneid)])


@pytest.mark.parametrize("via", [(), ("--via", "shuffle"), ("--via", "shared")])
@pytest.mark.parametrize("bits", [8, 16, 32])
def test_a_plan_is_the_analysis(via: tuple[str, ...], bits: int) -> None:
    arguments = ("convert", str(ROWS), str(TURNED), "--element-bits", str(bits), *via)
    plan = conversion_plan(ROWS, TURNED, bits, via=via[1] if via else None)  # type: ignore[arg-type]
    assert answer(*arguments) == f"{plan}\n"
    data = json.loads(answer(*arguments, "--json"))
    assert data["kind"] == plan.kind
    assert data["cost"] == plan.cost._asdict()
    assert len(data["results"]) == len(plan.results)
    assert data["results"][0][0] == plan.results[0][0]._asdict()  # type: ignore[union-attr]
