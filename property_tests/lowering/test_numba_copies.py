"""Copies as device functions of numba kernels, without a GPU: their PTX runs on a machine for CTAs, and assembles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numba import cuda
from numba.cuda import types

from lowering import BARRIER, DispatchError, Tile, Window, copy, gemm, lower, sequence
from lowering.backends.assemble import assemble
from lowering.backends.numba_cuda import FragmentType, MemoryFunction, compile_ptx, memory_function
from lowering.compose import as_function
from lowering.control import Compare, Draw, While
from lowering.dtypes import dtype
from lowering.fragments import A_FRAG, partition
from lowering.isa import MMA_INSTRUCTIONS
from lowering.program import Address, Buffer, Program
from lowering.target import target
from tilelayout import LayoutError, S, TileLayout
from tilelayout.expr import Var

from ..guide_code import executed
from .copy_cases import Held, fragments, memory_layouts
from .numba_cases import TypingErrors
from .ptx_cta_machine import run

HALF, FLOAT = types.float16[:, ::1], types.float32[:, ::1]
FLAT = types.float16[::1]
CTA = {"target": "sm_80", "scope": "cta", "launch": 128}
SWIZZLED = TileLayout(S[64, 64]).swizzle(3, 3, 3)
SHAPE = (64, 64)
PARTS = partition(MMA_INSTRUCTIONS[0], 64, 64, 16, warps=(2, 2))
STAGE_A, STAGE_B = (Tile(n, SHAPE, "float16", SWIZZLED, "shared") for n in ("sA", "sB"))
A, B = Tile("A", (64, 16), "float16", PARTS.A), Tile("B", (16, 64), "float16", PARTS.B)
D = Tile("D", SHAPE, "float32", PARTS.D)


def function(call: Any, **options: Any) -> MemoryFunction:
    return lower(call, **{**CTA, **options}).device_function  # type: ignore[no-any-return]


# --- registers and shared memory, drawn -----------------------------------------------------------


@st.composite
def cases(draw: Any) -> tuple[Held, Any]:
    held = draw(fragments())
    return held, draw(memory_layouts(held.shape, dtype(held.dtype).bits))


def through_shared(held: Held, layout: Any, name: str) -> tuple[str, Any, Any, int]:
    """PTX of: memory to a stage, the stage to a fragment and its elements out, the fragment to a second stage and out.

    Also the two functions, and how many elements of memory a stage has.
    """
    tile = held.tile()
    stage = Tile("stage", held.shape, held.dtype, layout, "shared", 16)
    where = {"target": name, **held.where}
    load = lower(copy(tile, stage), **where).device_function
    store = lower(copy(replace(stage, name="second"), tile), **where).device_function
    get, threads, fragment = load.get, 32 * held.warps, load.types["dst"]
    lines = "\n".join(f"    out[t, {s}] = get(a, {s})" for s in range(fragment.slots))
    source = f"""
def kernel(source, out, back):
    first, second = load.shared_array(), store.shared_array()
    t = cuda.threadIdx.x
    for x in range(t, first.size, threads):
        first[x] = source[x]
        second[x] = source[x]
    cuda.syncthreads()
    a = load(first)
{lines}
    store(second, a)
    cuda.syncthreads()
    for x in range(t, second.size, threads):
        back[x] = second[x]
"""
    space: dict[str, Any] = {"load": load, "store": store, "get": get, "cuda": cuda, "threads": threads}
    exec(source, space)  # noqa: S102 - slots are constants of the text
    kind = fragment.array_types[-1]
    ptx = compile_ptx(
        space["kernel"], (kind[::1], fragment.value_type[:, ::1], kind[::1]), name, threads=threads
    )
    return ptx, load, store, load.memory[0].buffer.elements


def packed(codes: Any, bits: int) -> Any:
    """Element codes as memory has them."""
    if bits >= 8:
        return codes.astype(f"u{bits // 8}")
    return np.packbits((codes[:, None] >> np.arange(bits) & 1).astype(np.uint8), bitorder="little")


@settings(max_examples=15)
@given(cases(), st.sampled_from(["sm_80", "sm_90a"]))
def test_fragments_from_and_to_shared_memory(case: tuple[Held, Any], name: str) -> None:
    """Every element of every lane is what the layouts say, and the way back restores memory."""
    held, layout = case
    try:
        ptx, load, _, elements = through_shared(held, layout, name)
    except DispatchError:
        assume(False)
    bits = dtype(held.dtype).bits
    codes = np.random.default_rng(1).integers(0, 1 << min(bits, 62), elements)
    memory = packed(codes, bits)
    value = np.dtype(load.types["dst"].value_type.name)
    out = np.zeros((32 * held.warps, load.types["dst"].slots), f"u{value.itemsize}")
    back = np.zeros_like(memory)
    run(ptx, [memory, out, back], 32 * held.warps)
    np.testing.assert_array_equal(back, memory)
    table = held.layout.table(held.shape)
    position = np.asarray(layout.table(held.shape)["m"])
    place = [np.broadcast_to(np.asarray(table.get(x, 0)), held.shape) for x in ("warpid", "laneid", "m")]
    found = out[32 * place[0] + place[1], place[2]] & np.uint64((1 << bits) - 1)
    np.testing.assert_array_equal(found.astype(np.uint64), codes[position].astype(np.uint64))


@pytest.mark.parametrize(
    ("layout", "name", "load", "store"),
    [
        (SWIZZLED, "sm_90a", ("ldmatrix", 4), ("stmatrix", 4)),
        (SWIZZLED, "sm_80", ("ldmatrix", 4), ("st.shared.b32", 16)),
        (TileLayout(S[(64, 64) : (68, 1)]), "sm_90a", ("ld.shared.b32", 16), ("st.shared.b32", 16)),
        (TileLayout(S[(64, 64) : (1, 65)]), "sm_90a", ("ld.shared.b16", 32), ("st.shared.b16", 32)),
    ],
)
def test_which_instructions(layout: Any, name: str, load: tuple[str, int], store: tuple[str, int]) -> None:
    whole = partition(MMA_INSTRUCTIONS[0], 64, 64, 64, warps=(4, 1))
    ptx, *_ = through_shared(Held(SHAPE, "float16", whole.A, "cta", 4), layout, name)
    for opcode, count in (load, store):
        assert ptx.count(f"\t{opcode}") + ptx.count(f" {opcode}") == count
    assert assemble(ptx, target(name)).local_bytes == 0


# --- whole kernels ----------------------------------------------------------------------------------


def pieces(order: str = "row") -> dict[str, Any]:
    """Device functions of a gemm: tiles of 64 x 64 by 128 threads, four steps a stage."""
    turned = TileLayout(S[SHAPE : (1, 64)]).swizzle(3, 3, 3) if order == "column" else SWIZZLED
    first = Tile("sA", SHAPE, "float16", turned, "shared")
    parts: list[Any] = []
    for k in range(0, 64, 16):
        parts += [copy(A, first[:, k : k + 16]), copy(B, STAGE_B[k : k + 16]), gemm(D, A, B, D, beta=1.0)]
    return {
        "fill_a": function(
            copy(first, Window.matrix("a", "float16", SHAPE, order)), dispatch="copy.cp_async"
        ),
        "fill_b": function(copy(STAGE_B, Window.matrix("b", "float16", SHAPE)), dispatch="copy.cp_async"),
        "step": sequence([lower(c, **CTA) for c in parts], name="step").device_function,
        "store": function(copy(Window.matrix("d", "float32", SHAPE), D)),
    }


def pipelined(p: dict[str, Any], wait: bool = True, arrive: bool = True, leave: bool = True) -> Any:
    """A kernel of two stages; without its waits it is wrong."""
    fill_a, fill_b, step, store = (p[x] for x in ("fill_a", "fill_b", "step", "store"))

    def kernel(a: Any, b: Any, d: Any) -> None:
        ring_a, ring_b = fill_a.shared_array(2), fill_b.shared_array(2)
        i, j = cuda.blockIdx.y, cuda.blockIdx.x
        sums = step.zeros_d()
        fill_a(ring_a[0], a, i, 0)
        fill_b(ring_b[0], b, 0, j)
        fill_a.commit()
        for k in range((a.shape[1] + 63) // 64):
            fill_a(ring_a[(k + 1) % 2], a, i, k + 1)
            fill_b(ring_b[(k + 1) % 2], b, k + 1, j)
            fill_a.commit()
            if wait:
                fill_a.wait(1)
            if arrive:
                cuda.syncthreads()
            sums = step(ring_a[k % 2], ring_b[k % 2], sums)
            if leave:
                cuda.syncthreads()
        store(d, sums, i, j)

    return kernel


def operands(m: int, n: int, k: int, order: str = "row") -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((m, k), (k, n)))
    return np.asarray(a, order="F" if order == "column" else "C"), b, np.full((m, n), np.nan, np.float32)


@pytest.mark.parametrize("order", ["row", "column"])
@pytest.mark.parametrize(("m", "n", "k"), [(64, 64, 64), (80, 72, 128), (8, 136, 200)])
def test_a_gemm_of_a_user_s_own(order: str, m: int, n: int, k: int) -> None:
    """Extents at the rim of the boxes too; leading dimensions are multiples of 16 bytes, as the windows promise."""
    a, b, d = operands(m, n, k, order)
    kind = types.float16[::1, :] if order == "column" else HALF
    ptx = compile_ptx(pipelined(pieces(order)), (kind, HALF, FLOAT), "sm_80", threads=128)
    grid = (-(-n // 64), -(-m // 64))
    machines = run(ptx, [a, b, d], 128, grid)
    np.testing.assert_array_equal(d, a.astype(np.float64) @ b.astype(np.float64))
    executed = machines[0].executed
    turns = -(-k // 64)
    assert sum(executed[x] for x in executed if x.startswith("mma")) == 32 * turns
    assert sum(executed[x] for x in executed if x.startswith("ldmatrix")) == 16 * turns
    assert executed["bar.sync"] == 2 * turns


@pytest.fixture(scope="module")
def guide() -> dict[str, Any]:
    return executed("kernels.md", "Stage by stage", "By hand, in numba")


@pytest.mark.parametrize(("m", "n", "k"), [(64, 64, 64), (80, 200, 264)])
def test_the_kernel_of_the_guide(guide: dict[str, Any], m: int, n: int, k: int) -> None:
    """docs/guide/kernels.md, compiled there; here it multiplies."""
    a, b, _ = operands(m, n, k)
    d = np.full((m, n), np.nan, np.float16)
    run(guide["ptx"], [a, b, d], 128, (-(-n // 64), -(-m // 64)))
    np.testing.assert_array_equal(d, np.maximum(a.astype(np.float64) @ b.astype(np.float64), 0))


@pytest.mark.parametrize("left_out", ["wait", "arrive", "leave"])
def test_a_missing_wait_or_barrier_is_noticed(left_out: str) -> None:
    """So that the tests here can fail: the machine objects to each of the races."""
    ptx = compile_ptx(
        pipelined(pieces(), **{left_out: False}),  # type: ignore[arg-type]
        (HALF, HALF, FLOAT),
        "sm_80",
        threads=128,
    )
    with pytest.raises(AssertionError, match=r"under way|no barrier between"):
        run(ptx, list(operands(64, 64, 192)), 128)


@pytest.mark.parametrize("name", ["sm_80", "sm_90a", "sm_120a"])
def test_a_user_s_gemm_assembles_without_spills(name: str) -> None:
    ptx = compile_ptx(pipelined(pieces()), (HALF, HALF, FLOAT), name, threads=128)
    assert (ptx.count("ldmatrix"), ptx.count("mma.sync"), ptx.count("wait_group")) == (16, 32, 1)
    assert ptx.count(".shared .align 1024 .b8 tile_s") == 2
    cubin = assemble(ptx, target(name))
    assert (cubin.local_bytes, cubin.spill_bytes) == (0, 0)


def test_registers_between_memory_and_shared_memory() -> None:
    """A copy in two parts: what is loaded early is stored later; and through registers in one go."""
    window = Window.matrix("x", "float16", SHAPE)
    early = function(copy(STAGE_A, window), config={"part": "load"})
    late = function(copy(STAGE_A, window), config={"part": "store"})
    whole = function(copy(STAGE_B, window))
    back = function(copy(Window.matrix("y", "float16", SHAPE), STAGE_A))
    twice = function(copy(Window.matrix("z", "float16", SHAPE), STAGE_B))

    def kernel(x: Any, y: Any, z: Any) -> None:
        first, second = late.shared_array(), whole.shared_array()
        held = early(x, 1, 0)
        whole(second, x, 1, 0)
        late(first, held)
        cuda.syncthreads()
        back(y, first, 0, 0)
        twice(z, second, 0, 0)

    rng = np.random.default_rng(4)
    x = rng.integers(-9, 9, (100, 40)).astype(np.float16)
    y, z = np.zeros((64, 64), np.float16), np.zeros((36, 40), np.float16)
    run(compile_ptx(kernel, (HALF, HALF, HALF), "sm_80", threads=128), [x, y, z], 128)
    np.testing.assert_array_equal(z, x[64:])
    np.testing.assert_array_equal(y[:36, :40], x[64:])
    assert not y[36:].any()
    assert not y[:, 40:].any()


def test_fragments_at_the_rim_are_loaded_as_zeros() -> None:
    """Branches that write registers: what each side leaves is joined."""
    whole = Tile("held", SHAPE, "float32", PARTS.D)
    load = function(copy(whole, Window.matrix("x", "float32", SHAPE, alignment=4)))
    store = function(copy(Window.matrix("y", "float32", SHAPE, alignment=4), whole))

    def kernel(x: Any, y: Any) -> None:
        store(y, load(x, cuda.blockIdx.y, 0), cuda.blockIdx.y, 0)

    ptx = compile_ptx(kernel, (FLOAT, FLOAT), "sm_80", threads=128)
    x = np.arange(100 * 37, dtype=np.float32).reshape(100, 37) + 1
    y = np.full((128, 64), np.nan, np.float32)
    run(ptx, [x, y], 128, (1, 2))
    wanted = np.zeros_like(y)
    wanted[:100, :37] = x
    np.testing.assert_array_equal(y, wanted)


def test_stages_of_a_tile_and_regions_of_a_fragment() -> None:
    """A stage is an integer argument; what is not copied of a fragment is what was given."""
    ring = Tile("ring", (2, 16, 16), "float16", TileLayout(S[2, 16, 16]), "shared")
    x = Tile("x", (32, 16), "float16", A_FRAG.tile_to((32, 16), (16, 16)))
    flat = Tile("source", (16, 16), "float16", TileLayout(S[16, 16]), "global")
    where = {"target": "sm_80", "scope": "warp"}
    s = Var("s", 0, 1)
    fill = lower(copy(ring[s], flat), **where).device_function
    low, high = (lower(copy(x[i : i + 16], ring[s]), **where).device_function for i in (0, 16))
    out = lower(copy(Tile("out", (32, 16), "float16", TileLayout(S[32, 16]), "global"), x), **where)
    store = out.device_function
    assert low.variables == fill.variables == ("s",)
    assert str(low.types["dst"]) == "Fragment(float16, 8)"

    def kernel(a: Any, b: Any, d: Any) -> None:
        stages = fill.shared_array()
        fill(stages, a, 0)
        fill(stages, b, 1)
        cuda.syncthreads()
        held = low(low.zeros_dst(), stages, 1)
        store(d, high(held, stages, 0))

    rng = np.random.default_rng(5)
    a, b = (rng.integers(-9, 9, 256).astype(np.float16) for _ in range(2))
    d = np.zeros(512, np.float16)
    run(compile_ptx(kernel, (FLAT, FLAT, FLAT), "sm_80", threads=32), [a, b, d], 32)
    np.testing.assert_array_equal(d, np.concatenate([b, a]))


def test_a_sequence_says_what_it_takes_and_gives() -> None:
    step = pieces()["step"]
    assert [m.role for m in step.memory] == ["sA", "sB"]
    assert repr(step) == (
        "<MemoryFunction step(sA: 1-d float16 or uint16 in shared memory, sB: 1-d float16 or uint16 in shared memory, "
        "D: Fragment(float32, 32)) -> Fragment(float32, 32)>"
    )
    gA = Tile("gA", SHAPE, "float16", TileLayout(S[64, 64]), "global")
    everything = sequence([lower(copy(STAGE_A, gA), **CTA), BARRIER, lower(copy(A, STAGE_A[:, :16]), **CTA)])
    f = everything.device_function
    assert [m.role for m in f.memory] == ["sA", "gA"]
    assert f.program.outputs == as_function(everything.program).outputs
    assert [r.role for r in f.program.outputs] == ["A"]

    def kernel(a: Any) -> None:
        f(f.shared_array(), a)

    ptx = compile_ptx(kernel, (FLAT,), "sm_80", threads=128)
    assert ptx.index("st.shared") < ptx.index("bar.sync") < ptx.index("ldmatrix")


# --- what is refused --------------------------------------------------------------------------------

LOAD = function(copy(A, STAGE_A[:, :16]))
SMALL = Tile("small", (16, 16), "float16", A_FRAG)
STORE = function(
    copy(Tile("stage", (16, 16), "float16", TileLayout(S[16, 16]), "shared"), SMALL), scope="warp"
)
FILL = function(copy(STAGE_A, Window.matrix("x", "float16", SHAPE)), dispatch="copy.cp_async")

WRONG: dict[str, tuple[Callable[..., Any], str]] = {
    "missing": (lambda x, y: LOAD(), r"takes 1 arguments, got 0"),
    "too many": (lambda x, y: LOAD(y, 1), r"takes 1 arguments, got 2"),
    "keyword": (lambda x, y: LOAD(src=y), "by position"),
    "rank": (lambda x, y: LOAD(x), "is a 1-d array, got .*give its memory as a 1-d array"),
    "type": (lambda x, y: LOAD(y.view(np.float32)), "array of float16 or uint16 in shared memory, got"),
    "slice": (lambda x, y: LOAD(y[::2]), "contiguous .*slice it by stages of a 2-d array"),
    "no fragment": (lambda x, y: STORE(y, y), r"src is a Fragment\(float16, 4\), got"),
    "window rank": (lambda x, y: FILL(y, y, 0, 0), "is a 2-d array, got .*the window has 2 dimensions"),
    "window order": (lambda x, y: FILL(y, x.T, 0, 0), "contiguous along dimension 1, .*give the whole array"),
    "no integer": (lambda x, y: FILL(y, x, 0.5, 0), "x_i is an integer, got float64"),
    "stages": (lambda x, y: LOAD.shared_array(x.shape[0]), "stages must be a constant"),
    "no stage": (lambda x, y: LOAD.shared_array(0), "0 stages of sA"),
    "groups": (lambda x, y: FILL.wait(x.shape[0]), "number of groups must be a constant"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments_are_refused_by_name(case: str) -> None:
    wrong, words = WRONG[case]
    with pytest.raises(TypingErrors, match=words):
        compile_ptx(wrong, (HALF, FLAT), "sm_80", threads=128)


def test_more_refusals() -> None:
    def read_only(y: Any) -> None:
        STORE(y, LOAD(y))

    frozen = types.Array(types.float16, 1, "C", readonly=True)
    with pytest.raises(TypingErrors, match=r"is written, and .* is read-only"):
        compile_ptx(read_only, (frozen,), "sm_80", threads=128)

    def copies(y: Any, x: Any) -> None:
        FILL(y, x, 0, 0)

    with pytest.raises(TypingErrors, match=r"cp\.async.16 needs sm_80 or newer, the target is sm_75"):
        compile_ptx(copies, (FLAT, HALF), "sm_75", threads=128)
    with pytest.raises(TypeError, match="is device code"):
        LOAD(np.zeros(4096, np.float16))
    short = Tile("short", (8, 8), "float16", TileLayout(S[(8, 8) : (9, 1)]), "shared")
    held = Tile("held", (8, 8), "float16", TileLayout.parse("S[(8, 4, 2) : (4 @ laneid, 1 @ laneid, 1)]"))
    load = lower(copy(held, short), target="sm_80", scope="warp").device_function

    def stages() -> None:
        load(load.shared_array(3)[1])

    with pytest.raises(TypingErrors, match="stages of 142 bytes are not all aligned to the 16 of short"):
        compile_ptx(stages, (), "sm_80", threads=32)


def test_what_a_launch_gives_is_no_device_function() -> None:
    bar = Address(Buffer("full", "full", "int32", (2,), 0, "shared", 8), (0,))
    bulk = lower(
        copy(STAGE_A, Window.matrix("x", "float16", SHAPE)),
        target="sm_90a",
        scope="cta",
        launch=128,
        dispatch="copy.bulk_tensor",
        config={"barrier": bar},
    )
    with pytest.raises(LayoutError, match="which only a launch gives"):
        bulk.device_function  # noqa: B018
    looped = Program("looped", 1, (), (), (While(Compare(Var("n", 0, 9), "<", 9), ()),))
    with pytest.raises(LayoutError, match="program looped has a loop"):
        memory_function(looped, {})
    counter = Buffer("counter", "counter", "int32", (1,), 32, "global", 4)
    drawn = Program("drawn", 1, (), (), (Draw(Var("n", 0, 9), Address(counter, (0,))),), (counter,))
    with pytest.raises(LayoutError, match="program drawn draws from a counter, as only a kernel does"):
        memory_function(drawn, {})


def test_flat_windows_take_their_variables() -> None:
    """Where an array cannot know the extents they are arguments."""
    n = Var("n", 1, 1 << 20)
    window = Window("x", "float16", (((64, n),), ((n, 1),)), (64, n), (0, 0), SHAPE, 2)
    f = function(copy(STAGE_A, window))
    assert f.variables == ("n",)
    assert f.memory[1].rank == 1
    assert FragmentType("float16", 2).array_types == f.memory[1].accepted
