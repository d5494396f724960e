"""`python -m tests.unit.parallel.rank FOLDER RENDEZVOUS RANK SIZE STEPS FAULT`: a process of a group.

FAULT is the fault of process 1. `none`: no fault. `update`: in the last step, its updated weights are off
by an ulp. `leave`: the process ends before the last step. Each process that does not leave prints a state
root, or an error, as one line of JSON.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor

from protocol.program import Interpreter, Op, Site
from protocol.program.library import kernels
from protocol.program.parallel import Group, ParallelError, SharedStep
from protocol.program.step import State
from protocol.tasks.bundles import load_bundle


class Device(Interpreter):
    """An interpreter that, if `broken`, is off by an ulp in the weight update. Every process computes this
    update itself, rather than receiving it from others.
    """

    broken = False

    def results(self, site: Site, operands: Sequence[Tensor]) -> tuple[Tensor, ...]:
        found = super().results(site, operands)
        if self.broken and site.path == () and site.instruction.op is Op.CALL:
            name = site.program.callee(site.number).name
            if name.startswith("sgd"):
                return (torch.nextafter(found[0], found[0] + 1), *found[1:])
        return found


def main(folder: str, rendezvous: str, rank: str, size: str, steps: str, fault: str) -> None:
    """Train, and print the state root or the error."""
    bundle = load_bundle(Path(folder))
    store = dist.FileStore(rendezvous, int(size))  # type: ignore[attr-defined]
    dist.init_process_group("gloo", store=store, rank=int(rank), world_size=int(size))
    device = Device(kernels(bundle.step.program, bundle.hints))
    try:
        shared = SharedStep(bundle.step, bundle.fixed(), device, Group())
        state: State = bundle.initial_state()
        for number in range(1, int(steps) + 1):
            if number == int(steps) and rank == "1":
                device.broken = fault == "update"
                if fault == "leave":
                    os._exit(0)
            state = shared.step(state)
        print(json.dumps({"root": shared.agreed_root(state).hex()}), flush=True)
    except ParallelError as error:
        print(json.dumps({"error": type(error).__name__, "message": str(error)}), flush=True)
    os._exit(0)  # gloo would wait for processes that have left


if __name__ == "__main__":
    main(*sys.argv[1:])
