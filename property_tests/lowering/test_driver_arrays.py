"""What a launch takes as an array, and what it refuses: no GPU and no array library is needed to look at one."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowering.backends.driver import (
    DeviceArray,
    Operand,
    Operands,
    as_device_array,
    check_overlap,
    common_device,
    dlpack,
)
from lowering.backends.driver.carriers import carriers, width_of
from lowering.backends.driver.dlpack import consume, contiguous
from lowering.dtypes import DTYPES
from property_tests.lowering.driver_fake import Driver, Interface, Tensor, cupy_array, installed
from tilelayout import LayoutError


@pytest.fixture(autouse=True)
def driver() -> Iterator[Driver]:
    with installed(Driver()) as found:
        yield found


@pytest.mark.parametrize(
    "name", ["float64", "float32", "float16", "bfloat16", "int32", "int8", "float8_e4m3fn", "float8_e5m2"]
)
def test_a_torch_tensor_is_read_as_it_is(name: str) -> None:
    x = as_device_array(Tensor(name, (8, 6), (10, 1), 4096, 1), "A", name, rank=2)
    width = DTYPES[name].bits // 8
    assert (x.role, x.pointer, x.shape, x.dtype, x.device, x.stream) == ("A", 4096, (8, 6), name, 1, None)
    assert x.strides == (10 * width, width)
    assert (x.form.low, x.form.high) == (0, 7 * 10 * width + 6 * width)


def test_a_cupy_array_is_read_as_it_is() -> None:
    x = as_device_array(cupy_array("float16", (8, 6), (-32, 2), 8192, 1), "B")
    assert (*x[:2], x.shape, x.strides, x.dtype, x.device, x.library) == (
        "B", 8192, (8, 6), (-32, 2), "float16", 1, "cupy",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("interface", "strides", "dtype"),
    [
        ({}, (24, 4), "float32"),
        ({"strides": (100, 4)}, (100, 4), "float32"),
        ({"strides": None, "typestr": "|i1", "version": 2}, (6, 1), "int8"),
        ({"typestr": "<f2", "shape": (3,)}, (2,), "float16"),
    ],
)
def test_the_interface_of_arrays_is_read(
    interface: dict[str, Any], strides: tuple[int, ...], dtype: str
) -> None:
    pointer = (1 << 40) + 512  # the fake driver's GPU 1
    x = as_device_array(Interface(**interface, data=(pointer, False)), "A")
    assert (x.pointer, x.strides, x.dtype, x.device, x.library) == (pointer, strides, dtype, 1, "interface")


def test_the_stream_of_the_interface_is_kept() -> None:
    assert as_device_array(Interface(stream=7), "A").stream == 7
    assert as_device_array(Interface(stream=None), "A").stream is None


def test_arrays_that_lie_alike_have_one_form() -> None:
    a, b = (as_device_array(Tensor("float32", (4, 6), (6, 1), p), "A") for p in (4096, 8192))
    c = as_device_array(Interface(), "A")
    assert a.form is b.form is c.form
    assert as_device_array(Tensor("float32", (4, 6), (7, 1), 4096), "A").form is not a.form


def test_many_forms_are_forgotten_and_stay_right() -> None:
    for n in range(1, 5000):
        x = as_device_array(Tensor("float32", (n,), (1,), 4096), "A", "float32", rank=1)
        assert (x.shape, x.form.high) == ((n,), 4 * n)


# --- carriers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DTYPES)
def test_carriers_have_the_width_of_what_they_carry(name: str) -> None:
    assert {width_of(c) for c in carriers(name)} == {max(1, DTYPES[name].bits // 8)}


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        ("uint16", "bfloat16"),
        ("int16", "bfloat16"),
        ("uint8", "float8_e5m2"),
        ("uint8", "int4"),
        ("float32", "tfloat32"),
    ],
)
def test_bits_are_taken_where_the_caller_says_what_they_are(found: str, wanted: str) -> None:
    x = Tensor(found, (4, 8), (8, 1), 4096)
    assert as_device_array(x, "A", wanted).dtype == wanted
    assert as_device_array(x, "A").dtype == found
    with pytest.raises(LayoutError, match=rf"A has elements of {found}, the kernel takes float64.*float64"):
        as_device_array(x, "A", "float64")


def test_raw_bytes_of_an_interface_need_a_type() -> None:
    raw = Interface(typestr="<V2")
    assert as_device_array(raw, "A", "bfloat16").dtype == "bfloat16"
    with pytest.raises(LayoutError, match=r"A has elements of void16.*dtype="):
        as_device_array(raw, "A")


@pytest.mark.parametrize("name", ["float16", "float32", "int32"])
def test_bits_do_not_pass_for_types_that_libraries_know(name: str) -> None:
    with pytest.raises(LayoutError, match=name):
        as_device_array(Tensor(f"uint{DTYPES[name].bits}", (4,), (1,), 4096), "A", name)


# --- refusals -----------------------------------------------------------------------------------------------------


class OnTheCPU:
    """An array that only DLPack knows."""

    def __init__(self, kind: int = 1) -> None:
        self.kind = kind

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.kind, 0

    def __dlpack__(self, **options: Any) -> Any:
        raise BufferError("it is gone")


def sparse() -> Tensor:
    x = Tensor("float32", (4,), (1,), 4096)
    x.broken = True
    return x


def negated() -> Tensor:
    x = Tensor("float32", (4,), (1,), 4096)
    x.negated = True
    return x


@pytest.mark.parametrize(
    ("x", "words"),
    [
        (np.zeros((4, 4), np.float32), "numpy.ndarray.*CPU.*kernel.simulate"),
        ([1.0, 2.0], "list.*CPU.*kernel.simulate"),
        (Tensor("float32", (4,), (1,), 4096, -1), r"torch tensor.*CPU.*\.cuda\(\)"),
        (OnTheCPU(), "OnTheCPU.*CPU.*kernel.simulate"),
        (OnTheCPU(3), "pinned memory"),
        (OnTheCPU(2), "DLPack.*it is gone"),
        (object(), "builtins.object|object.*no array"),
        (sparse(), "no plain memory.*strides"),
        (negated(), "negates.*resolve_neg"),
        (Tensor("complex64", (4,), (1,), 4096), "complex64"),
        (Tensor("float8_e4m3fnuz", (4,), (1,), 4096), "float8_e4m3fnuz"),
        (Tensor("bool", (4,), (1,), 4096), "bool"),
        (Tensor("float32", (4,), (1,), 4098), "0x1002, no multiple.*4 bytes"),
        (cupy_array(">f4", (4,), (4,), 4096), ">f4"),
        (cupy_array("f4", (4,), (6,), 4096), "strides of.*not all multiples"),
        (Interface(typestr=">f4"), ">f4"),
        (Interface(typestr="<c8"), "complex64"),
        (Interface(typestr="<f16"), "f"),
        (Interface(typestr="<m8"), "m8"),
        (Interface(mask=object()), "masked"),
        (Interface(stream=0), "stream 0"),
        (Interface(data=...), "lacks.*data"),
        (Interface(shape=...), "lacks.*shape"),
    ],
)
def test_what_is_no_array_for_a_kernel_is_refused_by_role(x: Any, words: str) -> None:
    with pytest.raises(LayoutError, match=rf"(?s)launch: Role.*({words})"):
        as_device_array(x, "Role")


def test_memory_that_is_not_the_gpus_is_refused(driver: Driver) -> None:
    from property_tests.lowering.driver_fake import CUresult

    driver.fails["cuPointerGetAttribute"] = CUresult.CUDA_ERROR_INVALID_VALUE
    with pytest.raises(
        LayoutError, match=r"A lies at 0x1000, which is no memory of a GPU.*CUDA_ERROR_INVALID_VALUE"
    ):
        as_device_array(Interface(), "A")


def test_the_rank_is_checked() -> None:
    with pytest.raises(LayoutError, match=r"B has 2 dimensions \(4, 6\), the kernel takes 3"):
        as_device_array(Tensor("float32", (4, 6), (6, 1), 4096), "B", rank=3)


@pytest.mark.parametrize(
    ("shape", "strides", "words"),
    [
        ((4, 6), (-6, 1), "dimension 0 is negative"),
        ((4, 6), (0, 1), "dimension 0 is zero"),
        ((4, 6), (5, 1), "share bytes"),
        ((4, 6), (1, 1), "share bytes"),
    ],
)
def test_what_is_written_must_have_a_place_for_each_element(
    shape: tuple[int, ...], strides: tuple[int, ...], words: str
) -> None:
    x = Tensor("float32", shape, strides, 4096)
    assert as_device_array(x, "D").shape == shape  # to be read, any strides will do
    with pytest.raises(LayoutError, match=f"D is written.*{words}"):
        as_device_array(x, "D", written=True)


def test_dimensions_of_one_element_may_have_any_stride() -> None:
    x = as_device_array(cupy_array("f4", (1, 6), (-3, 4), 4096), "D", written=True)
    assert x.shape == (1, 6)


def test_read_only_is_for_reading() -> None:
    x = Interface(data=(1 << 12, True))
    assert as_device_array(x, "A").pointer == 1 << 12
    with pytest.raises(LayoutError, match=r"D is written.*read-only"):
        as_device_array(x, "D", written=True)


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


def test_what_interleaves_is_no_overlap() -> None:
    D = at("D", 4096, (8, 8), (16, 1))
    check_overlap(D, [at("A", 4096 + 32, (8, 8), (16, 1)), at("B", 4096 + 512, (8, 8), (16, 1))])
    with pytest.raises(LayoutError, match="B is read"):
        check_overlap(D, [at("A", 4096 + 32, (8, 8), (16, 1)), at("B", 4096 + 464, (8, 8), (16, 1))])


# --- DLPack -------------------------------------------------------------------------------------------------------


@given(
    st.lists(st.integers(1, 4), max_size=3),
    st.sampled_from(["float16", "float32", "int8", "uint16", "float64"]),
)
def test_a_capsule_gives_what_numpy_put_in(shape: list[int], name: str) -> None:
    for x in (
        np.zeros(shape, name),
        np.zeros(shape, name).T,
        np.zeros([2 * n for n in shape], name)[(*(np.s_[::2],) * len(shape), ...)],
    ):
        for options in ({}, {"max_version": (1, 0)}):
            found = consume(x.__dlpack__(**options), "A")
            assert (found.pointer, found.shape, found.strides) == (x.ctypes.data, x.shape, x.strides)
            assert (found.dtype, found.kind, found.read_only) == (name, dlpack.CPU, False)


def test_a_tensor_is_given_back_when_it_is_dropped() -> None:
    class Array(np.ndarray):
        pass

    for options in ({}, {"max_version": (1, 0)}):
        x = np.zeros(100).view(Array)
        alive, found = weakref.ref(x), consume(x.__dlpack__(**options), "A")
        del x
        gc.collect()
        assert alive() is not None
        del found
        gc.collect()
        assert alive() is None


def test_a_capsule_is_consumed_once() -> None:
    capsule = np.zeros(4).__dlpack__()
    kept = consume(capsule, "A")
    with pytest.raises(LayoutError, match=r"A hands over.*used_dltensor"):
        consume(capsule, "A")
    assert kept.shape == (4,)


def test_a_tensor_that_must_not_be_written_says_so() -> None:
    x = np.zeros(4)
    x.flags.writeable = False
    assert consume(x.__dlpack__(max_version=(1, 0)), "A").read_only


def test_elements_that_no_kernel_takes_are_refused() -> None:
    with pytest.raises(LayoutError, match="complex128"):
        as_device_array(OnTheGPU(np.zeros(4, np.complex128)), "A")


class OnTheGPU:
    """A numpy array that says it is on GPU 1, and hands over what says otherwise: types and streams matter here."""

    def __init__(self, x: Any, versions: bool = True) -> None:
        self.x, self.versions, self.asked = x, versions, []

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 1

    def __dlpack__(self, *, stream: Any, **options: Any) -> Any:
        if options and not self.versions:
            raise TypeError("no versions")
        self.asked.append(stream)
        return self.x.__dlpack__(**options)


@pytest.mark.parametrize("versions", [False, True])
@pytest.mark.parametrize(("stream", "asked"), [(None, 1), (0, 1), (9, 9)])
def test_the_producer_is_told_the_stream(versions: bool, stream: int | None, asked: int) -> None:
    x = OnTheGPU(np.zeros((4, 6), np.float16), versions)
    found = as_device_array(x, "A", stream=stream)
    assert x.asked == [asked]
    assert (found.stream, found.library, found.pointer) == (asked, "dlpack", x.x.ctypes.data)


@pytest.mark.parametrize("shape", [(), (3,), (0, 4), (2, 3, 4)])
def test_contiguous_strides_are_numpys(shape: tuple[int, ...]) -> None:
    if 0 not in shape:
        assert contiguous(shape, 4) == np.zeros(shape, np.float32).strides
    assert len(contiguous(shape, 4)) == len(shape)


# --- all at once --------------------------------------------------------------------------------------------------

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
    a = Tensor("float16", (8, 8), (16, 2), 65536)
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
