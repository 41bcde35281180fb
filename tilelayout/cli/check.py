"""``tilelayout check``: questions with a yes or no, witnesses, and an exit code."""

from __future__ import annotations

from typing import Any

import click

from ..errors import LayoutError, Undecided
from .command import BAD_INPUT, NO, YES, Command
from .inputs import layout_argument, layout_of, shape_option, sized_shape
from .output import as_json, echo_rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final

    from .inputs import Layout

    Found = tuple[bool | None, str, Any]  # the answer (None: undecided), what shows it, and that as data

QUESTIONS: Final = ("injective", "surjective", "bijective", "canonical")


@click.command(
    "check",
    cls=Command,
    short_help="Bijective? Canonical? The same as another? With a witness.",
    examples=(
        ("tilelayout check 'S[(2, 8, 4, 2) : (2, 4 @ laneid, 1 @ laneid, 1)]'", "everything about a layout"),
        (
            "tilelayout check 'S[(3, 2) : (1, 2)]' --injective",
            "no, with two elements that collide; exit code 1",
        ),
        ("tilelayout check 'S[(2, 3) : (3, 1)]' --equal 'S[6:1]'", "the same function, written differently"),
        (
            "tilelayout check 'S[8, 64]' --shape 8,64 --equal 'Swizzle(3, 3, 3) o S[8, 64]'",
            "where they first differ; exit code 1",
        ),
    ),
)
@layout_argument
@shape_option
@click.option("--injective", is_flag=True, help="No place holds two elements?")
@click.option("--surjective", is_flag=True, help="Is every place of the box that it spans held?")
@click.option("--bijective", is_flag=True, help="Both?")
@click.option("--canonical", is_flag=True, help="Is it its own canonical form?")
@click.option("--equal", metavar="LAYOUT", help="Is it the same function as this one?")
@click.option("--json", "json_", is_flag=True, help="Write JSON.")
def command(
    layout: str, let: tuple[str, ...], shape: str | None, injective: bool, surjective: bool, bijective: bool,
    canonical: bool, equal: str | None, json_: bool,
) -> int:  # fmt: skip
    """Ask LAYOUT questions and answer with a witness.

    With no question all four are answered, and the exit code is that of --bijective.  Otherwise it is 0 where every
    answer is yes, 1 where one is no, 2 where one isn't found within the budget.
    """
    asked = layout_of(layout, let)
    dims = sized_shape(asked, shape, "check")
    flags = dict(zip(QUESTIONS, (injective, surjective, bijective, canonical), strict=True))
    names = [name for name in QUESTIONS if flags[name]]
    everything = not names and equal is None
    found = {name: _answer(asked, name, dims) for name in (QUESTIONS if everything else names)}
    if equal is not None:
        other = layout_of(equal, let)
        found["equal"] = _decided(lambda: _equal(asked, other, dims))
    _write(asked, found, json_)
    counted = [found["bijective"]] if everything else list(found.values())
    if any(answer is False for answer, _, _ in counted):
        return NO
    return YES if all(answer for answer, _, _ in counted) else BAD_INPUT


def _write(asked: Layout, found: dict[str, Found], json_: bool) -> None:
    if json_:
        answers = {
            name: {"answer": answer, "witness": witness} for name, (answer, _, witness) in found.items()
        }
        click.echo(as_json({"layout": str(asked), "size": asked.size(), **answers}))
        return
    click.echo(f"{asked}  ({asked.size()} elements)")
    echo_rows(
        [(name, "undecided" if answer is None else "yes" if answer else "no", why)
         for name, (answer, why, _) in found.items()]
    )  # fmt: skip


def _decided(question: Callable[[], Found]) -> Found:
    """The answer, or that there is none within the budget."""
    try:
        return question()
    except Undecided as error:
        return None, str(error), None


def _answer(asked: Layout, name: str, dims: tuple[int, ...] | None) -> Found:
    questions: dict[str, Callable[[], Found]] = {
        "injective": lambda: _witnessed(asked.is_injective(), asked, dims),
        "surjective": lambda: _witnessed(asked.is_surjective(), asked, dims),
        "bijective": lambda: _witnessed(asked.is_bijective(), asked, dims),
        "canonical": lambda: _canonical(asked),
    }
    return _decided(questions[name])


def _witnessed(answer: Any, asked: Layout, dims: tuple[int, ...] | None) -> Found:
    """An answer, with its witness in words: two elements in one place, or a place without any."""
    if answer:
        return True, "", None
    witness: Any = answer.witness
    if hasattr(witness, "items"):
        return False, f"no element is at {_place(witness)}", witness
    one, two = _element(witness[0], dims), _element(witness[1], dims)
    return False, f"elements {one} and {two} share a place{_shared(asked, witness)}", witness


def _shared(asked: Layout, witness: Any) -> str:
    """The place that two elements have in common, where they have one holder each."""
    from .inputs import copies_of

    return f": {_place(asked.apply(witness[0]))}" if copies_of(asked) == 1 else ""


def _place(place: Any) -> str:
    from .output import place_code

    return place_code(place)


def _element(flat: int, dims: tuple[int, ...] | None) -> str:
    from ..draw.places import unflattened

    return str(flat) if dims is None else str(unflattened(flat, dims))


def _canonical(asked: Layout) -> Found:
    canonical = asked.canonicalize()
    same = canonical == asked
    return same, "" if same else f"the canonical form is {canonical}", None if same else str(canonical)


def _equal(asked: Layout, other: Layout, dims: tuple[int, ...] | None) -> Found:
    if dims is not None and other.size() != asked.size():
        raise LayoutError("check", f"{other} has {other.size()} elements, {asked} has {asked.size()}")
    answer = asked.equivalent(other, shape=dims)
    if answer:
        return True, "", None
    where = answer.witness
    return False, f"they differ at {where}{_both(asked, other, where, dims)}", where


def _both(asked: Layout, other: Layout, where: Any, dims: tuple[int, ...] | None) -> str:
    """Where each of them has the element, where both have it once."""
    from .inputs import copies_of

    coordinate = tuple(where) if hasattr(where, "__len__") else (where,)
    if (dims is None and asked.size() != other.size()) or copies_of(asked) > 1 or copies_of(other) > 1:
        return ""
    places = [_place(layout.apply(*coordinate, shape=dims)) for layout in (asked, other)]
    return f": {places[0]} and {places[1]}"
