"""Decides where tasks are trained: on which of this machine's devices, and whether the memory has room for
one more task.

A submitted task still takes memory until it is over. On the CPU, each of its tensors that was read instead of
mapped takes memory all that time. On a GPU, the task takes the memory of one step, dataset included, but only
while it is defended.

A task stays on the device on which it was placed when it was bid on. After a restart it goes to the least
occupied device. Tasks of several deployments may have the same number, and then share a device.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING

from protocol.tasks.bundles.limits import WORKSPACE

if TYPE_CHECKING:
    from protocol.execution.replay import Executor, ExecutorFactory, Work
    from protocol.tasks.bundles.bundle import Held

MemoryOf = Callable[[str], int | None]
"""Returns the bytes that all trainings of this process may use together on a device; None if that is not
known.
"""


def no_bound(_device: str) -> int | None:
    """Unlimited memory: nothing is checked."""
    return None


def no_copies(_device: str) -> bool:
    """No device has its own memory: each works in the machine's memory, like the CPU."""
    return False


class Places:
    """The device of each task, named as in the settings, such as "cuda:0". Callable from any thread."""

    def __init__(
        self,
        devices: Sequence[str] = ("auto",),
        memory: MemoryOf = no_bound,
        copies: Callable[[str], bool] = no_copies,
    ) -> None:
        """`copies` returns whether a device has its own memory, to which a dataset is copied."""
        self.devices = tuple(devices)
        self._memory = memory
        self._copies = copies
        self._placed: dict[int, str] = {}
        self._needs: dict[bytes, int] = {}
        self._lock = Lock()

    def of(self, task: int) -> str:
        """The device of a task. A task that has none gets the device with the fewest tasks, and keeps it."""
        with self._lock:
            if task not in self._placed:
                placed = Counter(self._placed.values())
                self._placed[task] = min(self.devices, key=lambda device: placed[device])
            return self._placed[task]

    def put(self, task: int, device: str) -> None:
        """Place a task on a device, because the task is bid on."""
        with self._lock:
            self._placed[task] = device

    def forget(self, task: int) -> None:
        """Remove a task that is over, or that was not won."""
        with self._lock:
            self._placed.pop(task, None)

    def expect(self, program: bytes, peak_bytes: int) -> None:
        """Estimate a program's memory from the peak size of the values in its step."""
        self._needs[program] = WORKSPACE * peak_bytes

    def needs(self, program: bytes) -> int | None:
        """Estimated bytes that training a program takes; None until its bundle has been read."""
        return self._needs.get(program)

    def keeps(self, device: str, program: bytes, held: Held | None) -> int | None:
        """Bytes on a device that a submitted task may take until it is over; None until the task's bundle has
        been read. `held` is what the bundle takes in memory.
        """
        needs = self.needs(program)
        if held is None or needs is None:
            return None
        return needs // WORKSPACE if self._copies(device) else held.read

    def room(self, device: str, programs: Iterable[bytes], kept: Iterable[int | None] = ()) -> float:
        """Bytes of a device's memory that are left for another training, beside the trainings of these
        programs and the submitted tasks. `kept` has the bytes that each submitted task takes. The result is
        infinite if the device's memory is not known. Otherwise it is 0 if the bytes of any training or
        submitted task are not known yet.
        """
        memory = self._memory(device)
        if memory is None:
            return math.inf
        taken = [*(self.needs(program) for program in programs), *kept]
        return 0 if None in taken else max(0, memory - sum(filter(None, taken)))


def placed(executors: Mapping[str, ExecutorFactory], places: Places) -> ExecutorFactory:
    """A factory that makes a task's executor on the task's device."""

    def make(work: Work) -> Executor:
        return executors[places.of(work.task)](work)

    return make


def memory_of(device: str) -> int | None:
    """The memory for trainings on a device that torch sees: the free bytes plus those that this process uses;
    None if the system does not report it. Called only when torch is already loaded.
    """
    from protocol.execution.device import device_of
    from protocol.execution.memory import memory_for

    return memory_for(device_of(device))


def has_own_memory(device: str) -> bool:
    """Whether a device that torch sees has its own memory. Called only when torch is already loaded."""
    from protocol.execution.device import device_of

    return device_of(device).type != "cpu"
