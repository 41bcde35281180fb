"""Pictures with whatever text a caller's function, title or key may return."""

from __future__ import annotations

from hypothesis import strategies as st

from property_tests import strategies as own
from tilelayout import R, S, TileLayout, laneid
from tilelayout.draw import Picture, gemm, logical

NASTY = '<script>alert("&\'")</script>]]>\x00\x1b[31m\n\t\ud800\ufffe&amp;'
TEXTS = st.one_of(
    st.just(NASTY), st.text(max_size=12), st.text("<>&\"'\x00\x1b\n\r\u2028 \u0301漢", max_size=12)
)

D = TileLayout(S[(2, 8, 4, 2) : (2, 4 @ laneid, 1 @ laneid, 1)])
B = TileLayout(S[(4, 2, 8) : (1 @ laneid, 1, 4 @ laneid)])
COPIED = TileLayout(S[(4, 4) : (2 @ laneid, 1)] + R[2 : 1 @ laneid])


@st.composite
def pictures(draw: st.DrawFn) -> Picture:
    """Pictures of small layouts, some of them cropped, with labels, keys and titles that mean ill."""
    layout = draw(own.layouts(max_size=40))
    text = draw(TEXTS)
    return logical(
        layout,
        title=draw(TEXTS),
        label=lambda place: text + str(place.get("m", 0)),
        color=draw(st.sampled_from([None, False, "m", lambda where, places: (text, where[0])])),
        bits=draw(st.sampled_from([None, 4, 16])),
        heading=draw(TEXTS),
        max_rows=draw(st.sampled_from([1, 2, 64])),
        max_columns=draw(st.sampled_from([1, 2, 64])),
    )


def composite() -> Picture:
    return gemm(D, B, D, (16, 8, 8), at=(9, 5), names=("A<", "B&", 'C"'), bits=(16, 16, 32))
