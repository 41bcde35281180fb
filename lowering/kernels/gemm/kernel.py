"""What a user holds: a kernel that is called on arrays, simulated, printed and explained."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tilelayout import LayoutError

from ...target import Target
from .built import Built
from .chain import links
from .choose import choose
from .config import Config, plain
from .config_check import check_config
from .factors import check_factor
from .numbers import Extents, check_limits
from .operands import SWAPPED, flipped
from .plans import Plans
from .problem import Problem
from .shapes import Shaped, alignments, extents

if TYPE_CHECKING:
    from ...backends.assemble import Cubin
    from ...program import Program
    from .tuned import Tuned

_launch: Any = None
_readers: Any = None


class GemmKernel:
    """``D = epilogue(alpha * A @ B + beta * C + bias)`` for any extents; made by `gemm`.

    Machine code is made when a call needs it: which depends on how the arrays are aligned, on the extents, and on
    whether alpha and C are used; and it is kept.

    Attributes:
        problem: types and orders, D row-major: a column-major D is the row-major one of the transposed problem.
        target: the architecture.
        transposed: whether the problem is carried out transposed.
        config: how it is cut; None where that is chosen for each call.
    """

    def __init__(
        self, problem: Problem, target: Target, config: Config | None = None, transposed: bool = False
    ) -> None:
        self.problem, self.target, self.config, self.transposed = problem, target, config, transposed
        self._built: dict[tuple[Problem, Config], Built] = {}
        self._spilled: dict[Problem, tuple[Config, ...]] = {}
        self.plans = Plans()  # of `launch`
        self._operands: dict[bool, Any] = {}

    # --- what is built ---------------------------------------------------------------------------

    def built(
        self,
        found: Extents | None = None,
        aligned: Mapping[str, int] | None = None,
        *,
        scaled: bool = False,
        has_c: bool = True,
        multiprocessors: int = 132,
    ) -> Built:
        """The kernel for extents and alignments: of the best aligned arrays where nothing is said.

        Errors: LayoutError for a configuration that asks for more than the arrays have.
        """
        problem = replace(self.problem, scaled=scaled, C=self.problem.C if has_c else None)
        problem = problem.aligned(**(aligned or {}))
        config = self._asked(found)
        if config is None:
            config = self._tuned(problem, found) or choose(
                problem, self.target, found, multiprocessors, self._spilled.get(problem, ())
            )
        else:
            check_config(problem, config, found, self.target, self.transposed)
        key = (problem, config)
        if key not in self._built:
            self._built[key] = Built(problem, config, self.target)
        return self._built[key]

    def assembled(self, built: Built) -> Built | None:
        """The same with its machine code made; None where that spills and another way is to be chosen instead.

        Errors: LayoutError where it spills and the configuration was asked for, or none is left.
        """
        from ...backends.assemble import SpillError

        try:
            for link in links(built):
                link.built.kept  # noqa: B018  made now
        except SpillError as error:
            known = self._spilled.get(built.problem, ())
            if built.config != self.config and built.config not in known:
                self._spilled[built.problem] = (*known, built.config)
                return None
            fewer = "beside=False, " * built.config.beside + "resident=1, " * (built.config.resident > 1)
            remedy = f"{fewer}more warps, a smaller tile, or no config: the kernel chooses one that does without then"
            what = f"{built.config} takes {error.taken} on {self.target}"
            raise LayoutError(
                "gemm", what, remedy if built.config == self.config else "config=, with a smaller tile"
            ) from error
        return built

    def _asked(self, found: Extents | None) -> Config | None:
        """The configuration that was asked for; None where the kernel chooses.

        Feeds that fill a stage ahead have nothing to fill it with where no factor is read, which may not even be there:
        such calls are cut anew, whatever was asked for, and nothing is copied for them.
        """
        if self.config is None or found is None or found.K != 0:
            return self.config
        return (
            None
            if self.config.feed != "registers"
            else replace(self.config, packed="", spread=False, beside=False)
        )

    def _tuned(self, problem: Problem, found: Extents | None) -> Config | None:
        from .tune import remembered

        return remembered(problem, self.target, found)

    @property
    def best(self) -> Built:
        """The kernel for well-aligned arrays of any extents: the next best where the best was found to spill."""
        return self.built()

    @property
    def program(self) -> Program:
        """The structured program of `best`."""
        return self.best.program

    @property
    def ptx(self) -> str:
        """PTX of `best`.

        Where a configuration divides K, or has factors packed, there are several kernels: this text, the program, the
        machine code and their other forms are of the one that multiplies; ``best.packers`` and ``best.second`` have
        those of the others.
        """
        return self._of_several() + self.best.ptx

    @property
    def cuda(self) -> str:
        """CUDA C++ of `best`, to read and to compile, without includes."""
        from ...backends.cuda_program import cuda_program

        return self._of_several() + cuda_program(self.best.program)

    @property
    def cubin(self) -> Cubin:
        """Machine code of `best`, or of the next best that needs no local memory, which is `best` from then on.

        Errors: LayoutError where none does; ImportError where NVIDIA's libraries are missing.
        """
        found = self.assembled(self.best)
        while found is None:
            found = self.assembled(self.best)
        return found.cubin

    @property
    def sass(self) -> str:
        """The instructions of `best`'s machine code.

        Errors: AssemblerError where no disassembler (``nvdisasm`` or ``cuobjdump``) is found.
        """
        from ...backends.disassemble import disassemble

        return self._of_several() + disassemble(self.cubin.data)

    def _of_several(self) -> str:
        """What stands before a text that is of one of several kernels."""
        chain = links(self.best)
        if len(chain) == 1:
            return ""
        here = next(i for i, link in enumerate(chain) if link.built is self.best)
        others = "; ".join([f"{i + 1} {link.what}" for i, link in enumerate(chain) if i != here])
        after = "  best.second is what adds up." if self.best.second is not None else ""
        return f"// Kernel {here + 1} of {len(chain)}, which {chain[here].what}; number {others}.{after}\n"

    def explain(self, M: int | None = None, N: int | None = None, K: int | None = None) -> str:
        """How the kernel works: variants with the reasons of those that declined, for each kernel of a call with
        several; shared memory, registers and occupancy of the one that multiplies; and with extents the bytes that move
        against the fewest possible.
        """
        from .explain import explain

        return explain(self, plain(M), plain(N), plain(K))

    def __repr__(self) -> str:
        p = self.problem
        done = [x for x, there in (("C", p.C), ("bias", p.bias), ("function", p.function)) if there]
        more = f" with {', '.join(done)}" if done else ""
        a, b, d = p.A, p.B, p.D
        if self.transposed:
            a, b, d = (flipped(x, x.name) for x in (b, a, d))  # type: ignore[assignment]
        types = f"{a.dtype} {a.order} x {b.dtype} {b.order} -> {d.dtype} {d.order}"
        return f"<GemmKernel {types}{more} for {self.target}>"

    # --- running ---------------------------------------------------------------------------------

    def __call__(
        self,
        A: Any,
        B: Any,
        D: Any = None,
        *,
        C: Any = None,
        bias: Any = None,
        alpha: float = 1.0,
        beta: float | None = None,
        stream: Any = None,
    ) -> Any:
        """Launch on a GPU; returns D at once, as the stream has it later.

        Args:
            A, B: (M, K) and (K, N), with the batch before them for a batched kernel: torch tensors, cupy or numba
                arrays, or what has ``__cuda_array_interface__`` or ``__dlpack__``; nothing is copied.
            D: (M, N), which is overwritten; of A's library and on its GPU when left out.
            C: (M, N), added times beta; may be D itself, unless a layout places it.  Not read where beta is 0.
            bias: a vector, of D's type, for a kernel with one.
            alpha, beta: numbers; beta is 1 where C is given.
            stream: a handle or a stream object; None: the library's current one.

        Errors: LayoutError for arrays that do not fit, overlap, or lie on different GPUs; DriverError without a GPU.
        """
        if _launch is None:
            _load()
        key = None
        # What was called so before is looked up whole, by all that decides it; of floats alone equal ones are alike.
        if D is not None and alpha.__class__ is float and (beta is None or beta.__class__ is float):
            reader = _readers[A.__class__]
            if C is None and bias is None:
                seen = reader.three(A, B, D, stream)
            else:
                seen = reader.many([x for x in (A, B, C, bias, D) if x is not None], stream)
            if seen is not None:
                key = seen, alpha, beta, C is None
                ready = self.plans.ready.get(key)
                if ready is not None:
                    ready.start(A)
                    return D
        return _launch(self, A, B, D, C, bias, alpha, beta, stream, key)

    def simulate(
        self,
        A: Any,
        B: Any,
        *,
        C: Any = None,
        bias: Any = None,
        alpha: float = 1.0,
        beta: float | None = None,
        config: Config | None = None,
        alignment: int = 16,
        numerics: str = "exact",
        schedule: int = 0,
    ) -> Any:
        """The same program, all CTAs of it, on the CPU; returns D, of the kernel's type (ml_dtypes' bfloat16, say, of
        which ``D.view(np.uint16)`` are the bits).

        Each instruction gives what it gives on a GPU, and so does a function, whose PTX is executed step by step.  The
        last bits may differ where sums are added up in another way than `numerics` says, and where the PTX has
        approximations, as for exp.

        Args:
            A, B, C, bias: numpy arrays, of the kernel's types or of ones that round to them.  bfloat16 and 8-bit floats
                are those of ml_dtypes, or integers of their width, which are their bits then, as of a launch.  Arrays
                whose strides a launch would refuse, negative ones or of the other order, are packed first.
            alpha, beta: numbers, which float32 holds where that is computed with.
            config: another way to cut than the kernel's.
            alignment: bytes, 16 at most, that addresses are taken to be multiples of.
            numerics: how products are added up, as for `Lowered.run`.
            schedule: which of the orders that warps may run in, as of the machine.

        Errors: LayoutError for arrays that do not fit; MachineError for a race, an early read and the like.
        """
        from .cpu import simulate

        return simulate(self, A, B, C, bias, alpha, beta, config, alignment, numerics, schedule)

    def tune(
        self,
        A: Any,
        B: Any,
        D: Any = None,
        *,
        C: Any = None,
        bias: Any = None,
        alpha: float = 1.0,
        beta: float | None = None,
        configs: Iterable[Config] | None = None,
        seconds: float = 60.0,
        progress: Any = None,
        stream: Any = None,
    ) -> Tuned:
        """Measure configurations for a call on the GPU, and remember the fastest: later calls of the kind take it.

        A kind of call is a GPU, types, orders, alignments, extents, and what the epilogue does; it is kept on disk.
        Nothing of the caller's is written: results go to memory of their own, and are compared with the first's.

        Args:
            A, B, D, C, bias, alpha, beta, stream: as of a call.
            configs: what to measure; by default every tile, and then what differs in one thing from the fastest.
            seconds: that the search takes, about; it ends when nothing is left to try.
            progress: called with a line for each configuration; True prints them.

        Errors: as of a call; LayoutError for a kernel that was made with a configuration.
        """
        from .tune import tune

        given = {"A": A, "B": B, "C": C, "bias": bias, "D": D}
        return tune(self, given, alpha, beta, configs, seconds, progress, stream)

    # --- what both ways of running share ------------------------------------------------------------

    def internal(self, given: Mapping[str, Shaped | None]) -> dict[str, Shaped]:
        """The user's arrays under the kernel's names, transposed for a transposed problem."""
        there = {name: x for name, x in given.items() if x is not None}
        if not self.transposed:
            return there
        return {SWAPPED.get(n, n): x if n == "bias" else x.transposed for n, x in there.items()}

    @cached_property
    def own_names(self) -> dict[str, str]:
        """User's name of an array -> the kernel's."""
        names = ("A", "B", "C", "D", "bias")
        return {n: SWAPPED.get(n, n) if self.transposed else n for n in names}

    def operands(self, has_c: bool) -> Any:
        """The names of a call's arrays in order, and what reads them; with C or without."""
        found = self._operands.get(has_c)
        if found is None:
            from .launch import operands

            found = self._operands[has_c] = operands(self, has_c)
        return found

    def check_operands(self, C: Any, bias: Any, beta: float | None, alpha: float = 1.0) -> tuple[bool, float]:
        """Whether C is read, and beta.

        Errors: LayoutError for an operand that the kernel does not take, or lacks, and a factor that is no number.
        """
        if type(alpha) is not float or alpha != 1.0:  # nearly always it is: a launch pays for no more
            check_factor(self.problem, "alpha", alpha)
        if beta is not None and (type(beta) is not float or beta != 1.0):
            check_factor(self.problem, "beta", beta)
        if C is None and beta not in (None, 0, 0.0):
            raise LayoutError("gemm", f"beta = {beta} without C", "give C")
        if C is not None and self.problem.C is None:
            raise LayoutError("gemm", "C was given to a kernel without one", "make the kernel with C='row'")
        if bias is not None and not self.problem.bias:
            raise LayoutError(
                "gemm",
                "a bias was given, the kernel takes none",
                "make the kernel with bias='row' or 'column'",
            )
        if bias is None and self.problem.bias:
            along_n = (self.problem.bias == "row") != self.transposed
            raise LayoutError(
                "gemm",
                "the kernel takes a bias, and none was given",
                f"bias=, a vector of {'N' if along_n else 'M'} elements of {self.problem.D.dtype}",
            )
        value = (1.0 if beta is None else float(beta)) if C is not None else 0.0
        return value != 0.0, value

    def for_call(
        self, given: Mapping[str, Shaped], alpha: float, has_c: bool, multiprocessors: int
    ) -> tuple[Built, Extents]:
        """What is built for a call, and its extents; with alpha 0 the factors are not read."""
        problem = self.problem if has_c else replace(self.problem, C=None)
        found = replace(extents(problem, given, self.transposed), multiprocessors=multiprocessors)
        if alpha == 0:
            found = replace(found, K=0)
        if not found.empty:
            check_limits(found, self.transposed)
        nothing = found.empty  # no array is touched then, wherever it lies
        aligned = {} if nothing else alignments(problem, found, given)
        built = self.built(
            None if nothing else found,
            aligned,
            scaled=alpha not in (0, 1),
            has_c=has_c,
            multiprocessors=multiprocessors,
        )
        return built, found


def _load() -> None:
    """Find what launches when it is first needed."""
    global _launch, _readers
    from ...backends.driver.sight import READERS
    from .launch import launch

    _launch, _readers = launch, READERS
