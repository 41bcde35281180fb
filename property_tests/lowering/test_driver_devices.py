"""GPUs and contexts as the driver tells of them; and that all else works without a driver."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from lowering.backends import driver as room
from lowering.backends.driver import (
    as_device_array,
    current_device,
    device,
    load,
)
from lowering.backends.driver.devices import current
from lowering.errors import DriverError
from property_tests.lowering.driver_fake import (
    CUresult,
    Driver,
    Interface,
    installed,
)

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
