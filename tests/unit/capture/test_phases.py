"""A step of several phases matches a torch loop with one optimiser per phase. The phases act in the loop's
order, and at the same steps as its optimisers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from protocol.capture import CapturedStep, CaptureError, Phase, capture, capture_phases
from protocol.program.execute import Interpreter
from protocol.program.library.sampling import draw_batch

ROWS, BATCH, STEPS = 24, 8, 7
LATENT = 3
BITS = dict.fromkeys(("product", "weight_gradient"), (20, 20))
TOLERANCE = 1e-5


class Adversaries(nn.Module):
    """A generator of number pairs, with batch norm, and a discriminator."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.generator = nn.Sequential(nn.Linear(LATENT, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))
        self.discriminator = nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))


def of_discriminator(model: nn.Module, batch: Mapping[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
    """The loss with label 1 for real pairs and 0 for generated ones."""
    assert isinstance(model, Adversaries)
    real = model.discriminator(batch["real"])
    made = model.discriminator(model.generator(batch["noise"]).detach())
    loss = F.binary_cross_entropy_with_logits(real, torch.ones_like(real))
    loss = loss + F.binary_cross_entropy_with_logits(made, torch.zeros_like(made))
    return loss, {"right": (real > 0).float().mean()}


def of_generator(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
    """The loss with label 1 for generated pairs."""
    assert isinstance(model, Adversaries)
    made = model.discriminator(model.generator(batch["noise"]))
    return F.binary_cross_entropy_with_logits(made, torch.ones_like(made))


def data() -> dict[str, Tensor]:
    """Pairs on a line, and noise."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(ROWS, 1, generator=generator)
    return {"real": torch.cat([x, 2 * x + 1], 1), "noise": torch.randn(ROWS, LATENT, generator=generator)}


def optimisers(model: Adversaries) -> tuple[torch.optim.Optimizer, torch.optim.Optimizer]:
    """An optimiser with a kernel, and a traced one whose first step differs from the others."""
    return (
        torch.optim.Adam(model.discriminator.parameters(), lr=0.05, betas=(0.5, 0.99)),
        torch.optim.SGD(model.generator.parameters(), lr=0.1, momentum=0.9, dampening=0.5),
    )


def adversarial(every: int, first: int, **options: int) -> CapturedStep:
    """A step that always trains the discriminator, and trains the generator every `every` steps, from step
    `first` on.
    """
    model = Adversaries()
    for_discriminator, for_generator = optimisers(model)
    schedule = torch.optim.lr_scheduler.ExponentialLR(for_generator, 0.8)
    return capture_phases(
        model,
        [
            Phase("discriminator", of_discriminator, for_discriminator, clip_norm=0.5),
            Phase("generator", of_generator, for_generator, schedule, every=every, first=first),
        ],
        data(),
        batch_size=BATCH,
        steps=STEPS,
        bits=BITS,
        **options,  # type: ignore[arg-type]
    )


def rows(seed: Tensor, step: int) -> Tensor:
    """The rows that a step draws."""
    draw = draw_batch.kernel({"batch": BATCH, "rows": ROWS, "stream": 0})
    (index,) = draw([seed, torch.tensor(step, dtype=torch.int32)])
    return index.long()


def by_torch(key: Tensor, every: int, first: int) -> dict[str, Tensor]:
    """The usual training loop, in float64; returns the final state."""
    torch.set_default_dtype(torch.float64)
    try:
        model = Adversaries()
    finally:
        torch.set_default_dtype(torch.float32)
    model.load_state_dict(Adversaries().state_dict())
    for_discriminator, for_generator = optimisers(model)
    schedule = torch.optim.lr_scheduler.ExponentialLR(for_generator, 0.8)
    whole = {name: t.double() for name, t in data().items()}
    for step in range(STEPS):
        batch = {name: t[rows(key, step)] for name, t in whole.items()}
        model.zero_grad()
        of_discriminator(model, batch)[0].backward()
        nn.utils.clip_grad_norm_(model.discriminator.parameters(), 0.5)
        for_discriminator.step()
        if step >= first and (step - first) % every == 0:
            model.zero_grad()
            of_generator(model, batch).backward()
            for_generator.step()
            schedule.step()
        else:
            continue
    return dict(model.state_dict())


@pytest.mark.parametrize(("every", "first"), [(1, 0), (3, 0), (2, 1), (1, 4), (5, 6)])
def test_phases_are_a_loop_with_two_optimisers(every: int, first: int) -> None:
    step = adversarial(every, first)
    state = step.initial_state(9)
    for _ in range(STEPS):
        state = step.step(state)
    expected = by_torch(state["key"], every, first)
    for name, t in expected.items():
        torch.testing.assert_close(state[name].double(), t.double(), rtol=TOLERANCE, atol=TOLERANCE)
    metrics = {name for name in state if name.startswith("metric.")}
    assert metrics == {
        f"metric.{name}"
        for name in ("discriminator.loss", "discriminator.right", "discriminator.grad_norm", "generator.loss")
    }


def test_a_phase_that_does_not_act_changes_nothing() -> None:
    step = adversarial(3, 1)
    state = step.initial_state(2)
    for number in range(STEPS):
        after = step.step(state)
        moved = {name for name in state if not torch.equal(state[name], after[name])}
        own = {name for name in moved if name.startswith(("generator.0", "generator.3", "metric.generator"))}
        assert bool(own) == (number in (1, 4))
        assert any(name.startswith("discriminator.") for name in moved)
        state = after


@pytest.mark.parametrize("options", [{}, {"micro_batches": 2}, {"history": 3}])
def test_phases_have_the_bits_of_their_primitives(options: dict[str, int]) -> None:
    step = adversarial(2, 1, **options)
    state = step.initial_state(4)
    for _ in range(3):
        program = step.step_program
        outputs = Interpreter().run(program.program, (*program.order(state), *step.fixed))
        state = step.step(state)
        assert all(map(torch.equal, outputs, program.order(state)))


class Body(nn.Module):
    """A body and a head with dropout between them."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.body = nn.Linear(2, 6)
        self.head = nn.Linear(6, 1)

    def forward(self, x: Tensor) -> Tensor:
        """One number per pair."""
        hidden = F.dropout(torch.tanh(self.body(x)), 0.5)
        out: Tensor = self.head(hidden)
        return out


def squared(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
    """The mean squared output."""
    error: Tensor = model(batch["real"]).square().mean()
    return error


def test_a_body_is_thawed_and_draws_other_numbers_than_the_head() -> None:
    model = Body()
    phases = [
        Phase("head", squared, torch.optim.SGD(model.head.parameters(), lr=0.1)),
        Phase("body", squared, torch.optim.AdamW(model.body.parameters(), lr=0.1), first=2),
    ]
    step = capture_phases(model, phases, data(), batch_size=BATCH, steps=4)
    state = step.initial_state(0)
    for number in range(4):
        after = step.step(state)
        assert torch.equal(state["body.weight"], after["body.weight"]) == (number < 2)
        assert not torch.equal(state["head.weight"], after["head.weight"])
        state = after
    streams = [hint.attributes["stream"] for hint in step.hints.values() if hint.name == "keep_mask"]
    assert len(set(streams)) == len(streams) == 2
    assert all(p.requires_grad for p in model.parameters()), "as it was"


def test_one_phase_is_capture() -> None:
    model = Body()
    alone = capture(
        model, squared, torch.optim.SGD(model.parameters(), lr=0.1), data(), batch_size=BATCH, steps=4
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    phased = capture_phases(model, [Phase("all", squared, optimizer)], data(), batch_size=BATCH, steps=4)
    one, other = alone.step(alone.initial_state(1)), phased.step(phased.initial_state(1))
    assert other.pop("metric.all.loss") == one.pop("metric.loss")
    assert all(torch.equal(one[name], other[name]) for name in one)


def refused(*phases: Callable[[Body], Phase]) -> str:
    """The message of the error that refuses these phases."""
    model = Body()
    with pytest.raises(CaptureError) as raised:
        capture_phases(model, [make(model) for make in phases], data(), batch_size=BATCH, steps=4)
    return str(raised.value)


def of(name: str, **options: int) -> Callable[[Body], Phase]:
    """A function that makes a phase of this name, which trains all parameters of a model."""
    return lambda model: Phase(name, squared, torch.optim.Adam(model.parameters()), **options)  # type: ignore[arg-type]


def test_phases_that_cannot_be_are_refused() -> None:
    assert "there are no phases" in refused()
    assert "a phase named ''" in refused(of(""))
    assert "a phase named 'a.b'" in refused(of("a.b"))
    assert "a phase named 'a'" in refused(of("a"), of("a"))
    assert "acts every 0 steps" in refused(of("a", every=0))
    assert "from step 4 on, of 4" in refused(of("a", first=4))
    assert "several tensors of the task would be called body.weight.exp_avg" in refused(of("a"), of("b"))


class Normed(nn.Module):
    """Two layers with batch norm between them, a factor, and a place for features."""

    kept: Tensor | None = None

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.body = nn.Sequential(nn.Linear(2, 6), nn.BatchNorm1d(6))
        self.head = nn.Linear(6, 1)
        self.factor = 1.0

    def forward(self, x: Tensor) -> Tensor:
        """One number per pair."""
        out: Tensor = self.head(self.body(x))
        return out * self.factor


def in_eval(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
    """`squared` in evaluation mode. The model stays in this mode."""
    model.eval()
    return squared(model, batch)


def with_factor(model: Normed, batch: Mapping[str, Tensor]) -> Tensor:
    """`squared` with half the output. The model keeps the factor 0.5."""
    model.factor = 0.5
    return squared(model, batch)


def keeping(model: Normed, batch: Mapping[str, Tensor]) -> Tensor:
    """`squared`. The model keeps the features."""
    model.kept = model.body(batch["real"]).detach()
    return squared(model, batch)


def reading(model: Normed, batch: Mapping[str, Tensor]) -> Tensor:
    """The mean squared output on the features plus those that another phase kept, if there are any."""
    features = model.body(batch["real"])
    error: Tensor = model.head(features if model.kept is None else features + model.kept).square().mean()
    return error


def of_both(of_body: Callable[..., Tensor], of_head: Callable[..., Tensor], **options: int) -> CapturedStep:
    """A step whose phases train the body and the head of a `Normed`."""
    model = Normed()
    phases = [
        Phase("body", of_body, torch.optim.SGD(model.body.parameters(), lr=0.1)),
        Phase("head", of_head, torch.optim.SGD(model.head.parameters(), lr=0.1), **options),  # type: ignore[arg-type]
    ]
    return capture_phases(model, phases, data(), batch_size=BATCH, steps=20)


@pytest.mark.parametrize(
    ("of_body", "of_head", "reader"),
    [
        (squared, in_eval, "body"),
        (squared, with_factor, "body"),
        (reading, keeping, "body"),
        (keeping, reading, "head"),
    ],
)
@pytest.mark.parametrize("options", [{}, {"first": 10, "every": 3}])
def test_a_phase_that_reads_what_another_leaves_in_python_is_refused(
    of_body: Callable[..., Tensor], of_head: Callable[..., Tensor], reader: str, options: dict[str, int]
) -> None:
    with pytest.raises(CaptureError, match=f"phase {reader} computes .* another phase has kept in Python"):
        of_both(of_body, of_head, **options)


def test_phases_that_set_all_that_they_read_are_captured() -> None:
    def in_training(model: Normed, batch: Mapping[str, Tensor]) -> Tensor:
        model.train()
        model.factor = 1.0
        return squared(model, batch)

    def halved(model: Normed, batch: Mapping[str, Tensor]) -> Tensor:
        model.eval()
        return with_factor(model, batch)

    assert of_both(in_training, halved).preflight is not None


class Counted(nn.Module):
    """Two layers, a counter of steps, and a table of three numbers."""

    n: Tensor

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.a, self.b = nn.Linear(2, 1), nn.Linear(2, 1)
        self.register_buffer("n", torch.tensor(0))
        self.register_buffer("table", torch.arange(1.0, 4.0))


def counting(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
    """The mean squared output of the first layer. Counts the call in the model."""
    assert isinstance(model, Counted)
    model.n += 1
    return squared(model.a, batch)


def factor_from_table(model: Counted) -> Tensor:
    """The table's entry at the counter."""
    return model.get_buffer("table").index_select(0, model.n.view(1))[0]


def with_counter(
    factor: Callable[[Counted], Tensor], steps: int, *, first: bool = False, **options: int
) -> CapturedStep:
    """A step of two phases. One counts, and the loss of the other is multiplied by `factor`. The phase that
    counts acts first, unless `first` is True.
    """
    model = Counted()

    def reading(_model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
        return squared(model.b, batch) * factor(model)

    phases = [
        Phase("count", counting, torch.optim.SGD(model.a.parameters(), lr=0.1)),
        Phase("read", reading, torch.optim.SGD(model.b.parameters(), lr=0.1)),
    ]
    return capture_phases(
        model,
        phases[::-1] if first else phases,
        data(),
        batch_size=BATCH,
        steps=steps,
        **options,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    ("steps", "options", "last"),
    [(6, {}, 6), (3, {}, 3), (4, {"first": True}, 3), (2, {"micro_batches": 2}, 4)],
)
def test_an_index_that_another_phase_counts_beyond_a_table_is_refused(
    steps: int, options: dict[str, int], last: int
) -> None:
    match = rf"may give aten\.index_select\.default any index from 0 to {last}; torch allows 0 to 2"
    with pytest.raises(CaptureError, match=match):
        with_counter(factor_from_table, steps, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("factor", "steps", "options"),
    [
        (factor_from_table, 2, {}),
        (factor_from_table, 3, {"first": True}),
        (lambda model: model.n.float(), 6, {}),
        (lambda model: 0.5 ** (model.n + 1).float(), 6, {"micro_batches": 2}),
    ],
)
def test_a_phase_reads_what_another_phase_counts(
    factor: Callable[[Counted], Tensor], steps: int, options: dict[str, int]
) -> None:
    step = with_counter(factor, steps, **options)  # type: ignore[arg-type]
    state = step.initial_state(1)
    for _ in range(steps):
        state = step.step(state)
    assert state["n"] == steps * options.get("micro_batches", 1)
    assert state["metric.read.loss"] > 0


def both_counting(
    by: tuple[int, int], size: int, model: Counted | None = None, **options: int
) -> tuple[list[Phase], CapturedStep]:
    """Two phases, and the step that they make, for four steps. The first phase adds `by[0]` to a counter, and
    the second adds `by[1]` to it. The counter is the index into a table of `size` numbers. The loss of the
    second phase is multiplied by the entry at this index.
    """
    own = model or Counted()
    own.register_buffer("table", torch.arange(1.0, size + 1))

    def counting_too(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
        assert isinstance(model, Counted)
        model.n += by[0]
        return squared(model.a, batch)

    def reading(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
        assert isinstance(model, Counted)
        model.n += by[1]
        return squared(model.b, batch) * factor_from_table(model)

    phases = [
        Phase("count", counting_too, torch.optim.SGD(own.a.parameters(), lr=0.01)),
        Phase("read", reading, torch.optim.SGD(own.b.parameters(), lr=0.01)),
    ]
    step = capture_phases(own, phases, data(), batch_size=BATCH, steps=4, bits=BITS, **options)  # type: ignore[arg-type]
    return phases, step


@pytest.mark.parametrize(
    ("by", "options", "bounds"),
    [
        ((1, 0), {}, "1 to 4"),
        ((10, 1), {}, "11 to 44"),
        ((-10, 1), {}, "-36 to -9"),
        ((10, 1), {"micro_batches": 2}, "21 to 84"),
    ],
)
def test_an_index_that_two_phases_count_beyond_a_table_is_refused(
    by: tuple[int, int], options: dict[str, int], bounds: str
) -> None:
    match = rf"may give aten\.index_select\.default any index from {bounds}; torch allows 0 to 2"
    with pytest.raises(CaptureError, match=match):
        both_counting(by, 3, **options)  # type: ignore[arg-type]


def test_a_phase_reads_what_two_phases_count() -> None:
    _, step = both_counting((10, 1), 45)
    state = step.initial_state(1)
    model = Counted()
    phases, _ = both_counting((10, 1), 45, model)
    for number in range(4):
        batch = {name: t[rows(state["key"], number)] for name, t in data().items()}
        for phase in phases:
            phase.optimizer.zero_grad()
            loss = phase.objective(model, batch)
            assert isinstance(loss, Tensor)
            loss.backward()
            phase.optimizer.step()
        state = step.step(state)
    assert state["n"] == model.n == 44
    for name, p in model.named_parameters():
        torch.testing.assert_close(state[name], p.detach(), rtol=TOLERANCE, atol=TOLERANCE)


def test_a_third_phase_reads_what_two_phases_count() -> None:
    """The counter is at most 8, since both count in each of four steps before the third reads."""

    def of_three(size: int) -> CapturedStep:
        model = Counted()
        model.register_buffer("table", torch.arange(1.0, size + 1))
        last = model.c = nn.Linear(2, 1)

        def reading(_model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
            return squared(last, batch) * factor_from_table(model)

        def counting_by(layer: nn.Module) -> Callable[[nn.Module, Mapping[str, Tensor]], Tensor]:
            def counting(_model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
                model.n += 1
                return squared(layer, batch)

            return counting

        phases = [
            Phase("one", counting_by(model.a), torch.optim.SGD(model.a.parameters(), lr=0.1)),
            Phase("two", counting_by(model.b), torch.optim.SGD(model.b.parameters(), lr=0.1)),
            Phase("read", reading, torch.optim.SGD(last.parameters(), lr=0.1)),
        ]
        return capture_phases(model, phases, data(), batch_size=BATCH, steps=4)

    assert of_three(9).initial_state(1)["n"] == 0
    with pytest.raises(CaptureError, match="any index from 2 to 8; torch allows 0 to 7"):
        of_three(8)


class CountedInThree(Counted):
    """Three layers, a counter, a copy of the counter, and a table of `size` numbers."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.c = nn.Linear(2, 1)
        self.register_buffer("copy", torch.tensor(0))
        self.register_buffer("table", torch.arange(1.0, size + 1))


def test_a_copy_of_a_counter_that_two_phases_write_has_its_bounds() -> None:
    """The copy is at most 7: the first phase copies what it counts in each of four steps, and the second counts on."""

    def of_three(size: int) -> CapturedStep:
        model = CountedInThree(size)

        def copying(_model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
            model.n += 1
            model.get_buffer("copy").copy_(model.n)
            return squared(model.a, batch)

        def counting_too(_model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
            model.n += 1
            return squared(model.b, batch)

        def reading(_model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
            at = model.get_buffer("copy").view(1)
            return squared(model.c, batch) * model.get_buffer("table").index_select(0, at)[0]

        phases = [
            Phase("copy", copying, torch.optim.SGD(model.a.parameters(), lr=0.1)),
            Phase("count", counting_too, torch.optim.SGD(model.b.parameters(), lr=0.1)),
            Phase("read", reading, torch.optim.SGD(model.c.parameters(), lr=0.1)),
        ]
        return capture_phases(model, phases, data(), batch_size=BATCH, steps=4)

    step = of_three(8)
    state = step.initial_state(1)
    for _ in range(4):
        state = step.step(state)
    assert (int(state["n"]), int(state["copy"])) == (8, 7)
    with pytest.raises(CaptureError, match="any index from 0 to 7; torch allows 0 to 6"):
        of_three(7)


def counted_and_clamped(
    by: int, micro_batches: int, steps: int, *, dtype: torch.dtype = torch.int64, shared: bool, **options: int
) -> CapturedStep:
    """A step of two phases. The first adds `by` to a counter in each micro-batch. The second clamps the
    counter to at most 3 and reads the table's entry at the clamped number. If the counter is `shared`, the
    second phase also writes the clamped number into it.
    """
    model = Counted()
    model.n = torch.tensor(0, dtype=dtype)
    model.register_buffer("table", torch.arange(1.0, 5.0))

    def adding(_model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
        model.n += by
        return squared(model.a, batch)

    def reading(_model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
        at = model.n.clamp_(max=3) if shared else model.n.clamp(max=3)
        return squared(model.b, batch) * model.get_buffer("table").index_select(0, at.view(1))[0]

    phases = [
        Phase("add", adding, torch.optim.SGD(model.a.parameters(), lr=0.1), **options),  # type: ignore[arg-type]
        Phase("read", reading, torch.optim.SGD(model.b.parameters(), lr=0.1)),
    ]
    return capture_phases(
        model, phases, data(), batch_size=BATCH, steps=steps, micro_batches=micro_batches, preflight=False
    )


def test_a_counter_that_the_micro_batches_count_beyond_32_bits_is_refused() -> None:
    with pytest.raises(CaptureError) as refused:
        counted_and_clamped(2**20, 2, 1500, shared=False)
    text = str(refused.value)
    assert "may give aten.add.Tensor results from 1048576 to 3145728000, int64 beyond 32 bits" in text
    assert "another phase may give the buffer n integers from 0 to 3145728000, int64 beyond 32 bits" in text
    assert counted_and_clamped(2**20, 2, 1000, shared=False).initial_state(1)["n"] == 0


@pytest.mark.parametrize(
    ("dtype", "steps", "first", "problem"),
    [
        (torch.int64, 2, 0, "results from 1073741824 to 2147483651, int64 beyond 32 bits"),
        (torch.int64, 200, 100, "results from 1073741824 to 2147483651, int64 beyond 32 bits"),
        (torch.int32, 2, 0, "any index from -2147483648 to 3; torch allows 0 to 3"),
        (torch.int32, 200, 100, "any index from -2147483648 to 3; torch allows 0 to 3"),
    ],
)
def test_a_counter_that_micro_batches_count_beyond_32_bits_before_a_clamp_is_refused(
    dtype: torch.dtype, steps: int, first: int, problem: str
) -> None:
    with pytest.raises(CaptureError, match=problem):
        counted_and_clamped(2**30, 2, steps, dtype=dtype, shared=True, first=first)


def test_a_phase_reads_an_integer_that_another_phase_makes_of_a_parameter() -> None:
    """Nothing is known of the integer, so it is not taken for a count beyond 32 bits."""
    model = Counted()

    def making(_model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
        model.n.copy_(model.a.weight.abs().sum().long().clamp(min=0))
        return squared(model.a, batch)

    def reading(_model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
        at = model.n.clamp(max=2).view(1)
        return squared(model.b, batch) * model.get_buffer("table").index_select(0, at)[0]

    phases = [
        Phase("make", making, torch.optim.SGD(model.a.parameters(), lr=0.1)),
        Phase("read", reading, torch.optim.SGD(model.b.parameters(), lr=0.1)),
    ]
    step = capture_phases(model, phases, data(), batch_size=BATCH, steps=10)
    assert step.step(step.initial_state(1))["n"] == int(model.a.weight.abs().sum())


def test_a_batch_count_over_many_steps_and_micro_batches_is_captured() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.Linear(2, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step = capture(
        model, squared, optimizer, data(), batch_size=BATCH, steps=100_000, micro_batches=4, preflight=False
    )
    state = step.step(step.step(step.initial_state(1)))
    assert state["1.num_batches_tracked"] == 8


@pytest.mark.parametrize("every", [1, 2])
def test_a_counter_that_two_phases_clamp_has_the_bounds_of_the_clamps(every: int) -> None:
    def clamping(size: int) -> CapturedStep:
        model = Counted()
        model.register_buffer("table", torch.arange(1.0, size + 1))

        def up(_model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
            model.n.add_(1).clamp_(max=3)
            return squared(model.a, batch) * factor_from_table(model)

        def down(_model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
            model.n.sub_(1).clamp_(min=0)
            return squared(model.b, batch) * factor_from_table(model)

        phases = [
            Phase("up", up, torch.optim.SGD(model.a.parameters(), lr=0.01)),
            Phase("down", down, torch.optim.SGD(model.b.parameters(), lr=0.01), every=every),
        ]
        return capture_phases(model, phases, data(), batch_size=BATCH, steps=20)

    step = clamping(4)
    state = step.initial_state(1)
    for _ in range(20):
        state = step.step(state)
    assert state["n"] == (0 if every == 1 else 3)
    with pytest.raises(CaptureError) as refused:
        clamping(1)
    found = re.findall(r"any index from (\d+ to \d+); torch allows 0 to 0", str(refused.value))
    assert found == (["1 to 1"] if every == 1 else ["1 to 3", "0 to 2"])
