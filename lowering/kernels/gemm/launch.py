"""A kernel on a GPU: what a call's arrays decide is found once for each form of them, and kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tilelayout import LayoutError

from ...backends.driver import (
    Deferred,
    Device,
    Frame,
    MapEncoder,
    Operand,
    Operands,
    ParameterBlock,
    Prepared,
    device,
    load,
)
from ...backends.driver.operands import Known, Taken
from ...backends.driver.sight import kinds_of, pointers_of
from ...dtypes import dtype
from .built import Built
from .chain import Link, links, spaces
from .numbers import Extents, grid_size
from .own_arrays import new_array, own_room
from .shapes import Shaped

if TYPE_CHECKING:
    from .kernel import GemmKernel

_KEPT = 4096
_ROOMS = 64
_SPACE_UNIT = 512
"""Bytes that spaces of a call begin at multiples of."""
_ALIGNED = 15
"""Bits of an address that decide how wide accesses may be."""


class Plan:
    """What is known of the launch of one kernel but for addresses, alpha and beta.

    Attributes:
        built, loaded: the kernel.
        grid: CTAs.
    """

    def __init__(self, link: Link, extents: Extents, gpu: Device, names: Sequence[str]) -> None:
        self.built = built = link.built
        shell, dynamic, data = built.kept
        self.loaded = load(data, shell.name, dynamic, gpu.ordinal)
        self.block = ParameterBlock(shell)
        self.values = built.values(extents, 1.0, 0.0)
        self.grid = (grid_size(built.cut, self.values["tiles"], gpu.multiprocessors), 1, 1)
        self.threads = built.threads
        self.order = tuple([names.index(link.array(b.name)) for b in shell.buffers])
        self.maps = tuple(
            [(names.index(link.array(m.buffer.name)), MapEncoder(m).bound(self.values)) for m in shell.maps]
        )
        self._numbers: dict[tuple[float, float], tuple[Any, ...]] = {}

    def start(self, pointers: tuple[int, ...], alpha: float, beta: float, stream: int) -> None:
        """Launch on arrays in the order of the names."""
        frame = self.block.frame()
        if not alpha or frame.filled != (pointers, alpha, beta):
            self._fill(frame, pointers, alpha, beta)
            frame.filled = (pointers, alpha, beta)
        self.loaded.launch(self.grid, self.threads, frame.arguments, stream)

    def _fill(self, frame: Frame, pointers: tuple[int, ...], alpha: float, beta: float) -> None:
        # 0.0 and -0.0 are one key; beta is 0.0 wherever there is no C.
        numbers = self._numbers.get((alpha, beta)) if alpha else None
        if numbers is None:
            if len(self._numbers) > _KEPT:
                self._numbers.clear()
            numbers = self.built.ordered({**self.values, "alpha": alpha, "beta": beta})
            self._numbers[alpha, beta] = numbers
        maps = tuple([encoded[pointers[i]] for i, encoded in self.maps])
        frame.fill(tuple([pointers[i] for i in self.order]), numbers, maps)

    def prepared(
        self, pointers: tuple[int, ...], alpha: float, beta: float, stream: int
    ) -> Prepared | Deferred:
        """What launches as `start` does, each time it is started."""
        frame = Frame(self.block)
        self._fill(frame, pointers, alpha, beta)
        return self.loaded.prepare(self.grid, self.threads, frame, stream)


class Course:
    """The launches of a call, one after the other.

    Attributes:
        built: the kernel that multiplies.
        plans: of all its kernels.
        spaces: where each space of the call's own begins in the memory that it is given, in bytes.
        room: bytes of that memory; 0 where none is needed.
        ordinal: the GPU.
    """

    def __init__(self, built: Built, extents: Extents, gpu: Device, names: Sequence[str]) -> None:
        self.built = built
        needed = spaces(built, extents)
        sizes = [space.elements * (dtype(space.dtype).bits // 8) for space in needed.values()]
        rounded = [-(-size // _SPACE_UNIT) * _SPACE_UNIT for size in sizes]
        self.spaces = tuple([sum(rounded[:i]) for i in range(len(rounded))])
        self.room = sum(rounded)
        self.ordinal = gpu.ordinal
        self.plans = tuple([Plan(link, extents, gpu, [*names, *needed]) for link in links(built)])

    def addresses(self, room: int) -> tuple[int, ...]:
        """Of the spaces in memory at an address."""
        return tuple([room + begin for begin in self.spaces])

    def start(self, pointers: tuple[int, ...], room: int, alpha: float, beta: float, stream: int) -> None:
        """Launch all, with memory of the call's own at that address (0 where there is none)."""
        every = (*pointers, *self.addresses(room)) if self.room else pointers
        for plan in self.plans:
            plan.start(every, alpha, beta, stream)


EMPTY = object()
"""The launches of a call whose result has no element."""


def operands(kernel: GemmKernel, has_c: bool) -> tuple[list[str], Operands]:
    """The arrays that a call takes, in order: their names, and what reads them."""
    p = kernel.problem
    rank = 3 if p.batched else 2
    a, b = (p.A, p.B) if not kernel.transposed else (p.B, p.A)
    found = [Operand("A", a.dtype, rank), Operand("B", b.dtype, rank)]
    if has_c and p.C is not None:
        found.append(Operand("C", p.C.dtype, rank))
    if p.bias:
        found.append(Operand("bias", p.D.dtype, 1))
    found.append(Operand("D", p.D.dtype, rank, True))
    # What a layout places is not read by the thread that writes to that place.
    placed = p.C is not None and p.C.layout is not None
    return [o.role for o in found], Operands(found, None if placed else "C")


class InRooms(dict[int, tuple[Any, ...]]):
    """The launches of a call that needs memory of its own, by the address of that."""

    def __init__(self, course: Course, launch: tuple[tuple[int, ...], float, float, int]) -> None:
        super().__init__()
        self._course, self._launch = course, launch

    def start(self, like: Any) -> None:
        """Launch, with memory of an array's library."""
        room, _held = own_room(like, self._course.room, self._launch[-1], self._course.ordinal)
        for each in self[room]:
            each.start()

    def __missing__(self, room: int) -> tuple[Any, ...]:
        pointers, alpha, beta, stream = self._launch
        if len(self) >= _ROOMS:
            self.clear()
        every = (*pointers, *self._course.addresses(room))
        found = tuple([plan.prepared(every, alpha, beta, stream) for plan in self._course.plans])
        self[room] = found
        return found


class Alike:
    """Launches of arrays that differ in their addresses alone."""

    def __init__(
        self,
        kernel: GemmKernel,
        names: list[str],
        known: Known,
        at: tuple[int, int],
        numbers: tuple[float, float],
    ) -> None:
        self.kernel, self.names, self.known = kernel, names, known
        self.device, self.stream = at
        self.numbers = numbers
        self.aligned: Any = None  # the launches of arrays whose addresses are all well aligned

    def start(self, key: Any, pointers: tuple[int, ...], A: Any) -> bool:
        """Launch on arrays that may be taken; not where the result has no element.

        The second time it is made ready, and the kernel finds it by `key` from then on: making it ready takes as long
        as several launches.
        """
        plans, numbers = self.kernel.plans, (*self.numbers, self.stream)
        course = self._course(pointers)
        if course is EMPTY:
            return False
        if key not in plans.once:
            if len(plans.once) >= _KEPT:
                plans.once.clear()
            plans.once.add(key)
            start(course, pointers, A, *numbers)
            return True
        if course.room:
            found = InRooms(course, (pointers, *numbers))
        else:
            found = course.plans[0].prepared(pointers, *numbers)
        if len(plans.ready) >= _KEPT:
            plans.ready.clear()
        plans.ready[key] = found
        found.start(A)
        return True

    def _course(self, pointers: tuple[int, ...]) -> Any:
        bits = 0
        for pointer in pointers:
            bits |= pointer
        if self.aligned is not None and not bits & _ALIGNED:  # nearly always
            return self.aligned
        taken = Taken(pointers, self.known.forms, self.device, self.stream, ())
        course = planned(self.kernel, self.names, taken, self.numbers[0], "C" in self.names)
        if not bits & _ALIGNED:
            self.aligned = course
        return course


def start(course: Course, pointers: tuple[int, ...], A: Any, alpha: float, beta: float, stream: int) -> None:
    """Launch a call, with memory of its own where it needs some, of A's library."""
    room, _held = own_room(A, course.room, stream, course.ordinal) if course.room else (0, None)
    course.start(pointers, room, alpha, beta, stream)


def launch(
    kernel: GemmKernel,
    A: Any,
    B: Any,
    D: Any,
    C: Any,
    bias: Any,
    alpha: float,
    beta: float | None,
    stream: Any,
    key: Any = None,
) -> Any:
    """See `GemmKernel.__call__`; `key` is what it looks up, where all that decides the launch is in it."""
    if key is not None:
        seen, pointers = key[0], pointers_of(key[0])
        alike = kernel.plans.alike.get((kinds_of(seen), seen[-2:], *key[1:]))
        # Addresses that have to be looked at, and were, are among those of the first time.
        if (
            alike is not None
            and (not alike.known.near(pointers) or key in kernel.plans.once)
            and alike.start(key, pointers, A)
        ):
            return D
    has_c, factor = kernel.check_operands(C, bias, beta, alpha)
    if D is None:
        return kernel(A, B, new_array(kernel, A, B), C=C, bias=bias, alpha=alpha, beta=beta, stream=stream)
    names, reader = kernel.operands(has_c)
    given = {"A": A, "B": B, "C": C, "bias": bias, "D": D}
    taken = reader.take(tuple([given[name] for name in names]), stream)
    course = planned(kernel, names, taken, alpha, has_c)
    if course is EMPTY:
        return D
    start(course, taken.pointers, A, alpha, factor, taken.stream)
    if key is not None:
        remember(kernel, names, reader, key, (alpha, factor))
    return D


def remember(
    kernel: GemmKernel, names: list[str], reader: Operands, key: Any, numbers: tuple[float, float]
) -> None:
    """That such a call was launched: the next of its kind needs no more than its addresses looked at."""
    seen, plans = key[0], kernel.plans
    known = reader.known(kinds_of(seen))
    if known is None:  # as of a C that is not read
        return
    if len(plans.alike) >= _KEPT:
        plans.alike.clear()
    if len(plans.once) >= _KEPT:
        plans.once.clear()
    plans.alike[kinds_of(seen), seen[-2:], *key[1:]] = Alike(kernel, names, known, seen[-2:], numbers)
    plans.once.add(key)


def planned(kernel: GemmKernel, names: list[str], taken: Taken, alpha: float, has_c: bool) -> Any:
    """The launches of a call, found where they are not known yet."""
    low = 0
    for pointer in taken.pointers:
        low = low << 4 | pointer & _ALIGNED
    key = (taken.forms, low, taken.device, has_c, alpha in (0, 1) and alpha + 1)
    course = kernel.plans.get(key)
    if course is None:
        if len(kernel.plans) >= _KEPT:
            kernel.plans.clear()
        course = kernel.plans[key] = course_of(kernel, names, taken, alpha, has_c)
    return course


def course_of(kernel: GemmKernel, names: list[str], taken: Taken, alpha: float, has_c: bool) -> Any:
    gpu = device(taken.device)
    if gpu.target.sm != kernel.target.sm:
        raise LayoutError(
            "gemm",
            f"the kernel is for {kernel.target}, {gpu.name} is {gpu.target}",
            "make it for that target",
        )
    shaped = {
        name: Shaped(form.shape, tuple([s // form.width for s in form.strides]), pointer)
        for name, form, pointer in zip(names, taken.forms, taken.pointers, strict=True)
    }
    made: Built | None = None
    while made is None:
        built, found = kernel.for_call(kernel.internal(shaped), alpha, has_c, gpu.multiprocessors)
        if found.empty:
            return EMPTY
        made = kernel.assembled(built)
    return Course(made, found, gpu, [kernel.own_names[n] for n in names])
