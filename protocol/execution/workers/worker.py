"""`python -m protocol.execution.workers.worker`: one worker process.

The worker's parent, `pool.Workers`, writes to its standard input and reads its standard output. The worker
ends as soon as its input ends.

    parent: {"bundle": …, "hash": …, "rank": 0, "size": 2, "rendezvous": …, "state": …}      once, then for every step
            {"root": …, "last": false}      the root of the state in the state file; null: continue from the last state
    worker: {"ready": true}      {"metrics": {"loss": 2.3}}      after the last step {"metrics": …, "root": …}
            {"error": "RanksDisagree", "message": …}      its last message
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TextIO

PATIENCE = timedelta(minutes=30)
"""Time to wait for the slowest process of a group. A process that has ended is noticed at once."""


def main() -> None:
    """Work until the parent closes the input."""
    out = _own_output()
    commands: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=_listen, args=(sys.stdin, commands), daemon=True).start()
    try:
        _work(json.loads(commands.get()), commands, out)
    except Exception as error:
        _say(out, error=type(error).__name__, message=" ".join(str(error).split()))
        os._exit(1)  # gloo's threads may be waiting for processes that have ended


def _work(job: dict[str, Any], commands: SimpleQueue[str], out: TextIO) -> None:
    from protocol.node.process import importing, keep_memory

    keep_memory()
    with importing():
        import torch.distributed as dist

        from protocol.execution.replay import Work, honest_interpreter
        from protocol.execution.workers.states import read_state, write_state
        from protocol.numerics.self_check import require_mode, self_check
        from protocol.program.parallel import Group, SharedStep
        from protocol.program.step import State, metrics
        from protocol.tasks.bundles import BundleMismatch, load_bundle

    self_check()
    found = sha256(Path(job["bundle"], "manifest.json").read_bytes()).hexdigest()
    if found != job["hash"]:
        raise BundleMismatch("bundle", expected=job["hash"], got=found, remedy="fetch it again")
    work = Work.of(0, load_bundle(Path(job["bundle"])))  # the task's number does not matter here
    program = work.program
    rank, size, file = job["rank"], job["size"], Path(job["state"])
    store = dist.FileStore(job["rendezvous"], size)  # type: ignore[attr-defined]
    dist.init_process_group("gloo", store=store, rank=rank, world_size=size, timeout=PATIENCE)
    shared = SharedStep(program, work.fixed, honest_interpreter(work), Group())
    state: State = {}
    _say(out, ready=True)
    while True:
        command = json.loads(commands.get())
        if command["root"] is not None:
            state = read_state(program, file, bytes.fromhex(command["root"]))
        require_mode()
        state = shared.step(state)
        if not command["last"]:
            _say(out, metrics=metrics(state))
            continue
        root = shared.agreed_root(state)  # agreement means that all workers have read the file
        if rank == 0:
            write_state(program, state, file)
        _say(out, metrics=metrics(state), root=root.hex())


def _listen(stream: TextIO, commands: SimpleQueue[str]) -> None:
    job = ""
    for line in stream:
        job = job or line
        commands.put(line)
    if job:  # the parent also does this, unless it was killed
        shutil.rmtree(Path(json.loads(job)["state"]).parent, ignore_errors=True)
    os._exit(0)


def _own_output() -> TextIO:
    """Reserve the standard output for messages, and redirect the output of libraries to the standard error."""
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    return out


def _say(out: TextIO, **message: object) -> None:
    print(json.dumps(message), file=out, flush=True)


if __name__ == "__main__":
    main()
