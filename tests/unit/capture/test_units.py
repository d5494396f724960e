"""Micro-batches: gradients are exact means over units, each unit draws its own numbers, and kernels, bodies
and traces agree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from examples import gpt
from protocol.capture import CapturedStep, CaptureError
from protocol.numerics.reference import floats, rows
from protocol.program import Interpreter, Op, Site, check, cost
from protocol.program.cost import HASHED
from protocol.program.instruction import MAX_OPERANDS
from protocol.program.library import CATALOGUE, kernels
from protocol.program.library.units import MOST
from protocol.program.parallel import units
from tests.unit.capture.steps import DATASET, captured, cross_entropy, drawn, follow

MOMENTUM = ".momentum"
"""Suffix of the slot that holds the gradient after the first step: 0.9 * 0 + g."""


class Chosen(Interpreter):
    """An interpreter in which `draw_batch` always returns the given rows."""

    def __init__(self, step: CapturedStep, index: Tensor) -> None:
        super().__init__(kernels(step.step_program.program, step.hints))
        self._index = index

    def results(self, site: Site, operands: Sequence[Tensor]) -> tuple[Tensor, ...]:
        if site.instruction.op is Op.CALL and site.program.callee(site.number).name == "draw_batch":
            return (self._index,)
        return super().results(site, operands)


def mlp(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(8, 300), nn.ReLU(), nn.Linear(300, 60), nn.GELU(), nn.Linear(60, 3))


def with_momentum(model: nn.Module, batch: int, parts: int) -> CapturedStep:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    return captured(model, optimizer=optimizer, batch_size=batch, micro_batches=parts)


def exact_mean(tensors: Sequence[Tensor]) -> list[int]:
    """Bits of the elementwise mean, computed in Python integers with the sum of arithmetic.md section 5."""
    share = int(np.float32(len(tensors)).view(np.uint32))
    columns = zip(*(t.reshape(-1).view(torch.int32).tolist() for t in tensors), strict=True)
    return [floats.div(rows.sum_f32([word & 0xFFFFFFFF for word in column]), share) for column in columns]


def bits(t: Tensor) -> list[int]:
    return [word & 0xFFFFFFFF for word in t.reshape(-1).view(torch.int32).tolist()]


def same(x: Mapping[str, Tensor], y: Mapping[str, Tensor]) -> bool:
    return x.keys() == y.keys() and all(torch.equal(x[name], y[name]) for name in x)


@pytest.mark.parametrize("parts", [2, 3])
def test_gradients_and_loss_are_exact_means_of_what_the_units_give_alone(parts: int) -> None:
    model = mlp()
    whole, alone = with_momentum(model, 6, parts), with_momentum(model, 6 // parts, 1)
    state = whole.initial_state(5)
    index = CATALOGUE["draw_batch"].kernel({"batch": 6, "rows": 50, "stream": 0})(
        [state["key"], state["step"]]
    )[0]
    each = [
        alone.step_program.step(alone.initial_state(5), alone.fixed, Chosen(alone, part.contiguous()))
        for part in index.split(6 // parts)
    ]
    together = whole.step(state)
    wanted = [name for name in state if name.endswith(MOMENTUM)] + ["metric.loss"]
    assert len(wanted) == 7
    for name in wanted:
        assert bits(together[name]) == exact_mean([found[name] for found in each]), name


def test_one_micro_batch_is_the_program_without() -> None:
    assert captured(mlp(), micro_batches=1).root == captured(mlp()).root
    assert captured(mlp(), micro_batches=2).root != captured(mlp()).root


def test_steps_follow_torch_on_the_whole_batch() -> None:
    model = mlp(1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    step = captured(model, optimizer=optimizer, micro_batches=3)
    state = step.initial_state(11)
    for _ in range(4):
        loss = cross_entropy(model, drawn(step, state))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        state = step.step(state)
        torch.testing.assert_close(state["metric.loss"], loss.detach(), rtol=3e-3, atol=3e-3)
    for name, p in model.named_parameters():
        torch.testing.assert_close(state[name], p.detach(), rtol=2e-2, atol=2e-3)


def test_kernels_bodies_and_traces_agree_and_the_program_is_an_ordinary_one() -> None:
    model = gpt.make_model(gpt.Shape(1, 2, 16, 16, dropout=0.2))
    optimizer = gpt.make_optimizer(model)
    data = gpt.corpus(16, 1 << 12)
    step = captured(model, gpt.objective, optimizer, data, batch_size=4, micro_batches=4, clip_norm=1.0)
    program, state = step.step_program, step.initial_state(2)
    check(program.program)
    fast = step.step(state)
    assert same(fast, program.step(state, step.fixed, Interpreter()))
    trace = program.trace(state, step.fixed, Interpreter(kernels(program.program, step.hints)))
    assert same(fast, dict(zip(program.state, trace.outputs, strict=True)))
    calls = units(program.program)
    assert [program.program.callee(n).name for n in calls] == ["micro_batch"] * 4
    below = trace.callee(calls[2])
    first = program.program.instructions[calls[2]].first
    assert [
        below.root(p.operands[0].leaf) for _, p in map(below.program.output, range(len(below.outputs)))
    ] == [trace.root(first + k) for k in range(len(below.outputs))]
    unit = cost(program.program.callee(calls[0]))
    assert cost(program.program).operations > 4 * (unit.operations - HASHED * unit.traced_bytes)


def test_a_unit_needs_the_memory_of_its_rows() -> None:
    data = gpt.corpus(64, 1 << 14)
    peak = []
    for parts in (1, 4):
        model = gpt.make_model(gpt.Shape(1, 2, 16, 64, dropout=0.0))
        optimizer = gpt.make_optimizer(model)
        step = captured(model, gpt.objective, optimizer, data, batch_size=16, micro_batches=parts)
        peak.append(step.cost().peak_bytes)
    assert peak[1] < 0.45 * peak[0]


def test_each_unit_draws_masks_of_its_own() -> None:
    """Unit u of step s draws with the counter s * units + u, so no two units share a mask."""

    class Dropped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(torch.ones(400))

    def total(model: nn.Module, _: Mapping[str, Tensor]) -> Tensor:
        assert isinstance(model, Dropped)
        return F.dropout(model.w, 0.5).sum()

    model = Dropped()
    step = captured(model, total, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), micro_batches=3)
    state = step.initial_state(7)
    draw = CATALOGUE["keep_mask"].kernel({"below": 2**31, "stream": 1, "d0": 400})
    seen = []
    for number in range(2):
        counters = [torch.tensor(3 * number + unit, dtype=torch.int32) for unit in range(3)]
        masks = [draw([state["key"], counter])[0] * 2 for counter in counters]
        before, state = state, step.step(state)
        gradient = state["w.momentum"] - 0.9 * before["w.momentum"]
        torch.testing.assert_close(gradient, sum(masks, torch.zeros(400)) / 3, rtol=1e-4, atol=1e-4)
        seen += [tuple(mask.tolist()) for mask in masks]
    assert len(set(seen)) == 6


@pytest.mark.parametrize("units", [2, 3])
def test_batch_norm_follows_the_units_as_where_torch_accumulates_gradients(units: int) -> None:
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(8, 5), nn.BatchNorm1d(5, momentum=0.3), nn.Linear(5, 3))
    step = captured(model, micro_batches=units)
    state = slow = step.initial_state(1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for number in range(2):
        batch = drawn(step, state)
        state, slow = step.step(state), step.step_program.step(slow, step.fixed, Interpreter())
        assert all(torch.equal(slow[name], t) for name, t in state.items())
        optimizer.zero_grad()
        for x, y in zip(batch["x"].chunk(units), batch["y"].chunk(units), strict=True):
            (cross_entropy(model, {"x": x, "y": y}) / units).backward()
        optimizer.step()
        for name in ("1.running_mean", "1.running_var", "0.weight"):
            torch.testing.assert_close(state[name], model.state_dict()[name], rtol=2e-3, atol=2e-3)
        assert state["1.num_batches_tracked"].item() == units * (number + 1)


@pytest.mark.parametrize("read", [lambda count: count.float().sqrt(), lambda count: count / 2])
def test_a_counter_that_the_step_reads_is_not_counted_from_nothing(read: Callable[[Tensor], Tensor]) -> None:
    class Counting(nn.Module):
        count: Tensor

        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(8, 3)
            self.register_buffer("count", torch.tensor(3))

        def forward(self, x: Tensor) -> Tensor:
            self.count += 1
            y: Tensor = self.layer(x) * read(self.count)
            return y

    model = Counting()
    step = captured(model, micro_batches=2)
    state = step.initial_state(1)
    batch = drawn(step, state)
    after = step.step(state)
    scores = model.layer(batch["x"]) * read(torch.tensor(4))
    expected = nn.functional.cross_entropy(scores, batch["y"])
    torch.testing.assert_close(after["metric.loss"], expected.detach(), rtol=1e-3, atol=1e-3)
    assert after["count"].item() == 4, "as the first unit leaves it"


def test_other_written_buffers_are_means_and_counters_are_the_first_units() -> None:
    class Writing(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(8, 3)
            self.seen: Tensor
            self.most: Tensor
            self.register_buffer("seen", torch.zeros(3))
            self.register_buffer("most", torch.tensor(5))

        def forward(self, x: Tensor) -> Tensor:
            y: Tensor = self.layer(x)
            self.seen = self.seen * self.seen + y.detach().mean(0)
            self.most = self.most * 2 % 7
            return y

    model = Writing()
    step = captured(model, micro_batches=2)
    state = step.initial_state(1)
    batch, after = drawn(step, state)["x"], step.step(state)
    torch.testing.assert_close(after["seen"], model.layer(batch).detach().mean(0), rtol=1e-3, atol=1e-3)
    assert after["most"].item() == 3


def test_more_units_than_are_summed_at_once_follow_torch_too() -> None:
    model = mlp(2)
    step = captured(model, batch_size=40, micro_batches=20)
    names = [step.step_program.program.callee(n).name for n in step.step_program.program.calls()]
    sums = [k for k, name in enumerate(names) if name == "sum_units"]
    assert names[: sums[0]].count("micro_batch") == MOST  # their results are summed before the next units run
    state = step.initial_state(1)
    draw = CATALOGUE["draw_batch"].kernel({"batch": 40, "rows": 50, "stream": 0})
    (index,) = draw([state["key"], state["step"]])
    loss = cross_entropy(model, {"x": DATASET["x"][index.long()], "y": DATASET["y"][index.long()]})
    gradients = torch.autograd.grad(loss, list(model.parameters()))
    after = step.step(state)
    torch.testing.assert_close(after["metric.loss"], loss.detach(), rtol=1e-3, atol=1e-3)
    for (name, p), g in zip(model.named_parameters(), gradients, strict=True):
        torch.testing.assert_close(after[name], (p - 0.1 * g).detach(), rtol=1e-3, atol=1e-4)


def test_more_tensors_than_an_instruction_has_operands_pass_together() -> None:
    torch.manual_seed(4)
    layers = [nn.Linear(3, 3) for _ in range(130)]
    large = [nn.Linear(130, 130, bias=False) for _ in range(70)]

    class Deep(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers, self.large = nn.ModuleList(layers), nn.ModuleList(large)

    def objective(_: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
        small = torch.stack([layer.weight.sum() + layer.bias.sum() for layer in layers])
        wide = torch.stack([layer.weight.square().mean() for layer in large])
        return (small.mean() + wide.mean()) * batch["x"].mean()

    step = captured(Deep(), objective, micro_batches=2)
    assert len(step.step_program.state) > MAX_OPERANDS
    state = step.initial_state(1)
    after = step.step(state)
    assert same(after, step.step_program.step(state, step.fixed, Interpreter()))
    mean = float(drawn(step, state)["x"].mean())
    expected = state["layers.7.bias"] - 0.1 * mean / 130
    torch.testing.assert_close(after["layers.7.bias"], expected, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(
    ("parts", "words"),
    [(4, "divides the batch size"), (0, "micro_batches=0"), (True, "micro_batches=True"), (7, "divides")],
)
def test_batches_that_cannot_be_divided_are_refused(parts: int, words: str) -> None:
    with pytest.raises(CaptureError, match=words):
        captured(mlp(), micro_batches=parts)


def test_more_units_than_a_program_has_instructions_for_are_refused() -> None:
    with pytest.raises(CaptureError, match="1 to 65535 instructions, got 8") as caught:
        captured(nn.Linear(8, 3), batch_size=14_000, micro_batches=14_000)
    (problem,) = caught.value.problems
    assert "fewer micro-batches" in problem.remedy


def test_what_a_unit_cannot_do_is_said_with_its_line() -> None:
    def objective(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
        logits: Tensor = model(batch["x"])
        values: Tensor = torch.linalg.eigvalsh(logits.mT @ logits)
        return values.sum()

    with pytest.raises(CaptureError, match=r"test_units\.py"):
        captured(mlp(), objective, micro_batches=2)


def test_one_unit_is_followed_as_before() -> None:
    assert not units(follow(mlp(5)).step_program.program)
