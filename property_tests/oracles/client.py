"""The other end of a server: one process, questions in batches, a new process after a crash."""

from __future__ import annotations

import contextlib
import json
import subprocess
from pathlib import Path
from typing import Any

BATCH = 200

Question = dict[str, Any]
Answer = dict[str, Any]


class Peer:
    """Asks a library of somebody else.

    `server` is a program that reads a JSON list of questions a line and writes a JSON list of answers a line.  An
    answer is ``{"is": value}``, ``{"refused": message}`` or, where the process died of it, ``{"crashed": True}``.
    """

    def __init__(self, python: Path, server: Path) -> None:
        self.python = python
        self.server = server
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
                [self.python, self.server],
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
