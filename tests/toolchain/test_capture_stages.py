"""`protocol.capture` runs in stages, and a module imports only from the stage that it belongs to and from
earlier ones.

Only the module `checks` of a stage refuses input: no other module makes a `Problem`. Only `types` has a table
of torch's types. Imports are read from the sources' syntax trees, so those inside functions and under
TYPE_CHECKING count too.
"""

import ast
from pathlib import Path

import pytest

from tests.toolchain.project import REPOSITORY
from tests.toolchain.test_arrows import imported, within

PACKAGE = "protocol.capture"
# In the order in which they run; the first three are shared by all.
STAGES = (
    "errors",
    "types",
    "streams",
    "inputs",
    "tracing",
    "expansion",
    "analysis",
    "lowering",
    "optimisers",
    "assembly",
    "result",
    "preflight",
    "pipeline",
)
TORCH_TYPES = {f"torch.{name}" for name in ("float32", "uint8", "int32", "int64", "bool")}
PROBLEM_MAKERS = {f"{PACKAGE}.{stage}.checks" for stage in STAGES}


def name_of(path: Path) -> str:
    """The dotted name of a module; for an `__init__`, that of its package."""
    return ".".join(path.relative_to(REPOSITORY).with_suffix("").parts).removesuffix(".__init__")


MODULES = {name_of(path): path for path in sorted((REPOSITORY / "protocol" / "capture").rglob("*.py"))}


def stage_of(module: str) -> int:
    """The index in STAGES of a module in `protocol.capture`; the package itself comes after them all."""
    if module == PACKAGE:
        return len(STAGES)
    return STAGES.index(module.removeprefix(PACKAGE + ".").split(".")[0])


def inside(path: Path) -> set[str]:
    """The other modules of `protocol.capture` that a file imports. An imported function or class counts as
    the module that it is imported from.
    """
    names = {name for name in imported(path) if within(name, PACKAGE)}
    return {name if name in MODULES else name.rsplit(".", 1)[0] for name in names} - {name_of(path)}


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_its_own_stage_and_earlier_ones(module: str) -> None:
    later = [name for name in inside(MODULES[module]) if stage_of(name) > stage_of(module)]
    assert not later, f"{module} imports {sorted(later)}, which run later"


def test_every_stage_exists() -> None:
    assert {stage_of(module) for module in MODULES} == set(range(len(STAGES) + 1))


@pytest.mark.parametrize("module", MODULES)
def test_only_checks_make_problems(module: str) -> None:
    made = [
        node.lineno
        for node in ast.walk(ast.parse(MODULES[module].read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Problem"
    ]
    assert not made or module in PROBLEM_MAKERS, f"{module}, lines {made}"


@pytest.mark.parametrize("module", MODULES)
def test_only_one_module_relates_types(module: str) -> None:
    tables = [
        node.lineno
        for node in ast.walk(ast.parse(MODULES[module].read_text()))
        if isinstance(node, ast.Dict)
        and any(isinstance(key, ast.Attribute) and ast.unparse(key) in TORCH_TYPES for key in node.keys)
    ]
    assert len(tables) == (1 if module == f"{PACKAGE}.types" else 0), f"{module}, lines {tables}"


def test_a_later_stage_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "protocol" / "capture" / "tracing" / "m.py"
    source.parent.mkdir(parents=True)
    source.write_text("def f():\n    from protocol.capture.lowering.lower import lower\n    return lower\n")
    monkeypatch.setattr("tests.toolchain.test_arrows.REPOSITORY", tmp_path)
    monkeypatch.setattr(f"{__name__}.REPOSITORY", tmp_path)
    (found,) = inside(source)
    assert found == "protocol.capture.lowering.lower"
    assert stage_of(found) > stage_of(name_of(source))
