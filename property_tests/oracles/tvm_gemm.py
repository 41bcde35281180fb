"""Lowers gemms with the real TVM TIRx dispatcher: one JSON request a line on stdin, one JSON answer a line on stdout.

Run by the interpreter that has apache-tvm; nothing of this project may be imported.  Nothing is compiled and no GPU
is needed: `LowerTIRx` replaces the tile primitive by TIR, whose text names the registers of every mma.

Request: {"id", "scope": "warp" or "cta", "warps", "dtype", "ta", "tb", "alpha", "beta", "in_place",
"operands": {role: {"shape", "dtype", "shard": [[extent, stride, axis], ..], "replica", "offset", "region"}}}.
Answer: {"id", "ok": true, "shape": "m16n8k16", "mma": [[d, a, b], ..]} with a list of register words each, in order
of execution, and "start": [[d, c or null], ..], how each accumulator begins; or {"id", "ok": false, "error"}.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import sys

out = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)  # whatever TVM prints must not mix with the answers

import tvm  # noqa: E402
from tvm.script import tirx as Tx  # noqa: E402, N812 - as TVM writes it
from tvm.tirx.layout import Iter, TileLayout  # noqa: E402

SECONDS = 20  # of CPU or not; an ordinary request takes a tenth of one
TARGET = tvm.target.Target({"kind": "cuda", "arch": "sm_100a"})


def layout(operand):
    parts = [[Iter(e, s, a) for e, s, a in operand[part]] for part in ("shard", "replica")]
    return TileLayout.from_iters(*parts, operand["offset"])


def function(request):
    """The prim_func; names inside are read from its source text by TVM's parser, so it cannot be made of pieces."""
    operands = request["operands"]
    a, b, c, d = (operands[role] for role in "ABCD")
    la, lb, lc, ld = (layout(x) for x in (a, b, c, d))
    sa, sb, sc, sd = (x["shape"] for x in (a, b, c, d))
    ta, tb, tc, td = (x["dtype"] for x in (a, b, c, d))
    ra, rb, rc, rd = (tuple(slice(*bounds) for bounds in x["region"]) for x in (a, b, c, d))
    turn_a, turn_b, alpha, beta = request["ta"], request["tb"], request["alpha"], request["beta"]
    warps, in_place = request["warps"], request["in_place"]
    gemm = Tx.tile.warp.gemm if request["scope"] == "warp" else Tx.tile.cta.gemm

    @Tx.prim_func
    def main():
        Tx.device_entry()
        Tx.cta_id([1])
        Tx.warp_id([warps])
        Tx.lane_id([32])
        A = Tx.alloc_buffer(sa, ta, scope="local", layout=la)
        B = Tx.alloc_buffer(sb, tb, scope="local", layout=lb)
        D = Tx.alloc_buffer(sd, td, scope="local", layout=ld)
        C = Tx.alloc_buffer(sc, tc, scope="local", layout=lc)
        if in_place:
            gemm(D[rd], A[ra], B[rb], D[rc], transpose_A=turn_a, transpose_B=turn_b, alpha=alpha, beta=beta)
        else:
            gemm(D[rd], A[ra], B[rb], C[rc], transpose_A=turn_a, transpose_B=turn_b, alpha=alpha, beta=beta)

    return main


def loops(text):
    """Loop variable -> count; TVM prints every loop of the nest once."""
    return {name: int(count) for name, count in re.findall(r"for (\w+) in T\.unroll\((\d+)\)", text)}


def evaluate(index, names):
    if not re.fullmatch(r"[\w\s+*/%()-]+", index):
        raise ValueError(f"an index that is not understood: {index}")
    return eval(index, {"__builtins__": {}}, names)  # noqa: S307 - TVM's own text, checked above


def points(counts, names):
    for values in itertools.product(*[range(counts[name]) for name in names]):
        yield dict(zip(names, values, strict=True))


def read(text):
    counts = loops(text)
    (call,) = re.findall(r"T\.ptx\.mma\((.*)\)", text)
    words = re.findall(r"(\w+)\[([^\]]*)\]", call)
    names = re.findall(r'"(m16n8k\d+)"', call)
    mma = []
    for at in points(counts, ["m", "n", "k"]):
        found = {"d_local": [], "a_words": [], "b_words": []}
        for buffer, index in words:
            found[buffer].append(evaluate(index, at))
        d = found["d_local"]
        assert d[: len(d) // 2] == d[len(d) // 2 :], "not in place"
        mma.append([d[: len(d) // 2], found["a_words"], found["b_words"]])
    start = []
    target, value = re.findall(r"d_local\[([^\]]*)\] = (.*)", text)[0]
    source = re.fullmatch(r"(?:c|d)_local\[([^\]]*)\]", value.strip())
    for at in points(counts, ["m", "n", "rM", "rN"]):
        start.append([evaluate(target, at), evaluate(source[1], at) if source else None])
    return {"ok": True, "shape": names[0], "mma": mma, "start": start}


def answer(request):
    main = function(request)
    with TARGET:
        module = tvm.IRModule({"main": main.with_attr("target", TARGET)})
        lowered = tvm.tirx.transform.LowerTIRx()(module)
    return read(lowered.script())


def reply(request):
    try:
        return answer(request)
    except Exception as error:  # noqa: BLE001 - TVM raises many kinds, and each is an answer
        text = str(error).strip().split("\nStack trace")[0]
        return {"ok": False, "error": f"{type(error).__name__}: {text[-1500:]}"}


def forked(request):
    """In a child process: what crashes or never ends there is an answer and not the end of the run."""
    receiving, sending = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)
        os.close(receiving)
        with os.fdopen(sending, "w") as pipe:
            pipe.write(json.dumps(reply(request)))
        os._exit(0)
    os.close(sending)
    with os.fdopen(receiving) as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    if text:
        return json.loads(text)
    return {"ok": False, "error": f"crash: signal {os.WTERMSIG(status)}"}


for line in sys.stdin:
    request = json.loads(line)
    print(json.dumps({"id": request["id"], **forked(request)}), file=out, flush=True)
