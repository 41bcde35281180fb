"""Executes the notebooks and stores their outputs: ``python -m notebooks.refresh [NAME ...]``.

With ``--check`` nothing is written, and the exit status says whether what is stored is what comes out.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .session import NotebookError, as_text, execute, notebooks, read


def main(arguments: list[str] | None = None) -> int:
    """Refresh the notebooks whose names begin with one of the given words, all of them by default."""
    parser = argparse.ArgumentParser(prog="python -m notebooks.refresh", description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="how a notebook's name begins, e.g. 03 (default: all)")
    parser.add_argument("--check", action="store_true", help="compare only")
    options = parser.parse_args(arguments)
    chosen = [p for p in notebooks() if not options.names or p.name.startswith(tuple(options.names))]
    if not chosen:
        parser.error(f"no notebook begins with {', '.join(options.names)}")
    return max([refresh(path, options.check) for path in chosen])


def refresh(path: Path, check: bool) -> int:
    """Execute one notebook and store it (or compare); 1 where it failed or is not what is stored."""
    try:
        fresh = as_text(execute(read(path), path.stem)[0])
    except NotebookError as error:
        print(error)
        return 1
    same = fresh == path.read_text(encoding="utf-8")
    if not same and not check:
        path.write_text(fresh, encoding="utf-8", newline="\n")
    print(f"{path.name}: {'as stored' if same else 'differs from what is stored' if check else 'refreshed'}")
    return int(check and not same)


if __name__ == "__main__":
    sys.exit(main())
