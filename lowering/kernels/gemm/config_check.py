"""What a configuration cannot do for arrays of some types, alignments and extents."""

from __future__ import annotations

from tilelayout import LayoutError

from ...target import Target
from .config import Config
from .cut import check_cut
from .numbers import Extents
from .operands import SWAPPED
from .pack import packed_problem
from .problem import Problem
from .reduce import first_problem
from .room import BULK_ALIGNMENT, ends_within_unit
from .store_rows import refusal

COPIED = 4
"""Bytes that ``cp.async`` copies at least, which their addresses are multiples of (PTX ISA, cp.async)."""


def check_config(
    problem: Problem, config: Config, found: Extents | None, target: Target, transposed: bool = False
) -> None:
    """Refuse what a configuration cannot do for these arrays; `transposed`: the caller's matrices are the transposed.

    Errors: LayoutError with what to change.
    """
    if found is not None and found.empty:
        return
    for x in config.packed:
        if getattr(problem, x).layout is not None:
            name = SWAPPED[x] if transposed else x
            raise LayoutError(
                "gemm", f"{name} is placed by {getattr(problem, x).layout}, rows are packed", "packed=''"
            )
    problem = packed_problem(problem, config.packed)
    check_cut(problem, config, target, transposed)
    if config.feed == "tma":
        for m in (problem.A, problem.B):
            if m.layout is not None or m.alignment % BULK_ALIGNMENT:
                name = SWAPPED[m.name] if transposed else m.name
                raise LayoutError(
                    "gemm",
                    f"{name} is aligned to {m.alignment} bytes, the copy engine takes {BULK_ALIGNMENT}",
                    f"pad its leading dimension, packed={m.name!r}, or leave config= out",
                )
    if config.feed == "cp_async":
        for m in (problem.A, problem.B):
            if m.alignment % COPIED:
                name = SWAPPED[m.name] if transposed else m.name
                raise LayoutError(
                    "gemm",
                    f"{name} is aligned to {m.alignment} bytes, cp.async copies {COPIED} at least",
                    f"pad its leading dimension, packed={m.name!r}, feed='registers', or leave config= out",
                )
    if config.slots:
        # What a kernel of parts of K stores are the parts.
        _check_slots(first_problem(problem) if config.splits > 1 else problem, config, found, transposed)


def _check_slots(problem: Problem, config: Config, found: Extents | None, transposed: bool) -> None:
    """Refuse rows that are not collected, and those that the copy engine does not store."""
    d = problem.D
    reason = refusal(config, d.bytes)
    if reason:
        raise LayoutError(
            "gemm", f"{config}: rows of D ({d.dtype}) are not collected in slots: {reason}", "slots=0"
        )
    if config.sender != "bulk":
        return
    if d.alignment % BULK_ALIGNMENT:
        raise LayoutError(
            "gemm",
            f"D ({d.dtype}, aligned to {d.alignment} bytes) cannot go through the copy engine",
            "sender='threads', slots=0, or leave config= out",
        )
    if found is not None and ends_within_unit(problem, found):
        raise LayoutError(
            "gemm",
            f"the copy engine stores whole units of {BULK_ALIGNMENT} bytes, and would overwrite what is behind D's "
            f"{'columns' if transposed else 'rows'} of {found.N} elements of {d.bytes} bytes",
            "sender='threads', slots=0, or leave config= out",
        )
