"""`lower` and what hangs on it, beside TVM's LowerTIRx: `python -m benchmarks.lowering`

The gemms are (1,1,1,16) and (4,8,4,16): one warp, so many atoms of ``mma.m16n8k16`` on float16 along M, N and K.  Every
call gets tiles and layouts of its own; modules are loaded and the dispatch table is filled ("warm").
"""

from __future__ import annotations

from .gemms import LARGE, SMALL, text
from .harness import arguments, finish, result
from .peer import check_answers, compare, workers

GOALS = {f"lower {text(SMALL)}": 1.0, f"lower {text(LARGE)}": 10.0}

METHOD = (
    "CPU time of one call, milliseconds; best of {rounds} interleaved rounds; TVM's row is its pass LowerTIRx"
)


def main() -> None:
    options = arguments(__doc__, rounds=10).parse_args()
    with workers("lowering", ["tvm"]) as (ours, peers):
        check_answers(ours, peers)
        rows = compare(ours, peers, options.rounds, unit=1e-3)
        versions = dict(w.version.split() for w in (ours, *peers))
    for row in rows:
        if row["operation"] in GOALS:
            row["goal, ms"] = GOALS[row["operation"]]
    finish(
        result("lowering", METHOD.format(rounds=options.rounds), "ms", rows, versions=versions), options.json
    )


if __name__ == "__main__":
    main()
