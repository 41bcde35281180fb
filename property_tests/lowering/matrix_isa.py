"""What the PTX ISA says of ldmatrix, stmatrix, movmatrix, wgmma and mma.sp, as loops and case distinctions.

Source: the sections of those instructions, there in words and figures.  Nothing of `lowering` may be imported: the
tests compare it with this.
"""

from __future__ import annotations

# A byte of shared memory: (matrix, line, byte of the line).  A place: (lane, register, byte of the register).
Byte = tuple[int, int, int]
Place = tuple[int, int, int]


def move_of_bytes(shape: str, count: int, transposed: bool) -> dict[Byte, Place]:
    """Where each byte of the lines is in the registers, for the forms that move elements as they are.

    m8n8: a group of four threads holds a row of 8 elements of 16 bits, two a thread; transposed, thread T holds
    elements of column T / 4.  m16n16 transposed: register 0 holds bytes of columns 0 to 7, register 1 of columns 8 to
    15, each thread four neighboring rows.  m16n8 transposed: bytes e0 and e1 are row T / 4 of the matrix, e2 and e3 row
    T / 4 + 8, at columns 2 (T % 4) and 2 (T % 4) + 1; a line of memory is a column.
    """
    out: dict[Byte, Place] = {}
    for lane in range(32):
        group, thread = lane >> 2, lane % 4
        for matrix in range(count):
            if shape == "m8n8":
                for half in range(2):
                    for byte in range(2):
                        if transposed:
                            line, at = 2 * thread + half, 2 * group + byte
                        else:
                            line, at = group, 4 * thread + 2 * half + byte
                        out[matrix, line, at] = (lane, matrix, 2 * half + byte)
            elif shape == "m16n16":
                for register in range(2):
                    for byte in range(4):
                        column = group if register == 0 else group + 8
                        out[matrix, 4 * thread + byte, column] = (lane, 2 * matrix + register, byte)
            else:
                for e in range(4):
                    row = group if e < 2 else group + 8
                    out[matrix, 2 * thread + (e & 1), row] = (lane, matrix, e)
    return out


def widened_move(shape: str, count: int) -> dict[Byte, Place]:
    """Where element e of a line goes, for the forms that widen 16 elements of 4 or 6 bits to bytes."""
    if shape == "m16n16":
        return move_of_bytes("m16n16", count, True)
    return {
        (matrix, lane >> 2, 4 * (lane % 4) + byte): (lane, matrix, byte)
        for matrix in range(count)
        for lane in range(32)
        for byte in range(4)
    }


def field(line: list[int], number: int, bits: int) -> int:
    """Element `number` of a line of 16 bytes: `bits` bits, the first element in the lowest bits."""
    whole = sum(value << (8 * i) for i, value in enumerate(line))
    return whole >> (number * bits) & ((1 << bits) - 1)


# --- wgmma --------------------------------------------------------------------------------------------


def wgmma_d(n: int) -> dict[tuple[int, int], tuple[int, int, int]]:
    """(row, column) of D -> (warp, lane, i), from the figure of the D fragment of wgmma.m64nNk*: element d_i is in row
    ``groupID`` (i % 4 < 2) or ``groupID + 8`` of the warp's 16 rows, column ``8 (i / 4) + 2 (lane % 4) + i % 2``.
    """
    out = {}
    for warp in range(4):
        for lane in range(32):
            for i in range(n // 2):
                row = 16 * warp + (lane >> 2) + (0 if i % 4 < 2 else 8)
                out[row, 8 * (i // 4) + 2 * (lane % 4) + i % 2] = (warp, lane, i)
    return out


def wgmma_a(bits: int) -> dict[tuple[int, int], tuple[int, int, int]]:
    """(row, column) of a register A of 64 x (32 bytes) -> (warp, lane, i)."""
    each = 32 // bits  # elements of a register
    out = {}
    for warp in range(4):
        for lane in range(32):
            for i in range(4 * each):
                register, within = divmod(i, each)
                row = 16 * warp + (lane >> 2) + (8 if register in (1, 3) else 0)
                column = each * (lane % 4) + within + (4 * each if register >= 2 else 0)
                out[row, column] = (warp, lane, i)
    return out


# --- mma.sp -------------------------------------------------------------------------------------------


def sparse_a(k: int, bits: int) -> list[tuple[int, int, range]]:
    """(lane, register, columns of A out of which its elements are): "row" and "[firstcol ... lastcol]" of each."""
    each = 32 // bits  # elements of a register, out of twice as many columns
    wide = k * bits == 512  # the shapes with four registers
    out = []
    for lane in range(32):
        for register in range(4 if wide else 2):
            first = 2 * each * (lane % 4) + (8 * each if register >= 2 else 0)
            out.append((lane, register, range(first, first + 2 * each)))
    return out


def sparse_a_row(lane: int, register: int) -> int:
    return (lane >> 2) + (8 if register in (1, 3) else 0)


def metadata(k: int, bits: int, selector: int) -> dict[tuple[int, int], tuple[int, int]]:
    """(row, first column of a chunk) -> (lane, lowest bit) of its four bits of metadata, shape by shape.

    From the figures "Sparse MMA .m16n8k* metadata layout": cells ``Tk: [m..n]``.
    """
    chunk = {32: 2, 16: 4, 8: 4, 4: 8}[bits]
    out = {}
    for quad in range(8):
        for row in (quad, quad + 8):
            for column in range(0, k, chunk):
                upper = row >= 8
                if (bits, k) in ((16, 16), (32, 8)):  # one thread of four has it all
                    lane, bit = 4 * quad + selector, 4 * (column // chunk) + 16 * upper
                elif (bits, k) in ((16, 32), (32, 16)):  # two threads, each half of the columns of both rows
                    half = column >= k // 2
                    lane = 4 * quad + 2 * selector + half
                    bit = 4 * (column // chunk) - 16 * half + 16 * upper
                elif (bits, k) in ((8, 32), (4, 64)):  # two threads, a row each
                    lane, bit = 4 * quad + 2 * selector + upper, 4 * (column // chunk)
                else:  # all four: the first two have the first half of the columns
                    half = column >= k // 2
                    lane, bit = 4 * quad + 2 * half + upper, 4 * (column // chunk) - 32 * half
                out[row, column] = (lane, bit)
    return out
