"""Optimisers, clipping and rates match torch. What has no exact form is refused, with all reasons at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Thread
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn, profiler
from torch.optim import SGD, Adam, AdamW, Optimizer
from torch.optim.lr_scheduler import (
    ChainedScheduler,
    ConstantLR,
    CosineAnnealingLR,
    CyclicLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    OneCycleLR,
    ReduceLROnPlateau,
    SequentialLR,
)
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from examples import gpt
from protocol.capture import CapturedStep, CaptureError, Problem, capture
from protocol.program.library import CATALOGUE
from tests.unit.capture.steps import BATCH, DATASET, captured, cross_entropy, drawn, torch_step


class Gains(nn.Module):
    """A model without matrix products. Its gradients match torch's except in the last bits, so a larger
    difference comes from the updates.
    """

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(4)
        self.gain = nn.Parameter(torch.randn(3, 8, generator=generator))
        self.shift = nn.Parameter(torch.randn(8, generator=generator))
        self.last = nn.Parameter(torch.randn(3, generator=generator))

    def forward(self, x: Tensor) -> Tensor:
        return ((x[:, None] * self.gain + self.shift) ** 2).mean(2) * self.last


def squares(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
    z: Tensor = model(batch["x"])
    return ((z - batch["x"][:, :3]) ** 2).mean()


def in_torch(
    step: CapturedStep,
    model: nn.Module,
    optimizer: Optimizer,
    count: int,
    scheduler: Any = None,
    clip: Callable[[], object] = lambda: None,
) -> dict[str, Tensor]:
    """Run `count` captured steps, and train `model` in torch on the same batches. Return the final captured state."""
    state = step.initial_state(5)
    for _ in range(count):
        optimizer.zero_grad()
        squares(model, drawn(step, state)).backward()
        clip()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        state = step.step(state)
    return state


def compare(model: nn.Module, state: Mapping[str, Tensor], tolerance: float = 1e-5) -> None:
    for name, p in model.named_parameters():
        torch.testing.assert_close(state[name], p.detach(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (AdamW, {"weight_decay": 0.1}),
        (AdamW, {"weight_decay": 0.0, "betas": (0.8, 0.95), "eps": 1e-6}),
        (AdamW, {"amsgrad": True}),
        (Adam, {}),
        (Adam, {"weight_decay": 0.1}),
        (Adam, {"weight_decay": 0.1, "decoupled_weight_decay": True}),
        (SGD, {"momentum": 0.9}),
    ],
    ids=str,
)
def test_updates_follow_torch(kind: type[Optimizer], options: Mapping[str, Any]) -> None:
    model = Gains()
    optimizer = kind(model.parameters(), lr=0.01, **options)  # type: ignore[call-arg]
    step = captured(model, squares, optimizer)
    compare(model, in_torch(step, model, optimizer, 4))


def test_adamw_follows_torch_for_a_thousand_steps() -> None:
    """A wrong bias correction may show only after many steps (arithmetic.md section 9, point 2)."""
    model = Gains()
    optimizer = AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
    scheduler = LambdaLR(optimizer, lambda k: 1 - k / 1000)
    step = capture(model, squares, optimizer, DATASET, batch_size=BATCH, steps=1000, scheduler=scheduler)
    state = in_torch(step, model, optimizer, 1000, scheduler)
    compare(model, state, 1e-4)
    # The masses are 1 - beta^t; the second moment's is still far from 1.
    torch.testing.assert_close(state["optimizer.0.mass1"], torch.tensor(1.0), rtol=1e-5, atol=0.0)
    torch.testing.assert_close(state["optimizer.0.mass2"], torch.tensor(1 - 0.999**1000), rtol=1e-5, atol=0.0)


def test_adamw_has_the_same_bits_for_every_number_of_threads() -> None:
    generator = torch.Generator().manual_seed(1)
    p, g, m = (torch.randn(300_001, generator=generator) for _ in range(3))
    operands = [p, g, m, g * g, *(torch.tensor(x) for x in (1e-3, 1e-8, 0.999))]
    kernel = CATALOGUE["adamw"].kernel({"beta1": 0.9, "beta2": 0.999})
    before = torch.get_num_threads()
    try:
        found = []
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            found.append(kernel(operands))
    finally:
        torch.set_num_threads(before)
    for other in found[1:]:
        assert all(torch.equal(x, y) for x, y in zip(found[0], other))


def test_groups_have_their_own_options_and_tables() -> None:
    model = Gains()
    groups: list[dict[str, Any]] = [
        {"params": [model.gain], "weight_decay": 0.1},
        {"params": [model.shift, model.last], "lr": 0.03, "betas": (0.5, 0.9), "weight_decay": 0.0},
    ]
    optimizer = AdamW(groups, lr=0.01)
    warm = LinearLR(optimizer, 0.1, total_iters=2)
    scheduler = SequentialLR(optimizer, [warm, CosineAnnealingLR(optimizer, 3)], [2])
    step = captured(model, squares, optimizer, scheduler=scheduler)
    first, second = (step.constants[f"learning_rate.{k}"] for k in (0, 1))
    torch.testing.assert_close(second, first * 3)
    assert first[0] < first[1] < first[2] > first[3]
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.001)
    assert scheduler.last_epoch == 0
    state = in_torch(step, model, optimizer, 4, scheduler)
    compare(model, state)
    assert [name for name in state if "optimizer" in name] == [
        f"optimizer.{k}.mass{n}" for k in (0, 1) for n in (1, 2)
    ]
    assert state["gain.exp_avg_sq"].shape == (3, 8)


@pytest.mark.parametrize("limit", [0.01, 1e6])
def test_gradients_are_clipped_by_their_norm_and_it_is_reported(limit: float) -> None:
    model = Gains()
    optimizer = SGD(model.parameters(), lr=0.1)
    step = captured(model, squares, optimizer, clip_norm=limit)
    norms: list[Tensor] = []
    state = in_torch(
        step,
        model,
        optimizer,
        3,
        clip=lambda: norms.append(nn.utils.clip_grad_norm_(model.parameters(), limit)),
    )
    compare(model, state)
    torch.testing.assert_close(state["metric.grad_norm"], norms[-1])


def test_gradients_are_clipped_by_value() -> None:
    model = Gains()
    optimizer = SGD(model.parameters(), lr=0.1)
    step = captured(model, squares, optimizer, clip_value=0.02)
    state = in_torch(
        step, model, optimizer, 3, clip=lambda: nn.utils.clip_grad_value_(model.parameters(), 0.02)
    )
    compare(model, state)
    assert "metric.grad_norm" not in state


class TiedHead(nn.Module):
    """Two layers that share one weight, as the embedding and the head of a GPT do."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Linear(8, 8, bias=False)
        self.head = nn.Linear(8, 8, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, x: Tensor) -> Tensor:
        z: Tensor = self.head(F.relu(self.tokens(x)))
        return z[:, :3]


def test_tied_parameters_are_one_and_get_both_gradients() -> None:
    torch.manual_seed(2)
    model = TiedHead()
    optimizer = SGD(model.parameters(), lr=0.5)
    step = captured(model, squares, optimizer)
    assert [name for name in step.initial if "weight" in name] == ["tokens.weight"]
    state = in_torch(step, model, optimizer, 4)
    compare(model, state, 2e-3)
    assert model.head.weight is model.tokens.weight


def test_a_gpt_whose_head_is_its_embedding_follows_torch() -> None:
    """The gradient of the shared table is a scatter sum plus a matrix product."""
    shape = gpt.Shape(layers=1, heads=2, width=16, context=8, dropout=0.0, tied=True)
    model = gpt.make_model(shape)
    optimizer = SGD(model.parameters(), lr=0.5)
    step = captured(model, gpt.objective, optimizer, gpt.corpus(shape.context, limit=1 << 10))
    assert "tokens.weight" in step.initial
    assert "head.weight" not in step.initial
    before = model.tokens.weight.detach().clone()
    state = step.initial_state(5)
    for _ in range(3):
        loss = torch_step(model, gpt.objective, optimizer, drawn(step, state))
        state = step.step(state)
        torch.testing.assert_close(state["metric.loss"], loss, rtol=1e-3, atol=1e-3)
    compare(model, state, 1e-3)
    assert float((model.tokens.weight.detach() - before).abs().max()) > 0.02


def test_options_that_change_nothing_are_accepted() -> None:
    model = Gains()
    plain = captured(model, squares, AdamW(model.parameters()))
    for options in ({"foreach": True}, {"fused": True}, {"capturable": True}):
        assert captured(model, squares, AdamW(model.parameters(), **options)).root == plain.root  # type: ignore[arg-type]


def refused(optimizer: Optimizer, model: nn.Module, **options: Any) -> tuple[Problem, ...]:
    with pytest.raises(CaptureError) as caught:
        captured(model, squares, optimizer, **options)
    assert all(problem.remedy for problem in caught.value.problems)
    return caught.value.problems


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda p: AdamW(p, differentiable=True), "differentiable=True"),
        (lambda p: SGD(list(p)[:1], lr=0.1), "does not hold parameter"),
        (lambda p: SGD([*p, nn.Parameter(torch.ones(2))], lr=0.1), "not a parameter of the model"),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_optimisers_without_an_exact_form_are_refused(make: Callable[[Any], Optimizer], what: str) -> None:
    model = Gains()
    assert any(what in problem.what for problem in refused(make(model.parameters()), model))


class DecayingDecay(LambdaLR):
    """Changes the weight decay with the step."""

    def step(self, epoch: int | None = None) -> None:
        super().step(epoch)
        for group in self.optimizer.param_groups:
            group["weight_decay"] = 0.1 / (1 + self.last_epoch)


@pytest.mark.parametrize(
    "make",
    [
        lambda p, **options: SGD(p, lr=0.01, momentum=0.9, **options),
        lambda p, **options: Adam(p, lr=0.01, **options),
    ],
    ids=["SGD", "Adam"],
)
def test_a_weight_decay_that_changes_can_be_a_term_of_the_loss(make: Callable[..., Optimizer]) -> None:
    """The captured loss has the term, and its optimiser has no decay. In torch, the loss lacks the term, and
    the optimiser's decay changes.
    """
    model, own = Gains(), Gains()
    optimizer = make(model.parameters(), weight_decay=0.1)
    schedule = DecayingDecay(optimizer, lambda _: 1.0)
    own.load_state_dict(model.state_dict())
    own.register_buffer("n", torch.tensor(0))

    def decaying(model: nn.Module, batch: Any) -> Tensor:
        n = model.get_buffer("n")
        n += 1
        penalty = torch.stack([p.square().sum() for p in model.parameters()]).sum()
        return squares(model, batch) + 0.5 * (0.1 / n.float()) * penalty

    step = captured(own, decaying, make(own.parameters()))
    compare(model, in_torch(step, model, optimizer, 4, schedule))


def test_a_weight_decay_that_changes_is_refused_and_half_of_it_is_the_factor_of_the_squares() -> None:
    model = Gains()
    optimizer = AdamW(model.parameters(), lr=0.01)
    (problem,) = refused(optimizer, model, scheduler=DecayingDecay(optimizer, lambda _: 1.0))
    assert "DecayingDecay changes weight_decay while it runs" in problem.what
    assert "half the decay times the squares of the parameters" in problem.remedy
    assert "a buffer that counts steps" in problem.remedy
    assert "without clipping a term of the loss can stand for it" in problem.remedy
    assert "AdamW decays the parameters apart from the gradients" in problem.remedy
    assert "so does Adam with decoupled_weight_decay=True" in problem.remedy
    assert "cycle_momentum" not in problem.remedy


@pytest.mark.parametrize(
    "make",
    [
        lambda o: OneCycleLR(o, 0.1, total_steps=9),
        lambda o: CyclicLR(o, 0.01, 0.1, step_size_up=2, cycle_momentum=True),
    ],
)
@pytest.mark.parametrize("kind", [AdamW, SGD])
def test_cycled_momentum_is_refused_and_left_as_it_was(
    make: Callable[[Optimizer], Any], kind: type[Optimizer]
) -> None:
    model = Gains()
    options: dict[str, Any] = {"momentum": 0.9} if kind is SGD else {}
    optimizer = kind(model.parameters(), lr=0.01, **options)  # type: ignore[call-arg]
    scheduler = make(optimizer)
    before = {key: value for key, value in optimizer.param_groups[0].items() if key != "params"}
    (problem,) = refused(optimizer, model, scheduler=scheduler)
    assert "betas" in problem.what or "momentum" in problem.what
    assert "cycle_momentum=False" in problem.remedy
    after = {key: value for key, value in optimizer.param_groups[0].items() if key != "params"}
    assert after == before


def test_one_cycle_of_the_rate_alone_is_a_table() -> None:
    model = Gains()
    optimizer = AdamW(model.parameters(), lr=0.01)
    scheduler = OneCycleLR(optimizer, 0.1, total_steps=9, cycle_momentum=False)
    step = captured(model, squares, optimizer, scheduler=scheduler)
    state = in_torch(step, model, optimizer, 4, scheduler)
    compare(model, state)


def test_a_rate_that_is_a_tensor_is_left_as_it_was() -> None:
    """torch's schedulers write into the tensor, but a capture leaves it unchanged."""
    model = Gains()
    rate = torch.tensor(0.3)
    optimizer = AdamW(model.parameters(), lr=rate)
    scheduler = ExponentialLR(optimizer, 0.5)
    tables = [captured(model, squares, optimizer, scheduler=scheduler, steps=5) for _ in range(2)]
    first, second = (step.constants["learning_rate.0"] for step in tables)
    torch.testing.assert_close(first, 0.3 * 0.5 ** torch.arange(5))
    assert first.tolist() == second.tolist()
    assert optimizer.param_groups[0]["lr"] is rate
    assert rate == torch.tensor(0.3)


def test_chained_schedulers_are_a_table() -> None:
    model = Gains()
    optimizer = AdamW(model.parameters(), lr=0.01)
    parts = [ConstantLR(optimizer, 0.5, total_iters=2), ExponentialLR(optimizer, 0.9)]
    scheduler = ChainedScheduler(parts, optimizer)
    step = captured(model, squares, optimizer, scheduler=scheduler)
    assert [part.last_epoch for part in parts] == [0, 0]
    compare(model, in_torch(step, model, optimizer, 4, scheduler))


def test_a_step_that_reads_the_count_of_a_chained_scheduler_is_refused() -> None:
    model = nn.Linear(8, 3)
    optimizer = SGD(model.parameters(), lr=0.1)
    counting = ExponentialLR(optimizer, 0.9)
    scheduler = ChainedScheduler([counting], optimizer)

    def objective(m: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
        return cross_entropy(m, batch) * (1.0 if counting.last_epoch == 0 else 0.5)

    with pytest.raises(CaptureError, match=r"not the same every time|the first time"):
        captured(model, objective, optimizer, scheduler=scheduler)


def test_schedulers_that_need_more_than_the_step_are_refused() -> None:
    model = Gains()
    optimizer = SGD(model.parameters(), lr=0.1)
    (problem,) = refused(optimizer, model, scheduler=ReduceLROnPlateau(optimizer))
    assert "ReduceLROnPlateau needs more than the step" in problem.what
    (problem,) = refused(optimizer, model, scheduler=LinearLR(SGD(model.parameters(), lr=0.1)))
    assert "does not belong to the optimiser" in problem.what


def test_every_reason_is_listed_at_once() -> None:
    model = Gains()
    model.last = nn.Parameter(model.last.double())
    data = {"x": DATASET["x"], "y": DATASET["y"] + 2**40}
    optimizer = SGD([model.gain, model.shift], lr=0.1, differentiable=True)
    options = {"clip_norm": 0.0, "clip_value": -1.0, "scheduler": ReduceLROnPlateau(optimizer)}
    with pytest.raises(CaptureError) as caught:
        capture(model, squares, optimizer, data, batch_size=0, steps=-1, **options)  # type: ignore[arg-type]
    listed = "\n".join(problem.what for problem in caught.value.problems)
    for what in (
        "batch_size=0",
        "steps=-1",
        "dataset tensor y exceeds",
        "differentiable=True",
        "does not hold parameter last",
        "clip_norm=0.0",
        "clip_value=-1.0",
        "ReduceLROnPlateau",
        "last is float64",
    ):
        assert what in listed


def test_names_that_meet_in_the_state_are_refused() -> None:
    inner, middle, model = nn.Module(), nn.Module(), nn.Module()
    model.gain = nn.Parameter(torch.ones(8))
    inner.mass1 = nn.Parameter(torch.ones(8))
    middle.add_module("0", inner)
    model.add_module("optimizer", middle)

    def objective(m: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
        return sum((p * batch["x"]).mean() for p in m.parameters())  # type: ignore[return-value]

    with pytest.raises(CaptureError, match=r"optimizer\.0\.mass1"):
        captured(model, objective, AdamW(model.parameters()))


def test_a_step_that_reads_the_optimisers_rate_is_refused() -> None:
    model = nn.Linear(8, 3)
    adaptive = SGD(model.parameters(), lr=0.1)
    with pytest.raises(CaptureError, match=r"takes .* the first time"):
        captured(model, lambda m, b: cross_entropy(m, b) * adaptive.param_groups[0]["lr"], adaptive)


def test_a_parameter_that_is_listed_twice_is_refused() -> None:
    model = TiedHead()
    with pytest.warns(UserWarning, match="duplicate parameters"):
        optimizer = SGD([*model.tokens.parameters(), *model.head.parameters()], lr=0.1)
    with pytest.raises(CaptureError, match=r"holds parameter tokens\.weight 2 times"):
        captured(model, squares, optimizer)


def test_a_schedule_without_a_length_is_a_table() -> None:
    class Endless(ExponentialLR):
        total_steps = None

    model = Gains()
    optimizer = SGD(model.parameters(), lr=0.1)
    step = captured(model, squares, optimizer, scheduler=Endless(optimizer, 0.5))
    torch.testing.assert_close(step.constants["learning_rate.0"], torch.tensor([0.1, 0.05, 0.025, 0.0125]))


@pytest.mark.parametrize("register", [register_optimizer_step_pre_hook, register_optimizer_step_post_hook])
def test_hooks_on_the_steps_of_all_optimisers_are_refused(register: Callable[..., Any]) -> None:
    model = Gains()
    handle = register(lambda *_: None)
    try:
        with pytest.raises(CaptureError, match="hooks on the steps of all optimisers"):
            captured(model, squares, SGD(model.parameters(), lr=0.1))
    finally:
        handle.remove()


def test_the_hook_of_torchs_profiler_is_taken() -> None:
    model = Gains()
    handle = register_optimizer_step_post_hook(profiler._optimizer_post_hook)
    try:
        captured(model, squares, SGD(model.parameters(), lr=0.1))
    finally:
        handle.remove()


def test_an_optimiser_of_another_thread_steps_during_a_capture() -> None:
    model, other = Gains(), nn.Linear(2, 2)
    own = SGD(other.parameters(), lr=0.1)
    failures: list[BaseException] = []

    def train() -> None:
        try:
            own.step()
        except BaseException as error:
            failures.append(error)

    def objective(m: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
        thread = Thread(target=train)
        thread.start()
        thread.join()
        return squares(m, batch)

    captured(model, objective, SGD(model.parameters(), lr=0.1))
    assert not failures


def test_an_objective_that_steps_an_optimiser_is_refused() -> None:
    model = nn.ModuleDict({"out": nn.Linear(8, 3), "probe": nn.Linear(8, 3)})
    own = SGD(model["probe"].parameters(), lr=0.1)

    def objective(_: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
        cross_entropy(model["probe"], batch).backward()
        own.step()
        model["probe"].zero_grad()
        return cross_entropy(model["out"], batch)

    with pytest.raises(CaptureError, match="the objective steps an optimiser, SGD") as caught:
        captured(model, objective, SGD(model.parameters(), lr=0.1))
    assert "own.step()" in caught.value.problems[0].source


READS: dict[str, Callable[[SGD, ExponentialLR], float]] = {
    "count": lambda _, scheduler: scheduler.last_epoch,
    "own count": lambda _, scheduler: scheduler._step_count,
    "last rate": lambda _, scheduler: -float(scheduler.get_last_lr()[0]),
    "attributes": lambda _, scheduler: vars(scheduler)["last_epoch"],
    "rate": lambda optimizer, _: -float(optimizer.param_groups[0]["lr"]),
    "rate or none": lambda optimizer, _: -float(optimizer.param_groups[0].get("lr", 0)),
    "a copy": lambda optimizer, _: -float(dict(optimizer.param_groups[0])["lr"]),
    "its copy": lambda optimizer, _: -float(optimizer.param_groups[0].copy()["lr"]),
    "a union": lambda optimizer, _: -float((optimizer.param_groups[0] | {})["lr"]),
    "unpacked": lambda optimizer, _: -float({**optimizer.param_groups[0]}["lr"]),
    "a default": lambda optimizer, _: -float(optimizer.param_groups[0].setdefault("lr", 0)),
    "values": lambda optimizer, _: float(dict(optimizer.param_groups[0].items())["momentum"]),
    "state": lambda optimizer, _: max((s.get("step", 0) for s in optimizer.state.values()), default=0),
}


@pytest.mark.parametrize("read", READS)
def test_a_step_that_decides_by_a_later_count_or_rate_is_refused(read: str) -> None:
    model = nn.Linear(8, 3)
    optimizer = SGD(model.parameters(), lr=0.1)
    scheduler = ExponentialLR(optimizer, 0.9)
    steps = 1000

    def objective(m: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
        loss = cross_entropy(m, batch)
        return loss + loss.square() if READS[read](optimizer, scheduler) >= steps / 2 else loss

    kind, group = type(scheduler), optimizer.param_groups[0]
    with pytest.raises(CaptureError, match="reads the learning rate, or the count") as caught:
        captured(model, objective, optimizer, scheduler=scheduler, steps=steps)
    assert len(caught.value.problems) == 1
    assert type(scheduler) is kind
    assert optimizer.param_groups[0] is group
    assert not optimizer.state


def thawing(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
    """`cross_entropy`, after all parameters were made trainable."""
    model.requires_grad_(True)
    return cross_entropy(model, batch)


def half_frozen() -> nn.Module:
    """Two layers, the first of which is frozen."""
    model = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 3))
    model[0].requires_grad_(False)
    return model


def test_a_step_that_thaws_a_parameter_of_the_optimiser_is_refused() -> None:
    model = half_frozen()
    with pytest.raises(CaptureError) as caught:
        captured(model, thawing, SGD(model.parameters(), lr=0.1))
    assert [problem.what for problem in caught.value.problems] == [
        "the step sets requires_grad of parameter 0.weight",
        "the step sets requires_grad of parameter 0.bias",
    ]
    assert not any(p.requires_grad for p in model[0].parameters())  # type: ignore[index]


def test_a_step_may_thaw_what_the_optimiser_does_not_hold() -> None:
    model = half_frozen()
    step = captured(model, thawing, SGD(model[1].parameters(), lr=0.1))  # type: ignore[index]
    assert "0.weight" in step.constants
