"""Evaluation: where the element at a coordinate lives; on ints, numpy arrays and symbols.

The plain-integer path is the fast one and stands first.  Arrays are calculated in int64 where the largest
magnitude that can occur fits, otherwise as Python integers, so nothing wraps.
"""

from __future__ import annotations

import sys
from itertools import product as cartesian

from ..errors import LayoutError
from ..parts import as_integer, as_shape, is_symbolic, product
from .group import check_size
from .integers import symbols_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..axis import Axis
    from ..parts import Integer, Offset, RawIter

    Plan = tuple[int, tuple[tuple[Axis, int, tuple[tuple[int, int, int], ...]], ...], dict[Axis, int]]

INT64_MAX = 2**63 - 1

# More than this is asked for by mistake: refused before memory is.
TABLE_LIMIT = 2**32  # elements of an int64 table
OBJECT_LIMIT = 2**26  # elements of a table of Python integers
COPIES_LIMIT = 2**20


def plan(shard: tuple[RawIter, ...], offset: Offset) -> Plan:
    """What `apply` needs to know of a layout: its size, per axis ``(axis, offset, digits)``, and where index 0 is.

    A digit is ``(weight, extent, stride)`` and contributes ``flat // weight % extent * stride``.  A layout with
    anything symbolic has the plan ``(0, (), {})``.
    """
    weight = product(it[0] for it in shard)
    if type(weight) is not int or not all(type(v) is int for v in offset.values()):
        return 0, (), {}
    size = weight
    digits: dict[Axis, list[tuple[int, int, int]]] = {a: [] for a in offset}
    for e, s, a in shard:
        if type(e) is not int or type(s) is not int:
            return 0, (), {}
        weight //= e
        mine = digits.setdefault(a, [])
        if e != 1:
            mine.append((weight, e, s))
    start: dict[Axis, Any] = {a: offset.get(a, 0) for a in digits}
    return size, tuple([(a, start[a], tuple(ds)) for a, ds in digits.items()]), start


def apply(
    shard: tuple[RawIter, ...], offset: Offset, plan: Plan, coord: tuple[Any, ...], shape: Any
) -> dict[Axis, Any]:
    """Axis -> value at a coordinate, replica left out; `plan` is the layout's.

    With `shape`: the coordinate is in that shape.  Without: one integer is a flat index, several are one per
    shard iter.  Plain integers in range are recognized and calculated on the way; everything else, errors
    included, is left to the general case.
    """
    size, axes, start = plan
    if shape is None and len(coord) != 1:
        if size and len(coord) == len(shard):
            out: dict[Axis, Any] = start.copy()
            for c, (e, s, a) in zip(coord, shard, strict=True):
                if type(c) is not int or not 0 <= c < e:  # type: ignore[operator]  # the plan says that e is plain
                    break
                out[a] += c * s
            else:
                return out
        return _apply_general(shard, offset, plan, coord, shape)
    if shape is None:
        flat = coord[0]
        if type(flat) is not int or not 0 <= flat < size:
            return _apply_general(shard, offset, plan, coord, shape)
    else:
        if type(shape) not in (tuple, list) or len(shape) != len(coord):
            return _apply_general(shard, offset, plan, coord, shape)
        flat, total = 0, 1
        for c, n in zip(coord, shape, strict=True):
            if type(c) is not int or type(n) is not int or not 0 <= c < n:
                return _apply_general(shard, offset, plan, coord, shape)
            flat = flat * n + c
            total *= n
        if total != size:
            return _apply_general(shard, offset, plan, coord, shape)
    out = {}
    for a, value, digits in axes:
        for weight, e, s in digits:
            value += flat // weight % e * s
        out[a] = value
    return out


def _apply_general(
    shard: tuple[RawIter, ...], offset: Offset, plan: Plan, coord: tuple[Any, ...], shape: Any
) -> dict[Axis, Any]:
    dims = None if shape is None else as_shape(shape, "apply")
    if _has_symbols(coord, shard, offset, dims):
        return _apply_symbolic(shard, offset, coord, dims)
    numpy = sys.modules.get("numpy")
    if numpy is not None and any(isinstance(c, numpy.ndarray) for c in coord):
        return _apply_arrays(shard, offset, coord, dims)
    plain = tuple([as_integer(c, "apply", f"coordinate {d}") for d, c in enumerate(coord)])
    extents = _dimensions(shard, plain, dims, plan[0], per_iter=dims is None and len(plain) != 1)
    for d, (c, n) in enumerate(zip(plain, extents, strict=True)):
        if not 0 <= c < n:  # type: ignore[operator]  # nothing is symbolic here
            raise LayoutError("apply", f"coordinate {c} of dimension {d} is outside [0, {n})")
    return apply(shard, offset, plan, plain, dims)


def _has_symbols(
    coord: tuple[Any, ...], shard: tuple[RawIter, ...], offset: Offset, shape: tuple[Integer, ...] | None
) -> bool:
    values = [*coord, *(shape or ()), *offset.values(), *(x for it in shard for x in (it[0], it[1]))]
    return any(type(x) is not int and _is_index(x) for x in values)


def _is_index(x: Any) -> bool:
    from .. import expr

    return isinstance(x, expr.Expr) or (is_symbolic(x) and not x.is_Integer)


# --- arrays -------------------------------------------------------------------------------------


def _apply_arrays(
    shard: tuple[RawIter, ...], offset: Offset, coord: tuple[Any, ...], shape: tuple[Integer, ...] | None
) -> dict[Axis, Any]:
    import numpy as np

    exact = element_type(shard, offset)
    per_iter = shape is None and len(coord) != 1
    size = product(it[0] for it in shard)
    dims = _dimensions(shard, coord, shape, size, per_iter)
    given = [_index_array(c, d, n, exact) for d, (c, n) in enumerate(zip(coord, dims, strict=True))]
    try:
        arrays = np.broadcast_arrays(*given)
    except ValueError:
        shapes = ", ".join(str(array.shape) for array in given)
        raise LayoutError("apply", f"coordinates of shapes {shapes} do not broadcast together") from None
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
    for c, (e, s, a) in zip(digits, shard, strict=True):
        step = c * (s if e != 1 else 0)  # the stride of a unit extent may be too large for the type
        out[a] = out[a] + step if a in out else step
    return out


def _dimensions(
    shard: tuple[RawIter, ...],
    coord: tuple[Any, ...],
    shape: tuple[Integer, ...] | None,
    size: Integer,
    per_iter: bool,
) -> tuple[Any, ...]:
    """The extents that the entries of a coordinate run over; refuses another rank or size."""
    dims = tuple([it[0] for it in shard]) if per_iter else (size,) if shape is None else shape
    if len(coord) != len(dims):
        what = f"coordinate has {len(coord)} entries for the {len(dims)} dimensions of {dims}"
        if shape is not None or not coord:
            raise LayoutError("apply", what)
        entries = ", ".join([str(c) if type(c) is int else "..." for c in coord])
        places = ", ".join(["..."] * len(coord))
        raise LayoutError(
            "apply",
            f"{what}, the layout's iters",
            f"say which shape of {size} elements the coordinate is in: ({entries}, shape=({places}))",
        )
    if not per_iter:
        check_size(shard, dims, "apply")
    return dims


def _index_array(c: Any, d: int, extent: Any, exact: type) -> Any:
    import numpy as np

    array: Any = np.asarray(c)
    if array.dtype.kind == "O":
        array = array.copy()
        array.flat = [as_integer(x, "apply", f"entry of coordinate {d}") for x in array.flat]
    elif array.dtype.kind not in "iu":
        raise LayoutError("apply", f"coordinate {d} must be an array of integers, got dtype {array.dtype}")
    if array.size and not (0 <= int(array.min()) and int(array.max()) < extent):
        raise LayoutError(
            "apply", f"coordinate {d} has values from {array.min()} to {array.max()}, outside [0, {extent})"
        )
    return array.astype(exact)


def element_type(shard: tuple[RawIter, ...], offset: Offset) -> type:
    """int64 where every intermediate value fits, else object (Python integers)."""
    import numpy as np

    reach = product(it[0] for it in shard)
    reach = reach + sum(abs(v) for v in offset.values()) + sum((it[0] - 1) * abs(it[1]) for it in shard)
    return np.int64 if type(reach) is int and reach <= INT64_MAX else object


def table(shard: tuple[RawIter, ...], offset: Offset, shape: tuple[Integer, ...]) -> dict[Axis, Any]:
    """Axis -> array of `shape` with the value at each coordinate, replica left out."""
    import numpy as np

    check_size(shard, shape, "table")
    for n in (*shape, *offset.values(), *(x for it in shard for x in it[:2])):
        if type(n) is not int:
            raise LayoutError("table", f"{n} is symbolic", "substitute numbers first")
    exact = element_type(shard, offset)
    size, most = product(shape), TABLE_LIMIT if exact is np.int64 else OBJECT_LIMIT
    if size > most:  # type: ignore[operator]  # all plain by now
        raise LayoutError(
            "table", f"{size} elements are more than the {most} of the largest table", "slice first"
        )
    moving: list[tuple[Any, Any, Axis]] = [it for it in shard if it[0] != 1]
    # One pass over all elements, as the sum of two arrays that are short where the iters allow it.
    cut, inner = len(moving), 1
    while cut and inner * inner < size:  # type: ignore[operator]
        cut -= 1
        inner *= moving[cut][0]
    out: dict[Axis, Any] = {}
    for a in dict.fromkeys([*offset, *[it[2] for it in shard]]):
        high = _counted(moving[:cut], a, offset.get(a, 0), exact)
        low = _counted(moving[cut:], a, 0, exact)
        try:
            out[a] = (high[:, None] + low).reshape(shape)
        except ValueError:
            raise LayoutError(
                "table", f"numpy has no arrays of {len(shape)} dimensions", "pass a shape"
            ) from None
    return out


def _counted(iters: list[tuple[Any, Any, Axis]], axis: Axis, at: Any, exact: Any) -> Any:
    """The coordinate on `axis`, from `at` on, for every index that these iters count: an array of one dimension."""
    import numpy as np

    found: Any = np.full(1, at, exact)
    for e, s, a in iters:
        if a is not axis:
            s = 0
        steps: Any = (
            np.array([c * s for c in range(e)], exact) if exact is object else np.arange(e, dtype=exact) * s
        )
        grid: Any = found[:, None] + steps
        found = grid.ravel()
    return found


def with_room(
    values: dict[Axis, Any], shard: tuple[RawIter, ...], replica: tuple[RawIter, ...], offset: Offset
) -> dict[Axis, Any]:
    """Values of `apply` to which a replica can be added: arrays of Python integers where int64 would wrap."""
    for v in values.values():
        if hasattr(v, "astype"):
            if element_type(shard + replica, offset) is object:
                return {a: v.astype(object) if hasattr(v, "astype") else v for a, v in values.items()}
            break
    return values


def copies(replica: tuple[RawIter, ...]) -> list[dict[Axis, Integer]]:
    """Every displacement of a replica once, in the order of its coordinates: axis -> distance."""
    count: Integer = 1
    ranges: list[range] = []
    for e, s, _ in replica:
        if s == 0:
            e = 1
        if type(e) is not int:
            raise LayoutError("owners", f"the replica's extent {e} is symbolic", "substitute a number first")
        count *= e
        ranges.append(range(min(e, COPIES_LIMIT)))
    if count > COPIES_LIMIT:
        raise LayoutError(
            "owners", f"the replica's {count} copies are more than the {COPIES_LIMIT} that are listed"
        )
    found: dict[tuple[Any, ...], None] = {}
    for digits in cartesian(*ranges):
        step: dict[Axis, Integer] = {}
        for c, (_, s, a) in zip(digits, replica, strict=True):
            step[a] = step.get(a, 0) + c * s
        found[tuple(step.items())] = None
    return [dict(step) for step in found]


# --- symbols ------------------------------------------------------------------------------------


def _apply_symbolic(
    shard: tuple[RawIter, ...], offset: Offset, coord: tuple[Any, ...], shape: tuple[Integer, ...] | None
) -> dict[Axis, Any]:
    """Through `expr`: a coordinate's symbols get the range that its dimension gives them."""
    from .. import expr
    from ..expr import facts

    assumed = facts.known()
    given = [*coord, *(shape or ()), *offset.values(), *(x for it in shard for x in it[:2])]
    native = not any(is_symbolic(x) for x in given)  # only Exprs came in, so Exprs go out
    known = symbols_of(*[x for x in given if is_symbolic(x)])
    size = product(it[0] for it in shard)
    per_iter = shape is None and len(coord) != 1
    dims = _dimensions(shard, coord, shape, size, per_iter)

    def lift(x: Any, extent: Any = None) -> Any:
        if type(x) is int or isinstance(x, expr.Expr):
            return x
        if not is_symbolic(x):
            return as_integer(x, "apply", "coordinate")
        bounds = {}
        if extent is not None and x.is_Symbol and (assumed is None or x.name not in assumed.symbols):
            bounds = {x.name: (0, extent - 1 if type(extent) is int else None)}
        return expr.from_sympy(x, bounds, None if assumed is None else assumed.values)

    lifted = [lift(c, n) for c, n in zip(coord, dims, strict=True)]
    for d, (c, n) in enumerate(zip(lifted, dims, strict=True)):
        if type(c) is int and (c < 0 or (type(n) is int and c >= n)):
            raise LayoutError("apply", f"coordinate {c} of dimension {d} is outside [0, {n})")
        if assumed is not None and (assumed.at_least_zero(-1 - c) or assumed.at_least_zero(c - lift(n))):
            raise LayoutError(
                "apply", f"coordinate {coord[d]} of dimension {d} is outside [0, {n}) under the conditions"
            )
    digits: list[Any] = lifted
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
    if native:
        return out
    if assumed is not None:
        from ..expr.adapter import lowered

        return {a: lowered(v, *[x for x in given if is_symbolic(x)]) for a, v in out.items()}
    return {a: v if type(v) is int else expr.to_sympy(v, known) for a, v in out.items()}
