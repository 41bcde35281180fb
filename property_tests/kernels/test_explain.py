"""What a kernel says of itself: the parts it is made of, its shared memory and registers, and what it moves."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowering.backends.assemble import Cubin
from lowering.backends.banks import shared_accesses
from lowering.kernels import Config, GemmKernel, gemm
from lowering.kernels.gemm import explain as room
from lowering.kernels.gemm.chain import links
from lowering.kernels.gemm.numbers import Extents
from lowering.kernels.gemm.occupancy import occupancy
from lowering.kernels.gemm.pieces import counted, pieces
from lowering.kernels.gemm.traffic import traffic
from tilelayout import LayoutError

SMALL = {
    "tma": Config((64, 64, 64), (2, 2), 4, "tma", 2, 8, 1, 1, 2),
    "cp_async": Config((64, 64, 64), (2, 2), 3, "cp_async"),
    "registers": Config((64, 64, 64), (2, 2), 2, "registers"),
}
TARGETS = {"tma": "sm_90a", "cp_async": "sm_80", "registers": "sm_75"}
VARIANTS = {"tma": "copy.bulk_tensor", "cp_async": "copy.cp_async", "registers": "copy.predicated"}


def kernel(feed: str, dtype: str = "float16", **how: Any) -> GemmKernel:
    return gemm(dtype, target=TARGETS[feed], config=SMALL[feed], **how)


def missing(*_: object) -> object:
    raise ImportError("nvjitlink cannot be loaded")


@pytest.fixture
def unassembled(monkeypatch: pytest.MonkeyPatch) -> None:
    """No libraries that assemble, which is quicker."""
    monkeypatch.setattr(room, "_assembled", missing)
    monkeypatch.setattr(GemmKernel, "assembled", missing)


# --- parts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("feed", SMALL)
def test_the_pieces_are_those_of_the_program(feed: str) -> None:
    built = kernel(feed, B="column").best
    found = pieces(built)
    whole = counted(built.program)
    for piece in found:
        for name, n in piece.instructions.items():
            assert whole.get(name, 0) >= n, (piece.what, name)
        assert piece.lowered.variant not in [d.variant for d in piece.declined]
        assert all(d.reasons for d in piece.declined)
    copies = [p for p in found if p.what.startswith(("A, global", "B, global"))]
    assert [p.lowered.variant for p in copies] == [VARIANTS[feed]] * 2
    (products,) = [p for p in found if p.what.startswith("products")]
    ((name, n),) = products.instructions.items()
    # Those of a step, as often as there are steps in a turn, which the text may have in several forms.
    steps = built.config.tile[2] // 16 if feed != "registers" else built.config.tile[2] // 8
    assert whole[name] in [n * steps * built.config.unroll * forms for forms in (1, 2)]


@pytest.mark.parametrize("feed", SMALL)
def test_every_part_has_its_variant_and_the_others_their_reason(feed: str, unassembled: None) -> None:
    found = kernel(feed, B="column")
    text = found.explain()
    for piece in pieces(found.best):
        assert f"{piece.what}: {piece.lowered.variant}\n" in text
    for x in "AB":
        assert re.search(rf"^{x}, global to \w+: {VARIANTS[feed]}$", text, re.MULTILINE)
        assert f"{x}, shared to fragments, a step: copy.ldmatrix" in text
    assert text.count("copy.shuffle: both_registers") >= 2
    if feed == "registers":
        assert "needs sm_90 or newer, the target is sm_75" in text
    assert max(map(len, text.splitlines())) <= 125


CHAINS = {
    "whole": ({}, ["multiplies"]),
    "packed": ({"packed": "AB"}, ["copies A", "copies B", "multiplies"]),
    "beside": (
        {"packed": "AB", "beside": True, "feed": "tma"},
        ["copies what the first tiles need of A and B", "multiplies, and copies the rest"],
    ),
    "parts": ({"splits": 4}, ["multiplies parts of K", "adds the parts"]),
    "both": ({"packed": "A", "splits": 2}, ["copies A", "multiplies parts of K", "adds the parts"]),
}


@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("order", ["row", "column"])
def test_every_kernel_of_a_call_has_its_pieces(chain: str, order: str, unassembled: None) -> None:
    """In order, each with its variant and the reasons of the others; they are those of the kernel's program."""
    changed, kernels = CHAINS[chain]
    config = replace(SMALL["cp_async"], **changed)
    made = gemm("float16", D=order, target="sm_80" if config.feed == "cp_async" else "sm_90a", config=config)
    text = made.explain(300, 200, 512)
    found = links(made.best)
    assert [link.what for link in found] == kernels
    at = 0
    for number, link in enumerate(found, 1):
        if len(found) > 1:
            at = text.index(f"\nkernel {number} of {len(found)}, which {link.what}\n", at)
        whole, copies = counted(link.built.program), pieces(link.built)
        assert copies
        for piece in copies:
            at = text.index(f"\n{piece.what}: {piece.lowered.variant}\n", at)
            declined = [d.variant for d in piece.declined]
            assert declined or "global" not in piece.what
            assert piece.lowered.variant not in declined
            rest = text[at:].partition("\n\n")[0]
            assert all(re.search(rf"  not [^:]*{re.escape(v)}[,:]", rest) for v in declined), rest
            assert all(whole.get(name, 0) >= n > 0 for name, n in piece.instructions.items())
    assert ("kernel 1 of" in text) == (len(found) > 1)


@pytest.mark.parametrize("out", ["int8", "float8_e5m2", "float16"])
def test_parts_of_narrow_results_go_through_slots_as_they_are(out: str, unassembled: None) -> None:
    """What a kernel of parts of K collects are sums, whatever the result is."""
    config = replace(SMALL["registers"], splits=2, slots=1, sender="threads")
    text = gemm("float16", out=out, target="sm_90", config=config).explain(64, 64, 128)
    assert "D, fragments to shared: copy." in text
    assert "adds up the 2 parts" in text


@pytest.mark.parametrize("tile", [(16, 32, 32), (16, 64, 32), (16, 16, 32)])
def test_warps_that_copy_nothing_meet_in_no_bank(tile: tuple[int, int, int], unassembled: None) -> None:
    config = Config(tile, (1, 1), 2, "cp_async", fragments=1)
    text = gemm("float16", B="column", target="sm_80", config=config).explain()
    assert "no bank conflicts" in text


def test_what_the_alignment_forbids_is_said(unassembled: None) -> None:
    text = gemm("float16", target="sm_90a").explain(64, 64, 63)
    assert "feeds by registers" in text
    assert "A and its strides are aligned to 2 bytes" in text
    assert "aligned         A to 2, B to 16, D to 16 bytes" in text


def test_a_column_major_result_is_the_transposed_problems(unassembled: None) -> None:
    text = kernel("tma", D="column", A="column", bias="row").explain(104, 200, 64)
    assert "below, A is the caller's B" in text
    assert "M = 104, N = 200, K = 64:" in text
    assert "4 x 2 = 8, each of 2 stages" in text


# --- shared memory and registers ------------------------------------------------------------------


@pytest.mark.parametrize(("feed", "a", "b"), [*product(SMALL, ("row", "column"), ("row", "column"))])
def test_no_access_of_16_bit_elements_meets_another_in_a_bank(feed: str, a: str, b: str) -> None:
    accesses = shared_accesses(kernel(feed, A=a, B=b).program)
    assert {x.buffer for x in accesses} >= {"sA", "sB"}
    assert [x.text for x in accesses if x.degree != 1] == []


@pytest.mark.parametrize("feed", SMALL)
def test_every_shared_access_is_counted(feed: str, unassembled: None) -> None:
    found = kernel(feed)
    text = found.explain()
    lines = re.findall(r"^ +(\d+) of (\S+) on (\w+): no bank conflicts$", text, re.MULTILINE)
    assert sum(int(n) for n, _, _ in lines) == len(shared_accesses(found.program))
    assert f"shared memory: {found.best.shared_memory.bytes} bytes" in text
    for buffer, begin in found.best.shared_memory.offsets.items():
        assert re.search(rf"^  {buffer.name} +{buffer.bytes} bytes from +{begin},", text, re.MULTILINE)


@pytest.mark.parametrize("feed", ["tma", "registers"])
def test_registers_and_room_are_those_of_the_machine_code(feed: str) -> None:
    found = kernel(feed)
    text, built = found.explain(), found.best
    assert f"{built.cubin.registers} of a thread, no local memory" in text
    room = occupancy(found.target, built.threads, built.cubin.registers, built.shared_memory.bytes)
    assert f"{room.ctas} on a multiprocessor" in text


@pytest.mark.parametrize(
    ("dtype", "how", "extents"),
    [
        ("bfloat16", {"D": "column", "C": "row", "out": "float32", "target": "sm_89"}, ()),
        ("int8", {"C": "column", "batched": True, "target": "sm_120f"}, (7, 5, 3)),
    ],
    ids=["any", "small"],
)
def test_what_is_explained_is_what_runs(dtype: str, how: dict[str, Any], extents: tuple[int, ...]) -> None:
    """The first choice of these kernels spills, which is found out by assembling it."""
    made = gemm(dtype, bias="column", epilogue=relu, **how)
    first = re.search(r"configuration +(\S+)", unassembled_text(made, extents))
    text = made.explain(*extents)
    assert "no local memory" in text
    assert first is not None
    assert first[1] not in text
    if not extents:
        assert str(made.best.config) in text
        assert made.cubin is made.best.cubin


def unassembled_text(made: GemmKernel, extents: tuple[int, ...]) -> str:
    """What a machine without an assembler says."""
    with pytest.MonkeyPatch.context() as patch:
        for x, name in ((room, "_assembled"), (GemmKernel, "assembled")):
            patch.setattr(x, name, missing)
        return made.explain(*extents)


def relu(x: float) -> float:
    return max(x, 0.0)


def test_registers_that_change_hands_are_said(unassembled: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where feeding warps give some to multiplying ones."""
    found = gemm("float16", B="column", target="sm_90a")
    cubin = Cubin(b"code", found.target, 168, 0, 0, 0.0, "")

    def assembled(built: object) -> Cubin:
        return cubin

    monkeypatch.setattr(room, "_assembled", assembled)
    moved = {i.name for i in found.program.instructions if i.name.startswith("setmaxnreg")}
    fewer, more = (next(x.rpartition(".")[2] for x in moved if way in x) for way in ("dec", "inc"))
    assert f"then {more} of a multiplying one, {fewer} of a feeding one" in found.explain()


def test_without_an_assembler_the_rest_is_said(unassembled: None) -> None:
    text = kernel("cp_async").explain(64, 64, 64)
    assert "machine code: nvjitlink cannot be loaded" in text
    assert "M = 64, N = 64, K = 64:" in text


# --- extents --------------------------------------------------------------------------------------

SIZES = st.integers(1, 300)


@given(SIZES, SIZES, SIZES, st.integers(1, 3), st.sampled_from(["", "row", "column"]), st.booleans())
def test_what_is_moved_is_what_the_tiles_read_and_write(
    m: int, n: int, k: int, batches: int, bias: str, has_c: bool
) -> None:
    config = SMALL["tma"]
    problem = gemm(
        "float16", out="float32", bias=bias or None, C="row" if has_c else None, batched=True, target="sm_90a"
    ).problem
    found = traffic(problem, config, Extents(m, n, k, batches, {}, {}))
    moved = dict.fromkeys(found.moved, 0)
    carried_out = 0
    for top, left in product(range(0, m, config.tile[0]), range(0, n, config.tile[1])):
        high, wide = min(config.tile[0], m - top), min(config.tile[1], n - left)
        moved["A"] += 2 * high * k
        moved["B"] += 2 * wide * k
        moved["D"] += 4 * high * wide
        if has_c:
            moved["C"] += 4 * high * wide
        if bias:
            moved["bias"] += 4 * (wide if bias == "row" else high)
        depth = -(-k // config.tile[2])
        depth += depth % config.unroll
        carried_out += config.tile[0] * config.tile[1] * depth * config.tile[2]
    assert found.moved == {name: size * batches for name, size in moved.items()}
    once = 2 * (m * k + k * n) + 4 * m * n * (1 + has_c)
    vector = 4 * {"": 0, "row": n, "column": m}[bias]
    assert found.least == once * batches + vector
    assert found.total >= found.least
    assert found.operations == 2 * m * n * k * batches
    assert found.useful == pytest.approx(m * n * k / carried_out)


def test_parts_of_k_are_moved_twice_more() -> None:
    problem = gemm("float16", target="sm_90a").problem
    whole, parted = (
        traffic(problem, replace(SMALL["tma"], splits=n), Extents(100, 200, 4096, 1, {}, {})) for n in (1, 4)
    )
    assert parted.moved == {**whole.moved, "parts": 2 * 4 * 100 * 200 * 4}
    assert parted.least == whole.least


def test_parts_of_k_are_tiles_and_a_second_kernel(unassembled: None) -> None:
    made = gemm("float16", bias="row", target="sm_90a", config=replace(SMALL["tma"], splits=4, slots=0))
    text = made.explain(1024, 512, 1024)
    assert "16 x 8 x 4 parts of K = 512, each of" in text
    assert "by a second kernel, which adds up the 4 parts of K that this one stores as float32" in text
    for shown in (made.ptx, made.cuda):
        assert shown.startswith(
            "// Kernel 1 of 2, which multiplies parts of K; number 2 adds the parts.  best.second is what"
        )
    assert made.best.second is not None
    assert "bias" in made.best.second.ptx


def test_factors_that_lie_badly_are_copied_first() -> None:
    made = gemm("float16", B="column", target="sm_90a")
    text = made.explain(1023, 1025, 1021)
    assert "_tma_" in text
    assert all(f"a kernel copies {x}, aligned to 2 bytes, to rows of whole cache lines" in text for x in "AB")
    moved = 2 * 2 * 1023 * 1021
    packed = traffic(made.problem, replace(SMALL["tma"], packed="A"), Extents(1023, 1025, 1021, 1, {}, {}))
    assert packed.moved["packed A"] == moved
    assert "a kernel copies" not in made.explain(1024, 1024, 1024)
    assert "a kernel copies" not in made.explain(33, 35, 1021)  # so small that it costs more than it brings


def test_a_launch_in_numbers(unassembled: None) -> None:
    text = kernel("tma").explain(1024, 512, 256)
    numbers = text.partition("M = 1024")[2]
    assert "16 x 8 = 128, each of 4 stages" in numbers
    assert "128 on 132 multiprocessors" in numbers
    assert "1, which are 100 % full" in numbers
    assert "A 4.0 MiB, B 4.0 MiB, D 1.0 MiB" in numbers
    assert "1.8 MiB, each matrix once; 5.1 times" in numbers
    assert "2.684e+08 asked for, 100 % of those carried out" in numbers


def test_a_result_without_elements(unassembled: None) -> None:
    assert "none: D has no element" in kernel("cp_async").explain(0, 8, 8)


@pytest.mark.parametrize("extents", [(1,), (1, 2), (None, 2, 3), (1, -2, 3), (1, 2.0, 3), (True, 1, 1)])
def test_some_extents_are_refused(extents: tuple[Any, ...]) -> None:
    with pytest.raises(LayoutError, match="all three extents"):
        kernel("cp_async").explain(*extents)
