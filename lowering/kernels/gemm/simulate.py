"""The same program on any CPU: arrays become flat memory, all CTAs run on the reference machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tilelayout import LayoutError

from ...dtypes import dtype
from .built import Built, Copier
from .chain import Link, Space, links, space_of, spaces
from .numbers import Extents, grid_size

MULTIPROCESSORS = 4
"""That a simulated GPU has: few enough that CTAs take several tiles."""

MOST_ELEMENTS = 1 << 28
"""Of one array, from its first to its last."""


def run(
    built: Built,
    arrays: Mapping[str, Any],
    extents: Extents,
    alpha: float,
    beta: float,
    *,
    numerics: str,
    schedule: int,
) -> Any:
    """The result, of D's shape and type.

    Args:
        built: the kernel.
        arrays: by parameter, each with the batch first where there are batches; D for its shape and, between the
            elements, what is guarded.
        extents: whose strides the arrays have, in elements.
        alpha, beta: as of the kernel.
        numerics, schedule: as of the machine.

    Memory between the rows of the matrices is guarded: touching it is an error.
    """
    memory: dict[str, Any] = {}
    there: dict[str, Any] = {}
    holds: dict[str, Any] = {}
    places: dict[str, Any] = {}
    for name, array in arrays.items():
        at = _places(name, array.shape, extents, built)
        if at.max(initial=0) >= MOST_ELEMENTS:
            raise LayoutError(
                "simulate",
                f"{name} reaches over {int(at.max()) + 1} elements, which would all be held and watched",
                f"strides that stay below {MOST_ELEMENTS}",
            )
        flat = np.zeros(int(at.max(initial=0)) + 1, array.dtype)
        mask = np.zeros(flat.size, bool)
        flat[at] = array
        _check_shared(name, array, flat, at)
        mask[at] = True
        memory[name], there[name], places[name] = flat, mask, at
        holds[name] = mask if name != "D" else np.zeros_like(mask)
    own = spaces(built, extents)
    for name, space in own.items():
        memory[name] = np.zeros(space.elements, dtype(space.dtype).numpy)
        there[name] = np.arange(space.elements) % space.row < space.filled
        holds[name] = np.zeros(space.elements, bool)
    for link in links(built):
        tensors = {b.name: link.array(b.name) for b in link.built.program.buffers if b.space == "global"}
        found = _launched(
            link.built,
            link.built.values(extents, alpha, beta),
            {t: memory[name] for t, name in tensors.items()},
            {t: there[name] for t, name in tensors.items()},
            {t: holds[name] for t, name in tensors.items()},
            numerics=numerics,
            schedule=schedule,
        )
        memory |= {name: found[t] for t, name in tensors.items()}
        for name in tensors.values():
            if name in own:
                holds[name] = holds[name] | filled(link, name, own[name], extents)
    return memory["D"][places["D"]]


def filled(link: Link, name: str, space: Space, extents: Extents) -> Any:
    """Which elements of a space hold something once a kernel that has it among its tensors has run, by themselves."""
    rows, columns = np.divmod(np.arange(space.elements), space.row)
    inside = columns < space.filled
    if isinstance(link.built, Copier):
        for factor in link.built.copied:
            if space_of(factor) == name:
                high, wide = link.built.stored(factor, extents)
                inside &= (rows < high) & (columns < wide)
    return inside


def _launched(
    built: Built,
    values: dict[str, Any],
    memory: dict[str, Any],
    there: dict[str, Any],
    holds: dict[str, Any],
    **how: Any,
) -> dict[str, Any]:
    """The tensors after one kernel; what holds nothing must not be read before it is written, what is not `there` is
    guarded.
    """
    from ...backends.cta_machine import run_grid

    return run_grid(
        built.program,
        (grid_size(built.cut, values["tiles"], MULTIPROCESSORS), 1, 1),
        memory,
        {p.name: values[p.name] for p in built.program.parameters},
        written=holds,
        guarded={name: ~mask for name, mask in there.items()},
        **how,
    )


def _check_shared(name: str, array: Any, flat: Any, at: Any) -> None:
    """Refuse elements that lie in one place and differ: no memory is like that."""
    lost = flat[at].view(np.uint8) != np.ascontiguousarray(array).view(np.uint8)
    if lost.any():
        lost = lost.reshape(*array.shape, -1).any(-1)
        first = tuple(map(int, np.argwhere(lost)[0]))
        other = tuple(map(int, np.argwhere((at == at[first]) & ~lost)[0]))
        raise LayoutError(
            "simulate",
            f"{name}[{', '.join(map(str, first))}] and {name}[{', '.join(map(str, other))}] lie in one place, element "
            f"{int(at[first])} of memory, and differ",
            "pass what that memory holds",
        )


def _places(name: str, shape: tuple[int, ...], extents: Extents, built: Built) -> Any:
    """Where each element is in its flat memory."""
    index = np.indices(shape)
    if name == "bias":
        return index[0]
    matrix = next(m for m in built.problem.matrices if m.name == name)
    rows, columns = index[-2:]
    if matrix.layout is not None:
        at = matrix.layout.table(shape[-2:])["m"] + np.zeros(shape, np.int64)
    else:
        strides = [extents.leading[name]] * 2
        strides[matrix.contiguous] = 1
        at = rows * strides[0] + columns * strides[1]
    return at + index[0] * extents.batch[name] if len(shape) == 3 else at
