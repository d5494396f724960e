"""The committed vectors: torch has their bits, the reference still writes them, and a larger random set agrees."""

from __future__ import annotations

import json
from math import prod
from pathlib import Path

import pytest

from tests.unit.numerics.torch_cases import mismatches, parse_type
from tests.vectors import generate_numerics

FILE = Path(generate_numerics.__file__).with_name("numerics.json")
TABLES: dict[str, dict[str, list[str]]] = json.loads(FILE.read_text())
ROWS = [
    dict(zip(table, row, strict=True))
    for table in TABLES.values()
    for row in zip(*table.values(), strict=True)
]


def name_of(row: dict[str, str]) -> str:
    return "-".join([row["name"], parse_type(row["x_type"])[0].name, parse_type(row["out_type"])[0].name])


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_torch_has_the_bits_of_the_vectors(row: dict[str, str]) -> None:
    assert mismatches(row) == []


def test_committed_file_is_what_the_reference_writes() -> None:
    assert FILE.read_text() == generate_numerics.document()


def test_torch_agrees_with_the_reference_on_other_random_operands() -> None:
    cases = generate_numerics.cases(count=512, seed=1)
    assert sum(prod(case.result.shape) for case in cases) > 60_000
    wrong = {f"{case.name} {i}": bad for i, case in enumerate(cases) if (bad := mismatches(case.row()))}
    assert wrong == {}
