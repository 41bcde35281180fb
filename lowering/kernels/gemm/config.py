"""How a GEMM kernel is cut: tiles, warps, stages, and by what shared memory is fed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from operator import index
from typing import Any, Literal

from tilelayout import LayoutError

Feed = Literal["tma", "cp_async", "registers"]
Sender = Literal["bulk", "threads"]
SENDERS: tuple[Sender, ...] = ("bulk", "threads")
PACKED = ("", "A", "B", "AB")
FEEDS: tuple[Feed, ...] = ("tma", "cp_async", "registers")
MOST = {"stages": 63, "unroll": 63, "group": 1 << 16, "splits": 64, "resident": 32}
"""Of each: far more than any target has room for, and few enough that nothing is counted up in vain or overflows."""
LARGEST_TILE = 4096
"""Elements along a side of a tile, likewise; a thousand threads have no registers for more."""
MOST_WARPS = 32
"""Of a CTA."""
PRODUCERS = 4
"""Warps of the warpgroup that feeds by the copy engine: a whole one, since registers are given back by warpgroups."""


@dataclass(frozen=True)
class Config:
    """A way to carry out a problem.

    Rows, columns, A and B are the kernel's: of a column-major D, which is carried out transposed, its rows are the
    caller's columns, and its A the caller's B.

    Attributes:
        tile: rows, columns and depth of a CTA's tile, in elements.
        warps: that multiply, in rows and columns.
        stages: tiles of A and B that shared memory holds.
        feed: "tma", the copy engine, driven by a warp of its own; "cp_async", asynchronous copies by the threads of a
            warpgroup of its own; "registers", loads and stores by all threads, which take two stages, unroll 1.
        unroll: stages in a turn of the loop over K.
        group: rows of tiles that CTAs go through together, so that they share what the second cache holds.
        splits: parts of K that different CTAs add up, at most: there are no more than have a stage.
        resident: CTAs that share a multiprocessor.
        slots: of a warp, to collect 16 rows of the result in, in shared memory; 0: results go to memory directly.
        fragments: sets of registers for a step's fragments: 2, so that one is loaded while the other is used, or 1.
        sender: of rows that were collected: "bulk", the copy engine; "threads", those that collected them.
        spread: whether CTAs begin at different places along K, so that not all read the same part of A, or the same
            banks of memory, at once.
        packed: factors that are copied first, to rows of whole cache lines: "", "A", "B", "AB".
        beside: whether only what the CTAs' first tiles need is copied first, and the rest beside the product, by warps
            of the feeding warpgroup that have nothing else to do.
    """

    tile: tuple[int, int, int]
    warps: tuple[int, int]
    stages: int
    feed: Feed
    unroll: int = 1
    group: int = 16
    splits: int = 1
    resident: int = 1
    slots: int = 0
    fragments: int = 2
    sender: Sender = "bulk"
    spread: bool = False
    packed: str = ""
    beside: bool = False

    def __post_init__(self) -> None:
        self._check_words()
        for name in ("tile", "warps"):
            sizes = getattr(self, name)
            if isinstance(sizes, tuple):
                object.__setattr__(self, name, tuple([plain(n) for n in sizes]))
        for name in ("stages", "unroll", "group", "splits", "resident", "slots", "fragments"):
            object.__setattr__(self, name, plain(getattr(self, name)))
        self._check_numbers()
        if not self.slots:  # nobody sends
            object.__setattr__(self, "sender", "bulk")

    def _check_words(self) -> None:
        for name, known in (("feed", FEEDS), ("sender", SENDERS), ("packed", PACKED)):
            word = getattr(self, name)
            if not isinstance(word, str) or word not in known:
                raise LayoutError("Config", f"{name} = {word!r}", f"one of {', '.join(map(repr, known))}")
        for name in ("spread", "beside"):
            if not isinstance(getattr(self, name), bool):
                raise LayoutError("Config", f"{name} = {getattr(self, name)!r}", "True or False")

    def _check_numbers(self) -> None:
        for name in ("stages", "unroll", "group", "splits", "resident"):
            if not _positive(getattr(self, name)):
                raise LayoutError(
                    "Config", f"{name} must be an integer of at least 1, got {getattr(self, name)!r}"
                )
            if getattr(self, name) > MOST[name]:
                raise LayoutError("Config", f"{name} = {getattr(self, name)}", f"at most {MOST[name]}")
        for name, wanted in (("tile", "rows, columns and depth"), ("warps", "rows and columns")):
            sizes = getattr(self, name)
            count = 3 if name == "tile" else 2
            if not isinstance(sizes, tuple) or len(sizes) != count or not all(_positive(n) for n in sizes):
                raise LayoutError("Config", f"{name} = {sizes!r}", f"a tuple of {wanted}, integers from 1")
        if max(self.tile) > LARGEST_TILE:
            raise LayoutError("Config", f"tile = {self.tile}", f"at most {LARGEST_TILE} along each side")
        if self.all_warps > MOST_WARPS:
            raise LayoutError(
                "Config",
                f"{self.all_warps} warps, {self.multipliers} of which multiply",
                f"{MOST_WARPS} at most; fewer or larger warp tiles",
            )
        if type(self.slots) is not int or self.slots < 0:
            raise LayoutError("Config", f"{self.slots!r} slots", "0, or how many")
        if self.slots > MOST["stages"]:
            raise LayoutError("Config", f"{self.slots} slots", f"at most {MOST['stages']}")
        if type(self.fragments) is not int or self.fragments not in (1, 2):
            raise LayoutError("Config", f"{self.fragments!r} sets of fragments", "1 or 2")
        if self.stages < 2:
            raise LayoutError(
                "Config", f"{self.stages} stages", "2 or more: one is filled while another is used"
            )
        if self.stages % self.unroll:
            raise LayoutError(
                "Config",
                f"{self.stages} stages are no multiple of unroll {self.unroll}",
                f"stages={-(-self.stages // self.unroll) * self.unroll}, or unroll=1",
            )

    @classmethod
    def parse(cls, text: str) -> Config:
        """The configuration that is written so.

        Post-condition: ``str(Config.parse(text)) == text``.

        Errors: LayoutError for other texts.

        >>> config = Config.parse("64x64x32_w2x2_s3_cp_async_u1_g16_o1t")
        >>> config.tile, config.feed, config.sender
        ((64, 64, 32), 'cp_async', 'threads')
        """
        found = _TEXT.fullmatch(text) if isinstance(text, str) else None
        if found is None:
            raise LayoutError("Config.parse", repr(text), "as a configuration prints itself")
        n = {name: int(x) for name, x in found.groupdict().items() if x and x.isdecimal()}
        config = cls(
            (n["m"], n["n"], n["k"]),
            (n["rows"], n["columns"]),
            n["stages"],
            found["feed"],  # type: ignore[arg-type]
            n["unroll"],
            n["group"],
            n.get("splits", 1),
            n.get("resident", 1),
            n.get("slots", 0),
            n.get("fragments", 2),
            "threads" if found["threads"] else "bulk",
            bool(found["spread"]),
            found["packed"] or "",
            bool(found["beside"]),
        )
        if str(config) != text:
            raise LayoutError(
                "Config.parse", repr(text), f"as a configuration prints itself, {str(config)!r}"
            )
        return config

    @property
    def multipliers(self) -> int:
        """Warps that multiply."""
        return self.warps[0] * self.warps[1]

    @property
    def all_warps(self) -> int:
        """Warps of the CTA."""
        return self.multipliers + (0 if self.feed == "registers" else PRODUCERS)

    @property
    def copying(self) -> int:
        """Warps whose threads copy: those that feed, or all where all do both."""
        return self.multipliers if self.feed == "registers" else PRODUCERS

    def __str__(self) -> str:
        m, n, k = self.tile
        parts = [f"{m}x{n}x{k}", f"w{self.warps[0]}x{self.warps[1]}", f"s{self.stages}", self.feed]
        parts += [f"u{self.unroll}", f"g{self.group}"]
        parts += [f"k{self.splits}"] if self.splits > 1 else []
        parts += [f"r{self.resident}"] if self.resident > 1 else []
        parts += [f"o{self.slots}{'t' if self.sender == 'threads' else ''}"] if self.slots else []
        parts += ["f1"] if self.fragments == 1 else []
        parts += ["spread"] if self.spread else []
        parts += [f"p{self.packed}"] if self.packed else []
        parts += ["beside"] if self.beside else []
        return "_".join(parts)


_TEXT = re.compile(
    r"(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)_w(?P<rows>\d+)x(?P<columns>\d+)_s(?P<stages>\d+)_(?P<feed>tma|cp_async|registers)"
    r"_u(?P<unroll>\d+)_g(?P<group>\d+)(_k(?P<splits>\d+))?(_r(?P<resident>\d+))?(_o(?P<slots>\d+)(?P<threads>t?))?"
    r"(_f(?P<fragments>1))?(?P<spread>_spread)?(_p(?P<packed>AB?|B))?(?P<beside>_beside)?"
)


def _positive(n: object) -> bool:
    return type(n) is int and n >= 1


def plain(n: Any) -> Any:
    """An integer of another library as Python's; whatever else it is as it is."""
    if isinstance(n, bool | float | complex) or getattr(n, "shape", ()) != () or not hasattr(n, "__index__"):
        return n
    try:
        return index(n)
    except TypeError:  # an array of one float has the method, and no integer
        return n
