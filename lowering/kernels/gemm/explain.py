"""How a kernel works, in words and numbers: what lowers each part of it, what it takes, and what it moves."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import groupby
from textwrap import wrap
from typing import TYPE_CHECKING

from tilelayout import LayoutError

from ...errors import DriverError
from .built import Built, Copier, Packer
from .chain import links
from .config import PRODUCERS, Config
from .numbers import Extents, grid_size, k_tiles, parts_of, tiles_of
from .occupancy import occupancy
from .pieces import Piece, counted, pieces
from .problem import Matrix, Problem
from .shapes import Shaped
from .traffic import Traffic, traffic

if TYPE_CHECKING:
    from ...backends.assemble import Cubin
    from .kernel import GemmKernel

MULTIPROCESSORS = 132
"""Of the GPU that is thought of where there is none."""
_WIDTH, _LINE = 16, 110
"""Of the first column, and of a line."""
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


def explain(kernel: GemmKernel, M: int | None = None, N: int | None = None, K: int | None = None) -> str:
    """See `GemmKernel.explain`; the arrays are packed and well aligned.

    Errors: LayoutError where some extents are given and others are not, and for those that no launch takes.
    """
    given = [x for x in (M, N, K) if x is not None]
    if len(given) not in (0, 3) or any(type(x) is not int or x < 0 for x in given):
        raise LayoutError(
            "explain", f"M = {M}, N = {N}, K = {K}", "all three extents, integers from 0, or none"
        )
    found: Extents | None = None
    multiprocessors, where = _multiprocessors(kernel)
    if M is None or N is None or K is None:
        built = _that_runs(kernel, kernel.best, lambda: kernel.best)
    else:
        shaped = _packed(kernel.problem, *((N, M, K) if kernel.transposed else (M, N, K)))
        has_c = kernel.problem.C is not None
        built, found = kernel.for_call(shaped, 1.0, has_c, multiprocessors)
        if not found.empty:
            again = lambda: kernel.for_call(shaped, 1.0, has_c, multiprocessors)[0]  # noqa: E731
            built = _that_runs(kernel, built, again)
        for link in () if found.empty else links(built):
            link.built.values(found, 1.0, 1.0)  # refuses what a launch would
    lines = [repr(kernel), *_cut(kernel, built)]
    chain = links(built)
    for number, link in enumerate(chain, 1):
        lines += ["", f"kernel {number} of {len(chain)}, which {link.what}"] if len(chain) > 1 else []
        for piece in pieces(link.built):
            lines += ["", *_piece(piece)]
        if link.built is built:
            lines += ["", *_end(built, found), "", *_shared(built), "", *_machine_code(built)]
    if found is not None:
        lines += ["", *_launch(built, found, multiprocessors, where, kernel.transposed)]
    return "\n".join(lines)


def _that_runs(kernel: GemmKernel, built: Built, again: Callable[[], Built]) -> Built:
    """What is chosen again until it does not spill; as it is where nothing assembles here, or nothing else is left."""
    try:
        while kernel.assembled(built) is None:
            built = again()
    except (ImportError, LayoutError):
        pass
    return built


def _multiprocessors(kernel: GemmKernel) -> tuple[int, str]:
    """Of the current GPU if the kernel is for it; and whose they are."""
    from ...backends.driver import device

    try:
        gpu = device()
    except (DriverError, ImportError):
        return MULTIPROCESSORS, "as an H100 or H200 has"
    if gpu.target.sm != kernel.target.sm:
        return MULTIPROCESSORS, "as an H100 or H200 has"
    return gpu.multiprocessors, f"of {gpu.name}"


def _packed(problem: Problem, m: int, n: int, k: int) -> dict[str, Shaped]:
    """Arrays of these extents without gaps."""

    def shaped(x: Matrix) -> Shaped:
        rows, columns = {"A": (m, k), "B": (k, n)}.get(x.name, (m, n))
        strides = (max(1, columns), 1) if x.order == "row" else (1, max(1, rows))
        if problem.batched:
            return Shaped((1, rows, columns), (rows * columns, *strides))
        return Shaped((rows, columns), strides)

    out = {x.name: shaped(x) for x in problem.matrices}
    if problem.bias:
        out["bias"] = Shaped((n if problem.bias == "row" else m,), (1,))
    return out


# --- text -------------------------------------------------------------------------------------------


def _row(what: str, text: str) -> str:
    return f"  {what:<{_WIDTH}}{text}".rstrip()


def _cut(kernel: GemmKernel, built: Built) -> list[str]:
    c, p = built.config, built.problem
    m, n, k = c.tile
    feeding = f", {c.all_warps - c.multipliers} feed" if c.all_warps > c.multipliers else ""
    if c.beside:
        feeding = f", 1 feeds, {PRODUCERS - 1} copy the rest of {' and '.join(c.packed)} beside"
    aligned = ", ".join([f"{x.name} to {x.alignment}" for x in p.matrices])
    return [
        *(
            [_row("transposed", "below, A is the caller's B and B its A, all of them transposed")]
            * kernel.transposed
        ),
        _row("configuration", str(c)),
        _row("tile", f"{m} x {n} of D, {k} along K in each of {c.stages} stages"),
        _row("warps", f"{c.multipliers} multiply, {c.warps[0]} x {c.warps[1]}{feeding}"),
        _row("sums", p.accumulator),
        _row("aligned", f"{aligned} bytes"),
        *[_row("before", _before(copier)) for copier in built.packers],
    ]


def _before(copier: Copier) -> str:
    """What a kernel does that runs first."""
    alignments = [str(getattr(copier.problem, x).alignment) for x in copier.copied]
    if isinstance(copier, Packer):
        rows, columns, _ = copier.cut.tile
        what, tiles = copier.copied, f", in tiles of {rows} x {columns}"
    else:
        what, tiles = f"what the first tiles need of {' and '.join(copier.copied)}", ""
    aligned = " and ".join(dict.fromkeys(alignments))
    return f"a kernel copies {what}, aligned to {aligned} bytes, to rows of whole cache lines{tiles}"


def _piece(piece: Piece) -> list[str]:
    """What is done, by which variant, with what, and why by no other: the first reason of each."""
    used = ", ".join([f"{n} of {name}" for name, n in piece.instructions.items()])
    lines = [f"{piece.what}: {piece.lowered.variant}", *_wrapped(str(piece.lowered.call), 2), f"  {used}"]
    # Neighbors of one reason share a line, so that variants stay in the order in which they are tried.
    for reason, those in groupby(piece.declined, key=lambda d: d.reasons[0]):
        lines += _wrapped(f"not {', '.join([d.variant for d in those])}: {reason}", 2, 6)
    return lines


def _wrapped(text: str, indent: int, further: int = 4) -> list[str]:
    return wrap(
        text, _LINE, initial_indent=" " * indent, subsequent_indent=" " * further,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def _end(built: Built, found: Extents | None) -> list[str]:
    """The way from the sums to D."""
    e, p = built.problem.epilogue, built.problem
    text = "alpha * sum" if e.scaled else "sum"
    text += " + beta * C" * e.has_c + " + bias" * bool(e.bias)
    text = f"{e.function.name}({text})" if e.function is not None else text
    lines = [f"epilogue: {p.D.dtype}({text})"]
    if built.second is not None:
        count = built.config.splits if found is None else parts_of(built.config, found)
        lines += [
            f"  by a second kernel, which adds up the {count} parts of K that this one stores as "
            f"{p.accumulator}"
        ]
    if not built.config.slots:
        stores = {name: n for name, n in counted(built.program).items() if _stores_result(built, name)}
        lines.append(
            f"  each lane stores what it holds: {', '.join(f'{n} of {x}' for x, n in stores.items())}"
        )
    return lines


def _stores_result(built: Built, name: str) -> bool:
    """Whether an instruction of that name stores to global memory."""
    found = next(i for i in built.program.instructions if i.name == name)
    return found.stores and any(o.kind == "address" for o in found.operands)


def _shared(built: Built) -> list[str]:
    """The map of shared memory, and the conflicts of every access to it."""
    from ...backends.banks import shared_accesses

    shared = built.shared_memory
    kind = "dynamic" if shared.dynamic else "declared"
    lines = [f"shared memory: {shared.bytes} bytes, {kind}"]
    for b, begin in shared.offsets.items():
        lines.append(_row(b.name, f"{b.bytes:>7} bytes from {begin:>6}, {b.dtype}, aligned to {b.alignment}"))
    found = [(a.instruction, a.buffer, a.degree) for a in shared_accesses(built.program)]
    for name, buffer, degree in dict.fromkeys(found):
        conflicts = "no bank conflicts" if degree == 1 else f"{degree}-way bank conflicts"
        count = found.count((name, buffer, degree))
        lines.append(_row("", f"{count} of {name} on {buffer}: {conflicts}"))
    return lines


def _assembled(built: Built) -> Cubin:
    """The machine code, with local memory where there is no other."""
    from ...backends.assemble import AssemblerError
    from ...backends.driver import cached_cubin

    try:
        return built.cubin
    except AssemblerError:
        return cached_cubin(built.ptx, built.target, allow_spills=True)


def _machine_code(built: Built) -> list[str]:
    """Registers and what they leave room for."""
    try:
        cubin = _assembled(built)
    except ImportError as error:
        return [f"machine code: {error}"]
    local = f"{cubin.local_bytes} bytes of local memory" if cubin.local_bytes else "no local memory"
    lines = [
        f"machine code: {len(cubin.data)} bytes",
        _row("registers", f"{cubin.registers} of a thread, {local}"),
    ]
    moved = [re.fullmatch(r"setmaxnreg\.(inc|dec)\.(\d+)", i.name) for i in built.program.instructions]
    counts = {found[1]: found[2] for found in moved if found is not None}
    if counts:
        lines.append(_row("", f"then {counts['inc']} of a multiplying one, {counts['dec']} of a feeding one"))
    room = occupancy(built.target, built.threads, cubin.registers, built.shared_memory.bytes)
    limits = ", ".join([f"{name} for {n}" for name, n in room.limits.items() if name != "CTAs"])
    lines.append(
        _row("CTAs", f"{room.ctas} on a multiprocessor: there are {limits}; {room.limits['CTAs']} at most")
    )
    return lines


def _launch(built: Built, found: Extents, multiprocessors: int, where: str, transposed: bool) -> list[str]:
    """What a launch on packed arrays does."""
    c = built.config
    m, n = (found.N, found.M) if transposed else (found.M, found.N)
    head = f"M = {m}, N = {n}, K = {found.K}:"
    rows, columns = tiles_of(c, found)
    parts = parts_of(c, found)
    tiles = rows * columns * found.batches * parts
    if found.empty:
        return [head, _row("tiles", "none: D has no element")]
    ctas = grid_size(c, tiles, multiprocessors)
    waves = -(-tiles // ctas)
    done = traffic(built.problem, c, found)
    return [
        head,
        _row("tiles", f"{_product(rows, columns, c, found)}, each of {k_tiles(c, found)} stages"),
        *([_row("parts of K", f"{parts}: no more of {c.splits} have a stage")] if parts < c.splits else []),
        _row("CTAs", f"{ctas} on {multiprocessors} multiprocessors, {where}"),
        _row("waves", f"{waves}, which are {100 * tiles / (waves * ctas):.0f} % full"),
        *_traffic(done),
    ]


def _product(rows: int, columns: int, config: Config, found: Extents) -> str:
    """How many tiles there are, and of what."""
    text, count = f"{rows} x {columns}", rows * columns
    for n, what in ((found.batches, "batches"), (parts_of(config, found), "parts of K")):
        if n > 1:
            text, count = f"{text} x {n} {what}", count * n
    return f"{text} = {count}"


def _traffic(t: Traffic) -> list[str]:
    parts = ", ".join([f"{name} {_bytes(n)}" for name, n in t.moved.items()])
    lines = [
        _row("moved", f"{_bytes(t.total)} between global memory and the CTAs: {parts}"),
        _row("at least", f"{_bytes(t.least)}, each matrix once; {t.total / t.least:.1f} times that is moved"),
        _row("operations", f"{t.operations:.4g} asked for, {100 * t.useful:.0f} % of those carried out"),
    ]
    each, most = t.operations / t.total, t.operations / t.least
    return [*lines, _row("intensity", f"{each:.1f} operations a byte moved, {most:.1f} at most")]


def _bytes(n: int) -> str:
    """In the largest unit of which there is one."""
    size, unit = float(n), 0
    while size >= 1024 and unit + 1 < len(_UNITS):
        size, unit = size / 1024, unit + 1
    return f"{size:.1f} {_UNITS[unit]}" if unit else f"{n} bytes"
