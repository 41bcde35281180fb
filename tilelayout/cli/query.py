"""``tilelayout query``: from an element to its holders, and from a place to its elements."""

from __future__ import annotations

from typing import Any

import click

from ..errors import LayoutError
from .command import NO, YES, Command
from .inputs import (
    bits_option,
    check_copies,
    copies_of,
    layout_argument,
    layout_of,
    numbers_of,
    place_of,
    shape_option,
    sized_shape,
)
from .output import LINES, as_json, echo_rows, place_code

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Final

    from ..axis import Axis
    from .inputs import Layout

    Place = Mapping[Any, Any]

REGISTER_BITS: Final = 32
MOST_FOUND: Final = 2**17
"""Elements times copies that are listed for a place."""

_FRAGMENT = "'S[(2, 8, 4, 2) : (2, 4 @ laneid, 1 @ laneid, 1)]'"


@click.command(
    "query",
    cls=Command,
    short_help="Who holds an element, and which element is in a lane's register.",
    examples=(
        (f"tilelayout query {_FRAGMENT} --shape 16,8 --at 9,5", "who holds element (9, 5)"),
        (
            f"tilelayout query {_FRAGMENT} --shape 16,8 --at 9,5 --explain",
            "the same, calculated step by step",
        ),
        (f"tilelayout query {_FRAGMENT} --shape 16,8 --lane 6 --register 3", "what lane 6 has in register 3"),
        (f"tilelayout query {_FRAGMENT} --shape 16,8 --where laneid=6", "all that lane 6 holds"),
    ),
)
@layout_argument
@shape_option
@click.option("--at", metavar="I,J", help="An element: its coordinate in --shape, or its flat index.")
@click.option("--lane", type=click.IntRange(0), help="A lane (axis laneid).")
@click.option("--warp", type=click.IntRange(0), help="A warp (axis warpid).")
@click.option(
    "--register",
    type=click.IntRange(0),
    help="A 32-bit register of the lane: the slots in it, by --element-bits.",
)
@click.option("--where", metavar="AXIS=N,...", help="A place: laneid=5,m=3; AXIS=* is any coordinate.")
@bits_option
@click.option("--explain", is_flag=True, help="Show how --at is calculated.")
@click.option("--json", "json_", is_flag=True, help="Write JSON.")
def command(
    layout: str, let: tuple[str, ...], shape: str | None, at: str | None, lane: int | None, warp: int | None,
    register: int | None, where: str | None, bits: int | None, explain: bool, json_: bool,
) -> int:  # fmt: skip
    """Ask LAYOUT where an element is (--at), or which elements are at a place (--lane, --warp, --register, --where).

    Axes that a place leaves out may have any coordinate.  Without --element-bits a register is one slot.  Exit code: 0
    where something is found, 1 where nothing is there.
    """
    asked = layout_of(layout, let)
    dims = sized_shape(asked, shape, "query")
    check_copies(asked, "query")
    places = _places(lane, warp, register, where, bits)
    if (at is None) == (places is None):
        raise click.UsageError("give an element by --at, or a place by --lane, --warp, --register or --where")
    if at is not None:
        coordinate = numbers_of(at, "--at")
        if explain:
            click.echo(str(asked.explain("owners", *coordinate, shape=dims)))
            return YES
        return _holders(asked, coordinate, dims, bits, json_)
    if explain:
        raise click.UsageError("--explain goes with --at")
    return _elements(asked, places or [], dims, bits, json_)


def _places(
    lane: int | None, warp: int | None, register: int | None, where: str | None, bits: int | None
) -> list[dict[Any, int | None]] | None:
    """The places that the options name, None where they name none; a register may be several slots."""
    from ..axis import axis

    place: dict[Any, int | None] = {} if where is None else dict(place_of(where))
    for name, value in (("laneid", lane), ("warpid", warp)):
        if value is not None:
            if name in place:
                raise click.UsageError(f"axis {name} is given twice")
            place[axis(name)] = value
    if register is None:
        return [place] if place else None
    if "m" in place:
        raise click.UsageError("axis m is given twice, by --register and by --where")
    width = bits or REGISTER_BITS
    if width >= REGISTER_BITS:
        slots = [register * REGISTER_BITS // width]
    else:
        first = -(-(register * REGISTER_BITS - width + 1) // width)  # the first that ends in the register
        slots = list(range(first, (register * REGISTER_BITS + REGISTER_BITS - 1) // width + 1))
    return [{**place, axis("m"): slot} for slot in slots]


def _holders(
    asked: Layout, coordinate: tuple[int, ...], dims: tuple[int, ...] | None, bits: int | None, json_: bool
) -> int:
    """Every place of an element."""
    from ..draw.places import moving_axes
    from ..draw.wording import place_text

    found = asked.owners(*coordinate, shape=dims)
    if json_:
        click.echo(as_json({"element": coordinate, "shape": dims, "holders": found}))
        return YES
    shared = not any(a.kind == "thread" for a in moving_axes(asked))
    click.echo(f"element {_tuple(coordinate)}")
    rows = [(place_code(place), place_text(place, bits, shared)) for place in found[:LINES]]
    echo_rows(rows, len(found) - len(rows))
    return YES


def _elements(
    asked: Layout,
    places: list[dict[Any, int | None]],
    dims: tuple[int, ...] | None,
    bits: int | None,
    json_: bool,
) -> int:
    """Every element at some places, each with the place it has there."""
    found = list(_found(asked, places))
    if json_:
        entries = [
            {"flat": flat, "element": None if dims is None else _coordinate(flat, dims), "place": place}
            for flat, place in found
        ]
        click.echo(as_json({"shape": dims, "elements": entries}))
        return YES if found else NO
    if not found:
        click.echo(f"no element is at {' or '.join([_code(place) for place in places])}")
        return NO
    from ..draw.places import moving_axes
    from ..draw.wording import place_text

    shared = not any(a.kind == "thread" for a in moving_axes(asked))
    rows = [
        (
            f"element {flat}" if dims is None else f"element {_tuple(_coordinate(flat, dims))}",
            place_code(place),
            place_text(place, bits, shared),
        )
        for flat, place in found[:LINES]
    ]
    echo_rows(rows, len(found) - len(rows))
    return YES


def _found(asked: Layout, places: list[dict[Any, int | None]]) -> Iterator[tuple[int, dict[Axis, int]]]:
    """(flat index, place) of everything there."""
    from ..draw.places import moving_axes

    for place in places:
        free = [axis for axis in moving_axes(asked) if axis not in place]
        at: dict[Any, Any] = {axis: ... if v is None else v for axis, v in place.items()} | dict.fromkeys(
            free, ...
        )
        flats = asked.elements(at)
        if len(flats) * copies_of(asked) > MOST_FOUND:
            raise LayoutError("query", f"{len(flats)} elements are there", "name more axes of the place")
        for flat in flats:
            for holder in asked.owners(flat):
                if all(v is None or holder.get(axis, 0) == v for axis, v in place.items()):
                    yield flat, holder


def _coordinate(flat: int, dims: tuple[int, ...]) -> tuple[int, ...]:
    from ..draw.places import unflattened

    return unflattened(flat, dims)


def _tuple(coordinate: tuple[int, ...]) -> str:
    text = ", ".join(map(str, coordinate))
    return f"({text})" if len(coordinate) > 1 else text


def _code(place: dict[Any, int | None]) -> str:
    return place_code({axis: "*" if v is None else v for axis, v in place.items()})
