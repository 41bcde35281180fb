"""Bank conflicts: the figures of case C28, and a count over every byte of every phase."""

from __future__ import annotations

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from property_tests.analysis.memory_tiles import Xored, phases, rounds, row_major, scalar_accesses, swizzles
from tilelayout import LayoutError, R, S, TileLayout, laneid
from tilelayout.analysis import Access, bank_conflicts

# --- the figures --------------------------------------------------------------------------------


@pytest.mark.parametrize(("pitch", "degree"), [(32, 32), (64, 32), (16, 16), (33, 1)])
def test_c28_a_column_of_words(pitch: int, degree: int) -> None:
    columns = min(pitch, 32)
    report = bank_conflicts(row_major(32, columns, pitch), Access.column((32, columns)), 32)
    assert report.degree == report.wavefronts == degree
    assert report.is_free == (degree == 1)


@pytest.mark.parametrize(("swizzle", "degree"), [((5, 0, 5), 1), ((3, 0, 5), 4), ((2, 0, 5), 8)])
def test_c28_a_swizzled_column_of_words(swizzle: tuple[int, int, int], degree: int) -> None:
    assert bank_conflicts(Xored(row_major(32, 32), *swizzle), Access.column((32, 32)), 32).degree == degree


@pytest.mark.parametrize(
    ("pitch", "swizzle", "degree"),
    [
        (32, None, 4), (32, (2, 3, 3), 1), (32, (3, 3, 4), 2),
        (64, None, 8), (64, (3, 3, 3), 1),
        (72, None, 1), (72, (3, 3, 3), 8),
        (128, None, 8), (128, (3, 3, 3), 2), (128, (3, 3, 4), 1),
    ],
)  # fmt: skip
def test_c28_a_phase_of_ldmatrix(pitch: int, swizzle: tuple[int, int, int] | None, degree: int) -> None:
    """Eight rows of 16 bytes of halves; the worst of all places of the matrix, as a kernel will use them all."""
    columns = pitch // 8 * 8 if pitch != 72 else 64
    plain = row_major(8, columns, pitch)
    layout = plain if swizzle is None else Xored(plain, *swizzle)
    found = {
        bank_conflicts(layout, Access.matrices((8, columns), [(0, c)]), 16).degree
        for c in range(0, columns, 8)
    }
    assert max(found) == degree


def test_a_contiguous_128_bit_access_is_free() -> None:
    report = bank_conflicts(row_major(4, 32), Access.rows((4, 32), vector=4), 32)
    assert (report.degree, report.wavefronts, len(report.phases)) == (1, 4, 4)
    assert [phase.lanes for phase in report.phases] == [tuple(range(k, k + 8)) for k in (0, 8, 16, 24)]


def test_a_contiguous_64_bit_access_is_free_in_two_half_warps() -> None:
    report = bank_conflicts(row_major(2, 32), Access.rows((2, 32), vector=2), 32)
    assert [phase.lanes for phase in report.phases] == [tuple(range(16)), tuple(range(16, 32))]
    assert report.degree == 1


def test_one_word_read_by_all_is_a_broadcast() -> None:
    assert bank_conflicts(row_major(1, 64), Access((1, 64), [5] * 32), 32).degree == 1
    assert bank_conflicts(row_major(1, 64), Access((1, 64), [5, 37] * 16), 32).degree == 2
    assert bank_conflicts(row_major(1, 64), Access.rows((1, 64)), 16).degree == 1  # two halves a word


def test_x4_has_four_phases_and_x1_one() -> None:
    corners = [(0, 0), (8, 0), (0, 8), (8, 8)]
    layout = row_major(16, 64)
    assert [
        bank_conflicts(layout, Access.matrices((16, 64), corners[:n]), 16).wavefronts for n in (1, 2, 4)
    ] == [8, 16, 32]
    store = Access.matrices((16, 64), corners, kind="stmatrix")
    assert bank_conflicts(layout, store, 16).wavefronts == 32


def test_the_lanes_are_named() -> None:
    report = bank_conflicts(row_major(8, 32), Access.matrices((8, 32)), 16)
    (phase,) = report.phases
    assert [(c.banks, c.lanes, c.addresses, c.ways) for c in phase.conflicts] == [
        ((0, 1, 2, 3), (0, 2, 4, 6), (0, 128, 256, 384), 4),
        ((16, 17, 18, 19), (1, 3, 5, 7), (64, 192, 320, 448), 4),
    ]
    assert str(report).splitlines() == [
        "ldmatrix, 8 lanes of 16 bytes: 4-way conflicts, 4 wavefronts where 1 would do",
        "lanes 0-7: 4-way",
        "  banks 0-3: lane 0 at 0, lane 2 at 128, lane 4 at 256, lane 6 at 384 (4-way)",
        "  banks 16-19: lane 1 at 64, lane 3 at 192, lane 5 at 320, lane 7 at 448 (4-way)",
    ]


def test_the_base_moves_banks_and_only_its_rest_matters() -> None:
    """Two words in neighboring banks are not apart by the base; an offset that differs by lines changes nothing."""
    access = Access.column((32, 32))
    reports = [bank_conflicts(row_major(32, 32, 33), access, 32, base=base) for base in (0, 4, 1024)]
    assert {report.degree for report in reports} == {1}
    moved = bank_conflicts(row_major(32, 32), access, 32, base=4)
    assert moved.phases[0].conflicts[0].banks == (1,)
    assert moved.phases[0].conflicts[0].addresses[:2] == (4, 132)


# --- against a count over bytes -----------------------------------------------------------------


@given(st.data(), st.sampled_from([8, 16, 32, 64, 128]), st.sampled_from([0, 16, 48, 128]))
def test_scalar_accesses_agree_with_the_byte_count(data: st.DataObject, bits: int, base: int) -> None:
    rows, columns = data.draw(st.integers(1, 8)), data.draw(st.sampled_from([8, 12, 16, 33, 64]))
    plain = row_major(rows, columns, columns + data.draw(st.integers(0, 9)))
    layout = Xored(plain, *data.draw(swizzles())) if data.draw(st.booleans()) else plain
    access = data.draw(scalar_accesses((rows, columns)))
    check(layout, access, bits, base)


@given(st.data(), st.sampled_from([(8, 16), (16, 8), (16, 4), (16, 2), (32, 2), (32, 4), (4, 8), (4, 2)]))
def test_vector_accesses_agree_with_the_byte_count(data: st.DataObject, kind: tuple[int, int]) -> None:
    bits, vector = kind
    rows, columns = data.draw(st.integers(1, 32)), vector * data.draw(st.sampled_from([1, 2, 4, 8, 9]))
    pitch = columns + vector * data.draw(st.integers(0, 3))
    plain = row_major(rows, columns, pitch)
    low = vector.bit_length() - 1
    bits_, base, shift = data.draw(swizzles())
    layout = Xored(plain, bits_, base + low, shift) if data.draw(st.booleans()) else plain
    count = rows * columns // vector
    starts = data.draw(st.lists(st.one_of(st.none(), st.integers(0, count - 1)), max_size=31))
    lanes = [None if x is None else range(x * vector, (x + 1) * vector) for x in [*starts, 0]]
    check(layout, Access((rows, columns), lanes), bits, 0)


@given(st.data(), st.sampled_from([1, 2, 4]), st.sampled_from(["ldmatrix", "stmatrix"]))
def test_matrix_accesses_agree_with_the_byte_count(data: st.DataObject, count: int, kind: str) -> None:
    columns = 8 * data.draw(st.integers(1, 12))
    layout = row_major(32, columns, columns + 8 * data.draw(st.integers(0, 2)))
    corner = st.tuples(st.integers(0, 24), st.integers(0, columns // 8 - 1).map(lambda c: 8 * c))
    corners = data.draw(st.lists(corner, min_size=count, max_size=count))
    check(layout, Access.matrices((32, columns), corners, kind=kind), 16, 0)  # type: ignore[arg-type]


def check(layout: object, access: Access, bits: int, base: int) -> None:
    where = layout.table(access.shape)["m"].reshape(-1)  # type: ignore[attr-defined]
    width = access.vector * bits // 8
    first = [None if not mine else int(where[mine[0]]) * bits // 8 + base for mine in access.lanes]
    expected = []
    for lanes in phases(len(access.lanes), width, access.is_matrix):
        active = [(first[lane], width) for lane in lanes if first[lane] is not None]
        if active:
            expected.append(rounds(active))
    report = bank_conflicts(layout, access, bits, base=base)  # type: ignore[arg-type]
    assert [phase.degree for phase in report.phases] == expected
    assert report.wavefronts == sum(expected)
    for phase in report.phases:
        assert bool(phase.conflicts) == (phase.degree > 1)
        assert max((c.ways for c in phase.conflicts), default=1) == phase.degree
        for conflict in phase.conflicts:
            assert conflict.addresses == tuple(first[lane] for lane in conflict.lanes)
            for bank in conflict.banks:
                touching = [
                    lane for lane in phase.lanes
                    if any(b // 4 % 32 == bank for b in range(first[lane], first[lane] + width))
                ]  # fmt: skip
                assert touching == list(conflict.lanes)


# --- refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layout", "access", "bits", "message"),
    [
        (
            TileLayout(S[(8, 8) : (1, 8)]),
            Access.column((8, 8), vector=4, lanes=8),
            32,
            "lane 0 are not neighbors",
        ),
        (
            row_major(8, 8, 9),
            Access.column((8, 8), vector=4, lanes=8),
            32,
            "lane 1 accesses 16 bytes at byte 36, which is not al",
        ),
        (
            Xored(row_major(8, 8), 1, 1, 3),
            Access.column((8, 8), vector=4, lanes=8),
            32,
            "lane 2 are not neighbors",
        ),
        (
            row_major(8, 8),
            Access((8, 8), [(0, 1, 2)]),
            32,
            "one lane accesses 1, 2, 4, 8 or 16 bytes.*access 1, 2, 4 elements",
        ),
        (row_major(8, 8), Access((8, 8), [0]), 4, "1 elements of 4 bits are 4 bits"),
        (
            row_major(8, 8),
            Access.matrices((8, 8)),
            32,
            "takes rows of 16 bytes, got 8 elements of 32 bits|one lane accesses",
        ),
        (row_major(8, 8), Access.matrices((8, 8)), 8, "takes rows of 16 bytes"),
        (row_major(8, 8), Access((8, 8), [0]), 6, "6 bits is not a power of two"),
        (row_major(8, 8), Access((8, 8), [0]), True, "must be an integer"),
        (row_major(4, 4), Access((8, 8), [0]), 32, "has 64 elements, the layout has 16"),
        (TileLayout(S[8 : 1 @ laneid]), Access(8, [0]), 32, "along laneid, and only m is an address"),
        (TileLayout(S[8] + R[2:8]), Access(8, [0]), 32, "has a replica"),
        (TileLayout(S[8] - 4), Access(8, [0]), 32, "lane 0 touches byte -16"),
    ],
)
def test_refusals_say_what_is_wrong(layout: object, access: Access, bits: int, message: str) -> None:
    with pytest.raises(LayoutError, match=message):
        bank_conflicts(layout, access, bits)  # type: ignore[arg-type]


def test_symbols_need_values() -> None:
    ld = sympy.Symbol("ld", integer=True, positive=True)
    tile, column = TileLayout(S[(32, 32) : (ld, 1)]), Access.column((32, 32))
    for layout in (tile, tile.swizzle(3, 2, 3)):
        with pytest.raises(LayoutError, match=r"^bank_conflicts: .*ld is symbolic \(remedy: .*subs"):
            bank_conflicts(layout, column, 32)
        with_value = bank_conflicts(layout, column, 32, assuming=sympy.Eq(ld, 36))
        assert with_value == bank_conflicts(layout.subs({ld: 36}), column, 32)
    resting = tile.canonicalize(assuming=sympy.Eq(ld, 33))
    assert bank_conflicts(resting, column, 32).is_free


def test_what_has_no_table_is_no_layout() -> None:
    with pytest.raises(LayoutError, match="anything with a table"):
        bank_conflicts(7, Access.column((32, 32)), 32)  # type: ignore[arg-type]
