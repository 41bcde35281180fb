"""The search for the fastest configuration: every tile once, then what differs in one thing from the fastest.

Where they are carried out and by what clock is somebody else's: a `Trial`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from os import cpu_count
from time import monotonic
from typing import Any, Protocol

from tilelayout import LayoutError

from ...errors import DispatchError, DriverError
from .config import Config
from .tuned import Row

REFUSALS = (LayoutError, DispatchError, DriverError, RuntimeError, ValueError)
"""What a configuration may be refused by: too little room, nothing that lowers it, an assembler that spills."""
FRESH = 2
"""Fastest configurations whose variations are measured next."""
FINALISTS = 4
"""That are measured once more, together."""
_SHARE = 0.1
"""Of the time, for one round of measurements."""


class Trial(Protocol):
    """What carries configurations out."""

    def build(self, config: Config) -> Any:
        """Make the machine code, in any thread.  Errors: `REFUSALS`."""
        ...

    def result(self, config: Config) -> str:
        """Carry out one that was built, and compare its result with the first one's: empty, or what is wrong."""
        ...

    def times(self, configs: Sequence[Config], seconds: float) -> list[float]:
        """The median time of each, in seconds, measured in turns for about so long."""
        ...


class Search:
    """One search.

    Attributes:
        rows: what is known of each configuration that was tried.
    """

    def __init__(
        self, trial: Trial, seconds: float, say: Callable[[str], Any], clock: Callable[[], float] = monotonic
    ) -> None:
        self.trial, self.seconds, self.say, self.clock = trial, seconds, say, clock
        self.end = clock() + seconds
        self.rows: dict[Config, Row] = {}

    @property
    def over(self) -> bool:
        """Whether the time is spent."""
        return self.clock() >= self.end

    def fastest(self, count: int) -> list[Config]:
        """Of those that were measured."""
        timed = [(r.seconds, c) for c, r in self.rows.items() if r.seconds is not None]
        return [c for _, c in sorted(timed, key=lambda x: x[0])[:count]]

    def run(
        self, configs: Iterable[Config], further: Callable[[Config], Iterable[Config]] | None = None
    ) -> None:
        """Measure configurations: all of them; or with `further` as many as the time suffices for, and those that it
        names for the fastest, as long as that helps.
        """
        self.measure(list(configs), all_of_them=further is None)
        done: set[Config] = set()
        while further is not None and not self.over:
            leaders = [c for c in self.fastest(FRESH) if c not in done]
            done.update(leaders)
            found = [v for c in leaders for v in further(c)]
            fresh = [v for v in dict.fromkeys(found) if v not in self.rows]
            if not fresh:
                break
            self.measure(fresh)
        finalists = self.fastest(FINALISTS)
        if len(finalists) > 1:
            self._time(finalists, 2 * _SHARE * self.seconds)

    def measure(self, configs: Sequence[Config], all_of_them: bool = False) -> None:
        """Build, check and time some; those that the time does not suffice for may be left out."""
        right = [c for c in self._built(configs, all_of_them) if self._is_right(c)]
        if right:
            self._time(right, _SHARE * self.seconds)

    def _built(self, configs: Sequence[Config], all_of_them: bool) -> list[Config]:
        """Those for which there is machine code; made by several threads, since most of it is done by programs."""
        out: list[Config] = []
        workers = min(8, cpu_count() or 1)
        with ThreadPoolExecutor(workers) as pool:
            for begin in range(0, len(configs), workers):
                if begin and self.over and not all_of_them:
                    break
                part = configs[begin : begin + workers]
                for config, made in zip(part, [pool.submit(self.trial.build, c) for c in part], strict=True):
                    try:
                        made.result()
                    except REFUSALS as error:
                        self._refuse(config, str(error).partition("\n")[0])
                    else:
                        out.append(config)
        return out

    def _is_right(self, config: Config) -> bool:
        try:
            wrong = self.trial.result(config)
        except (LayoutError, DriverError) as error:
            wrong = str(error).partition("\n")[0]
        if wrong:
            self._refuse(config, wrong)
        return not wrong

    def _refuse(self, config: Config, reason: str) -> None:
        self.rows[config] = Row(config, None, reason)
        self.say(f"{config}: {reason}")

    def _time(self, configs: Sequence[Config], seconds: float) -> None:
        for config, t in zip(configs, self.trial.times(configs, seconds), strict=True):
            self.rows[config] = Row(config, t)
            self.say(f"{config}: {t * 1e6:.2f} microseconds")


__all__ = ["REFUSALS", "Search", "Trial"]
