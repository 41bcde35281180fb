"""Arithmetic and conversions for every target: what a record's gate says, and what the assembler says."""

from __future__ import annotations

import sys

import pytest

from lowering.backends.assemble import assemble
from lowering.isa.arithmetic import ADD, FMA, MUL, constant
from lowering.isa.convert import FLOAT64_TO_INT32, INT32_TO_FLOAT64, PACK, UNPACK
from lowering.target import TARGETS, target

from .instruction_ptx import check_version, module_of, refusal_of

pytestmark = pytest.mark.skipif(
    sys.platform not in ("linux", "win32"), reason="NVIDIA's libraries are not published for this system"
)

EVERY = [
    *[i for table in (PACK, UNPACK) for found in table.values() for i in found],
    FLOAT64_TO_INT32,
    INT32_TO_FLOAT64,
    *[i for table in (MUL, ADD, FMA) for i in table.values()],
    constant("f32", 0x7F800001),
    constant("f64", 0xFFF0000000000001),
    constant("b32", 0xFFFFFFFF),
]


@pytest.mark.parametrize("name", TARGETS)
def test_the_gate_is_the_assemblers(name: str) -> None:
    where = target(name)
    has = [i for i in EVERY if not i.refusal(where)]
    assert len(has) > 10
    assemble(module_of(has, where), where)
    for i in EVERY:
        if i.refusal(where):
            assert refusal_of(i, where), i.name


@pytest.mark.parametrize(
    "record", {i.name: i for i in EVERY if i.ptx > (6, 3)}.values(), ids=lambda i: i.name
)
def test_an_older_version_of_ptx_does_not_have_it(record) -> None:
    check_version(record)
