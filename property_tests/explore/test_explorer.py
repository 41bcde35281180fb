"""The explorer as a value: one self-contained page, saved or shown on request; and the catalogue as presets."""

from __future__ import annotations

import doctest
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import lowering.explore
import tilelayout.explore
from lowering import Tile, gemm
from lowering.explore import explore as explore_fragment
from lowering.explore import presets as catalogue_presets
from lowering.fragments import B_FRAG, D_FRAG
from lowering.isa import MMA_INSTRUCTIONS
from lowering.isa.catalogue import CATALOGUE
from lowering.isa.mma import DENSE
from property_tests.explore.evaluator import Evaluator, as_texts
from property_tests.explore.pages import FRAGMENT
from tilelayout import LayoutError, S, Swizzle, SwizzledLayout, TileLayout, register_axis
from tilelayout.explore import Explorer, explore, page, preset, presets
from tilelayout.explore import offered as everything_offered
from tilelayout.explore.bundle import CORE, SHOWN, as_json
from tilelayout.explore.presets import parsed

SOURCES = Path(tilelayout.explore.__file__).parent / "page"


def start_of(html: str) -> dict[str, Any]:
    """What the page is given to show."""
    found = re.search(r"^const START = (.*);$", html, re.MULTILINE)
    assert found
    return json.loads(found.group(1))


def test_the_page_is_one_text_that_asks_for_nothing() -> None:
    html = page(FRAGMENT, (16, 16))
    assert html.startswith("<!doctype html>")
    assert (
        re.findall(r"https?:|//[a-z]|<link|<img|\bimport\b\s*[({'\"]|fetch\(|XMLHttpRequest|url\(", html)
        == []
    )
    assert "default-src 'none'" in html
    assert len(html) < 300_000


def test_every_source_of_the_page_is_used_and_about_one_idea() -> None:
    files = {path.name: path.read_text(encoding="utf-8") for path in SOURCES.iterdir()}
    assert set(files) == {*CORE, *SHOWN, "page.html", "page.css"}
    html = page(FRAGMENT, (16, 16))
    for name, text in files.items():
        assert len(text.splitlines()) <= 400, name
        assert name == "page.html" or text in html
    everything = "\n".join(files.values())
    named = re.findall(r"^(?:function|const|class) (\w+)", everything, re.MULTILINE)
    assert len(set(named)) == len(named)  # one scope
    assert [name for name in named if len(re.findall(rf"\b{name}\b", everything)) < 2] == []


class Elements(HTMLParser):
    """Every id, and what is open at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.ids += [value for name, value in attrs if name == "id" and value]
        if tag not in ("meta", "input", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self.open[-1] == "option":
            assert tag in ("option", "select")
        assert self.open.pop() == tag


def test_the_page_is_well_formed() -> None:
    reader = Elements()
    reader.feed(page(FRAGMENT, (16, 16)))
    assert reader.open == []
    assert len(set(reader.ids)) == len(reader.ids) > 20


def test_nothing_is_written_unless_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = FRAGMENT.explore((16, 16))
    made.html()
    assert list(tmp_path.iterdir()) == []
    made.save("one.html")
    assert Path("one.html").read_text(encoding="utf-8") == made.html()
    assert FRAGMENT.explore((16, 16), path=tmp_path / "two.html") == made
    assert Path("two.html").read_text(encoding="utf-8") == made.html()
    with pytest.raises(LayoutError, match=r"suffix '\.svg'"):
        made.save("three.svg")


def test_the_frame_of_a_notebook_holds_the_page() -> None:
    made = explore("S[4, 4]", title='a "b" <c>')
    sources: list[str | None] = []

    class Frame(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            sources.append(dict(attrs).get("srcdoc"))

    Frame().feed(made._repr_html_())
    assert sources == [made.html()]


def test_a_swizzled_layout_and_a_text_are_explored_too() -> None:
    layout = SwizzledLayout(S[8, 64], Swizzle(3, 3, 3))
    assert layout.explore((8, 64)).steps == explore(str(layout), (8, 64)).steps
    assert start_of(layout.explore((8, 64)).html())["steps"][0]["layout"] == str(layout)


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: explore("S[4, 4", (4, 4)), "at position 6"),
        (lambda: explore(FRAGMENT, (16, 8)), "has 128 elements"),
        (lambda: explore(FRAGMENT, view="sideways"), "unknown view"),
        (lambda: explore(FRAGMENT, bits=12), "power of two"),
        (lambda: explore(FRAGMENT, presets=["A"]), "a Preset is expected"),
        (lambda: explore(3), "a layout is expected"),
        (lambda: explore(TileLayout.parse("S[n]", {"n": symbol()})), "symbolic"),
        (lambda: preset("g", "n", "S[8]", (3, 3)), "has 9 elements"),
        (lambda: explore_fragment(MMA_INSTRUCTIONS[0], role="E"), "role must be A, B, C, D"),
    ],
)
def test_what_cannot_be_shown_is_refused(make: Any, word: str) -> None:
    with pytest.raises(LayoutError, match=word):
        make()


def symbol() -> Any:
    import sympy

    return sympy.Symbol("n", integer=True, positive=True)


def test_an_axis_of_one_s_own_is_known_to_the_page() -> None:
    register_axis("explored", "device")
    html = page(TileLayout(S[(2, 4) : (1 @ register_axis("explored", "device"), 1)]), (2, 4))
    assert '"explored":"device"' in html


@pytest.mark.parametrize("text", ["</script>", "<!--", "\u2028", "a & b", "]]>"])
def test_data_stays_inside_the_script(text: str) -> None:
    written = as_json({"x": text})
    assert json.loads(written) == {"x": text}
    assert not re.search(r"[<>&\u2028]", written)


# --- the catalogue -----------------------------------------------------------------------------------------


def test_every_fragment_of_the_catalogue_is_offered() -> None:
    offered = everything_offered()
    assert set(presets()) | set(catalogue_presets()) == set(offered)
    assert len({(p.group, p.name) for p in offered}) == len(offered)
    for record in CATALOGUE:
        if hasattr(record, "signature"):
            family = "mma.sp" if record.name.startswith("sp") else "mma.sync"
            for role, element in zip("ABCD", record.signature, strict=True):
                found = [
                    p
                    for p in offered
                    if p.group == f"{family} {record.shape}" and p.name.startswith(f"{role} ")
                ]
                assert any(element in re.split(r"[:,] ", p.name) for p in found), (record.name, role)
        else:
            assert [p for p in offered if record.name in p.name], record.name


def test_the_page_evaluates_every_fragment_as_python_does(evaluator: Evaluator) -> None:
    for offered in catalogue_presets():
        layout = parsed(offered.layout)
        if layout.size() <= 2048:
            told = evaluator.told("owners", offered.layout, shape=list(map(str, offered.shape)))
            assert told == [as_texts(layout.owners(flat)) for flat in range(layout.size())], offered


def test_a_of_m16n8k16_at_5_9() -> None:
    (offered,) = [
        p
        for p in catalogue_presets()
        if p.group == "mma.sync m16n8k16" and p.name.startswith("A 16 x 16, 16")
    ]
    assert parsed(offered.layout).apply(5, 9, shape=offered.shape) == {"laneid": 20, "m": 5}


def test_tiles_and_instructions_are_explored() -> None:
    tile = Tile("A", (16, 16), "float16", FRAGMENT)
    made = tile.explore()
    assert isinstance(made, Explorer)
    assert (made.bits, made.steps[0].shape, made.steps[0].layout) == (16, (16, 16), str(FRAGMENT))
    assert tile[0:8, 0:16].explore().steps[0].shape == (8, 16)
    made = MMA_INSTRUCTIONS[0].explore(role="B")
    assert made.steps[0].shape == (16, 8)
    assert [p.name for p in made.presets[:4]] == ["A", "B", "C", "D"]
    assert "wgmma D" in {p.group for p in made.presets}


def test_a_call_is_explored_by_its_operands() -> None:
    A, D = Tile("A", (16, 16), "float16", FRAGMENT), Tile("D", (16, 8), "float32", D_FRAG)
    call = gemm(D, A, Tile("B", (16, 8), "float16", B_FRAG), D)
    assert call.explore().steps[0].layout == str(D_FRAG)
    assert call.explore((256,), role="A").steps[0].shape == (256,)
    with pytest.raises(LayoutError, match="role must be"):
        call.explore(role="SFA")


def test_elements_of_6_bits_take_a_byte() -> None:
    six = next(record for record in DENSE if record.a.startswith("float6_"))
    assert six.explore(role="A").bits == 8


class Point:
    """An entry point that gives what it is told to."""

    def __init__(self, result: Any) -> None:
        self.value = "somewhere:presets"
        self.result = result

    def load(self) -> Any:
        if isinstance(self.result, Exception):
            raise self.result
        return lambda: self.result


@pytest.mark.parametrize(
    ("result", "word"),
    [(ImportError("no module"), "ImportError: no module"), (["A"], "a Preset is expected")],
)
def test_presets_that_do_not_load_are_named(monkeypatch: pytest.MonkeyPatch, result: Any, word: str) -> None:
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [Point(result)])
    with pytest.raises(LayoutError, match=f"somewhere:presets .*{word}"):
        FRAGMENT.explore((16, 16))
    assert FRAGMENT.explore((16, 16), presets=()).presets == ()


def test_the_examples_of_lowering_explore_hold() -> None:
    found = doctest.testmod(lowering.explore)
    assert (found.failed, found.attempted > 3) == (0, True)
