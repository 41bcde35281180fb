"""Bounded integer index expressions: the language of addresses and of emitted code.

    >>> from tilelayout.expr import Var, evaluate, render
    >>> lane, w = Var("lane", 0, 31), Var("w", 0, 3)
    >>> address = lane // 4 * 64 + lane % 4 * 2 + 512 * w
    >>> address, address.lo, address.hi
    (512*w + 64*(lane // 4) + 2*(lane % 4), 0, 1990)
    >>> address % 64, address // 512, address ^ 1
    (2*(lane % 4), w, 512*w + 64*(lane // 4) + 2*(lane % 4) + 1)
    >>> render(address, "c")
    '512*w + 64*(lane >> 2) + 2*(lane & 3)'

An expression is simplified once, when an operator builds it, by rules made for addresses: polynomials are
collected, ``//`` and ``%`` split where nothing carries and meet again in sums, disjoint bits add.  There is
no search and no `sympy.simplify`.  Arithmetic is exact, and what folds to a constant is an int.

Nothing of layouts may enter here, and nothing of a target but its spelling (`render`).  sympy is an adapter:
`from_sympy` and `to_sympy` alone import it.
"""

from .core import Expr, Index, Var, bounds
from .nodes import Bitwise, Division, FloorDiv, Mod, Polynomial, Shift, variables
from .queries import divide_exact, equal, evaluate, is_zero, less, substitute
from .text import render

# The modules with rules enter them when they load; `queries` has loaded the others.
from . import bits as bits  # isort: skip

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .adapter import from_sympy, to_sympy

__all__ = [
    "Bitwise", "Division", "Expr", "FloorDiv", "Index", "Mod", "Polynomial", "Shift", "Var", "bounds",
    "divide_exact", "equal", "evaluate", "from_sympy", "is_zero", "less", "render", "substitute", "to_sympy",
    "variables",
]  # fmt: skip


def __getattr__(name: str) -> object:
    if name in ("from_sympy", "to_sympy"):
        from . import adapter

        globals()[name] = found = getattr(adapter, name)
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
