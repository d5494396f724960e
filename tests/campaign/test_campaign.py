"""Cases of the campaign. Six of them, which reach most of the nodes' code, are ordinary tests; the other
cases of the covering set are heavy tests.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.campaign.cases import Case, covering
from tests.campaign.faults import FAULTS
from tests.campaign.play import TRIES, play
from tests.campaign.stages import Stage, Who
from tests.campaign.world import PATIENCE, STARTING

LIMIT: Final = TRIES * (STARTING + len(Stage) * PATIENCE)
"""Seconds for a case, more than all its waits may take: so a case that fails is reported with its logs."""

pytestmark = [pytest.mark.chain, pytest.mark.timeout(LIMIT)]

SIX: Final = (
    Case(Who.SOLVER, Stage.BEFORE_THE_BID, "peers two-faced"),
    Case(Who.SOLVER, Stage.SUBMITTED, "database damaged"),
    Case(Who.SOLVER, Stage.TRACE, "RPC loses broadcasts"),
    Case(Who.VERIFIER, Stage.CHALLENGE, "database cut"),
    Case(Who.VERIFIER, Stage.LOOKED_AT, "kill -9"),
    Case(Who.SUBMITTER, Stage.POSTING, "kill -9"),
)


def played(case: Case, folder: Path) -> None:
    outcome = play(FAULTS[case.fault], case.stage, case.who, case.place.scene, folder / case.slug)
    assert not outcome.wrong, f"{outcome.wrong}\n{outcome.report}"


@pytest.mark.parametrize("case", [pytest.param(case, id=case.slug) for case in SIX])
def test_a_fault_costs_nobody_anything(case: Case, tmp_path: Path) -> None:
    played(case, tmp_path)


@pytest.mark.heavy
@pytest.mark.parametrize("case", [pytest.param(case, id=case.slug) for case in covering() if case not in SIX])
def test_no_fault_of_the_covering_set_costs_anybody_anything(case: Case, tmp_path: Path) -> None:
    played(case, tmp_path)
