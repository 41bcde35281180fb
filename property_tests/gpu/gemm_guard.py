"""Arrays on a GPU (or, in torch's memory, on a CPU) in the middle of a poisoned allocation, and whether that still is.

Poison is bytes of 0xff for floats, which is NaN in all of them, and 0x7f for integers: before, behind, between the
rows, between the batches, and in D before the launch.
"""

from __future__ import annotations

from typing import Any

import torch

from lowering.dtypes import dtype

from .gemm_problems import GUARD, Place

WORDS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
"""Bytes of an element -> the type that its bits are moved and compared as."""


def torch_type(name: str) -> Any:
    return torch.float32 if name == "tfloat32" else getattr(torch, name)


class Guarded:
    """A matrix, or batches of it, somewhere in an allocation of its own.

    Attributes:
        name, kind: what it is, its element type.
        place: where it lies.
        array: what a kernel is given.
    """

    def __init__(self, name: str, kind: str, place: Place, device: str, batched: bool) -> None:
        self.name, self.kind, self.place = name, kind, place
        self.size = dtype(kind).bits // 8
        self.poison = 0x7F if dtype(kind).is_integer else 0xFF
        needed = place.elements * self.size
        room = 2 * GUARD + -(-(place.before + needed) // GUARD) * GUARD + GUARD
        self.raw = torch.full((room,), self.poison, dtype=torch.uint8, device=device)
        misplaced = -self.raw.data_ptr() % GUARD
        self.start = GUARD + misplaced + place.before
        flat = self.raw[self.start : self.start + needed].view(WORDS[self.size])
        self.words = self._elements(flat)  # batches, rows, columns
        self.array = self._given(flat, batched)
        self.before = self.raw

    def _elements(self, flat: Any) -> Any:
        p = self.place
        shape = (p.batches, p.rows, p.columns)
        if p.layout is None:
            return flat.as_strided(shape, (p.batch_stride, p.row_stride, p.column_stride))
        where = torch.from_numpy(p.layout.table(shape[1:])["m"].reshape(-1)).to(flat.device)
        return _Scattered(flat, where, shape)

    def _given(self, flat: Any, batched: bool) -> Any:
        if self.place.layout is not None:  # a kernel with a layout goes by the address alone
            return flat.view(torch_type(self.kind))[: self.place.rows * self.place.columns].view(
                self.place.rows, self.place.columns
            )
        typed = self.words.view(torch_type(self.kind)) if self.words.numel() else self._empty()
        if self.name == "bias":
            return typed[0, 0]
        return typed if batched else typed[0]

    def _empty(self) -> Any:
        p = self.place
        return torch.empty(
            (p.batches, p.rows, p.columns), dtype=torch_type(self.kind), device=self.raw.device
        )

    def fill(self, values: Any) -> None:
        """Set the elements, `values` of their type; what there is now is what must stay."""
        if self.words.numel():
            self.words.copy_(values.reshape(self.words.shape).contiguous().view(WORDS[self.size]))
        self.before = self.raw.clone()

    def read(self) -> Any:
        """The elements, of their type."""
        return self.words.clone().contiguous().view(torch_type(self.kind))

    def touched(self, written: bool) -> Any:
        """How many bytes were changed that must not be (a number on the device): all but the elements of D."""
        now = self.raw
        if written:
            poison = torch.full((1,), self.poison, dtype=torch.uint8, device=now.device)
            kept = self.words.clone()
            self.words.copy_(poison.repeat(self.size).view(WORDS[self.size]).expand(self.words.shape))
            changed = (now != self.poison).sum()
            self.words.copy_(kept)
            return changed
        return (now != self.before).sum()

    def where(self, written: bool) -> str:
        """Which bytes were changed, counted from the first element, for a message."""
        kept = self.words.clone()
        if written:
            poison = torch.full((1,), self.poison, dtype=torch.uint8, device=self.raw.device)
            self.words.copy_(poison.repeat(self.size).view(WORDS[self.size]).expand(self.words.shape))
        wrong = (self.raw != (self.poison if written else self.before)).nonzero().flatten() - self.start
        self.words.copy_(kept)
        found = wrong.tolist()
        return f"{len(found)} bytes of {self.name}'s allocation were overwritten, {found[:8]} ... from its beginning"


class _Scattered:
    """Elements that a layout places, in the manner of a tensor of their shape."""

    def __init__(self, flat: Any, where: Any, shape: tuple[int, ...]) -> None:
        self.flat, self.index, self.shape = flat, where, shape

    def numel(self) -> int:
        return self.index.numel()

    def copy_(self, values: Any) -> None:
        self.flat[self.index] = values.reshape(-1)

    def clone(self) -> Any:
        return self.flat[self.index].reshape(self.shape)
