"""trees.json is current. `tests/unit/vectors` compares the package and the RFC's recursion with it."""

from __future__ import annotations

import json

from tests.vectors.generate_trees import FILE, build


def test_the_file_is_what_its_generator_writes() -> None:
    due = json.loads(FILE.read_text())
    assert build() == due, "run `python -m tests.vectors.generate_trees` and review the difference"
