"""What tuning found: every configuration with its time, or why it has none."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import shorten

from .config import Config

_REASON = 90


@dataclass(frozen=True)
class Row:
    """One configuration.

    Attributes:
        config: how the problem was cut.
        seconds: the median time of a launch; None where it was not measured.
        reason: why it was not: what refused it, or that its result was wrong; empty where it was.
    """

    config: Config
    seconds: float | None
    reason: str = ""


@dataclass(frozen=True)
class Tuned:
    """The configurations of one problem on one GPU; ``print(tuned)`` shows the table.

    Attributes:
        what: the kernel and the extents, in words.
        device: the GPU's name.
        operations: multiplications and additions of a launch.
        rows: the fastest first, then those without a time.
    """

    what: str
    device: str
    operations: int
    rows: tuple[Row, ...]

    @property
    def best(self) -> Config | None:
        """The fastest configuration; None where none was measured."""
        return self.rows[0].config if self.rows and self.rows[0].seconds is not None else None

    @property
    def times(self) -> dict[Config, float]:
        """Configuration -> seconds of a launch, the fastest first."""
        return {r.config: r.seconds for r in self.rows if r.seconds is not None}

    def __str__(self) -> str:
        lines = [f"{self.what} on {self.device}"]
        width = max([len(str(r.config)) for r in self.rows], default=0)
        least = next(iter(self.times.values()), 0.0)
        if self.times:
            lines.append(
                f"  {'configuration':<{width}}  {'microseconds':>12}  {'TFLOP/s':>8}  {'of the best':>11}"
            )
        for config, t in self.times.items():
            rate = self.operations / t / 1e12 if t else 0.0
            lines.append(
                f"  {config!s:<{width}}  {t * 1e6:>12.2f}  {rate:>8.1f}  {least / t if t else 1:>10.1%}"
            )
        for r in self.rows:
            if r.seconds is None:
                lines.append(f"  {r.config!s:<{width}}  {shorten(r.reason, _REASON, placeholder=' ...')}")
        return "\n".join(lines)


def ordered(rows: list[Row]) -> tuple[Row, ...]:
    """The fastest first, then those without a time as they came."""
    timed = sorted((r for r in rows if r.seconds is not None), key=lambda r: r.seconds or 0.0)
    return (*timed, *[r for r in rows if r.seconds is None])


__all__ = ["Row", "Tuned", "ordered"]
