"""What a kernel's machine code takes of a thread, read from the cubin itself: registers and local memory.

A cubin is an ELF file of 64 bits (System V gABI, "ELF Header", "Sections", "Symbol Table").  Its section
``.nv.info`` is a list of attributes, each a byte of format, a byte of kind and a 16-bit number; format 4 says that the
number is the length of a value that follows.  Those read here have a value of two 32-bit words: the number of a symbol,
which names the kernel, and the figure.  NVIDIA publishes the names (``cuobjdump -elf`` prints them) and no layout: what
is read here is compared with the assembler's reports by the tests.  No library may enter.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

_SIZED = 4  # the format of an attribute with a value behind it; values of all others are in the attribute
_FIGURES = {0x2F: "registers", 0x11: "frame_bytes", 0x12: "stack_bytes"}
"""EIATTR_REGCOUNT, EIATTR_FRAME_SIZE and EIATTR_MIN_STACK_SIZE."""

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_ATTRIBUTE = struct.Struct("<BBH")
_PAIR = struct.Struct("<II")
_UNKNOWN = 0xFFFFFFFF  # a stack of no size that is known before it runs
_NO_BYTES = 8  # SHT_NOBITS: a section that has a size and nothing in the file


_INTERNAL = "$__internal"
"""Beginning of the names of the assembler's own subroutines (64-bit division), which use the registers of the kernel
that calls them."""


class CubinError(ValueError):
    """Bytes that are no cubin, or a cubin without the figures."""


@dataclass(frozen=True)
class KernelInfo:
    """What one kernel, or function that kernels call, takes of a thread.

    Attributes:
        name: its symbol, as the PTX calls it.
        registers: 32-bit registers.
        frame_bytes: local memory of its own stack frame (declared variables, spilled registers).
        stack_bytes: local memory together with that of the functions it calls.  None where the cubin does not say:
            for a called function, and for a kernel whose calls are recursive.
    """

    name: str
    registers: int
    frame_bytes: int
    stack_bytes: int | None

    @property
    def local_bytes(self) -> int:
        """Bytes of local memory of a thread, as far as they are known."""
        return max(self.frame_bytes, self.stack_bytes or 0)


def kernel_info(cubin: bytes) -> tuple[KernelInfo, ...]:
    """Every kernel of a cubin, and every function that has registers counted by itself, by name.

    Post-condition: each symbol that ``.nv.info`` gives registers or a frame is there, with both; but for the
    assembler's own subroutines without registers.
    Errors: CubinError for bytes that are no ELF file of 64 bits, are cut off or point outside of the file, and for a
    kernel with registers and no frame, or the other way round.
    """
    sections = _sections(cubin)
    found: dict[int, dict[str, int]] = {}
    for kind, symbol, figure in _attributes(sections.get(".nv.info", b"")):
        found.setdefault(symbol, {})[_FIGURES[kind]] = figure
    kernels: list[KernelInfo] = []
    for symbol, figures in found.items():
        name = _symbol_name(sections, symbol)
        missing = {"registers", "frame_bytes"} - figures.keys()
        if missing == {"registers"} and name.startswith(_INTERNAL):
            continue
        if missing:
            raise CubinError(f"the cubin does not give the {' and '.join(sorted(missing))} of {name}")
        stack = figures.get("stack_bytes", _UNKNOWN)
        kernels.append(
            KernelInfo(
                name, figures["registers"], figures["frame_bytes"], None if stack == _UNKNOWN else stack
            )
        )
    return tuple(sorted(kernels, key=lambda k: k.name))


def _attributes(data: bytes) -> list[tuple[int, int, int]]:
    """(kind, symbol, figure) of the attributes that are read here."""
    found: list[tuple[int, int, int]] = []
    at = 0
    while at < len(data):
        form, kind, number = _unpack(_ATTRIBUTE, data, at, "an attribute of .nv.info")
        at += _ATTRIBUTE.size
        length = number if form == _SIZED else 0
        if kind in _FIGURES:
            if length != _PAIR.size:
                raise CubinError(f"attribute {kind:#x} of .nv.info has {length} bytes, not {_PAIR.size}")
            found.append((kind, *_unpack(_PAIR, data, at, f"attribute {kind:#x} of .nv.info")))
        at += length
    if at != len(data):
        raise CubinError("the last attribute of .nv.info is cut off")
    return found


def _symbol_name(sections: dict[str, bytes], number: int) -> str:
    at = number * _SYMBOL.size
    name, *_ = _unpack(_SYMBOL, sections.get(".symtab", b""), at, f"symbol {number}")
    return _name(sections.get(".strtab", b""), name, f"symbol {number}")


def _sections(cubin: bytes) -> dict[str, bytes]:
    """The bytes of the sections by name; the last of those that share one."""
    header = _unpack(_HEADER, cubin, 0, "the ELF header")
    if header[0][:6] != b"\x7fELF\x02\x01":  # of 64 bits, the least significant byte first
        raise CubinError("these bytes are no ELF file of 64 bits, as a cubin is")
    first, size, count, names = (
        int(header[i]) for i in (6, 11, 12, 13)
    )  # e_shoff, e_shentsize, e_shnum, e_shstrndx
    if size != _SECTION.size or names >= count:
        raise CubinError(
            f"the ELF header gives {count} sections of {size} bytes, the names in number {names}"
        )
    headers = [_unpack(_SECTION, cubin, first + i * size, f"the header of section {i}") for i in range(count)]
    contents = [_contents(cubin, i, header) for i, header in enumerate(headers)]
    strings = contents[names]
    return {
        _name(strings, header[0], f"section {i}"): content
        for i, (header, content) in enumerate(zip(headers, contents, strict=True))
    }


def _contents(cubin: bytes, number: int, header: tuple[int, ...]) -> bytes:
    _, kind, _, _, begin, size, *_ = header
    if kind == _NO_BYTES:
        return b""
    if begin + size > len(cubin):
        raise CubinError(f"section {number} ends at byte {begin + size}, after the {len(cubin)} of the cubin")
    return cubin[begin : begin + size]


def _name(strings: bytes, begin: int, what: str) -> str:
    end = strings.find(b"\0", begin)
    if begin >= len(strings) or end < 0:
        raise CubinError(f"the name of {what} is outside of its table")
    return strings[begin:end].decode(errors="replace")


def _unpack(form: struct.Struct, data: bytes, at: int, what: str) -> tuple[Any, ...]:
    if at + form.size > len(data):
        raise CubinError(f"{what} is cut off: it ends at byte {at + form.size} of {len(data)}")
    return form.unpack_from(data, at)


__all__ = ["CubinError", "KernelInfo", "kernel_info"]
