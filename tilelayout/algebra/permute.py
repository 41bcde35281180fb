"""Reordering iters, singly or by groups: the logical dimensions change places, the owners stay."""

from __future__ import annotations

from ..errors import LayoutError
from ..parts import as_entries, as_integer, check_permutation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ..parts import RawIter


def permute_dims(shard: tuple[RawIter, ...], perm: Sequence[Any]) -> tuple[RawIter, ...]:
    """Post-condition: coordinate ``c[perm[0]], c[perm[1]], ...`` of the result is owned by whom `c` was,
    coordinates counted per iter.
    """
    order = check_permutation(perm, len(shard), "permute_dims", "iters")
    return tuple([shard[i] for i in order])


def permute_by_groups(
    shard: tuple[RawIter, ...], seps: Sequence[Any], perm: Sequence[Any]
) -> tuple[RawIter, ...]:
    """The same for runs of iters ``shard[seps[g]:seps[g + 1]]``, as `group` delimits them."""
    cuts = check_seps(seps, len(shard), "permute_by_groups")
    order = check_permutation(perm, len(cuts) - 1, "permute_by_groups", "groups")
    return tuple([it for g in order for it in shard[cuts[g] : cuts[g + 1]]])


def check_seps(seps: Sequence[Any], count: int, operation: str) -> tuple[int, ...]:
    """`seps` as rising separators from 0 to `count`."""
    cuts = tuple([as_integer(s, operation, "separator") for s in as_entries(seps, operation, "separators")])
    plain = all(type(s) is int for s in cuts)
    if not plain or not cuts or cuts[0] != 0 or cuts[-1] != count or list(cuts) != sorted(cuts):  # type: ignore[type-var]
        raise LayoutError(
            operation, f"separators {list(cuts)} must rise from 0 to the {count} iters of the shard"
        )
    return cuts  # type: ignore[return-value]  # bounded by ints, hence ints
