"""Random GEMM problems: drawn from a seed, laid out in memory, and what is right for them.

Nothing here knows how a problem is carried out, so that the CPU's machine and a GPU are asked the same.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lowering.dtypes import dtype
from lowering.kernels import Config, GemmKernel, gemm
from lowering.kernels.gemm.config import Feed
from lowering.kernels.gemm.panels import refusal as beside_refusal
from lowering.kernels.gemm.problem import ACCUMULATORS, OUTPUTS, Problem
from lowering.kernels.gemm.reduce import first_problem
from lowering.kernels.gemm.stages import choose_record
from lowering.kernels.gemm.store_rows import refusal as collecting_refusal
from lowering.narrow import from_float
from lowering.target import Target, target

TARGETS = ("sm_90a", "sm_90a", "sm_80", "sm_89", "sm_75", "sm_120")
"""That are drawn from, as often as they stand here."""

FACTORS = {
    75: ("float16", "int8", "uint8"),
    80: ("float16", "bfloat16", "tfloat32", "float64", "int8", "uint8"),
    89: ("float16", "bfloat16", "tfloat32", "float64", "int8", "uint8", "float8_e4m3fn", "float8_e5m2"),
}
"""Compute capability -> types of factors from there on."""
FLOATS = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")
INTEGERS = ("int8", "uint8")
_ROOM = 56 * 1024
"""Bytes that the stages of a drawn configuration take at most: less than any target has."""


def relu(x: float) -> float:
    return max(x, 0.0)


def clamp(x: float) -> float:
    return min(max(x, -7.0), 7.0)


def gelu(x: float) -> float:
    return 0.5 * x * (1.0 + math.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))


FUNCTIONS: dict[str, Callable[[float], float]] = {"relu": relu, "clamp": clamp, "gelu": gelu}


@dataclass(frozen=True)
class Case:
    """A problem with all its numbers.

    Attributes:
        seed: of its data.
        target: by name.
        types: of A and B.
        out: of C, D and the bias.
        accumulator: that products are added up in.
        extents: M, N, K.
        orders: of A, B, C and D by name, "row" or "column"; no C: none is added.
        bias: "row", "column", or None.
        function: a key of `FUNCTIONS`, or None.
        batches: of A and B, 1 where all share the matrix; None for a kernel of matrices.
        pads: steps of `alignment` bytes between rows beyond what is needed, by name.
        alignment: bytes that addresses and leading dimensions are multiples of, where that is more than an element.
        alpha, beta: numbers.
        config: how it is cut; None for what the kernel chooses.
        schedule: of the machine.
        exact: whether all numbers are small integers, so that every sum is exact.
    """

    seed: int
    target: str
    types: tuple[str, str]
    out: str
    accumulator: str
    extents: tuple[int, int, int]
    orders: Mapping[str, str]
    bias: str | None = None
    function: str | None = None
    batches: tuple[int, int] | None = None
    pads: Mapping[str, int] | None = None
    alignment: int = 16
    alpha: float = 1.0
    beta: float | None = None
    config: Config | None = None
    schedule: int = 0
    exact: bool = True

    @property
    def kernel(self) -> GemmKernel:
        """The kernel for it; without `config`, which is of a call."""
        return gemm(
            self.types,
            out=self.out,
            A=self.orders["A"],
            B=self.orders["B"],
            C=self.orders.get("C"),
            D=self.orders["D"],
            bias=self.bias,
            epilogue=FUNCTIONS[self.function] if self.function else None,
            batched=self.batches is not None,
            accumulator=self.accumulator,
            target=self.target,
            config=self.config,
        )

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of all arrays that there are."""
        m, n, k = self.extents
        out: dict[str, tuple[int, ...]] = {"A": (m, k), "B": (k, n), "D": (m, n)}
        if "C" in self.orders:
            out["C"] = (m, n)
        if self.batches is not None:
            a, b = self.batches
            out = {x: ({"A": a, "B": b}.get(x, max(a, b)), *shape) for x, shape in out.items()}
        if self.bias:
            out["bias"] = (n if self.bias == "row" else m,)
        return out

    def type_of(self, name: str) -> str:
        return {"A": self.types[0], "B": self.types[1]}.get(name, self.out)

    def __str__(self) -> str:
        m, n, k = self.extents
        return f"{self.seed}-{self.target}-{self.types[0]}-{m}x{n}x{k}-{self.config or 'chosen'}"


# --- drawing ------------------------------------------------------------------------------------


def draw(seed: int, targets: Sequence[str] = TARGETS, most: int = 300) -> Case:
    """The problem of that number; no extent is more than `most`."""
    rng = random.Random(seed)
    name = rng.choice(targets)
    where = target(name)
    factors = max((sm, names) for sm, names in FACTORS.items() if sm <= where.sm)[1]
    a = rng.choice(factors)
    b = a
    if a in INTEGERS or a.startswith("float8"):
        b = rng.choice([x for x in factors if (x in INTEGERS) == (a in INTEGERS) and dtype(x).bits == 8])
    accumulator = ACCUMULATORS.get(a, "float32")
    if a == "float16" and rng.random() < 0.2:
        accumulator = "float16"
    orders = {x: rng.choice(("row", "column")) for x in "ABD"}
    if rng.random() < 0.4:
        orders["C"] = rng.choice(("row", "column"))
    batches = rng.choice(((1, 1), (3, 3), (2, 1), (1, 2))) if rng.random() < 0.2 else None
    found = Case(
        seed,
        name,
        (a, b),
        _out(rng, a, accumulator, where),
        accumulator,
        _extents(rng, most if batches is None else min(most, 48)),
        orders,
        rng.choice(("row", "column", None, None)),
        rng.choice(("relu", "clamp", "gelu", None, None, None, None)),
        batches,
        {x: rng.choice((0, 0, 1, 2, 5)) for x in "ABCD"},
        rng.choice((16, 16, 16, 16, 8, 4, 2)),
        rng.choice((1.0, 1.0, 1.0, 0.5, -2.0, 0.0)),
        rng.choice((None, 0.0, 1.0, -0.5, 3.0)) if "C" in orders else None,
        None,
        rng.choice((0, -1, -2, 3, seed)),
        rng.random() < 0.75,
    )
    return _whole_units(replace(found, config=_config(rng, found))) if rng.random() < 0.65 else found


def _whole_units(case: Case) -> Case:
    """With rows of D that end with a unit of 16 bytes, where the copy engine stores them: it stores no less."""
    if case.config is None or not case.config.slots:
        return case
    unit = 16 // (dtype(case.out).bits // 8)
    m, n, k = case.extents
    if case.orders["D"] == "row":
        n = max(1, n // unit) * unit
    else:
        m = max(1, m // unit) * unit
    return replace(case, extents=(m, n, k))


def _out(rng: random.Random, a: str, accumulator: str, where: Target) -> str:
    """A type of the result: mostly the usual one."""
    usual = OUTPUTS[a]
    if rng.random() < 0.5:
        return usual
    if accumulator == "float64":
        return rng.choice(("float64", "float32"))
    others = ["float32", "float16", *INTEGERS]
    if where.sm >= 80:
        others.append("bfloat16")
    if where.sm >= 89:
        others += ["float8_e4m3fn", "float8_e5m2"]
    return rng.choice(others)


def _extents(rng: random.Random, most: int) -> tuple[int, int, int]:
    """Mostly small, often around a multiple of 8."""

    def one() -> int:
        high = rng.choice((3, 40, 40, 40, 72, 72, 140, most))
        n = rng.randint(0, min(most, high))
        return n // 8 * 8 + rng.choice((0, 0, 1, 7)) if rng.random() < 0.4 else n

    m, n, k = (min(most, one()) for _ in range(3))
    return m, n, k


def _config(rng: random.Random, case: Case) -> Config | None:
    """A cut of small tiles that the problem takes; None where there is none."""
    problem, where = case.kernel.problem, target(case.target)
    record = choose_record(problem, where)
    aligned = [max(case.alignment, dtype(t).bits // 8) for t in case.types]
    feeds: list[Feed] = ["registers"]
    if where.sm >= 80 and min(aligned) >= 4:
        feeds += ["cp_async", "cp_async"]
    if where.sm >= 90 and min(aligned) >= 16:
        feeds += ["tma", "tma", "tma", "tma"]
    feed = rng.choice(feeds)
    warps = rng.choice(((1, 1), (2, 1), (1, 2), (2, 2), (1, 4), (3, 1)))
    m = record.m * warps[0] * rng.choice((1, 1, 2) if record.m == 16 else (2, 2, 4))
    least = 16 if record.m == 8 else 8
    n = warps[1] * rng.choice((least, 16, 32, 32, 64))
    if feed == "tma":  # rows of the engine's boxes are whole units of 16 bytes, and powers of two
        m, n = (max(16, x) for x in (m, n))
    k = 2 * record.k * rng.choice((1, 1, 2))
    a, b = problem.A.bytes, problem.B.bytes
    if k > 2 * record.k and 2 * k * (m * a + n * b) > _ROOM:
        k //= 2
    stages = min(rng.choice((2, 2, 3, 4)), _ROOM // (k * (m * a + n * b)))
    if stages < 2:
        return None
    slots = 0
    wide = n // warps[1] % 32 == 0
    if feed == "tma" and wide and problem.D.bytes in (2, 4) and case.alignment >= 16 and rng.random() < 0.8:
        slots = rng.choice((1, 2))
    splits = rng.choice((1, 1, 1, 2, 3)) if case.accumulator in ("float32", "float64") else 1
    if splits > 1 and case.accumulator == "float64":
        slots = 0  # the sums of the parts are what would be collected
    config = Config(
        (m, n, k),
        warps,
        stages,
        feed,
        rng.choice([u for u in (1, 2, 3, 4) if stages % u == 0]),
        rng.choice((1, 2, 16)),
        splits,
        rng.choice((1, 1, 2)),
        slots,
        rng.choice((1, 2, 2)),
    )
    return _further(random.Random(f"further {case.seed}"), case, config) if _cut(problem, config) else None


def _further(rng: random.Random, case: Case, config: Config) -> Config:
    """The same with what else a configuration can say: who sends rows, where CTAs begin, what is copied first."""
    problem, where = case.kernel.problem, target(case.target)
    parts = first_problem(problem) if config.splits > 1 else problem
    collected = replace(config, slots=config.slots or rng.choice((1, 2)), sender="threads")
    if rng.random() < 0.5 and not collecting_refusal(collected, parts.D.bytes):
        config = collected
    if config.feed != "registers" and rng.random() < 0.3:
        config = replace(config, spread=True)
    if rng.random() < 0.3:
        config = replace(config, packed=rng.choice(("A", "B", "AB")))
    m, n, _ = config.tile
    if config.packed == "AB" and config.feed == "registers" and min(m, n) >= 16:
        feeds: list[Feed] = ["registers", *["cp_async"] * (where.sm >= 80), *["tma"] * (where.sm >= 90)]
        other = replace(config, feed=rng.choice(feeds))
        config = other if _cut(problem, other) else config
    both = [replace(config, packed=x, beside=True) for x in ("A", "B", "AB")]
    both = [c for c in both if not beside_refusal(problem, c)[0]]
    if both and rng.random() < 0.55:
        config = rng.choice(both)
    return config


def _cut(problem: Problem, config: Config) -> bool:
    """Whether rows of a stage are whole rows of shared memory, or a power of two of elements."""
    m, n, k = config.tile
    for matrix, extents in ((problem.A, (m, k)), (problem.B, (k, n))):
        along = extents[matrix.contiguous]
        width = min(along, 128 // matrix.bytes)
        if along % width or width & width - 1:
            return False
    return True


# --- memory -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Placed:
    """An array in flat memory.

    Attributes:
        flat: the memory; what is between the elements is no number, or the largest.
        offset: of the first element.
        shape: extents.
        strides: in elements.
    """

    flat: Any
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def array(self) -> Any:
        """The elements, where they lie."""
        size = self.flat.itemsize
        steps = tuple([s * size for s in self.strides])
        return np.ndarray(self.shape, self.flat.dtype, self.flat, self.offset * size, steps)


def arrays(case: Case) -> dict[str, Placed]:
    """All operands and D, filled with numbers of the case."""
    rng = np.random.default_rng(case.seed)
    return {name: _placed(case, name, shape, rng) for name, shape in case.shapes.items()}


def _placed(case: Case, name: str, shape: tuple[int, ...], rng: Any) -> Placed:
    kind = dtype(case.type_of(name))
    size = kind.numpy.itemsize
    unit = max(1, case.alignment // size)
    offset = unit if case.alignment < 16 else 0
    if name == "bias":
        strides: tuple[int, ...] = (1,)
    else:
        c = -1 if case.orders[name] == "row" else -2
        leading = -(-max(1, shape[c]) // unit) * unit + unit * (case.pads or {}).get(name, 0)
        strides = (leading, 1) if c == -1 else (1, leading)
        if len(shape) == 3:
            strides = (leading * max(1, shape[-3 - c]) + unit, *strides)
    reach = sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) + 1 if 0 not in shape else 1
    flat = _rubbish(offset + reach + unit, kind)
    out = Placed(flat, offset, shape, strides)
    if name != "D" and 0 not in shape:
        out.array[...] = _numbers(case, name, shape, rng)
    return out


def _rubbish(n: int, kind: Any) -> Any:
    """All bits 1 but the sign: NaN or the largest number."""
    size = kind.numpy.itemsize
    code = 2 ** (8 * size - 1) - 1
    return np.full(n, code, f"u{size}").view(kind.numpy)


def _numbers(case: Case, name: str, shape: tuple[int, ...], rng: Any) -> Any:
    kind = case.type_of(name)
    if case.exact or dtype(kind).is_integer:
        most = 2 if case.accumulator == "float16" else 4
        found = rng.integers(0 if kind == "uint8" else -most, most + 1, shape)
        return from_float(found, kind).astype(dtype(kind).numpy)
    return from_float(rng.standard_normal(shape), kind).astype(dtype(kind).numpy)


# --- what is right ------------------------------------------------------------------------------

_STEPS = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10}
"""Accumulator -> the relative error of a sum of two at most, whichever way it is rounded."""
_FLOAT8_STEP = 2.0**-12
"""That of products of 8-bit floats on hardware, which keeps few bits of their sum."""


def reference(case: Case, given: Mapping[str, Any]) -> tuple[Any, Any]:
    """The result in float64 before it is rounded to D's type, and how far from that it may be; 0 where all is exact."""
    numbers = {name: _values(case, name, x) for name, x in given.items() if name != "D"}
    a, b = numbers["A"], numbers["B"]
    used = case.alpha != 0  # factors are not read otherwise
    want = case.alpha * (a @ b) if used else np.zeros(case.shapes["D"])
    size = abs(case.alpha) * (abs(a) @ abs(b)) if used else np.zeros(case.shapes["D"])
    if "C" in numbers and case.beta != 0:
        beta = 1.0 if case.beta is None else case.beta
        want = want + beta * numbers["C"]
        size = size + abs(beta * numbers["C"])
    if case.bias:
        vector = numbers["bias"] if case.bias == "row" else numbers["bias"][:, None]
        want, size = want + vector, size + abs(vector)
    integers = case.exact or (case.types[0] in INTEGERS and case.out in (*INTEGERS, "int32"))
    step = _STEPS.get(case.accumulator, 2.0**-23)
    if case.types[0].startswith("float8") and not integers:
        step = _FLOAT8_STEP
    tolerance = np.zeros(want.shape) if integers else (case.extents[2] + 4) * step * size
    if case.function:
        want = np.vectorize(FUNCTIONS[case.function], otypes=[np.float64])(want)
        if case.function == "gelu":
            tolerance = 1.2 * tolerance + (1e-12 if case.accumulator == "float64" else 1e-3) * (1 + abs(want))
    return want, tolerance


def _values(case: Case, name: str, x: Any) -> Any:
    if case.type_of(name) == "tfloat32":
        x = (np.ascontiguousarray(x).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    return np.asarray(x).astype(np.float64)


def check(case: Case, found: Any, want: Any, tolerance: Any) -> None:
    """The result is the right one, rounded once: bit by bit where sums are exact."""
    kind = dtype(case.out)
    assert found.shape == want.shape
    assert found.dtype == kind.numpy
    saturate = kind.is_integer or kind.bits == 8
    if not np.any(tolerance):
        right = from_float(want, case.out, saturate=saturate) if want.size else want.astype(kind.numpy)
        np.testing.assert_array_equal(found.astype(np.float64), right.astype(np.float64))
        return
    low, high = (from_float(want + s * tolerance, case.out, saturate=saturate) for s in (-1, 1))
    got = found.astype(np.float64)
    assert np.isfinite(got).all()
    outside = (got < low.astype(np.float64)) | (got > high.astype(np.float64))
    assert not outside.any(), f"{outside.sum()} of {got.size}, first at {np.argwhere(outside)[0]}"
