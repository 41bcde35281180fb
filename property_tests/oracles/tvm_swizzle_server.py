"""`tvm_server` for layouts that may be swizzled: TVM's ComposeLayout.  Run by an interpreter that has apache-tvm.

A layout may have ``"swizzle": [per_element, swizzle_len, atom_len, swizzle_inner]`` besides.  Nothing of this project
is imported but the server beside it.
"""

import json
import operator

import tvm_server as server
from tvm.tirx.layout import ComposeLayout

plain_read, plain_write = server.read, server.write


def read(x):
    layout = plain_read(x)
    if x.get("swizzle") is None:
        return layout
    per_element, swizzle_len, atom_len, inner = x["swizzle"]
    return ComposeLayout(per_element, swizzle_len, atom_len, layout, inner)


def write(layout):
    if not isinstance(layout, ComposeLayout):
        return plain_write(layout)
    parameters = [int(x) for x in (layout.per_element, layout.swizzle_len, layout.atom_len)]
    return {**plain_write(layout.tile_layout), "swizzle": [*parameters, bool(layout.swizzle_inner)]}


OPERATORS = {
    "Add": operator.add, "Mul": operator.mul, "FloorDiv": operator.floordiv, "FloorMod": operator.mod,
    "LShift": operator.lshift, "RShift": operator.rshift, "BitwiseAnd": operator.and_, "BitwiseXor": operator.xor,
}  # fmt: skip


def number(x, env=None):
    """TVM leaves the value of a swizzle that shifts upwards as an expression of constants."""
    kind = type(x).__name__
    if kind == "Let":
        return number(x.body, {**(env or {}), x.var.name: number(x.value, env)})
    if kind == "Var":
        return env[x.name]
    return OPERATORS[kind](number(x.a, env), number(x.b, env)) if kind in OPERATORS else int(x)


def measure_memory(layout):
    """ComposeLayout takes no axis."""
    return {"size": server.number(layout.size()), "span": server.number(layout.span())}


server.read, server.write, server.number = read, write, number
server.KNOWN["measure_memory"] = measure_memory

if __name__ == "__main__":
    import sys

    for line in sys.stdin:
        found = [server.answer(question) for question in json.loads(line)]
        print(json.dumps(found), file=server.answers, flush=True)
