"""Structured sparsity: metadata against the PTX ISA's figures, compressing and back, what breaks the pattern."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations, permutations, product
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lowering.isa.sparse import MMA_SP, SparseMma, Sparsity, compress, decompress
from lowering.matrix_fragments import sparse_layout
from tilelayout import LayoutError, laneid

from . import matrix_isa

SHAPES = {  # (k, bits of an element in a register) -> groups
    (16, 16): Sparsity(16, 4, 2),
    (32, 16): Sparsity(32, 4, 2),
    (8, 32): Sparsity(8, 2, 2),
    (16, 32): Sparsity(16, 2, 2),
    (32, 8): Sparsity(32, 4, 1),
    (64, 8): Sparsity(64, 4, 1),
    (64, 4): Sparsity(64, 8, 1),
    (128, 4): Sparsity(128, 8, 1),
}
by_shape = pytest.mark.parametrize("shape", SHAPES, ids=lambda s: f"k{s[0]}b{s[1]}")
SELECTORS = {
    (16, 16): 4,
    (8, 32): 4,
    (32, 16): 2,
    (16, 32): 2,
    (32, 8): 2,
    (64, 4): 2,
    (64, 8): 1,
    (128, 4): 1,
}


def test_every_record_has_one_of_the_shapes() -> None:
    found = {(r.dense.k, 32 // r.dense.k_pack): r.sparsity for r in MMA_SP}
    assert found == SHAPES


@by_shape
def test_metadata_lies_where_the_figures_have_it(shape: tuple[int, int]) -> None:
    sparsity = SHAPES[shape]
    assert sparsity.selectors == SELECTORS[shape]
    for selector in range(sparsity.selectors):
        wanted = matrix_isa.metadata(*shape, selector)
        assert len(set(wanted.values())) == len(wanted) == 16 * sparsity.groups
        for (row, column), (lane, bit) in wanted.items():
            assert sparsity.place(row, column // sparsity.group, selector) == (lane, bit // 4)


@pytest.mark.parametrize("record", {r.sparsity: r for r in MMA_SP}.values(), ids=lambda r: r.name)
def test_the_layout_of_metadata_says_the_same(record: SparseMma) -> None:
    for selector in range(record.sparsity.selectors):
        one = replace(record, selector=selector)
        layout = sparse_layout(one, "metadata")
        wanted = matrix_isa.metadata(record.dense.k, 32 // record.dense.k_pack, selector)
        for (row, column), (lane, bit) in wanted.items():
            at = layout.apply(row, column // record.sparsity.group, shape=(16, record.sparsity.groups))
            assert (at.get(laneid, 0), at.get("m", 0)) == (lane, bit // 4)


@by_shape
@settings(max_examples=20)  # each covers every group
@given(data=st.data())
def test_codes_and_words_are_the_same_thing(shape: tuple[int, int], data: Any) -> None:
    sparsity = SHAPES[shape]
    selector = data.draw(st.integers(0, sparsity.selectors - 1))
    seed = data.draw(st.integers(0, 2**32 - 1))
    codes = np.random.default_rng(seed).integers(0, 16, (3, 16, sparsity.groups), dtype=np.uint8)
    words = sparsity.words_of(codes, selector)
    assert (sparsity.codes_of(words, selector) == codes).all()
    for (row, column), (lane, bit) in matrix_isa.metadata(*shape, selector).items():
        assert (words[:, lane] >> np.uint32(bit) & 15 == codes[:, row, column // sparsity.group]).all()
    # Lanes that do not contribute may hold anything.
    contributing = {lane for lane, _ in matrix_isa.metadata(*shape, selector).values()}
    noise = words.copy()
    noise[:, [lane for lane in range(32) if lane not in contributing]] = 0xDEADBEEF
    assert (sparsity.codes_of(noise, selector) == codes).all()


# --- compressing ------------------------------------------------------------------------------------


def patterns(sparsity: Sparsity) -> list[tuple[int, ...]]:
    """Every allowed set of columns of a group that may be other than zero."""
    if sparsity.group == 2:
        return [(0,), (1,)]
    unit = sparsity.group // 4
    return [tuple([u * unit + i for u in pair for i in range(unit)]) for pair in combinations(range(4), 2)]


CODES = {(0, 1): 0b0100, (0, 2): 0b1000, (1, 2): 0b1001, (0, 3): 0b1100, (1, 3): 0b1101, (2, 3): 0b1110}
"""The meaningful indices of the PTX ISA's "Sparse matrix storage", by the two units that are kept."""


@by_shape
def test_every_pattern_of_a_group_is_kept_and_comes_back(shape: tuple[int, int]) -> None:
    sparsity = SHAPES[shape]
    everything = patterns(sparsity)
    for start in range(len(everything)):
        matrix = np.zeros((16, sparsity.k), np.int8)
        chosen = {}
        for row in range(16):
            for group in range(sparsity.groups):
                pattern = everything[(start + row + group) % len(everything)]
                chosen[row, group] = pattern
                matrix[row, [group * sparsity.group + c for c in pattern]] = (
                    1 + np.arange(len(pattern)) + group % 100
                )
        values, codes = compress(matrix, sparsity)
        assert values.shape == (16, sparsity.k // 2)
        assert values.dtype == np.int8
        for (row, group), pattern in chosen.items():
            kept = values[row, group * len(pattern) : (group + 1) * len(pattern)]
            assert kept.tolist() == matrix[row, [group * sparsity.group + c for c in pattern]].tolist()
            if sparsity.group == 2:
                assert codes[row, group] == {(0,): 0b0100, (1,): 0b1110}[pattern]
            else:
                unit = sparsity.group // 4
                assert codes[row, group] == CODES[tuple(sorted({c // unit for c in pattern}))]  # type: ignore[index]
        assert (decompress(values, codes, sparsity) == matrix).all()


@by_shape
@settings(max_examples=20)  # each covers every group
@given(data=st.data())
def test_sparser_matrices_come_back_too(shape: tuple[int, int], data: Any) -> None:
    sparsity = SHAPES[shape]
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    everything = patterns(sparsity)
    matrix = np.zeros((16, sparsity.groups, sparsity.group), np.float32)
    for at in product(range(16), range(sparsity.groups)):
        pattern = everything[rng.integers(len(everything))]
        matrix[at][list(pattern)] = rng.integers(-2, 3, len(pattern))  # often zero
    matrix = matrix.reshape(16, sparsity.k)
    values, codes = compress(matrix, sparsity)
    sparsity.check_codes(codes)
    assert (decompress(values, codes, sparsity) == matrix).all()
    assert np.count_nonzero(values) == np.count_nonzero(matrix)


@pytest.mark.parametrize(
    "element", [ml_dtypes.float4_e2m1fn, ml_dtypes.int4, ml_dtypes.float8_e4m3fn, ml_dtypes.bfloat16]
)
def test_narrow_types_of_ml_dtypes_can_be_compressed(element: Any) -> None:
    sparsity = SHAPES[128, 4]
    matrix = np.zeros((16, 128), element)
    matrix[:, 2::8], matrix[:, 7::8] = 2, -1
    values, codes = compress(matrix, sparsity)
    assert values.dtype == np.dtype(element)
    assert set(codes.ravel().tolist()) == {0b1101}
    assert (decompress(values, codes, sparsity).astype(float) == matrix.astype(float)).all()


@by_shape
def test_a_group_with_too_much_in_it_is_refused_by_row_and_group(shape: tuple[int, int]) -> None:
    sparsity = SHAPES[shape]
    group = sparsity.groups - 1
    unit = max(1, sparsity.group // 4)
    matrix = np.zeros((16, sparsity.k))
    matrix[
        11, group * sparsity.group + np.arange(0, sparsity.group, unit)[: sparsity.group // (2 * unit) + 1]
    ] = 1
    first, last = group * sparsity.group, (group + 1) * sparsity.group - 1
    with pytest.raises(LayoutError, match=rf"row 11, group {group} \(columns {first} to {last}\)"):
        compress(matrix, sparsity)


def test_four_bit_elements_are_kept_in_pairs() -> None:
    sparsity = SHAPES[64, 4]
    matrix = np.zeros((16, 64), np.int8)
    matrix[0, [0, 2, 4]] = 1  # three elements, but in three pairs
    with pytest.raises(LayoutError, match=r"row 0, group 0 .* has 3 pairs of columns other than zero"):
        compress(matrix, sparsity)
    matrix[0, 4] = 0
    matrix[0, [1, 3]] = 1  # four elements in two pairs
    values, codes = compress(matrix, sparsity)
    assert codes[0, 0] == 0b0100
    assert values[0, :4].tolist() == [1, 1, 1, 1]


@by_shape
def test_codes_without_a_meaning_are_refused_by_row_and_group(shape: tuple[int, int]) -> None:
    sparsity = SHAPES[shape]
    good = np.full((16, sparsity.groups), 0b0100, np.uint8)
    values = np.zeros((16, sparsity.k // 2))
    allowed = {0b0100, 0b1110} if sparsity.group == 2 else set(CODES.values())
    swapped = {a | b << 2 for a, b in permutations(range(4), 2)}
    for code in range(16):
        codes = good.copy()
        codes[9, 1] = code
        for ordered in (True, False):
            if code in allowed or (not ordered and sparsity.group != 2 and code in swapped):
                decompress(values, codes, sparsity, ordered)
            else:
                columns = rf"\(columns {sparsity.group} to {2 * sparsity.group - 1}\)"
                with pytest.raises(LayoutError, match=rf"row 9, group 1 {columns}: code {code:#06b}"):
                    decompress(values, codes, sparsity, ordered)


def test_falling_indices_of_plain_metadata_exchange_the_kept_elements() -> None:
    sparsity = SHAPES[16, 16]
    values = np.arange(1, 129).reshape(16, 8)
    codes = np.full((16, 4), 0b0011, np.uint8)  # first kept element in column 3, second in column 0
    found = decompress(values, codes, sparsity, ordered=False)
    assert found[0].tolist() == [2, 0, 0, 1, 4, 0, 0, 3, 6, 0, 0, 5, 8, 0, 0, 7]


def test_shapes_that_do_not_fit_are_refused() -> None:
    sparsity = SHAPES[16, 16]
    with pytest.raises(LayoutError, match=r"A has shape \(16, 32\), this sparsity is of \(16, 16\)"):
        compress(np.zeros((16, 32)), sparsity)
    with pytest.raises(LayoutError, match="wanted"):
        decompress(np.zeros((16, 16)), np.zeros((16, 4), np.uint8), sparsity)
    for k, group, rows in ((24, 4, 2), (16, 3, 1), (16, 16, 1), (256, 4, 1)):
        with pytest.raises(LayoutError, match="no metadata for K"):
            Sparsity(k, group, rows)
    with pytest.raises(LayoutError, match="no group 4 in row 0"):
        sparsity.place(0, 4)


@by_shape
def test_a_selector_that_names_no_lanes_is_refused(shape: tuple[int, int]) -> None:
    sparsity = SHAPES[shape]
    for selector in (-1, sparsity.selectors):
        with pytest.raises(
            LayoutError, match=f"sparsity selector {selector} with {sparsity.lanes} of 4 lanes"
        ):
            sparsity.place(0, 0, selector)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda s: Sparsity("16", 4, 2), "Sparsity: k must be an integer, got str '16'"),
        (lambda s: Sparsity(16, 4, 3), "Sparsity: rows_of_word must be 1 or 2, got 3"),
        (lambda s: s.check_selector("0"), "sparsity selector must be an integer, got str '0'"),
        (lambda s: s.codes_of("x"), "words are integers"),
        (lambda s: s.codes_of(np.zeros(3, np.uint32)), r"words have shape \(3,\), wanted \(32,\)"),
        (lambda s: s.words_of(np.zeros((16, 7), np.uint8)), r"codes have shape \(16, 7\), wanted \(16, 8\)"),
        (lambda s: s.words_of(np.full((16, 8), 16)), "codes have 4 bits, got 16 to 16"),
        (lambda s: s.words_of(np.full((16, 8), -1)), "codes have 4 bits, got -1 to -1"),
        (lambda s: s.check_codes(np.full((16, 8), 4.0)), "codes are integers, got float64"),
        (lambda s: compress(np.zeros((16, 32)), 2), "compress: a Sparsity is expected, got 2"),
        (lambda s: decompress(np.zeros((16, 16)), np.zeros((16, 8)), s), "codes are integers, got float64"),
    ],
)
def test_what_is_no_metadata_is_refused(call: Callable[[Sparsity], object], words: str) -> None:
    with pytest.raises(LayoutError, match=words):
        call(Sparsity(32, 4, 2))
