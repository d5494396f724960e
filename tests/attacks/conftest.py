"""Fixtures with a chain and its contracts: `ring` for each file of attacks, `scene` for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sim.replay.stage import own_home
from tests.chain.arena import Arena, fresh_arena
from tests.chain.solver_stage import Stage, stage


@pytest.fixture(scope="module")
def ring() -> Iterator[Arena]:
    """An arena of submitter, solver and challenger with plenty of tokens."""
    with own_home(), fresh_arena() as made:
        yield made


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Stage]:
    """A separate chain for each test, with a submitter that is also a verifier. The chain makes a block every
    second.
    """
    with stage(tmp_path, mixed=False) as made:
        yield made
