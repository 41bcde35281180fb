"""Axes: one object a name, made on purpose, frozen; an unknown name is an error that suggests."""

from __future__ import annotations

import copy
import itertools
import keyword
import pickle
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilelayout
from tilelayout import Axis, Iter, LayoutError, S, TileLayout, axes, laneid, m, pid, register_axis, warpid
from tilelayout.axis import THREAD_HIERARCHY, axis
from tilelayout.errors import nearest

NAMES = "bx by bz cbx cby cbz tx warpid laneid wgid tid_in_wg wid_in_wg m P F Bank TCol TLane pid".split()


def test_an_axis_is_its_name() -> None:
    assert laneid == "laneid"
    assert laneid.name == "laneid"
    assert str(laneid) == "laneid"
    assert type(laneid.name) is str
    assert {laneid: 1}["laneid"] == 1
    assert [a.name for a in axes()][: len(NAMES)] == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_one_object_a_name(name: str) -> None:
    found = getattr(tilelayout, name)
    assert found is Axis(name) is axis(name)
    assert found is pickle.loads(pickle.dumps(found)) is copy.copy(found) is copy.deepcopy(found)
    assert Iter(2, 1, name).axis is found


def test_kinds() -> None:
    assert [a.kind for a in (laneid, m, pid)] == ["thread", "memory", "device"]
    assert [(a.is_thread(), a.is_memory()) for a in (laneid, m, pid)] == [
        (True, False),
        (False, True),
        (False, False),
    ]


def test_an_axis_is_frozen() -> None:
    for change in (lambda: setattr(laneid, "kind", "memory"), lambda: setattr(laneid, "new", 1)):
        with pytest.raises(AttributeError, match="frozen"):
            change()
    with pytest.raises(AttributeError, match="frozen"):
        del laneid.kind
    assert laneid.kind == "thread"


@pytest.mark.parametrize(
    ("typo", "meant"),
    [("lanid", "laneid"), ("warp_id", "warpid"), ("LaneId", "laneid"), ("bank", "Bank"), ("wg_id", "wgid")],
)
def test_a_typo_is_no_new_axis_and_the_nearest_name_is_suggested(typo: str, meant: str) -> None:
    before = axes()
    with pytest.raises(AttributeError, match=f"did you mean '{meant}'"):
        getattr(tilelayout, typo)
    for ask in (
        Axis,
        axis,
        lambda name: Iter(2, 1, name),
        lambda name: TileLayout(S[8]).span(name),
        lambda name: TileLayout.from_iters([(2, 1, name)]),
        lambda name: TileLayout.from_iters([(2, 1)], offset={name: 1}),
        lambda name: TileLayout.parse(f"S[8 : 1 @ {name}]"),
    ):
        with pytest.raises(LayoutError, match=f"did you mean '{meant}'"):
            ask(typo)
    assert axes() == before


@pytest.mark.parametrize("name", ["foo", "FOO", "zzz", "q", "mmm", "lemon", ""])
def test_what_resembles_no_axis_is_told_all_of_them(name: str) -> None:
    with pytest.raises(LayoutError) as refused:
        axis(name)
    assert "did you mean" not in str(refused.value)
    assert all(known in str(refused.value) for known in ("laneid", "warpid", "m", "F"))


@given(st.text("abc", max_size=5), st.lists(st.text("abcX", min_size=1, max_size=7), min_size=1, max_size=5))
def test_what_is_suggested_has_more_than_half_of_the_letters_in_order(name: str, known: list[str]) -> None:
    """The letters in common are a common subsequence, whose greatest length is found here by its definition."""
    said = nearest(name, known)
    if said.startswith("did you mean"):
        close = said.removeprefix("did you mean '").removesuffix("'?").lower()
        assert close in {k.lower() for k in known}
        orders = (itertools.combinations(name, n) for n in range(len(name), len(name) // 2, -1))
        assert any(_in_order("".join(some), close) for order in orders for some in order)
    else:
        assert said == f"known: {', '.join(known)}"
        assert name not in [k.lower() for k in known if name]


def _in_order(letters: str, text: str) -> bool:
    rest = iter(text)
    return all(x in rest for x in letters)


@pytest.mark.parametrize("name", [None, 3, 1.5, b"laneid", ("laneid",), [], object()])
def test_only_a_string_names_an_axis(name: object) -> None:
    with pytest.raises(LayoutError, match="unknown axis"):
        Iter(2, 1, name)


def test_a_new_axis_is_registered_on_purpose() -> None:
    rank = register_axis("test_rank", "device")
    assert rank is register_axis("test_rank", "device") is Axis("test_rank")
    assert rank in axes()
    assert tilelayout.test_rank is rank
    layout = TileLayout(S[(2, 4) : (1 @ rank, 1)])
    assert layout.apply(1, 3) == {"test_rank": 1, "m": 3}
    assert TileLayout.parse(str(layout)) == layout


@pytest.mark.parametrize(
    ("name", "kind", "word"),
    [
        ("laneid", "memory", "is a thread axis already"),
        ("m", "thread", "is a memory axis already"),
        ("new", "mem", "did you mean 'memory'"),
        ("new", None, "unknown kind"),
        ("new", [], "unknown kind"),
        ("", "memory", "identifier"),
        ("two words", "memory", "identifier"),
        ("1st", "memory", "identifier"),
        ("a-b", "memory", "identifier"),
        ("é", "memory", "ASCII"),
        (3, "memory", "identifier"),
        (None, "memory", "identifier"),
        *[
            (word, "memory", "word of the notation or of Python")
            for word in ("S", "R", "T", "Axis", "TileLayout")
        ],
        *[(word, "memory", "word of the notation or of Python") for word in keyword.kwlist],
    ],
)
def test_bad_registrations_are_refused(name: object, kind: object, word: str) -> None:
    before = axes()
    with pytest.raises(LayoutError, match=word) as caught:
        register_axis(name, kind)
    assert caught.value.operation == "register_axis"
    assert axes() == before


def test_a_race_to_register_has_one_winner() -> None:
    for i in range(20):
        found: list[Axis] = []
        start = threading.Barrier(8)

        def race(name: str = f"test_race_{i}", found: list = found, start: threading.Barrier = start) -> None:
            start.wait()
            found.append(register_axis(name, "device"))

        threads = [threading.Thread(target=race) for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert len(found) == 8
        assert len({id(a) for a in found}) == 1


def test_the_hierarchy_is_as_the_model_says() -> None:
    rows = {(row.whole.name, row.per_outer, row.outer.name, row.inner.name) for row in THREAD_HIERARCHY}
    assert rows == {
        ("tx", 32, "warpid", "laneid"),
        ("tid_in_wg", 32, "wid_in_wg", "laneid"),
        ("warpid", 4, "wgid", "wid_in_wg"),
        ("tx", 128, "wgid", "tid_in_wg"),
    }


def test_a_term_reads_as_it_is_written() -> None:
    assert repr(4 @ laneid) == "4 @ laneid"
    assert 4 @ laneid == 4 @ laneid != 4 @ warpid
    assert hash(4 @ laneid) == hash(4 @ laneid)
    assert repr(1 @ laneid - 2 @ warpid + 64) == "1 @ laneid + -2 @ warpid + 64 @ m"
