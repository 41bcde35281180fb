"""The other end of tvm_server: one process a session, questions in batches, a new process after a crash."""

from __future__ import annotations

import contextlib
import json
import subprocess
from pathlib import Path
from typing import Any

from tilelayout import TileLayout

SERVER = Path(__file__).with_name("tvm_server.py")
BATCH = 200

Question = dict[str, Any]
Answer = dict[str, Any]


def as_data(layout: TileLayout) -> dict[str, Any]:
    """A layout in the server's words."""
    parts = [[[it.extent, it.stride, it.axis.name] for it in part] for part in (layout.shard, layout.replica)]
    return {"shard": parts[0], "replica": parts[1], "offset": {a.name: v for a, v in layout.offset.items()}}


def as_layout(data: dict[str, Any]) -> TileLayout:
    return TileLayout.from_iters(
        *[[tuple(it) for it in data[p]] for p in ("shard", "replica")], data["offset"]
    )


class Tvm:
    """Asks TVM.  An answer is ``{"is": value}``, ``{"refused": message}`` or ``{"crashed": True}``."""

    def __init__(self, python: Path) -> None:
        self.python = python
        self.process: subprocess.Popen[str] | None = None

    def ask(self, questions: list[Question]) -> list[Answer]:
        found: list[Answer] = []
        for at in range(0, len(questions), BATCH):
            batch = questions[at : at + BATCH]
            answers = self._exchange(batch)
            if answers is None:  # one of them has killed the process: which one?
                answers = [(self._exchange([question]) or [{"crashed": True}])[0] for question in batch]
            found += answers
        return found

    def _exchange(self, batch: list[Question]) -> list[Answer] | None:
        if self.process is None:
            self.process = subprocess.Popen(
                [self.python, SERVER],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        process = self.process
        assert process.stdin
        assert process.stdout
        try:
            process.stdin.write(json.dumps(batch) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            self.close()
            return None
        return json.loads(line)

    def close(self) -> None:
        process, self.process = self.process, None
        if process is not None:
            for stream in (process.stdin, process.stdout):
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
            process.kill()
            process.wait()
