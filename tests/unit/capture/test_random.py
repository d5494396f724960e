"""Random numbers inside a step: the right distribution, new in every step, the same in the preflight."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch import manual_seed as seeding

from protocol.capture import CapturedStep, CaptureError, capture
from protocol.program.execute import Interpreter

SIZE = 4096


class Noise(nn.Module):
    """Stores the random numbers that it draws in a buffer."""

    drawn: Tensor

    def __init__(self, draw: Callable[[], Tensor]) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))
        self._draw = draw
        with torch.no_grad():
            self.register_buffer("drawn", torch.zeros(draw().shape))


def objective(model: Noise, _: object) -> Tensor:
    x = model._draw().float()
    model.drawn.copy_(x)
    return (model.weight * x).mean()


def captured(draw: Callable[[], Tensor]) -> CapturedStep:
    model = Noise(draw)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return capture(model, objective, optimizer, {"rows": torch.zeros(1, 1)}, batch_size=1, steps=2)  # type: ignore[arg-type]


def numbers(draw: Callable[[], Tensor]) -> Tensor:
    """Returns the numbers that two steps draw. Asserts that the programs' bodies give the same bits as their
    kernels, and that the two steps draw different numbers.
    """
    step = captured(draw)
    first = step.step(step.initial_state(3))
    slow = step.step_program.step(step.initial_state(3), step.fixed, Interpreter())
    assert torch.equal(slow["drawn"], first["drawn"])
    second = step.step(first)
    assert not torch.equal(first["drawn"], second["drawn"])
    return torch.cat([first["drawn"].flatten(), second["drawn"].flatten()])


WEIGHTS = [0.1, 0.0, 0.6, 0.3]


def weights() -> Tensor:
    return torch.tensor(WEIGHTS)


MOMENTS: list[tuple[str, Callable[[], Tensor], float, float]] = [
    ("rand", lambda: torch.rand(SIZE), 0.5, 1 / 12),
    ("rand_like", lambda: torch.rand_like(torch.zeros(SIZE)), 0.5, 1 / 12),
    ("randn", lambda: torch.randn(SIZE), 0, 1),
    ("randn_like", lambda: torch.randn_like(torch.zeros(SIZE)), 0, 1),
    ("normal", lambda: torch.normal(2.0, 3.0, (SIZE,)), 2, 9),
    ("normal of each", lambda: torch.normal(torch.full((SIZE,), 2.0), torch.full((SIZE,), 3.0)), 2, 9),
    ("normal_", lambda: torch.empty(SIZE).normal_(1.0, 2.0), 1, 4),
    ("uniform_", lambda: torch.empty(SIZE).uniform_(-1, 3), 1, 16 / 12),
    ("exponential_", lambda: torch.empty(SIZE).exponential_(2.0), 0.5, 0.25),
    ("randint", lambda: torch.randint(-3, 7, (SIZE,)), 1.5, 99 / 12),
    ("randint far", lambda: torch.randint(0, 2**30, (SIZE,)) / 2**30, 0.5, 1 / 12),
    ("randint_like", lambda: torch.randint_like(torch.zeros(SIZE), 10), 4.5, 99 / 12),
    ("random_", lambda: torch.zeros(SIZE).random_(10), 4.5, 99 / 12),
    ("bernoulli", lambda: torch.bernoulli(torch.full((SIZE,), 0.3)), 0.3, 0.21),
    ("bernoulli_", lambda: torch.zeros(SIZE).bernoulli_(torch.full((SIZE,), 0.3)), 0.3, 0.21),
    ("bernoulli_ number", lambda: torch.zeros(SIZE).bernoulli_(0.3), 0.3, 0.21),
    ("multinomial", lambda: torch.multinomial(weights(), SIZE, True), 2.1, 0.69),
    ("rand, no generator", lambda: torch.rand(SIZE, generator=None), 0.5, 1 / 12),
    ("randn, no generator", lambda: torch.randn((SIZE,), generator=None), 0, 1),
    ("randint, no generator", lambda: torch.randint(10, (SIZE,), generator=None), 4.5, 99 / 12),
    ("randint from, no generator", lambda: torch.randint(-3, 7, (SIZE,), generator=None), 1.5, 99 / 12),
]


@pytest.mark.parametrize(("draw", "mean", "variance"), [x[1:] for x in MOMENTS], ids=[x[0] for x in MOMENTS])
def test_distributions_have_their_moments(draw: Callable[[], Tensor], mean: float, variance: float) -> None:
    x = numbers(draw).double()
    assert abs(x.mean() - mean) < 5 * math.sqrt(variance / x.numel())
    assert x.var().item() == pytest.approx(variance, rel=0.15)


BEYOND: dict[str, Callable[[], Tensor]] = {
    "more than 31 random bits": lambda: torch.randint(0, 2**31 + 1, (SIZE,)) % 1_000,
    "all of 32 bits": lambda: torch.randint(-(2**31), 2**31 - 1, (SIZE,)) % 1_000,
    "integers beyond 32 bits": lambda: torch.randint(2**31 - 5, 2**31 + 5, (SIZE,)) % 1_000,
    "in the shape of another": lambda: torch.randint_like(torch.zeros(SIZE).long(), 2**40) % 1_000,
    "in place": lambda: torch.zeros(SIZE).long().random_(2**40) % 1_000,
}


@pytest.mark.parametrize("draw", BEYOND.values(), ids=BEYOND)
def test_integers_that_would_never_be_drawn_are_refused(draw: Callable[[], Tensor]) -> None:
    with pytest.raises(CaptureError, match=r"range of at most 2\^31 integers"):
        captured(draw)


def test_the_largest_range_of_integers_is_drawn_whole() -> None:
    x = numbers(lambda: torch.randint(-(2**30), 2**30, (SIZE,)) / 2**30)
    assert x.min() < -0.99
    assert x.max() > 0.99


def test_a_permutation_has_every_number_once() -> None:
    first, second = numbers(lambda: torch.randperm(100, generator=None)).chunk(2)
    assert sorted(first.tolist()) == sorted(second.tolist()) == list(range(100))


def test_without_replacement_no_place_comes_twice_and_none_of_weight_zero() -> None:
    rows = numbers(lambda: torch.multinomial(weights().expand(200, 4), 3)).view(-1, 3)
    assert all(sorted(row) == [0, 2, 3] for row in rows.tolist())
    heaviest = (rows[:, 0] == 2).double().mean()
    assert abs(heaviest - 0.6) < 0.12


def test_two_draws_of_one_step_differ() -> None:
    both = numbers(lambda: torch.stack([torch.rand(8), torch.rand(8)])).view(2, 2, 8)
    assert not torch.equal(both[0, 0], both[0, 1])


def test_noise_reaches_gradients() -> None:
    model = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def denoise(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        x = batch["x"]
        noise = torch.randn_like(x)
        level = torch.randint(1, 11, (len(x), 1)) / 10
        loss: Tensor = ((model(x + level * noise) - noise) ** 2).mean()
        return loss

    step = capture(model, denoise, optimizer, {"x": torch.randn(32, 4)}, batch_size=8, steps=3)  # type: ignore[arg-type]
    assert step.preflight is not None
    assert step.preflight.gradient_error < 1e-2


STATE = torch.get_rng_state()


def forked() -> Tensor:
    with torch.random.fork_rng():
        torch.manual_seed(3)
        return torch.randn(4)


def repeated() -> Tensor:
    with torch.random.fork_rng():
        first = torch.randn(4)
    return first + torch.randn(4)


def with_seed(seed: Callable[[], object]) -> Tensor:
    seed()
    return torch.randn(4)


SEEDED: list[Callable[[], Tensor]] = [
    lambda: with_seed(lambda: torch.manual_seed(3)),
    lambda: with_seed(lambda: torch.random.manual_seed(3)),
    lambda: with_seed(lambda: seeding(3)),
    lambda: with_seed(lambda: torch.default_generator.manual_seed(3)),
    lambda: with_seed(lambda: torch.set_rng_state(STATE)),
    lambda: with_seed(lambda: torch.random.set_rng_state(STATE)),
    forked,
    repeated,
]


@pytest.mark.parametrize("draw", SEEDED)
def test_a_step_that_seeds_its_random_numbers_is_refused(draw: Callable[[], Tensor]) -> None:
    """A step that sets torch's seed or random state is refused. With torch, such a step draws the same
    numbers again, but a program would draw new ones.
    """
    before = torch.default_generator
    with torch.random.fork_rng(), pytest.raises(CaptureError, match="seeds torch's random numbers") as caught:
        captured(draw)
    assert all("test_random.py" in problem.source for problem in caught.value.problems)
    assert torch.default_generator is before
    torch.manual_seed(3)
    assert before.initial_seed() == 3
