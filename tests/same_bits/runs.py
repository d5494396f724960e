"""The models to train, and the process settings to train them under."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from examples import digits, gpt, resnet
from protocol.capture import CapturedStep
from protocol.numerics.kernels.compiled import Compiled
from protocol.numerics.kernels.dispatch import FUNCTIONS, KERNELS
from protocol.numerics.kernels.native import variants

ROOT = Path(__file__).parents[2]
SEED = 20261120

THREADS = ("1", "2")
CAPABILITY = ("default", "avx2", "avx512")
"""`ATEN_CPU_CAPABILITY`: the instructions of torch's own loops."""
ONEDNN = ("SSE41", "AVX2", "AVX512_CORE", "AVX512_CORE_VNNI")
"""`ONEDNN_MAX_CPU_ISA`: the instructions of integer products."""
PRODUCTS = ("", "float64")
"""`ASSAY_KERNELS`: "" for the best kernels that are compiled for this machine; "float64" for float64 products
and eager torch.
"""


@dataclass(frozen=True)
class Model:
    """A model. The full matrix trains it for `steps` steps, the quick matrix for `quick_steps`."""

    name: str
    build: Callable[[int], CapturedStep]
    steps: int
    quick_steps: int

    def write(self, folder: Path) -> Path:
        """Capture the model for `steps` steps and write its bundle to `folder`; returns `folder`."""
        # Imported here because it needs pydantic, which the tests on CUDA do without.
        from protocol.tasks.bundles import Bundle, write_bundle

        captured = self.build(self.steps)
        write_bundle(Bundle.of(self.name, captured, captured.initial_state(SEED)), folder)
        return folder


MODELS = {
    model.name: model
    for model in (
        Model("mlp", digits.build, 1_000, 20),
        Model("gpt", gpt.build, 300, 4),
        Model("resnet", resnet.build, 50, 2),
    )
}


@dataclass(frozen=True)
class Machine:
    """A value for each setting that selects instructions. If the processor lacks an instruction set, an older
    one is used.
    """

    threads: str = "2"
    capability: str = "avx512"
    onednn: str = "AVX512_CORE_VNNI"
    products: str = ""

    def __str__(self) -> str:
        return f"{self.threads}-{self.capability}-{self.onednn}-{self.products or 'best'}"

    def environment(self) -> dict[str, str]:
        """Environment variables of the process."""
        return {
            "OMP_NUM_THREADS": self.threads,
            "MKL_NUM_THREADS": self.threads,
            "OMP_WAIT_POLICY": "PASSIVE",  # runs are concurrent: a spinning thread takes another's core
            "ATEN_CPU_CAPABILITY": self.capability,
            "ONEDNN_MAX_CPU_ISA": self.onednn,
            "ASSAY_KERNELS": self.products,
        }


OTHER_KERNELS = tuple(
    Machine(products=kernel.name)
    for kernel in KERNELS
    if kernel.available(torch.device("cpu")) and kernel.name not in PRODUCTS
)
"""One `Machine` for each product kernel that this computer's CPU runs, except float64. It has that kernel's
products and no compiled functions. The default kernel is included.
"""
WITH_FUNCTIONS = tuple(
    Machine(products=f"{kernel.name},fused-{kernel.others}")
    for kernel in KERNELS
    if isinstance(kernel, Compiled) and kernel.variant in variants() and f"fused-{kernel.others}" in FUNCTIONS
)
"""One `Machine` for each instruction set, with all kernels of that set: products, functions, attention,
convolutions.
"""
MANY_THREADS = tuple(Machine(threads=count) for count in ("5", "8", "16"))
"""Machines with more threads than the tests' computers have cores, so that work is divided differently."""
FEW = (
    Machine(),
    Machine("8"),
    Machine("1", "avx512", "AVX512_CORE", "int16-avx2"),
    Machine("2", "avx2", "AVX2", "int16-baseline"),
    Machine("1", "default", "SSE41", "int16-portable"),
    Machine("1", "avx2", "AVX512_CORE_VNNI", "int8"),
    *WITH_FUNCTIONS[1:2],
)
"""Machines that together have every value of every setting, with one exception: none has "float64" as its
`products`. The runs that these machines are compared with have that value. If this computer has second-best
kernels of every kind, one more machine has them.
"""


def all_machines() -> list[Machine]:
    """Machines that together have every combination of values of any three of the four settings; and all of
    `OTHER_KERNELS`, `WITH_FUNCTIONS` and `MANY_THREADS`.

    The values of each setting are numbered. Half of all combinations are taken: those whose numbers have an
    even sum. Each setting has values with even numbers and values with odd ones. So whatever the values of
    three settings are, the fourth has a value that makes the sum even.
    """
    numbered = itertools.product(*map(enumerate, (THREADS, CAPABILITY, ONEDNN, PRODUCTS)))
    settings = [[value for _, value in chosen] for chosen in numbered if not sum(n for n, _ in chosen) % 2]
    return [*(Machine(*setting) for setting in settings), *OTHER_KERNELS, *WITH_FUNCTIONS, *MANY_THREADS]


def train(bundle: Path, steps: int, machine: Machine, mode: str = "kernels", device: str = "cpu") -> Result:
    """Train from one bundle for `steps` steps in a separate process."""
    (found,) = train_all([(bundle, steps)], machine, mode, device)
    return found


def train_all(
    runs: Sequence[tuple[Path, int]], machine: Machine, mode: str = "kernels", device: str = "cpu"
) -> list[Result]:
    """Train from each bundle for its number of steps, one run after another in one separate process."""
    each = [str(part) for run in runs for part in run]
    command = [sys.executable, "-m", "tests.same_bits.train", mode, device, *each]
    environment = {**os.environ, **machine.environment()}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return [Result(one["root"], one["metrics"]) for one in found]


@dataclass(frozen=True)
class Result:
    """The root of a run's final state, and the run's metrics."""

    root: str
    metrics: Mapping[str, float]
