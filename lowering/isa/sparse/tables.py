"""``mma.sp`` and ``mma.sp::ordered_metadata``: the forms that exist.

The records have the sparsity selector, and the selectors of scale factors, at 0; `dataclasses.replace` gives others.
Plain ``mma.sp`` may be slow on newer architectures, says the PTX ISA; the kinds exist in the ordered variant only.
"""

from __future__ import annotations

from ..mma.kinds import EIGHT_BIT, F8F6F4
from ..mma.record import MmaInstruction
from ..mma.scale import BlockScale
from ..record import Emulated
from .record import SparseMma

_AS_F16 = "f16 instructions, after conversion"
_FOUR_BIT = (Emulated(90, None, "a called routine"),)
_ORDERED_PTX = (8, 5)


def _dense(
    k: int,
    a: str,
    b: str,
    d: str,
    k_pack: int,
    kind: str = "",
    satfinite: bool = False,
    scale: BlockScale | None = None,
) -> MmaInstruction:
    return MmaInstruction(
        16, 8, k, a, b, d, d, k_pack=k_pack, sm=80, ptx=(7, 1), kind=kind, satfinite=satfinite, scale=scale
    )


def _floating(k: int, element: str, d: str, k_pack: int, ordered: bool) -> SparseMma:
    return SparseMma(
        _dense(k, element, element, d, k_pack), ordered, sm=80, ptx=_ORDERED_PTX if ordered else (7, 1)
    )


def _integer(k: int, a: str, b: str, k_pack: int, satfinite: bool, ordered: bool) -> SparseMma:
    dense = _dense(k, a, b, "int32", k_pack, satfinite=satfinite)
    ptx = _ORDERED_PTX if ordered else (7, 1)
    return SparseMma(dense, ordered, sm=80, ptx=ptx, emulated=_FOUR_BIT if k_pack == 8 else ())


def _fp8(a: str, b: str, ordered: bool) -> SparseMma:
    ptx = _ORDERED_PTX if ordered else (8, 4)
    emulated = (Emulated(90, 119, _AS_F16),)
    return SparseMma(_dense(64, a, b, "float32", 4), ordered, sm=89, ptx=ptx, emulated=emulated)


def _f8f6f4(a: str, b: str, d: str) -> SparseMma:
    wide = a in EIGHT_BIT and b in EIGHT_BIT and d == "float32"  # sm_100 converts these, and lacks the others
    return SparseMma(
        _dense(64, a, b, d, 4, kind="f8f6f4"),
        ordered=True,
        sm=100 if wide else 120,
        ptx=(8, 6) if wide else (8, 7),
        specific=(100, 103, 110, 120, 121) if wide else (120, 121),
        emulated=(Emulated(100, 119, _AS_F16),) if wide else (),
    )


def _scaled(
    k: int, kind: str, a: str, b: str, vector: int, scale: str, ptx: tuple[int, int] = (8, 7)
) -> SparseMma:
    dense = _dense(k, a, b, "float32", k // 16, kind=kind, scale=BlockScale(vector, scale))
    whole = k == 64  # the 4-bit forms are of the architecture's own target, as the assembler has it
    return SparseMma(dense, ordered=True, sm=120, ptx=ptx, specific=(120, 121), family=whole)


_FLOATING = (
    ("float16", "float32", 2, (32, 16)),
    ("float16", "float16", 2, (32, 16)),
    ("bfloat16", "float32", 2, (32, 16)),
    ("tfloat32", "float32", 1, (16, 8)),
)
_INTEGER = ((("int8", "uint8"), 4, (64, 32)), (("int4", "uint4"), 8, (128, 64)))
_FP4 = ("float4_e2m1fn", "float4_e2m1fn")

MMA_SP = (
    *[
        record
        for ordered in (False, True)
        for record in (
            *[_floating(k, element, d, k_pack, ordered) for element, d, k_pack, ks in _FLOATING for k in ks],
            *[
                _integer(k, a, b, k_pack, satfinite, ordered)
                for elements, k_pack, ks in _INTEGER
                for satfinite in (False, True)
                for k in ks
                for a in elements
                for b in elements
            ],
            *[_fp8(a, b, ordered) for a in EIGHT_BIT for b in EIGHT_BIT],
        )
    ],
    *[_f8f6f4(a, b, d) for d in ("float32", "float16") for a in F8F6F4 for b in F8F6F4],
    *[_scaled(64, "mxf8f6f4", a, b, 1, "float8_e8m0fnu") for a in F8F6F4 for b in F8F6F4],
    _scaled(128, "mxf4", *_FP4, 2, "float8_e8m0fnu"),
    _scaled(128, "mxf4nvf4", *_FP4, 2, "float8_e8m0fnu"),
    _scaled(128, "mxf4nvf4", *_FP4, 4, "float8_ue4m3"),
    _scaled(128, "mxf4nvf4", *_FP4, 4, "float8_e8m0fnu", ptx=(9, 1)),
)
