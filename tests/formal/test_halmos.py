"""Halmos proves every `check_…` of contracts/formal for all argument values, within 120 seconds per query."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.formal.tools import BUILD, ROOT, run, tool

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(1_800)]

QUERY = "120s"


@pytest.mark.parametrize(
    "file", sorted((ROOT / "contracts/formal").glob("*.sol")), ids=lambda file: file.stem
)
def test_every_property_is_proved(file: Path) -> None:
    contract = f"{file.stem}Proofs"
    report = BUILD / f"{file.stem}.json"
    report.unlink(missing_ok=True)
    done = run(
        *(tool("halmos"), "--root", ROOT, "--forge-build-out", "build/formal/out", "--contract", contract),
        # More rounds than any loop has.
        *("--loop", "40", "--solver-timeout-assertion", QUERY, "--json-output", report),
        timeout=1_700,
        FOUNDRY_PROFILE="formal",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads(report.read_text())["test_results"]
    assert "loop unrolling bound" not in done.stdout + done.stderr
    proved = {each["name"].partition("(")[0] for found in results.values() for each in found}
    assert proved == set(re.findall(r"function (check_\w+)", file.read_text()))
