"""One problem of the fuzz: run, compared, and every byte around it looked at."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from lowering.dtypes import dtype
from lowering.kernels.gemm import GemmKernel

from .gemm_expect import compare, expected, numbers
from .gemm_guard import WORDS, Guarded
from .gemm_problems import Case, Spec, type_of


def run_case(spec: Spec, kernel: GemmKernel, case: Case, seed: int, device: str) -> float:
    """The largest error as a share of its bound.

    Errors: ValueError for a wrong element, for two launches that differ, for a byte that was not to be written.
    """
    made = torch.Generator(device=device).manual_seed(seed)
    arrays = {
        n: Guarded(n, type_of(spec, n), p, device, case.batches is not None) for n, p in case.places.items()
    }
    if case.in_place:
        arrays["C"] = arrays["D"]
    values = {n: numbers(spec, case, n, shape_of(x), made) for n, x in arrays.items() if n != "D"}
    for name, x in arrays.items():
        unread = (name == "C" and case.beta == 0) or (name in "AB" and case.alpha == 0)
        if name != "D" and not (case.in_place and name == "C") and not unread:  # else NaN, if they can be
            x.fill(values[name])
        else:
            x.before = x.raw.clone()
    wanted, bound = expected(spec, case, values)
    first = launched(kernel, case, arrays, values, device)
    if first.shape != wanted.shape:
        first = first.reshape(wanted.shape)
    share = compare(spec, first, wanted, bound)
    if case.twice:
        again = launched(kernel, case, arrays, values, device)
        if not torch.equal(bits(first), bits(again.reshape(first.shape))):
            raise ValueError("two launches differ")
    check_bytes(case, arrays)
    return share


def shape_of(x: Guarded) -> tuple[int, ...]:
    p = x.place
    return (p.batches, p.rows, p.columns)


def launched(
    kernel: GemmKernel, case: Case, arrays: dict[str, Guarded], values: dict[str, Any], device: str
) -> Any:
    """D's elements after a launch; before it they are poison, or C's."""
    D = arrays["D"]
    D.raw.fill_(D.poison)
    if case.in_place:
        D.fill(values["C"])
    given: dict[str, Any] = {n: arrays[n].array if n in arrays else None for n in ("C", "bias")}
    given |= {"alpha": case.alpha, "beta": case.beta}
    A, B = arrays["A"].array, arrays["B"].array
    if device == "cpu":
        simulated(kernel, case, arrays, given)
        return D.read()
    if case.fresh:
        return kernel(A, B, **given)
    back = kernel(A, B, D.array, **given)
    if back is not D.array:
        raise ValueError("what a call gives is not the D that it was given")
    return D.read()


def bits(x: Any) -> Any:
    return x.view(WORDS[x.element_size()])


def check_bytes(case: Case, arrays: dict[str, Guarded]) -> None:
    for name, x in arrays.items():
        if case.in_place and name == "C":
            continue
        if int(x.touched(name == "D")):
            raise ValueError(x.where(name == "D"))


# --- on the reference machine ----------------------------------------------------------------------


def simulated(kernel: GemmKernel, case: Case, arrays: dict[str, Guarded], given: dict[str, Any]) -> None:
    """The same on the CPU, where memory is guarded by the machine itself."""
    a, b = (as_numpy(arrays[n]) for n in "AB")
    c = as_numpy(arrays["C"]) if given["C"] is not None else None
    bias = as_numpy(arrays["bias"]) if given["bias"] is not None else None
    align = 16
    for name in "ABCD":
        if name in arrays and arrays[name].place.layout is None:
            align = min(align, dtype(arrays[name].kind).bits // 8 * 16)
    found = kernel.simulate(a, b, C=c, bias=bias, alpha=case.alpha, beta=case.beta, alignment=align)
    D = arrays["D"]
    if case.batches is not None:  # where all share both factors the machine's D has one batch
        found = np.broadcast_to(found, shape_of(D))
    words = torch.from_numpy(np.ascontiguousarray(found).view(f"V{D.size}").view(np.uint8).copy())
    if D.words.numel():
        D.words.copy_(words.view(D.words.dtype).reshape(D.words.shape))


def as_numpy(x: Guarded) -> Any:
    """The elements, of numpy's type for theirs, in the order in which they lie."""
    p = x.place
    words = x.read().view(x.words.dtype if p.layout is None else x.words.flat.dtype)
    if p.row_stride == 1 and p.layout is None:
        found = words.swapaxes(-1, -2).contiguous().numpy().swapaxes(-1, -2)
    else:
        found = words.contiguous().numpy()
    found = found.view(dtype(x.kind).numpy) if found.flags.c_contiguous else (
        found.swapaxes(-1, -2).view(dtype(x.kind).numpy).swapaxes(-1, -2)
    )  # fmt: skip
    if x.name == "bias":
        return found.reshape(-1)
    return found if x.array.dim() == 3 else found[0]
