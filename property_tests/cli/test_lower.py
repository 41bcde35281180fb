"""``lower``: what it says was chosen is what `lower` chooses, and the texts that it writes are those of the kernel."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from lowering import Tile, gemm, lower
from lowering.fragments import A_FRAG, B_FRAG, D_FRAG
from property_tests.cli.shell import answer, refused, run


def test_one_atom_is_that_of_the_shipped_fragments() -> None:
    """The layouts are written differently, and the kernel is the same."""
    D, A, B = (
        Tile("D", (16, 8), "float32", D_FRAG),
        Tile("A", (16, 16), "float16", A_FRAG),
        Tile("B", (16, 8), "float16", B_FRAG),
    )
    lowered = lower(gemm(D, A, B, D), target="sm_80", scope="warp", launch=32)
    assert answer("lower", "16", "8", "16", "--ptx", "-") == lowered.ptx.rstrip("\n") + "\n"
    assert answer("lower", "16", "8", "16", "--cuda", "-") == lowered.cuda.rstrip("\n") + "\n"
    assert answer("lower", "16", "8", "16", "--nest") == f"{lowered}\n"


@pytest.mark.parametrize(
    ("arguments", "atoms", "instruction"),
    [
        (("32", "16", "32"), 8, "m16n8k16.row.col.f32.f16.f16.f32"),
        (("32", "16", "24"), 12, "m16n8k8.row.col.f32.f16.f16.f32"),
        (("64", "64", "32", "--warps", "2,2"), 16, "m16n8k16.row.col.f32.f16.f16.f32"),
        (("64", "16", "16", "--warps", "4,1", "--scope", "warpgroup"), 2, "m16n8k16.row.col.f32.f16.f16.f32"),
        (("16", "8", "16", "--dtype", "bf16", "--beta", "1"), 1, "m16n8k16.row.col.f32.bf16.bf16.f32"),
        (("16", "8", "16", "--accumulator", "f16"), 1, "m16n8k16.row.col.f16.f16.f16.f16"),
        (("32", "8", "64", "--dtype", "s8"), 4, "m16n8k32.row.col.s32.s8.s8.s32"),
        (("16", "8", "32", "--dtype", "s8", "--b-dtype", "u8"), 1, "m16n8k32.row.col.s32.s8.u8.s32"),
        (("16", "8", "32", "--dtype", "e4m3", "--target", "sm_89"), 1, "m16n8k32.row.col.f32.e4m3.e4m3.f32"),
        (("16", "8", "16", "--instruction", "m16n8k8.f16"), 2, "m16n8k8.row.col.f32.f16.f16.f32"),
        (("16", "8", "16", "--transpose-a", "--transpose-b"), 1, "m16n8k16.row.col.f32.f16.f16.f32"),
    ],
)
def test_the_report_and_the_ptx_agree(arguments: tuple[str, ...], atoms: int, instruction: str) -> None:
    report = answer("lower", *arguments)
    assert "chosen: mma.m16n8k*" in report
    assert report.splitlines()[0].endswith(f" + {1.0 if '--beta' in arguments else 0.0} * D")
    assert ("A.T" in report, "B.T" in report) == ("--transpose-a" in arguments, "--transpose-b" in arguments)
    assert f"= {atoms} of them" in report or "m16n8k8.f16" in arguments
    ptx = answer("lower", *arguments, "--ptx", "-")
    lines = [line for line in ptx.splitlines() if "mma.sync" in line]
    if "--instruction" not in arguments:  # the dispatcher may do two k8 atoms as one k16
        assert len(lines) == atoms
        assert all(f"mma.sync.aligned.{instruction}" in line for line in lines)
        assert f"mma.sync.aligned.{instruction}" in report


@pytest.mark.parametrize(
    ("name", "qualifier", "dtype", "k"),
    [
        ("m16n8k256.b1.xor", ".xor.popc", "b1", "256"),
        ("m16n8k256.b1.and", ".and.popc", "b1", "256"),
        ("m16n8k32.s8.satfinite", ".satfinite.", "s8", "32"),
    ],
)
def test_an_instruction_asked_for_by_name_is_computed(name: str, qualifier: str, dtype: str, k: str) -> None:
    words = ("lower", "16", "8", k, "--dtype", dtype, "--instruction", name)
    report = answer(*words)
    assert f"partitioned by {name} " in report
    assert qualifier in report.splitlines()[1]
    lines = [line for line in answer(*words, "--ptx", "-").splitlines() if "mma.sync" in line]
    assert len(lines) == 1
    assert qualifier in lines[0]


def test_one_bit_factors_are_numbers_where_nothing_is_asked_for() -> None:
    report = answer("lower", "16", "8", "256", "--dtype", "b1")
    assert ".and.popc" in report.splitlines()[1]
    assert "partitioned by m16n8k256.b1.and " in report


def test_a_no_shows_every_variants_reason() -> None:
    ran = run("lower", "256", "256", "64")
    assert (ran.code, ran.err) == (1, "")
    assert "mma.m16n8k*" in ran.out
    assert "registers" in ran.out


def test_files_are_written_where_they_are_named(tmp_path: Path) -> None:
    paths = {form: tmp_path / f"kernel.{form}" for form in ("ptx", "cuda", "svg", "html")}
    words = [word for form, path in paths.items() for word in (f"--{form}", str(path))]
    report = answer("lower", "16", "8", "16", *words)
    assert report.startswith("D = 1.0 * A @ B")
    assert "mma.sync" in paths["ptx"].read_text()
    assert "__global__" in paths["cuda"].read_text()
    assert ElementTree.fromstring(paths["svg"].read_text()).tag.endswith("svg")
    assert paths["html"].read_text().startswith("<!doctype html>")


def test_a_refusal_of_extents_names_the_multiple() -> None:
    assert "N = 12 is no multiple of 8" in refused("lower", "16", "12", "16")
    assert "--warps" not in refused("lower", "24", "8", "16", "--dtype", "bf16")
