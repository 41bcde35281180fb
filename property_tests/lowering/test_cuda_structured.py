"""The CUDA C++ text of whole kernels: its form, that it compiles, and that its integers hold what they compute."""

from __future__ import annotations

import ast
import doctest
import re
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowering.backends import cuda_structured
from lowering.backends.assemble import assemble_cuda, compile_cuda
from lowering.backends.cuda_program import cuda_program
from lowering.backends.cuda_structured import holds
from lowering.control import All, Compare, If, Parameter, Set, While
from lowering.isa.cp_async import CP_ASYNC_WAIT
from lowering.isa.memory import STORES
from lowering.isa.parameter import LOAD_PARAMETER
from lowering.kernels import Config, gemm
from lowering.program import Address, Buffer, Instr, Program, Registers, Slot, every, unrolled
from lowering.target import target
from tilelayout import LayoutError
from tilelayout.expr import Var, evaluate, render

compiles = pytest.mark.skipif(
    sys.platform not in ("linux", "win32"), reason="NVIDIA's libraries are not published for this system"
)

SMALL = {
    "tma": Config((64, 64, 64), (2, 2), 4, "tma", 2, 8, 1, 1, 2),
    "cp_async": Config((64, 64, 64), (2, 2), 3, "cp_async"),
    "registers": Config((64, 64, 64), (2, 2), 2, "registers"),
}
KERNELS: dict[str, tuple[str, dict[str, Any]]] = {
    "tma": ("float16", {"B": "column", "target": "sm_90a", "config": SMALL["tma"]}),
    "tma_batched": (
        "bfloat16",
        {
            "A": "column",
            "C": "row",
            "bias": "column",
            "batched": True,
            "target": "sm_90a",
            "config": Config((64, 64, 64), (2, 2), 4, "tma"),
        },
    ),
    "cp_async": ("float16", {"target": "sm_80", "bias": "row", "config": SMALL["cp_async"]}),
    "registers": ("float16", {"target": "sm_75", "config": SMALL["registers"]}),
    "float64": ("float64", {"target": "sm_80", "config": Config((32, 32, 16), (2, 2), 2, "cp_async")}),
}


def program_of(name: str) -> Program:
    dtype, how = KERNELS[name]
    return gemm(dtype, **how).built(scaled=True).program


def count(program: Program, what: str) -> int:
    """Instructions of a kind in the program's text."""
    body = [s for s in every(unrolled(program.body)) if isinstance(s, Instr)]
    return sum(s.instruction.mnemonic.startswith(what) for s in body)


# --- form -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KERNELS)
def test_every_instruction_is_called_as_often_as_the_program_has_it(name: str) -> None:
    program = program_of(name)
    kernel = cuda_program(program).partition('extern "C"')[2]
    for what in ("mma.sync", "ldmatrix", "stmatrix", "cp.async", "bar.sync"):
        helper = f"ptx_{what.replace('.', '_')}"
        assert len(re.findall(rf"\b{helper}\w*[<(]", kernel)) == count(program, what), what
    assert kernel.count("ptx_mbarrier_wait(") == count(program, "mbarrier.wait")


@pytest.mark.parametrize("name", KERNELS)
def test_the_parameters_are_those_of_a_launch_in_order(name: str) -> None:
    program = program_of(name)
    given = re.search(r"void gemm\(\n(.*?)\)\n\{", cuda_program(program), re.DOTALL)
    assert given is not None
    kinds = [line.strip().rstrip(",").rpartition(" ")[0] for line in given[1].splitlines()]
    pointers = [b for b in program.buffers if b.space == "global"]
    numbers = {"s32": "int", "s64": "long long", "f32": "float", "f64": "double"}
    assert len(kinds) == len(pointers) + len(program.parameters) + len(program.maps)
    assert kinds[len(pointers) :] == [
        *[numbers[p.kind] for p in program.parameters],
        *["const __grid_constant__ TensorMap" for _ in program.maps],
    ]


def test_what_the_kernel_writes_is_not_const() -> None:
    for name in KERNELS:
        text = cuda_program(program_of(name))
        assert re.search(r"^ *(unsigned short|double) \*D,$", text, re.MULTILINE)
        assert re.search(r"^ *const (unsigned short|double) \*A,$", text, re.MULTILINE)


X = Buffer("x", "x", "float32", (0,))
SUM = Registers("sum", "D", "float32", 1, "f32")


def small(*body: Any, parameters: tuple[Parameter, ...] = (), buffers: tuple[Buffer, ...] = (X,)) -> Program:
    return Program("small", 1, (), (), body, buffers, (SUM,), (), parameters)


def test_a_loop_and_branches_from_top_to_bottom() -> None:
    lane, i, far = Var("lane", 0, 31), Var("int", 0, 99), Var("far", 0, 1 << 40)
    n, alpha = Parameter("n", "s32", 0, 99), Parameter("alpha", "f32")
    store = Instr(STORES["global", "f32", 1], (Address(X, (far + lane,)), (Slot(SUM, 0),)))
    text = cuda_program(
        small(
            Instr(LOAD_PARAMETER["f32"], ((Slot(SUM, 0),), alpha)),
            Set(i, 0),
            While(
                Compare(i, "<", n.variable),
                (
                    Set(far, i * (1 << 30)),
                    If(All((Compare(i, ">=", 2), Compare(lane, "!=", i))), (store,), (Set(far, i - 1),)),
                    Set(i, i + 1),
                ),
            ),
            parameters=(n, alpha),
        )
    )
    assert (
        text.partition("// x: ")[2]
        == """\
float32[...]
extern "C" __global__ __launch_bounds__(32) void small(
    float *x,
    int n,
    float alpha)
{
    const int lane = threadIdx.x & 31;
    int int_;
    long long far;
    float sum[1];

    sum[0] = alpha;
    int_ = 0;
    #pragma unroll 1
    while (int_ < n) {
        far = 1073741824*(long long)int_;
        if (int_ >= 2 && lane != int_) {
            ptx_st_global_f32(x + (far + (long long)lane), sum[0]);
        } else {
            far = int_ - 1;
        }
        int_ = int_ + 1;
    }
}
"""
    )


def test_a_number_of_groups_is_a_part_of_the_instruction() -> None:
    text = cuda_program(small(Instr(CP_ASYNC_WAIT, (2,)), If(All(()), ())))
    assert "template <int pending>\n" in text
    assert "ptx_cp_async_wait_group<2>();" in text
    assert '"n"(pending)' in text
    assert "if (true) {" in text


def test_labels_are_made_anew_wherever_the_helper_goes() -> None:
    text = cuda_program(program_of("tma"))
    labels = re.findall(r"(\w+)_%=:(?!:)", text)
    assert labels == ["AGAIN", "DONE"]
    assert text.count("_%=") == 4


def test_what_is_refused() -> None:
    unknown = small(Set(Var("i", 0, 9), Var("nowhere", 0, 9)))
    with pytest.raises(LayoutError, match="no variable 'nowhere'"):
        cuda_program(unknown)
    far = small(Set(Var("i", 0, 9), Var("ctas", 0, (1 << 62)) * Var("cta", 0, (1 << 62)) % 8))
    with pytest.raises(LayoutError, match="64 bits do not hold"):
        cuda_program(far)


# --- integers -------------------------------------------------------------------------------------

VARIABLES = (Var("i", 0, (1 << 31) - 1), Var("j", -(1 << 20), 1 << 30), Var("k", 0, 40), Var("z", 0, 0))


def values(v: Var) -> st.SearchStrategy[int]:
    """Of a variable; its bounds often."""
    low, high = v.lo or 0, v.hi or 0
    return st.one_of(st.sampled_from([low, high]), st.integers(low, high))


@st.composite
def expressions(draw: st.DrawFn, depth: int = 3) -> Any:
    kind = draw(
        st.sampled_from(["var", "int", *["sum", "scaled", "product", "div", "mod", "and"] * (depth > 0)])
    )
    if kind == "var":
        return draw(st.sampled_from(VARIABLES))
    if kind == "int":
        return draw(st.integers(-(1 << 31), 1 << 31))
    left = draw(expressions(depth - 1))
    if kind in ("div", "mod"):
        by = 1 << draw(st.sampled_from([0, 1, 4, 31, 32]))
        return left // by if kind == "div" else left % by
    right = draw(st.integers(-(1 << 16), 1 << 16) if kind == "scaled" else expressions(depth - 1))
    return left * right if kind in ("scaled", "product") else left + right if kind == "sum" else left & right


class Computed(ast.NodeVisitor):
    """The value of a C expression, which is one of Python's too, and every value on the way."""

    def __init__(self, where: dict[str, int]) -> None:
        self.where, self.seen = where, set[int]()

    def visit(self, node: ast.AST) -> Any:
        found = self._of(node)
        self.seen.add(found)
        return found

    def _of(self, node: ast.AST) -> int:
        if isinstance(node, ast.Name):
            return self.where[node.id]
        if isinstance(node, ast.Constant):
            return node.value  # type: ignore[return-value]
        if isinstance(node, ast.UnaryOp):
            return -self.visit(node.operand)
        assert isinstance(node, ast.BinOp)
        a, b = self.visit(node.left), self.visit(node.right)
        return {
            ast.Add: lambda: a + b, ast.Sub: lambda: a - b, ast.Mult: lambda: a * b, ast.BitAnd: lambda: a & b,
            ast.RShift: lambda: a >> b,
        }[type(node.op)]()  # type: ignore[index]  # fmt: skip


@given(expressions(), st.data())
def test_integers_hold_all_that_is_computed_on_the_way(x: Any, data: st.DataObject) -> None:
    where = {v.name: data.draw(values(v)) for v in VARIABLES}
    try:
        text = render(x, "cuda")
    except LayoutError:  # of a number that no integer of C holds
        assert not holds(x, 64)
        return
    machine = Computed(where)
    value = machine.visit(ast.parse(text, mode="eval").body)
    assert value == evaluate(x, where)
    shifts = [int(n) for n in re.findall(r">> (\d+)", text)]
    for bits in (32, 64):
        if holds(x, bits):
            # C has no literal below zero: a minus stands before one that may be a bit too large, and fits a wider type.
            assert all(-(1 << bits - 1) <= v <= 1 << bits - 1 for v in machine.seen), (text, where)
            assert all(n < bits for n in shifts)


@pytest.mark.parametrize("x", [1 << 63, VARIABLES[0] * (1 << 63) + 1, (VARIABLES[0] + (1 << 70)) // 16])
def test_numbers_that_c_has_not_are_refused(x: Any) -> None:
    assert not holds(x, 64)
    with pytest.raises(LayoutError, match="doesn't fit a C integer of 64 bits"):
        render(x, "cuda")


def test_the_example_holds() -> None:
    failed, tried = doctest.testmod(cuda_structured)
    assert (failed, tried) == (0, 3)


# --- compiled -------------------------------------------------------------------------------------


@compiles
@pytest.mark.parametrize("name", KERNELS)
def test_it_compiles_to_as_many_instructions(name: str) -> None:
    program, where = program_of(name), target(KERNELS[name][1]["target"])
    text = cuda_program(program)
    ptx = compile_cuda(text, where)
    for what in ("mma.sync", "ldmatrix.sync", "cp.async.cg", "cp.async.bulk.tensor"):
        assert len(re.findall(rf"^\s*{re.escape(what)}", ptx, re.MULTILINE)) == count(program, what), what
    cubin = assemble_cuda(text, where, allow_spills=True)
    assert 0 < cubin.registers <= 255
    # The feeding thread has 24 registers; the compiler's way of using them may need two more.
    assert cubin.local_bytes <= (8 if name.startswith("tma") else 0)


@compiles
def test_the_largest_kernel_compiles() -> None:
    kernel = gemm("float16", B="column", target="sm_90a")
    cubin = assemble_cuda(kernel.cuda, kernel.target, allow_spills=True)
    assert cubin.local_bytes <= 8
    assert cubin.registers <= 168
