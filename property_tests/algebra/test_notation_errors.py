"""Text that is no layout: the position is shown, nothing is executed, nothing hangs."""

from __future__ import annotations

import builtins

import pytest
from hypothesis import given
from hypothesis import strategies as st

from property_tests import strategies
from tilelayout import LayoutError, TileLayout

MALFORMED = [
    ("", 0, "the text ends"),
    ("   ", 3, "the text ends"),
    ("8", 0, "S[...]"),
    ("5 @ laneid", 0, "S[...]"),
    ("S", 0, "a number"),
    ("S[", 2, "a number"),
    ("S[8", 3, "']'"),
    ("S[8]]", 4, "the end of the text"),
    ("S[8] S[8]", 5, "the end of the text"),
    ("S[8:1:1]", 5, "']'"),
    ("S[8,]", 4, "a number"),
    ("S[,8]", 2, "a number"),
    ("S[(8, 4]", 7, "','"),
    ("S[(8 4)]", 5, "','"),
    ("S[(8, 4):(1)]", 0, "one stride per extent"),
    ("S[(2, 3):(1,)]", 0, "one stride per extent"),
    ("S[(2,(3,4)):(1,2)]", 7, "')'"),
    ("S[0]", 0, "at least 1"),
    ("S[-8]", 0, "at least 1"),
    ("S[8.0]", 3, "']'"),
    ("S[8:1.5]", 5, "']'"),
    ("S[1e3]", 3, "']'"),
    ("S[0x10]", 3, "']'"),
    ("S[True]", 2, "a number"),
    ("S[None]", 2, "a number"),
    ("S['8']", 2, "unexpected"),
    ("S[8 : 4 @]", 9, "an axis"),
    ("S[8 : 4 @ 3]", 10, "an axis"),
    ("S[8 : 4 @ lanid]", 10, "did you mean 'laneid'"),
    ("S[8 : 4 @ Axis.]", 15, "an axis"),
    ("S[8 : @ laneid]", 6, "a number"),
    ("S[8 : 1 + 2 @ laneid]", 8, "parentheses"),
    ("S[4 @ laneid]", 0, "not an extent"),
    ("S[8 : 4 @ laneid @ warpid]", 17, "']'"),
    ("S[n]", 2, "symbols="),
    ("S[8:n]", 4, "symbols="),
    ("S[8] + n", 7, "symbols="),
    ("S[8] +", 6, "the text ends"),
    ("S[8] + +", 7, "a number"),
    ("S[8] * 2", 5, "the end of the text"),
    ("2 * S[8]", 4, "a number"),
    ("-S[8]", 1, "after '-'"),
    ("5 - S[8]", 4, "after '-'"),
    ("5 - (S[8])", 10, "after '-'"),
    ("S[8] + S[4]", None, "one shard"),
    ("R[2:1]", 0, "a shard"),
    ("(S[8]", 5, "')'"),
    ("S[8])", 4, "the end of the text"),
    ("TileLayout", 10, "'('"),
    ("TileLayout(S[8]", 15, "')'"),
    ("TileLayout(S[8]) + 1", 17, "the end of the text"),
    ("T.TileLayout.from_iters()", 12, "'('"),
    ("S[8:2**-1]", 5, "not negative"),
    ("S[8/2]", 3, "']'"),
    ("S[8//0]", 3, "other than 0"),
    ("S[8%(2 - 2)]", 3, "other than 0"),
    ("S[8//9]", 0, "at least 1"),
    ("S[8 & 2]", 4, "unexpected"),
    ("s[8]", 0, "a number"),
    ("S[٣]", 2, "unexpected"),  # a digit to Python, but not of ours
    ("S[ⅷ]", 2, "unexpected"),
    ("S[8]\x00", 4, "unexpected"),
    ("S[8] # comment", 5, "unexpected"),
    ("S[8];S[8]", 4, "unexpected"),
]


@pytest.mark.parametrize(("text", "position", "word"), MALFORMED, ids=[repr(row[0]) for row in MALFORMED])
def test_the_position_is_shown(text: str, position: int | None, word: str) -> None:
    with pytest.raises(LayoutError) as caught:
        TileLayout.parse(text)
    message = str(caught.value)
    assert word in message
    if position is not None:
        assert caught.value.operation == "parse"
        assert f"at position {position}: " in message
        assert message.splitlines()[-1] == " " * (position + 2) + "^"


HOSTILE = [
    "__import__('os').system('touch owned')",
    "S[__import__('os')]",
    "S[8].__class__",
    "S[8] + ().__class__.__bases__[0]",
    "S[(lambda: 1)()]",
    "S[[x for x in (1,)]]",
    "S[8 if 1 else 2]",
    "S[exec('1')]",
    "S[open]",
    "S[f'{1}']",
    "S[8:(x:=1)]",
    "eval",
    "S[8]\nimport os",
    "TileLayout.__init__",
    "S[8 : 1 @ __class__]",
    "{S[8]}",
    "`S[8]`",
    "S[8] or 1",
    "*S[8]",
    "S[*(8,)]",
    "S[8 : 1 @ laneid.kind]",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_is_executed(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*args: object, **options: object) -> None:
        raise AssertionError("text was executed")

    with monkeypatch.context() as patched:
        for name in ("eval", "exec", "compile", "open"):
            patched.setattr(builtins, name, forbidden)
        with pytest.raises(LayoutError):
            TileLayout.parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "S[8:" + "-" * 5001 + "1]",
        "S[8:" + "(" * 5000 + "1" + ")" * 5000 + "]",
        "(" * 5000 + "S[8]" + ")" * 5000,
        "(" * 200 + "1" + ")" * 200 + " + S[8]",
        "S[" + "9" * 5000 + "]",
        "S[9**9**9**9]",
        "S[2**99999999999]",
        "S[8:" + "2**" * 3000 + "2]",
        "S[8:" + "2*" * 3000 + "2]",
        "S[" + "1," * 3000 + "1]",
        "S[" * 5000,
        "S[8]" + " + 1" * 5000,
        "T." * 5000,
        "S[8:" + "9" * 4000 + "]",
        "S[8:" + "*".join(["9" * 4000] * 40) + "]",  # the product has 160000 digits
        "S[-" + "9" * 4000 + "*" + "9" * 4000 + "]",
        "S[" + ",".join(["9" * 3000] * 3) + "]",  # the stride that isn't written has 6000
    ],
    ids=lambda text: text[:12],
)
def test_long_and_deep_texts_are_read_or_refused(text: str) -> None:
    """No RecursionError, no power that fills the memory, no integer that Python won't convert."""
    message = ""
    try:
        layout = TileLayout.parse(text)
        assert TileLayout.parse(str(layout)) == layout
    except LayoutError as error:
        message = str(error)
    assert len(message) < 500


@given(st.text(alphabet="S[]R():,@+-* 0128nlaneidTx.", max_size=24))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        layout = TileLayout.parse(text)
    except LayoutError:
        return
    assert TileLayout.parse(str(layout)) == layout


@given(strategies.layouts(max_rank=3), st.data())
def test_a_text_with_one_flaw_is_read_or_refused(layout: TileLayout, data: st.DataObject) -> None:
    text = str(layout)
    at = data.draw(st.integers(0, len(text)))
    flaw = data.draw(st.sampled_from([*"S[]():,@+-*9 ", ""]))
    test_any_text_is_read_or_refused.hypothesis.inner_test(
        text[:at] + flaw + text[at + data.draw(st.integers(0, 2)) :]
    )


@pytest.mark.parametrize("text", [None, 5, b"S[8]", ["S[8]"], object()])
def test_only_text_is_parsed(text: object) -> None:
    with pytest.raises(LayoutError, match="text is expected"):
        TileLayout.parse(text)


@pytest.mark.parametrize("value", [True, 2.5, "8", None])
def test_symbols_stand_for_integers(value: object) -> None:
    for text in ("S[8:n]", "S[8:-n]", "S[8] - n", "S[8] - n @ laneid"):
        with pytest.raises(LayoutError, match="symbol n must be an integer"):
            TileLayout.parse(text, {"n": value})


@pytest.mark.parametrize("symbols", [5, ("n",), "n", [1]])
def test_symbols_are_a_mapping(symbols: object) -> None:
    with pytest.raises(LayoutError, match="symbols must be a mapping"):
        TileLayout.parse("S[n:1]", symbols)
