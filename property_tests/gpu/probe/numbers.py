"""Random registers through the device, and D compared bit by bit with the meaning under models of numerics.

Where no model that the package has is right, the row tells what other *hypotheses* reach, and holds some elements that
differ with all that went into them, so that a model can be corrected without a GPU.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from lowering.dtypes import dtype
from lowering.isa.elements import to_numbers
from lowering.isa.mma.meaning import decode, model_of
from lowering.isa.mma.record import Role
from lowering.isa.numerics import Model, accumulate, bits, model
from lowering.isa.sparse import SparseMma
from lowering.isa.sparse.meaning import gather
from tilelayout.errors import LayoutError

from . import draw
from .device import Device
from .elements import Matrices, dense_of, read_operands, registers, slot_bits

SHOWN = 6
"""Elements that differ, shown for a model."""

Values = dict[str, Any]


def is_exact(record: Matrices) -> bool:
    """Whether the PTX ISA leaves nothing open: integers, bits and f64."""
    dense = dense_of(record)
    return dtype(dense.a).is_integer or dense.a == "float64"


def compare(
    record: Matrices, device: Device, warps: int, seed: int = 0, record_warps: int = 0
) -> dict[str, Any]:
    """``{"numbers": by model, "special": likewise, "claimed": a model's name, "right": ...}``.

    "special" is of a run in which some elements are infinite or NaN; integers have none.  The claimed model is the
    device's own where the package has it for the record, else none; "exact" for `is_exact`.  `right`: every element of
    both runs is bit-equal under it.  "recorded" holds all that went in and came out in `record_warps` warps of each.
    """
    rng = np.random.default_rng(seed)
    runs = {"numbers": (draw.operands, warps)}
    if not dtype(dense_of(record).a).is_integer:
        runs["special"] = (draw.operands_with_specials, max(1, warps // 4))
    row: dict[str, Any] = {"seed": seed, "warps": warps}
    recorded: dict[str, Any] = {}
    for run, (drawn, count) in runs.items():
        values = drawn(record, count, rng)
        words = device.run(record.instruction, values)["D"]
        row[run] = judge(record, values, words)
        found = slot_bits(record, "D", words)
        # Neighboring warps are of different kinds, see `draw`; these are of all.
        chosen = sorted({(5 * i + 2) % count for i in range(record_warps)})
        recorded[run] = [_as_text(held_in(record, values, found, warp)) for warp in chosen]
        if run == "special":
            nan = np.isnan(to_numbers(found, dense_of(record).d))
            row["nan_words"] = [hex(int(x)) for x in np.unique(found[nan])[:SHOWN]]
    name = "exact" if is_exact(record) else device.numerics
    claimed = [row[run][name] for run in runs if "equal" in row[run].get(name, {})]
    row["claimed"] = name if claimed else None
    row["right"] = all(entry["equal"] == 1 for entry in claimed)
    return row | ({"recorded": recorded} if record_warps else {})


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
    if not is_exact(record):
        for name, how in hypotheses(record).items():
            yield name, registers(record, "D", bits(_added(record, values, how), how.accumulator))


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


def held_in(record: Matrices, values: Values, found: Any, warp: int) -> dict[str, Any]:
    """The matrices of a warp, as bits, by name: A (kept elements of a sparse one), B, C, D, and its codes if sparse."""
    slots: dict[Role, Any] = {"D": found[warp]}
    for role, name in read_operands(record):
        slots[role] = slot_bits(record, role, values[name][warp : warp + 1])[0]
    held: dict[str, Any] = {}
    for role, bits_held in slots.items():
        matrix: Any = np.empty(record.operand_shape(role), np.uint64)
        matrix[record.index(role)] = bits_held
        held[role] = matrix
    if isinstance(record, SparseMma):
        held["codes"] = record.sparsity.codes_of(values["e"][warp, :, 0], record.selector)
    return held


def _as_text(matrices: dict[str, Any]) -> dict[str, str]:
    return {name: _hex(matrix.reshape(-1)) for name, matrix in matrices.items()}


def _hex(numbers: Any) -> str:
    return " ".join(f"{int(x):x}" for x in numbers)


def _element(
    record: Matrices, values: Values, found: Any, wanted: Any, warp: int, lane: int, slot: int
) -> dict[str, Any]:
    """One element of D and what went into it, as bits: the row of A, the column of B, and C."""
    at = tuple(int(x[lane, slot]) for x in record.index("D"))
    return {
        "warp": warp,
        "lane": lane,
        "slot": slot,
        "element": at,
        "expected": hex(int(wanted[warp, lane, slot])),
        **element_of(held_in(record, values, found, warp), at),
    }


def element_of(held: dict[str, Any], at: tuple[int, ...]) -> dict[str, str]:
    """One element of a warp's D, and what went into it, as hexadecimal words."""
    out = {
        "a": _hex(held["A"][*at[:-1], :]),
        "b": _hex(held["B"][*at[:-2], :, at[-1]]),
        "c": f"{int(held['C'][at]):x}",
        "got": hex(int(held["D"][at])),
    }
    return out | ({"codes": _hex(held["codes"][at[-2]])} if "codes" in held else {})


# --- hypotheses -----------------------------------------------------------------------------------


def hypotheses(record: Matrices) -> dict[str, Model]:
    """Ways of adding, by name, that are not the package's model of sm_90; none where it has no model."""
    dense, sparse = dense_of(record), isinstance(record, SparseMma)
    k = dense.k // 2 if sparse else dense.k
    try:
        base = model_of(dense, "sm_90", k, "mma.sp" if sparse else "mma")
    except LayoutError:
        return {}
    others: dict[str, Model] = {}
    whole = (tuple(range(k)),)
    if base.rule == "float32 chain":
        ways = {
            "four, then C": (whole, True),
            "C, two and two": (((0, 1), (2, 3)), False),
            "C, one by one": (((0,), (1,), (2,), (3,)), False),
        }
        for name, (steps, separate) in ways.items():
            if steps != base.steps:
                others[name] = replace(base, steps=steps, separate=separate)
        others["as sm_70"] = model("sm_70", dense.a, dense.b, dense.d, k)
    elif base.separate:
        others["C in the first half"] = replace(base, separate=False)
        others["one step, C in it"] = replace(base, separate=False, steps=whole)
        others["one step, C added"] = replace(base, steps=whole)
        if k == 32:
            others["as wgmma"] = model("sm_90", dense.a, dense.b, dense.d, k, unit="wgmma")
    else:
        others["as sm_80"] = model("sm_80", dense.a, dense.b, dense.d, k)
    return others


def _added(record: Matrices, values: Values, how: Model) -> Any:
    """D's numbers, by a model."""
    if isinstance(record, SparseMma):
        return accumulate(*gather(record, values), how)[:, :, 0]
    a, b, c = (decode(record, role, values[name]) for role, name in read_operands(record))
    return accumulate(a, b, c, how)
