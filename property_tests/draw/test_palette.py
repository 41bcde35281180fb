"""The palettes for people who see fewer colors, and the ink for everybody."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest

from tilelayout import LayoutError, S, TileLayout
from tilelayout.draw import logical
from tilelayout.draw.colors import EMPTY, PALETTES, contrast, ink, shortened

# Machado, Oliveira, Fernandes: A Physiologically-based Model for Simulation of Color Vision Deficiency (2009),
# severity 1.0, on linear RGB.
SIGHTS = {
    "normal": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
CATEGORIES_APART, RAMP_STEP = 20.0, 7.0
"""Distances in CIELAB (CIE 1976); about 2.3 is a just noticeable difference."""


def lab(color: str, sight: str) -> np.ndarray:
    """CIELAB (D65) of ``#rrggbb`` as it is seen."""
    c = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    xyz = TO_XYZ @ np.clip(SIGHTS[sight] @ linear, 0, 1) / np.array([0.95047, 1.0, 1.08883])
    f = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def distance(one: str, two: str, sight: str) -> float:
    return float(np.linalg.norm(lab(one, sight) - lab(two, sight)))


def test_the_simulation_simulates() -> None:
    """White stays white, and red and green draw together for those who lack a cone that tells them apart."""
    for sight, matrix in SIGHTS.items():
        assert matrix.sum(axis=1) == pytest.approx(1, abs=1e-5)
        assert lab("#ffffff", sight) == pytest.approx([100, 0, 0], abs=0.1)
    red, green = "#c04040", "#508030"
    assert distance(red, green, "deuteranopia") < distance(red, green, "normal") / 3
    assert distance(red, green, "protanopia") < distance(red, green, "normal") / 2
    assert distance("#5a90d0", "#20a090", "tritanopia") < distance("#5a90d0", "#20a090", "normal") / 3


@pytest.mark.parametrize("sight", SIGHTS)
def test_categories_stay_apart(sight: str) -> None:
    pairs = {pair: distance(*pair, sight) for pair in combinations(PALETTES["categories"], 2)}
    assert min(pairs.values()) >= CATEGORIES_APART, min(pairs, key=pairs.get)


@pytest.mark.parametrize("sight", SIGHTS)
def test_the_ramp_darkens_evenly(sight: str) -> None:
    colors = PALETTES["ramp"]
    lightness = [lab(color, sight)[0] for color in colors]
    steps = [a - b for a, b in pairwise(lightness)]
    assert min(steps) >= RAMP_STEP
    assert max(steps) <= 2 * min(steps)


@pytest.mark.parametrize("fill", [*PALETTES["categories"], *PALETTES["ramp"], EMPTY])
def test_text_reads_on_every_fill(fill: str) -> None:
    assert contrast(ink(fill), fill) >= 4.5  # WCAG 2.2, 1.4.3, level AA


@pytest.mark.parametrize(
    ("text", "ground"),
    [("#3c4149", "#ffffff"), ("#16181d", "#ffffff"), ("#b9c0cb", "#16181d"), ("#f2f4f7", "#16181d")],
)
def test_labels_read_on_light_and_dark(text: str, ground: str) -> None:
    style = logical(TileLayout(S[2, 2])).svg()
    assert f"fill:{text}" in style
    assert f"fill:{ground}" in style
    assert contrast(text, ground) >= 7  # level AAA


def test_color_is_never_the_only_cue() -> None:
    """Cells of different colors have different text."""
    for picture in (logical(TileLayout(S[8, 64])), logical(TileLayout(S[8, 64]), color="m", palette="ramp")):
        colors = {}
        for cell in picture.cells:
            assert colors.setdefault(cell.lines, cell.color) == cell.color


def test_neighbors_differ_and_the_legend_tells_all() -> None:
    picture = logical(TileLayout(S[1, 20]), color="m")
    cells = picture.grid.cells[0]
    assert all(a.color != b.color for a, b in pairwise(cells))
    assert picture.legend.name == "m"
    assert picture.legend.entries[3] == (3, "3, 11, 19")
    assert shortened("abcdef") == "a, b, c, ..., f"
    words = logical(TileLayout(S[1, 3]), color=lambda where, _: "xyz"[where[1]])
    assert words.legend.entries == ((0, "x"), (1, "y"), (2, "z"))
    assert logical(TileLayout(S[2, 2]), color=False).legend is None


def test_bad_colors_are_refused() -> None:
    x = TileLayout(S[2, 2])
    with pytest.raises(LayoutError, match="did you mean 'laneid'"):
        logical(x, color="lanid")
    with pytest.raises(LayoutError, match="an axis, a function or False"):
        logical(x, color=3)
    with pytest.raises(LayoutError, match="hashable"):
        logical(x, color=lambda *_: [])
    with pytest.raises(LayoutError, match="unknown palette 'rmap', did you mean 'ramp'"):
        logical(x, palette="rmap")
    with pytest.raises(LayoutError, match="order"):
        logical(x, color=lambda where, _: "a" if where == (0, 0) else 1, palette="ramp")
