"""CTAs of a multiprocessor, beside what the calculator of the CUDA toolkit says for the same numbers."""

from __future__ import annotations

import doctest
import random
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

from lowering.kernels.gemm import occupancy as room
from lowering.kernels.gemm.occupancy import MULTIPROCESSORS, occupancy
from lowering.target import TARGETS, target

PROGRAM = r"""
#include <cstdio>
#include "cuda_occupancy.h"
int main()
{
    int sm, threads, registers, per_sm; unsigned long shared, all, reserved;
    while (scanf("%d %d %d %lu %d %lu %lu", &sm, &threads, &registers, &shared, &per_sm, &all, &reserved) == 7) {
        cudaOccDeviceProp p = {};
        p.computeMajor = sm / 10; p.computeMinor = sm % 10; p.maxThreadsPerBlock = 1024;
        p.maxThreadsPerMultiprocessor = per_sm; p.regsPerBlock = p.regsPerMultiprocessor = 65536; p.warpSize = 32;
        p.sharedMemPerBlock = 48 << 10; p.sharedMemPerMultiprocessor = all; p.numSms = 1;
        p.sharedMemPerBlockOptin = all - reserved; p.reservedSharedMemPerBlock = reserved;
        cudaOccFuncAttributes f = {};
        f.maxThreadsPerBlock = 1024; f.numRegs = registers; f.partitionedGCConfig = PARTITIONED_GC_OFF;
        f.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN; f.maxDynamicSharedSizeBytes = all - reserved;
        cudaOccDeviceState state = {};
        cudaOccResult result = {};
        int status = cudaOccMaxActiveBlocksPerMultiprocessor(&result, &p, &f, &state, threads, shared);
        printf("%d\n", status ? -status : result.activeBlocksPerMultiprocessor);
    }
}
"""


def calculator(folder: Path) -> Path:
    """The toolkit's calculator as a program."""
    spec, compiler = find_spec("nvidia"), shutil.which("g++")
    places = list(spec.submodule_search_locations or []) if spec else []
    found = [p for place in places for p in Path(place).glob("cu13/include/cuda_occupancy.h")]
    if not found or compiler is None:
        pytest.skip("needs the CUDA toolkit's headers and a C++ compiler")
    source, out = folder / "calculator.cpp", folder / "calculator"
    source.write_text(PROGRAM)
    subprocess.run([compiler, "-w", "-I", str(found[0].parent), str(source), "-o", str(out)], check=True)
    return out


def test_the_example_holds() -> None:
    failed, tried = doctest.testmod(room)
    assert (failed, tried) == (0, 2)


def test_every_target_has_its_multiprocessor() -> None:
    assert {t.sm for t in TARGETS.values()} == set(MULTIPROCESSORS)


def test_the_toolkits_calculator_says_the_same(tmp_path: Path) -> None:
    program = calculator(tmp_path)
    draw = random.Random(6)
    asked: list[tuple[int, int, int, int]] = []
    lines: list[str] = []
    for sm, m in MULTIPROCESSORS.items():
        reserved = 1024 if sm >= 80 else 0
        for _ in range(400):
            threads, registers = 32 * draw.randint(1, 32), draw.randint(16, 255)
            shared = draw.choice([0, draw.randint(0, 20 << 10), draw.randint(0, m.shared - reserved)])
            asked.append((sm, threads, registers, shared))
            lines.append(f"{sm} {threads} {registers} {shared} {m.threads} {m.shared} {reserved}")
    said = subprocess.run([program], input="\n".join(lines), capture_output=True, text=True, check=True)
    results = [int(x) for x in said.stdout.split()]
    assert len(results) == len(asked)
    for (sm, threads, registers, shared), wanted in zip(asked, results, strict=True):
        found = occupancy(target(f"sm_{sm}"), threads, registers, shared)
        assert found.ctas == wanted, (sm, threads, registers, shared, found.limits)
        assert all(found.limits[name] == wanted for name in found.limited_by)
