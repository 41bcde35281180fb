"""The derivation as a value, and how it comes about: the real operation, its steps, and the check that they agree."""

from __future__ import annotations

from contextlib import contextmanager
from importlib import import_module
from typing import NamedTuple

from ..algebra.integers import same
from ..conditional.carry import put_in
from ..errors import LayoutError, nearest
from ..parts import is_symbolic
from ..swizzle import XorMap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from typing import Any, Final

HOMES: Final[dict[str, str]] = {
    "apply": "evaluation",
    "owners": "evaluation",
    "canonicalize": "iters",
    "group": "iters",
    "permute_by_groups": "iters",
    "permute_dims": "iters",
    "slice": "boxes",
    "tile": "boxes",
    "tile_to": "boxes",
    "pack": "widths",
    "unpack": "widths",
    "complement": "places",
    "compose": "composition",
    "inverse": "places",
}
"""Operation -> the module of this room that has a function of that name for it."""

SWIZZLED: Final = (
    "apply", "owners", "canonicalize", "group", "permute_by_groups", "permute_dims", "slice", "tile", "tile_to", "pack",
    "unpack", "compose",
)  # fmt: skip
"""The operations of swizzled layouts that have one in the module `swizzled`."""


class Step(NamedTuple):
    """One step: what is done, and its lines with values."""

    title: str
    lines: tuple[str, ...]


class Derivation(NamedTuple):
    """The steps from an operation's operands to its result; ``str(derivation)`` is the text.

    Attributes:
        call: the layout and the operation with its arguments.
        steps: in order.
        result: what the operation returns; None where it refuses.
        error: the `LayoutError` that it raises; None where it returns.
    """

    call: str
    steps: tuple[Step, ...]
    result: Any
    error: LayoutError | None

    @property
    def conclusion(self) -> str:
        """The last line, without its arrow: the result, or the error."""
        return repr(self.result) if self.error is None else f"{type(self.error).__name__}: {self.error}"

    def __str__(self) -> str:
        out = [self.call]
        for k, step in enumerate(self.steps, 1):
            out.append(f"{k}. {step.title}")
            out += [f"     {line}" for line in step.lines]
        return "\n".join([*out, f"=> {self.conclusion}"])

    def __repr__(self) -> str:
        return str(self)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/plain": str(self)}


class Board:
    """What the steps are written on."""

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def write(self, title: str, *lines: str) -> None:
        self.steps.append(Step(title, lines))


class Unexplained(Exception):
    """Raised by steps that can't go on to a result of their own; they stand, and the operation's result follows."""


def explain(layout: Any, operation: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> Derivation:
    """The derivation of ``layout.operation(*arguments, **options)``.

    The operation is carried out first.  Its steps are then derived on their own, from the results of the functions
    that it is made of; where they lead elsewhere, no derivation is returned.
    """
    swizzled = isinstance(getattr(layout, "swizzle", None), XorMap)
    homes: dict[str, str] = dict.fromkeys(SWIZZLED, "swizzled") if swizzled else HOMES
    if str(operation) not in homes:
        raise LayoutError(
            "explain", f"no derivation of {operation!r}, {nearest(str(operation), list(homes))}"
        )
    steps = getattr(import_module(f"{__package__}.{homes[operation]}"), operation)
    result: Any = None
    error: LayoutError | None = None
    try:
        result = getattr(layout, operation)(*arguments, **options)
    except LayoutError as refused:
        error = refused.with_traceback(None)
    board = Board()
    given = [*map(_text, arguments), *(f"{name}={_text(value)}" for name, value in options.items())]
    call = f"{layout}  .{operation}({', '.join(given)})"
    resting = options.get("assuming"), getattr(layout, "conditions", ())
    options = {name: value for name, value in options.items() if name != "assuming"}
    try:
        with _under(board, *resting) as values:
            if values is not None:
                layout, arguments, options = put_in((layout, arguments, options), values)
            derived = steps(board, layout, *arguments, **options)
    except Unexplained:
        pass
    except LayoutError as refused:
        if refused.operation == "explain":
            raise
        if error is None and resting == (None, ()):  # else it may rest on what the steps can't use
            raise _disagree(call, str(refused), repr(result)) from refused
    else:
        if error is None and not agree(derived, result):
            raise _disagree(call, repr(derived), repr(result))
    return Derivation(call, tuple(board.steps), result, error)


@contextmanager
def _under(board: Board, assuming: Any, conditions: tuple[Any, ...]) -> Generator[Mapping[Any, Any] | None]:
    """The steps may use what the operation is told to assume; it is their first line.

    Gives the values of symbols that it fixes; None where nothing is assumed.
    """
    if assuming is None and not conditions:
        yield None
        return
    from ..expr.conditions import conditions as known_of
    from ..expr.conditions import flattened
    from ..expr.facts import assumed

    known = known_of(flattened([conditions, () if assuming is None else assuming]))
    board.write("what is assumed", *map(str, known.given))
    with assumed(known.facts if known.given else None):
        yield known.replaced


def agree(derived: Any, result: Any) -> bool:
    """Whether the steps led to the result; symbolic values may differ in form, not in value."""
    kind = derived.__class__
    if kind is dict:
        return derived.keys() == result.keys() and all(agree(derived[a], result[a]) for a in derived)
    if kind is tuple:
        return len(derived) == len(result) and all(map(agree, derived, result))
    if derived == result:
        return True
    symbolic = is_symbolic(derived) or is_symbolic(result)
    return symbolic and same(derived, result)


def _disagree(call: str, derived: str, result: str) -> LayoutError:
    return LayoutError(
        "explain",
        f"a mistake in the derivation of {call}: it gives {derived}, the operation {result}",
        "report it",
    )


def _text(x: Any) -> str:
    try:
        return str(x) if hasattr(x, "shard") else repr(x)
    except ValueError:  # Python writes no more
        raise LayoutError("explain", "an operand has integers of thousands of digits") from None
