"""The fragments of every dense ``mma.sync`` as the PTX ISA words them: loops over lanes and elements, by family.

Source: PTX ISA, the sections "Matrix Fragments for mma.<shape>": there ``groupID = %laneid >> 2`` and
``threadID_in_group = %laneid % 4``, and each formula is a case distinction on the element's number i.  (In the section
on m16n8k256 the ISA's ``i < 31`` and ``i & 0x1F`` disagree; only the latter reaches every element.)  Nothing of
`lowering` may be imported: the tests compare it with this.
"""

from __future__ import annotations

from collections.abc import Callable

Element = tuple[int, int]  # (row, column); quadpairs: (product, row, column)
Fragment = dict[tuple[int, ...], tuple[int, int]]  # element -> (lane, its number i)
Formula = Callable[[int, int, int], Element]  # (group, thread, i) -> (row, column)


def _each(count: int, formula: Formula) -> Fragment:
    out: Fragment = {}
    for lane in range(32):
        for i in range(count):
            element = formula(lane >> 2, lane % 4, i)
            assert element not in out, (element, lane, i)
            out[element] = (lane, i)
    return out


# (shape, bits of the place that an element takes) -> (elements of a lane, formula)

A: dict[tuple[str, int], tuple[int, Formula]] = {
    ("m8n8k4", 64): (1, lambda g, t, i: (g, t)),
    ("m16n8k4", 64): (2, lambda g, t, i: (g if i == 0 else g + 8, t)),
    ("m16n8k8", 64): (4, lambda g, t, i: (g if i in (0, 2) else g + 8, t if i < 2 else t + 4)),
    ("m16n8k16", 64): (
        8, lambda g, t, i: (g if i % 2 == 0 else g + 8, i * 2 + t if i % 2 == 0 else i * 2 - 2 + t),
    ),
    ("m16n8k4", 32): (2, lambda g, t, i: (g if i == 0 else g + 8, t)),
    ("m16n8k8", 32): (4, lambda g, t, i: (g if i in (0, 2) else g + 8, t if i in (0, 1) else t + 4)),
    ("m16n8k8", 16): (4, lambda g, t, i: (g if i < 2 else g + 8, t * 2 + (i & 1))),
    ("m16n8k16", 16): (
        8, lambda g, t, i: (g if 0 <= i < 2 or 4 <= i < 6 else g + 8, t * 2 + (i & 1) + (0 if i < 4 else 8)),
    ),
    ("m8n8k16", 8): (4, lambda g, t, i: (g, t * 4 + i)),
    ("m16n8k16", 8): (8, lambda g, t, i: (g if i < 4 else g + 8, t * 4 + (i & 3))),
    ("m16n8k32", 8): (
        16, lambda g, t, i: (g if 0 <= i < 4 or 8 <= i < 12 else g + 8, t * 4 + (i & 3) + (0 if i < 8 else 16)),
    ),
    ("m8n8k32", 4): (8, lambda g, t, i: (g, t * 8 + i)),
    ("m16n8k32", 4): (16, lambda g, t, i: (g if i < 8 else g + 8, t * 8 + (i & 7))),
    ("m16n8k64", 4): (
        32, lambda g, t, i: (g if 0 <= i < 8 or 16 <= i < 24 else g + 8, t * 8 + (i & 7) + (0 if i < 16 else 32)),
    ),
    ("m8n8k128", 1): (32, lambda g, t, i: (g, t * 32 + i)),
    ("m16n8k128", 1): (64, lambda g, t, i: (g if i < 32 else g + 8, t * 32 + (i & 0x1F))),
    ("m16n8k256", 1): (
        128,
        lambda g, t, i: (g if i < 32 or 64 <= i < 96 else g + 8, t * 32 + (i & 0x1F) + (0 if i < 64 else 128)),
    ),
}  # fmt: skip

B: dict[tuple[str, int], tuple[int, Formula]] = {
    ("m8n8k4", 64): (1, lambda g, t, i: (t, g)),
    ("m16n8k4", 64): (1, lambda g, t, i: (t, g)),
    ("m16n8k8", 64): (2, lambda g, t, i: (t if i == 0 else t + 4, g)),
    ("m16n8k16", 64): (4, lambda g, t, i: (t + i * 4, g)),
    ("m16n8k4", 32): (1, lambda g, t, i: (t, g)),
    ("m16n8k8", 32): (2, lambda g, t, i: (t if i == 0 else t + 4, g)),
    ("m16n8k8", 16): (2, lambda g, t, i: (t * 2 + i, g)),
    ("m16n8k16", 16): (4, lambda g, t, i: (t * 2 + (i & 1) + (0 if i < 2 else 8), g)),
    ("m8n8k16", 8): (4, lambda g, t, i: (t * 4 + i, g)),
    ("m16n8k16", 8): (4, lambda g, t, i: (t * 4 + i, g)),
    ("m16n8k32", 8): (8, lambda g, t, i: (t * 4 + (i & 3) + (0 if i < 4 else 16), g)),
    ("m8n8k32", 4): (8, lambda g, t, i: (t * 8 + i, g)),
    ("m16n8k32", 4): (8, lambda g, t, i: (t * 8 + (i & 7), g)),
    ("m16n8k64", 4): (16, lambda g, t, i: (t * 8 + (i & 7) + (0 if i < 8 else 32), g)),
    ("m8n8k128", 1): (32, lambda g, t, i: (t * 32 + i, g)),
    ("m16n8k128", 1): (32, lambda g, t, i: (t * 32 + i, g)),
    ("m16n8k256", 1): (64, lambda g, t, i: (t * 32 + (i & 0x1F) + (0 if i < 32 else 128), g)),
}

C: dict[int, tuple[int, Formula]] = {
    8: (2, lambda g, t, i: (g, t * 2 + i)),
    16: (4, lambda g, t, i: (g if i < 2 else g + 8, t * 2 + (i & 1))),
}


def fragment(role: str, shape: str, place: int) -> Fragment:
    """Where each element is, for a shape and the bits of the place that an element of A and B takes.

    A is (M, K), B (K, N), C and D (M, N).
    """
    if role in "CD":
        return _each(*C[int(shape[1:].split("n")[0])])
    return _each(*{"A": A, "B": B}[role][shape, place])


def quadpair(role: str, order: str, element: str) -> Fragment:
    """mma.m8n8k4 with .f16 factors: computation q is done by lanes 4q to 4q + 3 and 4q + 16 to 4q + 19."""
    out: Fragment = {}
    for lane in range(32):
        computation, low = lane % 16 // 4, lane < 16
        for i in range(8 if role in "CD" else 4):
            four = lane % 4 if low else lane % 4 + 4
            if role == "A" and order == "row":
                row, column = four, i
            elif role == "A":
                row, column = (i % 4 if low else i % 4 + 4), lane % 4
            elif role == "B" and order == "row":
                row, column = lane % 4, (i if low else i + 4)
            elif role == "B":
                row, column = i, four
            elif element == "f16":
                row, column = four, i
            else:
                x = (lane & 0b1) + (i & 0b10)
                row, column = (x if low else x + 4), (i & 0b100) + (lane & 0b10) + (i & 0b1)
            assert (computation, row, column) not in out
            out[computation, row, column] = (lane, i)
    return out


def scale_lane(role: str, index: int, thread: int) -> int:
    """The lane whose scale register serves row `index` of A ("SFA") or column `index` of B ("SFB").

    Source: PTX ISA, "Block Scaling for mma.sync": thread-id-a names one of two pairs of threads in each quad, of which
    the first serves row groupID and the second row groupID + 8; thread-id-b names one thread of each quad.
    """
    for lane in range(32):
        group, within = lane >> 2, lane % 4
        if role == "SFB":
            if within == thread and group == index:
                return lane
        elif within // 2 == thread and index == group + 8 * (within % 2):
            return lane
    raise AssertionError((role, index, thread))
