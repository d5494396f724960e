"""Libraries that put the processor into a mode in which it flushes subnormals or rounds differently. They do
so before or after the self-test.

A step in such a mode would not fail visibly. But small gradients would become zero, the checkpoints would be
false, and the stake would be lost. So no step is run or traced in such a mode. Each thread has its own mode,
so the mode may be wrong in a single thread of a pool. The compiled library always computes in the right mode,
whatever the mode of the calling thread.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import math
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from functools import cache

import pytest
import torch

from protocol.execution.replay import HonestExecutor
from protocol.numerics.errors import SelfCheckError
from protocol.numerics.kernels import attention, attention_self_test, convolution_self_test, dispatch
from protocol.numerics.kernels.attention_shape_classes import Kind, Plan
from protocol.numerics.kernels.channels import Channels
from protocol.numerics.kernels.compiled import int8_amx, int16
from protocol.numerics.kernels.convolution import Convolution
from protocol.numerics.kernels.convolution_shape_classes import AT_INPUT, AT_WEIGHT, FORWARD, ConvolutionCall
from protocol.numerics.kernels.fused import FUSED, Map
from protocol.numerics.self_check import require_mode, self_check
from protocol.numerics.types import DType
from protocol.program.builder import Builder
from protocol.program.execute import Interpreter
from protocol.program.step import StepProgram
from protocol.program.types import TensorType

TINY = 2.0**-149


@pytest.fixture
def flushing() -> Iterator[None]:
    self_check()
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor always keeps subnormals")
    yield
    torch.set_flush_denormal(False)


@pytest.fixture
def executor() -> HonestExecutor:
    b = Builder("halves")
    b.output(b.mul(b.input(TensorType(DType.F32, (4,))), b.constant(DType.F32, (), 1.0)))
    return HonestExecutor(StepProgram(b.build(), ("x",), datasets=0, constants=0), (), Interpreter())


@pytest.mark.usefixtures("flushing")
def test_no_step_is_run_or_traced_with_subnormals_flushed(executor: HonestExecutor) -> None:
    with pytest.raises(SelfCheckError, match="flush-to-zero"):
        executor.step({"x": torch.full((4,), TINY)}, 1)
    with pytest.raises(SelfCheckError, match="flush-to-zero"):
        executor.trace({"x": torch.full((4,), TINY)}, 1)


def test_a_step_keeps_subnormals_for_any_number_of_threads(executor: HonestExecutor) -> None:
    before = torch.get_num_threads()
    try:
        for threads in (1, 3, 2):
            torch.set_num_threads(threads)
            require_mode()
            (x,) = executor.step({"x": torch.full((4,), TINY)}, 1).values()
            assert torch.equal(x, torch.full((4,), TINY))
    finally:
        torch.set_num_threads(before)


NATIVE = [
    kernel
    for kernel in (int8_amx(), *map(int16, ("avx512vnni", "avx2", "baseline", "portable")))
    if kernel.available(torch.device("cpu"))
]
SMALL = 2.0**-70
"""A number whose square is subnormal: 2^9 times the least subnormal."""
UPWARD = {"x86_64": 0x800, "aarch64": 0x400000}
"""The value of FE_UPWARD in fenv.h, by architecture."""


PRODUCT = torch.full((256, 3), SMALL)
PRODUCT[:, 1:] = 2.0**-75  # 2^-140 + 2^-149: the sum of 2^-140 and twice 2^-150
LINE = torch.linspace(-1.5, 1.5, 1 << 17)
BELOW = LINE - 89.0
"""Inputs of the sigmoid: all are below -87.3, so the results are subnormal."""


CONVOLUTIONS = [
    ConvolutionCall(kind, 6, 1, 5, 14, (8, 8), (8, 8), (3, 3), (1, 1), (1, 1), (1, 1), bits, False, 2)
    for kind, bits in ((FORWARD, (13, 13)), (AT_INPUT, (13, 13)), (AT_WEIGHT, (20, 13)))
]
ATTENTION = Plan(
    *(130, 130, 8, 8, (13, 13), (20, 20), (13, 13), (20, 20), (20, 20), (20, 20)),
    changes=((Kind.TIMES, 0.375), (Kind.FILL_TRUE, -math.inf)),
    back=((Kind.FILL_TRUE, 0.0), (Kind.TIMES, 0.375)),
)
"""A call of attention. Its constants are exact in f32. If they were not, Python would round them in the
caller's mode before the library gets them.
"""
WHOLE, TWICE = 1 << 22, 1


@cache
def layers() -> tuple[attention.Backward, list[torch.Tensor], torch.Tensor, torch.Tensor]:
    """Operands of attention, convolutions and batch norm, made before any mode is changed."""
    given = attention_self_test.operands(ATTENTION)
    assert isinstance(given, attention.Backward)
    operands = [t for call in CONVOLUTIONS for t in convolution_self_test.operands(call)[:2]]
    return given, operands, LINE.reshape(4, 64, -1), torch.linspace(-1e-20, 3e-20, 64)


def results_of_layers(variant: str) -> list[torch.Tensor]:
    """Results of convolutions, attention and batch norm on the operands of `layers`, by one variant."""
    given, operands, x, vector = layers()
    convolution, channels = Convolution(variant), Channels(variant)
    found = [convolution.run(call, *operands[2 * k : 2 * k + 2]) for k, call in enumerate(CONVOLUTIONS)]
    for whole in (WHOLE, TWICE):
        chain = attention.Fused(variant, whole)
        found += [chain.forward(given.forward), *chain.backward(given)]
    found += [*channels.statistics(x, 2.0**-17), *channels.sums(x, x, vector, vector)]
    found.append(channels.normalise(x, vector, vector, vector, vector))
    found.append(channels.grad(x, x, (vector, vector), (vector, vector), vector))
    return [t.contiguous() for t in found]


def own_results() -> list[torch.Tensor]:
    """The bits of the results of every compiled kernel that is available. On the operands used, many results
    are subnormal or must be rounded.
    """
    x, y = PRODUCT, LINE
    found = [kernel.contract(x, x, 20, 20) for kernel in NATIVE]
    found += [kernel.contract(x.expand(9, 256, 3), x, 13, 13, bias=x[:, 0].contiguous()) for kernel in NATIVE]
    for fused in FUSED:
        if fused.available():
            found += [
                fused.map(Map.TANH, y),
                fused.map(Map.SILU_GRAD, y, y),
                fused.softmax(y.reshape(512, -1), False),
            ]
            found.append(fused.map(Map.SIGMOID, BELOW))
            found += results_of_layers(fused.name.removeprefix("fused-"))
    return [t.view(torch.int32).clone() for t in found]


@pytest.fixture
def rounding_upward() -> Iterator[None]:
    libm = ctypes.CDLL(ctypes.util.find_library("m"))
    if platform.machine() not in UPWARD:
        pytest.skip("the number of this rounding mode is not known here")
    self_check()
    before = libm.fegetround()
    assert libm.fesetround(UPWARD[platform.machine()]) == 0
    yield
    assert libm.fesetround(before) == 0


@pytest.fixture
def right_results() -> list[torch.Tensor]:
    if not NATIVE:
        pytest.skip("no compiled library: set-up found no C++ compiler with OpenMP")
    return own_results()


@pytest.mark.usefixtures("rounding_upward")
def test_no_step_is_run_under_another_rounding(executor: HonestExecutor) -> None:
    with pytest.raises(SelfCheckError, match="rounding to nearest even"):
        executor.step({"x": torch.full((4,), TINY)}, 1)


def test_the_compiled_kernels_keep_their_bits_with_subnormals_flushed(
    right_results: list[torch.Tensor],
) -> None:
    assert any(bool(((t & 0x7F800000 == 0) & (t & 0x7FFFFF != 0)).any()) for t in right_results)
    assert torch.set_flush_denormal(True)
    try:
        found = own_results()
    finally:
        torch.set_flush_denormal(False)
    assert all(torch.equal(a, b) for a, b in zip(found, right_results, strict=True))


def test_the_compiled_kernels_keep_their_bits_under_another_rounding(
    right_results: list[torch.Tensor], request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue("rounding_upward")
    found = own_results()
    assert all(torch.equal(a, b) for a, b in zip(found, right_results, strict=True))
    with pytest.raises(SelfCheckError):  # the caller's mode is unchanged
        require_mode()


def in_a_process(code: str, **environment: str) -> tuple[str, str]:
    """Run code in a new process, which must succeed; returns its output and its error output."""
    head = "import logging, torch; logging.basicConfig(format='%(message)s')\n"
    command = [sys.executable, "-c", head + code]
    run = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )
    assert run.returncode == 0, run.stderr
    return run.stdout, run.stderr


WORKER = """
torch.set_num_threads(1)  # no second thread yet
from protocol.numerics.errors import SelfCheckError
from protocol.numerics.self_check import require_mode, self_check
from tests.attacks.test_floating_point_mode import own_results
self_check()
right = own_results()
torch.set_flush_denormal(True)
torch.set_num_threads(2)
torch.ones(1 << 20) * 2.0  # the second thread begins here, and keeps for ever what it begins with
torch.set_flush_denormal(False)
small = torch.full((1 << 20,), 2.0**-149) * 1.0
print(bool((small == 0).any()), bool((small != 0).any()))
for check in (require_mode, self_check):
    try:
        check()
        print("passed")
    except SelfCheckError as error:
        print("refused" if "flush" in str(error) else error)
print(all(torch.equal(a, b) for a, b in zip(right, own_results(), strict=True)))
"""


def test_a_worker_thread_alone_in_the_wrong_mode_is_found() -> None:
    """Only the pool's second thread flushes subnormals: `require_mode` and `self_check` both refuse, but the
    bits of the compiled library are right.
    """
    out, _ = in_a_process(WORKER)
    first, *rest = out.splitlines()
    if first != "True True":
        pytest.skip("threads here do not begin with the mode of the thread that starts them")
    assert rest == ["refused", "refused", "True"]


BEFORE = """
torch.set_flush_denormal(True)
from protocol.numerics.contract import contract
from protocol.numerics.kernels.dispatch import NoKernel
from protocol.numerics.errors import SelfCheckError
from protocol.numerics.self_check import self_check
x = torch.full((3, 200), 2.0**-70)
try:
    for _ in range(2):
        print(hex(contract(x, x, 13, 13).view(torch.int32)[0, 0].item()))
except NoKernel as error:
    print("none:", error)
try:
    self_check()
except SelfCheckError as error:
    print("refused:", error)
"""


def test_a_kernel_that_flushes_is_passed_over_and_a_party_refuses() -> None:
    if not NATIVE:
        pytest.skip("no compiled library: set-up found no C++ compiler with OpenMP")
    out, log = in_a_process(BEFORE, **{dispatch.VARIABLE: f"float64,{NATIVE[0].name}"})
    first, second, refusal = out.splitlines()
    assert first == second == hex(200 << 9)  # 200 * 2^-140 in units of 2^-149
    assert refusal.startswith("refused: subnormals flushed to zero on cpu")
    assert log.count("product kernel float64 is not used on cpu") == 1


def test_without_a_kernel_that_keeps_subnormals_nothing_is_computed() -> None:
    out, log = in_a_process(BEFORE, **{dispatch.VARIABLE: "float64,int8"})
    none, refusal = out.splitlines()
    assert none.startswith(
        "none: expected one product kernel with exact bits on cpu, got none (float64: a rounded result"
    )
    assert refusal.startswith("refused: ")
    assert log.count("float64 is not used") == log.count("int8 is not used") == 1
