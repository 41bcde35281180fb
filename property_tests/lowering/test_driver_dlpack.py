"""Arrays that another library hands over as a DLPack capsule: what is read, who owns it, which stream is said."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowering.backends.driver import as_device_array, dlpack
from lowering.backends.driver.dlpack import consume, contiguous
from property_tests.lowering.driver_fake import Driver, installed
from tilelayout import LayoutError


@pytest.fixture(autouse=True)
def driver() -> Iterator[Driver]:
    with installed(Driver()) as found:
        yield found


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
