"""Readings of NVIDIA GPUs through NVML, for the operator and the bill; they prove nothing (dispute.md section 9).

Not a device choice: which device trains is the interpreter's matter, and every device gives the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reading:
    """One GPU at one moment. `energy` is in millijoules since the driver was loaded, None where it is not counted."""

    index: int
    name: str
    utilisation: int
    memory_used: int
    memory_total: int
    energy: int | None

    def __str__(self) -> str:
        used, total = self.memory_used >> 20, self.memory_total >> 20
        return f"GPU {self.index} {self.name}: {self.utilisation} % busy, {used} of {total} MiB used"


def read_gpus() -> list[Reading]:
    """Every GPU that NVML sees; none where there is no driver."""
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


def driver() -> str | None:
    """The version of the NVIDIA driver; None without one."""
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
    """One line for people."""
    return "; ".join(map(str, readings)) if readings else "no GPU: training on the CPU"


def _read(index: int) -> Reading:
    import pynvml

    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
    try:
        energy: int | None = int(pynvml.nvmlDeviceGetTotalEnergyConsumption(handle))
    except pynvml.NVMLError:
        energy = None
    return Reading(
        index,
        str(pynvml.nvmlDeviceGetName(handle)),
        int(pynvml.nvmlDeviceGetUtilizationRates(handle).gpu),
        int(memory.used),
        int(memory.total),
        energy,
    )
