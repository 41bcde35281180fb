"""The copy engine (TMA): boxes of tensors between global and shared memory, by one thread, done later."""

from __future__ import annotations

from .ordering import FENCES, ordering
from .protocols import BULK_COMMIT as _COMMIT
from .protocols import BULK_LOAD as _LOAD
from .protocols import BULK_STORE as _STORE
from .protocols import BULK_WAIT as _WAIT
from .protocols import BULK_WAIT_READ as _WAIT_READ
from .protocols import HINT, PROXY_FENCE
from .record import Instruction, Operand

_SECTION = "Data Movement and Conversion Instructions: cp.async.bulk"
_MAP = Operand("map", 1, "map", "read")
RANKS = (1, 2, 3, 4, 5)


def _bulk(
    name: str,
    template: str,
    operands: tuple[Operand, ...],
    what: str,
    protocol: str,
    ptx: tuple[int, int] = (8, 0),
) -> Instruction:
    return ordering(name, template, operands, f"{_SECTION}{what}", protocol, 90, ptx)


def _coordinates(rank: int) -> tuple[str, list[Operand]]:
    names = [f"c{i}" for i in range(rank)]
    return ", ".join(f"{{{n}}}" for n in names), [Operand(n, 1, "value", "read") for n in names]


def _load(rank: int, where: str = "cluster", ptx: tuple[int, int] = (8, 0)) -> Instruction:
    text, coordinates = _coordinates(rank)
    own = ".cta" * (where == "cta")
    return _bulk(
        f"cp.async.bulk.tensor.{rank}d.load{own}",
        f"cp.async.bulk.tensor.{rank}d.shared::{where}.global.tile.mbarrier::complete_tx::bytes "
        f"[{{dst}}], [{{map}}, {{{{{text}}}}}], [{{bar}}];",
        (
            Operand("dst", 1, "shared", "read", 128),
            _MAP,
            *coordinates,
            Operand("bar", 1, "shared", "read", 8),
        ),
        ".tensor",
        _LOAD,
        ptx,
    )


def _store(rank: int) -> Instruction:
    text, coordinates = _coordinates(rank)
    return _bulk(
        f"cp.async.bulk.tensor.{rank}d.store",
        f"cp.async.bulk.tensor.{rank}d.global.shared::cta.tile.bulk_group [{{map}}, {{{{{text}}}}}], [{{src}}];",
        (_MAP, *coordinates, Operand("src", 1, "shared", "read", 128)),
        ".tensor",
        _STORE,
    )


def _wait(read: bool) -> Instruction:
    form = ".read" if read else ""
    return _bulk(
        f"cp.async.bulk.wait_group{form}",
        f"cp.async.bulk.wait_group{form} {{pending}};",
        (Operand("pending", 1, "value", "read"),),
        ".wait_group",
        _WAIT_READ if read else _WAIT,
    )


BULK_LOAD = {rank: _load(rank) for rank in RANKS}
"""Dimensions of the tensor -> the load of a box of it; dimension 0 is the contiguous one."""
BULK_LOAD_CTA = {rank: _load(rank, "cta", (8, 6)) for rank in RANKS}
"""The same into shared memory of the CTA, said so: newer, and without the stack frame that the assembler makes for the
other form on sm_120."""
BULK_STORE = {rank: _store(rank) for rank in RANKS}
BULK_COMMIT = _bulk("cp.async.bulk.commit_group", "cp.async.bulk.commit_group;", (), ".commit_group", _COMMIT)
BULK_WAIT = _wait(False)
"""`pending`, a constant: the groups of stores that may still be under way; all others are written."""
BULK_WAIT_READ = _wait(True)
"""The same, until shared memory may be overwritten."""

FENCE_PROXY_ASYNC = ordering(
    "fence.proxy.async.shared::cta", "fence.proxy.async.shared::cta;", (), FENCES, PROXY_FENCE, 90, (8, 0)
)
"""Between stores to shared memory by threads and their reading by the copy engine."""

PREFETCH_MAP = ordering(
    "prefetch.tensormap",
    "prefetch.tensormap [{map}];",
    (_MAP,),
    "Data Movement and Conversion Instructions: prefetch, prefetchu",
    HINT,
    90,
    (8, 0),
)
