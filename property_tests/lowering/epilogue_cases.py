"""Kernels of one CTA whose sums come from memory: an epilogue run on the machine, and what is right."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lowering.backends.cta_machine import run_grid
from lowering.control import Parameter
from lowering.dtypes import dtype
from lowering.fragments import partition
from lowering.isa import DENSE, LOADS
from lowering.kernels.epilogue import Epilogue, direct_epilogue
from lowering.narrow import from_float
from lowering.program import Address, Buffer, Instr, Program, Registers, Slot
from lowering.target import target
from lowering.window import Window
from tilelayout.expr import Var

LANE, WARP = Var("lane", 0, 31), Var("warp", 0, 31)
RECORDS = {
    "float32": "m16n8k16.bf16",
    "float64": "m8n8k4.f64",
    "int32": "m16n8k32.s8",
    "float16": "m16n8k16.f16.f16.f16.f16",
}
LIMIT = 1 << 20
M, N = (Parameter(n, "s32", 1, LIMIT) for n in "MN")
ROW, COLUMN = (Parameter(n, "s32", 0, LIMIT) for n in ("row", "column"))


@dataclass(frozen=True)
class Case:
    """An epilogue of a tile at a place of a result of some size.

    Attributes:
        spec: what is done.
        size: rows and columns of the result.
        origin: of the tile.
        tile, warps: rows and columns of the tile, and of the warps.
        pads: elements between rows beyond the columns, of D and C.
        alignment: bytes that D's and C's rows are multiples of; 0: those of an element.
        c_dtype, bias_dtype: of what is read.
        c_order: "row" or "column".
        target: by name.
        inside: what the caller claims.
    """

    spec: Epilogue
    size: tuple[int, int] = (16, 16)
    origin: tuple[int, int] = (0, 0)
    tile: tuple[int, int] = (16, 16)
    warps: tuple[int, int] = (1, 1)
    pads: tuple[int, int] = (0, 0)
    alignment: int = 0
    c_dtype: str = "float32"
    bias_dtype: str = "float32"
    c_order: str = "row"
    target: str = "sm_90a"
    inside: frozenset[int] = field(default_factory=frozenset)

    def stride(self, name: str, element: str, extent: int) -> int:
        """Elements from one row to the next."""
        bits = dtype(element).bits
        step = max(1, 8 * self.alignment // bits)
        return -(-(extent + self.pads[name == "C"]) // step) * step

    def window(self, name: str, element: str, order: str = "row") -> Window:
        """On the tile; it begins at a multiple of its extents, which a kernel knows."""
        size = dtype(element).bits // 8
        stride = Var(f"ld{name}", 1, LIMIT)
        strides = (stride, 1) if order == "row" else (1, stride)
        origin = tuple([o.variable * n for o, n in zip((ROW, COLUMN), self.tile, strict=True)])
        dims = tuple([((n.variable, s),) for n, s in zip((M, N), strides, strict=True)])
        sizes = (M.variable, N.variable)
        return Window(name, element, dims, sizes, origin, self.tile, max(self.alignment, size))

    def program(self) -> tuple[Program, Registers, Any]:
        """The kernel, its accumulators and their layout."""
        record = next(r for r in DENSE if r.name == RECORDS[self.spec.acc])
        layout = partition(record, *self.tile, record.k, warps=self.warps).D
        warps = self.warps[0] * self.warps[1]
        kind = {"float32": "f32", "float64": "f64"}.get(self.spec.acc, "b32")
        slots = self.tile[0] * self.tile[1] // (32 * warps)
        count = slots * dtype(self.spec.acc).bits // (64 if kind == "f64" else 32)
        sums = Registers("sums", "D", self.spec.acc, count, kind)
        memory = Buffer("S", "S", self.spec.acc, (warps * 32 * slots,), alignment=16)
        along = {"row": 1, "column": 0}.get(self.spec.bias, 0)
        n = (M, N)[along].variable
        vector = Window(
            "bias", self.bias_dtype, (((n, 1),),), (n,), ((ROW, COLUMN)[along].variable * self.tile[along],),
            (self.tile[along],), max(self.alignment, dtype(self.bias_dtype).bits // 8),
        )  # fmt: skip
        tail = direct_epilogue(
            self.spec,
            sums,
            layout,
            self.window("D", self.spec.out),
            target=target(self.target),
            C=self.window("C", self.c_dtype, self.c_order) if self.spec.has_c else None,
            bias=vector if self.spec.bias else None,
            inside=self.inside,
        )
        thread = (WARP * 32 + LANE) * slots if warps > 1 else LANE * slots
        load = LOADS["global", kind, 1]  # type: ignore[index]
        loads = [
            Instr(load, ((Slot(sums, i),), Address(memory, (thread + i * sums.per_register,))))
            for i in range(count)
        ]
        strides = [Parameter("ldD", "s64", 1, LIMIT)] + [Parameter("ldC", "s64", 1, LIMIT)] * self.spec.has_c
        program = Program(
            "finish", warps, (), (), (*loads, *tail.statements), (memory, *tail.buffers), (sums, *tail.scratch), (),
            (M, N, ROW, COLUMN, *strides, *tail.parameters),
        )  # fmt: skip
        return program, sums, layout

    @property
    def rows(self) -> tuple[int, int]:
        """Of the tile that D has, from and to; and so the columns."""
        begin = self.origin[0] * self.tile[0]
        return begin, min(begin + self.tile[0], self.size[0])

    @property
    def columns(self) -> tuple[int, int]:
        begin = self.origin[1] * self.tile[1]
        return begin, min(begin + self.tile[1], self.size[1])


@dataclass
class Run:
    """What came out: D with its pads, and what it held before, as arrays ``[M, stride]``."""

    D: Any
    before: Any
    want: Any
    """float64 before rounding, of the part of the tile that D has"""
    where: tuple[slice, slice]


def numbers(rng: Any, shape: tuple[int, ...], element: str) -> Any:
    """Small numbers of a type, whose sums are exact."""
    found = rng.integers(-8, 9, shape)
    if element == "uint8":
        found = abs(found)
    return from_float(found, element)


def run(
    case: Case, seed: int, alpha: float = 1.0, beta: float = 0.0, *, sums: Any = None, function: Any = None
) -> Run:
    """Execute a case on random numbers; all memory that may not be touched is guarded."""
    rng = np.random.default_rng(seed)
    program, group, layout = case.program()
    tile = numbers(rng, case.tile, case.spec.acc) if sums is None else sums
    table = {a: np.asarray(x) for a, x in layout.table(case.tile).items()}
    zero = np.zeros(case.tile, np.int64)
    slots = group.slots
    at = (table.get("warpid", zero) * 32 + table["laneid"]) * slots + table.get("m", zero)
    held = np.empty(program.warps * 32 * slots, tile.dtype)
    held[at] = tile
    memory: dict[str, Any] = {"S": held}
    guarded: dict[str, Any] = {}
    want = tile.astype(np.float64) * (alpha if case.spec.scaled else 1.0)
    parameters: dict[str, Any] = dict(
        zip(("M", "N", "row", "column"), (*case.size, *case.origin), strict=True)
    )
    (r0, r1), (c0, c1) = case.rows, case.columns
    where = (slice(r0, r1), slice(c0, c1))
    want = want[: r1 - r0, : c1 - c0]

    def tensor(name: str, element: str, order: str) -> Any:
        m, n = case.size if order == "row" else case.size[::-1]
        stride = case.stride(name, element, n)
        parameters[f"ld{name}"] = stride
        array = numbers(rng, (m, stride), element)
        mask = np.ones((m, stride), bool)
        mask[where if order == "row" else where[::-1]] = False
        memory[name], guarded[name] = array.ravel(), mask.ravel()
        return array if order == "row" else array.T

    before = tensor("D", case.spec.out, "row").copy()
    if case.spec.scaled:
        parameters["alpha"] = alpha
    if case.spec.has_c:
        parameters["beta"] = beta
        c = tensor("C", case.c_dtype, case.c_order)
        want = want + beta * c[where].astype(np.float64)
    if case.spec.bias:
        along = {"row": 1, "column": 0}[case.spec.bias]
        vector = numbers(rng, (case.size[along],), case.bias_dtype)
        mask = np.ones(vector.shape, bool)
        mask[where[along]] = False
        memory["bias"], guarded["bias"] = vector, mask
        part = vector[where[along]].astype(np.float64)
        want = want + (part[None] if along else part[:, None])
    if function is not None:
        want = function(want)
    found = run_grid(program, (1, 1, 1), memory, parameters, guarded=guarded)
    return Run(found["D"].view(before.dtype).reshape(before.shape), before, want, where)


def check(run: Run, element: str, tolerance: float = 0.0) -> None:
    """The tile holds what is right, rounded once; all else of D is as it was."""
    part = run.D[run.where]
    if tolerance:
        np.testing.assert_allclose(part.astype(np.float64), run.want, rtol=tolerance, atol=tolerance)
    else:
        wanted = from_float(
            run.want, element, saturate=element not in ("float16", "bfloat16", "float32", "float64")
        )
        np.testing.assert_array_equal(part.view(np.uint8), wanted.view(np.uint8))
    rest = np.ones(run.D.shape, bool)
    rest[run.where] = False
    assert run.D[rest].tobytes() == run.before[rest].tobytes()
