"""What a configuration cannot do for arrays of some types, alignments and extents."""

from __future__ import annotations

from collections.abc import Iterable

from tilelayout import LayoutError

from ...target import Target
from .config import FEEDS, Config, Feed
from .cut import check_cut
from .fit import check_fit
from .numbers import Extents
from .operands import SWAPPED, flipped
from .pack import packed_problem
from .panels import refusal as refused_beside
from .placed import is_boxed
from .problem import Matrix, Problem
from .reduce import multiplied
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
    _check_beside(problem, config)
    problem = packed_problem(problem, config.packed)
    check_cut(problem, config, target, transposed)
    stored = multiplied(problem, config)  # refuses sums that no parts are added up of, with slots or without
    if config.slots:
        _check_slots(stored, config, found, target, transposed)
    check_fit(problem, config, target)


FED_FROM: dict[Feed, int] = {"tma": 90, "cp_async": 80, "registers": 0}
"""Feed -> the first compute capability that has it, times ten."""
UNITS: dict[Feed, int] = {"tma": BULK_ALIGNMENT, "cp_async": COPIED, "registers": 1}
"""Feed -> bytes that addresses and leading dimensions of what it copies are multiples of."""


def _called(matrix: Matrix, transposed: bool) -> str:
    """The caller's name of a factor."""
    return SWAPPED[matrix.name] if transposed else matrix.name


def _packed(names: Iterable[str], transposed: bool) -> str:
    """What a configuration says that packs these factors and no other, and whose letters those are."""
    letters = "".join(sorted(names))
    yours = " and ".join([f"its {x} is your {SWAPPED[x]}" for x in letters]) if transposed else ""
    return f"packed={letters!r}" + (f" ({yours})" if yours else "")


def _check_feed(problem: Problem, config: Config, target: Target, transposed: bool) -> None:
    """Refuse a feed that the target lacks, and factors that do not lie as it takes them."""
    feed = config.feed
    if target.sm < FED_FROM[feed]:
        there = [x for x in FEEDS if target.sm >= FED_FROM[x]]
        raise LayoutError(
            "gemm",
            f"feed={feed!r} is of sm_{FED_FROM[feed]} and later, the target is {target}",
            " or ".join([f"feed={x!r}" for x in there]),
        )
    factors = (problem.A, problem.B)
    for m in factors:
        if m.layout is not None and m.name in config.packed:
            others = _packed((x for x in config.packed if x != m.name), transposed)
            raise LayoutError("gemm", f"{_placed(m, transposed)}, and rows are packed", others)
    bad = [m for m in factors if not _feeds(feed, m, config)]
    if bad:
        remedies = ["pad its leading dimension"] if bad[0].layout is None else []
        if all(m.layout is None for m in bad):
            remedies.append(_packed({*config.packed, *[m.name for m in bad]}, transposed))
        others = [x for x in FEEDS if target.sm >= FED_FROM[x] and all(_feeds(x, m, config) for m in factors)]
        remedies.append(f"feed={' or '.join(map(repr, others))}, or leave config= out")
        raise LayoutError("gemm", _lies_badly(bad[0], feed, transposed), ", ".join(remedies))


def _check_beside(problem: Problem, config: Config) -> None:
    """Refuse copies beside the product where there are none, nobody to make them, or several products."""
    reason, remedy = refused_beside(problem, config) if config.beside else ("", "")
    if reason:
        raise LayoutError("gemm", f"beside=True, and {reason}", remedy)


def _feeds(feed: Feed, matrix: Matrix, config: Config) -> bool:
    """Whether a feed takes a factor as it lies, or as it is packed."""
    if matrix.name in config.packed:
        return True
    return matrix.alignment % UNITS[feed] == 0 and (feed != "tma" or is_boxed(matrix))


def _lies_badly(matrix: Matrix, feed: Feed, transposed: bool) -> str:
    """Why a feed does not take a factor."""
    if matrix.alignment % UNITS[feed]:
        what = "the copy engine takes" if feed == "tma" else "cp.async copies at least"
        return f"{_called(matrix, transposed)} is aligned to {matrix.alignment} bytes, {what} {UNITS[feed]}"
    return f"{_placed(matrix, transposed)}, and the copy engine takes rows or columns a stride apart, from the pointer"


def _placed(matrix: Matrix, transposed: bool) -> str:
    """That a layout places a factor, in the caller's words."""
    layout = flipped(matrix, matrix.name).layout if transposed else matrix.layout  # type: ignore[union-attr]
    return f"{_called(matrix, transposed)} is placed by {layout}"


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
