"""Operations on layouts beside other libraries': `python -m benchmarks.algebra`.

Ours, TVM TIRx, pycute, the CuTe DSL, tensor-layouts, Triton's LinearLayout and numpy by hand, each in a process of its
own.  Before anything is timed, all must give the same answers to the rows they share.  Rounds take turns, row by row;
what counts is CPU time, the best round of each.
"""

from __future__ import annotations

from typing import Any

from .fresh import compare_imports
from .harness import arguments, finish, result
from .peer import check_answers, compare, workers

PEERS = ("tvm", "pycute", "cute_dsl", "tensor_layouts", "triton", "numpy")

GOAL = 0.5
"""Of the best peer, on every row that isn't below."""

GOALS: dict[str, tuple[float, str]] = {
    "construct": (0.35, "tvm"),
    "construct, on m": (0.35, "tvm"),
    "apply, (16, 16)": (0.5, "triton"),
    "apply, flat index": (0.5, "triton"),
    "apply, per iter": (0.5, "triton"),
    "complement": (0.4, "pycute"),
    "inverse": (0.4, "pycute"),
    "right_inverse": (0.4, "pycute"),
    "left_inverse": (0.4, "pycute"),
    "left_inverse, with gaps": (0.4, "pycute"),
    "swizzle, apply": (0.5, "pycute"),
    "swizzled layout, apply": (0.5, "pycute"),
    "direct_sum": (0.4, "tvm"),
    "recover_outer": (0.4, "tvm"),
    "recover_inner": (0.4, "tvm"),
    "recover_left": (0.4, "tvm"),
    "recover_right": (0.4, "tvm"),
    "map, 4096 x 4096": (0.6, "numpy"),
    "map, 4096 x 4096, separated by hand": (0.6, "numpy"),
}
"""The rows whose goal is another: a share of that peer's time."""

METHOD = (
    "CPU time of one call, microseconds; best of {rounds} interleaved rounds; new objects for every call; "
    "ratio to the best peer; a goal of 0.5, or a share of the peer that it names"
)


def judged(row: dict[str, Any]) -> dict[str, Any]:
    """The line of the table with its goal, and whether ours reached it."""
    if "ratio" not in row:
        return row
    share, peer = GOALS.get(row["operation"], (GOAL, ""))
    against = row.get(peer or row.get("best peer", ""))
    if against is None:  # that peer is absent, or there is only one
        return row | {"goal": f"{share}", "met": "yes" if row["ratio"] <= share else "no"}
    met = "yes" if row["ours"] <= share * against else "no"
    return row | {"goal": f"{share} of {peer}" if peer else f"{share}", "met": met}


def main() -> None:
    options = arguments(__doc__, rounds=15).parse_args()
    with workers("algebra", PEERS) as (ours, peers):
        check_answers(ours, peers)
        rows = compare(ours, peers, options.rounds, unit=1e-6)
        rows += compare_imports([worker.library for worker in peers], options.rounds, unit=1e-6)
        versions = dict(worker.version.split() for worker in (ours, *peers))
        libraries = [worker.library for worker in (ours, *peers)]
    rows = [judged(row) for row in rows]
    method = METHOD.format(rounds=options.rounds)
    finish(result("algebra", method, "us", rows, versions=versions, libraries=libraries), options.json)


if __name__ == "__main__":
    main()
