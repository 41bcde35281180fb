"""Programs, instructions and index expressions as numba-cuda's LLVM values: what no gemm happens to contain."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from llvmlite import binding, ir
from numba.cuda import types

from lowering import Tile
from lowering.backends import numba_cuda
from lowering.backends.assemble import assemble
from lowering.backends.numba_cuda import compile_ptx
from lowering.backends.numba_cuda.index import INDEX, IndexValues
from lowering.isa import COPY, LOAD_WORD, ZERO_F32, Instruction, Operand
from lowering.program import Address, Buffer, Instr, Program, Registers, Slot
from lowering.registers import LANE
from lowering.target import target
from tilelayout import LayoutError, S, TileLayout, laneid
from tilelayout.expr import Index, Var, evaluate

WORD_TILE = Tile("x", (32,), "float32", TileLayout(S[32 : 1 @ laneid]))
TILES = {"A": WORD_TILE, "D": WORD_TILE}
IN, OUT = Registers("a", "A", "float32", 1, "f32"), Registers("d", "D", "float32", 1, "f32")


def word(registers: Registers) -> tuple[Slot, ...]:
    return (Slot(registers, 0),)


def on_words(*body: Instr, inputs: tuple[Registers, ...] = (IN,)) -> Program:
    return Program("on_words", 1, inputs, (OUT,), body)


def store_result(program: Program) -> Callable[..., Any]:
    f = numba_cuda.device_function(program, TILES)

    def kernel(A: Any, D: Any) -> None:
        f.store(D, f(f.load_a(A)))

    return kernel


def test_text_of_an_instruction_reaches_the_assembler_as_it_is() -> None:
    """Dollar signs, quotes, braces and labels; twice in one kernel, since braces scope the label."""
    template = (
        '{{ .reg .pred p; .reg .b32 low;\n setp.eq.f32 p, {a}, 0f00000000; @p bra $L_skip; // a "line"\n'
        " mov.f32 {d}, {a}; $L_skip: }}"
    )
    odd = Instruction(
        "odd",
        template,
        (Operand("d", 1, "f32", "update"), Operand("a", 1, "f32", "read")),
        75,
        (6, 3),
        "",
        dict,
    )
    middle = Registers("m", "A", "float32", 1, "f32")
    program = on_words(
        Instr(COPY["f32"], (word(middle), word(IN))),
        Instr(ZERO_F32, (word(OUT),)),
        Instr(odd, (word(OUT), word(middle))),
        Instr(odd, (word(middle), word(OUT))),
        Instr(odd, (word(OUT), word(middle))),
    )
    vector = types.float32[::1]
    ptx = compile_ptx(store_result(program), (vector, vector), "sm_80", threads=32)
    assert ptx.count('@p bra $L_skip; // a "line"\n') == 3
    assert assemble(ptx, target("sm_80")).local_bytes == 0


def test_what_nothing_writes_is_zero() -> None:
    vector = types.float32[::1]
    ptx = compile_ptx(store_result(on_words()), (vector, vector), "sm_80", threads=32)
    assert "ld.global" not in ptx
    assert re.search(r"mov\.u?[bf]?32 \s*%\w+, 0", ptx)


PLACE = Address(Buffer("x", "A", "float32", (32,)), (LANE,))


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (Program("p", 1, (), (OUT,), (), (PLACE.buffer,)), r"works on buffers \(x\)"),
        (Program("p", 1, (IN,), (), ()), "has 0 outputs"),
        (on_words(inputs=(IN, Registers("b", "A", "float32", 1, "f32"))), "two inputs of one role: A, A"),
    ],
)
def test_a_program_that_is_no_function_of_fragments_is_refused(program: Program, words: str) -> None:
    with pytest.raises(LayoutError, match=words):
        numba_cuda.device_function(program, TILES)


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (Instr(COPY["f32"], (word(OUT), word(OUT))), r"reads d\[0\], which holds nothing"),
        (Instr(LOAD_WORD["f32"], (word(OUT), PLACE)), "touches memory"),
    ],
)
def test_a_step_that_cannot_be_emitted_is_refused(step: Instr, words: str) -> None:
    vector = types.float32[::1]
    with pytest.raises(LayoutError, match=words):
        compile_ptx(store_result(on_words(step)), (vector, vector), "sm_80")


i, j = Var("i", 0, 31), Var("j", 0, 7)


@pytest.mark.parametrize(
    "x",
    [
        5, i, -i, i // 4 * 64 + i % 4 * 2 + 512 * j, (i - 9) // 4, (i - 9) % 4, (i + 3 * j) // 5, (i + 3 * j) % 7,
        i * j - 40, i ^ j, i & 12 | j, 3 * (i ^ (j << 2)), i >> j, i << j, (i - 40) >> 2,
    ],
    ids=str,
)  # fmt: skip
def test_index_values_are_those_of_the_expression(x: Index) -> None:
    """Compiled for this CPU, at every value of the variables."""
    module = ir.Module()
    function = ir.Function(module, ir.FunctionType(INDEX, [INDEX, INDEX]), "f")
    builder = ir.IRBuilder(function.append_basic_block())
    builder.ret(IndexValues(builder, dict(zip("ij", function.args, strict=True))).value(x))
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_default_triple().create_target_machine()
    engine = binding.create_mcjit_compiler(binding.parse_assembly(str(module)), machine)
    engine.finalize_object()
    compiled = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(
        engine.get_function_address("f")
    )
    for at in product(range(32), range(8)):
        assert compiled(*at) == evaluate(x, dict(zip("ij", at, strict=True)))


@pytest.mark.parametrize(
    ("x", "words"),
    [(Var("i", None) // 5, "by no power of two"), (Var("k", 0, 3) + i, "no variable 'k' .*it has i, j")],
)
def test_an_index_without_an_llvm_form_is_refused(x: Index, words: str) -> None:
    builder = ir.IRBuilder(ir.Function(ir.Module(), ir.FunctionType(INDEX, []), "f").append_basic_block())
    with pytest.raises(LayoutError, match=words):
        IndexValues(builder, {"i": INDEX(0), "j": INDEX(0)}).value(x)
