"""Prose reads as an engineer would write it: the tics that words.toml lists occur nowhere.

The whole text of Python, Solidity, C++, TOML and Markdown files is read.
"""

import re
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest

from tests.toolchain.project import REPOSITORY
from tests.toolchain.test_references import FILES

TABLE = tomllib.loads((REPOSITORY / "tests/toolchain/words.toml").read_text())
READ = (".py", ".sol", ".cpp", ".h", ".toml", ".md")
ITSELF = ("tests/toolchain/words.toml", "tests/toolchain/test_words.py")
BREAK = r"(?:[ \t]|\n[ \t]*(?:///?|#|\*)?[ \t]*|\"\n[ \t]*f?\")+"
"""The break between two words: blanks, or the end of a line and the marks that begin the next line of a
comment or string."""


def expression(pattern: str) -> re.Pattern[str]:
    """Return the compiled pattern; each of its spaces also matches a line break."""
    return re.compile(pattern.replace(" ", BREAK), re.IGNORECASE)


def found(text: str, tic: dict[str, Any]) -> Iterator[tuple[int, str]]:
    """Yield the line number and the words of every place of a text where the tic occurs."""
    for match in expression(tic["pattern"]).finditer(text):
        around = " ".join(text[max(0, match.start() - 30) : match.end() + 30].split())
        if not any(phrase in around for phrase in tic.get("allowed", [])):
            yield text.count("\n", 0, match.start()) + 1, " ".join(match[0].split())


READERS = [name for name in FILES if name.endswith(READ) and name not in ITSELF]


@pytest.mark.parametrize("tic", TABLE["tic"], ids=lambda tic: str(tic["name"]))
def test_a_tic_occurs_nowhere(tic: dict[str, Any]) -> None:
    places = [
        f"{name}:{line}: {words}"
        for name in READERS
        for line, words in found((REPOSITORY / name).read_text(), tic)
    ]
    assert not places, f"{tic['reason']} Write {tic['instead']}."


def test_a_tic_is_found_across_lines() -> None:
    tics = {tic["name"]: tic for tic in TABLE["tic"]}
    assert next(found("x = 1\n# a process of its\n# own, and more", tics["of its own"]))[0] == 2
    assert list(found("/// what is\n    /// no tree", tics["that is no"]))
    assert not list(found("what is no longer served", tics["that is no"]))
    assert not list(found("moved as it is written", tics["as it is"]))
