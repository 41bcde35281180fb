"""The kernels of one call, in order: copies of factors that lie badly, the product, the sum of parts of K."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from .numbers import Extents, parts_of
from .pack import Packing, packed_elements
from .panels import PROGRESS, counters, lines

if TYPE_CHECKING:
    from .built import Built

PARTS = "parts"


@dataclass(frozen=True)
class Link:
    """One kernel of a call.

    Attributes:
        built: the kernel.
        tensors: its tensor -> the call's array or space, where that has another name.
        what: it does.
    """

    built: Built
    tensors: Mapping[str, str]
    what: str

    def array(self, tensor: str) -> str:
        """What the call has for a tensor."""
        return self.tensors.get(tensor, tensor)


def links(built: Built) -> tuple[Link, ...]:
    """The kernels of a call, in order."""
    config = built.config
    own = {x: space_of(x) for x in config.packed}
    if config.beside:
        both = own | {lines(built.problem, config, x).given.name: x for x in config.packed}
        (first,) = built.packers
        needed = f"copies what the first tiles need of {' and '.join(config.packed)}"
        return Link(first, both, needed), Link(built, both, "multiplies, and copies the rest")
    out = [
        Link(packer, {"source": packer.copied, "packed": own[packer.copied]}, f"copies {packer.copied}")
        for packer in built.packers
    ]
    if built.second is None:
        return (*out, Link(built, own, "multiplies"))
    first = Link(built, {**own, "D": PARTS}, "multiplies parts of K")
    return (*out, first, Link(built.second, {}, "adds the parts"))


class Space(NamedTuple):
    """Memory of the call's own: rows of as many elements each, of which the first so many are used.

    Attributes:
        dtype, elements: of all of it.
        row, filled: elements from one row to the next, and those that a kernel writes.
    """

    dtype: str
    elements: int
    row: int
    filled: int


def spaces(built: Built, found: Extents) -> dict[str, Space]:
    """Memory of the call's own, by name."""
    out: dict[str, Space] = {}
    laid = built.laid(found)
    for x in built.config.packed:
        matrix, row = getattr(built.problem, x), laid.leading[x]
        size = packed_elements(Packing(x, matrix, built.problem.batched), found)
        out[space_of(x)] = Space(matrix.dtype, size, row, row)
    if built.config.beside:
        size = counters(built.config, found)
        out[PROGRESS.name] = Space(PROGRESS.dtype, size, size, size)
    if built.second is not None:
        size = laid.batch["D"] * found.batches * parts_of(built.config, found)
        out[PARTS] = Space(built.problem.accumulator, size, laid.leading["D"], found.N)
    return out


def space_of(factor: str) -> str:
    """The name of a factor's copy."""
    return f"packed {factor}"


__all__ = ["PARTS", "Link", "Space", "links", "space_of", "spaces"]
