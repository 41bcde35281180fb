"""Evaluation: where the element at a coordinate lives; on ints, numpy arrays and symbols.

The plain-integer path is the fast one and stands first.  Arrays are calculated in int64 where the largest
magnitude that can occur fits, otherwise as Python integers, so nothing wraps.
"""

from __future__ import annotations

import sys

from ..errors import LayoutError
from ..parts import Iter, as_integer, is_symbolic, product
from .group import check_size
from .integers import symbols_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..axis import Axis
    from ..parts import Integer, Offset

INT64_MAX = 2**63 - 1


def apply(
    shard: tuple[Iter, ...], offset: Offset, size: int, coord: tuple[Any, ...], shape: tuple[Integer, ...] | None
) -> dict[Axis, Any]:
    """Axis -> value at a coordinate, replica left out.

    With `shape`: the coordinate is in that shape.  Without: one integer is a flat index, several are one
    per shard iter.  `size` is the number of elements when all of the layout is plain integers, else 0.
    """
    for c in coord:
        if type(c) is not int:
            return _apply_general(shard, offset, coord, shape)
    if not size:
        return _apply_general(shard, offset, coord, shape)
    out: dict[Axis, Any] = offset.copy()
    if shape is None and len(coord) != 1:
        check_coordinate(coord, tuple([it[0] for it in shard]), "iters")
        for c, (_, s, a) in zip(coord, shard, strict=True):
            out[a] = out.get(a, 0) + c * s
        return out
    flat = flatten(coord, (size,) if shape is None else shape, size)
    for e, s, a in reversed(shard):
        flat, digit = divmod(flat, e)
        out[a] = out.get(a, 0) + digit * s
    return out


def flatten(coord: tuple[int, ...], shape: tuple[Any, ...], size: int) -> int:
    """Row-major flat index of a checked coordinate of a shape of that size."""
    check_coordinate(coord, shape, "dimensions")
    flat, total = 0, 1
    for c, n in zip(coord, shape, strict=True):
        flat = flat * n + c
        total *= n
    if total != size:
        raise LayoutError("apply", f"shape {shape} has {total} elements, the layout has {size}")
    return flat


def check_coordinate(coord: tuple[Any, ...], shape: tuple[Any, ...], what: str) -> None:
    """Refuse a coordinate of another rank or outside ``[0, extent)``."""
    if len(coord) != len(shape):
        raise LayoutError("apply", f"coordinate {coord} has {len(coord)} entries for the {len(shape)} {what} {shape}")
    for d, (c, n) in enumerate(zip(coord, shape, strict=True)):
        if not 0 <= c < n:
            raise LayoutError("apply", f"coordinate {c} of dimension {d} is outside [0, {n})")


def _apply_general(
    shard: tuple[Iter, ...], offset: Offset, coord: tuple[Any, ...], shape: tuple[Integer, ...] | None
) -> dict[Axis, Any]:
    if _has_symbols(coord, shard, offset, shape):
        return _apply_symbolic(shard, offset, coord, shape)
    numpy = sys.modules.get("numpy")
    if numpy is not None and any(isinstance(c, numpy.ndarray) for c in coord):
        return _apply_arrays(shard, offset, coord, shape)
    plain = tuple(as_integer(c, "apply", f"coordinate {d}") for d, c in enumerate(coord))
    return apply(shard, offset, int(product(it[0] for it in shard)), plain, shape)


def _has_symbols(
    coord: tuple[Any, ...], shard: tuple[Iter, ...], offset: Offset, shape: tuple[Integer, ...] | None
) -> bool:
    values = [*coord, *(shape or ()), *offset.values(), *(x for it in shard for x in (it[0], it[1]))]
    return any(type(x) is not int and _is_index(x) for x in values)


def _is_index(x: Any) -> bool:
    from .. import expr

    return isinstance(x, expr.Expr) or is_symbolic(x) and not x.is_Integer


# --- arrays -------------------------------------------------------------------------------------


def _apply_arrays(
    shard: tuple[Iter, ...], offset: Offset, coord: tuple[Any, ...], shape: tuple[Integer, ...] | None
) -> dict[Axis, Any]:
    import numpy as np

    exact = element_type(shard, offset)
    per_iter = shape is None and len(coord) != 1
    size = product(it[0] for it in shard)
    dims: tuple[Any, ...] = tuple([it[0] for it in shard]) if per_iter else shape or (size,)
    if len(coord) != len(dims):
        raise LayoutError("apply", f"coordinate has {len(coord)} entries for the {len(dims)} dimensions of {dims}")
    if not per_iter:
        check_size(shard, dims, "apply")
    arrays = np.broadcast_arrays(*[_index_array(c, d, n, exact) for d, (c, n) in enumerate(zip(coord, dims, strict=True))])
    digits: list[Any] = list(arrays)
    if not per_iter:
        flat: Any = 0
        for c, n in zip(arrays, dims, strict=True):
            flat = flat * n + c
        digits = []
        for it in reversed(shard):
            digits.append(flat % it[0])
            flat = flat // it[0]
        digits.reverse()
    out: dict[Axis, Any] = {a: np.full(arrays[0].shape, v, exact) for a, v in offset.items()}
    for c, (_, s, a) in zip(digits, shard, strict=True):
        out[a] = out[a] + c * s if a in out else c * s
    return out


def _index_array(c: Any, d: int, extent: Any, exact: type) -> Any:
    import numpy as np

    array = np.asarray(c)
    if array.dtype.kind not in "iu" and not (array.dtype.kind == "O" and all(type(x) is int for x in array.flat)):
        raise LayoutError("apply", f"coordinate {d} must be an array of integers, got dtype {array.dtype}")
    if array.size and not (0 <= int(array.min()) and int(array.max()) < extent):
        raise LayoutError(
            "apply", f"coordinate {d} has values from {array.min()} to {array.max()}, outside [0, {extent})"
        )
    return array.astype(exact)


def element_type(shard: tuple[Iter, ...], offset: Offset) -> type:
    """int64 where every intermediate value fits, else object (Python integers)."""
    import numpy as np

    reach = product(it[0] for it in shard)
    reach = reach + sum(abs(v) for v in offset.values()) + sum((it[0] - 1) * abs(it[1]) for it in shard)
    return np.int64 if type(reach) is int and reach <= INT64_MAX else object


def table(shard: tuple[Iter, ...], offset: Offset, shape: tuple[Integer, ...]) -> dict[Axis, Any]:
    """Axis -> array of `shape` with the value at each coordinate, replica left out."""
    import numpy as np

    check_size(shard, shape, "table")
    for n in (*shape, *offset.values(), *(x for it in shard for x in it[:2])):
        if type(n) is not int:
            raise LayoutError("table", f"{n} is symbolic", "substitute numbers first")
    exact = element_type(shard, offset)
    out: dict[Axis, Any] = {}
    for a in [*offset, *[it[2] for it in shard if it[2] not in offset]]:
        if a in out:
            continue
        total = np.full((1,) * max(len(shard), 1), offset.get(a, 0), exact)
        for d, (e, s, axis) in enumerate(shard):
            if axis is a:
                steps = np.array([c * s for c in range(e)], exact) if exact is object else np.arange(e, dtype=exact) * s
                total = total + steps.reshape([-1 if k == d else 1 for k in range(len(shard))])
        extents = [it[0] for it in shard] or [1]
        out[a] = np.ascontiguousarray(np.broadcast_to(total, extents)).reshape(shape)
    return out


# --- symbols ------------------------------------------------------------------------------------


def _apply_symbolic(
    shard: tuple[Iter, ...], offset: Offset, coord: tuple[Any, ...], shape: tuple[Integer, ...] | None
) -> dict[Axis, Any]:
    """Through `expr`: a coordinate's symbols get the range that its dimension gives them."""
    from .. import expr

    given = [*coord, *(shape or ()), *offset.values(), *(x for it in shard for x in it[:2])]
    native = not any(is_symbolic(x) for x in given)  # only Exprs came in, so Exprs go out
    known = symbols_of(*[x for x in given if is_symbolic(x)])
    size = product(it[0] for it in shard)
    per_iter = shape is None and len(coord) != 1
    dims: tuple[Any, ...] = tuple([it[0] for it in shard]) if per_iter else shape or (size,)
    if len(coord) != len(dims):
        raise LayoutError("apply", f"coordinate {coord} has {len(coord)} entries for the {len(dims)} dimensions of {dims}")
    if not per_iter:
        check_size(shard, dims, "apply")

    def lift(x: Any, extent: Any = None) -> Any:
        if type(x) is int or isinstance(x, expr.Expr):
            return x
        if not is_symbolic(x):
            return as_integer(x, "apply", "coordinate")
        bounds = {}
        if extent is not None and x.is_Symbol:
            bounds = {x.name: (0, extent - 1 if type(extent) is int else None)}
        return expr.from_sympy(x, bounds)

    lifted = [lift(c, n) for c, n in zip(coord, dims, strict=True)]
    for d, (c, n) in enumerate(zip(lifted, dims, strict=True)):
        if type(c) is int and (c < 0 or type(n) is int and c >= n):
            raise LayoutError("apply", f"coordinate {c} of dimension {d} is outside [0, {n})")
    digits = lifted
    if not per_iter:
        flat: Any = 0
        for c, n in zip(lifted, dims, strict=True):
            flat = flat * lift(n) + c
        digits = []
        for i, it in enumerate(reversed(shard)):
            e = lift(it[0])
            # The coordinate is in range, so the outermost digit is what is left.
            digits.append(flat % e if i + 1 < len(shard) else flat)
            flat = flat // e
        digits.reverse()
    out: dict[Axis, Any] = {a: lift(v) for a, v in offset.items()}
    for c, (_, s, a) in zip(digits, shard, strict=True):
        out[a] = out.get(a, 0) + c * lift(s)
    return out if native else {a: v if type(v) is int else expr.to_sympy(v, known) for a, v in out.items()}
