"""`python -m tests.same_bits.train MODE DEVICE (BUNDLE STEPS)...`: train from bundles, print each final
state's root and metrics.

MODE `kernels` runs library functions with their fused kernels. MODE `bodies` runs every primitive by
itself, as a trace does. Environment variables choose threads and instruction sets.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch

from protocol.numerics.self_check import self_check
from protocol.program.execute import Interpreter
from protocol.program.library import kernels
from protocol.program.step import metrics
from protocol.tasks.bundles import Limits, load_bundle

MODES = ("kernels", "bodies")


def main(mode: str, device: str, *runs: str) -> None:
    """Train each run in turn, and print the root and the metrics of its last state as one line of JSON."""
    if mode not in MODES:
        raise SystemExit(f"mode: expected one of {', '.join(MODES)}, got {mode!r}")
    where = torch.device(device)
    self_check(where)
    for folder, steps in zip(runs[::2], runs[1::2], strict=True):
        bundle = load_bundle(Path(folder), limits=Limits())
        known = kernels(bundle.step.program, bundle.hints) if mode == "kernels" else {}
        interpreter = Interpreter(known, where)
        state = {name: x.to(where) for name, x in bundle.initial_state().items()}
        fixed = tuple(x.to(where) for x in bundle.fixed())
        for _ in range(int(steps)):
            state = bundle.step.step(state, fixed, interpreter)
        final = {name: x.cpu() for name, x in state.items()}
        root = bundle.step.state_root(final).hex()
        print(json.dumps({"root": root, "metrics": metrics(final)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
