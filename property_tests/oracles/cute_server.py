"""Answers questions about layouts with pycute or tensor-layouts.  Run by an interpreter that has both.

    python cute_server.py       # then one JSON list of questions a line; one JSON list of answers a line comes back

A layout is ``[[extent, stride], ...]`` in CuTe's order, the first mode fastest.  A question is
``{"of": library, "do": name, "a": layout, "b": layout or integer}``, where b may be missing.  An answer is
``{"is": {"table": values, "text": layout}}`` or ``{"refused": message}``.  Nothing of this project is imported.
"""

import json
import os
import sys

# What a library prints must not get between the answers.
answers = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)

import pycute  # noqa: E402
import tensor_layouts  # noqa: E402

NAMES = {"compose": {"pycute": "composition"}}


def read(library, modes):
    if isinstance(modes, int):
        return modes
    shape, stride = tuple(e for e, _ in modes), tuple(s for _, s in modes)
    return library.Layout(shape, stride) if len(shape) > 1 else library.Layout(shape[0], stride[0])


def answer(question):
    try:
        library = {"pycute": pycute, "tensor_layouts": tensor_layouts}[question["of"]]
        do = question["do"]
        function = getattr(library, NAMES.get(do, {}).get(question["of"], do))
        operands = [read(library, question[x]) for x in "ab" if x in question]
        found = function(*operands)
        size = found.size() if question["of"] == "pycute" else tensor_layouts.size(found)
        if not isinstance(size, int) or size > 100000:
            return {"refused": f"size {size}"}
        return {"is": {"table": [found(i) for i in range(size)], "text": str(found)}}
    except Exception as error:  # noqa: BLE001 - whatever is raised is the answer
        return {"refused": f"{type(error).__name__}: {str(error)[:300]}"}


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps([answer(question) for question in json.loads(line)]), file=answers, flush=True)
