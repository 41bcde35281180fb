"""What compute-sanitizer says, in numbers: errors and warnings of its summary, and the first lines of its reports.

No array library and no GPU may enter.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

TOOLS: dict[str, tuple[str, ...]] = {
    "memcheck": ("--report-api-errors", "no", "--padding", "512"),
    "racecheck": ("--racecheck-report", "analysis", "--racecheck-detect-level", "warn"),
    "initcheck": (),
    "synccheck": (),
}
"""Tool -> its own options.  An array library asks for what a driver may not have, which memcheck would report as an
error of the API; bytes between allocations make an access behind one a report.  Of races the analysis is asked for,
which counts pairs of instructions, and not each pair of threads."""
FAILED = 99
"""The exit status that compute-sanitizer is to have where it found something."""
KEPT = 40
"""Lines of reports that are kept."""

_MARK = "========="
_ERRORS = re.compile(r"^=+ ERROR SUMMARY: (\d+) errors?$", re.M)
_HAZARDS = re.compile(
    r"^=+ RACECHECK SUMMARY: (\d+) hazards? displayed \((\d+) errors?, (\d+) warnings?\)$", re.M
)
_NOTHING = re.compile(r"^=+ .*(?:before first instrumented API call|No attachable process found).*$", re.M)
_FRAMES = re.compile(r"Host Frame|Saved host backtrace|^=+\s+in /|^=+\s*$")
_HEADS = re.compile(r"^=+ (?:COMPUTE-SANITIZER|(?:ERROR|RACECHECK|LEAK) SUMMARY.*)$")


@dataclass(frozen=True)
class Report:
    """Of one run of a tool.

    Attributes:
        errors, warnings: of its summary; None where there is none, as of a tool that did not come to its end.
        lines: the first that it said beside that, without the host's frames.
        why: what was wrong with the run itself, or "".
    """

    errors: int | None
    warnings: int | None
    lines: tuple[str, ...]
    why: str = ""

    @property
    def clean(self) -> bool:
        """Whether the tool watched the run to its end and found nothing."""
        return self.errors == 0 and not self.warnings and not self.why


def read(text: str, status: int) -> Report:
    """What a tool printed, and its exit status.

    Several summaries (of several processes) are added up.  A status other than 0 that no counted error explains is
    said in `why`, and so is a text without a summary.
    """
    sums = [int(n) for n in _ERRORS.findall(text)]
    races = [(int(e), int(w)) for _, e, w in _HAZARDS.findall(text)]
    errors = sum(sums) + sum(e for e, _ in races) if sums or races else None
    warnings = sum(w for _, w in races) if sums or races else None
    lines = [x.rstrip() for x in text.splitlines() if x.startswith(_MARK)]
    lines = [x for x in lines if not _FRAMES.search(x) and not _HEADS.match(x)]
    why = ""
    nothing = _NOTHING.search(text)
    if nothing:
        why = nothing.group().lstrip("= ")
    elif errors is None:
        why = f"the tool printed no summary, its exit status is {status}"
    elif status != 0 and not errors and not warnings:
        why = f"exit status {status} without an error in the summary"
    return Report(errors, warnings, tuple(lines[:KEPT]), why)
