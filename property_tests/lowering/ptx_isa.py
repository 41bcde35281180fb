"""The fragments of mma.m16n8k8 and m16n8k16 (.f16, .bf16) as the PTX ISA words them: loops over lanes and elements.

Source: PTX ISA, "Matrix Fragments for mma.m16n8k8" and "... mma.m16n8k16": there ``groupID = %laneid >> 2`` and
``threadID_in_group = %laneid % 4``, and each formula is a case distinction on the element's number i.  Nothing of
`lowering` may be imported: the tests compare it with this.
"""

from __future__ import annotations

Place = tuple[int, int]  # (lane, element number)
Fragment = dict[tuple[int, int], Place]  # (row, column) -> where


def a_fragment(k: int) -> Fragment:
    """Multiplicand A, 16 x k: (M, K) -> lane and element a_i."""
    out: Fragment = {}
    for lane in range(32):
        group, thread = lane >> 2, lane % 4
        for i in range(8 if k == 16 else 4):
            if k == 16:
                row = group if 0 <= i < 2 or 4 <= i < 6 else group + 8
                column = thread * 2 + (i & 1) if i < 4 else thread * 2 + (i & 1) + 8
            else:
                row = group if i < 2 else group + 8
                column = thread * 2 + (i & 1)
            out[row, column] = (lane, i)
    return out


def b_fragment(k: int) -> Fragment:
    """Multiplicand B, k x 8: (K, N) -> lane and element b_i."""
    out: Fragment = {}
    for lane in range(32):
        group, thread = lane >> 2, lane % 4
        for i in range(4 if k == 16 else 2):
            row = thread * 2 + (i & 1) if i < 2 else thread * 2 + (i & 1) + 8
            out[row, group] = (lane, i)
    return out


def c_fragment() -> Fragment:
    """Accumulators C and D, 16 x 8: (M, N) -> lane and element c_i."""
    out: Fragment = {}
    for lane in range(32):
        group, thread = lane >> 2, lane % 4
        for i in range(4):
            row = group if i < 2 else group + 8
            out[row, thread * 2 + (i & 1)] = (lane, i)
    return out


def fragment(role: str, k: int) -> Fragment:
    if role == "A":
        return a_fragment(k)
    return b_fragment(k) if role == "B" else c_fragment()
