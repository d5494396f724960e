"""A machine with no compiler, an unusable library or an old processor gives one plain warning, and computes
the same bits more slowly.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import SimpleNamespace

import pytest

from protocol.numerics.kernels import attention, channels, convolution, fused, native
from tests.same_bits.runs import MODELS, Machine, train

ROOT = Path(__file__).parents[3]
STEPS = 25

STRUCTURES = (
    *(native.Operand, native.Problem, attention.Matrix, attention.ChangeRecord, attention.Problem),
    *(
        fused.Adam,
        fused.Sgd,
        fused.LstmCell,
        fused.LstmCellGrad,
        fused.Message,
        fused.Emit,
        fused.Absorb,
        channels.Problem,
        convolution.Problem,
    ),
)
"""All structures that Python passes to the library."""
LAYOUTS = {2: "c20d368c169fd61c"}
"""The digest of the structures' fields, by library version."""

VARIANTS = """
known = native.variants()
native.variants = lambda: {name: known[name] for name in ("baseline", "portable")}
"""
KERNEL_IN_USE = f"""
import logging, torch; logging.basicConfig(format="%(message)s")
from protocol.numerics.kernels import native
{VARIANTS}from protocol.numerics.contract import contract
from protocol.numerics.kernels.dispatch import kernel_for
x = torch.full((3, 5), 1.5)
results = [float(contract(x, x, bits, bits)[0, 0]) for bits in (13, 20)]
print(kernel_for(torch.device("cpu"), 13, 13).name, *results)
"""


needs_library = pytest.mark.skipif(
    native.library() is None, reason="no compiled library: set-up found no C++ compiler with OpenMP"
)


def in_a_process(command: list[str], folder: Path, environment: Mapping[str, str]) -> tuple[str, str]:
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=folder, env={**os.environ, **environment}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


@needs_library
def test_an_old_processor_is_said_once_and_gets_the_next_kernel() -> None:
    out, log = in_a_process([sys.executable, "-c", KERNEL_IN_USE], ROOT, {"ASSAY_KERNELS": ""})
    assert out.split() == ["int16-baseline", "11.25", "11.25"]
    assert log.count("this processor has no AVX2, so products and fused functions run on baseline") == 1


@needs_library
def test_a_library_of_another_version_is_as_good_as_none() -> None:
    """A library built from other sources is not used. It takes other structures, so a call could read invalid
    memory.
    """
    code = KERNEL_IN_USE.replace(VARIANTS, "native.VERSION += 1\n")
    out, log = in_a_process([sys.executable, "-c", code], ROOT, {"ASSAY_KERNELS": ""})
    assert out.split() == ["float64", "11.25", "11.25"]
    assert log.count("are not built") == 1


@needs_library
@pytest.mark.parametrize(
    "found", [SimpleNamespace(), SimpleNamespace(assay_version=lambda: native.VERSION - 1)]
)
def test_an_older_library_is_never_called(found: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: found)
    assert native.library.__wrapped__() is None


def test_a_changed_structure_is_another_version() -> None:
    layout = [
        (
            s.__module__,
            s.__name__,
            ctypes.sizeof(s),
            [(name, getattr(s, name).offset) for name, *_ in s._fields_],
        )
        for s in STRUCTURES
    ]
    found = hashlib.sha256(repr(layout).encode()).hexdigest()[:16]
    assert found == LAYOUTS[native.VERSION], (
        "count VERSION and assay_version on; write the new layout down here"
    )


def package(to: Path, environment: Mapping[str, str]) -> Path:
    """Install the package from a copy of its sources, with these environment variables. Return the folder of
    the installed package.
    """
    copy, site = to / "copy", to / "site"
    for name in ("protocol", "solver", "verifier", "assay"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy / name)
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-index",
        "--no-deps",
        "--no-build-isolation",
    ]
    in_a_process([*pip, "--target", str(site), str(copy)], to, environment)
    return site


@pytest.mark.heavy
@pytest.mark.timeout(900)
def test_without_a_compiler_the_package_installs_warns_once_and_trains_to_the_same_root(
    tmp_path: Path,
) -> None:
    (tmp_path / "nothing").mkdir()
    site = package(tmp_path, {"PATH": str(tmp_path / "nothing"), "CC": "", "CXX": ""})
    assert not list(site.rglob("*.so"))
    bundle = MODELS["mlp"].write(tmp_path / "bundle")
    script = tmp_path / "train.py"
    shutil.copy(ROOT / "tests" / "same_bits" / "train.py", script)
    environment = {**Machine().environment(), "PYTHONPATH": str(site)}
    where = "import protocol.numerics.kernels.native as n; print(n.__file__, n.library())"
    out, _ = in_a_process([sys.executable, "-c", where], tmp_path, environment)
    assert out.split() == [str(site / "protocol" / "numerics" / "kernels" / "native.py"), "None"]
    out, log = in_a_process(
        [sys.executable, str(script), "kernels", "cpu", str(bundle), str(STEPS)], tmp_path, environment
    )
    assert train(bundle, STEPS, Machine()).root in out
    assert (
        log.count(
            "the compiled product kernels are not built, so products run in float64, several times slower"
        )
        == 1
    )
    assert log.count("\n") == 1


@needs_library
@pytest.mark.heavy
@pytest.mark.timeout(900)
def test_an_assembler_without_tiles_builds_all_but_them(tmp_path: Path) -> None:
    cxx = shutil.which(os.environ.get("CXX", "g++"))
    if cxx is None:
        pytest.skip("no C++ compiler")
    old = tmp_path / "old"
    old.write_text(f"""#!/bin/sh
case "$*" in *ASSAY_NO_AMX*) exec {cxx} "$@";; esac
for file; do
    case $file in *.cpp) grep -q tdpbssd "$file" && echo "no such instruction: tdpbssd" >&2 && exit 1;; esac
done
exec {cxx} "$@"
""")
    old.chmod(0o755)
    site = package(tmp_path, {"CC": str(old), "CXX": str(old)})
    code = "from protocol.numerics.kernels.native import variants; print(*variants())"
    out, _ = in_a_process([sys.executable, "-c", code], tmp_path, {"PYTHONPATH": str(site)})
    assert out.split() == [variant for variant in native.variants() if variant != "amx"]


@pytest.mark.heavy
def test_a_library_for_another_machine_is_as_good_as_none(tmp_path: Path) -> None:
    site = tmp_path / "site"
    shutil.copytree(
        ROOT / "protocol", site / "protocol", ignore=shutil.ignore_patterns("*.so", "__pycache__")
    )
    broken = site / "protocol" / "numerics" / "kernels" / f"_native{EXTENSION_SUFFIXES[0]}"
    broken.write_bytes(b"\x7fELF of another machine")
    code = KERNEL_IN_USE.replace(VARIANTS, "")
    environment = {"PYTHONPATH": str(site), "ASSAY_KERNELS": ""}
    out, log = in_a_process([sys.executable, "-c", code], tmp_path, environment)
    assert out.split() == ["float64", "11.25", "11.25"]
    assert log.count("are not built") == 1
