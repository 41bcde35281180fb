"""Kernels on disk as a launch needs them: machine code, parameters and tensor maps, without the program.

Making the program takes several times as long as everything else that a second process does before its first launch.
An entry depends on the problem, on how it is cut, on the target, on the assembler, and on every source file of the two
packages; with variants that somebody else registered nothing is kept, since their code is not known here.
"""

from __future__ import annotations

import sys
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from tilelayout.expr import Expr, Index, Polynomial, Var

from ...backends.driver.assembler_version import assembler_version
from ...backends.driver.cache import entry, keep
from ...backends.ptxas import find_ptxas, ptxas_version
from ...control import Parameter, TensorMap
from ...dispatch import REGISTRY
from ...program import Buffer, Program
from ...storage import RUN_TIME
from ...target import Target
from .config import Config
from .problem import Problem

_KIND = "gemm"


class Kept(NamedTuple):
    """What a launch needs of a kernel.

    Attributes:
        shell: the program's name, warps, tensors in global memory, parameters and maps; without statements.
        dynamic: bytes of shared memory that a launch gives a CTA.
        data: the cubin.
    """

    shell: Program
    dynamic: int
    data: bytes


def shell_of(program: Program) -> Program:
    """The program without what it does."""
    tensors = tuple([b for b in program.buffers if b.space == "global"])
    return Program(
        program.name, program.warps, (), (), (), tensors, parameters=program.parameters, maps=program.maps
    )


def find(which: str, problem: Problem, config: Config, target: Target) -> Kept | None:
    """What was kept; None where nothing was."""
    key = _key(which, problem, config, target)
    found = None if key is None else entry(_KIND, key)
    if found is None:
        return None
    about, data = found
    try:
        tensors = {
            x["name"]: Buffer(
                x["name"], x["role"], x["dtype"], (RUN_TIME,), x["container"], "global", x["alignment"]
            )
            for x in about["tensors"]
        }
        parameters = tuple([Parameter(**x) for x in about["parameters"]])
        maps = tuple([_map(x, tensors) for x in about["maps"]])
        shell = Program(
            about["name"],
            about["warps"],
            (),
            (),
            (),
            tuple(tensors.values()),
            parameters=parameters,
            maps=maps,
        )
        return Kept(shell, about["dynamic"], data)
    except (KeyError, TypeError, ValueError):
        return None


def put(which: str, problem: Problem, config: Config, target: Target, kept: Kept) -> None:
    """Keep it."""
    key = _key(which, problem, config, target)
    if key is None:
        return
    shell = kept.shell
    about = {
        "name": shell.name,
        "warps": shell.warps,
        "dynamic": kept.dynamic,
        "tensors": [
            {
                "name": b.name,
                "role": b.role,
                "dtype": b.dtype,
                "container": b.container,
                "alignment": b.alignment,
            }
            for b in shell.buffers
        ],
        "parameters": [{"name": p.name, "kind": p.kind, "lo": p.lo, "hi": p.hi} for p in shell.parameters],
        "maps": [
            {
                "name": m.name,
                "buffer": m.buffer.name,
                "sizes": [_terms(x) for x in m.sizes],
                "strides": [_terms(x) for x in m.strides],
                "box": list(m.box),
                "swizzle": m.swizzle,
                "whole_units": m.whole_units,
            }
            for m in shell.maps
        ],
    }
    keep(_KIND, key, about, kept.data)


def _map(x: dict[str, Any], tensors: dict[str, Buffer]) -> TensorMap:
    sizes, strides = (tuple([_index(y) for y in x[name]]) for name in ("sizes", "strides"))
    return TensorMap(
        x["name"], tensors[x["buffer"]], sizes, strides, tuple(x["box"]), x["swizzle"], x["whole_units"]
    )


def _terms(x: Index) -> Any:
    """A sum of products of variables, as JSON has it."""
    if not isinstance(x, Expr):
        return x
    terms = x.terms if isinstance(x, Polynomial) else {(x,): 1}
    out: list[Any] = []
    for atoms, k in terms.items():
        if not all(isinstance(a, Var) for a in atoms):
            raise TypeError(f"{x} is no sum of products of variables")
        out.append([[[a.name, a.lo, a.hi] for a in atoms], k])  # type: ignore[union-attr]
    return out


def _index(x: Any) -> Index:
    if isinstance(x, int):
        return x
    total: Index = 0
    for atoms, k in x:
        product: Index = k
        for name, lo, hi in atoms:
            product = product * Var(name, lo, hi)
        total = total + product
    return total


# --- keys -------------------------------------------------------------------------------------------


def _key(which: str, problem: Problem, config: Config, target: Target) -> list[str] | None:
    """All that a kernel depends on; None where that is not known."""
    own = __name__.partition(".")[0]
    if any(v.provider.partition(".")[0] != own for v in REGISTRY.variants()):
        return None
    try:
        return [which, repr(problem), repr(config), target.name, _assemblers(), _sources()]
    except ImportError:
        return None


@cache
def _assemblers() -> str:
    program = find_ptxas()
    return f"{assembler_version()}, {ptxas_version(program) if program else 'no ptxas'}"


@cache
def _sources() -> str:
    """A hash of names, sizes and dates of the packages' source files."""
    text: list[str] = []
    for package in (__name__.partition(".")[0], "tilelayout"):
        for folder in getattr(sys.modules[package], "__path__", ()):
            for file in sorted(Path(folder).rglob("*.py")):
                state = file.stat()
                text.append(f"{file} {state.st_size} {state.st_mtime_ns}")
    return sha256("\n".join(text).encode()).hexdigest()
