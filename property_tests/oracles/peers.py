"""Every disagreement with other libraries, counted and shown: the tables of docs/peers.md.

    python -m property_tests.oracles.peers [--count N] [--seed N] [--python PATH] [--write] [peer ...]

Random instances of each operation are put to apache-tvm, pycute, tensor-layouts and Triton, and to us.  Both answers
are judged by brute force over the whole table of the function.  A wrong answer of ours, or a refusal of what a peer has
right, ends with exit status 1.  ``--write`` puts the tables into docs/peers.md.
"""

from __future__ import annotations

import argparse
import datetime
import platform
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from property_tests.conftest import ROOT
from property_tests.oracles import peer_questions as questions
from property_tests.oracles.client import Peer
from property_tests.oracles.peer_questions import Case, Draw
from property_tests.oracles.peer_traps import named
from tilelayout import LayoutError

HERE = Path(__file__).parent
DOCUMENT = ROOT / "docs" / "peers.md"


class Library(NamedTuple):
    """A peer: its name in the tables, the distribution it comes in, its server and what it is asked."""

    title: str
    distribution: str
    server: str
    draws: Callable[[], Iterator[tuple[str, Draw]]]


LIBRARIES = {
    "tvm": Library(
        "TVM TIRx on plain layouts", "apache-tvm", "tvm_swizzle_server.py", lambda: questions.tvm_draws(True)
    ),
    "tvm-any": Library(
        "TVM TIRx on any layouts", "apache-tvm", "tvm_swizzle_server.py", lambda: questions.tvm_draws(False)
    ),
    "pycute": Library("pycute", "nvidia-cutlass", "cute_server.py", lambda: questions.cute_draws("pycute")),
    "tensor-layouts": Library(
        "tensor-layouts", "tensor-layouts", "cute_server.py", lambda: questions.cute_draws("tensor_layouts")
    ),
    "triton": Library(
        "Triton's LinearLayout on linear layouts", "triton", "triton_server.py", questions.triton_draws
    ),
}

AGREE = "agree"
COLUMNS = (
    AGREE,
    "peer wrong",
    "peer refuses what exists",
    "peer crashes",
    "we refuse what exists",
    "we are wrong",
)
REFUSES = COLUMNS[2]
FAULTS = COLUMNS[4:]


class Witness(NamedTuple):
    """One disagreement, as small as any that was drawn."""

    case: Case
    theirs: str
    ours: str


class Row(NamedTuple):
    """What came of the instances of one operation, and the least witness of each kind of disagreement."""

    name: str
    counts: Counter[str]
    kinds: dict[tuple[str, str], tuple[int, Witness]]


def right(case: Case, theirs: Any) -> bool:
    try:
        found = case.read(theirs)
    except (LayoutError, ValueError):  # no layout at all: an extent of 0, a table of another size
        return False
    return holds(case, found)


def holds(case: Case, found: Any) -> bool:
    try:
        case.instance.check(found)
    except (AssertionError, IndexError, KeyError):  # the last two of a table of another size
        return False
    return True


def verdict(case: Case, answer: dict[str, Any]) -> tuple[str, Any]:
    """The column that an instance is counted in, and our answer."""
    try:
        ours = case.instance.ask()
    except LayoutError as error:
        ours = error
    theirs = answer.get("is")
    good = theirs is not None and right(case, theirs)
    if isinstance(ours, LayoutError):
        if good:
            return "we refuse what exists", ours
        if not holds(case, ours):
            return "we refuse what exists", ours
    elif not holds(case, ours):
        return "we are wrong", ours
    if "crashed" in answer:
        return "peer crashes", ours
    if theirs is None:
        return AGREE if isinstance(ours, LayoutError) else "peer refuses what exists", ours
    return AGREE if good else "peer wrong", ours


def shown(value: Any, most: int = 90) -> str:
    text = " ".join(str(value).split()).replace("|", "\\|")
    return text if len(text) <= most else text[: most - 3] + "..."


def what_they_say(answer: dict[str, Any]) -> str:
    if "crashed" in answer:
        return "the process ends"
    value = answer.get("is")
    if value is None:
        return "refused: " + answer["refused"] if "refused" in answer else "None"
    if isinstance(value, dict) and "text" in value:
        return value["text"]
    if isinstance(value, dict) and "layout" in value:
        return f"{questions.as_layout(value['layout'])}, {value['seps']}"
    if isinstance(value, dict) and "shard" in value:
        try:
            return str(questions.layout_of(value) if "swizzle" in value else questions.as_layout(value))
        except LayoutError:
            return ", ".join(f"{extent}:{stride} @ {axis}" for extent, stride, axis in value["shard"])
    return str(value)


def what_we_say(ours: Any) -> str:
    if isinstance(ours, LayoutError):
        return "no layout: refused"
    return str(ours)


def drawn(draw: Draw, rng: Random, count: int) -> list[Case]:
    found: list[Case] = []
    for _ in range(200 * count):
        if len(found) == count:
            break
        case = draw(rng)
        if case is not None:
            found.append(case)
    return found


def compare(peer: Peer, name: str, draw: Draw, seed: int, count: int) -> Row:
    cases = drawn(draw, Random(f"{name} {seed}"), count)
    counts: Counter[str] = Counter()
    kinds: dict[tuple[str, str], tuple[int, Witness]] = {}
    for case, answer in zip(cases, peer.ask([case.question for case in cases]), strict=True):
        column, ours = verdict(case, answer)
        counts[column] += 1
        if column == AGREE:
            continue
        witness = Witness(case, what_they_say(answer), what_we_say(ours))
        times, least = kinds.get((column, case.kind), (0, witness))
        if len(case.shown) < len(least.case.shown):
            least = witness
        kinds[column, case.kind] = times + 1, least
    return Row(name, counts, kinds)


def named_table(python: Path) -> str:
    lines = ["| case | peer | input | peer says | right |", "|---|---|---|---|---|"]
    peers: dict[str, Peer] = {}
    for entry in named():
        server = LIBRARIES[entry.library].server
        peer = peers.setdefault(server, Peer(python, HERE / server))
        (answer,) = peer.ask([entry.question])
        try:
            right = what_we_say(entry.right())
        except LayoutError as error:
            right = what_we_say(error)
        theirs = shown(what_they_say(answer))
        lines.append(f"| {entry.name} | {entry.library} | {entry.text} | `{theirs}` | `{right}` |")
    for peer in peers.values():
        peer.close()
    return "\n".join(lines)


# --- the document -----------------------------------------------------------------------------------------


def tables(rows: list[Row]) -> str:
    lines = [
        "| operation | instances | " + " | ".join(COLUMNS) + " |",
        "|---" + "|--:" * (len(COLUMNS) + 1) + "|",
    ]
    for row in rows:
        numbers = [sum(row.counts.values()), *[row.counts[c] for c in COLUMNS]]
        lines.append(f"| {row.name} | " + " | ".join(map(str, numbers)) + " |")
    witnesses = [
        (row.name, column, kind, times, least)
        for row in rows
        for column in COLUMNS[1:]
        for kind, times, least in some(row, column, 1 if column == REFUSES else 2)
    ]
    if witnesses:
        lines += [
            "",
            "| operation | what | operands | times | least input | peer | right |",
            "|---|---|---|--:|---|---|---|",
        ]
    for name, column, kind, times, least in witnesses:
        cells = (least.case.shown, least.theirs, least.ours)
        lines.append(
            f"| {name} | {column} | {kind} | {times} | " + " | ".join(f"`{shown(c)}`" for c in cells) + " |"
        )
    return "\n".join(lines)


def some(row: Row, column: str, most: int) -> list[tuple[str, int, Witness]]:
    """The kinds with the fewest features first: what goes wrong with less goes wrong with more."""
    found = [(kind, *entry) for (c, kind), entry in row.kinds.items() if c == column]
    return sorted(found, key=lambda x: (x[0].count(","), -x[1]))[:most]


def versions(python: Path, distributions: list[str]) -> dict[str, str]:
    code = "import sys, importlib.metadata as d; print(*[d.version(n) for n in sys.argv[1:]])"
    found = subprocess.run([python, "-c", code, *distributions], capture_output=True, text=True, check=True)
    return dict(zip(distributions, found.stdout.split(), strict=True))


def write(name: str, text: str) -> None:
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    document = DOCUMENT.read_text()
    before, rest = document.split(begin)
    DOCUMENT.write_text(f"{before}{begin}\n{text}\n{end}{rest.split(end)[1]}")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m property_tests.oracles.peers")
    parser.add_argument("peers", nargs="*", choices=[[], *LIBRARIES], default=[])
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--python", type=Path, default=ROOT / ".venv-oracles" / "bin" / "python")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/peers.md")
    options = parser.parse_args(arguments)
    names = options.peers or list(LIBRARIES)
    known = versions(options.python, sorted({LIBRARIES[name].distribution for name in names}))
    faults = 0
    for name in names:
        library = LIBRARIES[name]
        peer = Peer(options.python, HERE / library.server)
        rows = []
        for operation, draw in library.draws():
            rows.append(compare(peer, operation, draw, options.seed, options.count))
            sys.stderr.write(f"{name} {operation}: {dict(rows[-1].counts)}\n")
        peer.close()
        faults += sum(row.counts[column] for row in rows for column in FAULTS)
        made = (
            f"{library.title}, {library.distribution} {known[library.distribution]}, by "
            f"`python -m property_tests.oracles.peers {name} --count {options.count} --seed {options.seed}` on "
            f"{datetime.date.today()}, Python {platform.python_version()}."
        )
        text = f"{made}\n\n{tables(rows)}"
        sys.stdout.write(text + "\n\n")
        if options.write:
            write(name, text)
    if not options.peers:
        text = named_table(options.python)
        sys.stdout.write(text + "\n")
        if options.write:
            write("named", text)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
