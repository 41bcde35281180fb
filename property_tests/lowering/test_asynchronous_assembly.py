"""The records of barriers, asynchronous copies, the copy engine and registers' budgets, assembled for every target.

What a record says of architectures and PTX versions is what the assembler accepts, and what it refuses.
"""

from __future__ import annotations

import pytest

from lowering.backends.assemble import AssemblerError, assemble
from lowering.backends.ptxas import find_ptxas
from lowering.isa import BAR_SYNC
from lowering.isa.barrier import BAR_NAMED, BAR_WARP
from lowering.isa.budget import setmaxnreg
from lowering.isa.bulk import (
    BULK_COMMIT,
    BULK_LOAD,
    BULK_STORE,
    BULK_WAIT,
    BULK_WAIT_READ,
    FENCE_PROXY_ASYNC,
    PREFETCH_MAP,
)
from lowering.isa.cp_async import CP_ASYNC, CP_ASYNC_COMMIT, CP_ASYNC_WAIT
from lowering.isa.mbarrier import (
    CP_ASYNC_ARRIVE,
    MBARRIER_ARRIVE,
    MBARRIER_EXPECT,
    MBARRIER_FENCE,
    MBARRIER_INIT,
    MBARRIER_SPIN,
    MBARRIER_WAIT,
    mbarrier_arrive_behind,
)
from lowering.isa.parameter import LOAD_PARAMETER
from lowering.isa.record import Instruction
from lowering.target import TARGETS, Target

from .instruction_ptx import version_before

RECORDS = [
    BAR_SYNC, BAR_NAMED, BAR_WARP,
    *CP_ASYNC.values(), CP_ASYNC_COMMIT, CP_ASYNC_WAIT, CP_ASYNC_ARRIVE,
    MBARRIER_INIT, MBARRIER_FENCE, MBARRIER_ARRIVE, MBARRIER_EXPECT, MBARRIER_WAIT, MBARRIER_SPIN,
    *[mbarrier_arrive_behind(3, elected, kind) for elected in (True, False) for kind in ("f32", "b32", "f64")],
    *BULK_LOAD.values(), *BULK_STORE.values(), BULK_COMMIT, BULK_WAIT, BULK_WAIT_READ, FENCE_PROXY_ASYNC, PREFETCH_MAP,
    setmaxnreg(24, False), setmaxnreg(240, True),
    *LOAD_PARAMETER.values(),
]  # fmt: skip
CONSTANT = {"pending": "2", "id": "3", "count": "32"}
TYPES = {
    "f32": "f32",
    "f64": "f64",
    "b32": "b32",
    "address": "b64",
    "shared": "b32",
    "value": "b32",
    "map": "b64",
}


def module(record: Instruction, target: Target, version: tuple[int, int] | None = None) -> str:
    """A kernel that executes it once, on registers that hold whatever memory gives."""
    major, minor = version or max(target.ptx, record.ptx)
    body = [".reg .b64 %base;", "ld.param.u64 %base, [memory];"]
    names: dict[str, list[str]] = {}
    stores: list[str] = []
    for number, o in enumerate(record.operands):
        if o.kind == "parameter":
            names[o.name] = ["number"]
        elif o.name in CONSTANT:
            names[o.name] = [CONSTANT[o.name]]
        else:
            names[o.name] = [f"%x{number}"]
            kind = TYPES[o.kind]
            body += [f".reg .{kind} %x{number};", f"ld.global.{kind} %x{number}, [%base+{8 * number}];"]
            if o.writes:
                stores.append(f"st.global.{kind} [%base+{8 * number}], %x{number};")
    return "\n".join(
        [
            f".version {major}.{minor}", f".target {target}", ".address_size 64",
            ".visible .entry kernel(.param .u64 memory, .param .f64 number)", ".maxntid 128", ".minnctapersm 1",
            "{", *body, record.text(names), *stores, "ret;", "}", "",
        ]
    )  # fmt: skip


@pytest.mark.parametrize("target", TARGETS.values(), ids=str)
def test_what_a_record_says_of_targets_is_what_the_assembler_does(target: Target) -> None:
    if find_ptxas() is None:
        pytest.fail("setmaxnreg is assembled by ptxas, which the extra cuda brings")
    for record in RECORDS:
        if record.refusal(target):
            with pytest.raises(AssemblerError):
                assemble(module(record, target), target, allow_spills=True)
        else:
            assemble(module(record, target), target, allow_spills=True)


@pytest.mark.parametrize("record", RECORDS, ids=lambda r: r.name)
def test_an_older_ptx_version_is_refused(record: Instruction) -> None:
    """The smallest version that a record names is the smallest that has it, on the oldest target that can show it."""
    older = version_before(record.ptx) if record.ptx > (6, 3) else None
    targets = [t for t in TARGETS.values() if not record.refusal(t) and older and t.ptx <= older]
    if older is None or not targets:
        return  # no target is as old as that
    with pytest.raises(AssemblerError):
        assemble(module(record, targets[0], older), targets[0], allow_spills=True)
