"""Loading and launching, as a driver sees it; GPUs, contexts, streams; and that all else works without a driver."""

from __future__ import annotations

import ctypes
import struct
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowering.backends import driver as room
from lowering.backends.driver import (
    Frame,
    LoadedKernel,
    ParameterBlock,
    as_device_array,
    current_device,
    device,
    load,
    stream_of,
    wait_for,
)
from lowering.backends.driver.bindings import call, entry_point
from lowering.backends.driver.devices import current
from lowering.errors import DriverError
from lowering.program import Parameter, Program
from property_tests.lowering.driver_fake import (
    CUresult,
    Driver,
    Interface,
    TellingDriver,
    Tensor,
    cupy_array,
    installed,
)
from tilelayout import LayoutError

CODE = b"\x7fELF" + bytes(60) + b"Cuda compilation tools, release 13.5, V13.5.37\0"


@pytest.fixture
def driver() -> Iterator[Driver]:
    with installed(Driver()) as found:
        yield found


# --- without a driver ---------------------------------------------------------------------------------------------


class NoDriver:
    """The bindings where there is no driver: they say so when they are first called."""

    def cuInit(self, flags: int) -> Any:  # CUDA's name
        raise RuntimeError("Failed to dlopen libcuda.so.1\nand more")


def test_without_a_driver_only_launching_fails_and_says_so() -> None:
    with installed(NoDriver()):
        for ask in (
            device,
            current_device,
            lambda: load(CODE, "gemm"),
            room.driver_version,
            lambda: as_device_array(Interface(), "A"),
        ):
            with pytest.raises(
                DriverError,
                match=r"no NVIDIA driver here \(Failed to dlopen libcuda.so.1\); only launching needs one",
            ):
                ask()


def test_without_a_gpu_the_drivers_word_is_given(driver: Driver) -> None:
    driver.fails["cuInit"] = CUresult.CUDA_ERROR_NO_DEVICE
    with pytest.raises(
        DriverError, match=r"no NVIDIA GPU.*CUDA_ERROR_NO_DEVICE \(what error_no_device means\)"
    ) as error:
        device()
    assert error.value.code == 100


def test_without_the_bindings_the_extra_is_named() -> None:
    with installed(None), pytest.raises(ImportError, match=r"tilelayout\[cuda\]"):
        device()  # None in the place of a module is Python's way to say that it cannot be imported


def test_importing_the_room_loads_no_driver_and_no_library() -> None:
    code = (
        "import sys; import lowering.backends.driver; "
        "print(*sorted(m for m in sys.modules if m.split('.')[0] in ('cuda', 'torch', 'cupy', 'numba', 'llvmlite')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr


# --- GPUs and contexts --------------------------------------------------------------------------------------------


def test_a_gpu_is_described(driver: Driver) -> None:
    gpu = device()
    assert (gpu.ordinal, gpu.name, gpu.compute_capability, gpu.multiprocessors) == (
        0,
        "NVIDIA Fake",
        (9, 0),
        100_000,
    )
    assert device(0) is gpu
    assert device(1).ordinal == 1
    with pytest.raises(DriverError, match="no GPU 2: the driver shows 2"):
        device(2)


@pytest.mark.parametrize(
    ("capability", "target"),
    [
        ((7, 5), "sm_75"),
        ((8, 0), "sm_80"),
        ((8, 9), "sm_89"),
        ((9, 0), "sm_90a"),
        ((10, 0), "sm_100a"),
        ((12, 0), "sm_120a"),
    ],
)
def test_code_is_made_for_the_gpus_own_architecture(
    driver: Driver, capability: tuple[int, int], target: str
) -> None:
    driver.capability = capability
    assert device().target.name == target


@pytest.mark.parametrize("capability", [(7, 0), (9, 9), (99, 0)])
def test_an_unknown_architecture_is_refused_with_its_neighbors(
    driver: Driver, capability: tuple[int, int]
) -> None:
    driver.capability = capability
    major, minor = capability
    with pytest.raises(
        DriverError, match=rf"NVIDIA Fake has compute capability {major}\.{minor}: .*nearest known"
    ):
        _ = device().target


def test_the_current_gpu_is_the_contexts_then_torchs(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    driver.current = 1
    assert current_device() == 1
    driver.current = None
    assert current_device() == 0
    torch = type(
        "torch", (), {"cuda": type("cuda", (), {"is_initialized": lambda: True, "current_device": lambda: 1})}
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    assert current_device() == 1


@pytest.mark.parametrize("before", [None, 0, 1])
def test_a_context_is_put_in_place_only_where_another_is(driver: Driver, before: int | None) -> None:
    driver.current = before
    with suppress(KeyError), current(1):
        assert driver.current == 1
        raise KeyError
    assert driver.current == before
    assert len(driver.of("cuCtxPushCurrent")) == len(driver.of("cuCtxPopCurrent")) == (before != 1)


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


# --- launches that are ready made -----------------------------------------------------------------------------------

SHELL = Program("gemm", 4, (), (), (), parameters=(Parameter("n", "s32", -9, 9), Parameter("x", "f64")))


@pytest.fixture
def telling() -> Iterator[TellingDriver]:
    with installed(TellingDriver((4, 8))) as found:
        yield found


def frame_of(n: int, x: float) -> Frame:
    frame = Frame(ParameterBlock(SHELL))
    frame.fill((), (n, x))
    return frame


def parameters(n: int, x: float) -> tuple[bytes, bytes]:
    return struct.pack("i", n), struct.pack("d", x)


@given(
    st.tuples(*[st.integers(1, (1 << 31) - 1)] * 3), st.integers(1, 1024), st.integers(0, (1 << 64) - 1),
    st.integers(-9, 9), st.floats(allow_nan=False), st.integers(0, 232448),
)  # fmt: skip
def test_a_ready_launch_is_the_launch(
    grid: tuple[int, int, int], threads: int, stream: int, n: int, x: float, shared: int
) -> None:
    with installed(TellingDriver((4, 8))) as driver:
        driver.answers["cuDeviceGetAttribute"] = 1 << 30
        kernel, frame = load(CODE, "gemm", shared, 0), frame_of(n, x)
        ready = kernel.prepare(grid, threads, frame, stream)
        arguments = frame.arguments
        del frame  # what is ready holds what it points to
        driver.calls.clear()
        for _ in range(2):
            ready.start()
        assert driver.calls == [("cuCtxGetDevice",), ("cuLaunchKernelEx",)] * 2
        kernel.launch(grid, threads, arguments, stream)
        first, second, third = driver.launches
    assert first == second == third == (4711, grid, (threads, 1, 1), shared, stream, parameters(n, x))


@pytest.mark.parametrize("before", [None, 0])
def test_a_ready_launch_on_another_gpu_switches_for_it(telling: TellingDriver, before: int | None) -> None:
    ready = load(CODE, "gemm", 512, 1).prepare((1, 1, 1), 32, frame_of(1, 2.0))
    seen = []
    telling.calls.clear()
    telling.note = lambda *a: seen.append(telling.current)  # type: ignore[method-assign]
    for now in (before, 1, before):  # what was answered last is no answer
        telling.current = now
        ready.start()
        assert telling.current == now
    assert seen == [1, 1, 1]
    assert len(telling.of("cuCtxPushCurrent")) == len(telling.of("cuCtxPopCurrent")) == 2


@pytest.mark.parametrize("status", [719, 98765])
def test_a_ready_launch_that_fails_says_what_was_launched(telling: TellingDriver, status: int) -> None:
    ready = load(CODE, "gemm", 512).prepare((3, 2, 1), 128, frame_of(1, 2.0))
    telling.fails["cuLaunchKernelEx"] = status  # type: ignore[assignment]
    name = "CUDA_ERROR_LAUNCH_FAILED" if status == 719 else "CUDA error 98765"
    for current_gpu in (0, 1):
        telling.current = current_gpu
        with pytest.raises(
            DriverError, match=rf"gemm on NVIDIA Fake: {name}.*3 x 2 x 1 CTAs of 128"
        ) as error:
            ready.start()
        assert (error.value.code, telling.current) == (status, current_gpu)


def test_threads_start_one_ready_launch_and_ask_for_their_own_context(telling: TellingDriver) -> None:
    ready = load(CODE, "gemm").prepare((1, 1, 1), 32, frame_of(3, 4.0))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: ready.start(), range(100)))
    assert {x.parameters for x in telling.launches} == {parameters(3, 4.0)}
    assert len(telling.launches) == 100


def test_without_addresses_a_ready_launch_goes_through_the_bindings(telling: TellingDriver) -> None:
    telling.functions.clear()
    ready = load(CODE, "gemm").prepare((1, 2, 3), 32, frame_of(3, 4.0), 9)
    ready.start()
    assert [c[0] for c in telling.calls][-2:] == ["cuCtxGetDevice", "cuLaunchKernel"]
    assert telling.launches == [(4711, (1, 2, 3), (32, 1, 1), 0, 9, parameters(3, 4.0))]


def test_stream_0_of_each_thread_is_known_to_the_bindings_alone(
    telling: TellingDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    for said, there in (("1", False), ("0", True), ("", True)):
        entry_point.cache_clear()
        monkeypatch.setenv("CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM", said)
        assert (entry_point("cuLaunchKernelEx") is not None) is there


# --- streams ------------------------------------------------------------------------------------------------------


class Stream:
    """A stream of some library: the attributes that one has."""

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


class Protocol:
    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, 44


class Handle:
    def __int__(self) -> int:
        return 55


@pytest.mark.parametrize(
    ("stream", "handle"),
    [
        (0, 0), (2, 2), (1 << 47, 1 << 47),
        (Stream(cuda_stream=11, device_index=0), 11), (Stream(ptr=22, device_id=-1), 22),
        (Stream(handle=ctypes.c_void_p(33)), 33), (Stream(handle=ctypes.c_void_p(None)), 0),
        (Stream(handle=Handle()), 55), (Protocol(), 44), (Handle(), 55),
    ],
)  # fmt: skip
def test_a_stream_is_given_as_a_handle_or_by_its_library(driver: Driver, stream: Any, handle: int) -> None:
    assert stream_of((as_device_array(Tensor("float32", (4,), (1,), 4096), "A"),), stream) == handle


@pytest.mark.parametrize("stream", [-1, True, 1.5, "0", b"0", object(), Stream()])
def test_what_is_no_stream_is_refused(driver: Driver, stream: Any) -> None:
    with pytest.raises(LayoutError, match=r"launch: .*stream"):
        stream_of((as_device_array(Tensor("float32", (4,), (1,), 4096), "A"),), stream)


def test_a_stream_of_another_gpu_is_refused(driver: Driver) -> None:
    x = as_device_array(Tensor("float32", (4,), (1,), 4096, 1), "A")
    with pytest.raises(LayoutError, match="the stream is one of GPU 0, the arrays lie on GPU 1"):
        stream_of((x,), Stream(cuda_stream=11, device_index=0))


def libraries(monkeypatch: pytest.MonkeyPatch, cupy_takes_a_device: bool = True) -> None:
    """torch's current stream is 70 and the GPU's number, cupy's 80 and the GPU's number."""
    current_stream = staticmethod(lambda device: Stream(cuda_stream=70 + device))
    torch = type(
        "torch", (), {"_C": type("C", (), {}), "cuda": type("cuda", (), {"current_stream": current_stream})}
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    if cupy_takes_a_device:
        get = staticmethod(lambda device=0: Stream(ptr=80 + device))
    else:
        get = staticmethod(lambda: Stream(ptr=80))
    monkeypatch.setitem(
        sys.modules, "cupy", type("cupy", (), {"cuda": type("cuda", (), {"get_current_stream": get})})
    )


def test_without_a_stream_it_is_the_librarys_current_one(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    libraries(monkeypatch)
    t = as_device_array(Tensor("float32", (4,), (1,), 4096, 1), "A")
    c = as_device_array(cupy_array("f4", (4,), (4,), 8192, 1), "B")
    plain, bound = as_device_array(Interface(), "C"), as_device_array(Interface(stream=9), "C")
    assert [stream_of((x, t)) for x in (t, c, plain, bound)] == [71, 81, 0, 9]


def test_an_older_cupy_is_asked_for_the_current_gpu(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    libraries(monkeypatch, cupy_takes_a_device=False)
    assert stream_of((as_device_array(cupy_array("f4", (4,), (4,), 8192, 1), "B"),)) == 80


def test_a_launch_waits_for_what_is_ready_elsewhere_and_for_nothing_else(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    libraries(monkeypatch)
    t = as_device_array(Tensor("float32", (4,), (1,), 4096), "A")
    c = as_device_array(cupy_array("f4", (4,), (4,), 8192), "B")
    plain, bound, legacy = (as_device_array(Interface(stream=s), "C") for s in (None, 9, 1))
    for arrays, stream, waited in (
        ((t, t), 5, []),
        ((t, c), 70, [80]),
        ((c, t), 80, [70]),
        ((t, bound), 70, [9]),
        ((t, bound, c), 70, [9, 80]),
        ((bound, plain), 9, []),
        ((plain, legacy), 0, []),
        ((plain, legacy), 1, []),
        ((plain, legacy), 5, [1]),
    ):
        driver.calls.clear()
        wait_for(arrays, stream)
        assert [a[1] for a in driver.of("cuEventRecord")] == waited
        assert [a[0] for a in driver.of("cuStreamWaitEvent")] == [stream] * len(waited)
        assert len(driver.of("cuEventCreate")) == len(driver.of("cuEventDestroy")) == len(waited)
