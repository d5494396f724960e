"""slither_answers.json must have an answer for every finding of Slither in contracts/src, and no answer
without a finding.

A finding is identified by its detector and the part of the contract, never by a line. The file also lists,
under `detectors`, the detectors that are not run at all, each with a reason.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.formal.tools import BUILD, FORGE, run, tool

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(1_800)]

ANSWERS: dict[str, Any] = json.loads(Path(__file__).with_name("slither_answers.json").read_text())


def place(element: dict[str, Any] | None) -> str:
    """The names of the contract, function, struct and variable that contain a finding's element, joined by
    dots. Names that do not apply are left out.
    """
    names: list[str] = []
    while element:
        if element["type"] in ("contract", "function", "variable", "struct"):
            names.insert(0, element["name"])
        element = element.get("type_specific_fields", {}).get("parent")
    return ".".join(names)


def findings() -> set[tuple[str, str]]:
    """Detector and place of all findings of the detectors that are run."""
    slither = tool("slither")
    out = BUILD / "slither"
    compiled = run(
        *(FORGE, "build", "contracts/src", "--build-info", "--deny", "never"),
        timeout=1_200,
        FOUNDRY_OUT=str(out / "out"),
        FOUNDRY_CACHE_PATH=str(out / "cache"),
    )
    assert compiled.returncode == 0, compiled.stdout + compiled.stderr
    report = out / "report.json"
    report.unlink(missing_ok=True)
    done = run(
        *(slither, ".", "--foundry-ignore-compile"),
        *("--foundry-out-directory", (out / "out").relative_to(BUILD.parents[1])),
        *("--foundry-build-info-directory", (out / "out" / "build-info").relative_to(BUILD.parents[1])),
        *("--filter-paths", "node_modules|contracts/test", "--exclude", ",".join(ANSWERS["detectors"])),
        *("--json", report),
        timeout=600,
    )
    assert report.is_file(), done.stdout + done.stderr
    found = json.loads(report.read_text())
    assert found["success"], found["error"]
    return {(each["check"], place(each["elements"][0])) for each in found["results"].get("detectors", [])}


def test_every_finding_is_answered_and_every_answer_is_of_a_finding() -> None:
    answered = {(each["check"], where) for each in ANSWERS["findings"] for where in each["where"]}
    found = findings()
    assert found - answered == set()
    assert answered - found == set()
