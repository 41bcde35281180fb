"""Triton's LinearLayout: linear maps over F2, thousands of them, and the layouts that Triton has for mma and swizzles.

Where a layout has a power of two of elements and its strides don't carry, the two describe the same functions, and
every answer must be the same one.  Triton maps hardware to elements; the maps are given to it in our direction, but for
fragments and shared memory, which are its own and are read backwards.  No GPU is needed.

What is known of Triton 3.9, all outside of what both can say: `invert` and `pseudoinvert` of a map that isn't onto
its outputs, and a composition whose sizes don't fit, end the process; other sizes than powers of two don't exist.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest

from lowering import fragments
from lowering.isa.mma import MMA_INSTRUCTIONS
from property_tests.oracles import linear as f2
from property_tests.oracles.client import Peer
from property_tests.oracles.interpreter import interpreter
from tilelayout import S, Swizzle, SwizzledLayout, TileLayout, laneid, m, warpid

pytestmark = [pytest.mark.slow, pytest.mark.oracle]

SERVER = Path(__file__).with_name("triton_server.py")
CASES = 1000
TABLE_M = ["m"]


@pytest.fixture(scope="module")
def triton() -> Iterator[Peer]:
    """The interpreter that has triton."""
    peer = Peer(interpreter("triton"), SERVER)
    yield peer
    peer.close()


def answers(triton: Peer, questions: list[dict[str, Any]]) -> list[Any]:
    found = triton.ask(questions)
    for question, answer in zip(questions, found, strict=True):
        assert "is" in answer, (question, answer)
    return [answer["is"] for answer in found]


def table(layout: TileLayout | SwizzledLayout, axes: list[str]) -> list[list[int]]:
    """Ours, as the library evaluates it."""
    return [[at.get(a, 0) for a in axes] for at in (layout.apply(i) for i in range(layout.size()))]


# --- the algebra ----------------------------------------------------------------------------------------


def test_evaluation_of_tile_layouts_and_of_swizzled_ones(triton: Peer) -> None:
    rng = Random(1)
    layouts: list[TileLayout | SwizzledLayout] = []
    for _ in range(CASES):
        layout = f2.a_layout(rng, rng.randint(1, 7))
        layouts += [layout, SwizzledLayout(layout, rng.choice((f2.a_swizzle, f2.a_map))(rng, 7))]
    found = answers(triton, [{"do": "apply", "layout": f2.linear(x)} for x in layouts])
    for layout, theirs in zip(layouts, found, strict=True):
        assert table(layout, f2.axes_of(layout)) == theirs, layout


def test_composition(triton: Peer) -> None:
    rng = Random(2)
    cases = []
    for _ in range(CASES):
        outer = f2.a_layout(rng, rng.randint(1, 7))
        bits = outer.size().bit_length() - 1
        inner = f2.a_layout(rng, rng.randint(1, bits), TABLE_M, gaps=False)
        cases.append((outer, inner))
    questions = [
        {
            "do": "compose",
            "outer": f2.linear(outer, "m"),
            "inner": f2.linear(inner, sizes={"m": outer.size()}),
        }
        for outer, inner in cases
    ]
    for (outer, inner), theirs in zip(cases, answers(triton, questions), strict=True):
        assert table(outer.compose(inner), f2.axes_of(outer)) == theirs, (outer, inner)


def test_composition_and_inverses_of_xor_maps(triton: Peer) -> None:
    rng = Random(3)
    bits = 7
    pairs = [tuple(rng.choice((f2.a_swizzle, f2.a_map))(rng, bits) for _ in range(2)) for _ in range(CASES)]
    composed = [
        {"do": "compose", "outer": f2.map_of(f, bits, "m", "x"), "inner": f2.map_of(g, bits, "i", "m")}
        for f, g in pairs
    ]
    for (f, g), theirs in zip(pairs, answers(triton, composed), strict=True):
        assert [[f.compose(g).apply(x)] for x in range(1 << bits)] == theirs, (f, g)
    inverted = [{"do": "invert", "layout": f2.map_of(f, bits, "i", "m")} for f, _ in pairs]
    for (f, _), theirs in zip(pairs, answers(triton, inverted), strict=True):
        assert [[f.inverse().apply(x)] for x in range(1 << bits)] == theirs, f


def test_inverses_and_conversions_of_bijections(triton: Peer) -> None:
    rng = Random(4)
    cases = []
    for _ in range(CASES):
        bits = rng.randint(1, 7)
        cases.append([f2.a_layout(rng, bits, TABLE_M, gaps=False, zeros=False) for _ in range(2)])
    questions = [{"do": "invert", "layout": f2.linear(one)} for one, _ in cases]
    for (one, _), theirs in zip(cases, answers(triton, questions), strict=True):
        assert table(one.inverse(), TABLE_M) == theirs, one
    questions = [
        {"do": "invert_and_compose", "layout": f2.linear(one), "other": f2.linear(other)}
        for one, other in cases
    ]
    for (one, other), theirs in zip(cases, answers(triton, questions), strict=True):
        assert table(other.inverse().compose(one), TABLE_M) == theirs, (one, other)


def test_right_inverses_of_maps_that_are_onto(triton: Peer) -> None:
    """A pseudoinverse gives index 0 to what nobody needs, and so does a right inverse: one function."""
    rng = Random(5)
    layouts = []
    while len(layouts) < CASES:
        layout = f2.a_layout(rng, rng.randint(1, 7), TABLE_M, gaps=False)
        values = {it.stride * (it.extent - 1) for it in layout.shard}
        if sum(values) == len({p for (p,) in f2.places(layout, TABLE_M)}) - 1:
            layouts.append(layout)
    assert any(0 in [it.stride for it in x.shard] for x in layouts)
    questions = [{"do": "pseudoinvert", "layout": f2.linear(x)} for x in layouts]
    for layout, theirs in zip(layouts, answers(triton, questions), strict=True):
        ours = table(layout.right_inverse(), TABLE_M)
        assert [f2.place(layout, i)["m"] for (i,) in theirs] == list(range(len(theirs)))
        assert ours == theirs, layout


def test_injective_and_surjective(triton: Peer) -> None:
    """Triton asks whether the sizes that were given are filled, we whether the spanned box is: both are at most."""
    rng = Random(6)
    layouts: list[TileLayout | SwizzledLayout] = []
    for _ in range(CASES):
        layout = f2.a_layout(rng, rng.randint(1, 7))
        layouts += [layout, SwizzledLayout(layout, f2.a_map(rng, 6))]
    asked = [{"do": "properties", "layout": f2.linear(x)} for x in layouts]
    seen = set()
    for layout, theirs in zip(layouts, answers(triton, asked), strict=True):
        assert bool(layout.is_injective()) == theirs["injective"], layout
        whole = all(layout.span(a) == size for a, size in f2.linear(layout)["outs"])
        assert (bool(layout.is_surjective()) and whole) == theirs["surjective"], layout
        seen.add((theirs["injective"], theirs["surjective"]))
    assert len(seen) == 4


# --- fragments ------------------------------------------------------------------------------------------


def image(bases: list[list[int]], index: int) -> list[int]:
    out = [0, 0]
    for k, base in enumerate(bases):
        if index >> k & 1:
            out = [a ^ b for a, b in zip(out, base, strict=True)]
    return out


def registers(found: dict[str, Any], ours: TileLayout, shape: tuple[int, int]) -> dict[int, int]:
    """Triton's register -> ours, checked to be a bijection that is the same in every lane of every warp."""
    same: dict[int, int] = {}
    sizes = {name: 1 << len(found[name]) for name in ("register", "lane", "warp")}
    for register, lane, warp in product(*[range(n) for n in sizes.values()]):
        parts = [image(found[name], index) for name, index in zip(sizes, (register, lane, warp), strict=True)]
        coord = [a ^ b ^ c for a, b, c in zip(*parts, strict=True)]
        held = [
            at.get(m, 0)
            for at in ours.owners(*coord, shape=shape)
            if (at.get(laneid, 0), at.get(warpid, 0)) == (lane, warp)
        ]
        assert len(held) == 1, (coord, lane, warp, held)
        assert same.setdefault(register, held[0]) == held[0], (register, coord, held)
    assert sorted(same.values()) == list(range(sizes["register"]))
    assert (
        len(ours.owners(0, 0, shape=shape)) * shape[0] * shape[1]
        == sizes["register"] * sizes["lane"] * sizes["warp"]
    )
    return same


def fragment(triton: Peer, operand: str, k_width: int, shape: tuple[int, int], warps: tuple[int, int]) -> Any:
    question = {
        "do": "fragment",
        "version": [2, 0],
        "warps": warps,
        "instruction": [16, 8],
        "operand": operand,
    }
    (found,) = answers(triton, [{**question, "k_width": k_width, "shape": shape}])
    return found


def of_k_pack() -> list[Any]:
    """One instruction of each shape and packing that Triton's mma version 2 has: whole words, two blocks along K."""
    kinds = {(i.m, i.n, i.k, i.k_pack): i for i in MMA_INSTRUCTIONS if (i.m, i.n) == (16, 8)}
    return [i for (_, _, k, k_pack), i in kinds.items() if k == 8 * k_pack and k_pack in (1, 2, 4)]


def test_operands_of_one_instruction_are_the_same_registers(triton: Peer) -> None:
    assert any(i.k_pack == 2 for i in of_k_pack())
    for instruction in of_k_pack():
        for role in ("A", "B", "D"):
            shape = fragments.operand_shape(instruction, role)
            found = fragment(triton, role, instruction.k_pack, shape, (1, 1))
            same = registers(found, fragments.layout(instruction, role), shape)
            assert all(a == b for a, b in same.items()), (instruction, role, same)


def test_tilings_are_the_same_lanes_and_accumulators_the_same_registers(triton: Peer) -> None:
    (instruction,) = [i for i in of_k_pack() if i.k_pack == 2][:1]
    for role, tiles in product(("A", "B", "D"), ((1, 2), (2, 1), (2, 2), (4, 2))):
        shape = tuple(n * k for n, k in zip(fragments.operand_shape(instruction, role), tiles, strict=True))
        found = fragment(triton, role, 2, shape, (1, 1))
        same = registers(found, fragments.tiled(instruction, role, tiles), shape)
        if role == "D":
            assert all(a == b for a, b in same.items()), (tiles, same)


@pytest.mark.parametrize("warps", [(2, 1), (1, 2), (2, 2), (4, 2)])
def test_operands_over_several_warps_are_held_by_the_same_warps(triton: Peer, warps: tuple[int, int]) -> None:
    """M over the slower digit of the warps, N over the faster; A is copied along N, B along M."""
    (instruction,) = [i for i in of_k_pack() if i.k_pack == 2][:1]
    rows, columns = warps
    for role in ("A", "B", "D"):
        layout = fragments.layout(instruction, role)
        shape = list(fragments.operand_shape(instruction, role))
        if role == "A":
            layout = fragments.replicated(layout, columns, "warpid")
        else:
            layout = fragments.spread(layout, tuple(shape), 1, columns, "warpid")
            shape[1] *= columns
        if role == "B":
            layout = fragments.replicated(layout, rows, "warpid")
        else:
            layout = fragments.spread(layout, tuple(shape), 0, rows, "warpid")
            shape[0] *= rows
        found = fragment(triton, role, 2, tuple(shape), warps)
        same = registers(found, layout, tuple(shape))
        assert all(a == b for a, b in same.items()), (role, same)


@pytest.mark.parametrize("n", [8, 16, 64, 256])
def test_accumulators_of_wgmma(triton: Peer, n: int) -> None:
    """Warp w of four has rows 16w and on; columns 8j and on are registers 4j and on."""
    question = {
        "do": "fragment",
        "version": [3, 0],
        "warps": [4, 1],
        "instruction": [16, n, 16],
        "operand": "D",
    }
    (found,) = answers(triton, [{**question, "k_width": 2, "shape": [64, n]}])
    ours = TileLayout(S[(4, 2, 8, n // 8, 4, 2) : (1 @ warpid, 2, 4 @ laneid, 4, 1 @ laneid, 1)])
    same = registers(found, ours, (64, n))
    assert all(a == b for a, b in same.items())


# --- swizzles -------------------------------------------------------------------------------------------


def check_shared(found: dict[str, Any], ours: SwizzledLayout, shape: tuple[int, int]) -> None:
    for offset in range(shape[0] * shape[1]):
        assert ours.apply(*image(found["offset"], offset), shape=shape) == {m: offset}, (ours, offset)


def test_swizzled_shared_memory(triton: Peer) -> None:
    """vec elements stay together, max_phase phases of per_phase rows each: Swizzle(log max_phase, log vec, ...)."""
    shapes = [(8, 32), (16, 64), (32, 16), (64, 64)]
    for shape, vector, per_phase, max_phase in product(shapes, (1, 2, 4, 8), (1, 2, 4), (1, 2, 4, 8)):
        if vector * max_phase > shape[1] or per_phase * max_phase > shape[0]:
            continue
        question = {"do": "swizzled_shared", "vector": vector, "per_phase": per_phase, "max_phase": max_phase}
        (found,) = answers(triton, [{**question, "order": [1, 0], "shape": shape}])
        bits, base = max_phase.bit_length() - 1, vector.bit_length() - 1
        shift = (shape[1] * per_phase).bit_length() - 1 - base
        check_shared(found, SwizzledLayout(S[shape], Swizzle(bits, base, shift)), shape)


@pytest.mark.parametrize(("swizzle_bytes", "bits"), [(32, 1), (64, 2), (128, 3)])
@pytest.mark.parametrize("element_bits", [8, 16, 32])
def test_the_swizzles_of_wgmma_and_tma(
    triton: Peer, swizzle_bytes: int, bits: int, element_bits: int
) -> None:
    """Swizzle(1|2|3, 4, 3) on bytes, in the units of the elements, on rows of swizzle_bytes."""
    columns = swizzle_bytes * 8 // element_bits
    for rows in (8, 16, 64):
        question = {"do": "nvmma_shared", "swizzle_bytes": swizzle_bytes, "element_bits": element_bits}
        (found,) = answers(triton, [{**question, "shape": [rows, columns]}])
        swizzle = Swizzle(bits, 4, 3).in_units(8, element_bits)
        check_shared(found, SwizzledLayout(S[rows, columns], swizzle), (rows, columns))


# --- what Triton does not say -----------------------------------------------------------------------------


def test_what_ends_the_process(triton: Peer) -> None:
    """Should a later Triton answer or refuse these, the list above is out of date."""
    gap = {"bases": [["i", [[1], [4]]]], "outs": [["m", 8]]}
    for do in ("invert", "pseudoinvert"):
        assert triton.ask([{"do": do, "layout": gap}]) == [{"crashed": True}]
    small = {"bases": [["m", [[1]]]], "outs": [["x", 2]]}
    assert triton.ask([{"do": "compose", "outer": small, "inner": gap}]) == [{"crashed": True}]
    uneven = {"bases": [["i", [[1], [2]]]], "outs": [["m", 3]]}
    (answer,) = triton.ask([{"do": "apply", "layout": uneven}])
    assert "is" not in answer
    assert TileLayout(S[48]).is_bijective()
