"""PTX to a cubin and CUDA C++ to PTX, by NVIDIA's nvJitLink and nvrtc.  Neither needs a GPU or a driver.

The libraries come with the extra ``tilelayout[cuda]`` and are loaded by the first call.  What a kernel costs
in registers and memory is read from the machine code, since tools such as compute-sanitizer take the assembler's report
away; only how much of local memory is spills is in that report alone.  No program and no layout may enter.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from importlib import import_module
from time import perf_counter
from typing import Any

from ..target import Target
from .cubin_info import CubinError, KernelInfo, kernel_info
from .ptxas import find_ptxas, needs_whole_program, ptxas_version, run_ptxas

_SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")
_AT_LINE = re.compile(r"line (\d+); (?:error|fatal)\s*:\s*(.*)")
_NO_LINE = re.compile(r"(?:fatal|error)\s*:\s*(.*)")
_NEWER = re.compile(r"Unsupported \.version ([\d.]+); current version is '([\d.]+)'")
_SHOWN = 8  # messages of the assembler in one error; the rest is in its log


class AssemblerError(RuntimeError):
    """PTX that the assembler, or the rule against local memory, refuses.

    Attributes:
        line: the number, from 1, of the first PTX line that the assembler points at; None when there is none.
        log: all that the assembler said.
    """

    def __init__(self, message: str, line: int | None = None, log: str = "") -> None:
        super().__init__(message)
        self.line, self.log = line, log


class SpillError(AssemblerError):
    """Code that keeps something in local memory.

    Attributes:
        taken: what it takes, in words.
    """

    def __init__(self, target: Target, taken: str, remedy: str, log: str = "") -> None:
        super().__init__(f"{target}: {taken}; {remedy}", log=log)
        self.taken = taken


class CompilerError(RuntimeError):
    """CUDA C++ that nvrtc refuses; the message holds its log."""


@dataclass(frozen=True)
class Cubin:
    """Machine code of a PTX module, ready to be loaded by a driver.

    Attributes:
        data: the cubin, an ELF file.
        target: the architecture it is for.
        registers: 32-bit registers of a thread, the most over the module's kernels.
        spill_bytes: bytes of a thread's spill stores plus spill loads, likewise.  None where there is local memory
            and no report that says what of it is spills.
        local_bytes: bytes of local memory of a thread (stack frame and spilled registers), likewise.
        seconds: what assembling took.
        log: the assembler's report.
    """

    data: bytes = field(repr=False)
    target: Target
    registers: int
    spill_bytes: int | None
    local_bytes: int
    seconds: float = field(compare=False)
    log: str = field(compare=False, repr=False)


def assemble(ptx: str, target: Target, allow_spills: bool = False) -> Cubin:
    """The machine code of a PTX module.

    Unless `allow_spills`, code that keeps anything in local memory is refused: spilled registers, indexed
    register arrays, declared ``.local`` variables.

    Errors: AssemblerError with the assembler's messages and the PTX lines they point at; SpillError with the byte
    counts for local memory; AssemblerError with both versions for a ``.version`` that the assembler does not know, and
    for a cubin that does not give its kernels' registers.  ImportError where the libraries are missing.
    """
    begin = perf_counter()
    data, log = _machine_code(ptx, target)
    return _checked(data, log, perf_counter() - begin, target, ".entry" in ptx, allow_spills)


def _checked(
    data: bytes, log: str, seconds: float, target: Target, has_kernel: bool, allow_spills: bool
) -> Cubin:
    """Machine code with what it takes of a thread."""
    kernels = _kernels(data, has_kernel, target, log)
    registers = max((k.registers for k in kernels), default=0)
    local = max((k.local_bytes for k in kernels), default=0)
    reported = [int(stores) + int(loads) for stores, loads in _SPILLS.findall(log)]
    # Spilled registers are in local memory: without it there are none, whatever the report leaves out.
    spills = max(reported) if reported else None if local else 0
    if (local or spills) and not allow_spills:
        known = "an unknown number of" if spills is None else spills
        taken = (
            f"{local} bytes of local memory a thread and {known} bytes of spill stores and loads, with {registers} "
            f"registers a thread (a thread has 255 at most, and fewer in a large CTA)"
        )
        raise SpillError(target, taken, f"allow_spills=True accepts it{_hint(log)}", log)
    return Cubin(data, target, registers, spills, local, seconds, log)


def _machine_code(ptx: str, target: Target) -> tuple[bytes, str]:
    """The cubin and the report: by the program where the library would lose something and the program is there."""
    program = find_ptxas() if needs_whole_program(ptx) else None
    if program is None:
        return _link(nvidia_library("nvjitlink"), ptx, target)
    data, log = run_ptxas(program, ptx, target)
    if data is None:
        raise _refusal(ptx, target, ptxas_version(program), "no cubin", log)
    return data, log


def _hint(log: str) -> str:
    """What helps where the library ignored ``setmaxnreg``."""
    return "; no ptxas was found: install nvidia-cuda-nvcc, or name one by TILELAYOUT_PTXAS" * (
        "setmaxnreg" in log
    )


def assembler_version(ptx: str) -> str:
    """What assembles a module here, for keys of caches.  Errors: ImportError where nothing does."""
    program = find_ptxas() if needs_whole_program(ptx) else None
    if program is not None:
        return ptxas_version(program)
    return "nvJitLink " + ".".join(map(str, nvidia_library("nvjitlink").version()))


def _kernels(data: bytes, has_kernel: bool, target: Target, log: str) -> tuple[KernelInfo, ...]:
    """What the machine code of a module takes."""
    try:
        found = kernel_info(data)
    except CubinError as error:
        raise AssemblerError(f"{target}: the assembler's cubin cannot be read: {error}", log=log) from error
    if has_kernel and not found:
        raise AssemblerError(f"{target}: the assembler's cubin gives no kernel's registers", log=log)
    return found


def compile_cuda(source: str, target: Target) -> str:
    """The PTX that nvrtc makes of CUDA C++ text without includes.  The text is assembled too, as a check.

    The PTX has the newest ``.version`` that nvrtc knows: give a driver the cubin that `assemble` makes of it.

    Errors: CompilerError with the compiler's log.  ImportError where the libraries are missing.
    """
    return _compiled(source, target)[0]


def assemble_cuda(source: str, target: Target, allow_spills: bool = False) -> Cubin:
    """The machine code that nvrtc makes of CUDA C++ text without includes: of it as all there is, as by `ptxas`.

    Errors: CompilerError with the compiler's log; AssemblerError as of `assemble`.  ImportError where the libraries are
    missing.
    """
    begin = perf_counter()
    ptx, data = _compiled(source, target)
    return _checked(data, "", perf_counter() - begin, target, ".entry" in ptx, allow_spills)


def _compiled(source: str, target: Target) -> tuple[str, bytes]:
    """The PTX and the cubin."""
    nvrtc = nvidia_library("nvrtc")
    name = b"kernel.cu"
    program = _call(nvrtc.nvrtcCreateProgram, source.encode(), name, 0, [], [])
    try:
        options = [f"--gpu-architecture={target.name}".encode()]
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            log = _text(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program)
            raise CompilerError(f"{target}: nvrtc refuses the CUDA text ({status.name})\n{log}".rstrip())
        return (
            _text(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX, program),
            _bytes(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, program),
        )
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def nvidia_library(name: str) -> Any:
    """The module ``cuda.bindings.<name>`` with its shared library loaded.

    Errors: ImportError, with what installs it.
    """
    try:
        module = import_module(f"cuda.bindings.{name}")
        # The bindings load their library at the first call, and say in their own way that it is absent.
        _ = module.version() if name == "nvjitlink" else module.nvrtcVersion()
    except (ImportError, RuntimeError) as error:
        reason = str(error).partition("\n")[0]
        raise ImportError(
            f"{name} cannot be loaded ({type(error).__name__}: {reason}); assembling PTX and compiling CUDA text "
            "need NVIDIA's libraries: pip install 'tilelayout[cuda]'"
        ) from error
    return module


# --- nvJitLink ------------------------------------------------------------------------------------


def _link(nvjitlink: Any, ptx: str, target: Target) -> tuple[bytes, str]:
    """The linked cubin and the report."""
    version = "nvJitLink " + ".".join(map(str, nvjitlink.version()))
    # -Xptxas=-v reports registers, spills and stack frames; -verbose would repeat them in another form.
    options = [f"-arch={target.name}", "-Xptxas=-v"]
    try:
        handle = nvjitlink.create(len(options), options)
    except nvjitlink.nvJitLinkError as error:
        raise AssemblerError(f"{target}: {version} does not know this architecture ({error})") from None
    try:
        image = ptx.encode()
        nvjitlink.add_data(handle, nvjitlink.InputType.PTX, image, len(image), "module.ptx")
        nvjitlink.complete(handle)
        data = bytearray(nvjitlink.get_linked_cubin_size(handle))
        nvjitlink.get_linked_cubin(handle, data)
        return bytes(data), _log(nvjitlink.get_info_log_size, nvjitlink.get_info_log, handle)
    except nvjitlink.nvJitLinkError as error:
        log = _log(nvjitlink.get_error_log_size, nvjitlink.get_error_log, handle)
        raise _refusal(ptx, target, version, str(error), log) from None
    finally:
        nvjitlink.destroy(handle)


def _log(size: Any, read: Any, handle: int) -> str:
    buffer = bytearray(size(handle) + 1)
    read(handle, buffer)
    return buffer.rstrip(b"\0").decode(errors="replace")


def _refusal(ptx: str, target: Target, version: str, status: str, log: str) -> AssemblerError:
    """What the assembler said, with the PTX lines that it points at."""
    newer = _NEWER.search(log)
    if newer:
        return AssemblerError(
            f"{target}: PTX .version {newer[1]} is newer than {newer[2]}, the newest that {version} knows; "
            "write an older .version, or update the libraries of tilelayout[cuda]",
            1 + ptx[: ptx.find(".version")].count("\n"),
            log,
        )
    lines = ptx.splitlines()
    found: dict[tuple[int, str], None] = {}
    for text in log.splitlines():
        at, without = _AT_LINE.search(text), _NO_LINE.search(text)
        if at:
            found[int(at[1]), at[2]] = None
        elif without and "aborted due to errors" not in text:
            found[0, without[1]] = None
    message = [f"{target}: the assembler ({version}) refuses the PTX"]
    for number, said in list(found)[:_SHOWN] or [(0, log.strip() or status)]:
        where = f"line {number}: " if number else ""
        source = f"\n    {lines[number - 1].strip()}" if 0 < number <= len(lines) else ""
        message.append(f"  {where}{said}{source}")
    if len(found) > _SHOWN:
        message.append(f"  and {len(found) - _SHOWN} more")
    return AssemblerError("\n".join(message), next((n for n, _ in found if n), None), log)


# --- nvrtc ----------------------------------------------------------------------------------------


def _call(function: Any, *arguments: Any) -> Any:
    """The result of an nvrtc function; CompilerError where it fails."""
    status, *results = function(*arguments)
    if status.value:
        raise CompilerError(f"{function.__name__} fails: {status.name}")
    return results[0] if results else None


def _text(size: Any, read: Any, program: Any) -> str:
    return _bytes(size, read, program).rstrip(b"\0 ").decode(errors="replace")


def _bytes(size: Any, read: Any, program: Any) -> bytes:
    buffer = b" " * _call(size, program)
    _call(read, program, buffer)
    return buffer
