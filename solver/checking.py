"""`solver check`: checks what `run` needs, without sending transactions or keeping anything."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from functools import partial
from typing import Final

import torch

from protocol.chain.accounts import DEVELOPMENT_CHAIN
from protocol.chain.client import Client
from protocol.chain.views import TaskStatus, TaskView
from protocol.errors import AssayError, ExitCode, exit_code_of
from protocol.execution.device import checked, device_name, device_of
from protocol.execution.measured import measured, slowest
from protocol.execution.replay import machine_memory
from protocol.execution.versions import untested_torch
from protocol.node.home import Home
from protocol.node.output import Output
from protocol.node.party.connection import connect_by
from protocol.node.settings import load
from protocol.numerics.self_check import self_check
from protocol.tasks.admission import Clocks
from protocol.tasks.arithmetics import require_computed
from protocol.tasks.floor import GAME_GAS, TASK_GAS
from protocol.tasks.offers import Best, Refusal, decide, seconds_needed
from solver import checks, gpu
from solver.checks import Level, Line, Prospect
from solver.context import DISK_SHARE
from solver.machine import Machine, machine_of
from solver.reachability import reachable
from solver.settings import SolverSettings

MOST_TASKS: Final = 200
"""How many of the newest tasks are searched for this account's locked stakes and for open bidding."""
TORCH_INDEX: Final = "https://download.pytorch.org/whl"
CUDA_BUILD: Final = "cu130"
"""The build of torch for CUDA 13, as in docs/operating/Dockerfile."""
CHAIN_ITEMS: Final = ("clock", "stake", "defence", "reachable", "profit")

Look = Callable[[], Line]


def check(home: Home, flags: Mapping[str, object | None], as_json: bool) -> ExitCode:
    """Run all checks, print each finding as soon as it is known, and return the exit code. Raises
    SettingsError.
    """
    settings = load(SolverSettings, "solver", home.config, flags).values
    output = Output("solver check", as_json)
    lines = []
    for line in _lines(home, settings):
        output.say(str(line))
        lines.append(line)
    code = checks.exit_code(lines)
    output.result({"exit_code": int(code), "lines": lines})
    return code


def _lines(home: Home, settings: SolverSettings) -> Iterator[Line]:
    yield from _machine(home, settings)
    try:
        client = connect_by(settings, sends=False)
    except AssayError as error:
        yield _looked("measured", partial(_measured, home, settings, True))
        yield _problem("chain", error)
        yield from (Line(item, Level.WARNING, "not looked at, for the chain was not") for item in CHAIN_ITEMS)
        return
    with closing(client):
        yield from _chain(home, settings, client)


def _machine(home: Home, settings: SolverSettings) -> Iterator[Line]:
    for device in settings.training_devices:
        yield _looked("device", partial(_device, device))
    yield _looked("driver", _driver)
    for device in settings.training_devices:
        yield _looked("kernels", partial(_kernels, device))
    yield _looked("memory", _memory)
    yield _looked("disk", partial(_disk, home))
    yield from (
        checks.memory(one.memory_total, one.memory_total - one.memory_used, f"GPU {one.index}: ")
        for one in gpu.read_gpus()
    )


def _chain(home: Home, settings: SolverSettings, client: Client) -> Iterator[Line]:
    account: list[str] = []

    def chain() -> Line:
        require_computed(client.deployment.arithmetic, f"the contracts at {client.market.address}")
        connection = client.connection
        name = f"{connection.chain.name} ({connection.chain_id})"
        at = f"market {client.market.address}, block {connection.block().number}"
        return Line("chain", Level.OK, f"{name}, {at}")

    def balances() -> Line:
        account.append(_address(settings, client))
        return _stake(settings, client, account[0])

    yield _looked("chain", chain)
    local = client.connection.chain_id == DEVELOPMENT_CHAIN
    yield _looked("measured", partial(_measured, home, settings, local))
    yield _looked("clock", partial(_clock, client, local))
    yield _looked("stake", balances)
    if account:
        yield _looked("defence", partial(_defence, client, account[0]))
        yield _looked("reachable", partial(reachable, home, settings, client, account[0], local))
    yield _looked("profit", partial(_profit, home, settings, client, local))


def _looked(item: str, look: Look) -> Line:
    try:
        return look()
    except (AssayError, OSError, RuntimeError) as error:
        return _problem(item, error)


def _problem(item: str, error: Exception) -> Line:
    code = exit_code_of(error) or ExitCode.RETRY
    return Line(item, Level.PROBLEM, " ".join(str(error).split()) or type(error).__name__, code=code)


def _device(setting: str) -> Line:
    device = device_of(setting)
    name = device_name(device)
    if device.type == "cpu" and setting != "cpu" and gpu.read_gpus():
        build = f"torch=={torch.__version__.partition('+')[0]}+{CUDA_BUILD}"
        remedy = f"install a CUDA build of torch: pip install {build} --index-url {TORCH_INDEX}/{CUDA_BUILD}"
        return Line("device", Level.WARNING, f"{name}, though there is a GPU", remedy)
    return Line("device", Level.OK, name)


def _driver() -> Line:
    version = gpu.driver()
    if version is None:
        return Line("driver", Level.OK, "no NVIDIA driver; steps run on the CPU")
    return Line(
        "driver",
        Level.OK,
        f"NVIDIA {version}; torch {torch.__version__} for CUDA {torch.version.cuda or 'none'}",
    )


def _kernels(device: str) -> Line:
    self_check()
    checked(device)
    warning = untested_torch(torch.__version__)
    if warning is not None:
        return Line("kernels", Level.WARNING, warning, "install the version that was tested")
    return Line("kernels", Level.OK, f"self-tested, every bit right; torch {torch.__version__}")


def _memory() -> Line:
    free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
    return checks.memory(machine_memory(), free)


def _disk(home: Home) -> Line:
    free = shutil.disk_usage(home.folder()).free
    return checks.disk(free, int(free * DISK_SHARE))


def _measured(home: Home, settings: SolverSettings, local: bool) -> Line:
    names = [device_name(device_of(device)) for device in settings.training_devices]
    name, found = " and ".join(dict.fromkeys(names)), slowest(measured(home, one) for one in names)
    if "speed" in settings.model_fields_set:
        return Line("measured", Level.OK, f"`speed` is set: {settings.speed:.3g} operations a second")
    if found is None and local:
        assumed = (
            f"{name} was not measured; on a development chain it counts for {settings.speed:.3g} a second"
        )
        return Line("measured", Level.WARNING, assumed, "run `solver bench`")
    if found is None:
        unmeasured = f"{name} was not measured, so there are no bids"
        return Line("measured", Level.PROBLEM, unmeasured, "run `solver bench`")
    text = f"{found.date:%Y-%m-%d}: {found.slowest:.3g} to {found.fastest:.3g} operations a second by kind of work"
    if found.torch != torch.__version__:
        remedy = "run `solver bench` again"
        return Line("measured", Level.WARNING, f"{text}, with torch {found.torch}", remedy)
    return Line("measured", Level.OK, text)


def _clock(client: Client, local: bool) -> Line:
    connection = client.connection
    return checks.clock(time.time(), connection.block().time, connection.block_time, local)


def _address(settings: SolverSettings, client: Client) -> str:
    """The account's address. Opening its key checks the password; the key is not kept."""
    from protocol.chain.accounts import open_account

    account = open_account(settings.account, client.connection.chain_id, settings.password_file)
    return str(account.address)


def _stake(settings: SolverSettings, client: Client, account: str) -> Line:
    with client.connection.view():
        tasks = range(max(1, client.market.tasks() - MOST_TASKS + 1), client.market.tasks() + 1)
        client.market.ahead(tasks)
        views = [client.market.task(task) for task in tasks]
        locks = [one.stake for one in views if one.bidder == account and not one.status.is_over]
        locked = sum(client.vault.lock_of(lock).remaining for lock in locks)
        free, held = client.vault.free(account), client.token.balance_of(account)
    return checks.stake(free, held, locked, settings.stake_units, account)


def _defence(client: Client, account: str) -> Line:
    wei, price = client.connection.balance(account), client.connection.gas_price
    return checks.defence(wei, TASK_GAS * price, GAME_GAS * price, account)


def _profit(home: Home, settings: SolverSettings, client: Client, local: bool) -> Line:
    """The profit on the tasks that take bids now. Each task is judged in the way in which the auction judges
    a task before fetching its bundle.
    """
    names = [device_name(device_of(device)) for device in settings.training_devices]
    found = slowest(measured(home, name) for name in names)
    known = machine_of(settings, found, local)
    costs = settings.costs(client.connection.gas_price)
    with client.connection.view():
        newest = client.market.tasks()
        tasks = range(max(1, newest - MOST_TASKS + 1), newest + 1)
        statuses = client.market.statuses(tasks)
        open_ = [task for task, status in zip(tasks, statuses, strict=True) if status is TaskStatus.BIDDING]
        views = [client.market.task(task) for task in open_]
        now = client.now()
        taking = [view for view in views if view.bids_until >= now]  # the others only wait to be assigned
        prospects = [_prospect(home, settings, client, known, view) for view in taking]
    return checks.profit(prospects, (costs.machine + costs.power) * 3600)


def _prospect(
    home: Home, settings: SolverSettings, client: Client, known: Machine, view: TaskView
) -> Prospect:
    task, terms = view.task, client.market.terms(view.task)
    figures = settings.figures(
        settings.stake_units,
        int(shutil.disk_usage(home.folder()).free * DISK_SHARE),
        Clocks(client.inclusion, settings.pace),
        known.hopes({}),
        client.deployment.parameters.draw_delay,
        client.connection.gas_price,
        {},
        {},
    )
    best = Best(view.price, view.overtime // terms.extension) if int(view.bidder, 16) else None
    decision = decide(terms, figures, best)
    if isinstance(decision, Refusal):
        return Prospect(task, refusal=decision.reason)
    return Prospect(
        task, decision.price, decision.floor.price - decision.floor.margin, seconds_needed(terms, figures)
    )
