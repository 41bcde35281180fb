"""Where the elements of a product's operands are, read back from the device.

B is one-hot, A holds the number of each of its slots in digits, C is zero: what comes out in a slot of D is the number
of the slot of A that meets the hot slot of B there.  All of them together are the *relation* of slots (b, d) -> a, and
it is read without any map.  In a second pass A and B are zero and C is numbered.

The relation says all that an instruction can tell: which slots share a row, a column, a place along K.  What a row is
called is a convention between operands, so each operand's map is read in the other's names: rows of A from D's, columns
of B from D's, K of A from B's and of B from A's, rows and columns of D from A's and B's, by majority, so that one wrong
slot is found where it is; C's are those of the slot of D that it is added to.  A renaming of K that A and B share
cannot be seen by any product.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lowering.dtypes import dtype
from lowering.isa.mma.record import Role
from lowering.isa.sparse import SparseMma, decompress

from .device import Device
from .elements import Matrices, bits_of, dense_of, in_place, slot_numbers, slot_registers

NOTHING, UNREADABLE = -1, -2


@dataclass(frozen=True)
class Names:
    """Row, column or place along K of every slot, flattened over lanes and slots, as the record has them.

    In quadpairs each product counts on: row 8 is row 0 of the second one.
    """

    a_row: Any
    a_k: Any
    b_k: Any
    b_column: Any
    d_row: Any
    d_column: Any
    c_row: Any
    c_column: Any
    k: int


def names(record: Matrices, codes: Any = None) -> Names:
    """The record's own maps; for sparse A in the columns that `codes`, the metadata, give its kept elements."""
    found: dict[str, Any] = {}
    for role in ("A", "B", "C", "D"):
        *product, row, column = (x.ravel() for x in record.index(role))
        rows, columns = record.operand_shape(role)[-2:]
        first = product[0] if product else 0
        found[role] = (row + rows * first, column + columns * first)
    a_row, a_k = found["A"]
    if isinstance(record, SparseMma):
        a_k = record.sparsity.columns_of(codes)[a_row, a_k]
    dense = dense_of(record)
    return Names(a_row, a_k, *found["B"], *found["D"], *found["C"], k=dense.k * dense.products)


def read_relation(record: Matrices, device: Device, extra: dict[str, Any]) -> Any:
    """Integers ``[slots of B, slots of D]``: the slot of A that meets b in d; NOTHING, or UNREADABLE."""
    dense = dense_of(record)
    sizes = {role: record.index(role)[0].shape for role in ("A", "B")}
    count_a, count_b = (int(sizes[role][0] * sizes[role][1]) for role in ("A", "B"))
    one = bits_of(np.ones(()), dense.b)
    hot = (np.eye(count_b, dtype=np.uint64) * one).reshape(count_b, *sizes["B"])
    b_words = slot_registers(
        record, "B", np.concatenate([np.zeros_like(hot[:1]), hot])
    )  # first: no slot is hot
    numbers: Any = np.arange(count_a)
    base, offset = _alphabet(dense.a)
    present = _outputs(record, device, np.ones(count_a), b_words, extra)
    clear = np.isin(present, (0, 1))
    found, place = np.zeros(present.shape, np.int64), 1
    while place < count_a:
        digit = _outputs(record, device, numbers // place % base + offset, b_words, extra) - offset
        clear &= (present == 0) | (digit == np.rint(digit)) & (digit >= 0) & (digit < base)
        found += np.where(clear, digit, 0).astype(np.int64) * place
        place *= base
    clear &= (found < count_a) | (present == 0)
    return np.where(clear, np.where(present == 1, found, NOTHING), UNREADABLE)


def _alphabet(element: str) -> tuple[int, int]:
    """How many different digits to use of a type, and the number that stands for 0; all exact, as are their sums."""
    kind = dtype(element)
    if kind.bits == 1:
        return 2, 0
    if kind.bits == 4:
        return 4, 1
    return (8, 1) if element == "float8_e5m2" else (16, 1)


def _outputs(record: Matrices, device: Device, a: Any, b_words: Any, extra: dict[str, Any]) -> Any:
    """What each hot slot of B adds to D, numbers ``[slots of B, slots of D]``; `a` by slot of A.

    xor products are turned into and-products: ``a ^ 1 - a ^ 0 = 1 - 2 a``, and 0 where nothing meets.
    """
    dense = dense_of(record)
    warps = b_words.shape[0]
    bits = bits_of(a, dense.a).reshape(1, *record.index("A")[0].shape)
    a_words = slot_registers(record, "A", bits)
    values = {"A": np.repeat(a_words, warps, axis=0), "B": b_words}
    values |= {k: np.repeat(v, warps, axis=0) for k, v in extra.items()}
    zero = _zeros(record, "C", warps)
    values["D" if in_place(record) else "C"] = zero
    d = device.run(record.instruction, values)["D"]
    numbers = slot_numbers(record, "D", d).reshape(warps, -1)
    if dense.operation != "xor":
        return numbers[1:] - numbers[0]
    change = numbers[1:] - numbers[0]
    return np.where(np.abs(change) == 1, (1 - change) / 2, np.where(change == 0, 0, np.nan))


def _zeros(record: Matrices, role: Role, warps: int) -> Any:
    return slot_registers(record, role, np.zeros((warps, *record.index(role)[0].shape), np.uint64))


def expected_relation(names: Names) -> Any:
    """What the record's maps say the relation is; a slot of A by its row and place along K."""
    slot = np.full((names.a_row.max() + 1, names.k), NOTHING)
    slot[names.a_row, names.a_k] = np.arange(names.a_row.size)
    met = slot[names.d_row[None, :], names.b_k[:, None]]
    return np.where(names.b_column[:, None] == names.d_column[None, :], met, NOTHING)


def read_pairs(record: Matrices, device: Device, extra: dict[str, Any]) -> Any:
    """For every slot of D the slot of C that it adds, when A and B are zero; UNREADABLE where it is none."""
    dense = dense_of(record)
    shape = record.index("C")[0].shape
    count = shape[0] * shape[1]
    c = slot_registers(record, "C", bits_of(1.0 + np.arange(count), dense.c).reshape(1, *shape))
    values = {role: _zeros(record, role, 1) for role in ("A", "B")}
    values |= {**extra, "D" if in_place(record) else "C": c}
    numbers = slot_numbers(record, "D", device.run(record.instruction, values)["D"]).ravel() - 1
    good = (numbers == np.rint(numbers)) & (numbers >= 0) & (numbers < count)
    return np.where(good, numbers, UNREADABLE).astype(np.int64)


def probe(record: Matrices, device: Device, seed: int = 0) -> dict[str, Any]:
    """By operand: whether the map that was read is the record's, at every element; and whether the relation is."""
    rng = np.random.default_rng(seed)
    verdicts: dict[str, Any] = {}
    exact = True
    for _ in range(2 if isinstance(record, SparseMma) else 1):
        codes, extra = _metadata(record, rng)
        named = names(record, codes)
        hits, pairs = read_relation(record, device, extra), read_pairs(record, device, extra)
        exact &= bool((hits == _expected(record, named, codes)).all())
        for role, found in _read_maps(record, named, hits, pairs).items():
            if verdicts.get(role, {"right": True})["right"]:
                verdicts[role] = found
    verdicts["relation"] = {"right": exact}
    verdicts["right"] = all(v["right"] for v in verdicts.values())
    return verdicts


def _metadata(record: Matrices, rng: Any) -> tuple[Any, dict[str, Any]]:
    """Random valid codes ``[16, groups]`` and the operands that say so; lanes that don't contribute hold anything."""
    if not isinstance(record, SparseMma):
        return None, {}
    codes, words = random_metadata(record, rng, 1)
    return codes[0], {"e": words}


def random_metadata(record: SparseMma, rng: Any, warps: int) -> tuple[Any, Any]:
    """Codes ``[warps, 16, groups]`` among those with a meaning, and the metadata registers ``[warps, 32, 1]``."""
    valid = np.array(record.sparsity.valid_codes(record.ordered), np.uint8)
    codes = valid[rng.integers(0, valid.size, (warps, 16, record.sparsity.groups))]
    words = record.sparsity.words_of(codes, record.selector)
    full = record.sparsity.words_of(np.full_like(codes, 15), record.selector)
    noise = rng.integers(0, 2**32, words.shape, dtype=np.uint32)
    return codes, (words | noise & ~full)[..., None]


def _expected(record: Matrices, named: Names, codes: Any) -> Any:
    """The relation by the maps; for a sparse record by its own way of writing A out."""
    if not isinstance(record, SparseMma):
        return expected_relation(named)
    numbers = np.empty(record.operand_shape("A"), np.uint64)
    numbers[record.index("A")] = 1 + np.arange(numbers.size, dtype=np.uint64).reshape(
        record.index("A")[0].shape
    )
    whole = decompress(numbers, codes, record.sparsity, record.ordered).astype(np.int64) - 1
    met = whole[named.d_row[None, :], named.b_k[:, None]]
    return np.where(named.b_column[:, None] == named.d_column[None, :], met, NOTHING)


def _read_maps(record: Matrices, named: Names, hits: Any, pairs: Any) -> dict[str, Any]:
    b, d = np.nonzero(hits >= 0)
    a = hits[b, d]
    read = {
        "A": (_majority(a, named.d_row[d], named.a_row.size), _majority(a, named.b_k[b], named.a_row.size)),
        "B": (_majority(b, named.a_k[a], named.b_k.size), _majority(b, named.d_column[d], named.b_k.size)),
        "D": (
            _majority(d, named.a_row[a], named.d_row.size),
            _majority(d, named.b_column[b], named.d_row.size),
        ),
    }
    c_row, c_column = np.full(named.c_row.size, NOTHING), np.full(named.c_row.size, NOTHING)
    good = pairs >= 0
    c_row[pairs[good]], c_column[pairs[good]] = (x[good] for x in read["D"])
    read["C"] = (c_row, c_column)
    stated = {
        "A": (named.a_row, named.a_k),
        "B": (named.b_k, named.b_column),
        "C": (named.c_row, named.c_column),
        "D": (named.d_row, named.d_column),
    }
    slots = {role: record.index(role)[0].shape[1] for role in ("A", "B", "C", "D")}
    return {role: _verdict(stated[role], read[role], slots[role]) for role in ("A", "B", "C", "D")}


def _majority(keys: Any, labels: Any, count: int) -> Any:
    """For each key below `count` the label that it has most often; NOTHING where it has none."""
    if not keys.size:
        return np.full(count, NOTHING)
    many = int(labels.max()) + 1
    table = np.bincount(keys * many + labels, minlength=count * many).reshape(count, many)
    return np.where(table.any(axis=1), table.argmax(axis=1), NOTHING)


def _verdict(stated: tuple[Any, Any], read: tuple[Any, Any], slots: int) -> dict[str, Any]:
    wrong = np.nonzero((stated[0] != read[0]) | (stated[1] != read[1]))[0]
    out: dict[str, Any] = {"right": not wrong.size, "elements": int(stated[0].size)}
    if wrong.size:
        out["wrong"] = int(wrong.size)
        out["first"] = [
            {
                "lane": int(i) // slots,
                "slot": int(i) % slots,
                "read": [int(x[i]) for x in read],
                "record": [int(x[i]) for x in stated],
            }
            for i in wrong[:4]
        ]
    return out


__all__ = ["NOTHING", "UNREADABLE", "Names", "names", "probe", "random_metadata"]
