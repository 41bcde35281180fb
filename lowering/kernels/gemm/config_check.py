"""What a configuration cannot do for arrays of some types, alignments and extents."""

from __future__ import annotations

from collections.abc import Iterable

from tilelayout import LayoutError

from ...target import Target
from .config import FEEDS, Config
from .cut import check_cut
from .numbers import Extents
from .operands import SWAPPED
from .pack import packed_problem
from .problem import Matrix, Problem
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
    _check_feed(problem, config, target, transposed)
    problem = packed_problem(problem, config.packed)
    check_cut(problem, config, target, transposed)
    if config.slots:
        # What a kernel of parts of K stores are the parts.
        parts = first_problem(problem) if config.splits > 1 else problem
        _check_slots(parts, config, found, target, transposed)


FED_FROM = {"tma": 90, "cp_async": 80, "registers": 0}
"""Feed -> the first compute capability that has it, times ten."""
UNITS = {"tma": BULK_ALIGNMENT, "cp_async": COPIED, "registers": 1}
"""Feed -> bytes that addresses and leading dimensions of what it copies are multiples of."""


def _check_feed(problem: Problem, config: Config, target: Target, transposed: bool) -> None:
    """Refuse a feed that the target lacks, and factors that do not lie as it takes them."""

    def called(m: Matrix) -> str:
        return SWAPPED[m.name] if transposed else m.name

    def those(names: Iterable[str]) -> str:
        return f"packed={''.join(sorted(names))!r}"

    feed, unit = config.feed, UNITS[config.feed]
    if target.sm < FED_FROM[feed]:
        there = [x for x in FEEDS if target.sm >= FED_FROM[x]]
        raise LayoutError(
            "gemm", f"feed={feed!r} is of sm_{FED_FROM[feed]} and later, the target is {target}",
            " or ".join([f"feed={x!r}" for x in there]),
        )  # fmt: skip
    for m in (problem.A, problem.B):
        if m.layout is not None and m.name in config.packed:
            raise LayoutError(
                "gemm", f"{called(m)} is placed by {m.layout}, and rows are packed",
                those(x for x in config.packed if x != m.name),
            )  # fmt: skip
        if m.layout is not None and feed == "tma":
            raise LayoutError(
                "gemm", f"{called(m)} is placed by {m.layout}, and the copy engine takes rows or columns",
                "feed='cp_async' or 'registers'",
            )  # fmt: skip
    for m, fields in ((problem.A, (0, 2)), (problem.B, (2, 1))):
        field = fields[m.contiguous]
        if feed == "tma" and config.tile[field] * m.bytes < BULK_ALIGNMENT:
            raise LayoutError(
                "gemm",
                f"tile[{field}] = {config.tile[field]} are {config.tile[field] * m.bytes} bytes of {called(m)}, along "
                f"which the copy engine takes {BULK_ALIGNMENT} at least",
                f"tile[{field}]={BULK_ALIGNMENT // m.bytes}",
            )
    bad = [m for m in (problem.A, problem.B) if m.alignment % unit and m.name not in config.packed]
    if bad:
        what = "the copy engine takes" if feed == "tma" else "cp.async copies at least"
        remedies = ["pad its leading dimension"]
        if all(m.layout is None for m in bad):
            remedies.append(those({*config.packed, *[m.name for m in bad]}))
        remedies += ["feed='registers'", "leave config= out"]
        raise LayoutError(
            "gemm",
            f"{called(bad[0])} is aligned to {bad[0].alignment} bytes, {what} {unit}",
            f"{', '.join(remedies[:-1])}, or {remedies[-1]}",
        )


def _check_slots(
    problem: Problem, config: Config, found: Extents | None, target: Target, transposed: bool
) -> None:
    """Refuse rows that are not collected, and those that the copy engine does not store."""
    d = problem.D
    reason = refusal(config, d.bytes)
    if reason:
        raise LayoutError(
            "gemm", f"{config}: rows of D ({d.dtype}) are not collected in slots: {reason}", "slots=0"
        )
    if config.sender != "bulk":
        return
    if target.sm < FED_FROM["tma"]:
        raise LayoutError(
            "gemm",
            f"sender='bulk' is of sm_{FED_FROM['tma']} and later, the target is {target}",
            "sender='threads', or slots=0",
        )
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
