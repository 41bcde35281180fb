"""`matmul`: which kernel it takes for arrays as they lie, and what it refuses.  Arrays and driver are stand-ins."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lowering
from lowering.backends.driver import as_device_array
from lowering.isa import COPY
from lowering.kernels import GemmKernel
from lowering.kernels.gemm.shapes import Shaped
from lowering.kernels.matmul import matmul, order_of
from property_tests.lowering.driver_fake import Driver, Interface, Tensor, installed
from tilelayout import LayoutError

front = importlib.import_module("lowering.kernels.matmul")
"""The module, whose name in its package is the function's."""

Call = tuple[GemmKernel, dict[str, Any], dict[str, Any]]


class Array(Tensor):
    """A torch tensor that can be indexed."""

    def __getitem__(self, index: Any) -> Array:
        shape, strides = list(self.shape), list(self.stride())
        if index is None:
            shape, strides = [1, *shape], [shape[0] * strides[0], *strides]
        elif index == 0:
            shape, strides = shape[1:], strides[1:]
        else:
            assert index == (slice(None), 0)
            shape, strides = shape[:1], strides[:1]
        name = str(self.dtype).removeprefix("torch.")
        return Array(name, tuple(shape), tuple(strides), self.data_ptr(), self.get_device())


Array.__module__ = "torch"
_NEXT = iter(range(1 << 20, 1 << 30, 1 << 12))


def array(
    dtype: str, shape: tuple[int, ...], order: str = "row", strides: tuple[int, ...] | None = None
) -> Array:
    """Packed, or with the given strides."""
    if strides is None:
        *outer, m, n = shape
        inner = (n, 1) if order == "row" else (1, m)
        strides = (*[m * n] * len(outer), *inner)
    return Array(dtype, shape, strides, next(_NEXT))


def shaped(x: Array) -> Shaped:
    return Shaped(tuple(x.shape), tuple(x.stride()), x.data_ptr())


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Call]]:
    """Kernels that are called, with their arrays and what they would be launched with."""
    seen: list[Call] = []

    def call(self: GemmKernel, A: Any, B: Any, D: Any = None, *, C: Any = None, bias: Any = None,
             alpha: float = 1.0, beta: float | None = None, stream: Any = None) -> Any:  # fmt: skip
        has_c, _ = self.check_operands(C, bias, beta)
        order = "column" if self.transposed else "row"
        outer = (max(A.shape[0], B.shape[0]),) if len(A.shape) == 3 else ()
        out = D if D is not None else array("any", (*outer, A.shape[-2], B.shape[-1]), order)
        given = {"A": A, "B": B, "C": C if has_c else None, "bias": bias, "D": out}
        internal = self.internal({n: None if x is None else shaped(x) for n, x in given.items()})
        built, found = self.for_call(internal, alpha, has_c, 132)  # refuses arrays that the kernel is not for
        seen.append((self, given, {"found": found, "config": built.config, "stream": stream}))
        return out

    monkeypatch.setattr(GemmKernel, "__call__", call)
    monkeypatch.setattr(front, "_CHOICES", {})
    monkeypatch.setattr(front, "_KERNELS", {})
    with installed(Driver()):
        yield seen


@pytest.mark.parametrize("a", ["row", "column"])
@pytest.mark.parametrize("b", ["row", "column"])
@pytest.mark.parametrize("d", ["row", "column", None])
def test_the_kernel_is_for_the_arrays_orders(calls: list[Call], a: str, b: str, d: str | None) -> None:
    out = None if d is None else array("float16", (64, 48), d)
    result = lowering.matmul(array("float16", (64, 32), a), array("float16", (32, 48), b), out)
    (kernel, given, _) = calls[0]
    assert f"float16 {a} x float16 {b} -> float16 {d or 'row'} for sm_90a" in repr(kernel)
    assert given["D"] is result
    assert out is None or out is result


def test_a_kernel_is_made_once(calls: list[Call], monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    real = front.gemm

    def counting(*a: Any, **k: Any) -> GemmKernel:
        made.append(k)
        return real(*a, **k)

    monkeypatch.setattr(front, "gemm", counting)
    for m in (16, 32, 16, 64):
        matmul(array("float16", (m, 32)), array("float16", (32, 16)))
    assert len(made) == 1
    matmul(array("float16", (16, 32)), array("float16", (32, 16), "column"))
    matmul(array("float16", (16, 32)), array("float16", (32, 16)), bias=array("float16", (16,), strides=(1,)))
    matmul(array("float16", (16, 32)), array("float16", (32, 16)), out_dtype="float32")
    assert len(made) == 4
    assert len({id(kernel) for kernel, _, _ in calls}) == 4


def test_everything_is_passed_on(calls: list[Call]) -> None:
    a, b = array("bfloat16", (40, 24)), array("bfloat16", (24, 16), "column")
    c, d, v = (
        array("float32", (40, 16), "column"),
        array("float32", (40, 16)),
        array("float32", (16,), strides=(1,)),
    )
    same = COPY["f32"]
    assert matmul(a, b, d, C=c, bias=v, alpha=2.0, beta=0.5, epilogue=same, stream=7) is d
    kernel, given, more = calls[0]
    p = kernel.problem
    assert (p.D.dtype, p.C and p.C.order, p.bias, p.function is not None) == (
        "float32",
        "column",
        "row",
        True,
    )
    assert (given["A"], given["B"], given["C"], given["bias"]) == (a, b, c, v)
    assert more["stream"] == 7


def test_a_batch_and_a_matrix_go_together(calls: list[Call]) -> None:
    matmul(array("float16", (3, 16, 32)), array("float16", (32, 24)))
    matmul(array("float16", (16, 32)), array("float16", (3, 32, 24), "column"))
    matmul(array("float16", (3, 16, 32)), array("float16", (3, 32, 24)), array("float16", (3, 16, 24)))
    assert [(x["A"].shape, x["B"].shape) for _, x, _ in calls] == [
        ((3, 16, 32), (1, 32, 24)), ((1, 16, 32), (3, 32, 24)), ((3, 16, 32), (3, 32, 24)),
    ]  # fmt: skip
    assert [(m["found"].batches, m["found"].batch["A"] == 0) for _, _, m in calls] == [
        (3, False),
        (3, True),
        (3, False),
    ]


@pytest.mark.parametrize(
    ("shape", "strides", "along", "taken"),
    [((24,), (1,), "row", (24,)), ((1, 24), (24, 1), "row", (24,)), ((16, 1), (1, 1), "column", (16,))],
)
def test_a_bias_by_its_shape(
    calls: list[Call], shape: tuple[int, ...], strides: tuple[int, ...], along: str, taken: tuple[int, ...]
) -> None:
    matmul(
        array("float16", (16, 32)), array("float16", (32, 24)), bias=array("float16", shape, strides=strides)
    )
    kernel, given, _ = calls[0]
    assert kernel.problem.bias == along
    assert given["bias"].shape == taken


# --- orders ---------------------------------------------------------------------------------------

EXTENT = st.sampled_from([0, 1, 1, 2, 7, 16])


@given(st.tuples(EXTENT, EXTENT), st.booleans(), st.integers(0, 9), st.integers(0, 50), st.data())
@settings(max_examples=200)
def test_an_order_is_found_where_a_kernel_reads_the_array(
    shape: tuple[int, int], column: bool, gap: int, odd: int, data: st.DataObject
) -> None:
    """Strides of an extent of one are anything; elsewhere one is 1, and the other has a gap."""
    m, n = shape
    plain = (1, m + gap) if column else (n + gap, 1)
    free = [extent <= 1 and data.draw(st.booleans()) for extent in shape]
    strides = tuple([odd if any_ else s for any_, s in zip(free, plain, strict=True)])
    with installed(Driver()):
        form = as_device_array(array("float16", shape, strides=strides), "A").form
    order = order_of("A", form)
    contiguous, other = (1, 0) if order == "row" else (0, 1)
    assert shape[contiguous] <= 1 or strides[contiguous] == 1
    # The other dimension's stride is read: it is never 1 beside a longer contiguous one that it could have been.
    assert shape[contiguous] >= shape[other] or not (shape[other] <= 1 or strides[other] == 1)


def test_edges_lie_in_the_order_of_their_length(calls: list[Call]) -> None:
    for shape, strides, order in [
        ((1, 64), (64, 1), "row"), ((1, 64), (1, 1), "row"), ((64, 1), (1, 1), "column"), ((64, 1), (1, 64), "column"),
        ((64, 1), (8, 1), "row"), ((1, 64), (9, 8), "column"), ((1, 1), (5, 7), "row"),
    ]:  # fmt: skip
        assert order_of("A", as_device_array(array("float16", shape, strides=strides), "A").form) == order
    matmul(array("float16", (1, 64)), array("float16", (64, 1)))
    _, _, more = calls[0]
    assert more["config"].feed != "registers"  # neither is stepped along a stride of 2 bytes


# --- types ----------------------------------------------------------------------------------------


def test_float32_is_refused_until_it_may_lose_bits(calls: list[Call]) -> None:
    a, b = array("float32", (16, 32)), array("float32", (32, 16))
    with pytest.raises(LayoutError, match=r'A is float32, .*13 bits.*dtype="tfloat32"'):
        matmul(a, b)
    with pytest.raises(LayoutError, match="B is float32"):
        matmul(array("float16", (16, 32)), b)
    with pytest.raises(LayoutError, match="A is float32"):
        matmul(a, b, dtype="float32")
    matmul(a, b, dtype="tfloat32")
    assert (calls[0][0].problem.A.dtype, calls[0][0].problem.D.dtype) == ("tfloat32", "float32")


def test_types_that_arrays_do_not_say(calls: list[Call]) -> None:
    a, b = array("uint8", (16, 32)), array("uint8", (32, 16))
    matmul(a, b)
    matmul(a, b, dtype="float8_e4m3fn")
    matmul(a, b, dtype=("float8_e4m3fn", "float8_e5m2"), out_dtype=np.float32)
    matmul(a, b, dtype=("torch.float8_e4m3fn", "torch.float8_e4m3fn"))
    found = [(k.problem.A.dtype, k.problem.B.dtype, k.problem.D.dtype) for k, _, _ in calls]
    assert found == [
        ("uint8", "uint8", "int32"),
        ("float8_e4m3fn", "float8_e4m3fn", "float16"),
        ("float8_e4m3fn", "float8_e5m2", "float32"),
        ("float8_e4m3fn", "float8_e4m3fn", "float16"),
    ]
    with pytest.raises(LayoutError, match="one type, or a pair"):
        matmul(a, b, dtype=("uint8",))


# --- refusals -------------------------------------------------------------------------------------

A, B = ("float16", (16, 32)), ("float16", (32, 24))


def test_arrays_on_the_cpu_are_refused_with_what_takes_them(calls: list[Call]) -> None:
    with pytest.raises(LayoutError, match=r"A is a numpy array.*GemmKernel\.simulate"):
        matmul(np.zeros((4, 4), np.float16), np.zeros((4, 4), np.float16))
    with pytest.raises(LayoutError, match=r"B is a numpy array"):
        matmul(array(*A), np.zeros((32, 4), np.float16))
    with pytest.raises(LayoutError, match=r"A is a list.*simulate"):
        matmul([[1.0]], array(*B))


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        (array("float16", (32,), strides=(1,)), array(*B), r"A has 1 dimensions .*A\[None, :\]"),
        (array(*A), array("float16", (32,), strides=(1,)), r"B has 1 dimensions .*B\[:, None\]"),
        (
            array("float16", (2, 2, 16, 32), strides=(1024, 512, 32, 1)),
            array(*B),
            r"merge the dimensions .*reshape",
        ),
        (
            array("float16", (16, 32), strides=(64, 2)),
            array(*B),
            r"strides of \(64, 2\) elements, .*A\.contiguous",
        ),
        (array(*A), array("bfloat16", (32, 24)), r"float16 x bfloat16"),
        (array(*A), array("float16", (31, 24)), r"B is \(31, 24\), \(32, 24\) is needed"),
        (array("int16", (16, 32)), array("int16", (32, 24)), "int16"),
    ],
)
def test_what_is_no_product_is_refused(calls: list[Call], x: Any, y: Any, words: str) -> None:
    with pytest.raises(LayoutError, match=words):
        matmul(x, y)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"out": array("float16", (2, 16, 24))}, r"out is \(2, 16, 24\), the result is a matrix"),
        ({"C": array("float16", (1, 16, 24))}, r"C is \(1, 16, 24\)"),
        ({"out": array("float16", (16, 24), strides=(48, 2))}, "out is .*neither of its last two is 1"),
        ({"out": array("float16", (16, 25))}, r"D is \(16, 25\), \(16, 24\) is needed"),
        ({"out": array("float16", (16, 24)), "out_dtype": "float32"}, "out has elements of float16"),
        ({"bias": array("float16", (16,), strides=(1,))}, r"bias is \(16,\).*\(24,\) is added to every row"),
        ({"bias": array("float16", (24, 1), strides=(1, 1))}, r"bias is \(24, 1\)"),
        ({"beta": 2.0}, "beta = 2.0 without C"),
        ({"epilogue": 3}, "epilogue=3"),
    ],
)
def test_what_does_not_go_with_the_product_is_refused(
    calls: list[Call], more: dict[str, Any], words: str
) -> None:
    with pytest.raises(LayoutError, match=words):
        matmul(array(*A), array(*B), **more)


def test_an_array_of_an_unknown_library_needs_a_place_for_the_result() -> None:
    x = Interface(shape=(16, 16), typestr="<f2")
    with installed(Driver()), pytest.raises(LayoutError, match="pass D"):
        matmul(x, x)
