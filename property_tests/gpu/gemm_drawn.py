"""Problems of the CPU machine's fuzz, each with a kernel of its own, on the GPU: cut as nobody would choose.

The generator, the arrays and what is right are `property_tests.kernels.problems`; here is how they come to a GPU, with
poison around them, and back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from lowering import DispatchError
from lowering.backends.assemble import AssemblerError
from tilelayout import LayoutError

from ..kernels.problems import Case, Placed, arrays, check, draw, reference
from .gemm_guard import WORDS, torch_type
from .gemm_problems import GUARD

TOO_MUCH = ("local memory", "bytes of shared memory, a CTA has", "registers a thread", "registers of each thread",
            "of shared memory each")  # fmt: skip
"""Words of an error for a way to cut that does not fit."""


class RefusedError(Exception):
    """A drawn way to cut that does not fit registers or memory: the kernel says so, and nothing was computed."""


@dataclass
class Carried:
    """An array on the GPU, as it lay in flat memory, between two guards.

    Attributes:
        raw: all bytes.
        given: what a kernel is given.
        before: all bytes as they were.
    """

    raw: Any
    given: Any
    before: Any


def drawn(seed: int, target: str) -> Case:
    return draw(seed, targets=(target,))


def carried(x: Placed, kind: str, device: str) -> Carried:
    size = x.flat.itemsize
    data = torch.from_numpy(np.ascontiguousarray(x.flat).view(np.uint8).copy())
    raw = torch.full((3 * GUARD + data.numel(),), 0xFF, dtype=torch.uint8, device=device)
    start = GUARD + -raw.data_ptr() % GUARD
    raw[start : start + data.numel()] = data.to(device)
    first = start + x.offset * size
    if 0 in x.shape:
        given = torch.empty(x.shape, dtype=torch_type(kind), device=device)
    else:
        reach = sum((n - 1) * s for n, s in zip(x.shape, x.strides, strict=True)) + 1
        words = raw[first : first + reach * size].view(WORDS[size])
        given = words.as_strided(x.shape, x.strides).view(torch_type(kind))
    return Carried(raw, given, raw.clone())


def run_drawn(case: Case, device: str = "cuda") -> float:
    """0, since what is right is decided there.

    Errors: AssertionError for wrong elements, ValueError for a byte that was not to be written, RefusedError.
    """
    placed = arrays(case)
    there = {name: carried(x, case.type_of(name), device) for name, x in placed.items()}
    more = {n: there[n].given if n in there else None for n in ("C", "bias")}
    A, B, D = (there[n].given for n in "ABD")
    try:
        case.kernel(A, B, D, alpha=case.alpha, beta=case.beta, **more)
    except (AssemblerError, LayoutError, DispatchError) as error:
        if case.config is not None and any(words in str(error) for words in TOO_MUCH):
            raise RefusedError(str(error)) from error
        raise
    size = placed["D"].flat.itemsize
    found = there["D"].given.contiguous().view(WORDS[size]).cpu().numpy().view(placed["D"].flat.dtype)
    check(case, found.reshape(case.shapes["D"]), *reference(case, {n: x.array for n, x in placed.items()}))
    for name, x in there.items():
        if name == "D" and x.given.numel():  # put back what was there; then nothing may differ
            size = x.given.element_size()
            now, old = x.given.view(WORDS[size]), like(x.before, x.raw, x.given).view(WORDS[size])
            now.copy_(old)
        if not torch.equal(x.raw, x.before):
            wrong = (x.raw != x.before).nonzero().flatten()
            raise ValueError(
                f"{wrong.numel()} bytes of {name}'s allocation were overwritten, first {wrong[:8].tolist()}"
            )
    return 0.0


def like(other: Any, raw: Any, given: Any) -> Any:
    """The view of another allocation's bytes that `given` is of `raw`'s."""
    size = given.element_size()
    start = given.data_ptr() - raw.data_ptr()
    reach = sum((n - 1) * s for n, s in zip(given.shape, given.stride(), strict=True)) + 1
    words = other[start : start + reach * size].view(WORDS[size])
    return words.as_strided(given.shape, given.stride())
