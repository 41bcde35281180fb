"""Bad and hostile input: one line on standard error that says what is wrong, exit code 2, and no waiting."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from property_tests.cli.shell import refused, run

SECONDS = 10
"""What a refusal may take on a busy machine; each takes a fraction of a second."""

BAD = [
    # text that is no layout shows where
    ("show|", "position 0: expected a number, the text ends"),
    ("show|S[8 : 4 @ lanid]", "position 10: expected an axis", "laneid", "S[8 : 4 @ --> lanid]"),
    ("check|S[8:4@@", "position 6", "S[8:4@ --> @"),
    ("query|S[8, n]|--at|0", "position 5", "'n'", "--let NAME=NUMBER"),
    ("show|S[8\n, x]", "position 6", "'x'"),
    ("show|S<3,3> o S[8]", "parse"),
    ("show|Swizzle(3, 3, 1) o S[8]", "shift must be at least 3"),
    ("show|S[n]|--let|n=0", "extent"),
    ("show|S[n]|--let|n=x", "--let", "'x' is not a number"),
    ("show|S[n]|--let|n", "NAME=NUMBER"),
    ("show|S[9**9**9]", "position"),
    # shapes, coordinates and places
    ("show|S[8]|--shape|3,3", "(3, 3) has 9 elements", "has 8"),
    ("show|S[8]|--shape|0", "less than 1"),
    ("show|S[8]|--shape|x", "--shape", "'x'"),
    ("show|S[8]|--shape|" + "9" * 5000, "digits"),
    ("query|S[8]|--at|8", "coordinate 8", "[0, 8)"),
    ("query|S[8]|--at|1,2,3|--shape|8", "3 entries"),
    ("query|S[8]|--at|one", "--at"),
    ("query|S[8]", "--at", "--where"),
    ("query|S[8]|--at|1|--lane|2", "--at", "--lane"),
    ("query|S[8]|--where|lanid=1", "unknown axis 'lanid'", "laneid"),
    ("query|S[8]|--where|laneid", "AXIS=NUMBER"),
    ("query|S[8]|--where|m=1,m=2", "axis m is given twice"),
    ("query|S[8]|--where|m=1|--register|2", "axis m is given twice"),
    ("query|S[8]|--where|laneid=1|--lane|2", "axis laneid is given twice"),
    ("query|S[8]|--lane|2|--explain", "--explain goes with --at"),
    # commands and options
    ("shwo", "there is no command 'shwo'", "did you mean 'show'?"),
    ("show", "LAYOUT"),
    ("show|S[8]|--vew|bits", "--vew"),
    ("show|S[8]|--view|bytes", "bytes", "logical"),
    ("show|S[8]|--color-by|lanid", "lanid"),
    ("show|S[8]|--rows|0", "rows"),
    ("show|S[6]|--view|bits", "no power of two"),
    ("show|S[8]|--svg|/no/such/folder/x.svg", "/no/such/folder/x.svg", "No such file"),
    ("show|S[8]|--svg|x.png", "--svg writes SVG", "x.png is the name of a .png file", "name it x.svg"),
    ("show|S[8]|--svg|-|--html|x.PDF", "--html writes HTML", "name it x.html"),
    ("mma|m16n8k16.f16|--svg|x.html", "--svg writes SVG", "name it x.svg"),
    ("convert|S[8]|--via|shuffle", "TARGET"),
    ("convert|S[8]|S[9]", "8 elements, target 9"),
    ("convert|S[8]|Swizzle(1, 0, 1) o S[8]", "swizzled"),
    ("convert|S[()]|--to|tvm", "TVM has no notation"),
    ("convert|XorMap((1, 3, 6)) o S[8]|--to|tvm", "product of swizzles"),
    ("convert|S[64 : 1 @ laneid]|S[64 : 1 @ laneid]", "laneid", "0 to 31"),
    ("check|S[8]|--shape|8|--equal|S[9]", "has 9 elements"),
    ("banks|S[8, 64]|--element-bits|16", "--access"),
    ("banks|S[8, 64]|--element-bits|13|--access|rows", "13 bits"),
    ("banks|S[8, 64]|--element-bits|16|--access|rows|--vector|3", "vector of 3"),
    ("banks|S[8, 64]|--element-bits|16|--access|column", "leaves dimension 0"),
    ("banks|S[8, 64]|--element-bits|16|--access|rows|--at|0,0|--at|0,1", "2 times"),
    ("banks|S[8]|--element-bits|16|--access|column", "two dimensions"),
    ("banks|S[8 : 1 @ laneid]|--element-bits|16|--access|rows|--lanes|8", "only m is an address"),
    ("explore|S[8, 16]|--step|tile_too 2|-o|-", "tile_too", "tile_to"),
    ("explore|S[8, 16]|--step||-o|-", "empty step"),
    ("explore|S[8, 16]", "--output"),
    ("swizzle|S<3,3,1>", "shift must be at least 3"),
    ("swizzle|S[8]", "'S[8]' is no swizzle"),
    ("swizzle|S<3,3,3>|--from-bits|8", "--to-bits"),
    ("swizzle|S<3,3,3>|--from-bits|16|--to-bits|3", "Swizzle"),
    ("swizzle|S<3,3,3>|--at|x", "--at"),
    ("completion|csh", "csh", "bash"),
    # lowering's
    ("mma|m16n8k16.f166", "did you mean 'm16n8k16.f16'?"),
    ("mma|--a|f17", "f17", "f16"),
    ("mma|--a|f16|--b|s8", "no instruction", "float16"),
    ("mma|--a|s8|--target|sm_99", "sm_99", "sm_90a"),
    ("mma|--b|s8", "--a"),
    ("mma|--a|s8|--family|ldmatrix", "ldmatrix"),
    ("mma|--operand|A", "INSTRUCTION"),
    ("mma|m16n8k16.f16|--a|f16", "without an INSTRUCTION"),
    ("mma|m16n8k16.f16|--operand|Q", "no operand 'Q'", "A, B, C, D"),
    ("mma|m16n8k16.f16|--at|A|5,16", "M 16 x K 16", "(5, 16)"),
    ("mma|m16n8k16.f16|--at|A|5", "(5,)"),
    ("mma|m16n8k16.f16|--lane|3", "--operand"),
    ("mma|m16n8k16.f16|--operand|A|--register|4", "registers 0 to 3"),
    ("mma|m16n8k16.f16|--format|layout", "--operand"),
    ("mma|m16n8k16.f16|--at|A|1,1|--format|layout", "whole operand"),
    ("lower|17|8|16", "M = 17"),
    ("lower|16|8|16|--dtype|f32", "tfloat32"),
    ("lower|16|8|16|--target|sm_9", "sm_9"),
    ("lower|16|8|16|--warps|2", "two numbers"),
    ("lower|64|64|16|--warps|2,2|--scope|warp", "warp scope has one warp"),
    ("lower|64|64|16|--warps|2,1|--scope|warpgroup", "four warps"),
    ("lower|6400|6400|16|--warps|40,1", "at most 32 warps"),
    ("lower|16|8|16|--variant|mma", "there is no variant 'mma'"),
    ("lower|16|8|16|--instruction|ldmatrix.m8n8.x4.b16", "no plain product"),
    ("lower|0|8|16", "0"),
    # too large to go through
    ("show|S[8] + R[1000000000:1]", "1000000000 holders"),
    ("show|S[4096] + R[60000:1]", "too many", "--view iters"),
    ("show|S[1000000000]|--view|shared", "more than"),
    ("show|S[(1048576, 64) : (0, 1)]|--view|hardware", "share a place"),
    ("query|S[8] + R[1000000000:1]|--at|3", "holders"),
    ("query|S[1000000000:0]|--where|m=0", "elements are at the place"),
    ("query|S[1000000:0]|--where|m=0", "elements are there"),
    ("convert|S[100000000]|S[100000000]", "more than"),
    ("banks|S[1000000000]|--element-bits|16|--access|rows", "more than"),
    ("banks|S[1024, 1024]|--element-bits|16|--access|rows|--best", "more than 65536"),
    ("explore|S[8] + R[1000000000:1]|-o|-", "holders"),
    ("lower|65536|65536|65536", "unrolled"),
    ("check|" + "(" * 300 + "S[8]" + ")" * 300, "nested"),
    ("check|S[" + "8, " * 40_000 + "8]", "characters"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "words"), [(line, words) for line, *words in BAD], ids=[line[:50] for line, *_ in BAD]
)
def test_bad_input_is_refused_in_one_line(line: str, words: list[str]) -> None:
    began = time.monotonic()
    said = refused(*line.split("|"))
    assert time.monotonic() - began < SECONDS
    assert len(said) <= 1100
    assert [word for word in words if word not in said] == [], said


LARGE = [
    "show|S[1000000000000:1]",
    "show|S[9**500:1]|--rows|2|--columns|2",
    "show|S[(1099511627776, 1099511627776) : (1 @ laneid, 1)]|--view|hardware|--rows|4|--columns|4",
    "query|S[1000000000000:1]|--at|999999999999",
    "query|S[1000000000000:1]|--where|m=999999999999",
    "convert|S[(1099511627776, 2) : (2, 1)]|--canonical",
]


@pytest.mark.parametrize("line", LARGE)
def test_large_layouts_are_cropped_or_answered(line: str) -> None:
    began = time.monotonic()
    ran = run(*line.split("|"))
    assert time.monotonic() - began < SECONDS
    assert (ran.code, ran.err) == (0, "")
    if line.startswith("show"):
        assert "cropped: the first" in ran.out


def test_a_fault_of_the_program_is_one_line_too(monkeypatch: pytest.MonkeyPatch) -> None:
    import tilelayout.cli.show as show

    def broken(*_: object) -> None:
        raise KeyError("broken")

    monkeypatch.setattr(show, "layout_of", broken)
    monkeypatch.delenv("TILELAYOUT_TRACEBACK", raising=False)
    ran = run("show", "S[8]")
    assert ran.code == 3
    assert (
        ran.err
        == "tilelayout: a fault of the program: KeyError: 'broken' (TILELAYOUT_TRACEBACK=1 shows where)\n"
    )
    monkeypatch.setenv("TILELAYOUT_TRACEBACK", "1")
    with pytest.raises(KeyError):
        run("show", "S[8]")


def test_an_undecided_question_is_neither_yes_nor_no(monkeypatch: pytest.MonkeyPatch) -> None:
    from tilelayout import TileLayout, Undecided

    def undecided(_: object) -> None:
        raise Undecided("is_injective", "a long search")

    monkeypatch.setattr(TileLayout, "is_injective", undecided)
    ran = run("check", "S[8]", "--injective")
    assert (ran.code, ran.err) == (2, "")
    assert "undecided  is_injective: a long search" in ran.out


def test_nothing_is_written_by_a_refused_command(tmp_path: Path) -> None:
    refused("show", "S[8]", "--shape", "9", "--svg", str(tmp_path / "x.svg"))
    refused("explore", "S[8]", "--shape", "9", "-o", str(tmp_path / "x.html"))
    assert list(tmp_path.iterdir()) == []
