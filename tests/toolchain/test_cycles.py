"""No module of `protocol` imports itself through others: every strongly connected component is a single
module.

Imports are read from the syntax trees, so those inside functions count. Those under `if TYPE_CHECKING:` do
not count, because they never run. `from package import name` imports the submodule `name` if there is one,
else the package.
"""

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.toolchain.project import REPOSITORY


def import_graph(root: Path, package: str) -> dict[str, set[str]]:
    """For each module of `package`, the other modules of the package that it imports; all by dotted names."""
    files = {module_name(root, path): path for path in sorted((root / package).rglob("*.py"))}
    return {
        name: {found for found in imports(path, name, files) if found in files and found != name}
        for name, path in files.items()
    }


def module_name(root: Path, path: Path) -> str:
    """The dotted name of the module at `path`; for a package, that of its folder."""
    return ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")


def imports(path: Path, name: str, files: Mapping[str, Path]) -> Iterator[str]:
    """The dotted names that the module imports when it is loaded or when one of its functions runs."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in executed(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                submodule = f"{base}.{alias.name}"
                yield submodule if submodule in files else base


def executed(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes below `tree` except those under `if TYPE_CHECKING:`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            for other in node.orelse:
                yield other
                yield from executed(other)
            continue
        yield node
        yield from executed(node)


def cycle(graph: Mapping[str, set[str]]) -> list[str]:
    """One import cycle: each module imports the next, and the last entry is the first again. Empty if there
    is none.
    """
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        found: list[str] = error.args[1]
        return found[::-1]
    return []


def test_no_module_imports_itself_through_others() -> None:
    graph = import_graph(REPOSITORY, "protocol")
    assert graph["protocol.numerics.contract"] >= {"protocol.numerics.kernels.dispatch"}
    assert cycle(graph) == []


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        ({"a": "from p import b", "b": "import os"}, []),
        ({"a": "from p.b import x", "b": "import p.a"}, ["a", "b"]),
        ({"a": "from p import b", "b": "def f():\n    from p.a import x"}, ["a", "b"]),
        ({"a": "from . import b", "b": "from .c import x", "c": "from p.a import y"}, ["a", "b", "c"]),
        (
            {
                "a": "from p import b",
                "b": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p.a import x",
            },
            [],
        ),
        (
            {
                "a": "from p import b",
                "b": "import typing as t\nif t.TYPE_CHECKING:\n    pass\nelse:\n    from p.a import x",
            },
            ["a", "b"],
        ),
    ],
    ids=["none", "two", "in a function", "relative", "types only", "not for types"],
)
def test_the_reader_finds_every_form_of_cycle(
    sources: dict[str, str], expected: list[str], tmp_path: Path
) -> None:
    (tmp_path / "p").mkdir()
    for name, source in {"__init__": "", **sources}.items():
        (tmp_path / "p" / f"{name}.py").write_text(source + "\n")
    assert sorted(set(cycle(import_graph(tmp_path, "p")))) == [f"p.{name}" for name in expected]
