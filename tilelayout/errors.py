"""The errors of the layout algebra.

An operation returns a value that satisfies its post-condition at every coordinate, or raises one of
these.  Nothing else belongs here: a message is composed where the rule is known, by `refuse`.
"""

from __future__ import annotations


class LayoutError(ValueError):
    """An operation, or a value at its birth, is refused.

    Attributes:
        operation: what was asked for, e.g. ``"slice"``.
        rule: the rule that an operand breaks, with the offending iter or dimension.
        remedy: what would make it valid, or None when there is nothing to suggest.
    """

    operation: str
    rule: str
    remedy: str | None

    def __init__(self, operation: str, rule: str = "", remedy: str | None = None) -> None:
        self.operation, self.rule, self.remedy = operation, rule, remedy
        text = f"{operation}: {rule}" if rule else operation
        super().__init__(f"{text} (remedy: {remedy})" if remedy else text)

    def __reduce__(self) -> tuple[type[LayoutError], tuple[str, str, str | None]]:
        return type(self), (self.operation, self.rule, self.remedy)


class Undecided(LayoutError):
    """The question has an answer, but it was not found within the stated budget."""


def nearest(name: str, known: list[str]) -> str:
    """The end of a message about an unknown `name`: the closest known one, or the whole list.

    >>> nearest("lanid", ["laneid", "warpid"])
    "did you mean 'laneid'?"
    >>> nearest("zzz", ["laneid", "warpid"])
    'known: laneid, warpid'
    """
    from difflib import get_close_matches  # only a failing call pays for it

    plain = {str(k).lower(): str(k) for k in known}  # capitals are the least of a typo
    close = get_close_matches(name.lower(), list(plain), n=1, cutoff=0.5)
    return f"did you mean {plain[close[0]]!r}?" if close else "known: " + ", ".join(known)
