"""Imports point one way. A module of `protocol` imports neither a party nor a module of a layer further out,
and no party imports another party.

Nothing in the product imports tests, benchmarks or examples. Imports are read from the sources' syntax trees,
so those inside functions and under TYPE_CHECKING count too.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.toolchain.project import REPOSITORY

# From the innermost layer outwards; a module may import its own layer and those before it. The longest
# matching name counts: protocol.node is what any process needs, protocol.node.party what parties on a chain
# share.
LAYERS = (
    "protocol.errors",
    "protocol.node",
    "protocol.beacon",
    "protocol.numerics",
    "protocol.commitments",
    "protocol.program",
    "protocol.capture",
    "protocol.lanes",
    "protocol.dispute",
    "protocol.tasks",
    "protocol.exchange",
    "protocol.execution",
    "protocol.chain",
    "protocol.node.party",
)
PARTIES = ("solver", "verifier", "assay", "sim")
OUTSIDE = ("tests", "benchmarks", "examples")
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


def layer(module: str) -> str:
    """Return the layer of a module of `protocol`: the longest name in LAYERS that contains the module."""
    return max((name for name in LAYERS if within(module, name)), key=len)


def wrong_imports(module: str, names: Iterator[str]) -> list[str]:
    """Return those of the imported names that `module` must not import."""
    return sorted({name for name in names if not _allowed(module, name)})


def _allowed(module: str, name: str) -> bool:
    top, module_top = name.split(".")[0], module.split(".")[0]
    if top in OUTSIDE:
        return False
    if module_top in PARTIES or top in PARTIES:
        return top not in PARTIES or top == module_top
    if top != "protocol" or name == "protocol":
        return True
    return LAYERS.index(layer(name)) <= LAYERS.index(layer(module))


def within(module: str, package: str) -> bool:
    """Tell whether `module` is `package` or lies inside it."""
    return module == package or module.startswith(package + ".")


@pytest.mark.parametrize("path", PYTHON_FILES, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_imports_point_one_way(path: Path) -> None:
    module = ".".join(path.relative_to(REPOSITORY).with_suffix("").parts)
    wrong = wrong_imports(module, imported(path))
    assert not wrong, f"{module} imports {wrong}, which lie further out"


def test_every_module_of_protocol_has_a_layer() -> None:
    modules = [".".join(path.relative_to(REPOSITORY).with_suffix("").parts) for path in PYTHON_FILES]
    inner = [module for module in modules if module.startswith("protocol.") and module != "protocol.__init__"]
    assert [module for module in inner if not any(within(module, name) for name in LAYERS)] == []
    empty = [name for name in LAYERS if not any(layer(module) == name for module in inner)]
    assert empty == [], "layers without a module"


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
    assert wrong_imports("protocol.program.m", imported(source)) == [
        "protocol.chain",
        "protocol.chain.client",
        "solver.cli",
    ]


@pytest.mark.parametrize(
    ("module", "name", "allowed"),
    [
        ("protocol.numerics.types", "protocol.errors", True),
        ("protocol.errors", "protocol.node.exits", False),
        ("protocol.chain.errors", "protocol.node.addresses", True),
        ("protocol.node.settings", "protocol.chain.client", False),
        ("protocol.node.party.loop", "protocol.chain.client", True),
        ("protocol.chain.client", "protocol.node.party.loop", False),
        ("solver.node", "verifier.node", False),
        ("solver.node", "protocol.chain", True),
        ("assay.commands", "examples.demo.play", False),
        ("sim.commands", "tests.adversaries", False),
        ("protocol.chain.client", "solver.node", False),
    ],
)
def test_what_may_be_imported(module: str, name: str, allowed: bool) -> None:
    assert (wrong_imports(module, iter([name])) == []) is allowed
