"""The GPU probe without a GPU: the meaning as a device is found right, and whatever is wrong is found where it is."""

from __future__ import annotations

import sys
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from lowering.backends.assemble import assemble
from lowering.isa.ldmatrix import LDMATRIX
from lowering.isa.mma import DENSE, MmaInstruction
from lowering.isa.movmatrix import MOVMATRIX
from lowering.isa.sparse import MMA_SP, SparseMma
from lowering.isa.stmatrix import STMATRIX
from lowering.target import target
from property_tests.gpu.probe import device as device_module
from property_tests.gpu.probe.device import Gpu, GpuError, Machine
from property_tests.gpu.probe.kernel import module
from property_tests.gpu.probe.moves import probe_move
from property_tests.gpu.probe.relation import probe
from property_tests.gpu.probe.rows import instructions, probed

from .probe_devices import Altered, FakeDriver

HOPPER = target("sm_90a")
RECORDS: dict[str, Any] = {r.name: r for r in (*DENSE, *MMA_SP)}
MOVES = [r for r in (*LDMATRIX, *STMATRIX, *MOVMATRIX) if not r.instruction.refusal(HOPPER)]
PRODUCTS = [r for r in probed(HOPPER) if isinstance(r, MmaInstruction | SparseMma)]
SMALL = [
    "m8n8k4.f64", "m16n8k4.tf32", "m16n8k8.f16", "m16n8k8.f16.f16.f16.f16", "m16n8k8.bf16", "m8n8k16.s8",
    "m8n8k16.s32.s8.u8.s32", "m8n8k32.u4", "m8n8k128.b1.xor", "m16n8k16.f32.e4m3.e5m2.f32",
    "m8n8k4.col.row.f32.f16.f16.f16", "m8n8k4.row.col.f16.f16.f16.f16", "sp.m16n8k8.tf32", "sp.m16n8k16.f16",
    "sp.ordered.m16n8k32.s8",
]  # fmt: skip

needs_assembler = pytest.mark.skipif(
    sys.platform not in ("linux", "win32"), reason="NVIDIA's libraries are not published for this system"
)


def test_the_plan_is_whole() -> None:
    """Every record without scale factors that sm_90a has, once; of sparse ones one for each selector."""
    names = [r.name for r in probed(HOPPER)]
    assert len(names) == len(set(names)) == len(instructions(HOPPER))
    assert set(names) >= {r.name for r in (*DENSE, *MMA_SP) if not r.instruction.refusal(HOPPER)}
    assert {f"sp.m16n8k16.f16.selector{i}" for i in (1, 2, 3)} <= set(names)
    assert set(names) >= {r.name for r in MOVES}


@needs_assembler
@pytest.mark.parametrize("part", range(4))
def test_every_kernel_assembles(part: int) -> None:
    for instruction in instructions(HOPPER)[part::4]:
        assert assemble(module(instruction, HOPPER), HOPPER, allow_spills=True).registers > 0


@pytest.mark.parametrize("name", SMALL)
def test_maps_are_read_back(name: str) -> None:
    found = probe(RECORDS[name], Machine())
    assert found["right"], found
    for role in "ABCD":
        assert found[role]["elements"] == RECORDS[name].index(role)[0].size


def swapped(record: Any, role: str, places: tuple[tuple[int, int], tuple[int, int]]) -> Any:
    """The record with two elements of one operand's map exchanged; its meaning stays what it was."""

    kind = record.__class__
    right: Any = kind.index

    def index(self: Any, asked: str) -> tuple[Any, ...]:
        found: tuple[Any, ...] = right(self, asked)
        if asked != role or not self.changed:
            return found
        copies: list[Any] = [np.array(x) for x in found]
        for x in copies:
            x[places[0]], x[places[1]] = x[places[1]], x[places[0]]
        return tuple(copies)

    other: Any = type("Wrong", (kind,), {"index": index, "changed": False})
    wrong = other(**{field.name: getattr(record, field.name) for field in fields(record)})
    object.__setattr__(wrong, "changed", True)
    object.__setattr__(wrong, "instruction", record.instruction)  # the device executes the right one
    return wrong


@pytest.mark.parametrize("role", ["A", "B", "C", "D"])
@pytest.mark.parametrize(
    "name", ["m8n8k4.f64", "m16n8k8.f16", "m8n8k16.s8", "m16n8k4.tf32", "m8n8k4.row.row.f32.f16.f16.f16"]
)
def test_a_wrong_map_is_found_where_it_is(name: str, role: str) -> None:
    """Two elements exchanged in one operand's map: that operand is wrong at the two, and all the others are right."""
    record = RECORDS[name]
    last = record.index(role)[0].shape[1] - 1
    places = ((1, 0), (30, last))
    found = probe(swapped(record, role, places), Machine())
    assert not found["right"]
    assert [r for r in "ABCD" if not found[r]["right"]] == [role]
    assert found[role]["wrong"] == 2
    assert [(x["lane"], x["slot"]) for x in found[role]["first"]] == list(places)
    assert [x["read"] for x in found[role]["first"]] == [x["record"] for x in found[role]["first"]][::-1]


@pytest.mark.parametrize("name", ["m16n8k8.f16", "m8n8k32.u4", "sp.m16n8k16.f16"])
@pytest.mark.parametrize("operand", ["A", "B", "D"])
def test_a_device_with_other_maps_is_found(name: str, operand: str) -> None:
    """Two lanes exchange an operand's registers: of A and B before, of D after the product."""

    def exchange(words: Any) -> Any:
        words[:, [3, 9]] = words[:, [9, 3]]
        return words

    found = probe(RECORDS[name], Altered({"out" if operand == "D" else operand: exchange}))
    assert not found["right"]
    assert not found["relation"]["right"]
    assert not found[operand]["right"]


@pytest.mark.parametrize("name", ["sp.m16n8k16.f16", "sp.ordered.m16n8k32.s8"])
def test_other_metadata_is_found(name: str) -> None:
    """Devices that read no metadata, or exchange those of rows 0 and 1."""

    def constant(words: Any) -> Any:
        return np.full_like(words, 0x44444444)

    def exchange(words: Any) -> Any:
        words[:, [0, 4]] = words[:, [4, 0]]
        return words

    for change in (constant, exchange):
        found = probe(RECORDS[name], Altered({"e": change}))
        assert not found["relation"]["right"]
        assert not found["right"]


def test_a_device_that_drops_c_is_found() -> None:
    found = probe(RECORDS["m16n8k8.f16"], Altered({"D": np.zeros_like}))
    assert [role for role in "ABCD" if not found[role]["right"]] == ["C"]


@pytest.mark.parametrize("record", MOVES, ids=lambda r: r.name)
def test_moves(record: Any) -> None:
    found = probe_move(record, Machine(), 4)
    assert found["right"], found

    def exchange(words: Any) -> Any:
        words[:, [3, 9]] = words[:, [9, 3]]
        return words

    operand = {"ldmatrix": "p", "stmatrix": "A"}.get(record.name.split(".")[0], "a")
    wrong = probe_move(record, Altered({operand: exchange}), 4)
    # Lanes beyond the lines give addresses that nobody reads.
    unused = operand == "p" and record.count * record.lines <= 3
    assert wrong["right"] is unused
    assert wrong["map"]["right"] is unused


# --- the GPU's side, with a driver that executes the kernels' PTX here -----------------------------


def text_as_image(ptx: str, *_: Any, **__: Any) -> Any:
    class Image:
        data = ptx.encode() + b"\0"

    return Image


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    monkeypatch.setattr(device_module, "assemble", text_as_image)
    return FakeDriver(HOPPER)


def test_the_gpu_is_named(fake: FakeDriver) -> None:
    gpu = Gpu(fake)
    assert (gpu.card, gpu.target.name, gpu.driver_version) == ("a card", "sm_90a", "13000")


@pytest.mark.parametrize(
    "name",
    [
        "m8n8k4.f64",
        "m16n8k16.f16",
        "m16n8k32.s8",
        "m8n8k4.row.col.f32.f16.f16.f16",
        "sp.m16n8k16.f16.selector2",
    ],
)
def test_kernels_of_products_move_every_word(fake: FakeDriver, name: str) -> None:
    """Through the driver and the kernel's PTX, three warps: what the meaning gives for the same registers."""
    from property_tests.gpu.probe import draw

    record = next(r for r in PRODUCTS if r.name == name)
    values = draw.operands(record, 3, np.random.default_rng(5))
    found = Gpu(fake).run(record.instruction, values)["D"]
    assert np.array_equal(found, Machine().run(record.instruction, values)["D"])
    assert found.shape == (3, 32, sum(o.words for o in record.instruction.operands if o.name == "D"))
    assert not fake.memory, "memory of the device was not freed"


@pytest.mark.parametrize(
    "name", ["ldmatrix.m8n8.x4.trans.b16", "stmatrix.m8n8.x2.b16", "movmatrix.m8n8.trans.b16"]
)
def test_kernels_of_moves_move_every_word(fake: FakeDriver, name: str) -> None:
    record = next(r for r in MOVES if r.name == name)
    found = probe_move(record, Gpu(fake), 2)
    assert found["right"], found
    assert fake.launches == 2


def test_a_failing_driver_is_an_error(fake: FakeDriver) -> None:
    record = RECORDS["m8n8k4.f64"]
    values = {o.name: np.zeros((1, 32, o.words), np.uint32) for o in record.instruction.operands}
    for function in ("cuInit", "cuMemAlloc", "cuLaunchKernel", "cuCtxSynchronize"):
        fake.fails = function
        with pytest.raises(GpuError, match=f"{function} fails: 719"):
            Gpu(fake).run(record.instruction, values)
        assert not fake.memory
    fake.fails, fake.after = "cuModuleLoadData", 1
    gpu = Gpu(fake)
    gpu.run(record.instruction, values)
    with pytest.raises(GpuError, match="cuModuleLoadData fails"):  # the first image loads, the next does not
        gpu.run(RECORDS["m8n8k16.s8"].instruction, values)


def does_nothing(*_: Any) -> tuple[int]:
    return (0,)


def test_a_kernel_that_writes_nothing_is_an_error(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    record = RECORDS["m8n8k4.f64"]
    values = {o.name: np.zeros((1, 32, o.words), np.uint32) for o in record.instruction.operands}
    monkeypatch.setattr(FakeDriver, "cuLaunchKernel", does_nothing)
    with pytest.raises(GpuError, match="a warp wrote nothing"):
        Gpu(fake).run(record.instruction, values)
