"""``accumulate``: one instruction's sum of products, bit for bit, by a model."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilelayout.errors import LayoutError

from .aligned import Terms, aligned_sum, products, scaled
from .exact import INT32, exact_sum, integer_sum
from .float32_chain import float32_chain
from .formats import E8M13, FORMATS, Format, format_of, round_to_even, truncate, unrepresentable
from .fused import chain
from .record import Model

_INTEGER_RANGES = {"int8": (-128, 127), "uint8": (0, 255), "int4": (-8, 7), "uint4": (0, 15), "uint1": (0, 1)}


def accumulate(a: Any, b: Any, c: Any, model: Model, scale_a: Any = None, scale_b: Any = None) -> Any:
    """D of ``d[m, n] = sum_k a[m, k] * b[k, n] + c[m, n]``, as the model adds.

    Arguments:
        a, b, c: ``[..., M, K]``, ``[..., K, N]``, ``[..., M, N]``: the operands' exact values, as float64.
        model: from `model(...)`; K must be its k.
        scale_a, scale_b: ``[..., M, blocks]`` and ``[..., blocks, N]``, for block-scaled models only.

    Returns: float64 ``[..., M, N]``, values that the accumulator's type holds.  `bits` gives the words.

    Special values, as MMA-Sim and an H200 have them: infinity times zero, infinity minus infinity and any NaN give NaN;
    an infinite product or C gives that infinity; a finite sum beyond the accumulator's largest value gives infinity,
    also where it is otherwise truncated.  Subnormal numbers are numbers like others, in operands, sums and results.  A
    zero result of the aligned rule is +0, whatever the signs of the terms; the chains keep signs as IEEE 754 has them.
    Integers wrap, or clamp with ``.satfinite``.

    Errors: LayoutError for shapes that don't fit, and for a value that its type doesn't have.

    Example: two products of 2**-24 are lost beside C = 1 where F is 23, and seen where F is 24.

    >>> from lowering.isa.numerics import accumulate, model
    >>> a, b, c = np.full((1, 8), 2.0**-12), np.full((8, 1), 2.0**-12), np.ones((1, 1))
    >>> a[:, 2:] = 0
    >>> float(accumulate(a, b, c, model("sm_75", "float16", "float16", "float32", 8))[0, 0]) - 1
    1.1920928955078125e-07
    >>> float(accumulate(a[:, :4], b[:4], c, model("sm_70", "float16", "float16", "float32", 4))[0, 0]) - 1
    0.0
    """
    a, b, c = (np.asarray(x, np.float64) for x in (a, b, c))
    _check(a, b, c, model)
    if model.rule == "integer":
        return integer_sum(a, b, c, model.saturate)
    if model.rule == "fused chain":
        return chain(a, b, c)
    if model.rule == "float32 chain":
        return float32_chain(a, b, c, model)
    scales = _scales(a, b, scale_a, scale_b, model)
    with np.errstate(invalid="ignore", over="ignore"):
        if model.rule == "rounded once":
            return _rounded_once(a, b, c, model, scales)
        return _stepwise(a, b, c, model, scales)


def _rounded_once(a: Any, b: Any, c: Any, model: Model, scales: Any) -> Any:
    form = FORMATS[model.accumulator]
    known, special = _finite(a, b, c, scales)
    terms = _terms(known[0], known[1], model, known[3:], group=1)
    total = round_to_even(exact_sum(terms, known[2], form), form)
    return np.where(np.isfinite(special), total, special)


def _stepwise(a: Any, b: Any, c: Any, model: Model, scales: Any) -> Any:
    form = FORMATS[model.accumulator]
    total = np.zeros_like(c) if model.separate else c
    for step in model.steps:
        index = list(step)
        part_a, part_b = a[..., index], b[..., index, :]
        known, special = _finite(part_a, part_b, total, scales)
        terms = _terms(known[0], known[1], model, known[3:], model.group)
        added = aligned_sum(terms, known[2], form, model.fraction, model.zero)
        # Adding 0.0 turns -0.0 into 0.0, also where a negative sum was too small for the type.
        total = np.where(np.isfinite(special), _result(added, model), special) + 0.0
    return _added(total, c, form) if model.separate else total


def _result(value: Any, model: Model) -> Any:
    if model.accumulator == "float16":
        return round_to_even(value, FORMATS["float16"])
    return truncate(value, E8M13 if model.kept == E8M13.fraction else FORMATS["float32"])


def _added(x: Any, y: Any, form: Format) -> Any:
    """An ordinary addition in the accumulator's type, rounded to nearest even.

    float64 holds the sum of two float32 well enough: it has more than twice their bits plus two, so that the second
    rounding does no harm (Figueroa 1995).
    """
    total = x + y
    return np.where(np.isfinite(total), round_to_even(np.where(np.isfinite(total), total, 0.0), form), total)


def _terms(a: Any, b: Any, model: Model, scales: Any, group: int) -> Terms:
    terms = products(a, b, format_of(model.seen[0]), format_of(model.seen[1]))
    return scaled(terms, scales[0], scales[1], format_of(model.scale), group) if scales else terms


def _finite(a: Any, b: Any, c: Any, scales: Any) -> tuple[tuple[Any, ...], Any]:
    """The operands with zeros for what is not finite, and a plain sum that is not finite wherever the result isn't."""
    everything = (a, b, c, *scales)
    if all(np.isfinite(x).all() for x in everything):
        return everything, np.zeros(())
    left, right = a, b
    if scales:
        left = a * np.repeat(scales[0], a.shape[-1] // scales[0].shape[-1], axis=-1)
        right = b * np.repeat(scales[1], b.shape[-2] // scales[1].shape[-2], axis=-2)
    special = (left[..., :, None, :] * np.swapaxes(right, -1, -2)[..., None, :, :]).sum(-1) + c
    return tuple(np.where(np.isfinite(x), x, 0.0) for x in everything), special


def _scales(a: Any, b: Any, scale_a: Any, scale_b: Any, model: Model) -> tuple[Any, ...]:
    if not model.scale:
        if scale_a is not None or scale_b is not None:
            raise LayoutError("accumulate", f"scales were given, and the model takes none ({model})")
        return ()
    if scale_a is None or scale_b is None:
        raise LayoutError(
            "accumulate", f"the model needs {model.blocks} scales along K for A and for B ({model})"
        )
    scale_a, scale_b = (np.asarray(x, np.float64) for x in (scale_a, scale_b))
    for name, scale, shape in (
        ("scale_a", scale_a, (*a.shape[:-1], model.blocks)),
        ("scale_b", scale_b, (*b.shape[:-2], model.blocks, b.shape[-1])),
    ):
        if scale.shape != shape:
            raise LayoutError("accumulate", f"{name} has shape {scale.shape}, wanted {shape} ({model})")
        if np.signbit(scale[~np.isnan(scale)]).any():
            raise LayoutError("accumulate", f"{name} holds a negative scale: {model.scale} has no sign")
        _check_values(name, scale, model.scale)
    return scale_a, scale_b


def _check(a: Any, b: Any, c: Any, model: Model) -> None:
    fits = min(a.ndim, b.ndim, c.ndim) >= 2 and a.shape[-1] == b.shape[-2] == model.k
    if not fits or c.shape != (*a.shape[:-1], b.shape[-1]) or a.shape[:-2] != b.shape[:-2]:
        raise LayoutError(
            "accumulate",
            f"A {a.shape}, B {b.shape} and C {c.shape} don't multiply as "
            f"[..., M, {model.k}] @ [..., {model.k}, N] + [..., M, N]",
        )
    for name, values, element in (("A", a, model.a), ("B", b, model.b), ("C", c, model.accumulator)):
        _check_values(name, values, element)


def _check_values(name: str, values: Any, element: str) -> None:
    if element == "float64":
        return
    if element in FORMATS:
        wrong = unrepresentable(values, FORMATS[element])
    else:
        low, high = _INTEGER_RANGES.get(element, INT32)
        wrong = ~((values >= low) & (values <= high) & (values == np.rint(values)))
    if wrong.any():
        remedy = (
            "drop_to_tfloat32 gives what the hardware reads"
            if element == "tfloat32"
            else "decode the operand first"
        )
        raise LayoutError(
            "accumulate", f"{name} holds {values[wrong].flat[0]!r}, which no {element} is", remedy
        )
