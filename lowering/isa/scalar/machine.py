"""The meaning of a block of scalar PTX: its statements, one after another, on the numbers of all lanes.

Where lanes disagree on a branch, those that stand at the first of all statements go on until they meet others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilelayout import LayoutError

from .decode import Step, decoded
from .values import bits, chosen


@dataclass(frozen=True)
class ScalarMeaning:
    """What a scalar instruction computes: a `Meaning` of its text, executed.

    Attributes:
        text: of the block, as `Instruction.text` gives it with each operand under ``%`` and its name.
        operands: names of those that are read.
        result: name of the one that is written.
        name: what messages call it.

    Every float is rounded at every step, and NaNs, infinities and what is beyond an integer are as PTX has them.

    Errors, when it is called: LayoutError with a statement that is not known.

    >>> text = "{ .reg .f32 u; max.f32 u, %x, 0f00000000; sqrt.rn.f32 u, u; mov.f32 %d, u; }"
    >>> x = np.float32([4, -1, np.nan]).view(np.uint32)[None, :, None]
    >>> ScalarMeaning(text, ("x",), "d")({"x": x})["d"].view(np.float32).ravel().tolist()
    [2.0, 0.0, 0.0]
    """

    text: str
    operands: tuple[str, ...]
    result: str = "d"
    name: str = "scalar PTX"

    def __call__(self, values: Mapping[str, Any]) -> dict[str, Any]:
        given = [np.ascontiguousarray(values[name], np.uint32) for name in self.operands]
        lanes = given[0].shape[:-1]
        registers = {
            f"%{n}": x.view(f"u{4 * x.shape[-1]}").reshape(-1)
            for n, x in zip(self.operands, given, strict=True)
        }
        with np.errstate(all="ignore"):
            execute(decoded(self.text, self.name), registers, int(np.prod(lanes)))
            found = bits(registers[f"%{self.result}"])
        whole = np.ascontiguousarray(np.broadcast_to(found, (int(np.prod(lanes)),)))
        return {self.result: whole.view(np.uint32).reshape(*lanes, -1)}


def execute(steps: tuple[Step, ...], registers: dict[str, Any], lanes: int) -> None:
    """Execute the steps for so many lanes; registers change."""
    everyone = np.ones(lanes, bool)
    waiting = {0: everyone}  # step -> the lanes that stand before it
    while waiting:
        at = min(waiting)
        active = waiting.pop(at)
        together = bool(active.all())
        while at < len(steps):
            step = steps[at]
            holds = None
            if step.guard:
                holds = _register(registers, step.guard, step)
                holds = everyone & (~holds if step.negated else holds)
            if step.goes is None:
                _compute(step, registers, holds if together else active if holds is None else active & holds)
                at += 1
            else:
                goes = active if holds is None else active & holds
                for where, who in ((step.goes, goes), (at + 1, active & ~goes)):
                    if who.any():
                        waiting[where] = waiting[where] | who if where in waiting else who
                break
            if waiting and at in waiting:
                waiting[at] = waiting[at] | active
                break


def _register(registers: Mapping[str, Any], name: Any, step: Step) -> Any:
    if not isinstance(name, str):
        return name
    try:
        return registers[name]
    except KeyError:
        raise LayoutError("scalar PTX", f"`{step.text}` reads {name}, which was never written") from None


def _compute(step: Step, registers: dict[str, Any], active: Any) -> None:
    """The results of a step, in lanes that are active (None: in all); the others keep what they hold."""
    found = step.function(*[_register(registers, x, step) for x in step.sources])  # type: ignore[misc]
    for name, value in zip(step.results, found if isinstance(found, tuple) else (found,), strict=True):
        if active is not None and name in registers:
            value = chosen(active, value, registers[name])
        registers[name] = value
