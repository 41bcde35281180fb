"""The clock of the multiprocessors while a kernel runs, from the kernel itself.

What the management library says is up to a second old, and a spy kernel finds no room beside a CTA that takes all
registers.  So a copy of the kernel's PTX counts: thread 0 of CTA 0 adds what ``%clock64`` and ``%globaltimer`` went on
by between its beginning and its end to a module's global, `LaunchProbe.mhz` divides.  The copy is what is timed beside
the clock, in the same loop, so the two belong together.
"""

from __future__ import annotations

import ctypes
import re
from typing import Any

from lowering.backends.driver import LoadedKernel, device, load
from lowering.backends.driver.bindings import call

NAME = "tilelayout_probe"
_DECLARED = f".visible .global .align 8 .b64 {NAME}[4];\n"
_REGISTERS = """    .reg .b32 %probe_x, %probe_y;
    .reg .b64 %probe_c, %probe_t, %probe_at;
    .reg .pred %probe_p;
"""
_COUNT = """    mov.u32 %probe_x, %tid.x;
    mov.u32 %probe_y, %ctaid.x;
    or.b32 %probe_x, %probe_x, %probe_y;
    setp.eq.u32 %probe_p, %probe_x, 0;
    @!%probe_p bra PROBE_{n};
    mov.u64 %probe_c, %clock64;
    mov.u64 %probe_t, %globaltimer;
{sign}    mov.u64 %probe_at, {name};
    red.global.add.u64 [%probe_at], %probe_c;
    red.global.add.u64 [%probe_at+8], %probe_t;
{more}PROBE_{n}:
"""
_NEGATIVE = "    neg.s64 %probe_c, %probe_c;\n    neg.s64 %probe_t, %probe_t;\n"
_ONE = "    mov.u64 %probe_c, 1;\n    red.global.add.u64 [%probe_at+16], %probe_c;\n"
_ENTRY = re.compile(r"^\.visible \.entry ", re.MULTILINE)
_BODY = re.compile(r"^\{\n", re.MULTILINE)
_RETURN = re.compile(r"^[ \t]*ret;[^\n]*\n", re.MULTILINE)


def probed(ptx: str) -> str:
    """The module of one kernel, which also counts its clocks and nanoseconds.

    Errors: ValueError for text that has not one entry and plain returns.
    """
    if (
        len(_ENTRY.findall(ptx)) != 1
        or not _RETURN.search(ptx)
        or re.search(r"@!?%\w+ (ret|exit);|^\s*exit;", ptx)
    ):
        raise ValueError("a module with one entry and returns without a condition can be probed")
    head, entry, body = parts_of_module(ptx)
    numbers = iter(range(1, 1000))
    end = lambda _: _COUNT.format(n=next(numbers), sign="", name=NAME, more=_ONE) + "    ret;\n"  # noqa: E731
    body = _RETURN.sub(end, body)
    begin = _COUNT.format(n=0, sign=_NEGATIVE, name=NAME, more="")
    return head + _DECLARED + entry + _REGISTERS + begin + body


def parts_of_module(ptx: str) -> tuple[str, str, str]:
    """What is before the entry, the entry's head with its brace, and its body.  Errors: ValueError where one lacks."""
    at = _ENTRY.search(ptx)
    start = at.start() if at else 0
    brace = _BODY.search(ptx, start)
    if brace is None:
        raise ValueError("the entry has no body in braces of their own lines")
    return ptx[:start], ptx[start : brace.end()], ptx[brace.end() :]


class LaunchProbe:
    """A probed kernel on the current GPU.

    Attributes:
        kernel: to launch, by this or by whoever loads the same code.
    """

    def __init__(self, cubin: bytes, entry: str, dynamic_shared: int) -> None:
        self.kernel: LoadedKernel = load(cubin, entry, dynamic_shared, device().ordinal)
        library = call("cuKernelGetLibrary", self.kernel._kernel)
        self._address, self._bytes = call("cuLibraryGetGlobal", library, NAME.encode())

    def reset(self) -> None:
        call("cuCtxSynchronize")
        call("cuMemsetD8", self._address, 0, int(self._bytes))
        call("cuCtxSynchronize")

    def read(self) -> tuple[int, int, int]:
        """Clocks, nanoseconds and launches since `reset`."""
        call("cuCtxSynchronize")
        found = (ctypes.c_int64 * 4)()
        call("cuMemcpyDtoH", ctypes.addressof(found), self._address, int(self._bytes))
        return found[0], found[1], found[2]

    def mhz(self) -> float | None:
        """The mean clock since `reset`; None where nothing ran."""
        clocks, nanoseconds, _ = self.read()
        return 1000.0 * clocks / nanoseconds if nanoseconds > 0 else None


def spy_text(target: str, version: str) -> str:
    """A module whose kernel ``spy`` waits a while alone: right behind another kernel it reads the clock of that."""
    return f"""{version}
.target {target}
.address_size 64

.visible .entry spy(
    .param .u64 spy_nanoseconds
)
{{
    .reg .b64 %n, %begin, %now;
    .reg .pred %p;
    ld.param.u64 %n, [spy_nanoseconds];
    mov.u64 %begin, %globaltimer;
AGAIN:
    nanosleep.u32 500;
    mov.u64 %now, %globaltimer;
    sub.u64 %now, %now, %begin;
    setp.lt.u64 %p, %now, %n;
    @%p bra AGAIN;
    ret;
}}
"""


def pack_one(value: int) -> tuple[Any, int]:
    """Arguments of a kernel with one 64-bit parameter: what must be kept, and the address to pass."""
    number = ctypes.c_uint64(value)
    pointers = (ctypes.c_void_p * 1)(ctypes.addressof(number))
    return (number, pointers), ctypes.addressof(pointers)
