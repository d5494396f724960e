"""CPU and CUDA have the same bits, from single kernels to whole trainings. Skipped without a GPU."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
import torch

from benchmarks.cuda.models import MODELS, SEED, Model
from protocol.commitments import tensor_root
from protocol.execution.device import DeviceExecutor
from protocol.execution.replay import Work, honest_executor
from protocol.lanes import lanes
from protocol.numerics.cuda import hashing
from protocol.numerics.kernels import fused_dispatch, fused_self_test
from protocol.numerics.kernels.dispatch import KERNELS
from protocol.numerics.kernels.fused_digests import DIGESTS
from protocol.numerics.kernels.self_test import failure_of_widths
from protocol.numerics.self_check import self_check
from protocol.numerics.types import DType, to_bytes
from protocol.program import Interpreter, trace
from protocol.program.library import CATALOGUE, kernels
from protocol.program.library.function import hints
from protocol.program.library.lanes import BLOCKS
from protocol.program.step import State
from tests.gpu.interpreted import bits
from tests.gpu.lane_calls import calls
from tests.unit.library.cases import CASES, FILLS, Case, operands
from tests.unit.program.random_programs import random_inputs, random_program

pytestmark = pytest.mark.gpu

STEPS = 5


def test_the_device_checks_itself(cuda: torch.device) -> None:
    self_check(cuda)


@pytest.mark.parametrize("px", [13, 20])
@pytest.mark.parametrize("py", [13, 20])
@pytest.mark.parametrize("name", ["int8-triton", "int8-mm", "float64"])
def test_products(cuda: torch.device, name: str, px: int, py: int) -> None:
    (kernel,) = (kernel for kernel in KERNELS if kernel.name == name)
    if not kernel.available(cuda):
        pytest.skip(f"{name} does not run here")
    assert failure_of_widths(kernel, cuda, px, py) is None


@pytest.mark.usefixtures("triton")
def test_functions_pass_their_self_test(cuda: torch.device) -> None:
    functions = fused_dispatch.cuda_functions(None)
    assert functions is not None
    assert fused_self_test.digests_of(functions, cuda) == DIGESTS


@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_library_functions(cuda: torch.device, case: Case, fill: str) -> None:
    function = CATALOGUE[case.function]
    program, kernel = function.program(case.operands, case.attributes), function.kernel(case.attributes)
    given = operands(case, fill, 0)
    here, there = kernel(given), kernel([x.to(cuda) for x in given])
    for type_, a, b in zip(program.outputs, here, there, strict=True):
        assert to_bytes(a, type_.dtype) == to_bytes(b, type_.dtype)


@pytest.mark.parametrize("block", BLOCKS)
def test_lane_functions_at_the_edges(cuda: torch.device, block: int) -> None:
    for call in calls(block):
        run = CATALOGUE[call.function].kernel(call.attributes)
        there = run([x.to(cuda) for x in call.operands])
        assert [bits(x.cpu()) for x in there] == [bits(x) for x in run(call.operands)], call.name


@pytest.mark.parametrize("block", BLOCKS)
def test_rounds_of_lanes(cuda: torch.device, block: int, caplog: pytest.LogCaptureFixture) -> None:
    """Each program of a round runs several times, so that it is recorded and replayed."""
    job = lanes(MODELS[0].build(STEPS), width=3, density=Fraction(1, block), inner_steps=1)
    job.captured.step(job.captured.initial_state(SEED))
    caplog.clear()  # messages from the self-tests of the CPU's kernels
    here: State = job.initial_state(SEED, 1)
    for step in (job.inner, job.emit, job.absorb):
        inbox = [*job.nothing(), *job.message(here), *job.nothing()]
        fixed = {job.inner: job.captured.fixed, job.emit: (), job.absorb: tuple(inbox)}[step]
        work = Work(1, step, fixed, kernels(step.program, hints(step.program)))
        plain, ours, there = honest_executor(work), DeviceExecutor(work, cuda), here
        for number in range(1, STEPS + 1):
            here, there = plain.step(here, number), ours.step(there, number)
            assert step.state_root({name: x.cpu() for name, x in there.items()}) == step.state_root(here)
    assert not [each.getMessage() for each in caplog.records if each.name.startswith("assay")]


@pytest.mark.usefixtures("triton")
@pytest.mark.parametrize("count", [1, 255, 256, 257, 100_003])
def test_roots(cuda: torch.device, count: int) -> None:
    x = torch.sin(torch.arange(count, dtype=torch.float32))
    found = hashing.roots([x.to(cuda)], [DType.F32])
    assert found == [tensor_root(to_bytes(x, DType.F32))]


@pytest.mark.parametrize("seed", range(60))
def test_random_programs(cuda: torch.device, seed: int) -> None:
    r = random.Random(seed)
    program = random_program(r, [random_program(r, [])])
    inputs = random_inputs(program, r)
    there = trace(program, [x.to(cuda) for x in inputs], Interpreter(device=cuda))
    assert there.roots == trace(program, inputs).roots


@pytest.mark.timeout(600)
@pytest.mark.parametrize("graph", [False, True])
@pytest.mark.parametrize("model", MODELS[:-1], ids=lambda model: model.name)
def test_training(cuda: torch.device, model: Model, graph: bool, caplog: pytest.LogCaptureFixture) -> None:
    captured = model.build(STEPS)
    step, found = captured.step_program, kernels(captured.step_program.program, captured.hints)
    state = captured.initial_state(SEED)
    executor = DeviceExecutor(Work(1, step, captured.fixed, found), cuda, graph=graph)
    there: State = state
    for number in range(1, STEPS + 1):
        state = step.step(state, captured.fixed, Interpreter(found))
        there = executor.step(there, number)
        assert step.tensor_roots(there) == step.tensor_roots(state)
    said = [record.getMessage() for record in caplog.records if record.name.startswith("assay")]
    assert not said, "the step was not recorded as a graph, or a kernel was refused"
