"""What a launch takes as an array, and what it refuses: no GPU and no array library is needed to look at one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from lowering.backends.driver import (
    as_device_array,
)
from lowering.backends.driver.carriers import carriers, width_of
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
