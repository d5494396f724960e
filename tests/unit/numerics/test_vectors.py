"""numerics.json is current, and torch agrees with the reference on a larger random set.

`tests/unit/vectors` compares torch with the file.
"""

from __future__ import annotations

from math import prod
from pathlib import Path

from tests.vectors import generate_numerics
from tests.vectors.package import Package

FILE = Path(generate_numerics.__file__).with_name("numerics.json")


def test_committed_file_is_what_the_reference_writes() -> None:
    assert FILE.read_text() == generate_numerics.document()


def test_torch_agrees_with_the_reference_on_other_random_operands() -> None:
    cases = generate_numerics.cases(count=512, seed=1)
    assert sum(prod(case.result.shape) for case in cases) > 60_000
    for case in cases:
        operands = [(value.type(), value.data()) for value in case.operands]
        found = Package().evaluate(case.name, case.attributes, operands, case.result.type())
        assert found == case.result.data(), case.name
