"""Lanes: the three programs of a round, and whole jobs in one process for any membership table."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from protocol.capture import CapturedStep, capture
from protocol.lanes import (
    Job,
    Lanes,
    LanesError,
    Membership,
    MembershipError,
    Part,
    Round,
    lanes,
    seeds,
)
from protocol.lanes.splitting import BASE, COUNT, FEEDBACK, NUMBER
from protocol.program.step import State
from protocol.program.trace import trace

WIDTH, ROWS, STEPS = 3, 40, 2
DENSITIES = [Fraction(1), Fraction(1, 8), Fraction(1, 64)]
OWN = (NUMBER,)


class Tied(nn.Module):
    """A model with a shared weight and a frozen bias. Lanes exchange the weight and the other bias, each once."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(24, 24), nn.Linear(24, 24)
        self.second.weight = self.first.weight
        self.second.bias.requires_grad_(False)

    def forward(self, batch: Mapping[str, Tensor]) -> Tensor:
        hidden: Tensor = self.second(torch.relu(self.first(batch["x"])))
        return (hidden - batch["y"]).square().mean()


@pytest.fixture(scope="module")
def captured() -> CapturedStep:
    torch.manual_seed(3)
    model = Tied()
    data = {"x": torch.randn(ROWS, 24), "y": torch.randn(ROWS, 24)}
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=0.01)
    return capture(model, lambda m, b: m(b), optimizer, data, batch_size=8, steps=1_000)


def split(captured: CapturedStep, density: Fraction = DENSITIES[1], width: int = WIDTH, **more: Any) -> Lanes:
    return lanes(captured, width=width, density=density, inner_steps=STEPS, **more)


def same(a: State, b: State, but: Collection[str] = ()) -> bool:
    """Whether two states have the same bits, apart from the tensors in `but`."""
    return a.keys() == b.keys() and all(
        torch.equal(_bits(a[name]), _bits(b[name])) for name in a.keys() - set(but)
    )


def _bits(x: Tensor) -> Tensor:
    return x.contiguous().view(-1).view(torch.uint8) if x.dim() else x.reshape(1).view(torch.uint8)


def train(
    job: Lanes, rows: Sequence[Sequence[str]], of: Sequence[int] | None = None
) -> tuple[list[Round], dict[str, Tensor]]:
    run = Job(job, of or seeds(7, job.width), Membership.of(rows))
    rounds = list(run.rounds())
    return rounds, run.result(rounds[-1])


# the programs


@pytest.mark.parametrize("density", DENSITIES, ids=str)
def test_what_is_exchanged_is_every_trained_parameter_once(captured: CapturedStep, density: Fraction) -> None:
    job = split(captured, density)
    assert job.parameters == ("first.weight", "first.bias")
    block = density.denominator
    assert (
        (24 * 24 + 24) <= job.inner.state_types[job.inner.state.index(BASE)].elements < 24 * 25 + 64 * block
    )
    assert job.inner.state[-len(job.message_types) :] == tuple(job.message_types)
    for step in (job.absorb, job.inner, job.emit):
        assert step.state == job.inner.state


@pytest.mark.parametrize("density", DENSITIES, ids=str)
def test_a_round_has_the_bits_of_its_traces(captured: CapturedStep, density: Fraction) -> None:
    job = split(captured, density, width=2)
    rounds, _ = train(job, [["counts"] * 2] * 2)
    state = rounds[0].states[1]
    assert state is not None
    inbox = [x for message in rounds[0].inbox for x in message]
    for step, fixed in ((job.absorb, inbox), *[(job.inner, captured.fixed)] * STEPS, (job.emit, ())):
        outputs = trace(step.program, (*step.order(state), *fixed)).outputs
        state = dict(zip(step.state, outputs, strict=True))
    expected = rounds[1].states[1]
    assert expected is not None
    assert same(state, expected)


def test_between_rounds_the_parameters_are_those_that_the_lanes_share(captured: CapturedStep) -> None:
    job = split(captured)
    rounds, result = train(job, [["counts"] * WIDTH] * 3)
    first = rounds[0].states[0]
    assert first is not None
    assert same({k: first[k] for k in job.parameters}, {k: captured.initial[k] for k in job.parameters})
    for done in rounds:
        assert all(float(state[COUNT]) == 1 and not state[BASE].any() for state in done.states if state)
    assert not same({k: result[k] for k in job.parameters}, {k: first[k] for k in job.parameters})


def test_dense_messages_bring_every_lane_to_the_mean(captured: CapturedStep) -> None:
    job = split(captured, DENSITIES[0])
    rounds, result = train(job, [["counts"] * WIDTH])
    interpreter = job.interpreter()
    trained = []
    for seed in seeds(7, WIDTH):
        state = captured.initial_state(seed)
        for _ in range(STEPS):
            state = captured.step_program.step(state, captured.fixed, interpreter)
        trained.append(state)
    for name in job.parameters:
        mean = torch.stack([state[name] for state in trained]).double().mean(0)
        moved = (mean - captured.initial[name]).abs().max()
        assert (result[name] - mean).abs().max() < moved / 64  # 7 bits of the largest of 64 values
    assert len(rounds) == 1


def test_what_a_message_leaves_out_stays_with_the_lane(captured: CapturedStep) -> None:
    job = split(captured, DENSITIES[2], width=1)
    rounds, result = train(job, [["counts"]])
    state = captured.initial_state(seeds(7, 1)[0])
    for _ in range(STEPS):
        state = captured.step(state)
    after = rounds[0].states[0]
    assert after is not None
    moved = torch.cat([(captured.initial[name] - state[name]).flatten() for name in job.parameters])
    sent = torch.cat([(captured.initial[name] - result[name]).flatten() for name in job.parameters])
    kept = result[FEEDBACK][: len(moved)]
    assert torch.count_nonzero(sent) <= -(-len(moved) // 64)
    assert torch.allclose(sent + kept, moved, atol=1e-7)
    assert not result[FEEDBACK][len(moved) :].any()


# jobs


def test_one_lane_without_messages_is_ordinary_training(captured: CapturedStep) -> None:
    job = lanes(captured, width=1, density=None, inner_steps=STEPS)
    _, result = train(job, [["counts"]] * 4)
    state = captured.initial_state(seeds(7, 1)[0])
    for _ in range(4 * STEPS):
        state = captured.step(state)
    assert same(result, state)


PARTS = st.sampled_from([part.value for part in Part])
TABLES = st.lists(
    st.lists(PARTS, min_size=WIDTH, max_size=WIDTH).filter(lambda row: row != ["away"] * WIDTH),
    min_size=1,
    max_size=5,
)


@settings(max_examples=15, deadline=None)
@given(TABLES, st.permutations(range(WIDTH)))
def test_any_table_gives_all_lanes_the_same_model_whatever_they_are_called(
    captured: CapturedStep, rows: list[list[str]], order: list[int]
) -> None:
    job = split(captured)
    rounds, result = train(job, rows)
    for done, row in zip(rounds, rows, strict=True):
        there = [state for state in done.states if state is not None]
        assert [state is None for state in done.states] == [part == "away" for part in row]
        shared = [{name: state[name] for name in (*job.parameters, BASE)} for state in there]
        assert all(same(shared[0], other) for other in shared)
        for message, part in zip(done.inbox, row, strict=True):
            assert float(message[-1]) == (part == "counts")
    table = Membership.of(rows)
    if any(table.joins(number, lane) for number in range(len(rows)) for lane in range(WIDTH)):
        return  # a joining lane takes the optimiser of the first present lane, so order matters
    of = seeds(7, WIDTH)
    again, other = train(job, [[row[w] for w in order] for row in rows], [of[w] for w in order])
    assert same({k: result[k] for k in job.parameters}, {k: other[k] for k in job.parameters})
    for done, renamed in zip(rounds, again, strict=True):
        for place, w in enumerate(order):
            a, b = done.states[w], renamed.states[place]
            assert (a is None) == (b is None)
            assert a is None or b is None or same(a, b, OWN)


def test_a_late_message_comes_back_and_is_sent_later(captured: CapturedStep) -> None:
    job = split(captured)
    rounds, result = train(job, [["counts", "counts", "late"]])
    late = rounds[0].states[2]
    assert late is not None
    interpreter = job.interpreter()
    absorbed = job.absorbed(late, rounds[0].inbox, interpreter)
    counted = job.absorbed(late, [*rounds[0].inbox[:2], job.message(late)], interpreter)
    returned = absorbed[FEEDBACK] - late[FEEDBACK]
    assert torch.equal(counted[FEEDBACK], late[FEEDBACK])
    assert torch.count_nonzero(returned) > 0
    assert same({k: absorbed[k] for k in job.parameters}, {k: result[k] for k in job.parameters})


def test_a_lane_that_returns_begins_with_what_another_has(captured: CapturedStep) -> None:
    job = split(captured)
    there, away = ["counts"] * WIDTH, ["counts", "counts", "away"]
    rounds, _ = train(job, [there, away, there])
    assert rounds[1].states[2] is None
    back, member = rounds[2].states[2], rounds[2].states[0]
    assert back is not None
    assert member is not None
    assert same({k: back[k] for k in job.parameters}, {k: member[k] for k in job.parameters})
    assert int(back["step"]) == int(member["step"]) == 3 * STEPS
    assert int(back[NUMBER]) == 2


def test_garbage_is_cut_to_what_the_program_allows(captured: CapturedStep) -> None:
    """A message whose values are 127 and whose exponents are the largest i32 moves no parameter by more
    than 2^most_exponent.
    """
    job = split(captured, most_exponent=-4)
    rounds, _ = train(job, [["counts"] * WIDTH])
    state = rounds[0].states[0]
    assert state is not None
    honest = rounds[0].inbox[0]
    garbage = [torch.full_like(x, torch.iinfo(x.dtype).max) if x.dtype is torch.int32 else x for x in honest]
    garbage[-3] = torch.full_like(honest[-3], 127)
    interpreter = job.interpreter()
    with_it = job.absorbed(state, [garbage, job.nothing(), job.nothing()], interpreter)
    without = job.absorbed(state, [job.nothing()] * WIDTH, interpreter)
    for name in job.parameters:
        assert (with_it[name] - without[name]).abs().max() <= 2.0**-4


# refused input


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"width": 0}, "expected 1 to 16 lanes, got 0"),
        ({"width": 17}, "expected 1 to 16 lanes, got 17"),
        ({"density": 0.3}, "expected one of 1, 1/8, 1/16, 1/32, 1/64, got 0.3"),
        ({"density": None}, "density of messages for several lanes"),
        ({"inner_steps": 0}, "at least one step a round"),
        ({"most_exponent": -96}, "most_exponent: expected -95 to 127, got -96"),
        ({"most_exponent": 128}, "most_exponent: expected -95 to 127, got 128"),
        ({"rate": float("nan")}, "rate: expected a number of f32, got nan"),
        ({"decay": float("inf")}, "decay: expected a number of f32, got inf"),
        ({"parameters": ["step"]}, "names of f32 tensors of the state, got step"),
        ({"parameters": []}, "names of f32 tensors of the state, got none"),
    ],
)
def test_numbers_that_no_job_has_are_refused(
    captured: CapturedStep, given: dict[str, Any], message: str
) -> None:
    with pytest.raises(LanesError, match=message):
        lanes(captured, **{"width": 2, "density": 1 / 8, "inner_steps": 2, **given})


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "at least one round"),
        ([[]], "at least one round of at least one lane"),
        ([["counts"], ["counts", "late"]], "1 lanes in round 1, as in round 0, got 2"),
        ([["counts", "away"], ["away", "away"]], "a lane that trains in round 1"),
        ([["counts", "gone"]], "'gone' is not a valid Part"),
    ],
)
def test_tables_that_contradict_themselves_are_refused(rows: list[list[str]], message: str) -> None:
    with pytest.raises(MembershipError, match=message):
        Membership.of(rows)


def test_a_job_needs_a_seed_and_a_column_for_each_lane(captured: CapturedStep) -> None:
    job = split(captured)
    for of, width in ((seeds(7, 2), 3), (seeds(7, 3), 2), ([7, 7, 8], 3)):
        with pytest.raises(MembershipError):
            Job(job, of, Membership.full(2, width))
    with pytest.raises(LanesError, match="64 bits"):
        seeds(2**64, 2)
