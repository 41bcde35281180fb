"""What rests on conditions: the methods that layouts of every kind have for it.

All that is done about conditions is in `carry`, which is loaded when there are some.
"""

from __future__ import annotations

from ..parts import Parted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class Conditional(Parted):
    """What holds where: conditions on symbols, and numbers for them."""

    __slots__ = ()

    @property
    def conditions(self) -> tuple[Any, ...]:
        """The sympy conditions that the layout rests on: those passed as `assuming=` on the way to it.

        For values of the symbols that satisfy them it is what it says; for others it means nothing.  They don't count
        in ``==`` and `hash`.

        >>> from sympy import Eq, Mod, Symbol
        >>> n = Symbol("n", integer=True, positive=True)
        >>> rows = TileLayout(S[n]).group((n // 16, 16), assuming=Eq(Mod(n, 16), 0))[0]
        >>> rows, rows.conditions
        (TileLayout(S[(floor(n/16), 16):(16, 1)]), (Eq(Mod(n, 16), 0),))
        """
        return ()

    def subs(self, values: Mapping[Any, Any]) -> Any:
        """The layout with values for symbols: a mapping from symbols, or their names, to integers or expressions.

        Post-condition: the same function at those values.  Conditions that they decide are dropped, the others kept.
        Errors: LayoutError for values that a symbol's assumptions or a condition of the layout exclude, and for
        symbols that don't occur.

        >>> from sympy import Eq, Mod, Symbol
        >>> n = Symbol("n", integer=True, positive=True)
        >>> rows = TileLayout(S[n]).group((n // 16, 16), assuming=Eq(Mod(n, 16), 0))[0]
        >>> rows.subs({n: 48})
        TileLayout(S[(3, 16):(16, 1)])
        >>> rows.subs({"n": 40})
        Traceback (most recent call last):
        tilelayout.errors.LayoutError: subs: n = 40 violates Eq(Mod(n, 16), 0), which the layout rests on
        """
        from .carry import with_values

        return with_values(self, values)

    def _under(self, operation: str, assuming: Any, *arguments: Any, **options: Any) -> Any:
        """``self.<operation>(*arguments, **options)`` under the conditions of `assuming` and of the operands."""
        from .carry import under

        def ask(layout: Any, arguments: Any, options: Any) -> Any:
            return getattr(layout, operation)(*arguments, **options)

        return under(operation, assuming, ask, self, arguments, options)
