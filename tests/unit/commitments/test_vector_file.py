"""trees.json is what its generator writes. That the package computes the same, and the RFC's own recursion:
`tests/unit/vectors`."""

from __future__ import annotations

import json

from tests.vectors.generate_trees import FILE, build


def test_the_file_is_what_its_generator_writes() -> None:
    due = json.loads(FILE.read_text())
    assert build() == due, "run `python -m tests.vectors.generate_trees` and review the difference"
