"""Reading swizzled layouts.  The tile layout inside is read by `spec`."""

from __future__ import annotations

import re

from ..swizzle import Swizzle, XorMap
from ..swizzle import read as read_map

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

_THEIRS: Final = re.compile(
    r"\s*(?:T\s*\.\s*)?ComposeLayout\s*\(\s*(\d{1,4})\s*,\s*(\d{1,4})\s*,\s*(\d{1,4})\s*,"
)
_THEIR_END: Final = re.compile(r"(?:,\s*(?:swizzle_inner\s*=\s*)?(True|False)\s*)?\)\s*$")
_OURS: Final = re.compile(r"\s*SwizzledLayout\s*\(")
_THEN: Final = re.compile(r"\s*o\b\s*|\s*o(?=[ST])")


def read(text: Any) -> tuple[XorMap, str] | None:
    """The swizzle, and the layout's text at its own position, blanks for the rest; None where this is no such text."""
    if type(text) is not str:
        return None
    found = read_map(text, 0)
    if found is not None:
        swizzle, at = found
        then = _THEN.match(text, at)
        return None if then is None else (swizzle, " " * then.end() + text[then.end() :])
    head, end = _THEIRS.match(text), _THEIR_END.search(text)
    if head is not None and end is not None:
        base, bits, shift = [int(x) for x in head.groups()]
        swizzle = Swizzle(bits, base, -shift if end.group(1) == "False" else shift)
        return swizzle, " " * head.end() + text[head.end() : end.start()]
    head = _OURS.match(text)
    comma = text.rfind(",")
    while head is not None and comma > head.end():
        found = read_map(text, comma + 1)
        if found is not None:
            swizzle, at = found
            rest = text[at:].strip()
            return (swizzle, " " * head.end() + text[head.end() : comma]) if rest == ")" else None
        comma = text.rfind(",", 0, comma)
    return None
