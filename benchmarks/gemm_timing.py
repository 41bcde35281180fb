"""Two protocols, since the power cap decides: a burst on a cool chip, and a load that lasts.  Needs torch.

*Burst*: the median of 12 launches after 0.3 s of rest and two that are not counted.  *Sustained*: 160 ms of launches
after 150 ms of them.  Launches go over several sets of operands, so that none finds its own in the cache; products so
short that the host can't keep up are captured, 20 at a time, in a graph, and divided.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import median
from typing import Any

import torch

REST_S, COUNTED, WARM_MS, TIMED_MS = 0.3, 12, 150.0, 160.0
PROTOCOL = (
    "TFLOP/s; burst: median of 12 launches after 0.3 s of rest; sustained: 160 ms of launches after 150 ms of them; "
    "the contenders of a row take turns, round by round, and the median of the rounds is kept; slots: share of the "
    "issue slots of the tensor cores, by the clock that the kernel itself read during the sustained load"
)
SHORT_MS = 0.12
IN_GRAPH = 20

Launch = Callable[[], Any]


class Timed:
    """Something to launch again and again, `count` products at a time."""

    def __init__(self, call: Callable[[Any], Any], sets: Sequence[Any]) -> None:
        self.call, self.sets, self.next = call, sets, 0
        self.count, self.graph = 1, None
        self.one()
        torch.cuda.synchronize()
        self.estimate = self._estimate()
        if self.estimate < SHORT_MS:
            self._capture()

    def one(self) -> None:
        self.call(self.sets[self.next])
        self.next = (self.next + 1) % len(self.sets)

    def __call__(self) -> None:
        if self.graph is None:
            self.one()
        else:
            self.graph.replay()

    def _estimate(self) -> float:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(3):
            self.one()
        end.record()
        torch.cuda.synchronize()
        return begin.elapsed_time(end) / 3

    def _capture(self) -> None:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(IN_GRAPH):
                self.one()
        self.graph, self.count = graph, IN_GRAPH
        graph.replay()
        torch.cuda.synchronize()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        self.estimate = begin.elapsed_time(end)


def burst(f: Timed) -> float:
    """Milliseconds of one product."""
    torch.cuda.synchronize()
    time.sleep(REST_S)
    events = [torch.cuda.Event(enable_timing=True) for _ in range(COUNTED + 1)]
    f()
    f()
    for event in events[:-1]:
        event.record()
        f()
    events[-1].record()
    torch.cuda.synchronize()
    return median(a.elapsed_time(b) for a, b in pairwise(events)) / f.count


def sustained(f: Timed, after: Callable[[], Any] = lambda: None) -> float:
    """Milliseconds of one product; `after` is put on the stream behind the last."""
    torch.cuda.synchronize()
    warm, timed = (int(ms / max(f.estimate, 1e-3)) + 1 for ms in (WARM_MS, TIMED_MS))
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for _ in range(warm):
        f()
    begin.record()
    for _ in range(timed):
        f()
    end.record()
    after()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / timed / f.count


def tflops(flops: float, ms: float) -> float:
    return flops / ms / 1e9
