"""Executes the PTX that numba-cuda makes of straight-line kernels, on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from property_tests.lowering.ptx_machine import PtxMachine, parameters

PER_ARRAY = 9  # of two dimensions: meminfo, parent, items, itemsize, data, shape, strides
DATA, SHAPE, STRIDES = 4, 5, 7


def execute(ptx: str, arrays: Sequence[Any], views: Sequence[Any] | None = None) -> list[Any]:
    """The buffers after one CTA has run the entry on copies of `arrays`, matrices in row-major order.

    `views` are what the kernel is told it gets: matrices that begin where the arrays do, with their own strides.
    """
    buffers = [None] * (PER_ARRAY * len(arrays))
    buffers[DATA::PER_ARRAY] = arrays
    machine = PtxMachine(ptx, buffers)
    names = parameters(ptx)
    for i, x in enumerate(views or arrays):
        of_array = names[PER_ARRAY * i : PER_ARRAY * (i + 1)]
        machine.parameters.update(zip(of_array[SHAPE:STRIDES], x.shape, strict=True))
        machine.parameters.update(zip(of_array[STRIDES:], x.strides, strict=True))
    return machine.run()[DATA::PER_ARRAY]
