"""What a node sets up before it begins: logs, the check that this machine computes the right bits, device, signals.

The check needs torch, and the node does not before it has a task: so it is made in a process that ends, and made again
in this one when the first task has brought torch here (`executors`).
"""

from __future__ import annotations

import logging
import sys
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from protocol.execution.loading import load_torch
from protocol.execution.machine_check import check_machine
from protocol.execution.versions import untested_torch
from protocol.node import logs
from protocol.node.party.settings import NodeSettings
from protocol.node.stopping import Stop

if TYPE_CHECKING:
    from protocol.execution.replay import Executor, ExecutorFactory, Work

_log = logging.getLogger("assay.numerics")


class Started(NamedTuple):
    """What makes the executor of a task, what a signal asks to stop, and the name of the device."""

    executor: ExecutorFactory
    stop: Stop
    device: str


def start(settings: NodeSettings, log_json: bool, verbose: bool) -> Started:
    """Set up. Raises SelfCheckError, DeviceError, and CheckLost."""
    logs.configure(log_json, verbose)
    if "torch" in sys.modules:  # somebody has loaded it: what it is set to counts
        from protocol.execution.device import device_name, device_of

        _checked_here(settings.device)
        name = device_name(device_of(settings.device))
    else:
        machine = check_machine(settings.device)
        if (warning := untested_torch(machine.torch)) is not None:
            _log.warning(warning)
        name = machine.name
        if machine.device != "cpu":
            _log.info("steps run on %s", name)
    stop = Stop()
    stop.on_signals()
    return Started(executors(settings.device), stop, name)


def executors(device: str) -> ExecutorFactory:
    """What makes the executor of a task on `device` (a setting). The first one loads torch and checks this process: it
    raises SelfCheckError, DeviceError. Any thread may ask.
    """
    lock, checked_here = Lock(), cache(lambda: _checked_here(device))

    def make(work: Work) -> Executor:
        with lock:
            factory = checked_here()
        return factory(work)

    return make


def _checked_here(device: str) -> ExecutorFactory:
    load_torch()
    from protocol.execution.device import checked, executor_on
    from protocol.numerics.self_check import self_check

    self_check()
    return executor_on(checked(device))
