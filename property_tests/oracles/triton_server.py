"""Answers questions about linear layouts with Triton's LinearLayout.  Run by an interpreter that has triton.

    python triton_server.py     # then one JSON list of questions a line; one JSON list of answers a line comes back

A layout is ``{"bases": [[in dimension, [[out coordinates], ...]], ...], "outs": [[out dimension, size], ...]}``: the
images of the bits of each input.  A question is ``{"do": name, ...}`` with the arguments of the function below that has
the name.  An answer is ``{"is": value}`` or ``{"refused": message}``.  Nothing of this project is imported, and no GPU
is needed.
"""

import itertools
import json
import os
import sys

# What Triton prints must not get between the answers.
answers = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)

import triton  # noqa: E402
from triton._C.libtriton import gluon_ir, ir  # noqa: E402
from triton._C.libtriton.linear_layout import LinearLayout  # noqa: E402
from triton.experimental.gluon.language import _layouts as gluon  # noqa: E402


def read(x):
    names, sizes = [name for name, _ in x["outs"]], [size for _, size in x["outs"]]
    return LinearLayout.from_bases([(name, bases) for name, bases in x["bases"]], names, sizes, False)


def table(found):
    """The out coordinates of every input, the first in-dimension fastest."""
    names = found.get_in_dim_names()
    bits = {name: len(bases) for name, bases in found.bases}
    out = []
    for coord in itertools.product(*[range(1 << bits[name]) for name in reversed(names)]):
        at = found.apply(dict(zip(reversed(names), coord, strict=True)))
        out.append([at[name] for name in found.get_out_dim_names()])
    return out


def apply(layout):
    return table(read(layout))


def compose(outer, inner):
    """outer after inner: Triton's `compose` goes from left to right."""
    return table(read(inner).compose(read(outer)))


def invert(layout):
    return table(read(layout).invert())


def pseudoinvert(layout):
    return table(read(layout).pseudoinvert())


def invert_and_compose(layout, other):
    """The inverse of `other` after `layout`."""
    return table(read(layout).invert_and_compose(read(other)))


def properties(layout):
    found = read(layout)
    return {"injective": found.is_injective(), "surjective": found.is_surjective()}


context = ir.context()
ir.load_dialects(context)
builder = gluon_ir.GluonOpBuilder(context)


def linear(layout, shape):
    found = builder.to_linear_layout(layout._to_ir(builder), shape)
    if isinstance(found, gluon.SharedLinearLayout):
        return {"offset": found.offset_bases}
    return {"register": found.reg_bases, "lane": found.lane_bases, "warp": found.warp_bases}


def fragment(version, warps, instruction, operand, k_width, shape):
    """The bases of an mma operand ("A", "B") or accumulator ("D"): images are (row, column)."""
    found = gluon.NVMMADistributedLayout(version, warps, instruction)
    if operand != "D":
        found = gluon.DotOperandLayout("AB".index(operand), found, k_width)
    return linear(found, shape)


def swizzled_shared(vector, per_phase, max_phase, order, shape):
    return linear(gluon.SwizzledSharedLayout(vector, per_phase, max_phase, order), shape)


def nvmma_shared(swizzle_bytes, element_bits, shape):
    return linear(gluon.NVMMASharedLayout(swizzle_bytes, element_bits, len(shape)), shape)


def version():
    return triton.__version__


KNOWN = {
    f.__name__: f
    for f in (
        apply, compose, invert, pseudoinvert, invert_and_compose, properties, fragment, swizzled_shared, nvmma_shared,
        version,
    )
}  # fmt: skip


def answer(question):
    try:
        arguments = dict(question)
        return {"is": KNOWN[arguments.pop("do")](**arguments)}
    except Exception as error:  # noqa: BLE001 - whatever Triton raises is its answer
        return {"refused": f"{type(error).__name__}: {str(error)[:300]}"}


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps([answer(question) for question in json.loads(line)]), file=answers, flush=True)
