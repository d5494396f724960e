"""Verifiers that are not registered, so never drawn, and look at every segment unasked.

The false accuser's own replay is wrong in one weight of one step. Its game ends where the EVM agrees with the solver:
there it has no move left, and its bond is lost when its time is over. The honest one is for machines that fail. The
accomplice of a cheat convicts it first (`accomplice`).
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from dataclasses import replace

from protocol.errors import ExitCode
from protocol.node.home import Home
from protocol.node.settings import load
from protocol.node.stopping import Stop
from tests.adversaries.accomplice import Accomplice
from tests.adversaries.executors import moves_one_weight
from tests.adversaries.machines import Machine
from verifier.strategy import Strategy

ACCOMPLICE = "accomplice"
PATIENCE = 1800.0
"""Seconds in which an accomplice keeps its judgment: as long as a demo may take."""

ACCUSERS: Mapping[str, Strategy] = {
    "false-accuser": Strategy(executor=moves_one_weight),
    "honest-accuser": Strategy(),
    ACCOMPLICE: Strategy(),
}
"""By the name that `python -m tests.adversaries` takes."""


def accuse(options: Namespace, home: Home, machine: Machine) -> ExitCode:
    """Run the accuser until it is stopped, or with --once until the tasks are over."""
    from protocol.chain.client import connect
    from verifier.node import VerifierNode
    from verifier.settings import VerifierSettings

    flags: dict[str, object | None] = {
        "rpc": options.rpc,
        "account": f"dev:{options.dev_account}",
        "deployment": options.deployment,
        "tasks": tuple(options.task) or None,
        "stake": "0",
        "port": options.port,
        "whistleblow": True,
    }
    settings = load(VerifierSettings, "verifier", home.config, flags).values
    stop = Stop()
    stop.on_signals()
    accuser = ACCUSERS[options.cheat]
    strategy = replace(accuser, executor=machine.on_it(accuser.executor))
    with connect(settings.rpc, settings.deployment, settings.account) as client:
        if options.cheat == ACCOMPLICE:
            strategy = replace(strategy, challenger=Accomplice(client, PATIENCE))
        return VerifierNode(client, settings, home, strategy, stop=stop).run(options.once)
