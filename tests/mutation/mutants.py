"""Mutants as the generators propose them, and the sample of them that is run."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import subprocess
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from tests.mutation.scope import Language

ROOT: Final = Path(__file__).parents[2]
SEED: Final = 2026
TOOLS: Final = ROOT / "build" / "mutation" / "venv" / "bin" / "python"
COMMENT: Final = re.compile(r'("(?:\\.|[^"\\\n])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)


@dataclass(frozen=True)
class Mutant:
    """A change to one file: bytes `start` to `end` are replaced by `text`. `file` is the file's path in the
    repository.
    """

    file: str
    operator: str
    start: int
    end: int
    text: str

    def planted(self, source: bytes) -> bytes:
        """The mutated file."""
        return source[: self.start] + self.text.encode() + source[self.end :]

    def line(self, source: bytes) -> int:
        """The number of the first line that the mutant changes, counted from 1."""
        return source.count(b"\n", 0, self.start) + 1

    def change(self, source: bytes) -> str:
        """The changed lines before and after the mutation, without indentation."""
        first = source.rfind(b"\n", 0, self.start) + 1
        last = len(source) if (found := source.find(b"\n", self.end)) < 0 else found
        after = source[first : self.start] + self.text.encode() + source[self.end : last]
        return f"{_joined(source[first:last].decode())} → {_joined(after.decode())}"


def proposed(language: Language, root: Path) -> Mapping[str, Mutant]:
    """All mutants of the language's files in the checkout `root`, by identity. Each mutant replaces as few
    characters as possible.
    """
    folder = Path(os.environ.get("FORGE", "forge")).parent  # Slither asks forge for the settings
    run = subprocess.run(
        [TOOLS, Path(__file__).with_name(language.generator), *language.files(root)],
        cwd=root,
        env={
            **os.environ,
            "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
            "FOUNDRY_PROFILE": "mutation",
        },
        stdout=subprocess.PIPE,
        check=True,
    )
    found = {_trimmed(Mutant(**fields), root) for fields in json.loads(run.stdout)}
    ordered = sorted(
        found, key=lambda one: (one.file, one.start, one.end, one.operator, one.text), reverse=True
    )
    return {identity(mutant, root): mutant for mutant in ordered}


def _trimmed(mutant: Mutant, root: Path) -> Mutant:
    """The same mutant, without what the old and the new text share at both ends."""
    old = (root / mutant.file).read_bytes()[mutant.start : mutant.end].decode()
    first = _shared(old, mutant.text)
    last = _shared(old[first:][::-1], mutant.text[first:][::-1])
    return replace(
        mutant,
        start=mutant.start + len(old[:first].encode()),
        end=mutant.end - len(old[len(old) - last :].encode()),
        text=mutant.text[first : len(mutant.text) - last],
    )


def _shared(one: str, other: str) -> int:
    """The number of characters at the beginning that the two texts share."""
    shorter = range(min(len(one), len(other)))
    return bisect_left(shorter, True, key=lambda last: one[: last + 1] != other[: last + 1])


def sample(identities: Iterable[str]) -> list[str]:
    """The identities in the order in which they are drawn: sorted by a hash of each identity. So a change of
    one file does not change the order of the other files' mutants.
    """
    return sorted(identities, key=lambda one: hashlib.sha256(f"{SEED} {one}".encode()).digest())


def identity(mutant: Mutant, root: Path) -> str:
    """A name for the mutated program. Comments, docstrings and layout do not change it."""
    planted = mutant.planted((root / mutant.file).read_bytes()).decode()
    program = _python(planted) if mutant.file.endswith(".py") else _solidity(planted)
    return hashlib.sha256(f"{mutant.file}\n{program}".encode()).hexdigest()[:16]


def _python(text: str) -> str:
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return text
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [part for part in node.body if not _is_text(part)]
    return ast.dump(tree)


def _is_text(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _solidity(text: str) -> str:
    return _joined(COMMENT.sub(lambda found: found[1] or " ", text))


def _joined(text: str) -> str:
    return " ".join(text.split())
