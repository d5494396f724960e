"""`python -m tests.toolchain.bare`: import all of capture, program and numerics, train a little, print the
state root.

`test_bare_environment` runs it with only torch, numpy and their dependencies installed.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator, Mapping
from importlib import import_module

import torch
import torch.nn.functional as F
from torch import Tensor, nn

PACKAGES = ("protocol.numerics", "protocol.program", "protocol.capture")
MODULES = ("protocol.commitments", "protocol.execution.device", "protocol.execution.replay")
TRITON = "protocol.numerics.cuda.device."
"""Prefix of the modules that Triton compiles. They need Triton, so they are not imported here."""
STEPS = 3


def modules() -> Iterator[str]:
    """Yields the name of each module that must be importable with torch and numpy alone."""
    yield from MODULES
    for package in PACKAGES:
        path = import_module(package).__path__
        for found in pkgutil.walk_packages(path, package + "."):
            if not found.name.startswith(TRITON) and not found.name.endswith("._native"):
                yield found.name


def root() -> str:
    """State root of a small model after some steps, in hexadecimal digits."""
    from protocol.capture import capture

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(12, 24), nn.GELU(), nn.LayerNorm(24), nn.Linear(24, 5))
    generator = torch.Generator().manual_seed(1)
    data = {
        "x": torch.randn(40, 12, generator=generator),
        "y": torch.randint(5, (40,), generator=generator),
    }
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    captured = capture(model, objective, optimizer, data, batch_size=8, steps=STEPS)
    state: Mapping[str, Tensor] = captured.initial_state(seed=1)
    for _ in range(STEPS):
        state = captured.step(state)
    return captured.step_program.state_root(state).hex()


def objective(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
    """Cross-entropy."""
    return F.cross_entropy(model(batch["x"]), batch["y"])


if __name__ == "__main__":
    for name in modules():
        import_module(name)
    print(root())
