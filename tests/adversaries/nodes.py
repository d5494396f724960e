"""Starting a party's node as its command does, but with a strategy that cheats."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar

from protocol.chain.client import Client, connect
from protocol.errors import ExitCode
from protocol.node.home import Home
from protocol.node.party.settings import NodeSettings
from protocol.node.settings import load
from protocol.node.stopping import Stop
from solver.strategy import Strategy as SolverStrategy
from verifier.strategy import Strategy

Settings = TypeVar("Settings", bound=NodeSettings)


@contextmanager
def connected(
    model: type[Settings], party: str, options: Namespace, home: Home, **flags: object | None
) -> Iterator[tuple[Client, Settings]]:
    """Yields the client of the development account in `options`, and the party's settings with `flags`. The
    client replaces its transactions after `replace_after` seconds if `options` has them.
    """
    given: dict[str, object | None] = {
        "rpc": options.rpc,
        "account": f"dev:{options.dev_account}",
        "deployment": options.deployment,
        "tasks": tuple(options.task) or None,
        **flags,
    }
    settings = load(model, party, home.config, given).values
    with connect(settings.rpc, settings.deployment, settings.account) as client:
        if client.sender is not None and options.replace_after is not None:
            client.sender.sending = replace(client.sender.sending, replace_after=options.replace_after)
        yield client, settings


def run_verifier(
    options: Namespace, home: Home, strategy: Callable[[Client], Strategy], **flags: object | None
) -> ExitCode:
    """Run a verifier until it is stopped, or with --once until the tasks are over."""
    from verifier.node import VerifierNode
    from verifier.settings import VerifierSettings

    stop = _stop()
    with connected(VerifierSettings, "verifier", options, home, **flags) as (client, settings):
        return VerifierNode(client, settings, home, strategy(client), stop=stop).run(options.once)


def run_solver(options: Namespace, home: Home, strategy: SolverStrategy, **flags: object | None) -> ExitCode:
    """Run a solver until it is stopped, or with --once until the tasks are over."""
    from solver.node import SolverNode
    from solver.settings import SolverSettings

    stop = _stop()
    with connected(SolverSettings, "solver", options, home, **flags) as (client, settings):
        return SolverNode(client, settings, home, strategy, stop=stop).run(options.once)


def _stop() -> Stop:
    stop = Stop()
    stop.on_signals()
    return stop
