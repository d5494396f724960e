"""Each section of docs/spec has an example and names its vectors."""

from __future__ import annotations

import re

import pytest

from tests.toolchain.project import REPOSITORY
from tests.vectors.readings import FILES, FOLDER

PAGES = sorted((REPOSITORY / "docs" / "spec").glob("*.md"))
SECTIONS = [
    pytest.param(section, id=f"{page.stem} {number}")
    for page in PAGES
    for number, section in re.findall(r"(?ms)^## (\d+)\. (.*?)(?=^## |\Z)", page.read_text())
    if (page.stem, number) != ("arithmetic", "9")  # differences between platforms: it has no rule
]


@pytest.mark.parametrize("section", SECTIONS)
def test_a_section_has_an_example_and_names_its_vectors(section: str) -> None:
    assert "*Example.*" in section
    _, vectors = section.rsplit("*Vectors:*", 1)
    for name in re.findall(r"`([\w-]+\.json)`", vectors):
        assert (FOLDER / name).is_file()


def test_every_vector_file_is_named_by_a_section() -> None:
    named = {
        name for page in PAGES for name in re.findall(r"`([\w-]+\.json)`", page.read_text()) if name in FILES
    }
    assert named == set(FILES)


def test_prose_is_wrapped() -> None:
    for page in PAGES:
        prose = re.sub(r"(?ms)^```.*?^```$", "", page.read_text())
        for line in prose.splitlines():
            assert len(line) <= 100 or line.startswith("|"), f"{page.name}: {line}"
