"""Loading and launching, as a driver sees it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lowering.backends.driver import (
    LoadedKernel,
    load,
)
from lowering.backends.driver.bindings import call
from lowering.errors import DriverError
from property_tests.lowering.driver_fake import (
    CUresult,
    Driver,
    installed,
)

CODE = b"\x7fELF" + bytes(60) + b"Cuda compilation tools, release 13.5, V13.5.37\0"


@pytest.fixture
def driver() -> Iterator[Driver]:
    with installed(Driver()) as found:
        yield found


# --- loading ------------------------------------------------------------------------------------------------------


def test_code_is_loaded_once_for_a_gpu(driver: Driver) -> None:
    first = load(CODE, "gemm", 100_000)
    assert load(bytes(bytearray(CODE)), "gemm", 100_000) is first
    assert load(CODE, "gemm", 100_000, 1) is not first
    assert load(CODE, "gemm", 0) is not first
    assert [a[0] for a in driver.of("cuLibraryLoadData")] == [CODE] * 3
    assert driver.of("cuKernelSetAttribute") == [
        ("CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES", 100_000, "cuLibraryGetKernel handle", gpu)
        for gpu in (0, 1)
    ]
    assert (first.registers, first.local_bytes, first.places) == (40, 1024, ((0, 8), (8, 4), (48, 128)))
    assert "gemm on NVIDIA Fake 0, 40 registers" in repr(first)


def test_too_much_shared_memory_is_refused_with_both_numbers(driver: Driver) -> None:
    with pytest.raises(DriverError, match=r"gemm needs 100001 bytes.*can have 100000"):
        load(CODE, "gemm", 100_001)
    assert not driver.of("cuLibraryLoadData")


@pytest.mark.parametrize("name", ["cuLibraryLoadData", "cuLibraryGetKernel", "cuKernelGetFunction"])
def test_code_that_the_driver_refuses_names_both_versions(driver: Driver, name: str) -> None:
    driver.fails[name] = CUresult.CUDA_ERROR_UNSUPPORTED_PTX_VERSION
    words = r"UNSUPPORTED_PTX_VERSION \(what.*made by CUDA 13\.5, the driver \(of CUDA 13\.0\).*9\.0; update the driver"
    with pytest.raises(DriverError, match=f"{name} of gemm on NVIDIA Fake: .*{words}"):
        load(CODE, "gemm")
    driver.fails.clear()
    assert load(CODE, "gemm").entry == "gemm"  # a failure is not remembered


def test_code_of_an_older_version_is_not_blamed_for_it(driver: Driver) -> None:
    driver.fails["cuLibraryLoadData"] = CUresult.CUDA_ERROR_NO_BINARY_FOR_GPU
    with pytest.raises(
        DriverError, match=r"made by CUDA 12\.9, the driver \(of CUDA 13\.0\) runs it"
    ) as error:
        load(CODE.replace(b"13.5", b"12.9"), "gemm")
    assert "update" not in str(error.value)


def test_an_entry_that_is_not_there_is_named(driver: Driver) -> None:
    driver.fails["cuLibraryGetKernel"] = CUresult.CUDA_ERROR_NOT_FOUND
    with pytest.raises(DriverError, match=r"cuLibraryGetKernel of gemm .*NOT_FOUND.*no kernel of that name"):
        load(CODE, "gemm")


def test_a_driver_without_the_call_is_told_by_its_version(driver: Driver) -> None:
    driver.lacks.add("cuCtxSynchronize")
    with pytest.raises(DriverError, match=r"cuCtxSynchronize: the driver \(of CUDA 13\.0\) does not have it"):
        call("cuCtxSynchronize")


def test_an_older_driver_does_not_tell_the_places(driver: Driver) -> None:
    driver.lacks.add("cuKernelGetParamInfo")
    assert load(CODE, "gemm").places is None


# --- launching ----------------------------------------------------------------------------------------------------


def loaded(driver: Driver, gpu: int = 0) -> LoadedKernel:
    found = load(CODE, "gemm", 512, gpu)
    driver.calls.clear()
    return found


def test_a_launch_is_one_call_beside_the_question_of_the_context(driver: Driver) -> None:
    loaded(driver).launch((3, 2, 1), 128, 4711, 9)
    launch = ("cuLaunchKernel", "cuLibraryGetKernel handle", 3, 2, 1, 128, 1, 1, 512, 9, 4711, 0)
    assert driver.calls == [("cuCtxGetDevice",), launch]


@pytest.mark.parametrize("before", [None, 0])
def test_a_launch_on_another_gpu_than_the_current_one_switches_for_it(
    driver: Driver, before: int | None
) -> None:
    kernel = loaded(driver, 1)
    driver.current = before
    seen = []
    driver.answer, answer = (
        (lambda name, *a: seen.append((name, driver.current)) or answer(name, *a)),
        driver.answer,
    )  # type: ignore[method-assign]
    kernel.launch((1, 1, 1), 32, 4711)
    assert ("cuLaunchKernel", 1) in seen
    assert driver.current == before


def test_a_launch_that_fails_says_what_was_launched(driver: Driver) -> None:
    kernel = loaded(driver)
    driver.fails["cuLaunchKernel"] = CUresult.CUDA_ERROR_LAUNCH_FAILED
    words = (
        r"LAUNCH_FAILED \(what.*3 x 2 x 1 CTAs of 128 threads \(at most 1024\) with 40 registers, 512 bytes"
    )
    for current_gpu in (0, 1):
        driver.current = current_gpu
        with pytest.raises(DriverError, match=f"cuLaunchKernel of gemm on NVIDIA Fake: .*{words}") as error:
            kernel.launch((3, 2, 1), 128, 4711)
        assert (error.value.code, driver.current) == (719, current_gpu)


def test_occupancy_is_asked_for_the_kernels_own_shared_memory(driver: Driver) -> None:
    driver.answers["cuOccupancyMaxActiveBlocksPerMultiprocessor"] = 3
    assert loaded(driver, 1).blocks_per_multiprocessor(256) == 3
    assert driver.of("cuOccupancyMaxActiveBlocksPerMultiprocessor") == [
        ("cuKernelGetFunction handle", 256, 512)
    ]
