"""The best staging: it picks what case C28 knows to be free, and every figure in its table is a bank report."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from property_tests.analysis.memory_tiles import Xored, scalar_accesses
from tilelayout import LayoutError, R, S, TileLayout, laneid
from tilelayout.analysis import Access, StagingPlan, bank_conflicts, best_staging
from tilelayout.analysis.staging import Candidate


def parameters(candidate: Candidate) -> tuple[int, int, int] | None:
    found = candidate.swizzle
    return None if found is None else (found.bits, found.base, found.shift)


def figures(plan: StagingPlan) -> dict[object, int]:
    return {parameters(c) or c.padding: c.total for c in plan.candidates}


def every_matrix(columns: int) -> list[Access]:
    return [Access.matrices((8, columns), [(0, c)]) for c in range(0, columns, 8)]


# --- the figures --------------------------------------------------------------------------------


@pytest.mark.parametrize(("columns", "swizzle"), [(32, (2, 3, 3)), (64, (3, 3, 3)), (128, (3, 3, 4))])
def test_c28_ldmatrix_is_made_free(columns: int, swizzle: tuple[int, int, int]) -> None:
    accesses = every_matrix(columns)
    plan = best_staging((8, columns), 16, accesses)
    assert plan.best.is_free
    assert parameters(plan.best) == swizzle
    assert plan.best.size == 8 * columns
    assert all(bank_conflicts(plan.layout, access, 16).degree == 1 for access in accesses)


def test_c28_the_other_figures_are_in_the_table() -> None:
    narrow = figures(best_staging((64, 32), 16, [Access.matrices((64, 32))]))
    assert (narrow[0], narrow[2, 3, 3], narrow[3, 3, 4]) == (4, 1, 2)
    wide = figures(best_staging((16, 128), 16, [Access.matrices((16, 128))]))
    assert (wide[0], wide[3, 3, 3], wide[3, 3, 4]) == (8, 2, 1)


def test_c28_a_column_of_words_is_made_free() -> None:
    column, row = Access.column((32, 32)), Access.rows((32, 32), kind="store")
    plan = best_staging((32, 32), 32, [column, row])
    assert parameters(plan.best) == (5, 0, 5)
    assert figures(plan)[3, 0, 5] == 4 + 1
    assert figures(plan)[2, 0, 5] == 8 + 1
    assert figures(plan)[0] == 32 + 1
    assert figures(plan)[1] == 2  # padded by one word: free too, and more memory
    assert [c.padding for c in plan.candidates if c.is_free and c.swizzle is None] == list(range(1, 33, 2))


def test_a_tile_without_conflicts_stays_plain() -> None:
    plan = best_staging((8, 8), 16, [Access.matrices((8, 8))])
    assert parameters(plan.best) is None
    assert plan.best.padding == 0
    assert plan.layout == TileLayout(S[8, 8])
    assert plan.alignment == 16


def test_a_gemm_tile_stored_by_rows_and_read_by_ldmatrix() -> None:
    shape = (128, 64)
    accesses = [
        Access.rows(shape, vector=8, kind="store"),
        Access.matrices(shape, [(0, 0), (8, 0), (0, 8), (8, 8)]),
    ]
    plan = best_staging(shape, 16, accesses)
    assert parameters(plan.best) == (3, 3, 3)
    assert plan.alignment == 1024
    assert plan.best.wavefronts == (4, 4)
    assert str(plan).splitlines()[1].split() == "Swizzle(3, 3, 3) 4 + 4 = 8 wavefronts, 8192 elements".split()


def test_a_row_that_no_vector_divides_is_padded() -> None:
    plan = best_staging((8, 20), 16, [Access.matrices((8, 20))])
    assert plan.best.padding == 4
    assert {c.swizzle for c in plan.candidates} == {None}


def test_another_layout_gets_swizzles_only() -> None:
    columns_first = TileLayout(S[(64, 8) : (1, 64)])
    accesses = [Access((64, 8), [64 * c + lane for lane in range(8)]) for c in range(8)]
    plan = best_staging((64, 8), 128, accesses, layout=columns_first)
    assert plan.plain == columns_first
    assert {c.padding for c in plan.candidates} == {0}
    assert plan.best.is_free


# --- the table is what bank_conflicts says ------------------------------------------------------


@settings(max_examples=25)
@given(st.data(), st.sampled_from([8, 16, 32]))
def test_every_candidate_is_counted_right_and_none_is_missed(data: st.DataObject, bits: int) -> None:
    shape = data.draw(st.sampled_from([(4, 16), (8, 12), (16, 16), (32, 8), (2, 4, 16)]))
    accesses = data.draw(st.lists(scalar_accesses(shape), min_size=1, max_size=2))
    plan = best_staging(shape, bits, accesses)
    order = [(c.total, c.size, parameters(c) or (0, 0, 0)) for c in plan.candidates]
    assert order == sorted(order)
    plain = TileLayout(S[shape])
    for candidate in plan.candidates[:: max(1, len(plan.candidates) // 12)]:
        swizzle = parameters(candidate)
        pitch = shape[-1] + candidate.padding
        layout = Xored(plain, *swizzle) if swizzle else TileLayout(S[shape : _strides(shape, pitch)])
        reports = [bank_conflicts(layout, access, bits) for access in accesses]
        assert candidate.wavefronts == tuple(report.wavefronts for report in reports)
        assert candidate.free == tuple(len(report.phases) for report in reports)
        assert candidate.size == int(layout.table(shape)["m"].max()) + 1
    tried = {parameters(c) for c in plan.candidates}
    line, last = 1024 // bits, plain.size() - 1
    every = ((b, m, s) for b in range(1, 9) for m in range(9) for s in range(b, 12))
    for b, m, s in every:  # by enumeration: those that stay within a line and do something with their top bit
        if 1 << m + b <= line and last >> m + b + s - 1 > 0:
            assert (b, m, s) in tried, (b, m, s)


def _strides(shape: tuple[int, ...], pitch: int) -> tuple[int, ...]:
    strides = [1, pitch]
    for n in reversed(shape[1:-1]):
        strides.append(strides[-1] * n)
    return tuple(reversed(strides[: len(shape)]))


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: best_staging((8, 8), 16, []), "no access is given"),
        (lambda: best_staging((8, 8), 16, [Access.matrices((8, 16))]), "no Access to a tile"),
        (lambda: best_staging((8, 8), 16, ["ldmatrix"]), "no Access to a tile"),
        (lambda: best_staging((8, 8), 12, [Access.matrices((8, 8))]), "12 bits is not a power of two"),
        (
            lambda: best_staging((8, 8), 32, [Access.matrices((8, 8))]),
            "one lane accesses|takes rows of 16 bytes",
        ),
        (
            lambda: best_staging((8, 20), 16, [Access.matrices((8, 20))], padding=False),
            "lane 1 accesses 16 bytes at byte 40",
        ),
        (
            lambda: best_staging(8, 32, [Access(8, [0])], layout=TileLayout(S[8 : 1 @ laneid])),
            "only m is an address",
        ),
        (lambda: best_staging(8, 32, [Access(8, [0])], layout=TileLayout(S[8] + R[2:8])), "has a replica"),
        (lambda: best_staging(8, 32, [Access(8, [0])], layout=TileLayout(S[8] - 1)), "reaches position -1"),
        (lambda: best_staging((8, 8), 16, 5), "must be a sequence"),
    ],
)
def test_refusals_say_what_is_wrong(ask: object, message: str) -> None:
    with pytest.raises(LayoutError, match=message):
        ask()  # type: ignore[operator]
