"""Plug-ins through entry points: a real one installed from its wheel, and ones that break the rules."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ..conftest import ROOT

PLUGIN = ROOT / "property_tests" / "plugins"

GEMM = """
import numpy as np
from lowering import Tile, gemm, lower, registered
from lowering.fragments import A_FRAG, B_FRAG, D_FRAG
a, b = Tile("A", (16, 16), "float16", A_FRAG), Tile("B", (16, 8), "float16", B_FRAG)
d = Tile("D", (16, 8), "float32", D_FRAG)
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the example plug-in installed: its wheel built by hatchling, put there by pip, no network."""
    folder = tmp_path_factory.mktemp("plugin")
    build = f"from hatchling.build import build_wheel; build_wheel({str(folder)!r})"
    subprocess.run([sys.executable, "-c", build], cwd=PLUGIN, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    target = folder / "site"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target"]
    subprocess.run([*pip, str(target), str(wheel)], check=True, capture_output=True)
    return target


def stub(folder: Path, name: str, source: str, entry: str | None = None) -> Path:
    """A distribution written by hand: one module and its metadata."""
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.py").write_text(source)
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[tilelayout.lowering]\n{name} = {entry or name}\n")
    return folder


def run(code: str, *folders: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([*map(str, folders), str(ROOT)])
    environment = {**os.environ, "TILELAYOUT_NO_PLUGINS": "", "PYTHONPATH": path, **environment}
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code], env=environment, cwd=folders[0] if folders else ROOT,
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def passes(code: str, *folders: Path, **environment: str) -> str:
    found = run(code, *folders, **environment)
    assert found.returncode == 0, found.stderr
    return found.stdout


def test_an_installed_plugin_lowers_what_the_built_in_variant_declines(installed: Path) -> None:
    out = passes(
        GEMM
        + """
lowered = lower(gemm(d, a, b, d, alpha=2), target="sm_80", scope="warp")
assert lowered.variant == "example.alpha2", lowered.variant
x, y = np.arange(256).reshape(16, 16) % 7 - 3.0, np.arange(128).reshape(16, 8) % 5 - 2.0
assert np.array_equal(lowered.run(A=x, B=y), 2 * (x @ y))
assert lowered.ptx.count("add.f32") == 4 and lowered.ptx.count("mma.sync") == 1
assert lowered.cuda
plain = lower(gemm(d, a, b, d), target="sm_80", scope="warp")
assert plain.variant == "mma.m16n8k*"
print(plain.explain())
try:
    lower(gemm(d, a, b, d, alpha=3, beta=1), target="sm_80", scope="warp")
except RuntimeError as error:
    print(error)
print([(v.name, v.provider) for v in registered("gemm")])
""",
        installed,
    )
    assert "alpha_is_2: alpha is 1.0, not 2" in out
    assert "example.alpha2        20  alpha_is_2: alpha is 3, not 2" in out
    assert "mma.m16n8k*           10  alpha is 3" in out
    assert "('example.alpha2', 'tilelayout_example.gemm_alpha2'), ('mma.m16n8k*'," in out


def test_a_plugin_brings_a_primitive_of_its_own(installed: Path) -> None:
    passes(
        """
import numpy as np
from lowering import Tile, lower, registered
from lowering.fragments import D_FRAG
assert "double" in {v.primitive for v in registered()}  # the plug-in is loaded without being imported here
from tilelayout_example import Double
a, d = (Tile(n, (16, 8), "float32", D_FRAG) for n in "AD")
lowered = lower(Double(d.full, a.full), target="sm_80", scope="warp")
x = np.arange(128.0).reshape(16, 8)
assert np.array_equal(lowered.run(A=x), 2 * x)
""",
        installed,
    )


def test_the_off_switch_leaves_plugins_out(installed: Path) -> None:
    code = "from lowering import registered; print([v.name for v in registered('gemm')])"
    assert "example.alpha2" in passes(code, installed)
    assert passes(code, installed, TILELAYOUT_NO_PLUGINS="1") == "['mma.m16n8k*', 'mma.m8n8k*']\n"
    assert "example.alpha2" in passes(code, installed, TILELAYOUT_NO_PLUGINS="0")
    assert "example.alpha2" in passes(code, installed, TILELAYOUT_NO_PLUGINS="")


def test_plugins_loaded_inside_a_temporary_block_stay(installed: Path) -> None:
    code = """
from lowering import register_dispatch, registered, temporary_variants
with temporary_variants():
    register_dispatch("gemm", "cuda", variant="brief")(lambda call, context: None)
    assert len([v for v in registered() if v.primitive in ("double", "gemm")]) == 5
print([v.name for v in registered() if v.primitive in ("double", "gemm")])
"""
    assert passes(code, installed) == "['example.registers', 'example.alpha2', 'mma.m16n8k*', 'mma.m8n8k*']\n"


def test_a_plugin_that_raises_at_import_is_named_with_its_distribution(tmp_path: Path) -> None:
    broken = stub(tmp_path / "site", "broken_plugin", "import no_such_module\n")
    code = GEMM + 'lower(gemm(d, a, b, d), target="sm_80", scope="warp"); print("lowered")'
    found = run(code, broken)
    assert found.returncode == 1
    last = found.stderr.strip().splitlines()[-1]
    assert last.startswith(
        "lowering.errors.PluginError: plug-in 'broken_plugin' (broken_plugin) of broken-plugin does not load"
    )
    assert "ModuleNotFoundError: No module named 'no_such_module'" in last
    assert "TILELAYOUT_NO_PLUGINS=1" in last
    assert passes(code, broken, TILELAYOUT_NO_PLUGINS="1") == "lowered\n"


def test_a_broken_plugin_is_named_each_time_and_leaves_nothing(tmp_path: Path) -> None:
    source = """
from lowering import register_dispatch
register_dispatch("gemm", "cuda", variant="half-made")(lambda call, context: None)
1 / 0
"""
    broken = stub(tmp_path / "site", "broken_plugin", source)
    passes(
        """
from lowering import PluginError, registered
from lowering.dispatch import REGISTRY
for _ in range(2):
    try:
        registered()
    except PluginError as error:
        assert "ZeroDivisionError" in str(error), error
        assert isinstance(error.__cause__, ZeroDivisionError)
    else:
        raise SystemExit("no error")
assert [v.name for v in REGISTRY.variants("gemm")] == ["mma.m16n8k*", "mma.m8n8k*"], REGISTRY.variants()
""",
        broken,
    )


def test_a_duplicate_of_a_plugin_names_both_providers(installed: Path, tmp_path: Path) -> None:
    source = """
from lowering import register_dispatch
@register_dispatch("gemm", "cuda", variant="{}", priority=50)
def other(call, context): ...
"""
    for name in ("example.alpha2", "mma.m16n8k*"):
        twice = stub(tmp_path / name, "zz_second", source.format(name))
        found = run("from lowering import registered; registered()", twice, installed)
        assert found.returncode == 1
        last = found.stderr.strip().splitlines()[-1]
        assert f"PluginError: variant '{name}' of gemm on cuda is registered twice" in last
        assert "zz_second.other" in last
        first = (
            "tilelayout_example.gemm_alpha2"
            if "example" in name
            else "lowering.variants.gemm_mma_sync.gemm_m16n8"
        )
        assert f"by {first} and by zz_second.other" in last
        assert "plug-in 'zz_second' (zz_second) of zz-second does not load" in last


def test_a_plugin_brings_an_instruction_and_a_broken_one_leaves_none(tmp_path: Path) -> None:
    source = """
from dataclasses import replace
from lowering import register_instruction
from lowering.isa import MMA_INSTRUCTIONS
register_instruction(replace(MMA_INSTRUCTIONS[0], k={}))
"""
    good = stub(tmp_path / "good", "aa_record", source.format(32))
    broken = stub(tmp_path / "broken", "zz_record", source.format(64) + source.format(16))
    code = """
from lowering import PluginError, registered
from lowering.isa.registered import added
try:
    registered()
except PluginError as error:
    print(error)
print([record.name for record in added()])
"""
    assert passes(code, good) == "['m16n8k32.f16']\n"
    refusal, names = passes(code, good, broken).splitlines()
    assert "'m16n8k16.f16' is registered twice: by lowering.isa.DENSE and by zz_record" in refusal
    assert names == "['m16n8k32.f16']"


def test_an_entry_point_may_name_a_function(tmp_path: Path) -> None:
    source = """
from lowering import fail, register_dispatch
def hook():
    register_dispatch("gemm", "cuda", variant="hooked", priority=1)(lambda call, context: fail("no"))
"""
    plugin = stub(tmp_path / "site", "hooked_plugin", source, "hooked_plugin:hook")
    code = "from lowering import registered; registered(); print([v.name for v in registered('gemm')])"
    assert passes(code, plugin) == "['mma.m16n8k*', 'mma.m8n8k*', 'hooked']\n"


def test_a_plugin_that_loaded_is_not_loaded_again(tmp_path: Path) -> None:
    source = """
from lowering import fail, register_dispatch
def hook():
    register_dispatch("gemm", "cuda", variant="hooked")(lambda call, context: fail("no"))
"""
    good = stub(tmp_path / "good", "aa_hooked", source, "aa_hooked:hook")
    broken = stub(tmp_path / "broken", "zz_broken", "1 / 0")
    code = """
from lowering import PluginError, registered
for _ in range(2):
    try:
        registered()
    except PluginError as error:
        print(str(error).split(" of ")[1].split()[0])
"""
    assert passes(code, good, broken) == "zz-broken\nzz-broken\n"


def test_plugins_load_in_order_of_name_and_only_when_needed(tmp_path: Path) -> None:
    folders = [
        stub(tmp_path / name, name, f"print({name!r})\n") for name in ("zz_plugin", "aa_plugin", "mm_plugin")
    ]
    code = """
import lowering
from lowering import Tile, gemm, register_dispatch
print("imported")
from lowering import registered
registered(); registered()
"""
    assert passes(code, *folders) == "imported\naa_plugin\nmm_plugin\nzz_plugin\n"
