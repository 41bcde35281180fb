"""What is read from a cubin is what the assembler reports, and damaged bytes are an error that says so."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lowering.backends import assemble as room
from lowering.backends.assemble import AssemblerError, Cubin, assemble
from lowering.backends.cubin_info import CubinError, KernelInfo, kernel_info
from lowering.backends.ptx import ptx_module
from lowering.target import TARGETS, target

from .test_assemble import SMALL, copy_of

pytestmark = pytest.mark.skipif(
    sys.platform not in ("linux", "win32"), reason="NVIDIA's libraries are not published for this system"
)

Damage = Callable[[bytes], bytes]

HEAD = ".version 9.0\n.target {}\n.address_size 64\n"
PLAIN = """.visible .entry plain(.param .u64 p) { .reg .b64 %r; .reg .b32 %x;
ld.param.u64 %r, [p]; ld.global.u32 %x, [%r]; add.u32 %x, %x, 1; st.global.u32 [%r], %x; ret; }
"""
ARRAY = """.visible .entry {name}(.param .u64 p) {{ .reg .b64 %r, %l; .reg .b32 %x; .local .align 4 .b8 a[{bytes}];
ld.param.u64 %r, [p]; ld.global.u32 %x, [%r]; mov.u64 %l, a; cvt.u64.u32 %r, %x; add.u64 %l, %l, %r;
st.local.u32 [%l], %x; ld.local.u32 %x, [a+8]; ld.param.u64 %r, [p]; st.global.u32 [%r], %x; ret; }}
"""
CALLED = """.func (.reg .b32 %o) called(.reg .b32 %i) { .local .align 4 .b8 a[32]; .reg .b64 %l, %q; .reg .pred %p;
mov.u64 %l, a; cvt.u64.u32 %q, %i; add.u64 %l, %l, %q; st.local.u32 [%l], %i; ld.local.u32 %o, [a+4]; RECURSION ret; }
.visible .entry caller(.param .u64 p) { .reg .b64 %r; .reg .b32 %x;
ld.param.u64 %r, [p]; ld.global.u32 %x, [%r]; call (%x), called, (%x); st.global.u32 [%r], %x; ret; }
"""
REPORT = re.compile(
    r"Function properties for (\w+)\n.*?(\d+) bytes stack frame.*\n.*Used (\d+) registers", re.MULTILINE
)


def module(text: str, where: str = "sm_80") -> str:
    return HEAD.format(where) + text


def reported(log: str) -> set[tuple[str, int, int]]:
    """(kernel, frame, registers) as the assembler says them."""
    return {(name, int(frame), int(registers)) for name, frame, registers in REPORT.findall(log)}


def check(ptx: str, where: str) -> Cubin:
    """The figures of every kernel are those of the report."""
    found = assemble(ptx, target(where), allow_spills=True)
    kernels = kernel_info(found.data)
    assert {(k.name, k.frame_bytes, k.registers) for k in kernels} == reported(found.log) != set()
    assert all(k.stack_bytes == k.local_bytes == k.frame_bytes for k in kernels)  # they call nothing
    assert found.registers == max(k.registers for k in kernels)
    assert found.local_bytes == max(k.frame_bytes for k in kernels)
    return found


@pytest.mark.parametrize("where", list(TARGETS))
def test_figures_are_those_of_the_report(where: str) -> None:
    """Three kernels of one module, of which two have arrays in local memory, and one with spills."""
    two = ARRAY.format(name="little", bytes=64) + ARRAY.format(name="large", bytes=4096)
    assert check(module(PLAIN + two, where), where).local_bytes == 4096
    assert check(module(PLAIN, where), where).local_bytes == 0
    spilled = check(ptx_module(copy_of(300), target(where)), where)
    assert spilled.spill_bytes is not None
    assert spilled.spill_bytes >= 2 * 4 * (300 - 255)


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 320))
def test_figures_of_any_number_of_live_registers(count: int) -> None:
    check(ptx_module(copy_of(count), target("sm_90")), "sm_90")


def test_a_stack_includes_what_is_called() -> None:
    once, recursive = (
        kernel_info(assemble(module(CALLED.replace("RECURSION", more)), target("sm_80"), allow_spills=True).data)
        for more in ("", "setp.eq.u32 %p, %i, 0; @%p ret; call (%o), called, (%o);")
    )  # fmt: skip
    assert [(k.name, k.frame_bytes, k.stack_bytes) for k in once] == [("called", 32, None), ("caller", 0, 32)]
    assert [k.local_bytes for k in once] == [32, 32]
    assert [k.stack_bytes for k in recursive] == [None, None]
    with pytest.raises(AssemblerError, match="32 bytes of local memory"):
        assemble(module(CALLED.replace("RECURSION", "")), target("sm_80"))


# --- a report that says nothing -----------------------------------------------------------------


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """The assembler's report is empty, as under compute-sanitizer."""
    link = room._link

    def quiet(*arguments: Any) -> tuple[bytes, str]:
        return link(*arguments)[0], ""

    monkeypatch.setattr(room, "_link", quiet)


def test_lean_code_without_a_report(silent: None) -> None:
    found = assemble(SMALL, target("sm_80"))
    assert found.log == ""
    assert (found.spill_bytes, found.local_bytes) == (0, 0)
    assert found.registers == kernel_info(found.data)[0].registers > 0


def test_local_memory_is_refused_without_a_report(silent: None) -> None:
    ptx = ptx_module(copy_of(300), target("sm_80"))
    with pytest.raises(AssemblerError, match=r"an unknown number of bytes of spill .* with 255 registers"):
        assemble(ptx, target("sm_80"))
    found = assemble(ptx, target("sm_80"), allow_spills=True)
    assert (found.spill_bytes, found.registers) == (None, 255)
    assert found.local_bytes >= 4 * (300 - 255)


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"no machine code" * 10])
def test_a_cubin_that_cannot_be_read_is_an_error(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "_link", lambda *_: (data, "the log"))
    with pytest.raises(AssemblerError, match="sm_80: the assembler's cubin cannot be read: ") as refused:
        assemble(SMALL, target("sm_80"))
    assert refused.value.log == "the log"


def test_a_cubin_without_kernels_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    without = small().replace(b".nv.info\0", b".nv.ofni\0")
    monkeypatch.setattr(room, "_link", lambda *_: (without, ""))
    with pytest.raises(AssemblerError, match="gives no kernel's registers"):
        assemble(SMALL, target("sm_80"))


# --- damaged bytes ------------------------------------------------------------------------------


@cache
def small() -> bytes:
    return assemble(SMALL, target("sm_80")).data


def exchanged(old: bytes, new: bytes) -> Damage:
    return lambda data: data.replace(old, new)


def put(at: int, new: bytes) -> Damage:
    return lambda data: data[:at] + new + data[at + len(new) :]


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda _: b"", "the ELF header is cut off: it ends at byte 64 of 0"),
        (lambda data: data[:100], "section 0 is cut off"),
        (put(0, b"PTX"), "no ELF file of 64 bits"),
        (put(4, b"\1"), "no ELF file of 64 bits"),
        (put(58, b"\x28"), "sections of 40 bytes"),
        (put(40, b"\xff" * 8), "section 0 is cut off"),
        (exchanged(b"\x04\x2f\x08\x00", b"\x04\x2f\x04\x00"), r"attribute 0x2f of \.nv\.info has 4 bytes"),
        (exchanged(b"\x04\x2f\x08\x00", b"\x04\x2e\x08\x00"), "does not give the registers of"),
        (exchanged(b"\x04\x11\x08\x00", b"\x04\x10\x08\x00"), "does not give the frame_bytes of"),
        (exchanged(b"\x04\x12\x08\x00", b"\x04\x13\xff\xff"), r"of \.nv\.info is cut off"),
    ],
)
def test_damage_is_named(damage: Damage, said: str) -> None:
    damaged = damage(small())
    assert damaged != small()
    with pytest.raises(CubinError, match=said):
        kernel_info(damaged)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_no_damage_is_another_error(data: st.DataObject) -> None:
    """Bytes changed or cut off anywhere: figures, or a `CubinError`."""
    end = data.draw(st.just(len(small())) | st.integers(0, len(small())))
    damaged = bytearray(small()[:end])
    for _ in range(data.draw(st.integers(0, 4)) if damaged else 0):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = kernel_info(bytes(damaged))
    except CubinError:
        return
    assert all(isinstance(k, KernelInfo) for k in found)
