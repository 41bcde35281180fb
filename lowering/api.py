"""`lower`, and the `Lowered` object: the only room that knows both variants and backends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from tilelayout import LayoutError
from tilelayout.display import Displayed

from . import dispatch as _dispatch
from . import variants as _variants
from .compose import Kernel, stage
from .dispatch import Declined, Variant, declined_table
from .errors import DispatchError
from .program import Program
from .scope import Context, context
from .target import target as _target
from .window import Window

if TYPE_CHECKING:
    from .backends.assemble import Cubin

BUILT_IN = _variants.__all__
"""The built-in variants' modules; importing them has registered them."""


def lower(
    call: Any,
    *,
    target: Any,
    scope: str,
    launch: Any = None,
    active: Any = None,
    dispatch: str | None = None,
    config: Mapping[str, Any] | None = None,
) -> Lowered:
    """Choose a variant for a call and make its program.

    Args:
        call: what a primitive recorded, e.g. ``gemm(D, A, B, C)``.
        target: the architecture, e.g. "sm_80".
        scope: which threads carry it out: "warp", "warpgroup" or "cta".
        launch: threads of the CTA; scope "cta" needs it.
        active: axis -> (begin, end) of the active threads, when something narrows them.
        dispatch: the name of the one variant to use.
        config: passed on to the variants, whose docstrings say what they read; ``{"records": [...]}`` has `gemm` try
            dense records of one's own first.

    Errors: ValueError for an unknown target; DispatchError, with every variant's reasons, when none lowers the call;
    PluginError for a plug-in that does not load.
    """
    where = context(_target(target), scope, launch, active, config)
    if not hasattr(call, "primitive") or not hasattr(call, "operands"):
        raise DispatchError(
            f"lower takes an unresolved call such as gemm(D, A, B, C), got {type(call).__name__}"
        )
    _dispatch.load_plugins()
    variant, program, declined = _dispatch.dispatch(call, where, forced=dispatch)
    return Lowered(call, where, variant, program, declined)


def registered(primitive: str | None = None) -> tuple[Variant, ...]:
    """Every variant, built in and plugged in, in the order in which they are tried."""
    _dispatch.load_plugins()
    return tuple(_dispatch.REGISTRY.variants(primitive))


@contextmanager
def temporary_variants() -> Iterator[None]:
    """Undo the block's registrations at its end; variants built in and plugged in stay.  For tests and notebooks."""
    _dispatch.load_plugins()
    with _dispatch.temporary_variants():
        yield


@dataclass(frozen=True, eq=False)
class Lowered(Displayed):
    """A call with the program that carries it out.

    ``print(lowered)`` shows the unrolled nest.  The rest is made when it is first asked for: ``ptx`` and ``cuda``
    text, ``cubin``, ``device_function`` for numba.cuda, ``run`` on the reference machine, ``launch`` on the GPU.
    """

    call: Any
    context: Context
    chosen: Variant
    program: Program
    declined: tuple[Declined, ...]
    _painter: ClassVar[str] = "lowering.display"
    _explorer: ClassVar[str] = "lowering.explore"

    @property
    def variant(self) -> str:
        """The name of the variant that lowered the call."""
        return self.chosen.name

    @property
    def instructions(self) -> tuple[str, ...]:
        """Mnemonics of the collective instructions that were chosen."""
        return tuple([i.mnemonic for i in self.program.instructions if i.collective])

    def __str__(self) -> str:
        return str(self.program)

    def __repr__(self) -> str:
        return (
            f"<Lowered {self.call} by {self.variant} for {self.context.target} at {self.context.scope} scope>"
        )

    def explain(self) -> str:
        """What was chosen, which of its accesses to shared memory have bank conflicts, and why the others declined."""
        from .backends.banks import bank_text

        used = self.instructions or tuple([i.name for i in self.program.instructions])
        lines = [
            f"{self.call}",
            f"  chosen: {self.variant} (priority {self.chosen.priority}): {', '.join(used)}",
        ]
        banks = bank_text(self.program)
        if banks:
            lines.append(banks)
        if self.declined:
            lines.append(declined_table(self.declined))
        else:
            lines.append("  no other variant was tried before it")
        return "\n".join(lines)

    # --- text and machine code ------------------------------------------------------------------

    @cached_property
    def kernel(self) -> Kernel:
        """The program with loads and stores around it: a whole kernel on row-major global tensors, one CTA.

        The CTA has the threads of ``launch=``; warps beyond those of the scope do the same work and store the same.
        Errors: LayoutError for a copy, which is a part of a kernel and no whole one.
        """
        if self.program.buffers:
            raise LayoutError(
                "kernel",
                f"{self.call} goes from one memory to another, and is no kernel by itself",
                "lowering.sequence([...]) makes one of several calls",
            )
        return stage(self.program, self.call.tiles, self.context.launch)

    @cached_property
    def ptx(self) -> str:
        """A PTX module with the whole kernel; it assembles as it is."""
        from .backends.ptx import ptx_module

        return ptx_module(self.kernel.program, self.context.target, self.kernel.threads)

    @cached_property
    def cuda(self) -> str:
        """CUDA C++ without includes: a helper per instruction, the register program, and the whole kernel."""
        from .backends.cuda_text import cuda_source

        return cuda_source(self.kernel)

    @cached_property
    def cubin(self) -> Cubin:
        """The kernel's machine code, assembled here (no GPU needed); spills and local memory are refused."""
        from .backends.assemble import assemble

        return assemble(self.ptx, self.context.target)

    # --- running --------------------------------------------------------------------------------

    def operands(self, arrays: Mapping[str, Any]) -> dict[str, Any]:
        """The given arrays by role, checked and rounded to their tiles' types.

        Errors: LayoutError for a missing operand, one that is not read, or one that does not fit its tile.
        """
        from .backends.reference import as_operand

        tiles = self.call.tiles
        windows = [x for x in tiles.values() if isinstance(x, Window)]
        if windows:
            raise LayoutError(
                "run",
                f"{windows[0]} is a window on a tensor whose extents a launch gives",
                "put the program into a kernel: backends.cta_machine.run_grid runs those",
            )
        reads = {r.role for r in self.program.inputs} | self.program.loaded
        given = self._by_role({name: x for name, x in arrays.items() if x is not None})
        unknown = sorted(set(given) - set(tiles))
        if unknown:
            known = ", ".join(
                [f"{role} (tile {t.name})" if t.name != role else role for role, t in tiles.items()]
            )
            raise LayoutError("run", f"there is no operand {', '.join(unknown)}", f"it has {known}")
        missing = sorted(reads - set(given) - {"D", "dst"})  # the result's earlier content may be left out
        if missing:
            hint = "C is passed as C=, also when C is D" if missing == ["C"] else None
            raise LayoutError("run", f"operand {', '.join(missing)} is read and was not given", hint)
        checked = {role: as_operand(x, tiles[role], role) for role, x in given.items()}
        both = "C" in checked and "D" in checked and tiles["C"] == tiles["D"]
        if both and checked["C"].tobytes() != checked["D"].tobytes():
            raise LayoutError(
                "run", "C and D are one tile, and were given as different arrays", "give it once, as C"
            )
        return {role: x for role, x in checked.items() if role in reads}  # beta 0 leaves a C unread

    def _by_role(self, given: dict[str, Any]) -> dict[str, Any]:
        """Arrays by role, of what is given by role or, where no role is called so, by the name of one operand's tile.

        Errors: LayoutError for an operand that is given twice.
        """
        tiles = self.call.tiles
        out: dict[str, Any] = {}
        for name, x in given.items():
            named = [role for role, t in tiles.items() if t.name == name] if name not in tiles else []
            role = named[0] if len(named) == 1 else name
            if role in out:
                raise LayoutError(
                    "run", f"operand {role} is given twice, as {role} and as {name}", "give it once"
                )
            out[role] = x
        return out

    def run(
        self,
        A: Any = None,
        B: Any = None,
        C: Any = None,
        D: Any = None,
        *,
        numerics: str = "exact",
        **operands: Any,
    ) -> Any:
        """Execute on the reference machine (any CPU).

        Args:
            operands: by role, of other primitives: ``run(src=...)`` of a copy returns dst; or by the name of its tile,
                where no role is called so.
            A, B, C: arrays in the shape of the operands' tiles; C is needed only when beta is not 0, also when C is D.
                Of the tiles' numpy types (`lowering.dtypes`: float32 for tfloat32, of which the instruction drops the
                low 13 bits, bool for uint1), or of wider floats, which are rounded once to nearest even, or of
                integers whose values the tile's type has.
            D: D's content before, for a D that is a region of its tile; NaN (-1 of integers) there when left out.
            numerics: how products are added up: "exact", the exact sum of each instruction rounded once, or an
                architecture as measured ("sm_80", "sm_90" ...), see `lowering.isa.numerics`.

        Returns D as an array of its tile's shape and type; inputs stay as they were.
        Errors: LayoutError for a wrong operand, or a model that is not known or nobody published for an instruction;
        MachineError if the program reads what holds nothing.
        """
        from .backends import reference

        given = self.operands({"A": A, "B": B, "C": C, "D": D, **operands})
        found = reference.run_tiles(self.program, self.call.tiles, given, self.context.warp_axis, numerics)
        return found["D" if "D" in found else "dst"]

    def launch(self, A: Any = None, B: Any = None, C: Any = None, D: Any = None, **operands: Any) -> Any:
        """Execute on the GPU; arguments and result as in `run`.

        Errors: ImportError without the extra ``cuda``; RuntimeError where there is no driver or no GPU.
        """
        from .backends import numba_cuda

        given = self.operands({"A": A, "B": B, "C": C, "D": D, **operands})
        return numba_cuda.launch(self.kernel, self.call.tiles, given, self.gpu_kernel)

    @cached_property
    def gpu_kernel(self) -> Any:
        """The whole kernel as a ``@cuda.jit`` function ``(A, B, [C], [D before], D)``, compiled when first launched."""
        from .backends import numba_cuda

        return numba_cuda.kernel(self.kernel, self.call.tiles)

    @cached_property
    def device_function(self) -> Any:
        """For numba.cuda: ``d = f(a, b, c)`` on Fragment values, with load, store and element helpers beside it.

        Of a copy: ``fragment = f(array)``, ``f(array, fragment)`` or ``f(array, array)``, see
        `backends.numba_cuda.MemoryFunction`.
        """
        from .backends import numba_cuda

        if self.program.buffers:
            return numba_cuda.memory_function(self.program, dict(self.call.operands()))
        return numba_cuda.device_function(self.program, self.call.tiles)
