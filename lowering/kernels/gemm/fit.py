"""Whether a CTA has registers, threads and shared memory for how it is cut; and what does, where it has not.

What is refused is said in the fields of `Config`, with a change of one of them, where there is one, that keeps every
rule, and not only the one that was broken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from tilelayout import LayoutError

from ...isa.operand_map import LANES
from ...target import Target
from .config import MOST_WARPS, Config
from .cut import Rules
from .occupancy import MULTIPROCESSORS, occupancy
from .problem import Problem
from .reduce import multiplied
from .room import SHARED
from .stages import choose_record
from .store_rows import refusal
from .takes import MOST_REGISTERS, fragments, registers, shared_bytes, staged, sums

NAMED = 2
"""Changes that a remedy names: the first is what costs least."""


def check_fit(problem: Problem, config: Config, target: Target) -> None:
    """Refuse CTAs that a multiprocessor has no registers, threads or shared memory for.

    Args:
        problem, config, target: of a kernel whose tile instructions divide.

    Errors: LayoutError with the rule and a change that is fine.
    """
    fit = Fit(problem, target)
    for rule, fields in RULES:
        said = rule(fit, config)
        if said:
            raise LayoutError("gemm", said, fit.remedy(config, rule, fields))


class Fit:
    """The rules for one problem on one target."""

    def __init__(self, problem: Problem, target: Target) -> None:
        self.problem, self.target = problem, target
        self.record = choose_record(problem, target)

    def keeps(self, config: Config | None, last: Rule | None = None) -> bool:
        """Whether a configuration keeps all rules, or those up to one."""
        if config is None:
            return False
        extents = Rules(self.problem, config, self.record, False)
        if not all(extents.kept(field) for field in range(3)):
            return False
        for rule, _ in RULES:
            if rule(self, config):
                return False
            if rule is last:
                break
        return not config.slots or not refusal(config, multiplied(self.problem, config).D.bytes)

    # --- rules: what is broken, in words; empty where it is kept --------------------------------------

    def sums(self, config: Config) -> str:
        """A thread has registers for its sums."""
        found, (m, n, _) = sums(self.problem, config), config.tile
        if found <= MOST_REGISTERS:
            return ""
        return (
            f"the sums of a tile of {m} x {n} take {found} registers of each thread of {config.multipliers} warps, "
            f"{MOST_REGISTERS} at most"
        )

    def held(self, config: Config) -> str:
        """And for what it holds beside them."""
        of_sums, of_stage = sums(self.problem, config), staged(self.problem, config)
        of_step = fragments(self.problem, config, self.record)
        m, n, k = config.tile
        threads = f"of each thread of {config.multipliers} warps"
        if of_sums + of_step > MOST_REGISTERS:
            return (
                f"the sums of a tile of {m} x {n} take {of_sums} registers {threads}, and the fragments of a step "
                f"{of_step}; there are {MOST_REGISTERS}"
            )
        if of_sums + of_stage > MOST_REGISTERS:
            return (
                f"feed='registers' holds the next stage of {m} x {n} x {k} in {of_stage} registers {threads}, beside "
                f"sums in {of_sums}; there are {MOST_REGISTERS}"
            )
        return ""

    def shared(self, config: Config) -> str:
        """A CTA has shared memory for its stages and slots."""
        used, room = shared_bytes(self.problem, config, self.record), SHARED[self.target.sm] * 1024
        if used <= room:
            return ""
        return f"{config} takes {used} bytes of shared memory, a CTA has {room} on {self.target}"

    def threads_together(self, config: Config) -> str:
        """A multiprocessor has threads for the CTAs that are to share it."""
        there, r = MULTIPROCESSORS[self.target.sm], config.resident
        if r == 1 or (LANES * config.all_warps * r <= there.threads and r <= there.ctas):
            return ""
        return (
            f"{_together(config)}; a multiprocessor of {self.target} holds {there.threads} threads and {there.ctas} "
            "CTAs"
        )

    def registers_together(self, config: Config) -> str:
        """It has registers for their sums, at least."""
        each, needed = (
            registers(config, self.target),
            sums(self.problem, config) + staged(self.problem, config),
        )
        if config.resident == 1 or each > needed:
            return ""
        m, n, _ = config.tile
        beside = " and the next stage" if config.feed == "registers" else ""
        return (
            f"{_together(config)} have {each} registers a thread, and the sums of a tile of {m} x {n}{beside} take "
            f"{needed} of them alone"
        )

    def shared_together(self, config: Config) -> str:
        """It has shared memory for all of them."""
        used = shared_bytes(self.problem, config, self.record)
        found = occupancy(self.target, LANES * config.all_warps, 0, used).limits["shared memory"]
        if config.resident == 1 or found >= config.resident:
            return ""
        has = f"a multiprocessor of {self.target} has {MULTIPROCESSORS[self.target.sm].shared}"
        return f"{_together(config)} take {used} bytes of shared memory each; {has}"

    # --- remedies ------------------------------------------------------------------------------------

    def remedy(self, config: Config, broken: Rule, fields: Sequence[str]) -> str:
        """Changes with which all rules are kept: of one field, of the tile as a whole, or of one beside `resident`.

        Where there is none such: with which this rule and those before it are; else that the kernel may choose.
        """
        alone = replace(config, resident=1)
        for base, before, last in (
            (config, "", None),
            (alone, "resident=1 and ", None),
            (config, "", broken),
        ):
            found: list[str] = []
            for field in fields:
                changes = (x for x in self._changes(base, field) if self.keeps(x.config, last))
                found += [str(x) for x in islice(changes, 1)]
            tiles = (x for x in self._smaller(base) if self.keeps(x.config, last))
            found = found or [str(x) for x in islice(tiles, 1)]
            if found:
                return before + " or ".join(found[: 1 if before else NAMED])
        return "leave config= out"

    def _changes(self, config: Config, field: str) -> Iterator[Change]:
        """Of one field, from what is nearest on, to what takes less."""
        name, _, rest = field.partition("[")
        if rest:
            at = int(rest.rstrip("]"))
            sizes = getattr(config, name)
            step = Rules(self.problem, config, self.record, False).step(at) if name == "tile" else 1
            less = range((sizes[at] - 1) // step * step, 0, -step)
            for value in less if name == "tile" else range(sizes[at] + 1, MOST_WARPS + 1):
                yield Change(config, field, value, {name: (*sizes[:at], value, *sizes[at + 1 :])})
            return
        least = {"stages": 2, "slots": 0}.get(field, 1)
        for value in range(getattr(config, field) - 1, least - 1, -1):
            yield Change(config, field, value, {field: value})

    def _smaller(self, config: Config) -> Iterator[Change]:
        """The tile with its largest sides halved, one after the other."""
        rules = Rules(self.problem, config, self.record, False)
        steps = [rules.step(field) for field in range(3)]
        tile = list(config.tile)
        while any(n > s for n, s in zip(tile, steps, strict=True)):
            side = max([d for d in range(3) if tile[d] > steps[d]], key=lambda d: tile[d])
            tile[side] = max(1, tile[side] // 2 // steps[side]) * steps[side]
            yield Change(config, "tile", tuple(tile), {"tile": tuple(tile)})


class Change:
    """A configuration with another value of one field; ``str`` says it as a remedy does.

    Attributes:
        config: with the change; None where there is none such.
    """

    def __init__(self, config: Config, field: str, value: Any, fields: dict[str, Any]) -> None:
        self._text = f"{field}={value}"
        try:
            self.config: Config | None = replace(config, **fields)
        except LayoutError:
            self.config = None

    def __str__(self) -> str:
        return self._text


def _together(config: Config) -> str:
    threads = LANES * config.all_warps
    return f"resident = {config.resident}: {config.resident} CTAs of {threads} threads"


Rule = Callable[[Fit, Config], str]
_WARPS = ("warps[0]", "warps[1]")
_TILE = ("tile[1]", "tile[0]")
RULES: tuple[tuple[Rule, tuple[str, ...]], ...] = (
    (Fit.sums, (*_WARPS, *_TILE)),
    (Fit.held, ("tile[2]", *_WARPS, *_TILE)),
    (Fit.shared, ("stages", "slots", "tile[2]", *_TILE)),
    (Fit.threads_together, ("resident",)),
    (Fit.registers_together, ("resident", *_TILE)),
    (Fit.shared_together, ("resident", "stages", "slots", "tile[2]", *_TILE)),
)
"""Each with the fields that may mend it, the first what costs least."""


__all__ = ["check_fit"]
