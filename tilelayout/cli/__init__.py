"""The command line `tilelayout`: layouts shown, asked and compared from a shell.

Each command stands in a file of its own.  Commands of other packages (`mma` and `lower` of lowering) join through the
entry-point group ``tilelayout.commands``; nothing of them is imported here.  Nothing is calculated here either: a
command reads text, asks the layout, and writes what it was told.

Exit codes: 0 yes (or done), 1 no, 2 bad input, 3 a fault of the program.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; `arguments` default to those of the process.  Gives the exit code.

    Nothing is raised: what goes wrong is one line on standard error.  Without the extra ``cli`` that line says how to
    get it.
    """
    try:
        import click
    except ImportError:
        sys.stderr.write(
            "tilelayout: the command line needs the extra `cli`: pip install 'tilelayout[cli]'\n"
        )
        return 2
    del click
    from .app import run

    return run(sys.argv[1:] if arguments is None else arguments)
