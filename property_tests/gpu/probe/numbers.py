"""Random registers through the device, and D compared bit by bit with the meaning under models of numerics.

Where no model that the package has is right, the row tells what other *hypotheses* reach, and holds some elements that
differ with all that went into them, so that a model can be corrected without a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from lowering.dtypes import dtype
from lowering.isa.elements import to_numbers
from lowering.isa.mma import MmaInstruction
from lowering.isa.mma.meaning import decode
from lowering.isa.numerics import Model, accumulate, bits, model
from lowering.isa.sparse import SparseMma
from tilelayout.errors import LayoutError

from . import draw
from .device import Device
from .elements import Matrices, dense_of, in_place, read_operands, registers, slot_bits

SHOWN = 6
"""Elements that differ, shown for a model."""

Values = dict[str, Any]


def is_exact(record: Matrices) -> bool:
    """Whether the PTX ISA leaves nothing open: integers, bits and f64."""
    dense = dense_of(record)
    return dtype(dense.a).is_integer or dense.a == "float64"


def compare(record: Matrices, device: Device, warps: int, seed: int = 0) -> dict[str, Any]:
    """``{"numbers": by model, "special": likewise, "right": ...}``; `right` asks for bit-equality of `is_exact` alone.

    "special" is of a run in which some elements are infinite or NaN.
    """
    rng = np.random.default_rng(seed)
    values = draw.operands(record, warps, rng)
    words = device.run(record.instruction, values)["D"]
    row: dict[str, Any] = {"seed": seed, "warps": warps, "numbers": judge(record, values, words)}
    row["right"] = not is_exact(record) or row["numbers"]["exact"]["equal"] == 1
    if not dtype(dense_of(record).a).is_integer:
        values = draw.operands_with_specials(record, max(1, warps // 4), rng)
        words = device.run(record.instruction, values)["D"]
        row["special"] = judge(record, values, words)
        found = slot_bits(record, "D", words)
        nan = np.isnan(to_numbers(found, dense_of(record).d))
        row["nan_words"] = [hex(int(x)) for x in np.unique(found[nan])[:SHOWN]]
    return row


def judge(record: Matrices, values: Values, words: Any) -> dict[str, Any]:
    """By name of a model or hypothesis: the share of equal elements of D, the largest difference.

    Some elements that differ are shown for sm_90's model and for the best.
    """
    found = slot_bits(record, "D", words)
    out: dict[str, Any] = {}
    for name, wanted in wanted_words(record, values):
        if isinstance(wanted, str):
            out[name] = {"missing": wanted}
            continue
        out[name] = difference(record, values, found, slot_bits(record, "D", wanted))
    best = max(out, key=lambda name: out[name].get("equal", -1))
    for name in out:
        if name not in (best, "sm_90"):
            out[name].pop("first", None)
    return out


def wanted_words(record: Matrices, values: Values) -> Iterator[tuple[str, Any]]:
    """D's registers under every name, or why there is no such model."""
    for name in ("exact",) if is_exact(record) else ("exact", "sm_90"):
        try:
            yield name, record.instruction.meaning({**values, "numerics": name})["D"]
        except LayoutError as error:
            yield name, str(error)
    if isinstance(record, MmaInstruction) and not is_exact(record):
        dense = record
        operands = [decode(dense, role, values[role]) for role in ("A", "B")]
        operands.append(decode(dense, "C", values["D" if in_place(record) else "C"]))
        for name, add in hypotheses(dense):
            yield name, registers(dense, "D", bits(add(*operands), dense.d))
    if isinstance(record, SparseMma) and not is_exact(record):
        yield from _as_dense(record, values)


def difference(record: Matrices, values: Values, found: Any, wanted: Any) -> dict[str, Any]:
    """Both bits by slot, ``[warps, 32, slots]``."""
    wrong = np.argwhere(found != wanted)
    out: dict[str, Any] = {"equal": 1 - len(wrong) / found.size}
    if not len(wrong):
        return out
    element = dense_of(record).d
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.abs(to_numbers(found, element) - to_numbers(wanted, element))
    out["differ"] = len(wrong)
    out["largest_difference"] = str(np.nanmax(apart)) if not np.isnan(apart).all() else "nan"
    finite = np.isfinite(to_numbers(found, element)) & np.isfinite(to_numbers(wanted, element))
    steps = found.astype(np.int64) - wanted.astype(np.int64)
    close = finite & ((found ^ wanted) >> np.uint64(dtype(element).bits - 1) == 0)
    out["largest_steps"] = int(np.abs(steps[close]).max()) if close.any() else None
    chosen = wrong[:: max(1, len(wrong) // SHOWN)][:SHOWN]
    out["first"] = [_element(record, values, found, wanted, *map(int, place)) for place in chosen]
    return out


def _element(
    record: Matrices, values: Values, found: Any, wanted: Any, warp: int, lane: int, slot: int
) -> dict[str, Any]:
    """One element of D and what went into it, as bits: the row of A, the column of B, and C."""
    at = [int(x[lane, slot]) for x in record.index("D")]
    held: dict[str, Any] = {}
    for role, name in read_operands(record):
        matrix = np.empty(record.operand_shape(role), np.uint64)
        matrix[record.index(role)] = slot_bits(record, role, values[name][warp : warp + 1])[0]
        held[role] = matrix
    row, column = held["A"][(*at[:-1], slice(None))], held["B"][(*at[:-2], slice(None), at[-1])]
    out = {
        "warp": warp,
        "lane": lane,
        "slot": slot,
        "element": at,
        "got": hex(int(found[warp, lane, slot])),
        "expected": hex(int(wanted[warp, lane, slot])),
        "a": " ".join(f"{int(x):x}" for x in row),
        "b": " ".join(f"{int(x):x}" for x in column),
        "c": f"{int(held['C'][tuple(at)]):x}",
    }
    if isinstance(record, SparseMma):
        codes = record.sparsity.codes_of(values["e"][warp, :, 0], record.selector)
        out["codes"] = " ".join(f"{int(x):04b}" for x in codes[at[-2]])
    return out


# --- hypotheses -----------------------------------------------------------------------------------

Add = Callable[[Any, Any, Any], Any]


def hypotheses(record: MmaInstruction) -> Iterator[tuple[str, Add]]:
    """Ways of adding that are not the package's model of sm_90, by name; each ``d = add(a, b, c)`` on numbers."""
    if record.rule == "quadpair":
        for name, rising, first in (
            ("fma chain, K rising", True, True),
            ("fma chain, K falling", False, True),
            ("fma chain, C last", True, False),
        ):
            for kept in ("float32", "float16"):
                yield f"{name}, {kept}", _chain(rising, first, kept, record.d)
        return
    base = model("sm_90", record.a, record.b, record.d, record.k)
    others: dict[str, Model] = {}
    if base.separate:
        whole = (tuple(range(record.k)),)
        others["C in the first half"] = replace(base, separate=False)
        others["one step, C in it"] = replace(base, separate=False, steps=whole)
        others["one step, C added"] = replace(base, steps=whole)
        if record.k == 32:
            others["as wgmma"] = model("sm_90", record.a, record.b, record.d, record.k, unit="wgmma")
    else:
        others["as sm_80"] = model("sm_80", record.a, record.b, record.d, record.k)
    for name, other in others.items():
        yield name, partial(accumulate, model=other)


def _chain(rising: bool, first: bool, kept: str, result: str) -> Add:
    """A fused multiply-add for each k; C goes in first or last; sums are kept in a type, and D in its own.

    float64 holds f16 products exactly, and their sum with a float32 well enough to be rounded again.
    """

    def add(a: Any, b: Any, c: Any) -> Any:
        with np.errstate(over="ignore", invalid="ignore"):
            total = c if first else np.zeros_like(c)
            for k in range(a.shape[-1]) if rising else reversed(range(a.shape[-1])):
                total = (total + a[..., :, k, None] * b[..., k, None, :]).astype(kept).astype(np.float64)
            total = total if first else (total + c).astype(kept).astype(np.float64)
            return total.astype(result).astype(np.float64)

    return add


def _as_dense(record: SparseMma, values: Values) -> Iterator[tuple[str, Any]]:
    """A sparse product by the model of the dense instruction that has half the K.

    The k-th kept element of a row meets its element of B, and the dense instruction adds these products.  Elements of B
    that meet nothing take no part, not even as infinity times zero.
    """
    codes = record.sparsity.codes_of(values["e"][..., 0], record.selector)
    columns = record.sparsity.columns_of(codes)  # [warps, 16, k / 2]
    a = np.empty((columns.shape[0], *record.operand_shape("A")))
    a[:, *record.index("A")] = to_numbers(slot_bits(record, "A", values["A"]), record.dense.a)
    b, c = decode(record.dense, "B", values["B"]), decode(record.dense, "C", values["D"])
    k = record.dense.k // 2
    try:
        half = model("sm_90", record.dense.a, record.dense.b, record.dense.d, k)
    except LayoutError as error:
        yield "sm_90, half K", str(error)
        return
    # Every row has its own B: rows become a leading dimension.
    met = np.take_along_axis(b[:, None], columns[..., None], axis=2)  # [warps, 16, k / 2, 8]
    ways = {"half K": half, "one step": replace(half, steps=(tuple(range(k)),))}
    if half.separate:
        ways["one step, C in it"] = replace(ways["one step"], separate=False)
    for name, how in ways.items():
        d = accumulate(a[:, :, None, :], met, c[:, :, None, :], how)[:, :, 0]
        yield f"sm_90, {name}", registers(record, "D", bits(d, record.dense.d))
