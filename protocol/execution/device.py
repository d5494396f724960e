"""Where steps run: the CPU or a CUDA device, with the same bits (arithmetic.md section 8).

On a CUDA device, state and data stay in the device's memory between steps. A step is recorded once as a CUDA
graph; from then on, one launch replays all its kernels. A step that reads anything back to the host cannot be
recorded. This is logged once, and steps then run kernel by kernel.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Final, Protocol

import torch
from torch import Tensor

from protocol.dispute.provider import Frame
from protocol.execution.errors import DeviceError
from protocol.execution.replay import Executor, ExecutorFactory, Work, honest_executor
from protocol.execution.versions import untested_torch
from protocol.numerics.self_check import require_mode, self_check
from protocol.program.execute import Interpreter
from protocol.program.step import State, StepProgram
from protocol.tasks.arithmetics import require_computed

WARM_STEPS = 2
"""Number of steps that run before the recording. The first step tests and compiles the kernels; the second
confirms that nothing is left to compile.
"""

_log = logging.getLogger("assay.numerics")


def device_of(setting: str) -> torch.device:
    """The device for a setting: `auto` (CUDA if available, else the CPU), `cpu`, `cuda`, or `cuda:` and a
    number. Raises `DeviceError`.
    """
    there = torch.cuda.is_available()
    kind, _, number = setting.partition(":")
    if kind == "cuda" and not there:
        raise DeviceError(
            "device: expected a CUDA device that torch can use, found none; install the CUDA build of torch and its "
            "driver, or set device = auto"
        )
    if number and not (number.isdecimal() and int(number) < torch.cuda.device_count()):
        raise DeviceError(
            f"devices: expected numbers below {torch.cuda.device_count()}, got {number}; "
            "`nvidia-smi -L` lists the devices"
        )
    return torch.device(setting if number else "cuda" if there and setting != "cpu" else "cpu")


def device_name(device: torch.device) -> str:
    """A device's name in the file of measurements. For a GPU, it is the GPU's name; for the CPU, it is the
    processor's name and torch's number of threads.
    """
    if device.type != "cpu":
        return str(torch.cuda.get_device_name(device))
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "CPU")
    return f"{model}, {torch.get_num_threads()} threads"


def checked(setting: str) -> torch.device:
    """The device for a setting. A GPU is self-checked here; the caller checks the CPU. Raises `DeviceError`,
    `SelfCheckError`.

    Logs a warning if this version of torch is untested.
    """
    device = device_of(setting)
    if (warning := untested_torch(torch.__version__)) is not None:
        _log.warning(warning)
    if device.type != "cpu":
        self_check(device)
        _log.info("steps run on %s", torch.cuda.get_device_name(device))
    return device


def executor_on(device: torch.device) -> ExecutorFactory:
    """A function that makes a task's honest executor on `device`, for the task's version of the arithmetic.
    The function raises UnknownArithmetic.
    """

    def make(work: Work) -> Executor:
        require_computed(work.arithmetic, f"task {work.task}")
        return EXECUTORS[work.arithmetic](work, device)

    return make


def _first_version(work: Work, device: torch.device) -> Executor:
    return honest_executor(work) if device.type == "cpu" else DeviceExecutor(work, device)


EXECUTORS: Final[dict[int, Callable[[Work, torch.device], Executor]]] = {1: _first_version}
"""For each version of the arithmetic, a function that makes an executor on a device."""


class Recorder(Protocol):
    """Records a step so that it can be run again. On a GPU this is a `CudaRecorder`."""

    def record(self, step: Callable[[], Mapping[str, Tensor]]) -> Callable[[], object]:
        """Call `step` once and record the kernels that it starts. Return a function that runs these kernels."""


class CudaRecorder:
    """Records a step as a CUDA graph of torch."""

    def record(self, step: Callable[[], Mapping[str, Tensor]]) -> Callable[[], object]:
        """Record `step`. Raises RuntimeError if it does something that a graph cannot contain."""
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):  # other threads may go on
            step()
        return graph.replay


class DeviceExecutor:
    """Runs steps on one device, and records them if `graph` is true. Returned states belong to the caller."""

    def __init__(
        self, work: Work, device: torch.device, *, graph: bool = True, recorder: Recorder | None = None
    ) -> None:
        self._device = device
        self._fixed = tuple(x.to(device) for x in work.fixed)
        self._interpreter = Interpreter(work.kernels, device)
        self._program: StepProgram = work.program
        self._lock = threading.Lock()  # a recorded step has one set of operands
        self._graph = _Recorded(recorder or CudaRecorder()) if graph else None

    def step(self, state: State, _number: int, /) -> State:
        """The next state, on the device. Raises `SelfCheckError`."""
        require_mode()
        with self._here():
            given = self._moved(state)
            if self._graph is None:
                return self._program.step(given, self._fixed, self._interpreter)
            with self._lock:
                return self._graph.step(given, self._program, self._fixed, self._interpreter)

    def trace(self, state: State, _number: int, /) -> Frame:
        """The traced step, on the device. In every frame, if the callee of a call has a kernel, the kernel
        computes the call's results. The callee's frame is then computed only on request. Raises
        `SelfCheckError`.
        """
        require_mode()
        with self._here():
            return self._program.trace(self._moved(state), self._fixed, self._interpreter)

    def _here(self) -> AbstractContextManager[object]:
        """Make this executor's device the thread's current device, on which graphs are recorded and kernels
        are queued.
        """
        return torch.cuda.device(self._device) if self._device.type == "cuda" else nullcontext()

    def _moved(self, state: State) -> dict[str, Tensor]:
        return {name: x.to(self._device) for name, x in state.items()}


class _Recorded:
    """A step that is recorded after `WARM_STEPS` runs. Operands and results stay at the recorded addresses."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._steps = 0
        self._replay: Callable[[], object] | None = None
        self._inputs: dict[str, Tensor] = {}
        self._outputs: Mapping[str, Tensor] = {}

    def step(
        self,
        state: dict[str, Tensor],
        program: StepProgram,
        fixed: Sequence[Tensor],
        interpreter: Interpreter,
    ) -> State:
        self._steps += 1
        if self._steps <= WARM_STEPS:
            return program.step(state, fixed, interpreter)
        if self._replay is None:
            self._replay = self._record(state, program, fixed, interpreter)
        if self._replay is None:
            return program.step(state, fixed, interpreter)
        _copy({name: state[name] for name in self._inputs}, self._inputs)
        self._replay()
        made = {name: torch.empty_like(x) for name, x in self._outputs.items()}
        _copy(self._outputs, made)
        return made

    def _record(
        self,
        state: dict[str, Tensor],
        program: StepProgram,
        fixed: Sequence[Tensor],
        interpreter: Interpreter,
    ) -> Callable[[], object] | None:
        inputs = {name: x.clone() for name, x in state.items()}
        made: list[Mapping[str, Tensor]] = []

        def run() -> Mapping[str, Tensor]:
            made.append(program.step(inputs, fixed, interpreter))
            return made[-1]

        try:
            replay = self._recorder.record(run)
        except RuntimeError as error:
            first = _first(error)
            reason = str(first).splitlines()[0] if str(first) else type(first).__name__
            _log.warning("the step is not recorded as a CUDA graph, its kernels start one by one: %s", reason)
            self._steps = -(1 << 62)  # do not try again
            return None
        self._inputs, self._outputs = inputs, made[0]
        return replay


def _copy(source: Mapping[str, Tensor], target: Mapping[str, Tensor]) -> None:
    """Copy every tensor by name, with as few kernels as torch allows: a state has hundreds of small tensors."""
    by_type: dict[torch.dtype, tuple[list[Tensor], list[Tensor]]] = {}
    for name, x in target.items():
        into, out_of = by_type.setdefault(x.dtype, ([], []))
        into.append(x)
        out_of.append(source[name])
    for into, out_of in by_type.values():
        torch._foreach_copy_(into, out_of)


def _first(error: BaseException) -> BaseException:
    """The original error. If a step fails during a recording, ending the recording raises a second error."""
    while error.__context__ is not None:
        error = error.__context__
    return error
