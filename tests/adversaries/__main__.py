"""`python -m tests.adversaries CHEAT [--task N] …`: run a party that cheats, as a separate process.

The node, its settings and its exit codes are those of the production party. Only the strategy differs.
Options can also make a party's steps late or make them fail, even if the party is honest.
"""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from dataclasses import replace
from pathlib import Path

from protocol.errors import ExitCode
from protocol.node import logs
from protocol.node.exits import reported
from protocol.node.home import VARIABLE, Home
from protocol.node.process import importing

with importing():
    from tests.adversaries.accuser import ACCUSERS, accuse
    from tests.adversaries.machines import Machine
    from tests.adversaries.nodes import run_solver
    from tests.adversaries.outsourcing import OUTSOURCER, outsource
    from tests.adversaries.rubber_stamp import RUBBER_STAMP, stamp
    from tests.adversaries.solvers import CHEATS
    from tests.adversaries.withholding import FED, sit


def main() -> None:
    """Run the party named on the command line, and exit with its exit code."""
    options = _options()
    home = Home.find(options.home)
    os.environ[VARIABLE] = str(home.root)
    logs.configure(options.log_json)
    with reported():
        others = {**dict.fromkeys(ACCUSERS, accuse), OUTSOURCER: outsource, RUBBER_STAMP: stamp, FED: sit}
        run = others.get(options.cheat, _solve)
        code = run(options, home, _machine(options))
    sys.exit(int(code))


def _machine(options: Namespace) -> Machine:
    return Machine(dict(options.late), options.failing, options.unloadable, options.step_log)


def _solve(options: Namespace, home: Home, machine: Machine) -> ExitCode:
    cheat = CHEATS[options.cheat]
    strategy = replace(cheat, executor=machine.on_it(cheat.executor))
    return run_solver(options, home, strategy, port=options.port, url=options.url, stake=options.stake)


def _options() -> Namespace:
    parser = ArgumentParser(prog="python -m tests.adversaries", description=__doc__)
    parser.add_argument("cheat", choices=[*CHEATS, *ACCUSERS, OUTSOURCER, RUBBER_STAMP, FED])
    parser.add_argument("--rpc")
    parser.add_argument("--dev-account", type=int, required=True, help="index of a development key")
    parser.add_argument("--deployment", type=Path)
    parser.add_argument("--home", type=Path)
    parser.add_argument("--port", type=int)
    parser.add_argument("--url", help="address that is announced, if another than the server's")
    parser.add_argument("--stake")
    parser.add_argument("--task", type=int, action="append", default=[])
    parser.add_argument(
        "--service",
        action="append",
        default=[],
        help="address of a verifier that an outsourcer's salt gets to",
    )
    parser.add_argument("--once", action="store_true")
    parser.add_argument("--log-json", action="store_true")
    parser.add_argument("--late", type=_late, action="append", default=[], metavar="TASK:SECONDS")
    parser.add_argument("--failing", type=int, action="append", default=[], metavar="TASK")
    parser.add_argument("--unloadable", type=int, action="append", default=[], metavar="TASK")
    parser.add_argument("--replace-after", type=float, help="seconds after which the fee is raised")
    parser.add_argument("--step-log", type=Path, help="file that gets a byte for each step")
    return parser.parse_args()


def _late(given: str) -> tuple[int, float]:
    task, _, seconds = given.partition(":")
    return int(task), float(seconds)


if __name__ == "__main__":
    main()
