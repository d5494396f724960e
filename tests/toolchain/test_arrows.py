"""Imports point one way: parties -> chain -> dispute -> program -> commitments -> numerics; nobody imports assay.

Read from the sources' syntax trees, so an import inside a function counts too. TYPE_CHECKING imports count as well.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.toolchain.project import REPOSITORY

# From the innermost layer out; a module may import its own layer and those before it.
LAYERS = (
    "protocol.numerics",
    "protocol.commitments",
    "protocol.program",
    "protocol.dispute",
    "protocol.chain",
)
PARTIES = ("solver", "verifier", "assay", "sim")
PYTHON_FILES = sorted(path for top in ("protocol", *PARTIES) for path in (REPOSITORY / top).rglob("*.py"))


def imported(path: Path) -> Iterator[str]:
    """Yield the dotted names of all modules that the file imports; `from a import b` yields a and a.b."""
    package = path.relative_to(REPOSITORY).parent.parts
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join((*above, *(node.module.split(".") if node.module else ())))
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def forbidden(module: str) -> tuple[str, ...]:
    """Return the packages that `module` must not import."""
    top = module.split(".")[0]
    if top in PARTIES:
        return tuple(party for party in PARTIES if party != top)
    layer = next((i for i, name in enumerate(LAYERS) if within(module, name)), len(LAYERS) - 1)
    return (*LAYERS[layer + 1 :], *PARTIES, "tests")


def within(module: str, package: str) -> bool:
    """Tell whether `module` is `package` or lies inside it."""
    return module == package or module.startswith(package + ".")


@pytest.mark.parametrize("path", PYTHON_FILES, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_imports_point_one_way(path: Path) -> None:
    module = ".".join(path.relative_to(REPOSITORY).with_suffix("").parts)
    wrong = [name for name in imported(path) for package in forbidden(module) if within(name, package)]
    assert not wrong, f"{module} imports {sorted(set(wrong))}, which lie further out"


def test_the_reader_sees_every_form_of_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.REPOSITORY", tmp_path)
    source = tmp_path / "protocol" / "program" / "m.py"
    source.parent.mkdir(parents=True)
    source.write_text(
        "import solver.cli\ndef f():\n    from ..chain import client\n    from . import check\n"
    )
    assert set(imported(source)) == {
        "solver.cli",
        "protocol.chain",
        "protocol.chain.client",
        "protocol.program",
        "protocol.program.check",
    }
    assert [
        name for name in imported(source) for p in forbidden("protocol.program.m") if within(name, p)
    ] == [
        "solver.cli",
        "protocol.chain",
        "protocol.chain.client",
    ]
