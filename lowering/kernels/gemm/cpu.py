"""A kernel on arrays of numpy: checked and converted, then simulated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tilelayout import LayoutError
from tilelayout.parts import as_integer

from ...dtypes import dtype
from ...tile import Tile
from .built import Built
from .config import Config
from .operands import SWAPPED
from .shapes import Shaped
from .simulate import MULTIPROCESSORS, run

if TYPE_CHECKING:
    from .kernel import GemmKernel


def simulate(
    kernel: GemmKernel,
    A: Any,
    B: Any,
    C: Any,
    bias: Any,
    alpha: float,
    beta: float | None,
    config: Config | None,
    alignment: int,
    numerics: str,
    schedule: int,
) -> Any:
    """See `GemmKernel.simulate`."""
    has_c, beta = kernel.check_operands(C, bias, beta, alpha)
    alpha = float(alpha)
    operands = {"A": A, "B": B, "C": C if has_c else None, "bias": bias}
    user = {name: _array(name, x) for name, x in operands.items() if x is not None or name in "AB"}
    _check(kernel, user, config, alignment)
    schedule = as_integer(schedule, "gemm", "schedule")  # type: ignore[assignment]
    p = kernel.problem
    types = {m.name: m.dtype for m in p.matrices} | {"bias": p.D.dtype}
    arrays = {name: _converted(name, x, types[_own(kernel, name)]) for name, x in user.items()}
    shape = (*np.broadcast_shapes(arrays["A"].shape[:-2], arrays["B"].shape[:-2]), *_result(arrays))
    arrays["D"] = np.zeros(shape, dtype(p.D.dtype).numpy)
    order = {m.name: m for m in p.matrices}
    lying = {**user, "D": arrays["D"]}
    given = kernel.internal({n: _shaped(x, alignment) for n, x in lying.items()})
    mine = {
        _own(kernel, n): x if n == "bias" or not kernel.transposed else x.swapaxes(-1, -2)
        for n, x in arrays.items()
    }
    given = {n: _lying(given[n], order[n].contiguous) if n != "bias" else _vector(given[n]) for n in given}
    cut = kernel if config is None else type(kernel)(p, kernel.target, config, kernel.transposed)
    built, found = cut.for_call(given, alpha, has_c, MULTIPROCESSORS)
    if found.empty:
        return arrays["D"]
    out = run(built, mine, found, alpha, beta, numerics=numerics, schedule=schedule)
    return out.swapaxes(-1, -2) if kernel.transposed else out


def _array(name: str, x: Any) -> Any:
    if x is None:
        raise LayoutError("gemm", f"{name} is None", "pass an array of numpy")
    try:
        return np.asarray(x)
    except (TypeError, ValueError) as error:
        raise LayoutError("gemm", f"{name} is no array of numpy: {error}", "pass one") from None


def _check(kernel: GemmKernel, user: Mapping[str, Any], config: Any, alignment: Any) -> None:
    """Refuse operands that are no matrices, and what is no way to cut and no alignment."""
    rank = 3 if kernel.problem.batched else 2
    shapes = {name: x.shape for name, x in user.items()}
    for name, shape in shapes.items():
        if name != "bias" and len(shape) != rank:
            what = "a batch of matrices" if rank == 3 else "a matrix"
            raise LayoutError(
                "gemm",
                f"{name} has {len(shape)} dimensions {shape}, {what} has {rank}",
                _rank_remedy(name, shape, rank),
            )
    first = [shapes[name][0] for name in ("A", "B")]
    if rank == 3 and first[0] != first[1] and 1 not in first:
        raise LayoutError("gemm", f"A has {first[0]} batches and B {first[1]}", "as many, or 1 of either")
    if config is not None and not isinstance(config, Config):
        raise LayoutError("gemm", f"config={config!r}", "a Config, or leave it out")
    if type(alignment) is not int or alignment not in (1, 2, 4, 8, 16):
        raise LayoutError("gemm", f"alignment={alignment!r}", "1, 2, 4, 8 or 16 bytes")


def _rank_remedy(name: str, shape: tuple[int, ...], rank: int) -> str | None:
    if len(shape) == rank + 1:
        return "make the kernel with batched=True"
    return f"{name}[None], a batch of one" if len(shape) == rank - 1 == 2 else None


def _own(kernel: GemmKernel, name: str) -> str:
    return SWAPPED.get(name, name) if kernel.transposed else name


def _result(arrays: dict[str, Any]) -> tuple[int, int]:
    return arrays["A"].shape[-2], arrays["B"].shape[-1]


def _carried(x: Any, kind: str) -> Any:
    """What carries the bits of a type, as a launch takes it, as an array of that type; others as they are."""
    from ...backends.driver.carriers import carriers

    held = dtype(kind).numpy
    if x.dtype.name not in carriers(kind) or x.dtype == held:
        return x
    return x.astype(x.dtype.newbyteorder("=")).view(held)


def _converted(name: str, x: Any, kind: str) -> Any:
    """An array of the kernel's type: of its own, of its bits, or of a wider one that is rounded to it."""
    from tilelayout import S, TileLayout

    from ...backends.reference import as_operand

    x = _carried(x, kind)
    if x.size == 0:  # there are no tiles of it; its type is judged all the same
        some = np.ones((1,) * x.ndim, x.dtype)
        as_operand(some, Tile(name, some.shape, kind, TileLayout(S[some.shape]), "global"), name, "gemm")
        return np.zeros(x.shape, dtype(kind).numpy)
    return as_operand(x, Tile(name, x.shape, kind, TileLayout(S[x.shape]), "global"), name, "gemm")


def _shaped(x: Any, alignment: int) -> Shaped:
    whole = all(s % x.itemsize == 0 for s in x.strides)
    steps = tuple([s // x.itemsize if whole else 0 for s in x.strides])
    return Shaped(x.shape, steps, alignment)


def _vector(x: Shaped) -> Shaped:
    return Shaped(x.shape, (1,), x.address)


def _lying(x: Shaped, contiguous: int) -> Shaped:
    """As it lies where that is in the kernel's order, packed in that order otherwise: flat memory is made anew."""
    c = contiguous - 2
    other = -3 - c
    if x.strides[c] == 1 and x.strides[other] >= max(1, x.shape[c]) and min(x.strides) >= 0:
        return x
    strides = [0] * len(x.shape)
    strides[c], strides[other] = 1, max(1, x.shape[c])
    if len(x.shape) == 3:
        strides[0] = x.shape[-1] * x.shape[-2]
    return Shaped(x.shape, tuple(strides), x.address)


__all__ = ["Built", "simulate"]
