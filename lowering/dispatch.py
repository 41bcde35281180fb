"""The registry of variants, and the search through it.

A variant is a function ``(call, context) -> Program``.  It returns a program or declines with `fail(reason)`; when all
decline, the error shows every variant with its reasons.  Third parties register through the entry-point group
``tilelayout.lowering``: each entry point names a module (or a function to call) that registers variants when loaded.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tilelayout.errors import nearest

from .errors import DispatchError, DispatchFail, PluginError
from .isa import registered as _instructions
from .program import Program
from .scope import Context

ENTRY_POINT_GROUP = "tilelayout.lowering"
OFF_SWITCH = "TILELAYOUT_NO_PLUGINS"

Lowering = Callable[[Any, Context], Program]


@dataclass(frozen=True)
class Predicate:
    """A named condition; `check(call, context)` gives True, or False or the reason why not."""

    name: str
    check: Callable[[Any, Context], Any]


def predicate(name: str, check: Callable[[Any, Context], Any]) -> Predicate:
    """A condition for `register_dispatch(when=[...])`.

    `check(call, context)` returns True, or False or a reason (text).
    """
    if not isinstance(name, str) or not callable(check):
        raise TypeError(f"predicate(name, check): got {name!r}, {check!r}")
    return Predicate(name, check)


@dataclass(frozen=True)
class Variant:
    """One way to lower a primitive.

    Attributes:
        primitive, platform: what it lowers, and for what ("gemm", "cuda").
        name: unique among the variants of the primitive and platform.
        priority: higher is tried first; equal ones by name.
        when: conditions that are all asked before the function is called.
        function: ``(call, context) -> Program``.
        provider: the module that registered it.
    """

    primitive: str
    platform: str
    name: str
    priority: int
    when: tuple[Predicate, ...]
    function: Lowering
    provider: str

    @property
    def order(self) -> tuple[int, str]:
        return -self.priority, self.name


@dataclass(frozen=True)
class Declined:
    """A variant that did not lower the call, and why."""

    variant: str
    priority: int
    reasons: tuple[str, ...]


class Registry:
    """Variants by primitive and platform."""

    def __init__(self) -> None:
        self._variants: dict[tuple[str, str], dict[str, Variant]] = {}

    def add(self, variant: Variant) -> None:
        """Errors: PluginError when the name is taken, naming both providers."""
        known = self._variants.setdefault((variant.primitive, variant.platform), {})
        if variant.name in known:
            raise PluginError(
                f"variant {variant.name!r} of {variant.primitive} on {variant.platform} is registered twice: by "
                f"{known[variant.name].provider} and by {variant.provider}"
            )
        known[variant.name] = variant

    def remove(self, variant: Variant) -> None:
        self._variants[variant.primitive, variant.platform].pop(variant.name)

    def variants(self, primitive: str | None = None, platform: str | None = None) -> list[Variant]:
        """In the order in which they are tried."""
        found = [
            v
            for (p, q), named in self._variants.items()
            if primitive in (None, p) and platform in (None, q)
            for v in named.values()
        ]
        return sorted(found, key=lambda v: (v.primitive, v.platform, *v.order))

    def snapshot(self) -> dict[tuple[str, str], dict[str, Variant]]:
        return {key: dict(named) for key, named in self._variants.items()}

    def restore(self, state: dict[tuple[str, str], dict[str, Variant]]) -> None:
        self._variants = state


REGISTRY = Registry()


def register_dispatch(
    primitive: str, platform: str, *, variant: str, priority: int = 0, when: Iterable[Predicate] = ()
) -> Callable[[Lowering], Lowering]:
    """Decorator: register a function ``(call, context) -> Program`` as a variant.

    Errors: PluginError when the variant's name is taken for that primitive and platform; TypeError for an argument
    that is none, and for a function that can't be called.
    """
    if isinstance(when, Predicate):
        raise TypeError("when= takes a list of predicates, got a single one")
    conditions = tuple(when)
    for p in conditions:
        if not isinstance(p, Predicate):
            raise TypeError(f"when= takes predicates made by predicate(name, check), got {p!r}")
    for what, text in (("primitive", primitive), ("platform", platform), ("variant", variant)):
        if not isinstance(text, str) or not text:
            raise TypeError(f"{what} must be a name, got {text!r}")
    if not isinstance(priority, int):
        raise TypeError(f"priority must be an int, got {priority!r}")

    def register(function: Lowering) -> Lowering:
        if not callable(function):
            raise TypeError(
                f"variant {variant!r} must be a function (call, context) -> Program, got {function!r}"
            )
        named = getattr(function, "func", function)  # a functools.partial has no name of its own
        provider = f"{getattr(named, '__module__', '?')}.{getattr(named, '__qualname__', repr(named))}"
        REGISTRY.add(Variant(primitive, platform, variant, priority, conditions, function, provider))
        return function

    return register


@contextmanager
def temporary_variants() -> Iterator[None]:
    """Registrations of variants and instructions within the block are undone at its end.  For tests and notebooks."""
    undo = _kept()
    try:
        yield
    finally:
        undo()


def _kept() -> Callable[[], None]:
    """What brings the variants and the instructions that are registered now back."""
    variants, instructions = REGISTRY.snapshot(), _instructions.snapshot()

    def undo() -> None:
        REGISTRY.restore(variants)
        _instructions.restore(instructions)

    return undo


# --- plug-ins -----------------------------------------------------------------------------------

_loaded: set[str] = set()
_complete = False


def load_plugins() -> None:
    """Load each entry point of the group, once a process, in order of name.

    Errors: PluginError when one cannot be loaded, naming it, its distribution and the cause; nothing that it
    registered stays.
    Set TILELAYOUT_NO_PLUGINS=1 to leave plug-ins out.
    """
    global _complete
    if _complete or os.environ.get(OFF_SWITCH, "") not in ("", "0"):
        return
    from importlib.metadata import entry_points

    for point in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda p: (p.name, p.value)):
        key = f"{point.name} = {point.value}"
        if key in _loaded:
            continue
        undo = _kept()
        try:
            hook = point.load()
            if callable(hook):
                hook()
        except (Exception, SystemExit) as error:
            undo()
            distribution = point.dist.name if point.dist else "an unknown distribution"
            raise PluginError(
                f"plug-in {point.name!r} ({point.value}) of {distribution} does not load: "
                f"{type(error).__name__}: {error} "
                f"(remedy: mend or uninstall it, or set {OFF_SWITCH}=1 to go without plug-ins)"
            ) from error
        _loaded.add(key)
    _complete = True


# --- the search ---------------------------------------------------------------------------------


def dispatch(
    call: Any, context: Context, platform: str = "cuda", forced: str | None = None
) -> tuple[Variant, Program, tuple[Declined, ...]]:
    """The first variant that lowers the call, its program, and those that declined before it.

    Candidates run by descending priority, then name.  An unexpected exception of a variant counts as declining and is
    shown; returning anything but a program breaks the contract and ends the search.

    Errors: DispatchError, with the table of variants and reasons.
    """
    candidates = REGISTRY.variants(call.primitive, platform)
    if not candidates:
        known = sorted({v.primitive for v in REGISTRY.variants(platform=platform)})
        raise DispatchError(
            f"no variant is registered for primitive {call.primitive!r}, {nearest(call.primitive, known)}"
        )
    if forced is not None:
        names = [v.name for v in candidates]
        if forced not in names:
            raise DispatchError(f"no variant {forced!r} of {call.primitive}, {nearest(str(forced), names)}")
        candidates = [v for v in candidates if v.name == forced]
    declined: list[Declined] = []
    unexpected: list[Exception] = []
    for v in candidates:
        result = attempt(v, call, context, unexpected)
        if isinstance(result, Program):
            return v, result, tuple(declined)
        declined.append(Declined(v.name, v.priority, result))
    raise DispatchError(
        f"no variant lowers {call.primitive} ({call}) for {context.target} at {context.scope} scope:\n"
        + declined_table(declined)
    ) from (unexpected[0] if unexpected else None)


def attempt(
    variant: Variant, call: Any, context: Context, unexpected: list[Exception] | None = None
) -> Program | tuple[str, ...]:
    """The program, or the reasons why there is none; exceptions that are no reasons are added to `unexpected`."""
    found = unexpected if unexpected is not None else []
    reasons = [r for p in variant.when if (r := _failing(p, call, context, found)) is not None]
    if reasons:
        return tuple(reasons)
    try:
        result: Any = variant.function(call, context)
    except DispatchFail as reason:
        return (str(reason) or "declined without a reason",)
    except Exception as error:  # noqa: BLE001  # somebody else's code: shown, and the search goes on
        found.append(error)
        return (f"unexpected {type(error).__name__} in {variant.provider}: {error}",)
    if not isinstance(result, Program):
        raise DispatchError(
            f"variant {variant.name!r} of {variant.primitive} ({variant.provider}) returned {result!r}: "
            f"a variant returns a Program or declines with fail(reason)"
        )
    return result


def _failing(p: Predicate, call: Any, context: Context, unexpected: list[Exception]) -> str | None:
    try:
        verdict = p.check(call, context)
    except DispatchFail as reason:
        verdict = str(reason)
    except Exception as error:  # noqa: BLE001  # the same
        unexpected.append(error)
        return f"{p.name}: unexpected {type(error).__name__}: {error}"
    verdict, reason = verdict if isinstance(verdict, tuple) and len(verdict) == 2 else (verdict, verdict)
    if verdict is True or (type(verdict).__name__ in ("bool", "bool_") and verdict):  # numpy's counts
        return None
    return f"{p.name}: {reason}" if isinstance(reason, str) and reason else f"{p.name} does not hold"


def declined_table(declined: Iterable[Declined], width: int = 100) -> str:
    """Variant, priority and reasons, wrapped to `width` columns."""
    rows = list(declined)
    name = max([len(d.variant) for d in rows] + [len("variant")])
    head = f"  {'variant':<{name}}  priority  reason"
    lines = [head]
    indent = len(head) - len("reason")
    for d in rows:
        for i, reason in enumerate(d.reasons):
            start = f"  {d.variant:<{name}}  {d.priority:>8}  " if i == 0 else " " * indent
            lines.append(
                textwrap.fill(
                    reason, max(width, indent + 40), initial_indent=start, subsequent_indent=" " * indent,
                    break_long_words=False, break_on_hyphens=False,
                )
            )  # fmt: skip
    return "\n".join(lines)
