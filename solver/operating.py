"""Commands of a solver's operator besides `run`: measuring, checking, status, earnings and orders.

Of the heavy packages, only Typer is imported here; each command imports the others that it needs.
"""

from __future__ import annotations

from typing import Annotated

import typer

from protocol.errors import ExitCode
from protocol.node.commands import SENDS, Flags, command
from protocol.node.options import DeviceOption, DevicesOption, HomeOption, JsonOption, at_home

WaitOption = Annotated[bool, typer.Option("--wait", help="Return when the node has ended.")]
MonthOption = Annotated[str | None, typer.Option(help="Only this month of UTC, such as 2026-11.")]


def add_operating(app: typer.Typer) -> None:
    """Add the commands of this module to `app`."""
    for function in (bench, status, earnings, pause, resume, drain, stop):
        command(app)(function)
    command(app, connection=SENDS)(check)


def bench(
    device: DeviceOption = None,
    devices: DevicesOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure this machine: operations a second by kind of work, hashing, disk. `run` bids by these measurements. Run
    it while nothing else runs.
    """
    from protocol.node.process import importing, keep_memory

    home_folder = at_home(home)
    keep_memory()
    with importing():
        from solver.benching import bench as measure_now

    measure_now(home_folder, {"device": device, "devices": devices}, as_json)


def check(
    connection: Flags,
    url: Annotated[str | None, typer.Option(help="Public address of the service, if another.")] = None,
    device: DeviceOption = None,
    devices: DevicesOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Check everything that `run` needs (device, disk, clock, chain, balances, address, profit), and say what
    to do.

    The exit code is 0 without a problem, 1 if a later try may help, otherwise 2.
    """
    from protocol.node.process import importing

    home_folder = at_home(home)
    with importing():
        from solver.checking import check as check_now

    return check_now(home_folder, connection | {"device": device, "devices": devices, "url": url}, as_json)


def status(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Show the node's tasks, income and orders, even if the node does not run."""
    from solver.asking import status as status_now

    status_now(at_home(home), as_json)


def earnings(
    month: MonthOption = None,
    csv: Annotated[bool, typer.Option("--csv", help="Every entry, comma separated, on stdout.")] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show income, gas, and the tokens burned, lost and locked, by month and task, from the node's own ledger."""
    from solver.earnings import earnings as earnings_now

    earnings_now(at_home(home), month, csv, as_json)


def pause(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Make no more bids, even after a restart. Tasks already taken are trained and defended."""
    from solver.asking import order

    order(at_home(home), "pause", as_json)


def resume(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Bid again, after `pause` or `drain`."""
    from solver.asking import order

    order(at_home(home), "resume", as_json)


def drain(wait: WaitOption = False, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Make no more bids, and exit with code 0 once no task is left. If the node is killed first, it goes on
    draining when it next starts.
    """
    from solver.asking import order

    order(at_home(home), "drain", as_json, wait)


def stop(wait: WaitOption = False, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Stop as Ctrl-C does: after the running segments and the moves that are owed, with exit code 130. The
    next start goes on with the tasks.
    """
    from solver.asking import order

    order(at_home(home), "stop", as_json, wait)
