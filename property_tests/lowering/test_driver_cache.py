"""The cache on disk: what is found is what was put there, and nothing else is found."""

from __future__ import annotations

import doctest
import os
import sys
import threading
from importlib import metadata
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowering.backends.assemble import AssemblerError, Cubin
from lowering.backends.driver import Results, cache, cached_cubin
from lowering.backends.driver.assembler_version import assembler_version
from lowering.target import target

SM90 = target("sm_90a")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("TILELAYOUT_NO_CACHE", raising=False)
    monkeypatch.setenv("TILELAYOUT_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What was assembled, by an assembler that makes code of anything but "bad"."""
    calls: list[tuple[Any, ...]] = []

    def assemble(ptx: str, where: Any, allow_spills: bool = False) -> Cubin:
        calls.append((ptx, where, allow_spills))
        if ptx == "bad":
            raise AssemblerError("refused")
        return Cubin(f"{ptx}\n{where}\n".encode() + bytes(range(256)), where, 40, None, 8, 0.5, "a\nlog")

    monkeypatch.setattr(cache, "assemble", assemble)
    monkeypatch.setattr(cache, "assembler_version", lambda: "1.0")
    return calls


def files(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*") if p.is_file())


def test_the_second_time_nothing_is_assembled(folder: Path, made: list[Any]) -> None:
    first, second = cached_cubin("text", SM90), cached_cubin("text", SM90)
    assert (first, second.log, second.seconds) == (second, "a\nlog", 0.5)
    assert len(made) == len(files(folder)) == 1


def test_text_target_assembler_and_rule_are_the_key(
    folder: Path, made: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [
        cached_cubin("a", SM90),
        cached_cubin("b", SM90),
        cached_cubin("a", target("sm_90")),
        cached_cubin("a", SM90, True),
    ]
    monkeypatch.setattr(cache, "assembler_version", lambda: "2.0")
    found.append(cached_cubin("a", SM90))
    monkeypatch.setattr(cache, "_FORMAT", 2)
    found.append(cached_cubin("a", SM90))
    assert len(made) == len(files(folder)) == len(found) == 6


def test_a_refusal_is_not_remembered(folder: Path, made: list[Any]) -> None:
    for _ in range(2):
        with pytest.raises(AssemblerError):
            cached_cubin("bad", SM90)
    assert len(made) == 2
    assert files(folder) == []


def spoiled(content: bytes) -> list[bytes]:
    """The same entry cut off, foreign, changed in one place."""
    cut = [content[:n] for n in (0, 5, len(content) // 2, len(content) - 1)]
    flipped = [content[:n] + bytes([content[n] ^ 1]) + content[n + 1 :] for n in range(0, len(content), 7)]
    return [
        *cut,
        *flipped,
        content + b"x",
        b"\xff" * 99,
        b"tilelayout cache\n[]\n",
        b"tilelayout cache\n{}\n",
    ]


def test_a_spoiled_entry_is_replaced(folder: Path, made: list[Any]) -> None:
    right = cached_cubin("text", SM90)
    (path,) = files(folder)
    content = path.read_bytes()
    for wrong in spoiled(content):
        path.write_bytes(wrong)
        made.clear()
        assert cached_cubin("text", SM90) == right
        # A change of what JSON does not tell apart (a space, say) leaves the entry whole.
        assert made or wrong.partition(b"\n")[2] != content.partition(b"\n")[2]
        assert cached_cubin("text", SM90) == right


def test_an_entry_in_another_ones_place_is_not_taken(folder: Path, made: list[Any]) -> None:
    a, b = cached_cubin("a", SM90), cached_cubin("b", SM90)
    first, second = files(folder)
    content = first.read_bytes(), second.read_bytes()
    first.write_bytes(content[1])
    second.write_bytes(content[0])
    assert (cached_cubin("a", SM90), cached_cubin("b", SM90)) == (a, b)


@pytest.mark.parametrize("value", ["1", "yes"])
def test_it_can_be_turned_off(
    folder: Path, made: list[Any], monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("TILELAYOUT_NO_CACHE", value)
    assert cache.directory() is None
    for _ in range(2):
        cached_cubin("text", SM90)
    Results("gemm").put("key", 1)
    assert (len(made), Results("gemm").get("key"), folder.exists()) == (2, None, False)


def test_the_directory_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("TILELAYOUT_CACHE_DIR", "TILELAYOUT_NO_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert cache.directory() == tmp_path / ".cache" / "tilelayout"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache.directory() == tmp_path / "xdg" / "tilelayout"
    monkeypatch.setenv("TILELAYOUT_NO_CACHE", "0")
    monkeypatch.setenv("TILELAYOUT_CACHE_DIR", str(tmp_path / "own"))
    assert cache.directory() == tmp_path / "own"
    assert list(tmp_path.iterdir()) == []


def test_without_a_home_there_is_no_cache(monkeypatch: pytest.MonkeyPatch, made: list[Any]) -> None:
    for name in ("TILELAYOUT_CACHE_DIR", "TILELAYOUT_NO_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)

    def homeless() -> Path:
        raise RuntimeError("no home")

    monkeypatch.setattr(Path, "home", homeless)
    assert cache.directory() is None
    assert cached_cubin("text", SM90).registers == 40


def test_a_directory_that_cannot_be_written_is_no_error(
    tmp_path: Path, made: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.delenv("TILELAYOUT_NO_CACHE", raising=False)
    monkeypatch.setenv("TILELAYOUT_CACHE_DIR", str(tmp_path / "file"))
    for _ in range(2):
        assert cached_cubin("text", SM90).registers == 40
    assert len(made) == 2
    Results("gemm").put("key", 1)
    assert Results("gemm").get("key") is None


def test_a_write_that_fails_leaves_nothing_behind(
    folder: Path, made: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*paths: object) -> None:
        raise OSError("no space")

    monkeypatch.setattr(os, "replace", full)
    assert cached_cubin("text", SM90).registers == 40
    assert files(folder) == []


def test_many_writers_of_one_entry_leave_it_whole(folder: Path, made: list[Any]) -> None:
    found: list[Cubin] = []
    threads = [
        threading.Thread(target=lambda: found.extend(cached_cubin("text", SM90) for _ in range(50)))
        for _ in range(8)
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(found) == 400
    assert set(found) == {found[0]}
    assert len(files(folder)) == 1


@pytest.mark.skipif(
    sys.platform not in ("linux", "win32"), reason="no assembler is published for this system"
)
def test_reading_is_much_quicker_than_assembling(folder: Path) -> None:
    text = ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k() { ret; }\n"
    right = cached_cubin(text, SM90)
    began = perf_counter()
    assert cached_cubin(text, SM90) == right
    assert perf_counter() - began < 0.05


# --- results ------------------------------------------------------------------------------------------------------

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**9), 10**9)
    | st.floats(allow_nan=False)
    | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(st.lists(st.tuples(JSON, JSON), max_size=5))
def test_the_last_value_of_a_key_is_found(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[Any, Any]]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("TILELAYOUT_NO_CACHE", raising=False)
        patch.setenv("TILELAYOUT_CACHE_DIR", str(tmp_path_factory.mktemp("results")))
        results, known = Results("tuning"), []
        for key, value in pairs:
            results.put(key, value)
            text = cache.json.dumps(key, sort_keys=True)
            known = [(t, k, v) for t, k, v in known if t != text] + [(text, key, value)]
        for _, key, value in known:
            assert Results("tuning").get(key) == value
            assert Results("other").get(key) is None


def test_names_do_not_lead_out_of_the_directory(folder: Path) -> None:
    for name in ("../../up", "/etc", "a b", ""):
        Results(name).put("key", name)
    assert [Results(name).get("key") for name in ("../../up", "/etc", "a b", "")] == [
        "../../up",
        "/etc",
        "a b",
        "",
    ]
    assert len(files(folder)) == 4


def test_what_json_does_not_hold_is_refused(folder: Path) -> None:
    for key, value in ((object(), 1), ("key", object())):
        with pytest.raises(TypeError):
            Results("gemm").put(key, value)


def test_a_spoiled_result_is_none(folder: Path) -> None:
    results = Results("gemm")
    results.put("key", {"stages": 4})
    (path,) = files(folder)
    content = path.read_bytes()
    for wrong in spoiled(content):
        path.write_bytes(wrong)
        assert results.get("key") in (None, {"stages": 4})
    path.write_bytes(content.replace(b'"stages": 4', b'"stages": 5'))
    assert results.get("key") is None


def test_the_examples_hold(folder: Path) -> None:
    found = doctest.testmod(cache)
    assert found.failed == 0
    assert found.attempted >= 6


def test_without_the_libraries_the_cache_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    def none(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", none)
    monkeypatch.setitem(sys.modules, "cuda.bindings.nvjitlink", None)
    assembler_version.cache_clear()
    try:
        with pytest.raises(ImportError, match=r"pip install 'tilelayout\[cuda\]'"):
            cached_cubin("", SM90)
    finally:
        assembler_version.cache_clear()
