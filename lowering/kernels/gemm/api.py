"""`gemm`: a kernel for types, orders and an epilogue."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tilelayout import LayoutError, TileLayout

from ...dtypes import dtype as element_type
from ...isa.convert import PACK, packing, unpacking
from ...isa.record import Instruction
from ...target import Target
from ...target import target as as_target
from ..epilogue_spec import Epilogue
from .config import Config
from .kernel import GemmKernel
from .numbers import Extents, check_limits
from .operands import flipped, is_extents, matrix
from .problem import ACCUMULATORS, OUTPUTS, Problem
from .stages import record_of


def gemm(
    dtype: Any,
    *,
    out: Any = None,
    A: Any = "row",
    B: Any = "row",
    C: Any = None,
    D: Any = "row",
    bias: str | None = None,
    epilogue: Any = None,
    batched: bool = False,
    accumulator: Any = None,
    target: Any = None,
    config: Config | None = None,
    shape: tuple[int, int, int] | None = None,
) -> GemmKernel:
    """A kernel for ``D = epilogue(alpha * A @ B + beta * C + bias)``; extents, strides and numbers come at each call.

    Args:
        dtype: of A and B, or a pair of types: float16, bfloat16, tfloat32 (float32 arrays of which the tensor cores
            drop the low 13 bits), float64, int8, uint8, float8_e4m3fn, float8_e5m2.
        out: type of C, D and the bias; by default that of A, float32 of tfloat32, int32 of integers, float16 of 8-bit
            floats.
        A, B, C, D: how each lies: "row" (the last dimension contiguous), "column" (the first), with any leading
            dimension; or, for A, B and C, a strided `TileLayout` on memory, of the extents in `shape`, which is copied
            by what its strides and offset are aligned for.  C None: none is added.
        bias: "row" for a vector along N that is added to every row, "column" for one along M.
        epilogue: a Python function of one number, done to each element before it is rounded: arithmetic, comparisons,
            `math` but for sin, cos and tan; compiled into the kernel.  Or an instruction with one result and one
            operand, made for this target or one before it.
        batched: whether arrays have a batch as their first dimension.
        accumulator: the type that products are added up in: float32, float64, int32 (the default for the type), or
            float16 where the tensor cores have that.
        target: the architecture, e.g. "sm_90a"; by default that of the current GPU.
        config: how to cut it; by default chosen for each call, or what `GemmKernel.tune` has measured.  A call that
            reads no factor (alpha or K is 0) is fed by registers whatever it says: the other feeds fill a stage ahead.
        shape: (M, N, K) of the matrices that layouts place, and only with those: other extents come at each call.

    alpha, beta, C, the bias and the function work on float32, on float64 for float64, each step rounded; what a
    function makes of NaN and infinities is what its PTX does: ``max(x, 0.0)`` of a NaN is 0, ``max(x, 0)`` keeps it.
    Results round to nearest, halves to even, of tfloat32 away from zero.  Integers saturate, and NaN becomes 0.

    Sums of integers are int32 and wrap beyond: none does up to K = 33025 for uint8 by uint8, 65793 for uint8 by int8,
    131071 for int8 by int8.  Those that stay int32 are exact, with alpha, beta, C and a bias in float64, from where NaN
    becomes the least; they are float32, exact to 24 bits, beside a function and for other results.

    Errors: LayoutError for types that no instruction multiplies, naming those that there are, for operands that are no
    matrices, and for a function that is not compiled, with the reason; ValueError for an unknown target; DriverError
    without a target where there is no GPU.

    >>> import numpy as np
    >>> kernel = gemm("float16", B="column", target="sm_80")
    >>> kernel
    <GemmKernel float16 row x float16 column -> float16 row for sm_80>
    >>> a, b = np.eye(16, dtype=np.float16), np.arange(256, dtype=np.float16).reshape(16, 16)
    >>> bool((kernel.simulate(a, b) == b).all())
    True
    """
    where = _target(target)
    types = tuple(dtype) if isinstance(dtype, tuple | list) else (dtype, dtype)
    if len(types) != 2:
        raise LayoutError("gemm", f"dtype={dtype!r}", "one type, or a pair for A and B")
    a, b = (element_type(t).name for t in types)
    if a not in OUTPUTS or b not in OUTPUTS:
        single = "tfloat32, which takes arrays of float32; " * ("float32" in (a, b))
        raise LayoutError("gemm", f"{a} x {b}", f"{single}factors are {', '.join(OUTPUTS)}")
    result = element_type(out).name if out is not None else OUTPUTS[a]
    sums = element_type(accumulator).name if accumulator is not None else ACCUMULATORS.get(a, "float32")
    if not isinstance(batched, bool):
        raise LayoutError("gemm", f"batched={batched!r}", "True or False")
    if bias not in (None, "row", "column"):
        raise LayoutError("gemm", f"bias={bias!r}", "'row', 'column' or None")
    if shape is not None and not is_extents(shape, 3):
        raise LayoutError("gemm", f"shape={shape!r}", "(M, N, K), three positive integers")
    if config is not None and not isinstance(config, Config):
        raise LayoutError("gemm", f"config={config!r}", "a Config, or leave it out")
    record_of(a, b, sums, where)  # refused now rather than at the first call, under the user's names
    m, n, k = map(int, shape) if shape is not None else (None, None, None)
    if m is not None:
        check_limits(Extents(m, n, k, 1, {}, {}))  # type: ignore[arg-type]

    def pair(x: Any, y: Any) -> Any:
        return None if x is None or y is None else (x, y)

    result_matrix = matrix("D", result, D)
    placed = [name for name, x in (("A", A), ("B", B), ("C", C)) if isinstance(x, TileLayout)]
    if batched and placed:
        raise LayoutError("gemm", f"{placed[0]} is placed by a layout, which has no batches", "batched=False")
    left, right = matrix("A", a, A, pair(m, k)), matrix("B", b, B, pair(k, n))
    added = None if C is None else matrix("C", result, C, pair(m, n))
    if shape is not None and not placed:
        raise LayoutError(
            "gemm",
            f"shape={shape!r} without a layout, which alone fixes extents",
            "leave it out: others come at each call",
        )
    function = _function(epilogue, sums, result, where)
    transposed = result_matrix.order == "column"
    if transposed:
        left, right = flipped(right, "A"), flipped(left, "B")  # type: ignore[assignment]
        added, result_matrix = flipped(added, "C"), replace(result_matrix, order="row")
        bias = {"row": "column", "column": "row", None: None}[bias]
    problem = Problem(left, right, result_matrix, sums, added, bias or "", False, batched, function)
    _check_result(problem.epilogue, where)
    return GemmKernel(problem, where, config, transposed)


def _target(given: Any) -> Target:
    if given is not None:
        return as_target(given)
    from ...backends.driver import device

    return device().target


def _check_result(epilogue: Epilogue, where: Target) -> None:
    """Refuse a type of the result that the target does not convert to, or, of a C or a bias, from."""
    if epilogue.kind != "f32":
        return
    steps = [packing] + [unpacking] * (epilogue.has_c or bool(epilogue.bias))
    for step in steps:
        try:
            step(epilogue.out, where)
        except LayoutError as error:
            reason = str(error).partition(": ")[2]
            known = [x for x in PACK if not all(i.refusal(where) for i in PACK[x])]
            raise LayoutError(
                "gemm", f"out={epilogue.out!r}: {reason}", f"out= one of {', '.join(known)}"
            ) from None


def _function(given: Any, sums: str, result: str, where: Target) -> Instruction | None:
    if given is None:
        return given
    if isinstance(given, Instruction):
        refusal = given.refusal(where)
        if refusal:
            raise LayoutError(
                "gemm",
                f"epilogue={given.name}, an instruction, {refusal}",
                f"one made for {where}, or the Python function itself",
            )
        return given
    if not callable(given):
        raise LayoutError("gemm", f"epilogue={given!r}", "a Python function of one number, or an instruction")
    from ...backends.numba_cuda.scalar import scalar_instruction

    kind = "f64" if sums == "float64" else "f32"
    return scalar_instruction(given, where, kinds=(kind,), result=kind)
