"""The page's evaluator as a process: a question as JSON a line in, an answer a line out.

It runs on Node.js: the one on the PATH, or the one that the test dependency `playwright` ships.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

from tilelayout import Axis, axes
from tilelayout.explore.bundle import core

LOOP = """
let rest = "";
process.stdin.on("data", (piece) => {
  const lines = (rest + piece).split("\\n");
  rest = lines.pop();
  for (const line of lines) process.stdout.write(JSON.stringify(answer(JSON.parse(line))) + "\\n");
});
"""


def node() -> str:
    """The path of Node.js."""
    import playwright

    return shutil.which("node") or str(Path(playwright.__file__).parent / "driver" / "node")


class Evaluator:
    """Asks the page's script, as the page itself would."""

    def __init__(self, folder: Path) -> None:
        self.script = folder / "core.js"
        self.known: tuple[Axis, ...] = ()
        self.process: subprocess.Popen[str] | None = None

    def started(self) -> subprocess.Popen[str]:
        """The process, which is another one when axes were registered since: a page knows those of its making."""
        if self.process is None or self.known != axes():
            self.close()
            self.known = axes()
            self.script.write_text(f'"use strict";\n{core()}\n{LOOP}', encoding="utf-8")
            self.process = subprocess.Popen(
                [node(), self.script],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                encoding="utf-8",
            )
        return self.process

    def ask(self, what: str, text: Any, **options: Any) -> dict[str, Any]:
        """The whole answer: ``{"is": ...}`` or ``{"refused": message, "kind": ..., "position": ...}``."""
        question = {"ask": what, "text": str(text), **options}
        process = self.started()
        assert process.stdin
        assert process.stdout
        process.stdin.write(json.dumps(question) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
        assert line, f"the script died of {question}"
        return json.loads(line)

    def told(self, what: str, text: Any, **options: Any) -> Any:
        """The answer to a question that must not be refused."""
        answer = self.ask(what, text, **options)
        assert "is" in answer, answer["refused"]
        return answer["is"]

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.communicate()


def as_texts(places: Any) -> list[dict[str, str]]:
    """Places as the script answers them."""
    return [{str(axis): str(int(value)) for axis, value in place.items()} for place in places]
