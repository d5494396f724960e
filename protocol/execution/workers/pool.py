"""The parent's side of worker processes: it starts, commands and watches them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from time import monotonic
from types import TracebackType
from typing import Any, Self

import torch

from protocol.execution.replay import OnStep
from protocol.execution.workers.errors import WorkerFailed, WorkerLost, WorkersError
from protocol.execution.workers.memory import require_memory
from protocol.execution.workers.states import read_state, write_state
from protocol.program.parallel.errors import RanksDisagree, TooManyProcesses
from protocol.program.parallel.units import units
from protocol.program.step import METRIC, State, StepProgram

Turn = Callable[[], AbstractContextManager[object]]
"""Makes a context that is entered for each step."""

LOOPBACK = "lo0" if sys.platform == "darwin" else "lo"
GRACE = 5.0
"""Seconds that all workers together have to end by themselves; then they are killed. After a failure, the
parent also waits at most this long for each further report, and for each worker without a report to end.
"""
WRONG_BITS = (RanksDisagree.__name__, "SelfCheckError")
"""Names of the workers' errors that mean that this machine's results cannot be trusted."""


class Workers:
    """A group of `processes` worker processes that run the program `program` of the bundle in `folder`. The
    manifest of the bundle has SHA-256 `bundle_hash`. Use the group as a context manager. After an error, all
    workers are stopped.

    Each worker gets an equal share of the processor's cores unless OMP_NUM_THREADS is set. Raises
    `TooManyProcesses` if the program has fewer units than `processes`, and TooLittleMemory if the workers do
    not fit in memory. If a worker does not start, raises WorkerLost or WorkerFailed.
    """

    def __init__(self, folder: Path, bundle_hash: bytes, program: StepProgram, processes: int) -> None:
        most = max(1, len(units(program.program)))
        if processes > most:
            raise TooManyProcesses(most, processes)
        require_memory(program, processes)
        self._program = program
        self._events: SimpleQueue[tuple[int, dict[str, Any] | None]] = SimpleQueue()
        self._folder = Path(tempfile.mkdtemp(prefix="assay-workers-"))
        self._state: State | None = None
        self._processes: list[subprocess.Popen[str]] = []
        try:
            for rank in range(processes):
                self._processes.append(self._start(rank, processes))
                self._send(rank, self._job(folder, bundle_hash, rank, processes))
            self._collect("ready")
        except BaseException:
            self.close()
            raise

    @property
    def pids(self) -> list[int]:
        """Process ids by rank; empty once the workers are stopped."""
        return [process.pid for process in self._processes]

    def run(self, state: State, first: int, steps: int, on_step: OnStep, turn: Turn = nullcontext) -> State:
        """The state after `steps` steps, the first of which has the number `first`. All workers must agree on
        the state's root.

        Each step begins and ends inside a `turn`. Raises WorkerLost, or WorkerFailed if the workers disagree
        or one finds wrong bits.
        """
        root = None
        try:
            if state is not self._state:
                write_state(self._program, state, self._file)
                root = self._program.state_root(state).hex()
            for step in range(steps):
                with turn():
                    for rank in range(len(self._processes)):
                        self._send(rank, {"root": root, "last": step == steps - 1})
                    answers = self._collect("metrics")
                root, metrics = None, answers[0]["metrics"]
                on_step(
                    first + step,
                    {
                        METRIC + name: torch.tensor(value, dtype=torch.float32, device="cpu")
                        for name, value in metrics.items()
                    },
                )
            (agreed,) = {answer["root"] for answer in answers}
            self._state = read_state(self._program, self._file, bytes.fromhex(agreed))
        except BaseException:
            self.close()
            raise
        return self._state

    def close(self) -> None:
        """Stop all workers and wait until they have ended."""
        for process in self._processes:
            if process.stdin is not None:
                with suppress(OSError):  # unsent data to a worker that has ended
                    process.stdin.close()
        deadline = monotonic() + GRACE
        for process in self._processes:
            try:
                process.wait(max(deadline - monotonic(), 0.0))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._processes.clear()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def _file(self) -> Path:
        return self._folder / "state"

    def _job(self, folder: Path, bundle_hash: bytes, rank: int, size: int) -> dict[str, object]:
        return {
            "bundle": str(folder),
            "hash": bundle_hash.hex(),
            "rank": rank,
            "size": size,
            "rendezvous": str(self._folder / "rendezvous"),
            "state": str(self._file),
        }

    def _start(self, rank: int, size: int) -> subprocess.Popen[str]:
        # Processes share the cores: a thread that spins while it waits would take a core from another process.
        usual = {"OMP_NUM_THREADS": str(max(1, cores() // size)), "OMP_WAIT_POLICY": "PASSIVE"}
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "protocol.execution.workers.worker"],
            env={**usual, **os.environ, "GLOO_SOCKET_IFNAME": LOOPBACK},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            process_group=0,  # only the parent gets Ctrl-C; it stops the workers
        )
        threading.Thread(target=self._listen, args=(rank, process), daemon=True).start()
        return process

    def _listen(self, rank: int, process: subprocess.Popen[str]) -> None:
        with process.stdout as lines:  # type: ignore[union-attr]
            for line in lines:
                self._events.put((rank, json.loads(line)))
        self._events.put((rank, None))

    def _send(self, rank: int, message: dict[str, object]) -> None:
        stream = self._processes[rank].stdin
        try:
            print(json.dumps(message), file=stream, flush=True)
        except OSError:
            raise self._failure(rank, None) from None

    def _collect(self, answer: str) -> list[dict[str, Any]]:
        """Wait for a message with the key `answer` from every worker; return the messages by rank."""
        answers: dict[int, dict[str, Any]] = {}
        while len(answers) < len(self._processes):
            rank, message = self._events.get()
            if message is None or answer not in message:
                raise self._failure(rank, message)
            answers[rank] = message
        return [answers[rank] for rank in range(len(self._processes))]

    def _failure(self, rank: int, message: dict[str, Any] | None) -> WorkersError:
        """The error to report for a failure, once all workers have had time to report.

        An error that means wrong bits takes precedence, followed by a worker that ended without a message.
        Any other error comes last, because the worker that reported it may only have been waiting for another
        worker.
        """
        last = {rank: message}
        while len(last) < len(self._processes):
            try:
                rank, message = self._events.get(timeout=GRACE)
            except Empty:
                break
            if message is None or "error" in message:
                last.setdefault(rank, message)
        said = {rank: message for rank, message in last.items() if message is not None}
        for rank, message in said.items():
            if message["error"] in WRONG_BITS:
                return WorkerFailed(f"worker {rank}: {message['message']}")
        silent = [self._ended(rank) for rank in last if rank not in said]
        reason = [*silent, *(f"worker {rank}: {message['message']}" for rank, message in said.items())][0]
        return WorkerLost(
            f"{reason}; go on from the last checkpoint, with fewer processes if memory is short"
        )

    def _ended(self, rank: int) -> str:
        process = self._processes[rank]
        try:
            code = process.wait(GRACE)
        except subprocess.TimeoutExpired:
            code = None
        how = "no answer" if code is None else f"signal {-code}" if code < 0 else f"exit code {code}"
        size = len(self._processes)
        return f"worker {rank} of {size} (process {process.pid}): expected it to work on, got {how}"


def cores() -> int:
    """Processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
