"""What a GEMM must give, in float64, and how far a kernel's rounding may take it from that."""

from __future__ import annotations

from typing import Any

import torch

from lowering.dtypes import dtype

from .gemm_guard import torch_type
from .gemm_problems import Case, Spec, result_type, type_of

FUNCTIONS: dict[str, tuple[Any, float]] = {
    "relu": (lambda x: x.clamp(min=0), 1.0),
    "leaky": (lambda x: torch.where(x > 0, x, 0.25 * x), 1.0),
    "square": (lambda x: x * x * 0.125, 0.0),
}
"""The functions of `gemm_problems` on tensors, and the most that they stretch a difference; 0: by their argument."""
DIGITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}
"""Bits of a significand."""
TINIEST = {"float16": 2.0**-24, "bfloat16": 2.0**-133, "float32": 2.0**-149, "float64": 0.0}


def numbers(spec: Spec, case: Case, name: str, shape: tuple[int, ...], made: Any) -> Any:
    """Random elements of a matrix, of its type, by the generator `made`."""
    kind = type_of(spec, name)
    where = made.device
    if dtype(kind).is_integer and name in "AB":
        bits = dtype(kind).bits
        low, high = (0, 1 << bits) if kind.startswith("u") else (-(1 << bits - 1), 1 << bits - 1)
        if case.whole or case_transforms(spec, case):  # sums that float32 holds
            low, high = max(low, -3), 4
        return torch.randint(low, high, shape, generator=made, device=where).to(torch_type(kind))
    if case.whole or dtype(kind).is_integer:
        largest = 1 if spec.options.get("accumulator") == "float16" or kind.startswith("float8") else 2
        return torch.randint(-largest, largest + 1, shape, generator=made, device=where).to(torch_type(kind))
    drawn = torch.randn(shape, generator=made, device=where, dtype=torch.float64)
    return drawn.to(torch_type(kind))


def case_transforms(spec: Spec, case: Case) -> bool:
    """Whether anything but rounding is done to the sums."""
    reads_c = case.beta != 0 and "C" in case.places
    return case.alpha != 1 or reads_c or "bias" in case.places or bool(spec.function)


def expected(spec: Spec, case: Case, values: dict[str, Any]) -> tuple[Any, Any]:
    """The result of D's type and None where every bit is decided; else in float64, with the bound of the error.

    A bound holds (K + 8) roundings of sums whose terms are as large as they are, and one of each later step.
    """
    a, b = (wide(spec, name, values[name]) for name in "AB")
    each = (case.batches or 1, case.M, case.N)  # all of them may share both factors
    sums, terms = (a @ b).expand(each), (a.abs() @ b.abs()).expand(each)
    acc = spec.options.get("accumulator") or ("float64" if spec.types[0] == "float64" else "float32")
    out = result_type(spec)
    # Tensor cores cut their sums off rather than round them: twice the unit, of the fragment and of the chain.
    unit = 2.0 ** (2 - DIGITS[acc])
    alpha, beta = (rounded(x, acc) for x in (case.alpha, 1.0 if case.beta is None else case.beta))
    if case.alpha == 0:
        sums, terms = sums * 0, terms * 0
    result, size = alpha * sums, abs(alpha) * terms * (case.K + 8)
    if "C" in case.places and beta != 0:
        c = beta * wide(spec, "C", values["C"])
        result, size = result + c, size + 8 * c.abs()
    if "bias" in case.places:
        v = wide(spec, "bias", values["bias"]).reshape(-1)
        v = v if spec.options["bias"] == "row" else v[:, None]
        result, size = result + v, size + 8 * v.abs()
    bound = unit * size
    exact = case.whole or (dtype(spec.types[0]).is_integer and out == "int32")
    if spec.function:
        function, steep = FUNCTIONS[spec.function]
        bound = (steep or 0.25 * (result.abs() + bound)) * bound
        result = function(result)
        bound = bound + unit * result.abs() * 4
        exact = exact and spec.function != "square"
    if exact:
        return result.to(torch_type(out)), None
    if out == "int32":
        return result.round().to(torch.int32), None
    return result, bound + 2.0 ** -DIGITS[out] * (result.abs() + bound) + TINIEST[out]


def rounded(x: float, acc: str) -> float:
    """A number as the kernel has it."""
    return x if acc == "float64" else float(torch.tensor(x, dtype=torch.float32))


def wide(spec: Spec, name: str, values: Any) -> Any:
    """Elements in float64, as the tensor cores read them."""
    if type_of(spec, name) == "tfloat32" and name in "AB":
        values = (values.view(torch.int32) & ~0x1FFF).view(torch.float32)
    return values.to(torch.float64)


def compare(spec: Spec, found: Any, wanted: Any, bound: Any) -> float:
    """The largest error as a share of its bound, 0 where every bit is right.

    Errors: ValueError with the first element that is wrong.
    """
    if not found.numel():
        return 0.0
    if bound is None:
        wrong = found.to(torch.float64) != wanted.to(torch.float64)
        share = 0.0
    else:
        error = (found.to(torch.float64) - wanted).abs()
        wrong = ~(error <= bound)  # a NaN is not <= anything
        share = float((error / bound.clamp(min=1e-300)).max())
    if bool(wrong.any()):
        at = tuple(wrong.nonzero()[0].tolist())
        more = f", within {float(bound[at]):.3g}" if bound is not None else ""
        kind = "not bit for bit" if bound is None else "beyond the bound"
        raise ValueError(
            f"{int(wrong.sum())} of {wrong.numel()} elements are wrong ({kind}); the first at {at} is "
            f"{found[at].item()}, not {wanted[at].item()}{more}; NaN: {int(found.to(torch.float64).isnan().sum())}"
        )
    return share
