"""What an accumulation model is: a named record that says how one instruction adds its products to C."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Rule = Literal["integer", "fused chain", "float32 chain", "rounded once", "aligned"]
Evidence = Literal["defined", "measured", "assembled", "same generation"]

XIE = "Xie et al., Bit-accurate modeling of GPU matrix multiply-accumulate units, arXiv 2511.10909"
FASI = "Fasi et al., Numerical behavior of NVIDIA tensor cores, PeerJ Computer Science 7:e330"
PROBED = (
    "python -m property_tests.gpu.probe on an H200 (driver 580.159.04), 2026-11-30: every element bit-equal"
)
PTX_INTEGER = (
    "PTX ISA, Multiply-and-Accumulate Instruction: mma: integer results are exact; .satfinite clamps"
)
PTX_FUSED = f"PTX ISA, mma: the precision of fused multiply-add; in the order of K: {XIE}; the words of NaNs: {PROBED}"


@dataclass(frozen=True)
class Model:
    """How one instruction accumulates.

    Attributes:
        numerics: the name it was asked for by: "exact" or an architecture.
        a, b, accumulator: element types by name; the accumulator is the type of C and of D.
        k: products of one instruction for one element of D; of a sparse one, those of kept elements.
        rule: "integer": exact, into 32 bits.  "fused chain": one fused multiply-add after another, K rising.
            "float32 chain": float32 operations, the products of each step among themselves, then with the total.
            "rounded once": the exact sum rounded to nearest even.  "aligned": the aligned, truncated sum, once for
            each step.
        evidence: "defined" by the PTX ISA or by us ("exact"); "measured" on that architecture;
            "assembled": read from the machine code that the assembler makes of it, on measured instructions; "same
            generation": measured on another chip of its generation.
        source: who says so.
        saturate: whether an integer result is clamped to 32 bits; it wraps otherwise.
        steps: "aligned", "float32 chain": the indices along K that each step adds, in the order of the steps.
        fraction: "aligned": F, the bits that a term keeps below the largest exponent.
        zero: "aligned": the exponent with which a term that is zero takes part.
        kept: "aligned": fraction bits of the result of a step: 23 or 13, truncated, for float32; 10, rounded to
            nearest even, for float16.
        separate: "aligned", "float32 chain": C is not among the terms; the steps start from zero and C is added at the
            end, rounded to nearest even.
        seen: the types that A and B are converted to before they are multiplied.
        scale: the type of the block scales, "" for none.
        blocks: scales for K products.
        group: neighbors along K that are summed exactly before they are scaled and aligned.
    """

    numerics: str
    a: str
    b: str
    accumulator: str
    k: int
    rule: Rule
    evidence: Evidence
    source: str
    saturate: bool = False
    steps: tuple[tuple[int, ...], ...] = ()
    fraction: int = 0
    zero: int = 0
    kept: int = 0
    separate: bool = False
    seen: tuple[str, str] = ("", "")
    scale: str = ""
    blocks: int = 0
    group: int = 1

    def __str__(self) -> str:
        return f"{self.a} x {self.b} -> {self.accumulator}, K = {self.k}, as on {self.numerics}: {self.rule}"
