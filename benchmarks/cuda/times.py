"""On a CUDA device: compares exact products with products in float32, TF32 and bf16, and a GPT's exact step
with a step of plain torch.

It reports ratios, and speeds in TFLOP/s. A speed counts the 2 M N K operations of the float product, also for
an exact product. `rows` returns no rows without a device. A round ends when the device is done, so that
queued work does not look fast. Exact and float products are replayed from CUDA graphs, so kernel launches are
not measured. Dry runs on the CPU use minimal sizes and only test the code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import cache, partial

import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from benchmarks.cuda.cells import Cells
from benchmarks.gpt import SHAPES as SHAPES_OF_CPUS
from benchmarks.gpt import TOKENS, captured_of
from benchmarks.measure import Action, Row, middle, ratio_row, seconds, side_by_side
from examples import gpt
from protocol.capture import CapturedStep
from protocol.execution.device import DeviceExecutor
from protocol.execution.replay import Work
from protocol.numerics.kernels.base import ProductKernel
from protocol.numerics.kernels.dispatch import KERNELS, kernel_for
from protocol.program.library import kernels
from protocol.program.step import State, StepProgram

Shape = tuple[str, int, int, int, int]
Measurements = Iterable[tuple[str, Callable[[], list[Row]]]]
SHAPES: tuple[Shape, ...] = (
    ("11M GPT, hidden layer", 1, 2048, 1536, 384),
    ("11M GPT, weight gradient", 1, 1536, 384, 2048),
    ("11M GPT, scores", 48, 256, 256, 64),
    ("square", 1, 4096, 4096, 4096),
    ("square", 1, 8192, 8192, 8192),
)
"""(name, batch, M, N, K) of each product."""
PAIRS = ((13, 13), (20, 13), (20, 20))
TINY: tuple[Shape, ...] = (("tiny", 2, 20, 10, 70),)
TINY_GPT = gpt.Shape(1, 2, 16, 256, dropout=0.0)
ROUNDS, STEP_ROUNDS = 7, 21
QUEUED = 10
WARM = 4
PROFILED, LONGEST = 3, 40
"""Number of steps that are profiled, and number of kernels that a profile lists."""
PRECISIONS = {"highest": "float32 (highest)", "high": "TF32", "bf16": "bf16 autocast"}
LARGE = "86M"
SIZES = {**SHAPES_OF_CPUS, LARGE: gpt.Shape(12, 12, 768, 1024, dropout=0.0)}
"""GPT shapes by size. The last shape has the blocks of GPT-2 small, because with smaller models Python's
overhead limits the speed of plain steps.
"""
SIZE = "11M"
GOALS = {SIZE: "0.35x"}
"""Goal for the time of an exact step, relative to that of a plain float32 (`highest`) step, on an H200."""


def rows() -> list[Row]:
    """Rows of steps with and without a CUDA graph, then rows of products, which compare each kernel with float."""
    if not torch.cuda.is_available():
        return []
    device = torch.device("cuda")
    measured = (*_step_rows(device), *_step_rows(device, LARGE), *_product_rows(device))
    return [row for _, action in measured for row in action()]


def step_cells(device: torch.device, size: str = SIZE) -> Cells:
    """Cells of a GPT's step: the kernels in use, the milliseconds of each variant, then ratios."""
    yield "kernels", (lambda: {f"{px} x {py}": kernel_for(device, px, py).name for px, py in PAIRS})
    for name in PRECISIONS:
        plain = partial(_plain_step, device, name, size)
        yield f"plain {PRECISIONS[name]}, ms", partial(_step_ms, device, plain, size)
    for graph in (True, False):
        how = "in a CUDA graph" if graph else "kernel by kernel"
        yield f"exact {how}, ms", partial(_step_ms, device, partial(exact_step, device, graph, size), size)
    yield from _as_json(_step_rows(device, size))


def product_cells(device: torch.device) -> Cells:
    """Each cell measures a matrix product with one kernel, one shape and one pair of operand widths."""
    yield from _as_json(_product_rows(device))


def profile_cells(device: torch.device, size: str = SIZE) -> Cells:
    """Cells with the kernels in which a step spends its time."""
    yield "exact, kernel by kernel", partial(_profile, device, partial(exact_step, device, False, size))
    yield "exact, in a CUDA graph", partial(_profile, device, partial(exact_step, device, True, size))
    yield "plain float32 (highest)", partial(_profile, device, partial(_plain_step, device, "highest", size))


def _as_json(found: Measurements) -> Cells:
    for name, action in found:
        yield name, (lambda action=action: [asdict(row) for row in action()])  # type: ignore[misc]


def _product_rows(device: torch.device) -> Measurements:
    for shape in SHAPES if device.type == "cuda" else TINY:
        for px, py in PAIRS:
            for kernel in KERNELS:
                # On CUDA, `int8` runs the same code as `int8-mm`.
                if kernel.available(device) and not (kernel.name == "int8" and device.type == "cuda"):
                    name = f"{kernel.name}: {px} x {py} bits, {shape[0]}, {'x'.join(map(str, shape[1:]))}"
                    yield name, partial(_product_row, device, kernel, shape, px, py)


def _product_row(device: torch.device, kernel: ProductKernel, shape: Shape, px: int, py: int) -> list[Row]:
    name, batch, m, n, k = shape
    x, y = operands(device, batch, m, n, k)
    plain = {
        "float32 highest": partial(_product, x, y, "highest"),
        "TF32": partial(_product, x, y, "high"),
        "bf16": partial(torch.matmul, x.bfloat16(), y.mT.bfloat16()),
    }
    exact = partial(kernel.contract, x, y, px, py)
    what = f"{name}, {batch} x {m} x {n} x {k}"
    ours = f"{px} x {py} bits ({kernel.name})"
    actions = {key: done(device, recorded(device, action)) for key, action in plain.items()}
    ratios = side_by_side(done(device, recorded(device, exact)), actions, ROUNDS)
    found = [ratio_row(f"{ours} / {key}: {what}", r) for key, r in ratios.items()]
    return [*found, speed(device, f"{ours}: {what}", exact, 2 * batch * m * n * k)]


def _step_rows(device: torch.device, size: str = SIZE) -> Measurements:
    for graph in (True, False):
        how = "in a CUDA graph" if graph else "kernel by kernel"
        yield f"exact {how}, ratios", partial(_step_ratios, device, graph, how, size)


def _step_ratios(device: torch.device, graph: bool, how: str, size: str) -> list[Row]:
    run = exact_step(device, graph, size)
    plain = {name: done(device, _plain_step(device, name, size)) for name in PRECISIONS}
    found = []
    for name, ratios in side_by_side(done(device, run), plain, _rounds(device)).items():
        what = f"exact step {how} / plain {PRECISIONS[name]} step, {_where(device, size)}"
        found.append(ratio_row(what, ratios, GOALS.get(size, "") if graph and name == "highest" else ""))
    return found


def _step_ms(device: torch.device, make: Callable[[], Action], size: str) -> dict[str, object]:
    """Milliseconds of a step, measured until the device is done: the median and the middle half."""
    run = done(device, make())
    for _ in range(WARM):
        run()
    found, spread = middle([1e3 * seconds(run) for _ in range(_rounds(device))])
    return {"what": _where(device, size), "ms": round(found, 3), "middle half": spread}


def _profile(device: torch.device, make: Callable[[], Action]) -> list[dict[str, object]]:
    """The kernels that take the most time, each with its microseconds and its number of calls per step."""
    run = done(device, make())
    for _ in range(WARM):
        run()
    activity = ProfilerActivity.CUDA if device.type == "cuda" else ProfilerActivity.CPU
    with profile(activities=[activity]) as found:
        for _ in range(PROFILED):
            run()
    time = "self_device_time_total" if device.type == "cuda" else "self_cpu_time_total"
    events = sorted(found.key_averages(), key=lambda event: getattr(event, time), reverse=True)
    return [
        {
            "kernel": event.key,
            "us": round(getattr(event, time) / PROFILED, 1),
            "count": event.count / PROFILED,
        }
        for event in events[:LONGEST]
    ]


def exact_step(device: torch.device, graph: bool, size: str = SIZE) -> Exact:
    """A GPT's exact step, after a few warm-up steps."""
    step = _captured(_shape(device, size))
    work = Work(1, step.step_program, step.fixed, kernels(step.step_program.program, step.hints))
    run = Exact(DeviceExecutor(work, device, graph=graph), step.initial_state(seed=1), step.step_program)
    for _ in range(WARM):  # kernels are self-tested and compiled, the step is recorded
        run()
    return run


@cache
def _captured(shape: gpt.Shape) -> CapturedStep:
    return captured_of(shape)


def _shape(device: torch.device, size: str) -> gpt.Shape:
    return SIZES[size] if device.type == "cuda" else TINY_GPT


def _where(device: torch.device, size: str) -> str:
    return f"GPT of {size if device.type == 'cuda' else 'no size'}, {TOKENS} tokens, {device}"


def _rounds(device: torch.device) -> int:
    return STEP_ROUNDS if device.type == "cuda" else 1


class Exact:
    """The exact step as a function: each call makes the next step. The state stays on the device."""

    def __init__(self, executor: DeviceExecutor, state: State, program: StepProgram) -> None:
        self._executor, self._state, self._number, self._program = executor, state, 0, program

    def __call__(self) -> None:
        self._number += 1
        self._state = self._executor.step(self._state, self._number)

    @property
    def root(self) -> str:
        """The root of the state after the last step."""
        return self._program.state_root({name: x.cpu() for name, x in self._state.items()}).hex()


def _plain_step(device: torch.device, precision: str, size: str) -> Callable[[], None]:
    """A function that makes one training step in eager torch with fused AdamW. It trains the same model as
    `exact_step`. The model and its data are on the device.
    """
    shape = _shape(device, size)
    data, batch = gpt.corpus(shape.context)["bytes"].to(device), TOKENS // shape.context
    model = gpt.make_model(shape).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1, fused=True)
    generator = torch.Generator(device).manual_seed(1)

    def plain() -> None:
        chosen = torch.randint(len(data), (batch,), generator=generator, device=device)
        with _precision(precision), torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16"):
            loss = gpt.objective(model, {"bytes": data[chosen]})
        with _precision(precision):
            optimizer.zero_grad()
            loss.backward()
        optimizer.step()

    return plain


def speed(device: torch.device, what: str, action: Action, operations: int) -> Row:
    """A row with the speed in TFLOP/s, counting the operations of the equivalent float product."""
    run = done(device, recorded(device, action))
    run()
    found, spread = middle([QUEUED * operations / seconds(run) / 1e12 for _ in range(ROUNDS)])
    return Row(what, f"{found:.1f} TFLOP/s", "", spread)


def recorded(device: torch.device, action: Action) -> Action:
    """An action that makes `QUEUED` calls of `action`. On a CUDA device it replays a recorded graph of these
    calls; otherwise it makes the calls.
    """
    if device.type != "cuda":
        return lambda: [action() for _ in range(QUEUED)]
    action()  # compiled and tested
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(QUEUED):
            action()
    replay: Action = graph.replay
    return replay


def operands(device: torch.device, batch: int, m: int, n: int, k: int) -> tuple[Tensor, Tensor]:
    """f32 [batch, M, K] and [batch, N, K] on the device, the same numbers every time."""
    g = torch.Generator().manual_seed(0)
    x, y = torch.randn(batch, m, k, generator=g), torch.randn(batch, n, k, generator=g)
    return x.to(device), y.to(device)


def _product(x: Tensor, y: Tensor, precision: str) -> Tensor:
    with _precision(precision):
        return torch.matmul(x, y.mT)


@contextmanager
def _precision(name: str) -> Iterator[None]:
    """Set torch's float32 matmul precision in the context; for bf16, set it to "highest"."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest" if name == "bf16" else name)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def done(device: torch.device, action: Action) -> Action:
    """An action that runs `action` and then waits until the device is done."""

    def run() -> None:
        action()
        if device.type == "cuda":
            torch.cuda.synchronize()

    return run
