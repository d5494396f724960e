"""A solver that trains honestly but serves its data only to an accomplice, which attests a seat.

So the other seats of the task cannot tell whether anything was trained. The accomplice knows the path prefix
under which the solver serves the task's data. All others get the bundle but no data of the task.
"""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace
from typing import Final

from protocol.errors import ExitCode
from protocol.node.addresses import Address
from protocol.node.home import Home
from protocol.node.reach import Reach
from protocol.program.step import StepProgram
from protocol.tasks.task import Terms
from solver.catalog import Catalog
from solver.limits import App, Message, Receive, Send
from solver.server import application
from tests.adversaries.machines import Machine
from tests.adversaries.nodes import run_verifier
from verifier.solver_client import CheckpointProvider
from verifier.strategy import Strategy, over_http

WITHHOLDER: Final = "withholder"
FED: Final = "fed-seat"
PREFIX: Final = "for-the-accomplice"


def serves_its_accomplice(catalog: Catalog) -> App:
    """The solver's server, with the paths of tasks moved below the accomplice's prefix."""
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
    """A provider that requests the data from the solver, on paths that begin with the accomplice's prefix."""
    return over_http(None if address is None else address / PREFIX, task, program, terms, reach)


def sit(options: Namespace, home: Home, machine: Machine) -> ExitCode:
    """Run the accomplice's verifier until it is stopped. With --once, run it only until the tasks are over.
    The verifier's account is already registered.
    """
    honest = Strategy()
    strategy = replace(honest, executor=machine.on_it(honest.executor), provider=from_the_withholder)
    return run_verifier(options, home, lambda _client: strategy, port=0)
