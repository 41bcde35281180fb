"""Small whole kernels that between them feed and store in every way, run under a tool that watches memory.

    python -m property_tests.gpu.sanitize_cases FILE [--only TEXT] [--row NAME] [--without NAME] [--planted TOOL]

runs them on the GPU of this process and writes to FILE which are right.  Arrays come and go by copies alone: no kernel
of an array library is launched, so that all that a tool reports is ours.  What lies between the rows and the batches of
A, B and C is never written, so that reading it is reading uninitialized memory; allocations end with the last element.

Factors that ``cp.async`` copies are held in whole units of 16 bytes, with NaN behind each row: of a copy of 12 bytes
into 16 the tools see 16 read (compute-sanitizer 2025.3), since the instruction that ptxas makes of it has the size in
the low bits of the address, ``LDGSTS.E.BYPASS.128.ZFILL [R7], [R2.64], P0`` with ``R2 += 16 - n & 15``.
``--planted`` runs a kernel with the mistake that a tool is for, to see that it sees it.
"""

from __future__ import annotations

import argparse
import json
import sys
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from lowering.kernels import Config
from lowering.target import Target, target

from ..kernels.problems import Case, arrays, check, reference

FOUR = (2, 2)
ROW_COLUMN = {"A": "row", "B": "column", "D": "row"}
COLUMN_ROW = {"A": "column", "B": "row", "D": "row"}
PADS = {"A": 1, "B": 2, "C": 1, "D": 3}
SLOTS = Config((64, 64, 64), FOUR, 3, "tma", 1, 16, 1, 1, 2)
BULK = Config((64, 64, 64), FOUR, 3, "tma")
COPIES = Config((64, 64, 64), FOUR, 3, "cp_async")
THREADS = Config((64, 64, 32), FOUR, 2, "registers")


def case(
    types: str | tuple[str, str] = "float16",
    out: str = "",
    extents: tuple[int, int, int] = (80, 72, 200),
    orders: dict[str, str] = ROW_COLUMN,
    config: Config | None = SLOTS,
    **more: Any,
) -> Case:
    """A problem with small integers, whose sums are exact."""
    pair = (types, types) if isinstance(types, str) else types
    usual = {"float64": "float64", "int8": "int32", "tfloat32": "float32"}
    sums = {"float64": "float64", "int8": "int32"}.get(pair[0], "float32")
    return Case(
        11,
        "sm_90a",
        pair,
        out or usual.get(pair[0], pair[0]),
        more.pop("accumulator", sums),
        extents,
        orders,
        pads=more.pop("pads", PADS),
        config=config,
        **more,
    )


def with_c(order: str = "row", orders: dict[str, str] = ROW_COLUMN) -> dict[str, str]:
    return {**orders, "C": order}


CASES: dict[str, Case] = {
    "tma, slots, bias": case(bias="row"),
    "tma, slots, columns": case(orders={**COLUMN_ROW, "D": "column"}, bias="row"),
    "tma, slots, unrolled, one set of fragments": case(
        extents=(176, 264, 520), config=Config((160, 256, 64), (2, 4), 4, "tma", 4, 16, 1, 1, 1, 1)
    ),
    "tma, collected rows sent by threads, ragged": case(
        extents=(75, 139, 139), config=replace(SLOTS, tile=(64, 128, 64), sender="threads"), bias="row"
    ),
    "cp_async, collected rows, C": case(
        extents=(77, 138, 150), orders=with_c("row"), alignment=4,
        config=replace(COPIES, tile=(64, 128, 64), slots=1, sender="threads"),
    ),
    "registers, collected rows": case(
        extents=(77, 133, 51), alignment=2,
        config=Config((32, 128, 32), FOUR, 2, "registers", slots=1, sender="threads"),
    ),
    "tma, direct stores, ragged": case(extents=(75, 69, 139), config=BULK),
    "tma, alpha, beta, C, a function": case(
        extents=(75, 69, 139), orders=with_c("row", COLUMN_ROW), config=BULK, alpha=0.5, beta=-0.5,
        function="clamp", bias="column",
    ),
    "tma, parts of K": case(config=Config((32, 64, 64), FOUR, 3, "tma", splits=2), bias="row"),
    "tma, parts of K through slots": case(
        extents=(70, 72, 330), config=Config((32, 64, 64), FOUR, 3, "tma", 1, 16, 3, 1, 1), alpha=2.0
    ),
    "tma, two CTAs a multiprocessor, groups": case(
        extents=(264, 200, 136), config=Config((64, 64, 64), FOUR, 2, "tma", 2, 2, 1, 2, 1)
    ),
    "tma, batches": case(batches=(3, 3), extents=(72, 72, 136)),
    "cp_async, ragged": case(extents=(77, 70, 150), config=COPIES, alignment=4),
    "cp_async, C": case(extents=(77, 70, 150), orders=with_c("column"), config=COPIES, beta=3.0),
    "cp_async, parts of K": case(
        extents=(77, 70, 250), config=Config((64, 64, 64), FOUR, 3, "cp_async", splits=2), function="relu"
    ),
    "cp_async, one matrix for all batches": case(
        batches=(2, 1), extents=(70, 66, 72), orders=COLUMN_ROW, config=COPIES
    ),
    "cp_async, rows by threads, spread": case(
        extents=(77, 138, 150), config=Config((64, 128, 64), FOUR, 3, "cp_async", 1, 16, 1, 1, 1, 2, "threads", True)
    ),
    "tma, packed": case(
        extents=(77, 71, 151), config=replace(BULK, packed="AB"), alignment=2, orders=COLUMN_ROW
    ),
    "tma, packed, the rest beside": case(
        extents=(240, 330, 70),
        config=Config((16, 32, 64), (1, 2), 3, "tma", group=4, packed="AB", beside=True),
        alignment=2,
    ),
    "cp_async, packed, parts of K": case(
        extents=(77, 71, 251), config=replace(COPIES, packed="AB", splits=2), alignment=2, batches=(2, 2)
    ),
    "registers, ragged, odd addresses": case(extents=(77, 69, 51), config=THREADS, alignment=2),
    "registers, a kernel that reads no factor": case(
        extents=(77, 69, 51), orders=with_c(), config=THREADS, alpha=0.0, beta=2.0
    ),
    "registers, parts of K, batches": case(
        batches=(2, 2), extents=(70, 69, 99), config=Config((64, 64, 32), FOUR, 2, "registers", splits=2),
        alignment=2, orders=with_c("column"), beta=-0.5,
    ),
    "bfloat16": case("bfloat16", function="gelu", bias="column"),
    "tfloat32, tma": case("tfloat32", config=Config((64, 64, 32), FOUR, 3, "tma", 1, 16, 1, 1, 1)),
    "tfloat32, cp_async, columns": case(
        "tfloat32", extents=(77, 70, 90), orders=COLUMN_ROW, config=Config((64, 64, 32), FOUR, 3, "cp_async"),
        alignment=4,
    ),
    "float64": case("float64", extents=(70, 66, 70), config=Config((64, 64, 32), FOUR, 3, "tma")),
    "float64, registers": case(
        "float64", extents=(39, 37, 41), orders=COLUMN_ROW, config=Config((32, 32, 32), FOUR, 2, "registers"),
        alignment=8,
    ),
    "int8": case("int8", config=Config((64, 64, 128), FOUR, 3, "tma", 1, 16, 1, 1, 1)),
    "int8 to int8, columns": case(
        ("int8", "uint8"), "int8", extents=(77, 71, 150), orders=COLUMN_ROW, alignment=4,
        config=Config((64, 64, 64), FOUR, 3, "cp_async"),
    ),
    "float8": case(
        ("float8_e4m3fn", "float8_e5m2"), "float16", config=Config((64, 64, 128), FOUR, 3, "tma", 1, 16, 1, 1, 2)
    ),
    "sums in float16": case(accumulator="float16", extents=(80, 72, 72)),
    "as chosen": case(extents=(200, 136, 200), config=None),
    "as chosen, odd rows": case(extents=(33, 35, 37), config=None, alignment=2, orders=with_c()),
}  # fmt: skip
"""Name -> a problem for an H200 (`runs_on` says which others run)."""


def runs_on(problem: Case, where: Target) -> bool:
    """Whether a target has what the problem is for."""
    if problem.config is not None and problem.config.feed == "tma" and where.sm < 90:
        return False
    return where.sm >= (89 if problem.types[0].startswith("float8") else 80)


# --- on a GPU --------------------------------------------------------------------------------------


class OnGPU:
    """An array of a case in an allocation that ends with its last element, rounded up to so many bytes.

    Attributes:
        raw: all bytes of it.
        given: what a kernel is given.
    """

    def __init__(self, placed: Any, kind: str, whole: bool, unit: int = 1) -> None:
        import numpy as np
        import torch

        from .gemm_guard import WORDS, torch_type

        size = placed.flat.itemsize
        reach = sum((n - 1) * s for n, s in zip(placed.shape, placed.strides, strict=True)) + 1
        end = placed.offset + reach
        total = -(-end * size // unit) * unit
        bits = np.full(total, 0xFF, np.uint8)
        bits[: end * size] = np.ascontiguousarray(placed.flat[:end]).view(np.uint8)
        self.raw = torch.empty(total, dtype=torch.uint8, device="cuda")
        inside = np.zeros(end, bool)
        view = np.ndarray(placed.shape, bool, inside, placed.offset, placed.strides)
        view[...] = True
        for begin, stop in [(0, end)] if whole else runs(inside):
            part = slice(begin * size, min(total, -(-stop * size // unit) * unit))
            self.raw[part].copy_(torch.from_numpy(bits[part].copy()))
        words = self.raw[placed.offset * size : end * size].view(WORDS[size])
        self.given = words.as_strided(placed.shape, placed.strides).view(torch_type(kind))
        self.inside = np.repeat(inside, size)


def runs(inside: Any) -> list[tuple[int, int]]:
    """Begin and end of each run of elements that are set."""
    import numpy as np

    edges = np.flatnonzero(np.diff(np.concatenate(([False], inside, [False])).astype(np.int8)))
    return [(int(b), int(e)) for b, e in edges.reshape(-1, 2)]


def run(problem: Case) -> None:
    """Launch it and compare all of D's allocation.  Errors: AssertionError, ValueError."""
    import numpy as np

    placed = arrays(problem)
    copied = problem.config is None or problem.config.feed == "cp_async"
    unit = {"A": 16, "B": 16} if copied else {}
    there = {n: OnGPU(x, problem.type_of(n), n == "D", unit.get(n, 1)) for n, x in placed.items()}
    more = {n: there[n].given for n in ("C", "bias") if n in there}
    A, B, D = (there[n].given for n in "ABD")
    problem.kernel(A, B, D, alpha=problem.alpha, beta=problem.beta, **more)
    found = there["D"].raw.cpu().numpy()
    before = np.ascontiguousarray(placed["D"].flat).view(np.uint8)[: found.size]
    beside = ~there["D"].inside
    if not np.array_equal(found[beside], before[beside]):
        raise ValueError(f"{(found[beside] != before[beside]).sum()} bytes beside D's elements were written")
    d = placed["D"]
    flat = found.view(d.flat.dtype)[d.offset :]
    steps = tuple([s * flat.itemsize for s in d.strides])
    result = np.ndarray(d.shape, flat.dtype, flat.copy(), 0, steps)
    check(problem, result, *reference(problem, {n: x.array for n, x in placed.items()}))


def rows(where: Target) -> dict[str, Callable[[], Any]]:
    """Name -> what to run on a GPU."""
    found: dict[str, Callable[[], Any]] = {
        name: lambda x=x: run(replace(x, target=where.name)) for name, x in CASES.items() if runs_on(x, where)
    }
    found["written by hand: a loop over K"] = user_kernel("looped")
    found["written by hand: through a stage"] = user_kernel("through_stages", "swizzled")
    return found


def user_kernel(name: str, *given: str) -> Callable[[], Any]:
    def start() -> Any:
        from . import user_kernels  # numba's kernels are made when it is imported

        return getattr(user_kernels, name)(*given)

    return start


# --- mistakes that are planted -----------------------------------------------------------------------

HEAD = """.version 8.0
.target {target}
.address_size 64
.visible .entry planted(.param .u64 D)
{{
  .reg .pred %p; .reg .b32 %r<8>; .reg .b64 %rd<8>; .shared .align 16 .b8 here[512];
  mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; mov.u32 %r3, here; add.u32 %r3, %r3, %r2;
  ld.param.u64 %rd1, [D]; cvta.to.global.u64 %rd1, %rd1; cvt.u64.u32 %rd2, %r2; add.u64 %rd1, %rd1, %rd2;
"""
PLANTED = {
    "memcheck": "st.global.b32 [%rd1+8], %r1; ret;",  # two elements behind the end
    "racecheck": """st.shared.b32 [%r3], %r1; xor.b32 %r4, %r2, 256; mov.u32 %r5, here; add.u32 %r5, %r5, %r4;
                    ld.shared.b32 %r6, [%r5]; st.global.b32 [%rd1], %r6; ret;""",  # of another warp, with no barrier
    "initcheck": "ld.global.b32 %r4, [%rd1]; add.u32 %r4, %r4, 1; st.global.b32 [%rd1], %r4; ret;",
    "synccheck": """setp.ge.u32 %p, %r1, 16; @%p bra AFTER; bar.sync 0;
                    AFTER: st.global.b32 [%rd1], %r1; ret;""",  # half a warp comes to the barrier
}
"""Tool -> a kernel of 128 threads with what it looks for; D has an element for each."""


def text_of(tool: str) -> str:
    """PTX of the kernel with a tool's mistake, to be formatted with the target."""
    return HEAD + PLANTED[tool] + "\n}}\n"


def planted(tool: str) -> None:
    """Launch the kernel with a tool's mistake."""
    import torch

    from lowering.backends.driver import ParameterBlock
    from lowering.program import Buffer, Program

    from .driver_kernels import kernel

    d = torch.empty(128, dtype=torch.int32, device="cuda")
    program = Program("planted", 4, (), (), (), buffers=(Buffer("D", "D", "int32", (0,)),))
    loaded = kernel(text_of(tool), "planted")
    frame = ParameterBlock(program, loaded.places).frame()
    loaded.launch((1, 1, 1), 128, frame.fill((d.data_ptr(),)), 0)
    torch.cuda.synchronize()


# --- the process that a tool watches ------------------------------------------------------------------


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m property_tests.gpu.sanitize_cases", description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--only", default="", help="only rows whose names contain this")
    parser.add_argument("--row", default="", help="only the row of this name")
    parser.add_argument("--without", default="", help="all but the row of this name")
    parser.add_argument("--planted", default="", choices=("", *PLANTED))
    o = parser.parse_args()
    if o.planted:
        planted(o.planted)
        return 0
    from lowering.backends.driver import device

    found: list[dict[str, Any]] = []
    for name, start in rows(target(device().target.name)).items():
        if o.only not in name or name == o.without or (o.row and name != o.row):
            continue
        try:
            start()
            found.append({"name": name, "right": True})
        except Exception as error:  # noqa: BLE001  # a failing row must not hide the others
            where = traceback.extract_tb(error.__traceback__)[-1]
            why = f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})"
            found.append({"name": name, "right": False, "why": why})
        o.file.write_text(json.dumps(found, indent=1))
    return 0 if all(r["right"] for r in found) else 1


if __name__ == "__main__":
    sys.exit(main())
