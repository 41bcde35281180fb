"""Operations on layouts beside TVM TIRx's: `python -m benchmarks.algebra`.

Both libraries run the same code on the same layouts (`algebra_rows`), each in a process of its own.  Before anything
is timed, they must give the same answers.  Rounds take turns; what counts is CPU time, the best round of each.
"""

from __future__ import annotations

from .harness import arguments, finish, result
from .peer import check_answers, compare, workers

GOAL = 0.5
GOALS = ("construct", "apply", "canonicalize", "group", "slice", "tile_to")

METHOD = "CPU time of one call, microseconds; best of {rounds} interleaved rounds; new objects for every call"


def main() -> None:
    options = arguments(__doc__, rounds=15).parse_args()
    with workers("algebra") as (ours, tvm):
        check_answers(ours, tvm)
        goals = {row: GOAL for row in ours.rows if row.partition(",")[0] in GOALS}
        rows = compare(ours, tvm, options.rounds, goals, unit=1e-6)
        versions = dict(w.version.split() for w in (ours, tvm) if w is not None)
    finish(
        result("algebra", METHOD.format(rounds=options.rounds), "us", rows, versions=versions), options.json
    )


if __name__ == "__main__":
    main()
