"""Measures a traced step of an 11M-parameter GPT on 2,048 tokens. A dispute about a step begins with a trace
of it.

The measurement runs in a separate process, because a process's peak memory never decreases.
"""

from __future__ import annotations

import json
import subprocess
import sys

import torch

from benchmarks.measure import Row, in_use, seconds
from examples import gpt
from protocol.capture import capture
from protocol.program.execute import Interpreter
from protocol.program.library import kernels

SHAPE = gpt.Shape(layers=6, heads=6, width=384, context=256)
BATCH = 8  # 8 x 256 = 2,048 tokens
GIBIBYTE = 1 << 30


def rows() -> list[Row]:
    """Rows with the seconds and peak memory of the trace, and the seconds of the step without a trace."""
    run = subprocess.run([sys.executable, "-m", __name__], capture_output=True, text=True, check=True)
    found = json.loads(run.stdout)
    what = f"traced step, 11M GPT, 2,048 tokens, {found['values'] / GIBIBYTE:.1f} GiB of values"
    time, memory = (
        f"{found['trace']:.1f} s (a step {found['step']:.1f} s)",
        f"{found['peak'] / GIBIBYTE:.1f} GiB",
    )
    return [Row(what, time, "90 s"), Row(f"{what}, peak memory", memory, "12 GiB")]


def measure() -> dict[str, float]:
    """Seconds of a step and of its trace, bytes of the trace's values, and peak memory in bytes."""
    model = gpt.make_model(SHAPE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.1)
    text = gpt.corpus(SHAPE.context)
    step = capture(model, gpt.objective, optimizer, text, batch_size=BATCH, steps=10, clip_norm=1.0)
    program = step.step_program.program
    interpreter = Interpreter(kernels(program, step.hints))
    state = step.step(step.initial_state(1))  # the first step also self-tests kernels
    return {
        "step": seconds(lambda: step.step(state)),
        "trace": seconds(lambda: step.step_program.trace(state, step.fixed, interpreter)),
        "values": sum(type_.nbytes for made in program.instructions for type_ in made.results),
        "peak": in_use("VmHWM"),
    }


if __name__ == "__main__":
    print(json.dumps(measure()))
