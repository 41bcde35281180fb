"""What the fuzz of whole kernels runs: some sixty kernels, and random problems for each, drawn from a number.

A kernel is a problem (types, orders, epilogue), what its arrays are aligned to, and a way to cut it.  A draw keeps to
that alignment and reaches it in the ways there are: by the first address, by the leading dimension, or by both.  No
array library and no GPU may enter.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import log2
from typing import Any

from lowering.dtypes import dtype
from lowering.kernels.gemm import Config, GemmKernel, gemm
from lowering.kernels.gemm.choose import configs
from lowering.target import Target
from tilelayout import TileLayout

LARGEST = 300
"""Of an extent."""
GUARD = 512
"""Bytes that are poisoned on either side of a buffer, at least."""

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "relu": lambda x: max(x, 0.0),
    "leaky": lambda x: x if x > 0 else 0.25 * x,
    "square": lambda x: x * x * 0.125,
}


@dataclass(frozen=True)
class Spec:
    """A kernel to try.

    Attributes:
        name: of the row.
        dtype: of A and B, one or a pair.
        options: of `gemm`: out, A, B, C, D, bias, batched, accumulator, shape.
        function: a name of `FUNCTIONS`.
        feed: how shared memory is fed; None leaves the cut to the kernel, call by call.
        cut: rows and columns of a tile, of which the feed's nearest is taken, and what is changed in its configuration.
        align: bytes that each matrix is aligned to, no more: 16 where nothing is said.
        scaled: whether there is an alpha other than 1.
        packed: whether the cut copies the factors that are aligned to less than 16 bytes.
    """

    name: str
    dtype: str | tuple[str, str] = "float16"
    options: Mapping[str, Any] = field(default_factory=dict)
    function: str = ""
    feed: str | None = None
    cut: tuple[tuple[int, int], Mapping[str, Any]] = ((128, 256), {})
    align: Mapping[str, int] = field(default_factory=dict)
    scaled: bool = False
    packed: bool = False

    @property
    def types(self) -> tuple[str, str]:
        return (self.dtype, self.dtype) if isinstance(self.dtype, str) else self.dtype

    def alignment(self, name: str) -> int:
        return self.align.get(name, 16)

    def kernel(self, target: Target) -> GemmKernel:
        """The kernel, for the best aligned arrays that it will see."""
        given = dict(self.options)
        if self.function:
            given["epilogue"] = FUNCTIONS[self.function]
        made = gemm(self.dtype, target=target, **given)
        if self.feed is None:
            return made
        return gemm(self.dtype, target=target, config=self.config(made), **given)

    def config(self, made: GemmKernel) -> Config:
        names = made.own_names
        seen = {n: 16 if self.packed and n in "AB" else self.alignment(n) for n in "ABCD"}
        problem = made.problem.aligned(**{names[n]: at for n, at in seen.items()})
        if made.problem.A.layout is not None or made.problem.B.layout is not None:
            problem = replace(problem, A=made.problem.A, B=made.problem.B)
        (m, n), changed = self.cut
        found = configs(problem, made.target, self.feed)  # type: ignore[arg-type]
        nearest = min(found, key=lambda c: abs(log2(c.tile[0] / m)) + abs(log2(c.tile[1] / n)))
        return replace(nearest, **changed)


@dataclass(frozen=True)
class Place:
    """Where a matrix is in its allocation.

    Attributes:
        batches, rows, columns: its extents.
        row_stride, column_stride, batch_stride: in elements.
        before: bytes from an address that is a multiple of `GUARD` to its first element.
        layout: instead of the strides.
    """

    batches: int
    rows: int
    columns: int
    row_stride: int
    column_stride: int
    batch_stride: int
    before: int
    layout: TileLayout | None = None

    @property
    def elements(self) -> int:
        """From the first to the one past the last."""
        if 0 in (self.batches, self.rows, self.columns):
            return 0
        if self.layout is not None:
            return self.layout.span("m")
        ends = (
            (self.batches - 1) * self.batch_stride,
            (self.rows - 1) * self.row_stride,
            (self.columns - 1) * self.column_stride,
        )
        return sum(ends) + 1


@dataclass(frozen=True)
class Case:
    """One problem for a kernel.

    Attributes:
        M, N, K, batches: of the product; `batches` is None for a kernel of single matrices.
        places: of A, B, C, D and the bias, those that there are.
        alpha, beta: as they are passed.
        whole: whether numbers are small integers, whose sums are exact.
        in_place: whether C is D.
        twice: whether it is launched again, to compare every bit.
        fresh: whether the kernel makes D.
    """

    M: int
    N: int
    K: int
    batches: int | None
    places: Mapping[str, Place]
    alpha: float
    beta: float | None
    whole: bool
    in_place: bool
    twice: bool
    fresh: bool

    def __str__(self) -> str:
        batch = f"{self.batches} x " if self.batches is not None else ""
        places = "; ".join(
            f"{n} at +{p.before} strides {p.batch_stride}, {p.row_stride}, {p.column_stride}"
            for n, p in self.places.items()
        )
        flags = [n for n in ("whole", "in_place", "twice", "fresh") if getattr(self, n)]
        numbers = f"{batch}M={self.M} N={self.N} K={self.K} alpha={self.alpha} beta={self.beta}"
        return f"{numbers} {' '.join(flags)}: {places}"


# --- drawing --------------------------------------------------------------------------------------


def draw(spec: Spec, seed: int, config: Config | None, largest: int = LARGEST, multiple: int = 1) -> Case:
    """The problem of a kernel that a number stands for; with extents that are multiples, and not 0, where asked."""
    rng = random.Random(f"{spec.name}:{seed}")
    fixed = spec.options.get("shape")
    tile = config.tile if config else (64, 64, 64)
    m, n, k = fixed or (extent(rng, t, largest) for t in tile)
    if multiple > 1 and not fixed:
        m, n, k = (multiple * max(1, x // multiple) for x in (m, n, k))
    if config and config.slots and not fixed:  # the copy engine stores whole units of 16 bytes
        unit = 16 * 8 // dtype(result_type(spec)).bits
        if spec.options.get("D", "row") == "row":
            n = -(-n // unit) * unit
        else:
            m = -(-m // unit) * unit
    batches = rng.choice((1, 2, 3, 5)) if spec.options.get("batched") else None
    whole = rng.random() < 0.5
    alphas = [0.5, -1.0, 2.0, 1.5] if whole else [0.5, -1.25, 2.0, 0.3]
    alpha = rng.choice(alphas) if spec.scaled else 1.0
    if not fixed and rng.random() < 0.05:
        alpha = 0.0
    has_c = bool(spec.options.get("C"))
    beta = rng.choice([None, 1.0, -0.5, 2.0, 0.0 if rng.random() < 0.3 else 0.5]) if has_c else None
    c_order, d_order = spec.options.get("C"), spec.options.get("D", "row")
    in_place = (
        has_c and c_order == d_order and spec.alignment("C") == spec.alignment("D") and rng.random() < 0.3
    )
    shapes = {"A": (m, k), "B": (k, n), "D": (m, n)} | ({"C": (m, n)} if has_c else {})
    places = {name: place(rng, spec, name, shape, batches) for name, shape in shapes.items()}
    if in_place:
        places["C"] = places["D"]
    bias = spec.options.get("bias")
    if bias:
        size = dtype(result_type(spec)).bits // 8
        places["bias"] = Place(1, 1, n if bias == "row" else m, 0, 1, 0, size * rng.randrange(16))
    twice, fresh = rng.random() < 0.15, not in_place and rng.random() < 0.05 and can_be_made(spec, places, n)
    return Case(m, n, k, batches, places, alpha, beta, whole, in_place, twice, fresh)


def can_be_made(spec: Spec, places: Mapping[str, Place], n: int) -> bool:
    """Whether the kernel's own D has the batches and the alignment of this one."""
    plain = n * dtype(result_type(spec)).bits // 8 % 16 == 0 and spec.options.get("D", "row") == "row"
    batches = max(places["A"].batches, places["B"].batches) == places["D"].batches
    return plain and batches and spec.alignment("D") == 16


def extent(rng: random.Random, tile: int, largest: int) -> int:
    """Few, around a multiple of the tile, or any."""
    kind = rng.random()
    if kind < 0.12:
        n = rng.choice((0, 1, 1, 2, 3, 7, 8, 9, 15, 16, 17))
    elif kind < 0.5:
        n = tile * rng.randint(1, max(1, largest // tile)) + rng.choice((-8, -1, 0, 0, 0, 1, 8))
    else:
        n = rng.randint(0, largest)
    return max(0, min(largest, n))


def place(rng: random.Random, spec: Spec, name: str, shape: tuple[int, int], batches: int | None) -> Place:
    """A matrix aligned to what the kernel's is, and to no more."""
    size = dtype(type_of(spec, name)).bits // 8
    aligned = max(size, spec.alignment(name))
    unit = aligned // size
    given = spec.options.get(name, "row")
    count = 1 if batches is None else batches
    if batches is not None and name in "ABC" and rng.random() < 0.2:
        count = 1
    if isinstance(given, TileLayout):
        return Place(count, *shape, 0, 0, 0, size * rng.randrange(8), given)
    contiguous = 1 if given == "row" else 0
    across, along = shape[1 - contiguous], shape[contiguous]
    units = -(-max(1, along) // unit) + rng.choice((0, 0, 0, 1, 2, 5))
    by = rng.choice(("address", "leading", "both")) if aligned < 16 else ""
    if across <= 1 and by:
        by = "address"
    if by in ("leading", "both") and units % 2 == 0:
        units += 1
    if by == "address" and rng.random() < 0.5:  # the leading dimension as well aligned as can be
        units = -(-units * unit // (16 // size)) * (16 // size) // unit
    step = 2 * rng.randrange(4) + 1 if by in ("address", "both") else 2 * rng.randrange(4)
    before = step * aligned if aligned < 16 else 16 * rng.randrange(8)
    leading = units * unit
    between = -(-(leading * max(1, across)) // unit) * unit + unit * rng.choice((0, 1, 4))
    strides = (leading, 1) if contiguous == 1 else (1, leading)
    return Place(count, *shape, *strides, between, before)


def type_of(spec: Spec, name: str) -> str:
    """Of a matrix, or of the bias."""
    return {"A": spec.types[0], "B": spec.types[1]}.get(name) or result_type(spec)


def result_type(spec: Spec) -> str:
    from lowering.kernels.gemm.problem import OUTPUTS

    return spec.options.get("out") or OUTPUTS[spec.types[0]]
