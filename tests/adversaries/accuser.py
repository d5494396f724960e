"""Unregistered verifiers. They are never drawn, but replay every segment of every task.

The false accuser's replay is wrong in one weight of one step. Its game ends where the EVM agrees with the
solver: the accuser has no move left and loses its bond when its clock runs out. The honest accuser is for
tests in which the machine is late or fails. The accomplice of a cheat convicts that cheat before an honest
seat can (see `accomplice`).
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from dataclasses import replace

from protocol.chain.client import Client
from protocol.errors import ExitCode
from protocol.node.home import Home
from tests.adversaries.accomplice import Accomplice
from tests.adversaries.executors import moves_one_weight
from tests.adversaries.machines import Machine
from tests.adversaries.nodes import run_verifier
from verifier.strategy import Strategy

ACCOMPLICE = "accomplice"
PATIENCE = 1800.0
"""Seconds for which an accomplice holds back its judgment: as long as a demo may take."""

ACCUSERS: Mapping[str, Strategy] = {
    "false-accuser": Strategy(executor=moves_one_weight),
    "honest-accuser": Strategy(),
    ACCOMPLICE: Strategy(),
}
"""The strategies, by their command-line names for `python -m tests.adversaries`."""


def accuse(options: Namespace, home: Home, machine: Machine) -> ExitCode:
    """Run the accuser until it is stopped, or with --once until the tasks are over."""
    accuser = ACCUSERS[options.cheat]
    strategy = replace(accuser, executor=machine.on_it(accuser.executor))

    def of(client: Client) -> Strategy:
        if options.cheat != ACCOMPLICE:
            return strategy
        return replace(strategy, challenger=Accomplice(client, PATIENCE))

    return run_verifier(options, home, of, stake="0", port=options.port, whistleblow=True)
