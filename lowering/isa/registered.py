"""Records that somebody else adds: `gemm` tries them beside those of `DENSE`, before them at the same K."""

from __future__ import annotations

import sys

from ..errors import PluginError
from .mma import DENSE, MmaInstruction

_added: dict[str, tuple[MmaInstruction, str]] = {}  # name -> the record, and the module that registered it


def register_instruction(record: MmaInstruction) -> MmaInstruction:
    """Let ``gemm`` try a dense record of one's own, with 16 or 8 rows, from now on and on every backend.

    A plug-in calls it when it is imported; `temporary_variants` undoes it.  For one call alone there is
    ``lower(..., config={"records": [record]})``.  Returns the record.

    Errors: TypeError for what is no `MmaInstruction`; PluginError when another record has the name, naming both
    providers.

    >>> from dataclasses import replace
    >>> from lowering import temporary_variants
    >>> with temporary_variants():
    ...     register_instruction(replace(DENSE[0], k=32)).name
    'm16n8k32.f16'
    """
    if not isinstance(record, MmaInstruction):
        raise TypeError(f"register_instruction takes an MmaInstruction, got {record!r}")
    provider = str(sys._getframe(1).f_globals.get("__name__", "?"))  # who calls, for the message
    built_in = "lowering.isa.DENSE" if any(i.name == record.name for i in DENSE) else ""
    first = _added[record.name][1] if record.name in _added else built_in
    if first:
        raise PluginError(f"instruction {record.name!r} is registered twice: by {first} and by {provider}")
    _added[record.name] = (record, provider)
    return record


def added() -> tuple[MmaInstruction, ...]:
    """The registered records, in the order of their registration."""
    return tuple([record for record, _ in _added.values()])


def snapshot() -> dict[str, tuple[MmaInstruction, str]]:
    """What is registered, for `restore`."""
    return dict(_added)


def restore(state: dict[str, tuple[MmaInstruction, str]]) -> None:
    _added.clear()
    _added.update(state)
