"""Programs with one mistake: a statement that is missing, or another in its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from lowering.program import Program

Place = tuple[int, ...]
"""Where a statement is: its number in the body, then 0 or 1 for `body` or `orelse` and its number there, and so on."""


def places(body: tuple[Any, ...], at: Place = ()) -> Iterator[tuple[Place, Any]]:
    """All statements with their places, the outer ones first."""
    for i, s in enumerate(body):
        here = (*at, i)
        yield here, s
        for part in (0, 1):
            yield from places(getattr(s, ("body", "orelse")[part], ()), (*here, part))


def put(body: tuple[Any, ...], place: Place, with_: tuple[Any, ...]) -> tuple[Any, ...]:
    """The body with other statements in place of one."""
    i, *rest = place
    if not rest:
        return (*body[:i], *with_, *body[i + 1 :])
    part, *inner = rest
    name = ("body", "orelse")[part]
    changed = replace(body[i], **{name: put(getattr(body[i], name), tuple(inner), with_)})
    return (*body[:i], changed, *body[i + 1 :])


def mutant(program: Program, place: Place, change: Callable[[Any], tuple[Any, ...]]) -> Program:
    """The program with the statement at a place changed."""
    found = dict(places(program.body))[place]
    return replace(program, body=put(program.body, place, change(found)))
