"""`replay`: a scenario on its own chain, from the deployment to the last withdrawal."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

import torch

from protocol.chain.deployment import Deployment
from protocol.chain.devnet import Devnet
from sim.replay.comparison import Comparison
from sim.replay.scenario import Scenario
from sim.replay.stage import Stage, own_home
from sim.replay.tasks import Life


def replay(scenario: Scenario, say: Callable[[str], None]) -> Comparison:
    """Play a scenario on its own anvil. After each event, `say` is called with the event's description, and
    then all balances are compared.

    Returns the last comparison, which also has the ends of all tasks. Raises Disagreement as soon as a
    balance, a winner or an end differs between the engine and the contracts, DevnetError without anvil, and
    ArtifactMissing without compiled contracts.
    """
    with own_home(), Devnet(block_time=None) as devnet:
        return replay_on(devnet, scenario, say)


def replay_on(
    devnet: Devnet, scenario: Scenario, say: Callable[[str], None], deployment: Deployment | None = None
) -> Comparison:
    """Play a scenario as `replay` does, on an existing development chain. Writes to ASSAY_HOME.

    `deployment` has unused contracts with the scenario's parameters; if it is None, new ones are deployed.
    """
    torch.set_num_threads(1)
    with ExitStack() as stack:
        stage = Stage(devnet, scenario, say, stack, deployment)
        life = Life(stage)
        return stage.close(tuple(life.play() for _ in range(scenario.tasks)))
