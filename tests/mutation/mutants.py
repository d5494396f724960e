"""Mutants as the generators propose them, and the sample of them that is run."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

from tests.mutation.scope import Language

ROOT: Final = Path(__file__).parents[2]
SEED: Final = 2026
TOOLS: Final = ROOT / "build" / "mutation" / "venv" / "bin" / "python"
COMMENT: Final = re.compile(r'("(?:\\.|[^"\\\n])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)


@dataclass(frozen=True)
class Mutant:
    """Bytes `start` to `end` of a `file`, given by its path in the repository, replaced by `text`."""

    file: str
    operator: str
    start: int
    end: int
    text: str

    def planted(self, source: bytes) -> bytes:
        """The mutated file."""
        return source[: self.start] + self.text.encode() + source[self.end :]

    def line(self, source: bytes) -> int:
        """The number of its first line, from 1."""
        return source.count(b"\n", 0, self.start) + 1

    def change(self, source: bytes) -> str:
        """Its lines before and after, without indentation."""
        first = source.rfind(b"\n", 0, self.start) + 1
        last = len(source) if (found := source.find(b"\n", self.end)) < 0 else found
        after = source[first : self.start] + self.text.encode() + source[self.end : last]
        return f"{_joined(source[first:last].decode())} → {_joined(after.decode())}"


def proposed(language: Language, root: Path) -> list[Mutant]:
    """All mutants of the language's files in the checkout `root`, without repetitions, in order of file and place."""
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
    found = {Mutant(**fields) for fields in json.loads(run.stdout)}
    ordered = sorted(found, key=lambda one: (one.file, one.start, one.end, one.operator, one.text))
    return list({identity(mutant, root): mutant for mutant in reversed(ordered)}.values())[::-1]


def sample(mutants: Sequence[Mutant]) -> Iterator[Mutant]:
    """The mutants in the order of the draw, the same one each time."""
    shuffled = list(mutants)
    Random(SEED).shuffle(shuffled)
    return iter(shuffled)


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
