"""Arrays that carry the bits of bfloat16 and of 8-bit floats: simulated as they are launched."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from lowering.backends.driver.carriers import carriers
from lowering.kernels import gemm

from .refusing import refused

CARRIED = [
    (kind, carrier) for kind in ("bfloat16", "float8_e4m3fn", "float8_e5m2") for carrier in carriers(kind)[1:]
]


def numbers(kind: str, *shape: int) -> Any:
    return np.random.default_rng(5).integers(-3, 4, shape).astype(getattr(ml_dtypes, kind))


@pytest.mark.parametrize(("kind", "carrier"), CARRIED)
@pytest.mark.parametrize("order", ["row", "column"])
def test_bits_are_what_they_carry(kind: str, carrier: str, order: str) -> None:
    """Of every operand, in every form that a launch takes; the result is of the kernel's own type."""
    as_bits = carrier.replace("void16", "V2").replace("void8", "V1")
    made = gemm(kind, out=kind, C="row", D=order, bias="row", target="sm_90a")
    a, b, c, bias = (numbers(kind, *shape) for shape in ((20, 32), (32, 24), (20, 24), (24,)))
    wanted = made.simulate(a, b, C=c, bias=bias)
    assert wanted.dtype == a.dtype
    assert (wanted.astype(float) != 0).any()
    found = made.simulate(a.view(as_bits), b.view(as_bits), C=c.view(as_bits), bias=bias.view(as_bits))
    assert found.dtype == a.dtype
    assert found.tobytes() == wanted.tobytes()
    mixed = made.simulate(a, b.view(as_bits)[:, ::-1], C=c, bias=bias.view(as_bits))
    assert mixed.tobytes() == made.simulate(a, b[:, ::-1], C=c, bias=bias).tobytes()


def test_bits_of_another_byte_order_and_none_at_all() -> None:
    made = gemm("bfloat16", target="sm_80")
    a, b = numbers("bfloat16", 20, 32), numbers("bfloat16", 32, 24)
    big = a.view(np.uint16).astype(">u2")
    np.testing.assert_array_equal(made.simulate(big, b), made.simulate(a, b))
    assert made.simulate(big[:0], b).shape == (0, 24)


def test_integers_of_another_width_are_no_bits() -> None:
    a = numbers("bfloat16", 20, 32)
    for wide in (np.uint8, np.int32, np.int64, bool):
        refused(
            lambda kind=wide: gemm("bfloat16", target="sm_80").simulate(a.astype(float).astype(kind), a.T),
            f"A has dtype {np.dtype(wide)}", "convert it to ml_dtypes.bfloat16",
        )  # fmt: skip
    refused(
        lambda: gemm("float16", target="sm_80").simulate(a.view(np.uint16), a.T.astype(np.float16)),
        "A has dtype uint16, tile A holds float16", "A.view(numpy.float16) of what holds bits",
    )  # fmt: skip
