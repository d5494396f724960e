"""On a CUDA device: exact products beside float32's three ways, and a GPT's step beside plain torch's.

Ratios like everywhere, and the speed itself in TFLOP/s of the float product, 2 M N K. No rows where there is no device.
A round ends when the device is done, so nothing that merely queues work looks fast. Never run so far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import torch
from torch import Tensor

from benchmarks.gpt import TOKENS, captured
from benchmarks.measure import Action, Row, middle, ratio_row, seconds, side_by_side
from examples import gpt
from protocol.execution.device import DeviceExecutor
from protocol.execution.replay import Work
from protocol.numerics.contract import contract
from protocol.numerics.kernels.dispatch import KERNELS, kernel_for
from protocol.program.library import kernels
from protocol.program.step import State

SHAPES = (
    ("11M GPT, hidden layer", 1, 2048, 1536, 384),
    ("11M GPT, weight gradient", 1, 1536, 384, 2048),
    ("11M GPT, scores", 48, 256, 256, 64),
    ("square", 1, 4096, 4096, 4096),
    ("square", 1, 8192, 8192, 8192),
)
"""(name, batch, M, N, K)."""
PAIRS = ((13, 13), (20, 13), (20, 20))
ROUNDS, STEP_ROUNDS = 15, 31
SIZE, GOAL = "11M", "0.35x"
"""Exact step / plain float32 (`highest`) step on an H200."""


def rows() -> list[Row]:
    """Products, each kernel beside the others, then the step with and without a CUDA graph."""
    if not torch.cuda.is_available():
        return []
    device = torch.device("cuda")
    found = [row for shape in SHAPES for row in _products(device, *shape)]
    return [*found, *_kernels(device), *_steps(device)]


def _products(device: torch.device, name: str, batch: int, m: int, n: int, k: int) -> list[Row]:
    x, y = _operands(device, batch, m, n, k)
    plain = {
        "float32 highest": partial(_product, x, y, "highest"),
        "TF32": partial(_product, x, y, "high"),
        "bf16": partial(torch.matmul, x.bfloat16(), y.mT.bfloat16()),
    }
    found, what = [], f"{name}, {batch} x {m} x {n} x {k}"
    for px, py in PAIRS:
        exact = partial(contract, x, y, px, py)
        ratios = side_by_side(_done(exact), {key: _done(action) for key, action in plain.items()}, ROUNDS)
        kernel = kernel_for(device, px, py).name
        found += [ratio_row(f"{px} x {py} bits ({kernel}) / {key}: {what}", r) for key, r in ratios.items()]
        found.append(_speed(f"{px} x {py} bits ({kernel}): {what}", exact, 2 * batch * m * n * k))
    return found


def _kernels(device: torch.device) -> list[Row]:
    """Every product kernel beside the one that the order puts first: what the order should be."""
    found = []
    for name, batch, m, n, k in SHAPES[:-1]:
        x, y = _operands(device, batch, m, n, k)
        for px, py in PAIRS:
            first = kernel_for(device, px, py)
            others = {
                kernel.name: kernel for kernel in KERNELS if kernel.available(device) and kernel is not first
            }
            actions = {key: _done(partial(other.contract, x, y, px, py)) for key, other in others.items()}
            ratios = side_by_side(_done(partial(first.contract, x, y, px, py)), actions, 5)
            what = f"{px} x {py} bits, {name}, {batch} x {m} x {n} x {k}"
            found += [ratio_row(f"{first.name} / {key}: {what}", r) for key, r in ratios.items()]
    return found


def _steps(device: torch.device) -> list[Row]:
    step = captured(SIZE)
    work = Work(1, step.step_program, step.fixed, kernels(step.step_program.program, step.hints))
    found = []
    plain = {name: _done(_plain_step(device, name)) for name in ("highest", "high", "bf16")}
    called = {"highest": "float32 (highest)", "high": "TF32", "bf16": "bf16 autocast"}
    for graph in (True, False):
        run = _Exact(DeviceExecutor(work, device, graph=graph), step.initial_state(seed=1))
        for _ in range(4):  # kernels are tried and compiled, the step is recorded
            run()
        how = "in a CUDA graph" if graph else "kernel by kernel"
        for name, ratios in side_by_side(_done(run), plain, STEP_ROUNDS).items():
            what = f"exact step {how} / plain {called[name]} step, GPT of 10.8M, {TOKENS} tokens, CUDA"
            found.append(ratio_row(what, ratios, GOAL if graph and name == "highest" else ""))
    return found


class _Exact:
    """One exact step after another; the state stays on the device."""

    def __init__(self, executor: DeviceExecutor, state: State) -> None:
        self._executor, self._state, self._number = executor, state, 0

    def __call__(self) -> None:
        self._number += 1
        self._state = self._executor.step(self._state, self._number)


def _plain_step(device: torch.device, precision: str) -> Callable[[], None]:
    """The same model's step in eager torch with fused AdamW, data on the device."""
    shape = gpt.Shape(6, 6, 384, 256, dropout=0.0)
    data, batch = gpt.corpus(shape.context)["bytes"].to(device), TOKENS // shape.context
    model = gpt.make_model(shape).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1, fused=True)
    generator = torch.Generator(device).manual_seed(1)

    def plain() -> None:
        chosen = torch.randint(len(data), (batch,), generator=generator, device=device)
        with _precision(precision), torch.autocast("cuda", torch.bfloat16, enabled=precision == "bf16"):
            loss = gpt.objective(model, {"bytes": data[chosen]})
        with _precision(precision):
            optimizer.zero_grad()
            loss.backward()
        optimizer.step()

    return plain


def _speed(what: str, action: Action, operations: int) -> Row:
    """TFLOP/s, of the float product whose place it takes."""
    run = _done(action)
    run()
    found, spread = middle([operations / seconds(run) / 1e12 for _ in range(ROUNDS)])
    return Row(what, f"{found:.1f} TFLOP/s", "", spread)


def _operands(device: torch.device, batch: int, m: int, n: int, k: int) -> tuple[Tensor, Tensor]:
    g = torch.Generator().manual_seed(0)
    x, y = torch.randn(batch, m, k, generator=g), torch.randn(batch, n, k, generator=g)
    return x.to(device), y.to(device)


def _product(x: Tensor, y: Tensor, precision: str) -> Tensor:
    with _precision(precision):
        return torch.matmul(x, y.mT)


@contextmanager
def _precision(name: str) -> Iterator[None]:
    """float32 products as `torch.set_float32_matmul_precision` has them; bf16 leaves them as they are."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest" if name == "bf16" else name)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def _done(action: Action) -> Action:
    """The action, and the wait until the device has done it."""

    def run() -> None:
        action()
        torch.cuda.synchronize()

    return run
