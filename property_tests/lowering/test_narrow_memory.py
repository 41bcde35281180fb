"""Loads and stores of bytes and halves into and from parts of registers: meaning, and text for every target."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lowering.backends.assemble import assemble
from lowering.backends.ptx import ptx_module
from lowering.backends.reference import File, Memory, run_program
from lowering.isa import STORES, ZERO
from lowering.isa.narrow_memory import LOAD_INTO, STORE_FROM
from lowering.program import Address, Buffer, Instr, Program, Registers, Slot
from lowering.target import TARGETS, target
from tilelayout.expr import Var

LANE = Var("lane", 0, 31)


def buffer(name: str, space: str, length: int = 128, kind: str = "uint8") -> Buffer:
    return Buffer(name, name, kind, (length,), 0, space, 16)


def full(b: Buffer, data: Any) -> Memory:
    store = Memory.empty(b)
    store.data[...] = data
    store.written[...] = True
    return store


@pytest.mark.parametrize("kind", ["uint8", "uint16"])
@pytest.mark.parametrize("key", list(LOAD_INTO), ids=str)
def test_part_of_a_register(key: Any, kind: str) -> None:
    """Bits around the part stay, memory around the place stays; from memory of bytes, and of halves."""
    space, width, at = key
    if kind == "uint16" and width == 8:
        return  # half an element has no address
    data = np.random.default_rng(0).integers(0, 256, 128).astype(np.uint8)
    b = buffer("b", space, 128 if kind == "uint8" else 64, kind)
    place = LANE * (4 if kind == "uint8" else 2)
    r = Registers("r", "r", "uint32", 1, "b32")
    for table in (LOAD_INTO, STORE_FROM):
        load = table is LOAD_INTO
        arguments = ((Slot(r, 0),), Address(b, (place,))) if load else (Address(b, (place,)), (Slot(r, 0),))
        program = Program("part", 1, (r,), (r,), (Instr(table[key], arguments),), (b,))  # type: ignore[arg-type]
        words = np.random.default_rng(1).integers(0, 1 << 32, (1, 32, 1)).astype(np.uint32)
        store = full(b, data.view(kind))
        file = File(words.copy(), np.ones((1, 32, 1), bool))
        run_program(program, {r: file}, {b: store})
        registers = words.view(np.uint8).reshape(32, 4)
        memory = data.reshape(32, 4)
        first, size = at // 8, width // 8
        wanted, kept = registers.copy(), memory.copy()
        if load:
            wanted[:, first : first + size] = memory[:, :size]
        else:
            kept[:, :size] = registers[:, first : first + size]
        np.testing.assert_array_equal(file.words.view(np.uint8).reshape(32, 4), wanted)
        np.testing.assert_array_equal(store.data.view(np.uint8).reshape(32, 4), kept)


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_every_target_assembles_them(name: str) -> None:
    r = Registers("r", "r", "uint32", 1, "b32")
    (slot,) = slots = (Slot(r, 0),)
    spaces = {s: buffer(s, s) for s in ("global", "shared")}
    body: list[Any] = [Instr(ZERO["b32"], (slots,))]
    for (space, width, at), record in LOAD_INTO.items():
        body.append(Instr(record, (slots, Address(spaces[space], (LANE * 4,)))))
        body.append(Instr(STORE_FROM[space, width, at], (Address(spaces[space], (LANE * 4,)), slots)))
    body.append(Instr(STORES["global", "b32", 1], (Address(spaces["global"], (LANE * 4,)), (slot,))))
    program = Program("parts", 1, (), (), tuple(body), tuple(spaces.values()), (r,))
    assert assemble(ptx_module(program, target(name)), target(name)).local_bytes == 0
