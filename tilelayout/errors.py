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
        rule, remedy = shortened(rule), remedy and shortened(remedy)
        self.operation, self.rule, self.remedy = operation, rule, remedy
        text = f"{operation}: {rule}" if rule else operation
        super().__init__(f"{text} (remedy: {remedy})" if remedy else text)

    def __reduce__(self) -> tuple[type[LayoutError], tuple[str, str, str | None]]:
        return type(self), (self.operation, self.rule, self.remedy)


LONGEST = 4000
"""Characters of a rule that are shown: operands may have any number of entries."""


def shortened(text: str) -> str:
    """`text`, its middle left out where it is longer than anybody reads."""
    if len(text) <= LONGEST + 100:  # the length of what was shortened before
        return text
    half = LONGEST // 2
    return f"{text[:half]} ... ({len(text) - 2 * half} characters left out) ... {text[-half:]}"


def shown(n: object) -> str:
    """The text of an integer, or how long it is where Python doesn't write it out."""
    try:
        return str(n)
    except ValueError:
        return (
            f"a number of {n.bit_length()} bits" if isinstance(n, int) else "a number of thousands of digits"
        )


class Undecided(LayoutError):
    """The question has an answer, but it was not found within the stated budget."""


def nearest(name: str, known: list[str]) -> str:
    """The end of a message about an unknown `name`: the closest known one, or the whole list.

    Close means that more than half of the name's letters are found in order, and half of both names' together.

    >>> nearest("lanid", ["laneid", "warpid"])
    "did you mean 'laneid'?"
    >>> nearest("zzz", ["laneid", "warpid"])
    'known: laneid, warpid'
    >>> nearest("foo", ["F", "m"])
    'known: F, m'
    """
    from difflib import SequenceMatcher  # only a failing call pays for it

    plain = {str(k).lower(): str(k) for k in known}  # capitals are the least of a typo
    matcher = SequenceMatcher(autojunk=False)
    asked = name.lower()
    matcher.set_seq2(asked)
    close: list[tuple[float, str]] = []
    for candidate in plain:
        matcher.set_seq1(candidate)
        if matcher.quick_ratio() >= 0.5:  # an upper bound that costs little
            matched = sum(block.size for block in matcher.get_matching_blocks())
            score = 2 * matched / (len(candidate) + len(asked))
            if score >= 0.5 and 2 * matched > len(asked):
                close.append((score, candidate))
    return f"did you mean {plain[max(close)[1]]!r}?" if close else "known: " + ", ".join(known)
