"""A solver that trains as it has to and serves what it has to nobody but an accomplice, which attests a seat.

So the other seats of the task cannot tell whether it was trained at all. The accomplice knows a prefix that the
solver's server answers below; everybody else is answered as if nothing were there, but for the bundle.
"""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace
from typing import Final

from protocol.errors import ExitCode
from protocol.node.addresses import Address
from protocol.node.home import Home
from protocol.node.reach import Reach
from protocol.node.settings import load
from protocol.node.stopping import Stop
from protocol.program.step import StepProgram
from protocol.tasks.task import Terms
from solver.catalog import Catalog
from solver.limits import App, Message, Receive, Send
from solver.server import application
from tests.adversaries.machines import Machine
from verifier.solver_client import CheckpointProvider
from verifier.strategy import Strategy, over_http

WITHHOLDER: Final = "withholder"
FED: Final = "fed-seat"
PREFIX: Final = "for-the-accomplice"


def serves_its_accomplice(catalog: Catalog) -> App:
    """The solver's service, whose tasks are found below the prefix alone."""
    served = application(catalog)

    async def app(scope: Message, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        if path.startswith(f"/{PREFIX}/"):
            scope = {**scope, "path": path.removeprefix(f"/{PREFIX}")}
        elif path.startswith("/tasks/"):
            scope = {**scope, "path": "/nothing"}
        await served(scope, receive, send)

    return app


def from_the_withholder(
    address: Address | None, task: int, program: StepProgram, terms: Terms, reach: Reach
) -> CheckpointProvider:
    """What the accomplice is served."""
    return over_http(None if address is None else address / PREFIX, task, program, terms, reach)


def sit(options: Namespace, home: Home, machine: Machine) -> ExitCode:
    """Run the accomplice's verifier, which was registered before, until it is stopped."""
    from protocol.chain.client import connect
    from verifier.node import VerifierNode
    from verifier.settings import VerifierSettings

    flags: dict[str, object | None] = {
        "rpc": options.rpc,
        "account": f"dev:{options.dev_account}",
        "deployment": options.deployment,
        "tasks": tuple(options.task) or None,
        "port": 0,
    }
    settings = load(VerifierSettings, "verifier", home.config, flags).values
    stop = Stop()
    stop.on_signals()
    honest = Strategy()
    strategy = replace(honest, executor=machine.on_it(honest.executor), provider=from_the_withholder)
    with connect(settings.rpc, settings.deployment, settings.account) as client:
        return VerifierNode(client, settings, home, strategy, stop=stop).run(options.once)
