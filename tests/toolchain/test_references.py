"""Files that documents, docstrings and comments name are there: a renamed file must not leave its old name behind.

A reference is a path with an ending of source code or prose. It may be shortened from the left
(`kernels/dispatch.py`). Files that programs write are not sources, so names that end in .json or .toml do not count.
"""

import re
import subprocess
from collections.abc import Iterator

from tests.toolchain.project import REPOSITORY

REFERENCE = re.compile(r"(?<![\w/.*}{<@-])((?:[\w-]+/)*[\w-]+\.(?:py|sol|md|cpp|h))(?![\w/])")
READ = (".md", ".py", ".sol", ".cpp", ".h")
IMPORTED = ("forge-std/", "openzeppelin/")
"""Where npm packages begin, as Solidity imports them."""
LIBRARIES = ("transformers/", "torchvision/", "timm/", "peft/", "diffusers/", "torch_geometric/")
"""Whose sources the table of models names."""
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
    """Paths that a text names, npm packages left out."""
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


def test_a_missing_file_is_seen() -> None:
    text = "See `kernels/choice.py`, docs/security.md and forge-std/Test.sol; report.json is written."
    assert [path for path in references(text) if path not in ENDS] == ["kernels/choice.py"]
