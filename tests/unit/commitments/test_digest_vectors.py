"""digests.json is current. `tests/unit/vectors` compares the package with it."""

from __future__ import annotations

import json

from tests.vectors.generate_digests import FILE, document


def test_the_file_is_what_its_generator_writes() -> None:
    due = json.loads(FILE.read_text())
    assert document() == due, "run `python -m tests.vectors.generate_digests` and review the difference"
