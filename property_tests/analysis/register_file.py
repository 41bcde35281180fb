"""A register file in numpy, and a machine that executes conversion plans and matrix loads on it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tilelayout import TileLayout
from tilelayout.analysis import Access, ConversionPlan

WEIGHTS = {"laneid": 1, "tid_in_wg": 1, "tx": 1, "warpid": 32, "wid_in_wg": 32, "wgid": 128}
GAP, POISON = -1, -2
"""No element belongs here; nothing was ever written here."""


def register_file(layout: TileLayout, threads: int, slots: int) -> npt.NDArray[Any]:
    """[thread, slot] -> the flat index of the element there, GAP where there is none; place by place."""
    file = np.full((threads, slots), GAP)
    for element in range(layout.size()):
        for place in layout.owners(element):
            thread = sum(WEIGHTS[a] * v for a, v in place.items() if a != "m")
            file[thread, place.get("m", 0)] = element
    return file


def execute(plan: ConversionPlan, source: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The registers [thread, slot] after the plan, from those before; what is not written is POISON."""
    before = source.reshape(plan.threads, plan.source_units, plan.pack)
    results: dict[str, list[npt.NDArray[Any]]] = {"shuffle": [], "load": []}
    for shuffle in plan.shuffles:
        up = np.full((plan.threads, plan.pack), POISON)
        for thread, slot in enumerate(shuffle.publish):
            if slot is not None:
                up[thread] = before[thread, slot]
        got = np.full((plan.threads, plan.pack), POISON)
        for thread, lane in enumerate(shuffle.lanes):
            if lane is not None:
                assert 0 <= lane < 32
                got[thread] = up[thread // 32 * 32 + lane]
        results["shuffle"].append(got)
    shared = np.full((plan.buffer, plan.pack), POISON)
    written: set[int] = set()
    for store in plan.stores:
        for thread, address in enumerate(store.addresses):
            if address is not None:
                assert address not in written, "two stores race"
                written.add(address)
                shared[address] = before[thread, store.slot]
    for load in plan.loads:
        got = np.full((plan.threads, plan.pack), POISON)
        for thread, address in enumerate(load.addresses):
            if address is not None:
                got[thread] = shared[address]
        results["load"].append(got)
    after = np.full((plan.threads, plan.target_units, plan.pack), POISON)
    for slot, picks in enumerate(plan.results):
        for thread, pick in enumerate(picks):
            if pick is not None:
                mine = (
                    before[thread, pick.number]
                    if pick.source == "register"
                    else results[pick.source][pick.number][thread]
                )
                after[thread, slot] = mine
    return after.reshape(plan.threads, -1)


def load_matrices(accesses: tuple[Access, ...], transposed: bool, bits: int) -> npt.NDArray[Any]:
    """[lane, slot] -> element, as ldmatrix defines it: the reverse of what `matrix_accesses` looks for."""
    e = 32 // bits
    words = []
    for access in accesses:
        for r in range(len(access.lanes) // 8):
            matrix = np.array(access.lanes[8 * r : 8 * r + 8])  # row, element
            word = np.empty((32, e), int)
            for lane in range(32):
                for s in range(e):
                    row, column = lane // 4, lane % 4 * e + s
                    word[lane, s] = matrix[column, row] if transposed else matrix[row, column]
            words.append(word)
    return np.concatenate(words, axis=1)
