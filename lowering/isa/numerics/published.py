"""The models that are known, by architecture: which instructions, and with what numbers.

`ENTRIES` is data; a new finding is a new row.  An instruction without a row has no model, and nothing is guessed.  The
numbers are from arXiv 2511.10909 and the simulator that its authors publish (MMA-Sim 2.1), which agree with PeerJ
7:e330 where both speak; what ``mma.sync`` and ``mma.sp`` are on sm_90 was measured by property_tests/gpu/probe too, and
sparse products and quadpairs there by it alone.  property_tests/lowering/data/h200_sums.json has elements of that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from .record import FASI, PROBED, XIE, Evidence, Model

FP8 = ("float8_e4m3fn", "float8_e5m2")
NARROW = (*FP8, "float6_e3m2fn", "float6_e2m3fn", "float4_e2m1fn")


@dataclass(frozen=True)
class Adder:
    """The adder of a generation: `fraction` is F, `width` the bytes along K of one step, `zeros` the exponent of a zero
    term for float32 and float16 accumulators.
    """

    fraction: int
    width: int
    zeros: tuple[int, int]


VOLTA = Adder(23, 8, (-131, -19))
TURING = Adder(24, 16, (-132, -20))
HOPPER = Adder(25, 32, (-133, -21))


def _row(
    numerics: str,
    adder: Adder,
    a: str,
    b: str,
    accumulator: str,
    k: int,
    element: int,
    evidence: Evidence = "measured",
    source: str = XIE,
) -> Model:
    """One instruction on one adder; `element` is the bytes that an element of A or B takes there."""
    step = min(k, adder.width // element)
    half = accumulator == "float16"
    return Model(
        numerics,
        a,
        b,
        accumulator,
        k,
        "aligned",
        evidence,
        source,
        steps=tuple(tuple(range(i, i + step)) for i in range(0, k, step)),
        fraction=adder.fraction,
        zero=adder.zeros[half],
        kept=10 if half else 23,
        seen=(a, b),
    )


def _sixteen_bit(
    numerics: str, adder: Adder, evidence: Evidence = "measured", source: str = XIE
) -> Iterator[Model]:
    """What every architecture from sm_80 on has: f16, bf16, tf32."""
    rows = [("float16", acc, k, 2) for acc in ("float32", "float16") for k in (8, 16)]
    rows += [("bfloat16", "float32", k, 2) for k in (8, 16)]
    rows += [("tfloat32", "float32", k, 4) for k in (4, 8)]
    for element, accumulator, k, size in rows:
        yield _row(numerics, adder, element, element, accumulator, k, size, evidence, source)


def _eight_bit(numerics: str, adder: Adder, ks: tuple[int, ...] = (16, 32)) -> Iterator[Model]:
    for a, b, accumulator, k in product(FP8, FP8, ("float32", "float16"), ks):
        yield _row(numerics, adder, a, b, accumulator, k, 1)


def _thirteen(model: Model) -> Model:
    """The fp8 units of Ada and of Hopper's wgmma: F is 13, and so many fraction bits has a float32 result."""
    return replace(model, fraction=13, kept=min(model.kept, 13))


_HALVES = (
    "no instruction: the assembler (nvJitLink 13.5) converts A and B to f16, multiplies the lower two of every four"
    " elements along K, adds the upper two to that, and adds C with an ordinary addition"
)


def _emulated_eight_bit(numerics: str) -> Iterator[Model]:
    """fp8 mma.sync where the tensor cores have none (sm_90, sm_100)."""
    for model in _eight_bit(numerics, HOPPER):
        halves = tuple(tuple(k for k in range(model.k) if k % 4 in low) for low in ((0, 1), (2, 3)))
        yield replace(
            model,
            steps=halves,
            separate=True,
            seen=("float16", "float16"),
            evidence="measured" if numerics == "sm_90" else "assembled",
            source=f"{_HALVES}; " + (PROBED if numerics == "sm_90" else f"the f16 instruction: {XIE}"),
        )


def _quadpairs() -> Iterator[Model]:
    """sm_70's m8n8k4 on sm_90: ordinary arithmetic.  All four products, then C; with f16 C and D two and two."""
    f16 = "float16"
    for accumulator, steps in (("float32", ((0, 1, 2, 3),)), (f16, ((0, 1), (2, 3)))):
        yield Model(
            "sm_90",
            f16,
            f16,
            accumulator,
            4,
            "float32 chain",
            "measured",
            PROBED,
            steps=steps,
            separate=accumulator == "float32",
            seen=(f16, f16),
        )


def _sparse() -> Iterator[Model]:
    """mma.sp on sm_90: the dense instruction of half the K, on the kept elements and what they meet."""
    for model in (*_sixteen_bit("sm_90", HOPPER), *_emulated_eight_bit("sm_90")):
        if model.a not in FP8 or (model.k, model.accumulator) == (32, "float32"):
            yield replace(model, source=f"{PROBED}; as the dense instruction of half the K")


def _mma() -> Iterator[Model]:
    for numerics, ks in (("sm_70", (4,)), ("sm_75", (4, 8))):
        for accumulator, k in product(("float32", "float16"), ks):
            adder = VOLTA if k == 4 else TURING  # Turing runs Volta's m8n8k4 as Volta did
            yield _row(numerics, adder, "float16", "float16", accumulator, k, 2, source=f"{XIE}; {FASI}")
    yield from _sixteen_bit("sm_80", TURING, source=f"{XIE}; {FASI}")
    yield from _sixteen_bit("sm_86", TURING, "same generation", f"measured on sm_80: {XIE}")
    yield from _sixteen_bit("sm_89", TURING)
    yield from map(_thirteen, _eight_bit("sm_89", TURING))
    for numerics in ("sm_90", "sm_100"):
        yield from _sixteen_bit(numerics, HOPPER, source=f"{XIE}; {PROBED}" if numerics == "sm_90" else XIE)
        yield from _emulated_eight_bit(numerics)
    yield from _quadpairs()
    yield from _sixteen_bit("sm_120", HOPPER)
    yield from _eight_bit("sm_120", HOPPER, (16,))
    for a, b, accumulator in product(NARROW, NARROW, ("float32", "float16")):
        yield _row("sm_120", HOPPER, a, b, accumulator, 32, 1)


def _block_scaled() -> Iterator[Model]:
    """mxf8f6f4: the scales' exponents add to the products'.  mxf4, mxf4nvf4: 16 exact products at once, then scaled."""
    for a, b in product(NARROW, NARROW):
        plain = _row("sm_120", HOPPER, a, b, "float32", 32, 1)
        yield replace(plain, scale="float8_e8m0fnu", blocks=1)
    fp4 = "float4_e2m1fn"
    four_bit = replace(_row("sm_120", HOPPER, fp4, fp4, "float32", 64, 1), fraction=35, zero=-139, group=16)
    four_bit = replace(four_bit, steps=(tuple(range(64)),))
    for scale, blocks in (("float8_e8m0fnu", 2), ("float8_e8m0fnu", 4), ("float8_ue4m3", 4)):
        yield replace(four_bit, scale=scale, blocks=blocks)


def _wgmma() -> Iterator[Model]:
    for element, accumulator, k, size in (
        ("float16", "float32", 16, 2),
        ("float16", "float16", 16, 2),
        ("bfloat16", "float32", 16, 2),
        ("tfloat32", "float32", 8, 4),
    ):
        yield _row("sm_90", HOPPER, element, element, accumulator, k, size)
    yield from map(_thirteen, _eight_bit("sm_90", HOPPER, (32,)))


ENTRIES: dict[str, tuple[Model, ...]] = {
    "mma": (*_mma(), *_block_scaled()),
    "mma.sp": tuple(_sparse()),
    "wgmma": tuple(_wgmma()),
}
"""By unit: the warp's own ``mma.sync``; ``mma.sp``, where k counts kept elements; Hopper's ``wgmma``, whose fp8 adds
differently."""
