"""Epilogues: what is stored and where, at every place of a tile in its result, by kernels run on the machine."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lowering.backends.assemble import assemble
from lowering.backends.cta_machine import run_grid
from lowering.backends.ptx import ptx_module
from lowering.control import If, Parameter
from lowering.dtypes import dtype
from lowering.isa import LOADS, STORES
from lowering.isa.arithmetic import ADD
from lowering.kernels.epilogue import Epilogue, Finish, direct_epilogue, epilogue
from lowering.narrow import from_float
from lowering.program import Address, Buffer, Instr, Program, Registers, Slot, every
from lowering.target import TARGETS, target
from lowering.window import Window
from tilelayout import LayoutError

from .epilogue_cases import COLUMN, LANE, LIMIT, ROW, Case, M, N, check, run

PLACES = {
    "inside": {"size": (16, 16)},
    "one element": {"size": (1, 1)},
    "a corner": {"size": (45, 43), "origin": (2, 2)},
    "the last column": {"size": (48, 33), "origin": (1, 2)},
    "the last row": {"size": (33, 48), "origin": (2, 1)},
    "between": {"size": (48, 48), "origin": (1, 1)},
    "beyond": {"size": (20, 20), "origin": (3, 0)},
}
SPECS = {
    "float16": Epilogue("float16", "float32"),
    "scaled, C, bias along columns": Epilogue("float16", "float32", True, True, "row"),
    "float32": Epilogue("float32", "float32", True, True, "column"),
    "bfloat16": Epilogue("bfloat16", "float32", has_c=True),
    "tfloat32": Epilogue("tfloat32", "float32", bias="row"),
    "e4m3": Epilogue("float8_e4m3fn", "float32", True, True, "row"),
    "e5m2": Epilogue("float8_e5m2", "float32"),
    "integers": Epilogue("int32", "int32"),
    "integers scaled": Epilogue("int32", "int32", True, True, "column"),
    "integers to bytes": Epilogue("int8", "int32", True, bias="row"),
    "integers to float16": Epilogue("float16", "int32"),
    "float64": Epilogue("float64", "float64", True, True, "row"),
    "float64 to float32": Epilogue("float32", "float64", has_c=True),
    "sums of float16": Epilogue("float16", "float16", True),
}


def case(name: str, **fields: Any) -> Case:
    spec = SPECS[name]
    wide = spec.acc == "float64"
    given_ = {"c_dtype": "float64" if wide else spec.out, "bias_dtype": "float64" if wide else "float32"}
    return Case(spec, **{**given_, **fields})


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("alignment", [0, 16])
def test_the_tile_is_finished_and_nothing_else_is_touched(name: str, place: str, alignment: int) -> None:
    check(run(case(name, alignment=alignment, **PLACES[place]), 1, 2.0, 0.5), SPECS[name].out)


@st.composite
def cases(draw: Any) -> Case:
    name = draw(st.sampled_from(sorted(SPECS)))
    spec = SPECS[name]
    warps = draw(st.sampled_from([(1, 1), (2, 1), (1, 2), (2, 2)]))
    tile = (16 * warps[0] * draw(st.integers(1, 2)), 16 * warps[1] * draw(st.integers(1, 2)))
    size = (draw(st.integers(1, 70)), draw(st.integers(1, 70)))
    origin = tuple([draw(st.integers(0, -(-s // t) - 1)) for s, t in zip(size, tile, strict=True)])
    inputs = (
        ["float64", "float32", "float16", "int8"]
        if spec.acc == "float64"
        else ["float32", "float16", "bfloat16", "int8", "float8_e4m3fn"]
    )
    alignment = draw(st.sampled_from([0, 8, 16]))
    return replace(
        case(name),
        size=size,
        origin=origin,
        tile=tile,
        warps=warps,
        pads=(draw(st.integers(0, 3)), draw(st.integers(0, 3))),
        alignment=alignment,
        c_dtype=draw(st.sampled_from(inputs)),
        bias_dtype=draw(st.sampled_from(inputs)),
        c_order=draw(st.sampled_from(["row", "column"])),
    )


@settings(deadline=None)
@given(case=cases(), seed=st.integers(0, 9))
def test_any_tile_of_any_result(case: Case, seed: int) -> None:
    check(run(case, seed, 2.0, -0.5), case.spec.out)


def test_a_wide_tile_loads_its_bias_line_by_line() -> None:
    """More numbers of a bias than stay in registers."""
    wide = case("scaled, C, bias along columns", tile=(16, 96), size=(30, 190), origin=(1, 1), alignment=16)
    check(run(wide, 1, 2.0, 1.0), "float16")


def test_a_row_of_sums_is_no_more_than_sixteen_numbers_at_once() -> None:
    program, sums, _ = case("scaled, C, bias along columns", tile=(64, 64), size=(64, 64)).program()
    assert sum(r.words for r in program.registers if r != sums) <= 16 + 16 + 16 + 8 + 2


# --- what is read -------------------------------------------------------------------------------


def test_without_beta_no_c_is_read() -> None:
    program, _, _ = case("float16").program()
    assert [b.name for b in program.buffers] == ["S", "D"]
    assert [p.name for p in program.parameters if p.kind == "f32"] == []


def test_what_c_has_is_under_way_before_it_is_used() -> None:
    """The elements of three lines are loaded before the first is stored, and never more than a line ahead of that."""
    inside = frozenset({0, 1})
    program, *_ = case("bfloat16", tile=(64, 16), size=(64, 16), alignment=4, inside=inside).program()
    names = [s.instruction.name for s in program.body if isinstance(s, Instr)]
    moves = [n.partition(".")[0] for n in names if n in ("load.b32", "store.b32")]
    assert moves[:8] == ["load"] * 6 + ["store"] * 2
    assert max(moves[:i].count("load") - moves[:i].count("store") for i in range(len(moves))) == 6


def test_nan_in_c_spreads_no_further_than_its_element() -> None:
    """Each element takes its own of C, none of its neighbors', though they come in one access."""
    one = case("scaled, C, bias along columns", alignment=16)
    program, *_ = one.program()
    c = np.zeros((16, 16), np.float16)
    c[3, 5] = np.nan
    memory = {"S": np.zeros(256, np.float32), "D": c * 0, "C": c.ravel(), "bias": np.zeros(16, np.float32)}
    memory["D"] = np.zeros(256, np.float16)
    parameters = {"M": 16, "N": 16, "row": 0, "column": 0, "ldD": 16, "ldC": 16, "alpha": 1.0, "beta": 1.0}
    found = run_grid(program, (1, 1, 1), memory, parameters)["D"].view(np.float16).reshape(16, 16)
    assert np.argwhere(np.isnan(found)).tolist() == [[3, 5]]


def test_what_is_claimed_to_be_inside_is_not_asked() -> None:
    inside = replace(case("scaled, C, bias along columns"), inside=frozenset({0, 1}))
    program, *_ = inside.program()
    assert not [s for s in every(program.body) if isinstance(s, If)]
    check(run(inside, 1, 2.0, 0.5), "float16")
    rows = replace(inside, inside=frozenset({0}), size=(16, 7))
    check(run(rows, 1, 2.0, 0.5), "float16")


def test_an_aligned_result_is_stored_by_words() -> None:
    """Two neighbors at a time where all is inside, and never torn where it need not be."""
    for name, alignment, wanted in (
        ("float16", 4, "store.b32"),
        ("float32", 8, "store.v2.f32"),
        ("float64", 16, "store.v2.f64"),
        ("e4m3", 2, "store.b16.from"),
    ):
        program, *_ = replace(case(name), alignment=alignment, inside=frozenset({0, 1})).program()
        stores = {i.name for i in program.instructions if i.name.startswith("store")}
        assert all(x.startswith(wanted) for x in stores), stores


# --- functions ----------------------------------------------------------------------------------


def gelu(x: Any) -> Any:
    return 0.5 * x * (1 + math.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))


def test_a_function_comes_last() -> None:
    scalar = pytest.importorskip("lowering.backends.numba_cuda").scalar_instruction
    spec = replace(SPECS["scaled, C, bias along columns"], function=scalar(gelu, "sm_90a"), out="float32")
    one = Case(spec, size=(45, 43), origin=(2, 2))
    check(run(one, 1, 0.25, 0.5, function=np.vectorize(gelu)), "float32", 1e-6)
    check(
        run(replace(one, spec=replace(spec, out="float16")), 1, 0.25, 0.5, function=np.vectorize(gelu)),
        "float16",
        1e-3,
    )


@pytest.mark.skipif(
    sys.platform not in ("linux", "win32"), reason="NVIDIA's libraries are not published for this system"
)
@pytest.mark.parametrize("name", TARGETS)
def test_it_assembles_for_every_target(name: str) -> None:
    scalar = pytest.importorskip("lowering.backends.numba_cuda").scalar_instruction
    where = target(name)
    outputs = (
        ["float16", "float32", "int8"]
        + ["bfloat16"] * (where.sm >= 80)
        + ["float8_e4m3fn"] * (where.sm >= 89)
    )
    for out in outputs:
        spec = Epilogue(out, "float32", True, True, "row", scalar(gelu, where))
        program, *_ = Case(
            spec, tile=(32, 64), warps=(2, 2), alignment=16, c_dtype=out, target=name
        ).program()
        assert assemble(ptx_module(program, where), where).local_bytes == 0


# --- the staged form ------------------------------------------------------------------------------


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("out", ["float16", "bfloat16", "float32", "float8_e4m3fn"])
def test_packed_registers_hold_finished_elements(out: str, ahead: bool) -> None:
    """As a kernel does it that stores through shared memory: four neighbors of a lane's row at a time."""
    one = Case(Epilogue(out, "float32", True, True, "row"), alignment=16, c_dtype="float16")
    _, sums, layout = one.program()
    per = {"float32": 1, "float8_e4m3fn": 4}.get(out, 2)
    words = Registers("words", "D", out, 8 // per, "f32" if out == "float32" else "b32")
    memory = Buffer("W", "W", out, (32 * 8,), alignment=16)
    source = Buffer("S", "S", "float32", (32 * 8,), alignment=16)
    order = [0, 1, 4, 5, 2, 3, 6, 7]  # the lane's first row, then its second

    def build(finish: Finish) -> list[Any]:
        statements = finish.begin()
        for i in range(0, 8, 4):
            statements += finish.fetch(order[i + 4 : i + 8]) if ahead else []
            into = [Slot(words, k) for k in range(i // per, (i + 4) // per)]
            statements += finish.packed(order[i : i + 4], into)
        return statements

    bias = Window("bias", "float32", (((N.variable, 1),),), (N.variable,), (COLUMN.variable * 16,), (16,), 16)
    tail = epilogue(
        one.spec,
        sums,
        layout,
        (16, 16),
        build,
        target=target("sm_90a"),
        C=one.window("C", "float16"),
        bias=bias,
    )
    loads = [
        Instr(LOADS["global", "f32", 1], ((Slot(sums, i),), Address(source, (LANE * 8 + i,))))
        for i in range(8)
    ]
    stores = [
        Instr(STORES["global", words.kind, 1], (Address(memory, (LANE * 8 + i * per,)), (Slot(words, i),)))
        for i in range(words.count)
    ]
    program = Program(
        "packed", 1, (), (), (*loads, *tail.statements, *stores), (source, memory, *tail.buffers),
        (sums, words, *tail.scratch), (), (M, N, ROW, COLUMN, Parameter("ldC", "s64", 1, LIMIT), *tail.parameters),
    )  # fmt: skip
    rng = np.random.default_rng(0)
    held, c, vector = (
        rng.integers(-8, 9, n).astype(t) for n, t in (((32, 8), "f4"), ((16, 16), "f2"), (16, "f4"))
    )
    given_ = {"S": held.ravel(), "W": np.zeros(256, dtype(out).numpy), "C": c.ravel(), "bias": vector}
    numbers = {"M": 16, "N": 16, "row": 0, "column": 0, "ldC": 16, "alpha": 2.0, "beta": 0.5}
    found = run_grid(program, (1, 1, 1), given_, numbers)["W"].view(dtype(out).numpy).reshape(32, 8)
    for lane in range(32):
        for i, slot in enumerate(order):
            row, column = lane // 4 + 8 * (slot // 2 % 2), lane % 4 * 2 + slot % 2 + 8 * (slot // 4)
            wanted = 2 * held[lane, slot] + float(c[row, column]) / 2 + vector[column]
            assert float(found[lane, i]) == float(from_float(wanted, out))


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"out": "int4", "acc": "float32"}, "results are float32, float64"),
        ({"out": "float16", "acc": "float64"}, "results are float64, float32"),
        ({"out": "float16", "acc": "int4"}, "computed in f32"),
        ({"out": "float16", "acc": "float32", "bias": "both"}, "bias 'both'"),
        ({"out": "float16", "acc": "float32", "function": ADD["f32"]}, "it takes one f32 and gives one"),
        ({"out": "float64", "acc": "float64", "function": ADD["f32"]}, "it takes one f64 and gives one"),
    ],
)
def test_an_epilogue_that_is_none(fields: dict[str, Any], why: str) -> None:
    with pytest.raises(LayoutError, match=why):
        Epilogue(**fields)


def test_operands_that_do_not_fit() -> None:
    one = case("scaled, C, bias along columns")
    _, sums, layout = one.program()
    D, C = one.window("D", "float16"), one.window("C", "float16")
    with pytest.raises(LayoutError, match="with neither C nor bias"):
        direct_epilogue(one.spec, sums, layout, D, target=target("sm_80"))
    with pytest.raises(LayoutError, match="bias is"):
        direct_epilogue(one.spec, sums, layout, D, target=target("sm_80"), C=C, bias=C)
    other = replace(one, tile=(16, 32)).window("C", "float16")
    with pytest.raises(LayoutError, match=r"C is .*, the tile is \(16, 16\)"):
        direct_epilogue(replace(one.spec, bias=""), sums, layout, D, target=target("sm_80"), C=other)


def test_a_target_without_the_conversion() -> None:
    with pytest.raises(LayoutError, match="needs sm_89 or newer"):
        replace(case("e4m3"), target="sm_80").program()
