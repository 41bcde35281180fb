"""The pictures of the guide: ``python -m tilelayout.draw.gallery [FOLDER]`` writes them to docs/pictures.

A test compares what is stored with what is drawn, so that the guide shows what the code draws.
"""

from __future__ import annotations

import sys
from pathlib import Path

from ..analysis import Access
from ..axis import laneid, warpid
from ..layout import TileLayout
from ..spec import R, S
from ..swizzle import Swizzle
from ..swizzled import SwizzledLayout
from .views.bits import bits
from .views.change import operation
from .views.composite import gemm
from .views.hardware import hardware
from .views.iters import iters
from .views.logical import logical
from .views.shared import shared
from .views.tiling import tiling

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .model import Picture


def gallery() -> dict[str, Picture]:
    """The guide's pictures by name, every one of its views."""
    D = TileLayout(S[(2, 8, 4, 2) : (2, 4 @ laneid, 1 @ laneid, 1)])
    A = D.tile_to((16, 16), (16, 8))
    B = TileLayout(S[(4, 2, 8) : (1 @ laneid, 1, 4 @ laneid)]).tile_to((16, 8), (8, 8))
    copied = TileLayout(S[(4, 4) : (2 @ laneid, 1)] + R[2 : 1 @ laneid])
    plain = TileLayout(S[8, 64])
    swizzled = SwizzledLayout(plain, Swizzle(3, 3, 3))
    warps = D.tile(TileLayout(S[(4, 2) : (2 @ warpid, 1 @ warpid)]), (4, 2), (16, 8))
    rows = Access.matrices((8, 64))
    return {
        "logical": logical(A, (16, 16), bits=16),
        "hardware": hardware(D, (16, 8), bits=32),
        "replicas": logical(copied, (4, 4)),
        "shared_conflicts": shared(plain, (8, 64), 16, access=rows, chunk=16),
        "shared_swizzled": shared(swizzled, (8, 64), 16, access=rows, chunk=16),
        "gemm": gemm(A, B, D, (16, 8, 16), at=(9, 5), bits=(16, 16, 32)),
        "tiling": tiling(warps, (64, 16), (16, 8)),
        "operation": operation(TileLayout(S[4, 8]), "permute_dims", (1, 0), shape=(4, 8), after_shape=(8, 4)),
        "bits": bits(swizzled, (8, 64)),
        "iters": iters(A),
        "ramp": logical(plain, (8, 64), color="m", palette="ramp", max_columns=16),
    }


def main(arguments: list[str]) -> int:
    """Write the gallery as SVG files."""
    folder = Path(arguments[0] if arguments else "docs/pictures")
    folder.mkdir(parents=True, exist_ok=True)
    for name, picture in gallery().items():
        picture.save(folder / f"{name}.svg")
        sys.stdout.write(f"{folder / f'{name}.svg'}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
