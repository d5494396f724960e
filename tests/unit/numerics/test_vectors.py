"""The committed vectors: torch has their bits, the reference still writes them, and a larger random set agrees."""

from __future__ import annotations

import json
from math import prod
from pathlib import Path
from typing import Any

import pytest
from protocol.numerics.types import from_bytes, to_bytes

from tests.unit.numerics.torch_cases import parse, replay
from tests.vectors import generate_numerics

FILE = Path(generate_numerics.__file__).with_name("numerics.json")
CASES: list[dict[str, Any]] = json.loads(FILE.read_text())["cases"]


def mismatches(case: dict[str, Any]) -> list[str]:
    """Elements where torch's bits are not the file's, as readable lines."""
    operands = [(from_bytes(data, dtype, shape), dtype) for data, dtype, shape in map(parse, case["operands"])]
    expected, out, shape = parse(case["result"])
    result = replay(case["name"], bytes.fromhex(case["attributes"][2:]), operands, out, shape)
    assert list(result.shape) == shape
    got, size = to_bytes(result, out), out.itemsize
    wrong = [i for i in range(prod(shape)) if got[i * size : (i + 1) * size] != expected[i * size : (i + 1) * size]]
    return [f"element {i}: expected {expected[i * size :][:size].hex()}, got {got[i * size :][:size].hex()}" for i in wrong]


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c['name']}-{c['operands'][0]['type']}-{c['result']['type']}")
def test_torch_has_the_bits_of_the_vectors(case: dict[str, Any]) -> None:
    assert mismatches(case) == []


def test_committed_file_is_what_the_reference_writes() -> None:
    assert FILE.read_text() == generate_numerics.document()


def test_torch_agrees_with_the_reference_on_other_random_operands() -> None:
    cases = generate_numerics.cases(count=512, seed=1)
    assert sum(prod(case.result.shape) for case in cases) > 60_000
    wrong = {f"{case.name} {i}": bad for i, case in enumerate(cases) if (bad := mismatches(case.json()))}
    assert wrong == {}
