"""Operations under conditions: the one way in which `assuming=` is carried out and conditions are carried on.

The conditions of the operands and those of the caller hold together.  Symbols that they give a value are replaced in
the operands, the operation is called as always while the facts are known to every proof, and its results keep the
conditions.  What an operation does may not be decided here.
"""

from __future__ import annotations

from ..errors import LayoutError, nearest
from ..parts import as_extent, as_integer, is_symbolic, nonzero
from ..questions import Answer
from . import Conditional

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from ..expr.conditions import Conditions
    from ..parts import Integer, Parts


def under(operation: str, assuming: Any, ask: Callable[..., Any], *operands: Any) -> Any:
    """``ask(*operands)`` under the conditions of `assuming` and of the operands; `operation` is its name in errors."""
    from ..expr.facts import assumed

    known = _known(operation, [_conditions_of(operands), () if assuming is None else assuming])
    _check_symbols(operands, known, operation)
    operands = put_in(operands, known.replaced)
    with assumed(known.facts if known.given else None):
        found = ask(*operands)
        return _resting(found, known.given) if known.given else found


def born(operation: str, assuming: Any, made: Callable[[], Any]) -> Any:
    """What `made` makes while `assuming` is known, resting on it: a layout whose extents are positive only then."""
    from ..expr.facts import assumed

    known = _known(operation, assuming)
    with assumed(known.facts if known.given else None):
        layout = made()
        _check_symbols(layout, known, operation)
        return _resting(put_in(layout, known.replaced), known.given) if known.given else layout


def _known(operation: str, assuming: Any) -> Conditions:
    from ..expr.conditions import conditions, flattened

    try:
        return conditions(flattened(assuming))
    except LayoutError as error:
        raise LayoutError(operation, f"assuming: {error.rule}", error.remedy) from None


# --- operands and results -----------------------------------------------------------------------------


def _mapped(x: Any, change: Callable[[Any], Any]) -> Any:
    """Containers with `change` applied to what they hold."""
    kind: Any = x.__class__
    if issubclass(kind, tuple):
        parts: list[Any] = [change(y) for y in x]
        return (*parts,) if kind is tuple else kind(*parts)  # pyright: ignore[reportUnknownVariableType]
    if kind is list:
        return [change(y) for y in x]
    if kind is dict:
        return {change(k): change(v) for k, v in x.items()}
    return x


def put_in(x: Any, values: Mapping[Any, Any]) -> Any:
    """Operands as plain layouts and integers, with values for symbols."""
    if isinstance(x, Conditional):
        return x._made(*_replaced_parts(x._parts(), values))  # pyright: ignore[reportPrivateUsage]  # its own
    if is_symbolic(x):
        return _replaced(x, values)
    return _mapped(x, lambda y: put_in(y, values))


def _resting(x: Any, conditions: tuple[Any, ...]) -> Any:
    """Results with the conditions that they rest on, written as these allow."""
    if isinstance(x, Conditional):
        return x._resting(_changed(x._parts(), _tidied), conditions)  # pyright: ignore[reportPrivateUsage]  # its own
    if is_symbolic(x):
        return _tidied(x)
    if isinstance(x, Answer):
        return Answer(bool(x), x.witness, tuple(dict.fromkeys((*conditions, *x.conditions))))
    return _mapped(x, lambda y: _resting(y, conditions))


def _leaves(x: Any) -> Iterable[Any]:
    """The layouts and symbolic integers in operands."""
    if isinstance(x, dict):
        x = tuple(x.values())  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(x, Conditional) or is_symbolic(x):
        yield x
    elif isinstance(x, tuple | list):
        for y in x:  # pyright: ignore[reportUnknownVariableType]
            yield from _leaves(y)


def _conditions_of(operands: Any) -> list[Any]:
    return [x for leaf in _leaves(operands) if isinstance(leaf, Conditional) for x in leaf.conditions]


def _symbols(x: Any) -> dict[str, Any]:
    """Name -> symbol, of all that occur in operands, conditions of layouts included."""
    return {s.name: s for s in _every_symbol(x)}


def _every_symbol(x: Any) -> set[Any]:
    found: set[Any] = set()
    for leaf in _leaves(x):
        values: list[Any] = [leaf]
        if isinstance(leaf, Conditional):
            shard, replica, offset = leaf._parts()  # pyright: ignore[reportPrivateUsage]  # of its own class
            values = [*leaf.conditions, *offset.values(), *[n for it in (*shard, *replica) for n in it[:2]]]
        found.update([s for n in values if type(n) is not int for s in n.free_symbols])
    return found


def _check_symbols(operands: Any, known: Conditions, operation: str) -> None:
    """Refuse conditions on a symbol that isn't the operands' one of its name: they would say nothing."""
    for name, s in _symbols(operands).items():
        if not known.facts.speak_of(name, s):
            raise LayoutError(
                operation,
                f"assuming: {name} in the conditions is another symbol than in the operands, declared otherwise",
                "make the symbol once, and use it in both",
            )


def _replaced_parts(parts: Parts, values: Mapping[Any, Any]) -> Parts:
    return _changed(parts, lambda x: _replaced(x, values)) if values else parts


def _replaced(x: Any, values: Mapping[Any, Any]) -> Integer:
    from ..expr.adapter import replaced

    return x if type(x) is int else as_integer(replaced(x, values), "subs", "the value")


def _changed(parts: Parts, change: Callable[[Any], Any]) -> Parts:
    """Parts with `change` applied to each extent, stride and offset."""
    shard, replica, offset = parts
    return (
        tuple([(change(e), change(s), a) for e, s, a in shard]),
        tuple([(change(e), change(s), a) for e, s, a in replica]),
        nonzero({a: change(v) for a, v in offset.items()}),
    )


def _tidied(x: Any) -> Any:
    from ..expr.adapter import tidied

    return x if type(x) is int else tidied(x)


def hand_on(kind: type[Conditional], but: tuple[str, ...]) -> None:
    """Let each public method of a kind of layout that rests on conditions know them and hand them on."""
    for name in dir(kind):
        method = getattr(kind, name)
        if type(method) is type(hand_on) and name[0] != "_" and name not in but:
            setattr(kind, name, _handing_on(method))


def _handing_on(method: Any) -> Callable[..., Any]:
    name, takes = method.__name__, "assuming" in (method.__kwdefaults__ or {})

    def under(self: Conditional, *arguments: Any, **options: Any) -> Any:
        assuming = options.pop("assuming", None) if takes else None
        return self._under(name, assuming, *arguments, **options)  # pyright: ignore[reportPrivateUsage]  # its own

    under.__name__, under.__doc__ = name, method.__doc__
    return under


# --- values for symbols -------------------------------------------------------------------------------


def with_values(layout: Conditional, values: Mapping[Any, Any]) -> Any:
    """See `Conditional.subs`."""
    from ..expr.adapter import replaced

    given = _values(values, _every_symbol(layout))
    kept: list[Any] = []
    for x in layout.conditions:
        left = replaced(x, given)
        if left == False:  # noqa: E712 - sympy's false is no bool
            raise _violated(given, x)
        if left != True:  # noqa: E712
            kept.append(left)
    if kept:
        from ..expr.conditions import conditions, flattened

        try:
            known = conditions(flattened(kept))
        except LayoutError as error:
            raise _violated(given, *layout.conditions) from error
        kept = list(known.given)
        given = {s: replaced(x, known.replaced) for s, x in given.items()} | known.replaced
    parts = _replaced_parts(layout._parts(), given)  # pyright: ignore[reportPrivateUsage]  # its own
    for part in parts[:2]:
        for it in part:
            if type(it[0]) is int:
                as_extent(it[0], "subs", "an extent")
    if kept:
        return layout._resting(parts, tuple(kept))  # pyright: ignore[reportPrivateUsage]  # its own
    return layout._made(*parts)  # pyright: ignore[reportPrivateUsage]  # its own


_SIGNS = ("positive", "nonnegative", "negative", "nonpositive", "nonzero")
"""What a value must be known to be; of the other assumptions of a symbol it is enough that none is seen to break."""


def _plainness(kind: str) -> tuple[int, str]:
    return (_SIGNS.index(kind) if kind in _SIGNS else len(_SIGNS)), kind


def _values(values: Mapping[Any, Any], every: set[Any]) -> dict[Any, Any]:
    """Symbol -> sympy value, each checked against what its symbol was declared to be."""
    symbols = {s.name: s for s in every}
    if not hasattr(values, "items"):
        raise LayoutError("subs", f"values must be a mapping from symbols to integers, got {values!r}")
    given: dict[Any, Any] = {}
    for key, value in values.items():
        name = key if isinstance(key, str) else getattr(key, "name", str(key))
        called = [s for s in every if s.name == name]
        if len(called) > 1:
            raise LayoutError(
                "subs", f"{len(called)} different symbols of the layout are called {name}", "use one"
            )
        symbol = symbols.get(name)
        if symbol is None or not (isinstance(key, str) or key == symbol):
            hint = nearest(name, list(symbols)) if symbols else "it has none"
            if symbol is not None:
                hint = f"whose {name} is another symbol, declared otherwise; use that, or its name"
            raise LayoutError("subs", f"{key!s} is no symbol of the layout, {hint}")
        if symbol in given:
            raise LayoutError("subs", f"{name} is given twice, by its name and as a symbol", "give it once")
        number = as_integer(value, "subs", f"the value of {name}")
        exact = symbol * 0 + number  # a sympy object, without importing sympy here
        # The plainest words first: what isn't positive is also extended_nonpositive.
        kinds = symbol.assumptions0
        for kind in sorted(kinds, key=lambda kind: (not kinds[kind], *_plainness(kind))):
            holds = kinds[kind]
            seen = getattr(exact, f"is_{kind}")
            if seen is not holds and (seen is not None or (holds and kind in _SIGNS)):
                verb = "is not" if seen is not None else "is not known to be"
                rule = f"{name} = {number} {verb} {kind}" if holds else f"{name} = {number} is {kind}"
                raise LayoutError("subs", f"{rule}, and {name} is declared {kind}={holds}")
        given[symbol] = exact
    return given


def _violated(given: dict[Any, Any], *conditions: Any) -> LayoutError:
    values = ", ".join(f"{s} = {v}" for s, v in given.items())
    shown = " and ".join(map(str, conditions))
    return LayoutError("subs", f"{values} violates {shown}, which the layout rests on")
