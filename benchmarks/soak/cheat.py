"""`python -m benchmarks.soak.cheat`: a solver for one task that flips one bit at the end of every segment.

It is the production node with a cheating executor. It ends when its stake is slashed.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path

from protocol.errors import ExitCode
from protocol.node import logs
from protocol.node.exits import reported
from protocol.node.home import Home
from protocol.node.process import importing

with importing():
    from protocol.execution.replay import Executor, Work
    from protocol.node.party.connection import connect_by
    from protocol.node.settings import load
    from sim.replay.training import Cheating
    from solver.node import SolverNode
    from solver.settings import SolverSettings
    from solver.strategy import Strategy

ALL = 1 << 20
"""More segments than any task has."""


def main() -> None:
    """Entry point of the module."""
    parser = ArgumentParser(prog="python -m benchmarks.soak.cheat", description=__doc__)
    parser.add_argument("--rpc", required=True)
    parser.add_argument("--deployment", type=Path, required=True)
    parser.add_argument("--dev-account", type=int, required=True)
    parser.add_argument("--task", type=int, required=True)
    parser.add_argument("--stake", required=True)
    options = parser.parse_args()
    logs.configure(as_json=True)
    code = ExitCode.FINE
    with reported():
        code = run(vars(options))
    sys.exit(int(code))


def run(options: dict[str, object]) -> ExitCode:
    """Run the solver's node with the cheating executor. Raises StakeSlashed when the stake is slashed."""
    home = Home.find()
    flags = {
        "rpc": options["rpc"],
        "deployment": options["deployment"],
        "account": f"dev:{options['dev_account']}",
        "tasks": (options["task"],),
        "stake": options["stake"],
        "port": 0,
    }
    settings = load(SolverSettings, "solver", home.config, flags).values
    with connect_by(settings) as client:
        return SolverNode(client, settings, home, Strategy(executor=false)).run(once=True)


def false(work: Work) -> Executor:
    """The executor that cheats."""
    return Cheating(work.program, work.fixed, ALL)


if __name__ == "__main__":
    main()
