"""The set-up of a node before it begins: logs, the check that this machine computes the right bits, the
device, the signals.

The check needs torch, which the node itself needs only once it has a task. So, unless torch is already
loaded, the check runs in another process. It runs again in this process when the first task has loaded torch
(`executors`).
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from protocol.execution.loading import load_torch
from protocol.execution.machine_check import Machine, check_machine
from protocol.execution.versions import untested_torch
from protocol.node import logs
from protocol.node.party.settings import NodeSettings
from protocol.node.stopping import Stop

if TYPE_CHECKING:
    from protocol.execution.replay import Executor, ExecutorFactory, Work

_log = logging.getLogger("assay.numerics")


class Started(NamedTuple):
    """A node's set-up: the executor factory and the name of each device, the `Stop` object that is set by
    signals, and whether all devices are GPUs.
    """

    executors: Mapping[str, ExecutorFactory]
    stop: Stop
    names: Mapping[str, str]
    on_gpus: bool

    @property
    def executor(self) -> ExecutorFactory:
        """The executor factory of the first device."""
        return next(iter(self.executors.values()))


def start(settings: NodeSettings, log_json: bool, verbose: bool, devices: Sequence[str] = ()) -> Started:
    """Set up a node for `devices`, by default the one in the settings. Raises SelfCheckError, DeviceError,
    CheckLost.
    """
    logs.configure(log_json, verbose)
    found = {device: _checked(device) for device in devices or (settings.device,)}
    stop = Stop()
    stop.on_signals()
    names = {device: machine.name for device, machine in found.items()}
    on_gpus = all(machine.device != "cpu" for machine in found.values())
    return Started({device: executors(device) for device in names}, stop, names, on_gpus)


def _checked(device: str) -> Machine:
    """Check that a device computes the right bits, and describe it."""
    if "torch" in sys.modules:  # torch is already loaded: check it here, with its present settings
        import torch

        from protocol.execution.device import device_name, device_of

        _checked_here(device)
        where = device_of(device)
        return Machine(torch.__version__, where.type, device_name(where))
    machine = check_machine(device)
    if (warning := untested_torch(machine.torch)) is not None:
        _log.warning(warning)
    if machine.device != "cpu":
        _log.info("steps run on %s", machine.name)
    return machine


def executors(device: str) -> ExecutorFactory:
    """A factory of executors on `device`, such as "auto" or "cuda:1". Its first call loads torch and checks
    this process, and may raise SelfCheckError or DeviceError. Callable from any thread.
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
