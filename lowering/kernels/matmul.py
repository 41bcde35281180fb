"""`matmul`: the product of two arrays on a GPU, by a kernel for their types and the way they lie.

Only the choice is made here; kernels are made once for each choice and kept.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tilelayout import LayoutError

from ..backends.driver import DeviceArray, Form, as_device_array, device
from ..dtypes import dtype as element_type
from .gemm import GemmKernel, gemm
from .gemm.problem import OUTPUTS

_KEPT = 512
"""Kernels, and forms of arrays, that are remembered."""


class _Choice(NamedTuple):
    """A kernel, and what of the arrays it takes.

    Attributes:
        kernel: for the arrays' types and orders.
        batched: whether arrays of two dimensions get a batch of one before them.
        bias: "" for none, "row", "column".
    """

    kernel: GemmKernel
    batched: bool
    bias: str


_KERNELS: dict[Any, GemmKernel] = {}
_CHOICES: dict[Any, _Choice] = {}


def matmul(
    A: Any,
    B: Any,
    out: Any = None,
    *,
    C: Any = None,
    bias: Any = None,
    alpha: float = 1.0,
    beta: float | None = None,
    epilogue: Any = None,
    dtype: Any = None,
    out_dtype: Any = None,
    stream: Any = None,
) -> Any:
    """``epilogue(alpha * A @ B + beta * C + bias)`` on a GPU; returned at once, as the stream has it later.

    Args:
        A, B: (M, K) and (K, N), or batches of them, (batches, M, K) and (batches, K, N); one of two dimensions goes
            with every matrix of the other.  torch tensors, cupy or numba arrays, or what has
            ``__cuda_array_interface__`` or ``__dlpack__``; nothing is copied.  In each matrix one of the two strides
            is 1.
        out: where the result goes; an array of A's library, row-major, when left out.
        C: of the result's shape and type, added times `beta`; may be `out` itself.
        bias: N numbers of the result's type that are added to every row, or M as (M, 1), to every column.
        alpha, beta: numbers; beta is 1 where C is given.
        epilogue: a Python function of one number, done to each element before it is rounded; it is compiled when it is
            first passed, so pass the same object each time.
        dtype: element type of A and B (or a pair), where an array does not say it itself: "tfloat32" for arrays of
            float32, which lose the low 13 bits of each factor; "float8_e4m3fn" and the like for bytes.
        out_dtype: of the result; by default `out`'s, or what `kernels.gemm` gives the type of A.
        stream: a handle or a stream object; None: the library's current one.

    Errors: LayoutError for vectors, float32 without ``dtype="tfloat32"``, arrays on the CPU (which
    ``kernels.gemm(...).simulate`` takes), strides that no kernel reads, shapes that do not go together, and arrays that
    overlap; DriverError without a GPU.
    """
    for x, role in ((A, "A"), (B, "B")):
        _check_place(x, role)
    left, right = _types(dtype)
    a, b = as_device_array(A, "A", left), as_device_array(B, "B", right)
    wanted = None if out_dtype is None else _name(out_dtype)
    d = None if out is None else as_device_array(out, "out", wanted, written=True)
    c = None if C is None else as_device_array(C, "C", wanted)
    v = None if bias is None else as_device_array(bias, "bias", wanted)
    given = (a, b, c, d, v)
    key = (*[None if x is None else x.form for x in given], wanted, epilogue, a.device)
    choice = _CHOICES.get(key)
    if choice is None:
        choice = _choose(a, b, c, d, v, wanted, epilogue)
        _keep(_CHOICES, key, choice)
    if choice.bias and len(v.shape) == 2:  # type: ignore[union-attr]
        bias = bias[0] if choice.bias == "row" else bias[:, 0]
    if choice.batched:
        A, B = (x[None] if len(y.shape) == 2 else x for x, y in ((A, a), (B, b)))
    return choice.kernel(A, B, out, C=C, bias=bias, alpha=alpha, beta=beta, stream=stream)


def _check_place(x: Any, role: str) -> None:
    if type(x).__module__.partition(".")[0] == "numpy":
        raise LayoutError(
            "matmul",
            f"{role} is a numpy array, in the memory of the CPU",
            "move it to a GPU; or lowering.kernels.gemm(...).simulate(A, B) (GemmKernel.simulate) carries the kernel "
            "out on the CPU",
        )


def _types(given: Any) -> tuple[str | None, str | None]:
    """The element types of A and B, as far as they are said."""
    if given is None:
        return None, None
    if isinstance(given, tuple | list):
        if len(given) != 2:
            raise LayoutError("matmul", f"dtype={given!r}", "one type, or a pair for A and B")
        return _name(given[0]), _name(given[1])
    return _name(given), _name(given)


def _name(given: Any) -> str:
    """Of an element type: ours, numpy's or torch's."""
    text = str(given)
    return element_type(text.removeprefix("torch.") if text.startswith("torch.") else given).name


def _keep(table: dict[Any, Any], key: Any, value: Any) -> None:
    if len(table) >= _KEPT:
        table.clear()
    table[key] = value


# --- the choice -------------------------------------------------------------------------------------------


def _choose(
    a: DeviceArray,
    b: DeviceArray,
    c: DeviceArray | None,
    d: DeviceArray | None,
    v: DeviceArray | None,
    wanted: str | None,
    epilogue: Any,
) -> _Choice:
    for x in (a, b):
        _check_type(x)
    matrices = [x for x in (a, b, c, d) if x is not None]
    for x in matrices:
        _check_rank(x)
    batched = any(len(x.shape) == 3 for x in (a, b))
    for x in (c, d):
        if x is not None and (len(x.shape) == 3) != batched:
            many = "batches of matrices" if batched else "a matrix"
            raise LayoutError(
                "matmul", f"{x.role} is {x.shape}, the result is {many}", f"a {x.role} of that rank"
            )
    result = wanted or (d.dtype if d is not None else OUTPUTS.get(a.dtype, a.dtype))
    bias = "" if v is None else _bias_order(v.shape, a.shape[-2], b.shape[-1])
    orders = {x.role: order_of(x.role, x.form) for x in matrices}
    where = device(a.device).target
    key = (
        where,
        a.dtype,
        b.dtype,
        result,
        *[orders.get(r) for r in ("A", "B", "C", "out")],
        bias,
        batched,
        epilogue,
    )
    kernel = _KERNELS.get(key)
    if kernel is None:
        kernel = gemm(
            (a.dtype, b.dtype),
            out=result,
            A=orders["A"],
            B=orders["B"],
            C=orders.get("C"),
            D=orders.get("out", "row"),
            bias=bias or None,
            epilogue=epilogue,
            batched=batched,
            target=where,
        )
        _keep(_KERNELS, key, kernel)
    return _Choice(kernel, batched, bias)


def _check_type(x: DeviceArray) -> None:
    if x.dtype == "float32":
        raise LayoutError(
            "matmul",
            f"{x.role} is float32, of which tensor cores drop the low 13 bits",
            'dtype="tfloat32" says that this is fine; float64 keeps all bits',
        )


def _check_rank(x: DeviceArray) -> None:
    rank = len(x.shape)
    if rank in (2, 3):
        return
    remedy = f"merge the dimensions before the last two: {x.role}.reshape(-1, *{x.role}.shape[-2:])"
    if rank < 2:
        remedy = f"a row is {x.role}[None, :], a column {x.role}[:, None]"
    raise LayoutError(
        "matmul", f"{x.role} has {rank} dimensions {x.shape}, a matrix has 2 and a batch 3", remedy
    )


def _bias_order(shape: tuple[int, ...], m: int, n: int) -> str:
    """What a bias is added along."""
    if shape in ((n,), (1, n)):
        return "row"
    if shape == (m, 1):
        return "column"
    raise LayoutError(
        "matmul",
        f"bias is {shape}, the result's matrices are ({m}, {n})",
        f"({n},) is added to every row, ({m}, 1) to every column",
    )


def order_of(role: str, form: Form) -> str:
    """Which dimension of an array's matrices is contiguous: "row" for the last, "column" for the first.

    A dimension of one element has any stride.  Where both would do, the longer one is contiguous: the other's stride is
    never used then, or both are 1.

    Errors: LayoutError where neither is.
    """
    m, n = form.shape[-2:]
    down, across = (s // form.width for s in form.strides[-2:])
    row, column = n <= 1 or across == 1, m <= 1 or down == 1
    if row and column:
        return "row" if n >= m else "column"
    if not (row or column):
        raise LayoutError(
            "matmul",
            f"{role} is {form.shape} with strides of {tuple([s // form.width for s in form.strides])} elements, and "
            "neither of its last two is 1",
            f"copy it: {role}.contiguous() in torch, cupy.ascontiguousarray({role})",
        )
    return "row" if row else "column"


__all__ = ["matmul", "order_of"]
