"""Readings of NVIDIA GPUs through NVML, for the operator and for costs; they prove nothing (dispute.md
section 3).

The settings, not this module, choose the devices that compute, and every device gives the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from protocol.node.logs import get

if TYPE_CHECKING:
    from solver.settings import SolverSettings


@dataclass(frozen=True, slots=True)
class Reading:
    """The readings of one GPU: `utilisation` in percent, memory in bytes. `energy` is in millijoules since
    the driver was loaded, None if the GPU does not count it. `power_limit` is the most watts that the GPU
    may draw, None if it does not report that.
    """

    index: int
    name: str
    utilisation: int
    memory_used: int
    memory_total: int
    energy: int | None
    power_limit: float | None = None

    def __str__(self) -> str:
        used, total = self.memory_used >> 20, self.memory_total >> 20
        return f"GPU {self.index} {self.name}: {self.utilisation} % busy, {used} of {total} MiB used"


def read_gpus() -> list[Reading]:
    """Readings of every GPU that NVML sees; empty without a driver, or if one of the GPUs cannot be read."""
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return []
    try:
        return [_read(index) for index in range(pynvml.nvmlDeviceGetCount())]
    except pynvml.NVMLError:
        return []
    finally:
        pynvml.nvmlShutdown()


def watts(readings: list[Reading], devices: int) -> float | None:
    """The most watts that `devices` of these GPUs may draw together: the sum of the `devices` highest limits.
    A GPU that does not report its limit is not counted. None if no GPU reports its limit.
    """
    limits = sorted(_limits(readings), reverse=True)
    return sum(limits[:devices]) if limits else None


def powered(settings: SolverSettings, readings: list[Reading], devices: int) -> SolverSettings:
    """The settings, with `watts` set to the most that `devices` of these GPUs may draw (the function
    `watts`). A value that the operator has set stays. If no GPU reports its limit, the default stays.

    If fewer than `devices` GPUs report their limit, bids do not include the power of the missing ones. Their
    number is then logged, unless the operator has set `watts`.
    """
    found = settings.with_gpus(watts(readings, devices))
    uncounted = max(0, devices - len(_limits(readings)))
    if uncounted and "watts" not in settings.model_fields_set:
        get("solver.gpu").warning(
            "GPUs do not report their power and are not counted: set `watts`",
            uncounted=uncounted,
            gpus=devices,
            watts=found.watts,
        )
    return found


def driver() -> str | None:
    """The version of the NVIDIA driver; None without a driver, or if the driver does not report its version."""
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    try:
        return str(pynvml.nvmlSystemGetDriverVersion())
    except pynvml.NVMLError:
        return None
    finally:
        pynvml.nvmlShutdown()


def describe(readings: list[Reading]) -> str:
    """The readings in one line of words."""
    return "; ".join(map(str, readings)) if readings else "no GPU: training on the CPU"


def _limits(readings: list[Reading]) -> list[float]:
    return [one.power_limit for one in readings if one.power_limit is not None]


def _read(index: int) -> Reading:
    import pynvml

    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
    return Reading(
        index,
        str(pynvml.nvmlDeviceGetName(handle)),
        int(pynvml.nvmlDeviceGetUtilizationRates(handle).gpu),
        int(memory.used),
        int(memory.total),
        _asked(pynvml.nvmlDeviceGetTotalEnergyConsumption, handle),
        None if (limit := _asked(pynvml.nvmlDeviceGetPowerManagementLimit, handle)) is None else limit / 1000,
    )


def _asked(question: Callable[[object], int], handle: object) -> int | None:
    """A reading that not every GPU provides; None if this GPU does not."""
    import pynvml

    try:
        return int(question(handle))
    except pynvml.NVMLError:
        return None
