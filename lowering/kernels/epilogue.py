"""What happens between the accumulators and the result: scaling, C, a bias, a function, rounding, and the store.

``out = round(function(alpha * sum + beta * C + bias))``, of which a kernel has the parts that its `Epilogue` names.  It
is computed in float32; in float64 for sums of float64, and for int32 that stay int32, which are left as they are where
nothing is done to them.  The sums are overwritten on the way, and little else is held: lines of at most 16 elements (of
4, where a number takes more registers than its sum) follow one another, and what C has for the next two is under way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tilelayout import LayoutError, TileLayout

from ..control import Parameter
from ..isa import COPY
from ..isa.arithmetic import ADD, FMA, MUL
from ..isa.convert import FLOAT64_TO_INT32, INT32_TO_FLOAT64, UNPACK, packing
from ..isa.parameter import LOAD_PARAMETER
from ..isa.record import Instruction
from ..program import Buffer, Instr, Registers, Slot, Statement
from ..registers import register_file
from ..target import Target
from ..variants.values import Values, with_scratch
from ..variants.window_places import Coordinate
from ..window import Window
from .accesses import Accesses
from .epilogue_spec import ALONG, AT_ONCE, BIASES, Epilogue
from .read import NUMBER, Element, Reader

AHEAD = 2
"""Lines whose elements of C are under way while one is finished."""


@dataclass(frozen=True)
class Tail:
    """The end of a tile.

    Attributes:
        statements: in order.
        scratch: registers beside the sums.
        buffers: what is read and written beside: D where it is stored to directly, C, the bias.
        parameters: numbers that a launch gives.
    """

    statements: tuple[Statement, ...]
    scratch: tuple[Registers, ...]
    buffers: tuple[Buffer, ...]
    parameters: tuple[Parameter, ...]


@dataclass
class Finish:
    """Statements that finish sums, under construction; `epilogue` makes one.

    Attributes:
        spec: what is done.
        values: scratch registers and statements.
        sums: the accumulators.
        at: slot of the accumulators -> its coordinate in the tile, in terms of lane and warp.
        C, bias: what is read beside.
        scalars: alpha and beta.
        biases: numbers of a bias that stay in registers.
        known: numbers that came out of a register of several sums.
        fetched: elements of C that are under way.
    """

    spec: Epilogue
    values: Values
    sums: Registers
    at: dict[int, Coordinate]
    C: Reader | None = None
    bias: Reader | None = None
    scalars: dict[str, Slot] = field(default_factory=dict)
    biases: dict[Coordinate, Slot] = field(default_factory=dict)
    known: dict[int, Slot] = field(default_factory=dict)
    fetched: dict[int, Element] = field(default_factory=dict)

    # --- what callers use -----------------------------------------------------------------------

    def begin(self) -> list[Statement]:
        """Once a tile, before the rest: where C and the bias are, what a launch gave, and a bias that stays."""
        return self._made(self._begin)

    def fetch(self, slots: Sequence[int]) -> list[Statement]:
        """Loads what C has for some accumulators, to be used when they are finished; nothing without a C.

        A kernel fetches ahead of what it finishes, so that nothing waits for memory.
        """
        return self._made(lambda: self._fetch(slots))

    def packed(self, slots: Sequence[int], into: Sequence[Slot]) -> list[Statement]:
        """Finished elements, in the order of the slots, in registers of the result's type, low bits first.

        Errors: LayoutError for another number of registers than the elements fill.
        """
        some = self.spec.at_once
        if len(slots) == len(into) and some < AT_ONCE:  # a register each: a few at a time

            def each() -> None:
                for i in range(0, len(slots), some):
                    self._pack(self._numbers(slots[i : i + some]), into[i : i + some])

            return self._made(each)
        return self._made(lambda: self._pack(self._numbers(slots), into))

    def stored(self, D: Accesses) -> list[Statement]:
        """All elements, to where the tensor has them."""
        return self._made(lambda: self._store(D))

    def _made(self, make: Callable[[], None]) -> list[Statement]:
        first = len(self.values.statements)
        make()
        found = self.values.statements[first:]
        del self.values.statements[first:]
        return found

    # --- what is read ---------------------------------------------------------------------------

    def _begin(self) -> None:
        for reader in (self.C, self.bias):
            if reader is not None:
                for slot in self.at:
                    reader.access.places.family(self._coordinate(reader, slot))
                self.values.statements += reader.access.places.statements
        for p in self.spec.parameters:
            self.scalars[p.name] = self.values.take(self.spec.kind)
            load = LOAD_PARAMETER[self.spec.kind]
            self.values.statements.append(Instr(load, ((self.scalars[p.name],), p)))
        if self.bias is not None:
            wanted = list(dict.fromkeys([self._coordinate(self.bias, slot) for slot in self.at]))
            if len(wanted) <= self.spec.at_once:
                self.biases = self._some_biases(self.bias, wanted)

    def _coordinate(self, reader: Reader, slot: int) -> Coordinate:
        """Of the element that goes with an accumulator."""
        if reader is self.bias:
            return (self.at[slot][ALONG[self.spec.bias]],)
        return self.at[slot]

    def _fetch(self, slots: Sequence[int]) -> None:
        if self.C is not None:
            wanted = [s for s in slots if s not in self.fetched]
            elements = self.C.load([self._coordinate(self.C, s) for s in wanted])
            self.fetched |= dict(zip(wanted, elements, strict=True))

    @staticmethod
    def _some_biases(bias: Reader, wanted: Sequence[Coordinate]) -> dict[Coordinate, Slot]:
        once = list(dict.fromkeys(wanted))
        return {x: bias.number(e) for x, e in zip(once, bias.load(once), strict=True)}

    # --- what is computed -----------------------------------------------------------------------

    def _numbers(self, slots: Sequence[int]) -> list[Slot]:
        """The finished numbers of some accumulators, not rounded yet; to be released."""
        values, kind, f = self.values, self.spec.kind, self.spec.function
        numbers = [self._sum(slot) for slot in slots]
        if "alpha" in self.scalars:
            for n in numbers:
                values.do(MUL[kind], n, n, self.scalars["alpha"])
        if self.C is not None:
            self._fetch(slots)
            for n, slot in zip(numbers, slots, strict=True):
                c = self.C.number(self.fetched.pop(slot))
                values.do(FMA[kind], n, self.scalars["beta"], c, n)
                values.release(c)
        if self.bias is not None:
            wanted = [self._coordinate(self.bias, slot) for slot in slots]
            own = self.biases or self._some_biases(self.bias, wanted)
            for n, x in zip(numbers, wanted, strict=True):
                values.do(ADD[kind], n, n, own[x])
            if not self.biases:
                values.release(*own.values())
        if f is not None:
            for n in numbers:
                values.do(f, n, n)
        return numbers

    def _sum(self, slot: int) -> Slot:
        """An accumulator as a number of the epilogue's kind: the register itself where it is one."""
        kind, group, values = self.spec.kind, self.sums, self.values
        if group.kind == kind:
            return Slot(group, slot)
        if slot not in self.known:
            per = group.per_register
            register = Slot(group, slot // per)
            if kind == "f64":
                out = [values.take("f64")]
                values.do(INT32_TO_FLOAT64, out[0], register)
            else:
                out = values.unpack(register)
            first = slot // per * per
            self.known |= {first + k: s for k, s in enumerate(out)}
        return self.known.pop(slot)

    # --- what is written ------------------------------------------------------------------------

    def _pack(self, numbers: Sequence[Slot], into: Sequence[Slot]) -> None:
        """Numbers rounded into registers of the result's type, and released; the last is repeated to fill the last."""
        record = self._rounding()
        per = len(record.operands) - 1
        if len(into) != -(-len(numbers) // per):
            raise LayoutError(
                "epilogue", f"{len(numbers)} numbers, {per} a register, into {len(into)} registers"
            )
        for i, register in enumerate(into):
            part = list(numbers[i * per : (i + 1) * per])
            self.values.do(record, register, *part, *[part[-1]] * (per - len(part)))
            self.values.release(*part)

    def _rounding(self) -> Instruction:
        kind, out = self.spec.kind, self.spec.out
        if kind == "f64":
            wide = {"float64": COPY["f64"], "float32": UNPACK["float64"][0], "int32": FLOAT64_TO_INT32}
            return wide[out]
        return COPY["b32"] if kind == "b32" else packing(out, self.values.target)

    @property
    def _as_they_are(self) -> bool:
        """Whether the numbers are the result's registers."""
        return self.spec.out == NUMBER[self.spec.kind]

    def _store(self, D: Accesses) -> None:
        values = self.values
        for coordinate in self.at.values():
            D.places.family(coordinate)
        values.statements += D.places.statements
        slots = list(self.at)
        found = D.lines([self.at[s] for s in slots], self.spec.at_once)
        for number, (line, _) in enumerate(found):
            for _, ahead in found[number : number + AHEAD + 1]:
                self._fetch([slots[i] for i in ahead])
            numbers = self._numbers([slots[i] for i in found[number][1]])
            registers = numbers
            if not self._as_they_are:
                registers = [values.take(D.kind) for _ in range(D.count(line))]
                self._pack(numbers, registers)
            values.statements += D.store([(line, registers)])
            values.release(*registers)


def epilogue(
    spec: Epilogue,
    sums: Registers,
    layout: TileLayout,
    shape: tuple[int, int],
    build: Callable[[Finish], list[Statement]],
    *,
    target: Target,
    C: Window | None = None,
    bias: Window | None = None,
    inside: frozenset[int] = frozenset(),
    name: str = "tail",
) -> Tail:
    """The statements that `build` makes of a `Finish`, with the scratch registers that they take.

    Args:
        spec: what is done to the sums.
        sums: the accumulators.
        layout: where each element of the tile is in them: lanes, warps, and slots on m.
        shape: rows and columns of the tile.
        build: which elements are finished when; it is called twice, and makes the same statements.
        target: what conversions are chosen for.
        C, bias: windows on what is read: C a box of the tile's shape, the bias one of its columns or rows.
        inside: dimensions of the tile (0 rows, 1 columns) in which the caller knows it to be within the result.
        name: of the scratch registers.

    Errors: LayoutError for an operand that is missing or of another shape, a conversion that the target lacks.
    """
    _check_operands(spec, shape, C, bias)
    file = register_file(layout, shape)
    made: list[Finish] = []

    def once(values: Values) -> None:
        read = None if C is None else Accesses(C, "C", file.warps, _dims(C, inside))
        along = frozenset([0]) if {"row": 1, "column": 0}.get(spec.bias) in inside else frozenset[int]()
        vector = None if bias is None else Accesses(bias, "bias", file.warps, along)
        first, second = (
            None if x is None else Reader(x, values, spec.kind, spec.at_once) for x in (read, vector)
        )
        finish = Finish(spec, values, sums, dict(sorted(file.coordinates.items())), first, second)
        made.append(finish)
        values.statements += build(finish)

    statements, scratch = with_scratch(target, name, once)
    beside = [x.access.buffer for x in (made[-1].C, made[-1].bias) if x is not None]
    return Tail(tuple(statements), scratch, tuple(beside), spec.parameters)


def direct_epilogue(
    spec: Epilogue,
    sums: Registers,
    layout: TileLayout,
    D: Window,
    *,
    target: Target,
    C: Window | None = None,
    bias: Window | None = None,
    inside: frozenset[int] = frozenset(),
) -> Tail:
    """Sums of a tile to D, each lane storing what it holds.

    Post-condition: every element of the tile that D has holds its finished sum, and nothing else of D is touched; of C
    and the bias only elements that they have are read.

    Arguments and errors as of `epilogue`; the tile's shape is that of D's box.
    """
    shape = matrix_shape(D)
    file = register_file(layout, shape)
    stored: list[Accesses] = []

    def build(finish: Finish) -> list[Statement]:
        stored.append(Accesses(D, "D", file.warps, _dims(D, inside)))
        return [*finish.begin(), *finish.stored(stored[-1])]

    tail = epilogue(spec, sums, layout, shape, build, target=target, C=C, bias=bias, inside=inside)
    return Tail(tail.statements, tail.scratch, (stored[-1].buffer, *tail.buffers), tail.parameters)


def matrix_shape(window: Window) -> tuple[int, int]:
    """Rows and columns of a window on matrices: its last two dimensions; of those before it has one element.

    Errors: LayoutError for another box.
    """
    *batches, rows, columns = (1, *window.box)
    if len(window.box) < 2 or any(n != 1 for n in batches) or 1 in (rows, columns):
        raise LayoutError("epilogue", f"{window} is no box of rows and columns of one matrix")
    return rows, columns


def _dims(window: Window, inside: frozenset[int]) -> frozenset[int]:
    """Rows and columns as dimensions of a window that has batches before them."""
    return frozenset([d + len(window.box) - 2 for d in inside])


def _check_operands(spec: Epilogue, shape: tuple[int, int], C: Window | None, bias: Window | None) -> None:
    if spec.has_c != (C is not None) or bool(spec.bias) != (bias is not None):
        has = [n for n, x in (("C", C), ("bias", bias)) if x is not None]
        raise LayoutError("epilogue", f"{spec} with {' and '.join(has) or 'neither C nor bias'}")
    if C is not None and matrix_shape(C) != shape:
        raise LayoutError("epilogue", f"C is {C} of {matrix_shape(C)}, the tile is {shape}")
    if bias is not None and tuple([n for n in bias.box if n != 1]) != (shape[ALONG[spec.bias]],):
        raise LayoutError(
            "epilogue", f"bias is {bias} of {bias.box}, the tile is {shape}, bias {spec.bias!r}"
        )


__all__ = [
    "AT_ONCE",
    "BIASES",
    "Epilogue",
    "Finish",
    "Tail",
    "direct_epilogue",
    "epilogue",
    "matrix_shape",
]
