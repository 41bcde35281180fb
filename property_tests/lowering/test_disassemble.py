"""The disassembler as a program: which one is taken, what it is given, and what is said without one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lowering.backends import disassemble as room
from lowering.backends.assemble import AssemblerError, assemble
from lowering.backends.disassemble import VARIABLE, disassemble, find_disassembler
from lowering.backends.ptxas import find_tool
from lowering.kernels import Config, gemm

HOMES = ("CUDA_HOME", "CUDA_PATH")


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A machine without NVIDIA's programs."""
    monkeypatch.delenv(VARIABLE, raising=False)
    for name in HOMES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", "/nowhere")

    def nowhere(package: str, file: str) -> list[Path]:
        return []

    monkeypatch.setattr("lowering.backends.ptxas._in_package", nowhere)
    return monkeypatch


def program(folder: Path, name: str, script: str) -> Path:
    """A program that stands in for NVIDIA's."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_without_one_the_remedy_is_named(bare: pytest.MonkeyPatch) -> None:
    if find_disassembler() is not None:
        pytest.skip("there is a CUDA toolkit in /usr/local/cuda")
    with pytest.raises(AssemblerError, match=f"no disassembler was found.*{VARIABLE}"):
        disassemble(b"\x7fELF")
    with pytest.raises(AssemblerError, match="no disassembler was found"):
        _ = gemm("float16", target="sm_80", config=Config((32, 32, 32), (1, 1), 2, "registers")).sass


@pytest.mark.skipif(os.name == "nt", reason="the stand-in is a shell script")
@pytest.mark.parametrize(("name", "option"), [("nvdisasm", "-c"), ("cuobjdump", "-sass")])
def test_it_is_given_the_cubin(bare: pytest.MonkeyPatch, tmp_path: Path, name: str, option: str) -> None:
    program(tmp_path / "bin", name, 'echo "$1"; cat "$2"')
    bare.setenv("CUDA_HOME", str(tmp_path))
    if find_disassembler() is None:
        pytest.fail("a toolkit's own program is not found")
    bare.setenv(VARIABLE, str(tmp_path / "bin" / name))
    bare.setenv("PATH", os.defpath)
    assert disassemble(b"code") == f"{option}\ncode"


@pytest.mark.skipif(os.name == "nt", reason="the stand-in is a shell script")
def test_the_first_of_several_is_taken(bare: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home, path = tmp_path / "home", tmp_path / "path"
    program(home / "bin", "nvdisasm", "true")
    bare.setenv("CUDA_HOME", str(home))
    assert find_disassembler() == str(home / "bin" / "nvdisasm")
    program(path, "nvdisasm", "true")
    bare.setenv("PATH", str(path))
    assert find_disassembler() == str(path / "nvdisasm") == find_tool("nvdisasm")
    bare.setenv(VARIABLE, "/mine")
    assert find_disassembler() == "/mine"


@pytest.mark.skipif(os.name == "nt", reason="the stand-in is a shell script")
@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo no such format >&2; exit 1", "no such format"),
        ("exit 0", "it prints nothing"),
        ("exit 3", "refuses"),
    ],
)
def test_what_it_refuses_is_said(bare: pytest.MonkeyPatch, tmp_path: Path, script: str, words: str) -> None:
    bare.setenv(VARIABLE, str(program(tmp_path, "nvdisasm", script)))
    with pytest.raises(AssemblerError, match=words):
        disassemble(b"code")


def test_a_program_that_is_not_there(bare: pytest.MonkeyPatch) -> None:
    bare.setenv(VARIABLE, "/nowhere/nvdisasm")
    with pytest.raises(AssemblerError, match="cannot be run"):
        disassemble(b"code")


@pytest.mark.skipif(room.find_disassembler() is None, reason="no nvdisasm here")
def test_the_instructions_of_a_kernel() -> None:
    kernel = gemm("float16", target="sm_80", config=Config((32, 32, 32), (1, 1), 2, "registers"))
    text = disassemble(assemble(kernel.ptx, kernel.target).data)
    assert text.count("HMMA.16816.F32") == kernel.ptx.count("mma.sync")
    assert "LDSM" in text
