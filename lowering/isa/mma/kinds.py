"""The qualifier ``.kind::``: which factors it takes, and which scale factors go with it."""

from __future__ import annotations

from dataclasses import dataclass

EIGHT_BIT = ("float8_e4m3fn", "float8_e5m2")
F8F6F4 = (*EIGHT_BIT, "float6_e3m2fn", "float6_e2m3fn", "float4_e2m1fn")
"""The factors of ``kind::f8f6f4`` and ``kind::mxf8f6f4``, each in a byte of its own."""

_FP4 = ("float4_e2m1fn",)


@dataclass(frozen=True)
class ProductKind:
    """What goes with one ``.kind::``.

    Attributes:
        factors: element types that A and B may have, each for itself; empty: any.
        sums: element types that C and D may have; empty: any.
        scales: the scale factors that it may have, as (``.scale_vec::``, their type); empty: none.
    """

    factors: tuple[str, ...] = ()
    sums: tuple[str, ...] = ()
    scales: tuple[tuple[int, str], ...] = ()

    def refusal(self, name: str, signature: tuple[str, ...], scale: tuple[int, str] | None) -> str:
        """Why it doesn't go with those types of A, B, C, D and scale factors, naming what does; empty where it does."""
        if bool(self.scales) != (scale is not None):
            return f"scale factors go with kinds {', '.join(SCALED)}, and they with them"
        if scale is not None and scale not in self.scales:
            there = " or ".join(f"scale_vec::{vector}X of {kind}" for vector, kind in self.scales)
            return f"kind {name} has {there}, not scale_vec::{scale[0]}X of {scale[1]}"
        for what, types, there in (
            ("factors", signature[:2], self.factors),
            ("sums", signature[2:], self.sums),
        ):
            wrong = [x for x in types if there and x not in there]
            if wrong:
                return f"kind {name} has {what} of {', '.join(there)}, not {wrong[0]}"
        return ""


_E8M0, _UE4M3 = "float8_e8m0fnu", "float8_ue4m3"

KINDS = {
    "": ProductKind(),
    "f8f6f4": ProductKind(F8F6F4, ("float16", "float32")),
    "mxf8f6f4": ProductKind(F8F6F4, ("float32",), ((1, _E8M0),)),
    "mxf4": ProductKind(_FP4, ("float32",), ((2, _E8M0),)),
    "mxf4nvf4": ProductKind(_FP4, ("float32",), ((2, _E8M0), (4, _UE4M3), (4, _E8M0))),
}
"""By name; "" is no such qualifier.  Source: PTX ISA, "Warp-level matrix instructions: mma", the table of ``.kind``."""

SCALED = tuple([name for name, kind in KINDS.items() if kind.scales])
