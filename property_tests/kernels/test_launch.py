"""A kernel's launches, as the driver sees them: no call depends on those before it, whatever was remembered of them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lowering.backends.driver import ParameterBlock
from lowering.kernels import gemm
from lowering.kernels.gemm.built import Built
from lowering.kernels.gemm.config import Config
from lowering.kernels.gemm.kept import Kept, shell_of
from lowering.kernels.gemm.kernel import GemmKernel
from property_tests.lowering.driver_fake import OK, Map, TellingDriver, Tensor, installed
from tilelayout import LayoutError, Undecided

TMA = Config((64, 64, 64), (2, 1), 3, "tma", slots=2)
PARTS = Config((64, 64, 32), (2, 2), 2, "registers", splits=2)
M, N, K = 64, 64, 128

KINDS: dict[str, dict[str, Any]] = {
    "plain": {"B": "column"},
    "C": {"C": "row"},
    "bias": {"bias": "row"},
    "C and bias": {"C": "row", "bias": "row"},
    "column D": {"D": "column"},
    "parts": {"config": PARTS},
    "TMA": {"B": "column", "config": TMA},
    "packed": {"B": "column", "config": replace(TMA, packed="AB")},
    "packed, beside": {"B": "column", "config": replace(TMA, packed="AB", beside=True)},
    "packed, parts": {"config": replace(PARTS, packed="B")},
}
LAUNCHES = {"parts": 2, "packed": 3, "packed, beside": 2, "packed, parts": 3}
"""Kernels of a call, of those that have several."""


class Gpu(TellingDriver):
    """It reads the parameters of whatever kernel it is given; a map is of what it was asked for."""

    def answer(self, name: str, *a: Any) -> tuple[Any, ...]:
        if name == "cuLibraryLoadData":
            self.answers["cuLibraryGetKernel"] = int(a[0])
        if name == "cuTensorMapEncodeTiled":
            return OK, Map(sha256(repr(a).encode()).digest() * 4)
        return super().answer(name, *a)

    def note(self, kernel: int, *more: Any) -> None:
        self.sizes = SIZES[kernel]
        super().note(kernel, *more)


SIZES: dict[int, tuple[int, ...]] = {}
"""Code -> bytes of each parameter of its kernel."""


@pytest.fixture(autouse=True)
def unassembled(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No machine code is made: a kernel's is a number."""
    monkeypatch.setattr(Built, "kept", property(_kept))
    return


@cache
def _kept(built: Built) -> Kept:
    shell = shell_of(built.program)
    number = len(SIZES) + 1
    SIZES[number] = tuple([size for _, size in ParameterBlock(shell).places])
    return Kept(shell, 1024 * number, str(number).encode())


@cache
def made(name: str) -> GemmKernel:
    return gemm("float16", target="sm_90a", **KINDS[name])


def fresh(name: str) -> GemmKernel:
    """The same, of which nothing was launched."""
    k = made(name)
    found = GemmKernel(k.problem, k.target, k.config, k.transposed)
    found._built = k._built
    return found


class Torch(Tensor):
    """A tensor that makes others."""

    last = 0

    def new_empty(self, shape: tuple[int, ...], dtype: str) -> Torch:
        strides = tuple([1] if len(shape) == 1 else [shape[1], 1])
        return Torch(dtype, shape, strides, (1 << 30) + (Torch.last << 20), self.get_device())

    def swapaxes(self, a: int, b: int) -> Torch:
        return Torch(
            str(self.dtype)[6:], self.shape[::-1], self.stride()[::-1], self.data_ptr(), self.get_device()
        )


Torch.__module__ = "torch"


@dataclass(frozen=True)
class Call:
    """What a kernel is called with; places are numbers of rooms, which overlap where they are one, in bytes."""

    m: int = M
    k: int = K
    places: tuple[int, int, int, int] = (0, 1, 2, 3)
    shift: tuple[int, int, int, int] = (0, 0, 0, 0)
    gpu: tuple[int, int, int] = (0, 0, 0)
    lead: tuple[int, int] = (0, 0)
    dtype: str = "float16"
    negated: bool = False
    steps: int = 1
    given: tuple[bool, bool, bool] = (True, True, True)
    as_c: bool = False
    alpha: Any = 1.0
    beta: Any = None
    stream: Any = None
    current: int = 70
    allocator: int = 0

    def arguments(self, kind: dict[str, Any]) -> dict[str, Any]:
        d, c, bias = self.given

        def at(i: int) -> int:
            return (1 << 24) + (self.places[i] << 18) + self.shift[i]

        def matrix(
            i: int, rows: int, columns: int, order: str, gpu: int, lead: int = 0, dtype: str = "float16"
        ) -> Torch:
            strides = (1, rows + lead) if order == "column" else (columns + lead, 1)
            return Torch(
                dtype,
                (rows, columns),
                tuple([s * (self.steps if i == 0 else 1) for s in strides]),
                at(i),
                gpu,
            )

        A = matrix(0, self.m, self.k, "row", self.gpu[0], self.lead[0], self.dtype)
        A.negated = self.negated
        out: dict[str, Any] = {
            "A": A,
            "B": matrix(1, self.k, N, kind.get("B", "row"), self.gpu[1]),
            "D": matrix(2, self.m, N, kind.get("D", "row"), self.gpu[2], self.lead[1]) if d else None,
        }
        if c and "C" in kind:
            out["C"] = matrix(3, self.m, N, "row", 0, self.lead[1])
        if bias and "bias" in kind:
            out["C" if self.as_c else "bias"] = Torch("float16", (N,), (1,), at(3) + (1 << 17), 0)
        return {**out, "alpha": self.alpha, "beta": self.beta, "stream": self.stream}


def few(usual: Any, *others: Any) -> st.SearchStrategy[Any]:
    """Nearly always the usual: calls are alike in most."""
    return st.one_of(*[st.just(usual)] * 4, st.sampled_from(others))


PLAIN = Call()
CALLS = st.builds(
    Call,
    m=few(M, 0, 1, 65),
    k=few(K, 0, 1, 64),
    places=few((0, 1, 2, 3), (0, 1, 2, 2), (4, 1, 2, 3), (0, 1, 0, 3), (0, 2, 2, 3), (5, 6, 7, 7)),
    shift=few((0, 0, 0, 0), (2, 0, 0, 0), (0, 0, 16, 16), (1, 0, 0, 0), (0, 0, 0, 64)),
    gpu=few((0, 0, 0), (0, 1, 0), (1, 1, 1), (-1, 0, 0), (0, 0, 1)),
    lead=few((0, 0), (8, 0), (0, 64), (1, 0)),
    dtype=few("float16", "bfloat16", "uint16"),
    negated=few(False, True),
    steps=few(1, 2),
    given=few((True, True, True), (False, True, True), (True, False, True), (True, True, False)),
    as_c=few(False, True),
    alpha=few(1.0, 2.0, 0.0, -0.0, 1, 2, True, 2 + 0j, "1", None),
    beta=few(None, 1.0, 0.5, 0.0, -0.0, 0, 1, 1 + 0j),
    stream=few(None, 0, 9, -1, True, "x", SimpleNamespace(cuda_stream=9, device_index=0)),
    current=few(70, 71),
    allocator=few(0, 1),
)


def seen(driver: Gpu, kernel: GemmKernel, kind: dict[str, Any], call: Call) -> Any:
    """What the driver is given for a call, or what the caller is told."""
    Torch.last = call.allocator
    sys.modules["torch"]._C.handle = call.current  # type: ignore[attr-defined]
    driver.launches.clear()
    try:
        kernel(**call.arguments(kind))
    except (LayoutError, Undecided) as error:
        return type(error), str(error)
    return list(driver.launches)


@pytest.fixture(scope="module", autouse=True)
def torch() -> Iterator[None]:
    """torch, as far as a launch looks at it: its current stream is what the call says."""
    inner = SimpleNamespace(handle=0)
    inner._cuda_getCurrentRawStream = lambda device: inner.handle + 100 * device
    cuda = SimpleNamespace(
        ExternalStream=lambda handle, device: handle, default_stream=lambda device: 0, stream=nullcontext
    )
    kinds = {name: name for name in ("float16", "float32", "int8")}
    found: Any = SimpleNamespace(_C=inner, cuda=cuda, __spec__=None, **kinds)
    before = sys.modules.get("torch")
    sys.modules["torch"] = found
    yield
    if before is None:
        del sys.modules["torch"]
    else:
        sys.modules["torch"] = before


@pytest.mark.parametrize("name", KINDS)
@given(st.lists(st.one_of(st.just(PLAIN), st.just(PLAIN), CALLS), min_size=2, max_size=12))
@example([PLAIN] * 4)
@example(
    [PLAIN, PLAIN, PLAIN, Call(places=(4, 1, 2, 3)), Call(places=(4, 1, 2, 3)), Call(places=(4, 1, 2, 3))]
)
@example([Call(places=(0, 1, 2, 2))] * 4)  # C is D
@example([Call(shift=(0, 0, 0, 64), lead=(0, 64), places=(0, 1, 2, 2), beta=0.5)] * 4)  # C and D interleave
@example([PLAIN] * 3 + [Call(alpha=1)] + [Call(alpha=True)] + [Call(alpha=1 + 0j)])
@example([Call(k=1, steps=2)] * 3 + [Call(k=1, steps=2, negated=True)])
@example(
    [PLAIN] * 3 + [Call(lead=(8, 0)), Call(lead=(0, 64)), Call(m=65), Call(k=64), Call(dtype="bfloat16")]
)
@example(
    [PLAIN] * 3 + [Call(places=(0, 1, 0, 3)), Call(places=(0, 2, 2, 3)), Call(shift=(1, 0, 0, 0)), PLAIN]
)
@example([Call(beta=1.0)] * 3 + [Call(beta=1), Call(beta=True), Call(beta=1 + 0j), Call(beta=None)])
@example([Call(given=(True, False, True))] * 3 + [Call(given=(True, False, True), as_c=True)])
@example(
    [
        PLAIN,
        Call(places=(4, 1, 2, 3)),
        Call(places=(4, 1, 2, 3), shift=(2, 0, 0, 0)),
        Call(shift=(2, 0, 0, 0)),
    ]
    * 3
)
@example(
    [PLAIN] * 3 + [Call(gpu=(0, 1, 0)), Call(gpu=(0, 0, 1)), Call(gpu=(1, 1, 1)), Call(gpu=(1, 0, 0)), PLAIN]
)
@example([Call(alpha=2.0)] * 3 + [Call(alpha=-0.0), Call(alpha=0.0), Call(alpha=-0.0)])
@example([Call(given=(False, True, True), allocator=i % 2) for i in range(6)])
@example([Call(given=(False, True, True), beta=0.0)] * 3)
@example([PLAIN] * 3 + [Call(given=(True, False, True))] * 3 + [Call(beta=0.0)] * 3)
@settings(max_examples=60, deadline=None)
def test_a_call_does_not_depend_on_those_before_it(name: str, calls: list[Call]) -> None:
    kind = KINDS[name]
    with installed(Gpu()) as driver:
        kernel = fresh(name)
        for call in calls:
            assert seen(driver, kernel, kind, call) == seen(driver, fresh(name), kind, call)


@pytest.mark.parametrize("name", KINDS)
def test_the_same_call_is_one_call_of_the_driver_from_the_third_time_on(name: str) -> None:
    with installed(Gpu()) as driver:
        kernel, kind = fresh(name), KINDS[name]
        for _ in range(2):
            seen(driver, kernel, kind, PLAIN)
        for _ in range(3):
            driver.calls.clear()
            assert seen(driver, kernel, kind, PLAIN)
            assert [c[0] for c in driver.calls] == ["cuCtxGetDevice", "cuLaunchKernelEx"] * len(
                driver.launches
            )
            assert len(driver.launches) == LAUNCHES.get(name, 1)


def test_parts_of_k_are_where_the_call_has_memory_for_them() -> None:
    with installed(Gpu()) as driver:
        kernel = fresh("parts")
        for place in (0, 0, 0, 1, 0, 1):
            first, second = seen(driver, kernel, KINDS["parts"], Call(allocator=place))
            parts = (1 << 30) + (place << 20)
            where = [x for launch in (first, second) for x in launch.parameters if len(x) == 8]
            assert [int.from_bytes(x, "little") for x in where].count(parts) == 2


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    from lowering.kernels.gemm import launch

    monkeypatch.setattr(launch, "_KEPT", 4)
    with installed(Gpu()) as driver:
        kernel, kind = fresh("plain"), KINDS["plain"]
        for i in range(40):
            for _ in range(3):
                call = Call(m=64 + i % 9, places=(10 + i, 1, 2, 3), alpha=1.0 + i)
                assert seen(driver, kernel, kind, call)
            plans = kernel.plans
            assert max(map(len, (plans, plans.ready, plans.once, plans.alike))) <= 4


def test_what_is_forgotten_is_decided_anew() -> None:
    """As after tuning: the next call is cut otherwise."""
    with installed(Gpu()) as driver:
        kernel, kind = fresh("plain"), KINDS["plain"]
        before = [seen(driver, kernel, kind, PLAIN) for _ in range(4)]
        kernel.config = TMA if kernel.built().config != TMA else PARTS
        assert seen(driver, kernel, kind, PLAIN) == before[0]
        kernel.plans.clear()
        assert seen(driver, kernel, kind, PLAIN) != before[0]
