"""Answers questions about layouts with TVM TIRx's own layouts.  Run by an interpreter that has apache-tvm.

    python tvm_server.py        # then one JSON list of questions a line; one JSON list of answers a line comes back

A layout is ``{"shard": [[extent, stride, axis], ...], "replica": [...], "offset": {axis: int}}``, the last two
optional.  A question is ``{"do": name, "layout": layout, ...}`` with the arguments of the function below that
has the name.  An answer is ``{"is": value}`` or ``{"refused": message}``.  Nothing of this project is imported.
"""

import itertools
import json
import os
import sys

# What TVM prints must not get between the answers.
answers = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)

import tvm  # noqa: E402
from tvm.tirx.layout import Iter, TileLayout  # noqa: E402


def read(x):
    def iters(part):
        return [Iter(extent, stride, axis) for extent, stride, axis in x.get(part, [])]

    return TileLayout.from_iters(iters("shard"), iters("replica"), x.get("offset", {}))


def number(x):
    return x if isinstance(x, int) else int(x)


def write(layout):
    if layout is None:
        return None

    def iters(part):
        return [[number(it.extent), number(it.stride), str(it.axis.name)] for it in part]

    offset = {str(axis.name): number(value) for axis, value in layout.offset.items()}
    return {"shard": iters(layout.shard), "replica": iters(layout.replica), "offset": offset}


def table(layout, shape):
    """Axis -> its values over the shape, last dimension fastest."""
    found = {}
    for coord in itertools.product(*[range(n) for n in shape]):
        for axis, value in layout.apply(*coord, shape=shape).items():
            found.setdefault(str(axis), []).append(number(value))
    return found


def canonicalize(layout):
    return write(layout.canonicalize())


def group(layout, shape):
    grouped, seps = layout.group(shape)
    return {"layout": write(grouped), "seps": [int(s) for s in seps]}


def slice_(layout, shape, region):
    return write(layout.slice(shape, [tvm.ir.Range(begin, end) for begin, end in region]))


def tile(layout, outer, outer_shape, inner_shape):
    return write(layout.tile(read(outer), outer_shape, inner_shape))


def tile_to(layout, to_shape, current_shape):
    return write(layout.tile_to(to_shape, current_shape))


def group_many(layout, shapes):
    grouped, seps = layout.group_many(shapes)
    return {"layout": write(grouped), "seps": [[int(s) for s in mine] for mine in seps]}


def direct_sum(layout, left, left_shape, right_shape):
    return write(layout.direct_sum(read(left), left_shape, right_shape))


def broadcast(layout, num, position):
    return write(layout.broadcast(num, position))


def recover(layout, name, whole, shape, part_shape):
    """The recognizer of that name."""
    return write(getattr(layout, name)(read(whole), shape, part_shape))


def is_injective(layout):
    """TVM's nearest question."""
    return bool(layout.verify_well_formed())


def permute_dims(layout, perm):
    return write(layout.permute_dims(perm))


def permute_by_groups(layout, seps, perm):
    return write(layout.permute_by_groups(seps, perm))


def pack(layout, num):
    return write(layout.pack(num))


def unpack(layout, num):
    return write(layout.unpack(num))


def measure(layout, axis):
    return {"size": number(layout.size()), "span": number(layout.span(axis))}


def text(layout):
    return repr(layout)


def version(layout):
    return tvm.__version__


KNOWN = {
    f.__name__.rstrip("_"): f
    for f in (
        table, canonicalize, group, group_many, slice_, tile, tile_to, direct_sum, broadcast, recover, is_injective,
        permute_dims, permute_by_groups, pack, unpack, measure, text, version,
    )
}  # fmt: skip


def answer(question):
    try:
        arguments = dict(question)
        return {"is": KNOWN[arguments.pop("do")](read(arguments.pop("layout")), **arguments)}
    except Exception as error:  # noqa: BLE001 - whatever TVM raises is its answer
        message = str(error).split("Stack trace")[0].split("Traceback")[0].strip()
        return {"refused": f"{type(error).__name__}: {message[:300]}"}


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps([answer(question) for question in json.loads(line)]), file=answers, flush=True)
