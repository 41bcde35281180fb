"""The wheel ships both packages, typed, and nothing else."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    build = f"from hatchling.build import build_wheel; build_wheel({str(folder)!r})"
    subprocess.run([sys.executable, "-c", build], cwd=ROOT, check=True, capture_output=True)
    (path,) = folder.glob("*.whl")
    return zipfile.ZipFile(path)


def test_every_source_file_is_shipped_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    sources = {
        path.relative_to(ROOT).as_posix()
        for package in ("tilelayout", "lowering")
        for path in (ROOT / package).rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    shipped = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert shipped == sources
    assert {"tilelayout/py.typed", "lowering/py.typed"} <= shipped


def test_the_core_needs_three_packages(wheel: zipfile.ZipFile) -> None:
    (name,) = (name for name in wheel.namelist() if name.endswith("/METADATA"))
    lines = wheel.read(name).decode().splitlines()
    needed = {
        line.split(": ")[1] for line in lines if line.startswith("Requires-Dist") and "extra ==" not in line
    }
    assert {requirement.split(">")[0].replace("_", "-") for requirement in needed} == {
        "numpy",
        "sympy",
        "ml-dtypes",
    }
    assert "License-Expression: Apache-2.0" in lines
    assert any(name.endswith("/licenses/LICENSE") for name in wheel.namelist())
