"""Times of launches by the GPU's own clock, taken in turns so that all meet the same clock rate and heat."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from time import monotonic

from .bindings import bindings, call
from .devices import current

_LONG = 2e-4
"""Seconds of launches between two events at least: an event by itself takes microseconds."""
_REPEATS = 64
ROUNDS = (5, 400)
"""How often each is measured: at least, and at most."""


def interleaved(
    launches: Sequence[Callable[[], None]], stream: int, ordinal: int, seconds: float
) -> list[float]:
    """The median time of each launch on a stream, in seconds.

    One measurement of each makes a round, and every round begins with another one; rounds go on for about `seconds`.
    A launch that is over at once is repeated, back to back, within a measurement.

    Errors: DriverError with CUDA's error, that of a launch too.
    """
    with current(ordinal):
        flags = bindings().CUevent_flags.CU_EVENT_DEFAULT
        begin, end = (call("cuEventCreate", flags) for _ in range(2))
        try:

            def measured(launch: Callable[[], None], repeats: int) -> float:
                call("cuEventRecord", begin, stream)
                for _ in range(repeats):
                    launch()
                call("cuEventRecord", end, stream)
                call("cuEventSynchronize", end)
                return float(call("cuEventElapsedTime", begin, end)) / 1e3 / repeats

            first = [
                min(measured(x, 1) for _ in range(2)) for x in launches
            ]  # the first of them is the warm-up
            repeats = [max(1, min(_REPEATS, int(_LONG / max(t, 1e-9)))) for t in first]
            found: list[list[float]] = [[] for _ in launches]
            until, count = monotonic() + seconds, len(launches)
            for number in range(ROUNDS[1]):
                if number >= ROUNDS[0] and monotonic() > until:
                    break
                for k in range(count):
                    i = (number + k) % count
                    found[i].append(measured(launches[i], repeats[i]))
            return [median(times) for times in found]
        finally:
            call("cuEventDestroy", begin)
            call("cuEventDestroy", end)


__all__ = ["ROUNDS", "interleaved"]
