"""Steps have the same bits whatever default type and device the caller has given torch.

A process may have called `torch.set_default_dtype` or `torch.set_default_device` for its own tensors. Kernels
write f32 to memory of the CPU, so results must never have the default's type or device.
"""

from __future__ import annotations

import ast
import hashlib
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from protocol.capture import capture
from protocol.numerics import operations
from protocol.numerics.kernels import native
from protocol.numerics.kernels.convolution import Convolution
from protocol.numerics.kernels.convolution_shape_classes import FORWARD, convolution_call
from protocol.numerics.kernels.fused import FUSED, Map, Pair
from protocol.numerics.sums import sum_f32
from protocol.numerics.types import DType, NumericsError
from protocol.program.execute import Interpreter
from protocol.program.library import CATALOGUE, fusions, hints, kernels
from tests.unit.library.cases import CASES, FILLS, operands
from tests.unit.library.test_attention_in_programs import WIDTHS, backward_program

ROOT = Path(__file__).parents[3]
DEFAULTS = ("float32", "float64", "bfloat16", "meta")
"""Default types, and a device on which every mistake is an error."""


def set_default(name: str) -> None:
    """Give torch a default type, or a default device."""
    if name == "meta":
        torch.set_default_device(name)
    else:
        torch.set_default_dtype(getattr(torch, name))


def main(default: str) -> None:
    """Print a digest of each kernel's results under a default.

    The operands are made before the default is set. Products and functions are tested and run for the first
    time after it is set.
    """
    calls = [(case, operands(case, FILLS[0], 1)) for case in CASES]
    program = backward_program(WIDTHS)
    attended = [torch.randn(x.shape, generator=torch.Generator().manual_seed(1)) for x in program.inputs]
    x, condition = torch.linspace(-1, 1, 20_000), torch.arange(20_000) % 3 == 0
    set_default(default)
    found = {str(case): CATALOGUE[case.function].kernel(case.attributes)(given) for case, given in calls}
    found["attention"] = Interpreter(kernels(program, hints(program)), fuse=fusions).run(program, attended)
    found["select"] = (
        operations.select(condition, x, x.neg()),
        sum_f32(x),
        operations.lt(x, x.neg(), DType.F32),
    )
    for name, results in found.items():
        print(name, digest(results))


def train(default: str, early: bool) -> None:
    """Print two roots: the root of the README's step, and the root of the state after three steps. The three
    steps run under a default. If `early`, the step is captured under the default too.
    """
    bits = torch.arange(4096)[:, None] >> torch.arange(12) & 1
    data = {"x": bits.float(), "y": bits.sum(1)}
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 13))
    adam = torch.optim.AdamW(model.parameters(), lr=0.01)

    def loss(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
        return nn.functional.cross_entropy(model(batch["x"]), batch["y"])

    if early:
        set_default(default)
    step = capture(model, loss, adam, data, batch_size=64, steps=200)
    set_default(default)
    state = step.initial_state(seed=1)
    for _ in range(3):
        state = step.step(state)
    print(step.root.hex(), step.step_program.state_root(state).hex())


def digest(results: Sequence[Tensor]) -> str:
    """A digest of the results' types, shapes and bytes."""
    found = hashlib.sha256()
    for x in results:
        found.update(f"{x.dtype} {list(x.shape)}".encode())
        found.update(x.contiguous().numpy().tobytes())
    return found.hexdigest()[:16]


def printed(call: str) -> str:
    """What a call of this module prints in a separate process, which must give no warning."""
    code = f"from tests.unit.library.test_torch_defaults import *; {call}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def expected() -> tuple[str, str]:
    return printed("main('float32')"), printed("train('float32', False)")


@pytest.mark.parametrize("default", DEFAULTS[1:])
def test_kernels_and_steps_have_the_same_bits(default: str, expected: tuple[str, str]) -> None:
    assert printed(f"main({default!r})").splitlines() == expected[0].splitlines()
    assert printed(f"train({default!r}, False)") == expected[1]


@pytest.mark.parametrize("default", ["float64", "bfloat16"])
def test_a_step_that_is_captured_under_another_default_is_the_same(
    default: str, expected: tuple[str, str]
) -> None:
    assert printed(f"train({default!r}, True)") == expected[1]


FACTORIES = (
    "empty",
    "zeros",
    "ones",
    "full",
    "tensor",
    "arange",
    "rand",
    "randn",
    "randint",
    "linspace",
    "eye",
)
RUNS = ("protocol/numerics", "protocol/program", "protocol/execution")


def test_whatever_runs_a_step_names_the_device_of_new_tensors_and_the_type_of_numbers() -> None:
    wrong = []
    for file in sorted(path for folder in RUNS for path in (ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name(id="torch"), attr=made)) if made in FACTORIES:
                    named = {keyword.arg for keyword in node.keywords}
                    whole = made in (
                        "arange",
                        "randint",
                        "tensor",
                    )  # whole numbers are int64 under any default
                    if not named >= ({"device"} if whole else {"device", "dtype"}):
                        wrong.append(f"{file.relative_to(ROOT)}:{node.lineno}")
    assert not wrong


@pytest.mark.skipif(not FUSED[-1].available(), reason="the library is not built")
def test_what_the_library_would_read_otherwise_is_refused() -> None:
    fused, x, wide = FUSED[-1], torch.ones(4, 8), torch.ones(4, 8, dtype=torch.float64)
    call = convolution_call(FORWARD, (1, 1, 4, 4), (1, 1, 4, 4), 1, CONV)
    calls: tuple[Callable[[], object], ...] = (
        lambda: fused.map(Map.EXP, wide),
        lambda: fused.map(Map.SILU_GRAD, x, x[0]),
        lambda: fused.pair(Pair.ADD, x, x[0]),
        lambda: fused.select(x > 0, x, x[0]),
        lambda: fused.select(x, x, x),
        lambda: fused.softmax_grad(x, x[:2]),
        lambda: fused.layer_norm(x, x[0, :3], None, 1e-5),
        lambda: fused.layer_norm_grad(x, x, x[:3, :1], x[:, :1], None),
        lambda: fused.adamw((x, x, x, x[0]), (0.1,) * 7),
        lambda: fused.sgd((x, x, x[0]), 0.1, 0.0),
        lambda: fused.lstm_cell((x, x, x[:, :3]), (torch.ones(4, 8), torch.ones(4, 2), torch.ones(4, 2))),
        lambda: fused.emit((torch.ones(130),) * 3, 1, 0.9, 1.0),
        lambda: fused.scatter_sum(torch.zeros(3, dtype=torch.int32), x, 4),
        lambda: fused.scatter_sum(torch.zeros(4, dtype=torch.int64), x, 4),
        lambda: fused.canonical_in_place(x.mT),
        lambda: Convolution("baseline").run(call, torch.ones(1, 1, 1, 1), torch.ones(1, 1, 3, 4)),
        lambda: Convolution("baseline").run(call, torch.ones(1, 1, 2, 1), torch.ones(1, 1, 4, 4)),
        lambda: native.address(torch.ones(2, device="meta")),
    )
    for refused in calls:
        with pytest.raises(NumericsError, match="expected"):
            refused()


CONV = {
    f"{name}_{axis}": value
    for name, value in (("kernel", 1), ("stride", 1), ("padding", 0), ("dilation", 1))
    for axis in "yx"
}
