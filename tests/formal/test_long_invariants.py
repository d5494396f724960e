"""Invariants of vault, market, board, looks and juries. They are tested on more sequences than in `make
test`, and on longer ones.
"""

from __future__ import annotations

import pytest

from tests.formal.tools import FORGE, run

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(3_000)]

SEEDS = range(4)
RUNS = 500
DEPTH = 256


@pytest.mark.parametrize("seed", SEEDS)
def test_every_sentence_holds_over_long_sequences(seed: int) -> None:
    done = run(
        *(
            FORGE,
            "test",
            "--match-path",
            "contracts/test/invariants/Market.t.sol",
            "--match-test",
            "invariant_",
        ),
        timeout=2_900,
        FOUNDRY_FUZZ_SEED=hex(seed + 1),
        FOUNDRY_INVARIANT_RUNS=str(RUNS),
        FOUNDRY_INVARIANT_DEPTH=str(DEPTH),
    )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr
    assert f"(runs: {RUNS}, calls: {RUNS * DEPTH}, reverts: 0)" in done.stdout
