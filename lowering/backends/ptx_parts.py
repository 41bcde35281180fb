"""What every PTX text of a program has in common: the module around an entry, declarations, addresses of buffers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..program import Buffer, Program, Registers
from ..target import Target
from .address import packing
from .shared_memory import SharedMemory

_SPECIAL = """
    tid ntid laneid warpid nwarpid ctaid nctaid smid nsmid gridid clusterid nclusterid cluster_ctaid
    cluster_nctaid cluster_ctarank cluster_nctarank is_explicit_cluster lanemask_eq lanemask_le lanemask_lt
    lanemask_ge lanemask_gt clock clock_hi clock64 globaltimer globaltimer_lo globaltimer_hi total_smem_size
    aggr_smem_size dynamic_smem_size current_graph_exec reserved_smem_offset_begin reserved_smem_offset_end
    reserved_smem_offset_cap reserved_smem_offset_0 reserved_smem_offset_1
""".split()
_NUMBERED = [f"envreg{i}" for i in range(32)] + [f"pm{i}{wide}" for i in range(8) for wide in ("", "_64")]
SPECIAL = (*_SPECIAL, *_NUMBERED)
"""What PTX reads by itself behind a %: a register of such a name would hide it, or be refused."""


def ptx_version(program: Program, target: Target) -> tuple[int, int]:
    """The smallest PTX ISA version with the target and every instruction: old drivers take the text."""
    return max([target.ptx, *[i.ptx for i in program.instructions]])


def module_text(
    program: Program,
    target: Target,
    before: list[str],
    entry: str,
    parameters: list[str],
    threads: int,
    body: list[str],
) -> str:
    """A module with one entry: what stands before it, its parameters with their commas, and its lines."""
    major, minor = ptx_version(program, target)
    return "\n".join(
        [
            f".version {major}.{minor}",
            f".target {target}",
            ".address_size 64",
            *before,
            "",
            f".visible .entry {entry}(",
            *[f"    {line}" for line in parameters],
            ")",
            f".reqntid {threads}",
            *([f".minnctapersm {program.resident}"] if program.resident else []),
            "{",
            *[f"    {line}".rstrip() for line in body],
            "}",
            "",
        ]
    )


# --- declarations -----------------------------------------------------------------------------------


def dynamic_array(shared: SharedMemory, name: str) -> list[str]:
    """The array that the launch gives, if there is one; it begins where the most aligned buffer may."""
    if not shared.dynamic:
        return []
    alignment = max(b.alignment for b in shared.offsets)
    return ["", f".extern .shared .align {alignment} .b8 {name}[];  // {shared.dynamic} bytes"]


def shared_array(buffer: Buffer, symbol: str) -> str:
    """A buffer in shared memory that the kernel declares by itself."""
    note = f"{buffer.dtype}[{buffer.elements}]{packing(buffer)}"
    return f".shared .align {buffer.alignment} .b8 {symbol}[{buffer.bytes}];  // {note}"


def register_groups(names: Mapping[Registers, str]) -> Iterator[str]:
    """The program's own registers, a line for each group."""
    for r, name in names.items():
        yield f".reg .{r.kind} {name}<{r.count}>;  // {r.role}: {r.dtype}"


# --- addresses --------------------------------------------------------------------------------------


def buffer_address(
    buffer: Buffer, register: str, symbol: str, shared: SharedMemory, dynamic: str
) -> list[str]:
    """Put a buffer's address into a register: what its parameter says, or where it is in shared memory.

    `symbol` is its parameter or its array, `dynamic` the array that the launch gives, which has it where there is one.
    """
    if buffer.space == "global":
        return [f"ld.param.u64 {register}, [{symbol}];", f"cvta.to.global.u64 {register}, {register};"]
    if shared.dynamic:
        return [
            f"mov.u32 {register}, {dynamic};",
            f"add.u32 {register}, {register}, {shared.offsets[buffer]};",
        ]
    return [f"mov.u32 {register}, {symbol};"]
