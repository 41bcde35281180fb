"""Whole kernels: load the fragments, run the program, store the result; one CTA."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
from numba import cuda
from numba.cuda import types
from numba.cuda.core.errors import NumbaPerformanceWarning

from tilelayout import LayoutError

from ...program import Program
from ...target import Target
from ...target import target as as_target
from ...tile import Tile
from ..arrays import blank, from_memory, to_memory
from .fragment import FragmentType, of_registers
from .function import DeviceFunction, device_function
from .gpu import check_can_launch
from .ptx import check_instructions, compile_ptx

Tiles = Mapping[str, Tile]


class Staged(Protocol):
    """A register program that is to become a kernel (`lowering.compose` makes them; it stands above this room)."""

    @property
    def core(self) -> Program:
        """The register program."""

    @property
    def threads(self) -> int:
        """The threads of the CTA."""


def kernel(staged: Staged, tiles: Tiles) -> Any:
    """A ``@cuda.jit`` kernel ``(A, B, [C], [D_prev], D)`` on arrays of the tiles' shapes, for ``staged.threads``.

    C, and D_prev (what D held before), are parameters where the program reads them.  Arrays have the types of
    `FragmentType.array_types`: what numba has no type for comes as bits, and elements of less than a byte are packed.
    """
    # Without link-time optimization the code is what `kernel_ptx` shows and the tests assemble.
    return cuda.jit(_body(device_function(staged.core, tiles)), launch_bounds=staged.threads, lto=False)


def kernel_ptx(staged: Staged, tiles: Tiles, target: Target | str) -> str:
    """The PTX of `kernel` for row-major arrays.

    Errors: ValueError for an unknown target; CompileError for one that lacks an instruction of the program, or that the
    installed libraries do not know.
    """
    where = as_target(target)
    check_instructions(staged.core, where)
    function = device_function(staged.core, tiles)
    roles = (*function.roles, staged.core.outputs[0].role)
    arrays = [types.Array(function.types[r].array_types[0], len(tiles[r].shape), "C") for r in roles]
    return compile_ptx(_body(function), arrays, where, threads=staged.threads)


def launch(staged: Staged, tiles: Tiles, arrays: Mapping[str, Any], code: Any = None) -> Any:
    """Run the kernel on the current GPU; returns D as a new numpy array of its tile's shape and type.

    Args:
        staged: the program.
        tiles: the operands' tiles by role.
        arrays: numpy arrays by role, in the tiles' shapes and types.  "D", what it held before, may be left out: then
            it is all bits 1, a NaN or -1.
        code: what `kernel` made of the same program and tiles, so that it is compiled only once.

    D's memory is all bits 1 before the launch, so that an element which nothing writes shows (as NaN in floats).
    Errors: LayoutError for a missing or unfitting array; DriverError where there is no driver or no GPU, or the GPU
    lacks an instruction or is unknown to the installed libraries.
    """
    output = staged.core.outputs[0]
    tile, form = tiles[output.role], of_registers(output)
    poison = blank(tile.shape, tile.element)
    given = {output.role: poison, **arrays}
    inputs = [_carried(_fitting(given, r.role, tiles[r.role]), of_registers(r)) for r in staged.core.inputs]
    check_can_launch(staged.core)
    result = cuda.to_device(_carried(poison, form))
    code = code or kernel(staged, tiles)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumbaPerformanceWarning)  # one CTA is what is asked for
        code[1, staged.threads](*[cuda.to_device(x) for x in inputs], result)
    held = result.copy_to_host()
    whole = form.container == form.element.bits >= 8
    return held.view(tile.element.numpy) if whole else from_memory(held, tile.element, form.container)


def _body(f: DeviceFunction) -> Callable[..., None]:
    """The kernel's Python function; numba wants one with as many parameters as there are arrays."""
    loads = [getattr(f, f"load_{role.lower()}") for role in f.roles]
    if not loads:

        def body(D: Any) -> None:
            f.store(D, f())

    elif len(loads) == 1:
        (load,) = loads

        def body(A: Any, D: Any) -> None:
            f.store(D, f(load(A)))

    elif len(loads) == 2:
        load_a, load_b = loads

        def body(A: Any, B: Any, D: Any) -> None:
            f.store(D, f(load_a(A), load_b(B)))

    elif len(loads) == 3:
        load_a, load_b, load_c = loads

        def body(A: Any, B: Any, C: Any, D: Any) -> None:
            f.store(D, f(load_a(A), load_b(B), load_c(C)))

    elif len(loads) == 4:
        load_a, load_b, load_c, load_d = loads

        def body(A: Any, B: Any, C: Any, D_prev: Any, D: Any) -> None:
            f.store(D, f(load_a(A), load_b(B), load_c(C), load_d(D_prev)))

    else:
        raise LayoutError(
            "kernel", f"program {f.program.name} has {len(loads)} inputs, up to four are expected"
        )
    body.__name__ = body.__qualname__ = f"{f.program.name}_kernel"
    return body


def _carried(array: Any, form: FragmentType) -> Any:
    """The array as numba-cuda takes it: contiguous, packed, as bits where numba has no type for it."""
    held = np.ascontiguousarray(to_memory(array, form.element, form.container))
    kind = np.dtype(form.array_types[0].name)
    return held if held.dtype == kind else held.view(kind)


def _fitting(arrays: Mapping[str, Any], role: str, tile: Tile) -> Any:
    if role not in arrays:
        raise LayoutError("launch", f"operand {role} is read and was not given")
    array = np.asarray(arrays[role])
    if array.shape != tile.shape or array.dtype != tile.element.numpy:
        raise LayoutError(
            "launch",
            f"{role} is a {tile.dtype} array of shape {tile.shape}, got {array.dtype} of shape {array.shape}",
        )
    return array
