"""f16 products on the float32 units: how GPUs without Volta's quadpairs run its ``mma.sync.m8n8k4``.

Measured on an H200, by property_tests/gpu/probe.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .record import Model


def float32_chain(a: Any, b: Any, c: Any, model: Model) -> Any:
    """``c [..., M, N]`` after the steps of the model, each operation rounded to float32, the end to the accumulator.

    A step adds its products to one another, k rising, and then their sum to the total.  That begins with C; if C is
    `separate`, with +0 (so that products of -0 and a C of -0 give +0), and is added to C at the end.  A product of two
    f16 is a float32.  float64 holds the sum of two float32 well enough to be rounded again (Figueroa 1995).
    """
    with np.errstate(over="ignore", invalid="ignore"):
        total = np.zeros_like(c) if model.separate else c
        for first, *others in model.steps:
            products = _product(a, b, first)
            for k in others:
                products = _rounded(products + _product(a, b, k))
            total = _rounded(total + products)
        return _rounded(_rounded(total + c) if model.separate else total, model.accumulator)


def _product(a: Any, b: Any, k: int) -> Any:
    return a[..., :, k, None] * b[..., k, None, :]


def _rounded(values: Any, element: str = "float32") -> Any:
    return values.astype(element).astype(np.float64)
