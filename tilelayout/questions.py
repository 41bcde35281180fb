"""Questions about a layout, as the methods of `TileLayout`: is it injective, is it that one, who is there?

An answer is a value that says yes or no and shows why not.  The work is done in `algebra`.
"""

from __future__ import annotations

from .algebra.later import Later
from .axis import axis as known_axis
from .errors import LayoutError
from .parts import Parted, as_integer, as_shape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    import numpy.typing as npt

    from .algebra import equivalent as _equivalent
    from .algebra import evaluate as _evaluate
    from .algebra import group as _group
    from .algebra import holders as _holders
    from .algebra import injective as _injective
    from .axis import Axis
else:
    _equivalent, _evaluate, _group = Later("equivalent"), Later("evaluate"), Later("group")
    _holders, _injective = Later("holders"), Later("injective")


class Answer:
    """Yes or no (its truth value), and where the answer is no, a witness of it.

    Attributes:
        witness: what shows that the answer is no; None where it is yes.
        conditions: the sympy conditions that the answer rests on (see `TileLayout.conditions`); mostly none.

    Answers are equal when they say the same, and equal to the bool that they are.
    """

    __slots__ = ("_yes", "conditions", "witness")

    def __init__(self, yes: bool, witness: Any = None, conditions: tuple[Any, ...] = ()) -> None:
        self._yes = yes
        self.witness = witness
        self.conditions = conditions

    def __bool__(self) -> bool:
        return self._yes

    def __eq__(self, other: object) -> bool:
        if isinstance(other, (bool, Answer)):
            return self._yes is bool(other)
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self._yes)

    def __repr__(self) -> str:
        return "yes" if self._yes else f"no, see {self.witness}"


_YES = Answer(True)


class Comparing:
    """A layout of another kind, which compares itself with a `TileLayout`."""

    __slots__ = ()

    if TYPE_CHECKING:

        def equivalent(self, other: Any, shape: Sequence[Any] | int | None = None) -> Answer: ...


class Questions(Parted):
    """What can be asked of a layout."""

    __slots__ = ()

    if TYPE_CHECKING:

        def apply(
            self, *coord: Any, shape: Sequence[Any] | int | None = None, assuming: Any = None
        ) -> dict[Axis, Any]: ...

    def is_injective(self, *, assuming: Any = None) -> Answer:
        """Whether no place holds two elements, all axes taken together.

        Copies of one element (the replica) may share a place.  Decided by arithmetic on the strides, not by
        enumeration: at any size where strides nest, and for most that don't.
        Witness: two flat indices, the smaller first, that have a place in common.
        Errors: Undecided where strides interleave so that it is a long search; LayoutError where it depends on symbols.

        >>> TileLayout(S[(2, 3) : (3, 2)]).is_injective()
        yes
        >>> TileLayout(S[(3, 2) : (1, 2)]).is_injective()
        no, see (1, 4)
        """
        if assuming is not None:
            return self._under("is_injective", assuming)
        found = _injective.collision(self._shard, self._replica, "is_injective")
        return _YES if found is None else Answer(False, found)

    def is_surjective(self, *, assuming: Any = None) -> Answer:
        """Whether every place of the box that the layout spans is held: on each axis, from its least to its greatest
        coordinate.

        Witness: a mapping axis -> coordinate inside the box that no element has.
        Errors: LayoutError where it depends on symbols.

        >>> TileLayout(S[(8, 4) : (4 @ laneid, 1)]).is_surjective()
        no, see {laneid: 1, m: 0}
        >>> TileLayout(S[(2, 3) : (3, 2)]).is_surjective().witness
        {m: 1}
        """
        if assuming is not None:
            return self._under("is_surjective", assuming)
        found = _injective.gap(self._shard, self._replica, self._offset, "is_surjective")
        return _YES if found is None else Answer(False, found)

    def is_bijective(self, *, assuming: Any = None) -> Answer:
        """Whether every place of the spanned box holds exactly one element: injective and surjective.

        Witness: that of the question that fails, `is_injective` first.

        >>> bool(TileLayout(S[(8, 4) : (1 @ laneid, 1)]).is_bijective())
        True
        """
        if assuming is not None:
            return self._under("is_bijective", assuming)
        found = _injective.collision(self._shard, self._replica, "is_bijective")
        if found is not None:
            return Answer(False, found)
        missed = _injective.gap(self._shard, self._replica, self._offset, "is_bijective")
        return _YES if missed is None else Answer(False, missed)

    def equivalent(
        self, other: Any, shape: Sequence[Any] | int | None = None, *, assuming: Any = None
    ) -> Answer:
        """Whether `other`, swizzled or not, is the same function: the same set of owners at every index.

        Witness: a flat index at which the owners differ, or its coordinate in `shape`, which must have the size of
        both.  Without a shape, layouts of different sizes differ at the first index that only one of them has.
        Errors: Undecided where replicas overlap in ways too many to list; LayoutError where it depends on symbols.

        >>> TileLayout(S[(2, 3) : (3, 1)]).equivalent(TileLayout(S[6:1]))
        yes
        >>> TileLayout(S[8, 4]).equivalent(TileLayout(S[(8, 4) : (4, 2)]), shape=(8, 4))
        no, see (0, 1)
        """
        if assuming is not None:
            return self._under("equivalent", assuming, other, shape)
        if not isinstance(other, Questions):
            if isinstance(other, Comparing):
                return other.equivalent(self, shape)  # the same question, with the same witness
            raise LayoutError("equivalent", f"other must be a layout, got {type(other).__name__} {other!r}")
        if other._rests:
            return self._under("equivalent", None, other, shape)
        one, two = self._parts(), other._parts()
        if shape is None:
            found = _equivalent.difference(one, two)
            return _YES if found is None else Answer(False, found)
        dims = as_shape(shape, "equivalent")
        for parts in (one, two):
            _group.check_size(parts[0], dims, "equivalent")
        found = _equivalent.difference(one, two)
        return _YES if found is None else Answer(False, _equivalent.in_shape(found, dims))

    def owners(
        self, *coord: Any, shape: Sequence[Any] | int | None = None, assuming: Any = None
    ) -> tuple[dict[Axis, Any], ...]:
        """Every place that holds the element: one mapping per choice of replica coordinate.

        Places that several replica coordinates reach are listed once.

        >>> TileLayout(S[8:1] + R[2 : 4 @ warpid]).owners(3)
        ({m: 3, warpid: 0}, {m: 3, warpid: 4})
        """
        if assuming is not None:
            return self._under("owners", assuming, *coord, shape=shape)
        base = self.apply(*coord, shape=shape)
        if not self._replica:
            return (base,)
        base = _evaluate.with_room(base, self._shard, self._replica, self._offset)
        out: list[dict[Axis, Any]] = []
        for step in _evaluate.copies(self._replica):
            place = dict(base)
            for a, distance in step.items():
                place[a] = place.get(a, 0) + distance
            out.append(place)
        return tuple(out)

    def table(self, shape: Sequence[Any] | int | None = None) -> dict[Axis, npt.NDArray[Any]]:
        """The whole map: axis -> array of `shape` (default: the shard's extents), replica left out.

        Arrays are int64 where all values fit, else of Python integers.
        """
        dims = tuple([it[0] for it in self._shard]) if shape is None else as_shape(shape, "table")
        return _evaluate.table(self._shard, self._offset, dims)

    def elements(self, place: Mapping[Any, Any]) -> tuple[int, ...]:
        """Who sits there: every flat index that has an owner at `place`, rising.

        `place` maps axes to coordinates.  An axis that it leaves out is at 0, as everywhere; ``...`` stands for any
        coordinate.  Found from the strides, not by going through the elements.
        Errors: Undecided where strides interleave so that it is a long search; LayoutError for symbols, or where more
        than a million elements are there.

        >>> D = TileLayout(S[(2, 8, 4, 2) : (2, 4 @ laneid, 1 @ laneid, 1)])
        >>> D.elements({"laneid": 5, "m": 3})
        (75,)
        >>> D.elements({laneid: 5, m: ...})
        (10, 11, 74, 75)
        """
        if not hasattr(place, "items"):
            raise LayoutError("elements", f"place must be a mapping axis -> coordinate, got {place!r}")
        at: dict[Axis, Any] = {}
        for name, value in place.items():
            known = known_axis(name)
            at[known] = None if value is ... else as_integer(value, "elements", f"coordinate on {known}")
        return _holders.elements_at(self._shard, self._replica, self._offset, at, "elements")
