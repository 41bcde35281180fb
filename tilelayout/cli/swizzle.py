"""``tilelayout swizzle``: a swizzle in other units, its product with another, and where it takes a coordinate."""

from __future__ import annotations

import click

from .command import YES, Command, answer_code
from .inputs import numbers_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..swizzle import XorMap


@click.command(
    "swizzle",
    cls=Command,
    short_help="A swizzle in other units, and what it does to a coordinate.",
    examples=(
        (
            "tilelayout swizzle 'S<3,4,3>' --from-bits 8 --to-bits 16",
            "the 128-byte swizzle of hardware manuals, which count bytes, on elements of 16 bits",
        ),
        ("tilelayout swizzle 'Swizzle(3, 3, 3)' --at 137,153", "where coordinates go"),
        (
            "tilelayout swizzle 'S<1,0,1>' --then 'S<1,1,1>'",
            "one after the other: no swizzle, but a map of XORs",
        ),
        ("tilelayout swizzle 'S<2,3,3>' --equal 'XorMap((1, 2, 4, 8, 16, 32, 72, 144))'", "the same map?"),
    ),
)
@click.argument("swizzle")
@click.option("--from-bits", type=click.IntRange(1), help="What its parameters count: units of so many bits.")
@click.option("--to-bits", type=click.IntRange(1), help="What they should count.")
@click.option("--then", metavar="SWIZZLE", help="Another swizzle that comes after it.")
@click.option("--inverse", is_flag=True, help="The map that undoes it.")
@click.option("--at", metavar="X,Y,...", help="Where do these coordinates go?")
@click.option("--equal", metavar="SWIZZLE", help="Is it the same map as this one?  The exit code says it.")
def command(
    swizzle: str, from_bits: int | None, to_bits: int | None, then: str | None, inverse: bool, at: str | None,
    equal: str | None,
) -> int:  # fmt: skip
    """Rescale, invert and compose SWIZZLE, in this order, and write the result.

    SWIZZLE is "Swizzle(bits, base, shift)", CuTe's "S<bits,base,shift>", or "XorMap((images of the bits))".
    """
    from ..swizzle import XorMap

    if (from_bits is None) != (to_bits is None):
        raise click.UsageError("--from-bits and --to-bits go together")
    found: XorMap = XorMap.parse(swizzle)
    if from_bits is not None:
        found = found.in_units(from_bits, to_bits)
    if inverse:
        found = found.inverse()
    if then is not None:
        found = XorMap.parse(then).compose(found)
    if at is not None:
        for x in numbers_of(at, "--at"):
            click.echo(f"{x} -> {found.apply(x)}")
    elif equal is None:
        click.echo(repr(found))
    if equal is None:
        return YES
    other = XorMap.parse(equal)
    click.echo(_compared(found, other))
    return answer_code(found.equivalent(other))


def _compared(one: XorMap, two: XorMap) -> str:
    """Yes, or no with a coordinate that the two take to different places."""
    for bit in range(max(one.width, two.width)):
        x = 1 << bit
        if one.apply(x) != two.apply(x):
            return f"no: {x} goes to {one.apply(x)} and to {two.apply(x)}"
    return "yes"
