"""`operations.json` and `bundles.json` hold exactly what their generators write."""

from __future__ import annotations

import json
from types import ModuleType

import pytest

from protocol.program import Op
from tests.vectors import generate_bundles, generate_operations


@pytest.mark.parametrize("generator", [generate_operations, generate_bundles])
def test_the_file_is_what_its_generator_writes(generator: ModuleType) -> None:
    due = json.loads(generator.FILE.read_text())
    assert generator.document() == due, f"run `python -m {generator.__name__}` and review the difference"


def test_every_opcode_but_call_is_counted() -> None:
    counted = {
        found[:6] for found in json.loads(generate_operations.FILE.read_text())["instructions"]["data"]
    }
    assert counted == {f"0x{int(op):04x}" for op in Op} - {"0x0004"}
