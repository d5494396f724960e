"""Documents, docstrings and comments name only files that exist: a renamed file must not leave its old name
behind.

A reference is a path with an ending of source code or prose. It may be shortened from the left
(`kernels/dispatch.py`). Names that end in .json or .toml do not count, because programs write such files.
Files in tests/ are not searched for references.

A section of the specification that a text names by its number must also exist in the specification's page.
"""

import re
import subprocess
from collections.abc import Iterator

from tests.toolchain.project import REPOSITORY

REFERENCE = re.compile(r"(?<![\w/.*}{<@-])((?:[\w-]+/)*[\w-]+\.(?:py|sol|md|cpp|h))(?![\w/])")
READ = (".md", ".py", ".sol", ".cpp", ".h")
SPECIFICATION = REPOSITORY / "docs" / "spec"
SECTIONS = re.compile(
    r"\b(arithmetic|encoding|dispute|audit)(?:\.md)?[`)\]]*(?:\([^)]*\))?[,;]?[\s/#*]+"
    r"sections?[\s/#*]+(\d+(?:(?:,| to| and)[\s/#*]+\d+)*)"
)
IMPORTED = ("forge-std/", "openzeppelin/")
"""Prefixes of npm packages in Solidity's imports."""
LIBRARIES = ("transformers/", "torchvision/", "timm/", "peft/", "diffusers/", "torch_geometric/")
"""Libraries whose sources the table of models names."""
ELSEWHERE = {
    "docs/guide/start.md": {"spirals/spirals.py"},  # written by `assay init`
    "docs/guide/studies.md": {"gambling.py"},  # the file that its reader writes
    "setup.py": {"tried.cpp"},  # written into a temporary folder
}


def tracked() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    ).stdout.split()
    return [name for name in listed if (REPOSITORY / name).exists()]


def references(text: str) -> Iterator[str]:
    """Paths that a text names, without those of npm packages."""
    for found in REFERENCE.finditer(text):
        if not found.group(1).startswith(IMPORTED):
            yield found.group(1)


FILES = tracked()
ENDS = {"/".join(parts[k:]) for parts in (name.split("/") for name in FILES) for k in range(len(parts))}
READERS = [name for name in FILES if name.endswith(READ) and not name.startswith("tests/")]


def test_named_files_are_there() -> None:
    missing = {
        (name, path)
        for name in READERS
        for path in references((REPOSITORY / name).read_text())
        if path not in ENDS | ELSEWHERE.get(name, set())
        and not (name == "docs/models.md" and path.startswith(LIBRARIES))
    }
    assert not missing, "named, but no tracked file ends in it"


def sections(text: str) -> Iterator[tuple[str, int]]:
    """Sections of the specification that a text names: page and number."""
    for found in SECTIONS.finditer(text):
        for number in re.findall(r"\d+", found.group(2)):
            yield found.group(1), int(number)


def test_named_sections_are_there() -> None:
    there = {
        (page.stem, int(number))
        for page in SPECIFICATION.glob("*.md")
        for number in re.findall(r"(?m)^## (\d+)\. ", page.read_text())
    }
    named = {
        (name, section)
        for name in FILES
        if name.endswith((*READ, ".toml"))
        for section in sections((REPOSITORY / name).read_text())
    }
    assert len(named) > 200
    assert {each for each in named if each[1] not in there} == set()


def test_named_sections_are_seen() -> None:
    text = "audit.md sections 4 to 7, [dispute](dispute.md), section 2; encoding.md\n/// section 3, arithmetic.md 5."
    assert list(sections(text)) == [("audit", 4), ("audit", 7), ("dispute", 2), ("encoding", 3)]


def test_a_missing_file_is_seen() -> None:
    text = "See `kernels/choice.py`, docs/security.md and forge-std/Test.sol; report.json is written."
    assert [path for path in references(text) if path not in ENDS] == ["kernels/choice.py"]


def test_no_link_is_committed() -> None:
    """No symbolic link is committed, because a link to a place on one machine leads nowhere in a clone."""
    assert [name for name in FILES if (REPOSITORY / name).is_symlink()] == []
