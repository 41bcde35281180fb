"""The extents and strides of a call, from the forms of its arrays; all that can be wrong with them is said here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import gcd

from tilelayout import LayoutError

from .globals import LEADING_LIMIT
from .numbers import Extents
from .operands import SWAPPED, turned
from .placed import WIDEST
from .problem import Matrix, Problem


@dataclass(frozen=True)
class Shaped:
    """An array without its data.

    Attributes:
        shape: extents, the batch first where there are batches.
        strides: elements from one to the next in each dimension.
        address: where it begins, in bytes.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    address: int = 0

    @property
    def transposed(self) -> Shaped:
        """The last two dimensions swapped."""

        def swap(x: tuple[int, ...]) -> tuple[int, ...]:
            return (*x[:-2], x[-1], x[-2])

        return Shaped(swap(self.shape), swap(self.strides), self.address)


def extents(problem: Problem, given: Mapping[str, Shaped], transposed: bool = False) -> Extents:
    """The extents and strides of a call.

    Args:
        problem: whose matrices they are.
        given: by parameter: A, B, D and what else there is.
        transposed: whether both are the transposed of the caller's, in whose words errors are.

    Errors: LayoutError for shapes that do not go together, an array that does not lie in the order that the kernel is
    for, a stride that is negative, and a shape that a layout does not have.
    """
    if not transposed:
        return _extents(problem, given)
    callers = {SWAPPED.get(n, n): x if n == "bias" else x.transposed for n, x in given.items()}
    e = _extents(turned(problem), callers)
    leading, batch = ({SWAPPED.get(n, n): s for n, s in x.items()} for x in (e.leading, e.batch))
    return Extents(e.N, e.M, e.K, e.batches, leading, batch)


def _extents(problem: Problem, given: Mapping[str, Shaped]) -> Extents:
    rank = 3 if problem.batched else 2
    for name, x in given.items():
        wanted = 1 if name == "bias" else rank
        if len(x.shape) != wanted:
            batch = "a batch of matrices" if problem.batched else "a matrix"
            what = "a vector" if name == "bias" else batch
            raise LayoutError("gemm", f"{name} has {len(x.shape)} dimensions {x.shape}, {what} has {wanted}")
    (m, k), n = given["A"].shape[-2:], given["B"].shape[-1]
    batches = 1
    if problem.batched:
        batches = broadcast(given["A"].shape[0], given["B"].shape[0])
        if batches == 1 and "D" in given:  # all may share both factors
            batches = given["D"].shape[0]
    expected = {
        "A": (m, k),
        "B": (k, n),
        "C": (m, n),
        "D": (m, n),
        "bias": (n if problem.bias == "row" else m,),
    }
    leading: dict[str, int] = {}
    batch: dict[str, int] = {}
    for name, x in given.items():
        if x.shape[-2:] != expected[name][-2:] and x.shape != expected[name]:
            shapes = ", ".join(f"{other} {y.shape}" for other, y in given.items())
            raise LayoutError("gemm", f"{name} is {x.shape}, {expected[name]} is needed: {shapes}")
        if name == "bias":
            if x.shape[0] > 1 and x.strides[0] != 1:
                raise LayoutError(
                    "gemm", f"bias has a stride of {x.strides[0]} elements", "make it contiguous"
                )
            continue
        matrix = next(y for y in problem.matrices if y.name == name)
        if matrix.layout is None:
            leading[name] = _leading(matrix, x)
        elif matrix.shape != x.shape[-2:]:
            raise LayoutError("gemm", f"{name} is {x.shape}, its layout is for {matrix.shape}")
        if problem.batched:
            batch[name] = _batch(name, x, batches)
    return Extents(m, n, k, batches, leading, batch)


def _leading(matrix: Matrix, x: Shaped) -> int:
    """Elements between neighbors along the dimension that is not contiguous."""
    c = matrix.contiguous - 2
    other = -1 if c == -2 else -2
    if x.shape[c] > 1 and x.strides[c] != 1 and 0 not in x.shape:
        remedy = f"ask for {matrix.name}={'row' if c == -2 else 'column'!r}, or copy it"
        raise LayoutError(
            "gemm",
            f"{matrix.name} is {matrix.order}-major in this kernel, dimension {c} of {x.shape} must have stride 1 and "
            f"has strides {x.strides}",
            remedy,
        )
    if x.shape[other] <= 1:
        # Never stepped along: as well aligned as can be, and no longer than a launch takes.
        return min(-(-max(1, x.shape[c]) // 16) * 16, LEADING_LIMIT // 16 * 16)
    stride = x.strides[other]
    if stride < 0:
        raise LayoutError("gemm", f"{matrix.name} has a negative stride {stride}", "copy it")
    if matrix.name == "D" and stride < x.shape[c]:
        lines = "rows" if c == -1 else "columns"
        raise LayoutError(
            "gemm",
            f"D's {lines} of {x.shape[c]} elements overlap at strides {x.strides}",
            f"a stride of {x.shape[c]} or more between {lines}",
        )
    return stride


def _batch(name: str, x: Shaped, batches: int) -> int:
    if x.shape[0] == batches:
        if x.strides[0] < 0:
            raise LayoutError(
                "gemm", f"{name} has a negative stride {x.strides[0]} from batch to batch", "copy it"
            )
        return x.strides[0] if batches > 1 else 0
    if x.shape[0] == 1 and name != "D":
        return 0
    needed = "1 is" if batches == 1 else f"{batches} are" if name == "D" else f"{batches} or 1 are"
    raise LayoutError("gemm", f"{name} has {x.shape[0]} batches, {needed} needed")


def broadcast(first: int, second: int) -> int:
    """Batches of the result for those of A and of B, as many or 1 of either: 0 where either has none."""
    return 0 if 0 in (first, second) else max(first, second)


def alignments(problem: Problem, found: Extents, given: Mapping[str, Shaped]) -> dict[str, int]:
    """Matrix -> bytes, at most 16, that its address and strides, or its layout, are multiples of.

    With K = 0 factors have no elements (and their libraries give them any address): they count as well aligned.
    """
    out: dict[str, int] = {}
    for m in problem.matrices:
        if m.layout is not None:
            steps = [given[m.name].address, m.alignment]
        elif found.K == 0 and m.name in "AB":
            out[m.name] = WIDEST
            continue
        else:
            steps = [given[m.name].address, found.leading[m.name] * m.bytes]
        if problem.batched:
            steps.append(found.batch[m.name] * m.bytes)
        out[m.name] = max(gcd(WIDEST, *steps), m.bytes)
    return out
