"""What a node sets up before it begins: logs, the check that this machine computes the right bits, device, signals."""

from __future__ import annotations

from protocol.execution.device import checked, executor_on
from protocol.execution.replay import ExecutorFactory
from protocol.node import logs
from protocol.node.party.settings import NodeSettings
from protocol.node.stopping import Stop
from protocol.numerics.self_check import self_check


def start(settings: NodeSettings, log_json: bool, verbose: bool) -> tuple[ExecutorFactory, Stop]:
    """What makes the executor of a task, and what a signal asks to stop. Raises SelfCheckError, DeviceError."""
    logs.configure(log_json, verbose)
    self_check()
    executor = executor_on(checked(settings.device))
    stop = Stop()
    stop.on_signals()
    return executor, stop
