"""The arrays of one launch together: that they lie on one GPU, do not overlap, and are checked at each call."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
import pytest

from lowering.backends.driver import (
    DeviceArray,
    Operand,
    Operands,
    as_device_array,
    check_overlap,
    common_device,
)
from property_tests.lowering.driver_fake import Driver, Interface, Tensor, installed
from tilelayout import LayoutError


@pytest.fixture(autouse=True)
def driver() -> Iterator[Driver]:
    with installed(Driver()) as found:
        yield found


def test_arrays_of_two_gpus_are_refused() -> None:
    a, b = (as_device_array(Tensor("float32", (4,), (1,), 4096, i), "AB"[i]) for i in (0, 1))
    assert common_device((b, b)) == 1
    with pytest.raises(LayoutError, match="A lies on GPU 0 and B on GPU 1"):
        common_device((a, b))


# --- overlap ------------------------------------------------------------------------------------------------------


def at(
    role: str, pointer: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: str = "float32"
) -> DeviceArray:
    return as_device_array(Tensor(dtype, shape, strides, pointer), role)


def test_an_output_may_be_c_itself_and_no_part_of_it() -> None:
    D = at("D", 4096, (8, 8), (8, 1))
    check_overlap(D, [at("C", 4096, (8, 8), (8, 1))])
    for c in (
        at("C", 4096 + 4, (8, 8), (8, 1)),
        at("C", 4096, (8, 8), (1, 8)),
        at("C", 4096, (4, 8), (8, 1)),
        at("C", 4096, (8, 8), (8, 1), "float16"),
        at("A", 4096, (8, 8), (8, 1)),
    ):
        with pytest.raises(LayoutError, match=f"D is written and {c.role} is read, and they share memory"):
            check_overlap(D, [c])


def test_where_no_operand_may_be_the_output_none_is() -> None:
    both = at("D", 4096, (8, 8), (8, 1)), at("C", 4096, (8, 8), (8, 1))
    with pytest.raises(LayoutError, match=r"D is written and C is read, and they share memory \(remedy"):
        check_overlap(both[0], [both[1]], None)


def test_what_interleaves_is_no_overlap() -> None:
    D = at("D", 4096, (8, 8), (16, 1))
    check_overlap(D, [at("A", 4096 + 32, (8, 8), (16, 1)), at("B", 4096 + 512, (8, 8), (16, 1))])
    with pytest.raises(LayoutError, match="B is read"):
        check_overlap(D, [at("A", 4096 + 32, (8, 8), (16, 1)), at("B", 4096 + 464, (8, 8), (16, 1))])


# --- at each call -------------------------------------------------------------------------------------------------

GEMM = (Operand("D", "float32", 2, written=True), Operand("A", "float16", 2), Operand("C", "float32", 2))


def torch_streams(monkeypatch: pytest.MonkeyPatch, handle: int) -> None:
    inner = type("C", (), {"_cuda_getCurrentRawStream": staticmethod(lambda device: handle + device)})
    torch = type("torch", (), {"_C": inner})
    monkeypatch.setitem(sys.modules, "torch", torch)


def tensors(d: int = 4096, a: int = 65536, c: int = 131072, device: int = 0) -> tuple[Tensor, ...]:
    return (Tensor("float32", (8, 8), (8, 1), d, device), Tensor("float16", (8, 8), (8, 1), a, device),
            Tensor("float32", (8, 8), (8, 1), c, device))  # fmt: skip


def test_arrays_are_taken_alike_the_first_time_and_later(monkeypatch: pytest.MonkeyPatch) -> None:
    torch_streams(monkeypatch, 70)
    operands = Operands(GEMM)
    first, second = operands.take(tensors()), operands.take(tensors(d=8192, device=1))
    assert (first.pointers, first.device, first.stream) == ((4096, 65536, 131072), 0, 70)
    assert (second.pointers, second.device, second.stream) == ((8192, 65536, 131072), 1, 71)
    assert first.forms is second.forms
    assert operands.take(tensors(), 5).stream == 5
    assert operands.take(tensors(c=4096)).pointers == (4096, 65536, 4096)  # D is C


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"a": 4096 + 128}, "D is written and A is read"),
        ({"c": 4096 + 4}, "D is written and C is read"),
        ({"d": 4098}, "D begins at address 0x1002"),
    ],
)
def test_addresses_are_checked_each_time(
    monkeypatch: pytest.MonkeyPatch, change: dict[str, int], words: str
) -> None:
    torch_streams(monkeypatch, 0)
    operands = Operands(GEMM)
    for _ in range(2):
        with pytest.raises(LayoutError, match=words):
            operands.take(tensors(**change))
        operands.take(tensors())


def test_types_shapes_and_places_are_checked_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    torch_streams(monkeypatch, 0)
    operands = Operands(GEMM)
    operands.take(tensors())
    d, a, c = tensors()
    for arrays, words in (
        ((d, c, c), "A has elements of float32"),
        ((d, Tensor("float16", (8,), (1,), 65536), c), "A has 1 dimensions"),
        ((d, Tensor("float16", (8, 8), (8, 1), 65536, 1), c), "D lies on GPU 0 and A on GPU 1"),
        ((Tensor("float32", (8, 8), (0, 1), 4096), a, c), "D is written, and its stride"),
        ((d, np.zeros((8, 8), np.float16), c), "A is a numpy.ndarray"),
        (tensors(device=-1), "D is a torch tensor"),
    ):
        with pytest.raises(LayoutError, match=words):
            operands.take(arrays)


def test_a_part_of_conjugates_is_refused_also_where_its_like_was_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    torch_streams(monkeypatch, 0)
    operands = Operands(GEMM)
    d, _, c = tensors()
    for strides in ((16, 2), (8, 1)):  # of the imaginary part, and of whatever was made of it
        a = Tensor("float16", (8, 8), strides, 65536)
        for _ in range(2):
            operands.take((d, a, c))
        a.negated = True
        with pytest.raises(LayoutError, match="A is a view whose elements torch negates"):
            operands.take((d, a, c))


def test_two_outputs_may_not_overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    torch_streams(monkeypatch, 0)
    operands = Operands([Operand("D", "float32", 2, written=True), Operand("E", "float32", 2, written=True)])
    d, _, e = tensors()
    operands.take((d, e))
    with pytest.raises(LayoutError, match="D is written and E is read"):
        operands.take((d, d))


def test_libraries_may_be_mixed(monkeypatch: pytest.MonkeyPatch, driver: Driver) -> None:
    """What lies on another library's stream is waited for."""
    torch_streams(monkeypatch, 70)
    d, _, c = tensors()
    taken = Operands(GEMM).take((d, Interface(typestr="<f2", shape=(8, 8), data=(65536, False), stream=9), c))
    assert taken.stream == 70
    (event, stream), (waiting, awaited, flags) = (
        driver.of("cuEventRecord")[0],
        driver.of("cuStreamWaitEvent")[0],
    )
    assert (stream, waiting, awaited, flags) == (9, 70, event, 0)
    assert driver.of("cuEventDestroy") == [(event,)]
