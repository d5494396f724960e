"""The bidding rule: what it decides for various terms and a solver's figures."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.chain.parameters import TOKEN
from protocol.tasks import owed
from protocol.tasks.admission import Clocks, Rates
from protocol.tasks.bidding import ladder, least_undercut
from protocol.tasks.floor import TASK_GAS, YEAR, Costs, Floor, floor, game_cost
from protocol.tasks.offers import (
    Best,
    Figures,
    Offer,
    Refusal,
    Rule,
    Training,
    copies_at_once,
    decide,
    seconds_needed,
)
from protocol.tasks.task import Terms

COSTS = Costs(machine=1.5, power=0.5, capital=0.0, late=0.0, gas=10 / TASK_GAS, margin=0.5)
PROGRAM = b"\1" * 32
FIGURES = Figures(
    free=1_000, rates=Rates(1e6), costs=COSTS, opening=0.9, disk=166_900, traces={PROGRAM: owed.Traces()}
)
"""Figures that know the program of `TERMS`. The traces of this program take nothing."""
FLOOR = Floor(machine=30, power=10, capital=0, delay=0, gas=10, margin=25)
TERMS = Terms(
    program_id=PROGRAM,
    constants_root=b"\1" * 32,
    initial_state=b"\1" * 32,
    bundle_hash=b"\1" * 32,
    constants=1,
    state_tensors=1,
    segments=4,
    segment_steps=5,
    step_operations=1_000_000,
    state_bytes=100,
    budget=1_000,
    stake=500,
    restitution=0,
    audit_fee=0,
    delay_penalty=0,
    bidding_period=10,
    training_period=30,
    challenge_period=20,
    attest_period=10,
    extension=5,
    clock=1_000,
    replay_allowance=50,
    verifiers=1,
    segments_per_verifier=1,
    arithmetic=1,
    thinning=1,
    move_time=5,
    look_chance=0,
    jurors=0,
    seat_lock=0,
    reward=10,
    game_cost=10,
    bond=100,
    retrain_reward=10,
    bundle="http://127.0.0.1/",
)


def test_a_task_whose_states_its_line_cannot_serve_in_time_is_refused() -> None:
    """A solver must serve 100 bytes to the seat, or to each of 7 jurors, within 5 s. That is half of the
    attestation period.
    """
    assert isinstance(decide(TERMS, replace(FIGURES, uplink=20.1)), Offer)
    refused = decide(TERMS, replace(FIGURES, uplink=19.9))
    assert isinstance(refused, Refusal)
    assert refused.reason == (
        "it may have to serve 100 bytes in 1 tensors within 5 s, half of the attestation period, "
        "its line carries 20 bytes a second (uplink_mbit), and its disk 1000 tensors"
    )
    jury = replace(TERMS, jurors=7)
    assert copies_at_once(jury) == 7
    assert isinstance(decide(jury, replace(FIGURES, uplink=139.0)), Refusal)
    assert decide(jury, replace(FIGURES, uplink=141.0)) == decide(jury, FIGURES)
    assert copies_at_once(replace(jury, verifiers=4, segments_per_verifier=2, stake=5_000)) == 8


def test_a_task_of_more_tensors_than_a_solver_serves_in_time_is_refused() -> None:
    """A solver serves 1,000 tensors a second, however fast the line is. So one seat may ask for 5,000 tensors
    in 5 s, but two seats may not.
    """
    many, ample = replace(scalars(5_000, 1, 1), attest_period=10), replace(FIGURES, disk=math.inf)
    assert many.verifiers == 1
    refused = decide(replace(many, verifiers=2), ample)
    assert isinstance(refused, Refusal)
    assert (refused.rule, refused.least) == (Rule.UPLINK, 20)
    assert not (isinstance(found := decide(many, ample), Refusal) and found.rule is Rule.UPLINK)
    more = decide(replace(many, state_tensors=5_001), ample)
    assert isinstance(more, Refusal)
    assert (more.rule, more.least) == (Rule.UPLINK, 11)


def test_the_floor_is_twenty_seconds_of_machine_and_power_and_gas_with_half_as_margin() -> None:
    assert floor(TERMS, 20.0, COSTS, 0) == FLOOR
    assert FLOOR.price == 75


def test_capital_is_the_penalty_until_the_submission_and_the_stake_until_the_end_of_the_challenges() -> None:
    """Capital costs a tenth of the locked amount per 50 s. 100 units are locked until the submission (30 s),
    and then 500 units for 5 + 20 s.
    """
    terms, costs = replace(TERMS, delay_penalty=100), replace(COSTS, capital=0.1 * YEAR / 50, gas=0.0)
    found = floor(terms, 20.0, costs, 5)
    assert found == Floor(machine=30, power=10, capital=6 + 25, delay=0, gas=0, margin=36)


def test_a_long_training_costs_no_more_capital_for_the_stake_than_a_short_one() -> None:
    costs = replace(COSTS, capital=1.0)
    assert floor(TERMS, 20.0, costs, 5).capital == floor(TERMS, 2e6, costs, 5).capital


def test_the_risk_of_delay_makes_the_floor_worth_its_while() -> None:
    """A quarter of the tasks is late. Without a margin, the prices of three tasks pay for the costs of four
    tasks and one penalty.
    """
    terms, costs = replace(TERMS, delay_penalty=100), replace(COSTS, late=0.25, margin=0.0)
    found = floor(terms, 20.0, costs, 0)
    assert found.delay == 50
    assert 3 * found.price == 4 * 50 + 100


def test_a_false_challenge_costs_gas_two_replays_and_the_stakes_capital_for_a_game() -> None:
    """Each of two replays takes 5 s and costs 2 units a second. The game takes 390,000 gas; the price of gas
    is 10 units for every 670,000 gas. The stake of 500 units is locked for 2,100 s, and its capital costs a
    tenth per 50 s.
    """
    assert game_cost(TERMS, 1e6, COSTS) == 20 + 1 + 6
    assert game_cost(TERMS, 1e6, replace(COSTS, capital=0.1 * YEAR / 50)) == 27 + 2_100


def test_a_floor_says_its_parts() -> None:
    parts = Floor(TOKEN, 2 * TOKEN, 0, TOKEN // 2, TOKEN // 10, 3)
    assert str(parts) == (
        "3.6 tokens (machine 1, power 2, capital 0, delay 0.5, gas 0.1, margin 0.000000000000000003)"
    )


def test_gas_of_a_task_is_what_its_transactions_were_measured_at() -> None:
    measured = json.loads((Path(__file__).parents[2] / "vectors" / "gas.json").read_text())
    once = sum(measured[name] for name in ("bid", "assign", "first progress", "submit", "settle"))
    assert 1 <= TASK_GAS / (once + 3 * measured["progress"]) < 1.1


def test_the_first_bid_asks_for_a_share_and_an_answer_is_the_least_undercut() -> None:
    assert decide(TERMS, FIGURES) == Offer(900, FLOOR)
    assert decide(TERMS, FIGURES, Best(800, 0)) == Offer(784, FLOOR)
    assert decide(TERMS, FIGURES, Best(800, 2)) == Offer(736, FLOOR)
    assert decide(TERMS, FIGURES, Best(800, 9)) == Offer(288, FLOOR)
    assert decide(TERMS, FIGURES, Best(77, 0)) == Offer(75, FLOOR)
    assert isinstance(decide(TERMS, FIGURES, Best(76, 0)), Refusal)  # 2 units less is below the floor
    assert isinstance(decide(TERMS, FIGURES, Best(0, 0)), Refusal)
    assert decide(replace(TERMS, budget=75), FIGURES) == Offer(75, FLOOR)


def test_a_quarter_more_time_than_training_takes_is_enough() -> None:
    assert isinstance(decide(replace(TERMS, training_period=25), FIGURES), Offer)


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        (
            replace(TERMS, budget=74),
            "pay at most 0.000000000000000074 tokens, its floor is 0.000000000000000075 tokens "
            "(machine 0.00000000000000003, power 0.00000000000000001,",
        ),
        (replace(TERMS, arithmetic=2), "arithmetic version 2"),
        (replace(TERMS, training_period=19), "20 s of training do not fit into 19 s"),
        (replace(TERMS, training_period=24), "20 s of training do not fit into 24 s with a quarter to spare"),
        (replace(TERMS, state_bytes=101), "checkpoints take up to 166905 bytes, 166900 are free for them"),
        (replace(TERMS, stake=1_001), "stake of 0.000000000000001001 tokens, 0.000000000000001 are free"),
        (
            replace(TERMS, bond=51),
            "a false challenge costs it 0.000000000000000027 tokens, and pays it half of a bond of "
            "0.000000000000000051",
        ),
        (replace(TERMS, clock=856), "games of this task: 15 min 7 s needed within 15 min 6 s"),
    ],
)
def test_what_does_not_pay_or_cannot_be_done_is_refused_with_the_reason(terms: Terms, words: str) -> None:
    decision = decide(terms, FIGURES)
    assert isinstance(decision, Refusal)
    assert words in decision.reason


def scalars(count: int, segments: int, segment_steps: int) -> Terms:
    """Terms whose states are `count` scalars of eight bytes, with the times of a long task."""
    return replace(
        TERMS,
        state_tensors=count,
        state_bytes=8 * count,
        segments=segments,
        segment_steps=segment_steps,
        training_period=10**6,
        attest_period=10**5,
        challenge_period=2 * 10**5,
        clock=10**7,
        budget=10**9,
    )


def test_each_tensor_of_each_checkpoint_counts_as_a_file_on_the_disk() -> None:
    """20,000 scalars in 2,001 checkpoints are only 320 MB. But they are 40 million files, each with an entry
    in a manifest.
    """
    terms, disk = scalars(20_000, 2_000, 1_000), replace(FIGURES, rates=Rates(1e9, files=1e5))
    refused = decide(terms, replace(disk, disk=500e9))
    assert isinstance(refused, Refusal)
    assert refused.rule is Rule.DISK
    assert isinstance(decide(terms, replace(disk, disk=1e12)), Offer)


def test_writing_the_files_of_checkpoints_has_to_fit_into_the_training_period() -> None:
    """Each step takes 1 s and is followed by a checkpoint. 2,001 checkpoints of 20,001 files each take 55
    hours at 200 files a second.
    """
    terms, figures = scalars(20_000, 2_000, 1), replace(FIGURES, disk=1e12)
    assert seconds_needed(terms, figures) == 2_001 * 20_001 / 200
    assert isinstance(decide(terms, figures), Offer)
    late = replace(terms, training_period=250_000)
    refused = decide(late, figures)
    assert isinstance(refused, Refusal)
    assert refused.rule is Rule.TRAINING
    assert refused.least == math.ceil(1.25 * 2_001 * 20_001 / 200)
    assert "of writing 40022001 files of checkpoints do not fit" in refused.reason
    assert isinstance(decide(late, replace(figures, rates=Rates(1e6, files=201))), Offer)


def test_the_files_of_an_ordinary_state_change_nothing() -> None:
    """A small GPT with AdamW has 150 tensors, so writing a checkpoint takes 0.75 s, less than the six seconds
    of steps during which it is written.
    """
    terms = replace(TERMS, state_tensors=150, segment_steps=60, step_operations=100_000)
    figures = replace(FIGURES, disk=1e9)
    assert seconds_needed(terms, figures) == 4 * 60 * 0.1
    assert isinstance(decide(terms, figures), Offer)


def test_each_move_needs_two_blocks_too() -> None:
    """Replays and steps take 907 s of 1,050 s; each of the 111 moves also needs two blocks."""
    assert isinstance(decide(TERMS, replace(FIGURES, clocks=Clocks(2 * 0.64))), Offer)
    assert isinstance(decide(TERMS, replace(FIGURES, clocks=Clocks(0.64, look=0.64))), Offer)
    decision = decide(TERMS, replace(FIGURES, clocks=Clocks(2 * 0.65)))
    assert decision == Refusal("games of this task: 17 min 31 s needed within 17 min 30 s", Rule.GAMES, 1051)


def test_a_long_step_of_another_task_counts_and_its_long_segment_does_not() -> None:
    """At a third of the rates, sixteen replays take 240 s. That leaves 810 of 1,050 s for waiting: enough for
    666 steps of 1.21 s each.
    """
    for_hours = replace(TERMS, segment_steps=3_600, clock=10**6)
    assert isinstance(decide(TERMS, replace(FIGURES, taken={"task 2": for_hours})), Offer)
    long_step = replace(for_hours, step_operations=1_300_000)
    decision = decide(TERMS, replace(FIGURES, taken={"task 2": long_step}))
    assert decision == Refusal("games of this task: 18 min 26 s needed within 17 min 30 s", Rule.GAMES, 1106)
    fits = replace(long_step, step_operations=1_200_000)
    assert isinstance(decide(TERMS, replace(FIGURES, taken={"task 2": fits})), Offer)


def test_no_step_of_its_own_may_hold_the_defence_of_another_task() -> None:
    mine = replace(TERMS, step_operations=1_300_000, clock=10**6, training_period=10**6)
    decision = decide(mine, replace(FIGURES, taken={"task 2": TERMS}))
    assert decision == Refusal("games of task 2: 18 min 26 s needed within 17 min 30 s", Rule.GAMES, 1106)


def test_games_of_all_tasks_together_are_to_be_answered_in_time() -> None:
    """Each task needs 240 s of 1,050 s. Waiting for steps takes 666 s more, which count only once. One task
    fits, but two do not.
    """
    assert isinstance(decide(TERMS, FIGURES), Offer)
    decision = decide(TERMS, replace(FIGURES, taken={"task 2": TERMS}))
    assert decision == Refusal(
        "games of this task and games of task 2: 19 min 7 s needed within 17 min 30 s", Rule.GAMES, 1147
    )
    later = replace(TERMS, clock=1_096)
    assert decide(later, replace(FIGURES, taken={"task 2": TERMS})) == Refusal(
        "games of task 2 and games of this task: 19 min 7 s needed within 19 min 6 s", Rule.GAMES, 1147
    )
    assert isinstance(decide(replace(later, clock=1_097), replace(FIGURES, taken={"task 2": TERMS})), Offer)


def test_a_program_that_is_not_known_counts_by_its_terms() -> None:
    """A program is not known until its bundle is read. A task with such a program counts without traces while
    the solver considers it. Once the solver has taken the task, it counts with the most traces that its terms
    allow.

    The work for them in each game is one run of the step at 10^6 operations a second, and 107 hashings of a
    value that has one byte for every seven operations of the step.
    """
    assert decide(TERMS, replace(FIGURES, traces={})) == decide(TERMS, FIGURES)
    other = replace(TERMS, program_id=b"\2" * 32, clock=880)
    beside, mine = replace(FIGURES, taken={"task 2": other}), replace(TERMS, clock=10**5)
    refused = decide(mine, beside)
    assert isinstance(refused, Refusal)
    assert refused.reason == "games of task 2: 15 min 58 s needed within 15 min 30 s"
    known = replace(beside, traces={**FIGURES.traces, other.program_id: owed.Traces()})
    assert isinstance(decide(mine, known), Offer)


def test_what_was_measured_of_a_program_counts_before_what_is_set() -> None:
    twice = Rates(1e6, programs={TERMS.program_id: 2e6})
    assert isinstance(decide(replace(TERMS, clock=404), replace(FIGURES, rates=twice)), Offer)
    decision = decide(replace(TERMS, clock=403), replace(FIGURES, rates=twice))
    assert decision == Refusal("games of this task: 7 min 34 s needed within 7 min 33 s", Rule.GAMES, 454)
    other = Rates(1e6, programs={b"\2" * 32: 2e6})
    assert isinstance(decide(replace(TERMS, clock=856), replace(FIGURES, rates=other)), Refusal)


@given(st.integers(1, 10**24), st.floats(0, 1e24), st.none() | st.integers(0, 10**24), st.integers(0, 9))
def test_an_offer_is_what_the_market_takes_and_never_below_the_floor(
    budget: int, machine: float, best: int | None, extensions: int
) -> None:
    terms = replace(TERMS, budget=budget)
    figures = replace(FIGURES, costs=replace(COSTS, machine=machine))
    beaten = None if best is None else Best(min(best, budget), extensions)
    decision = decide(terms, figures, beaten)
    if isinstance(decision, Offer):
        assert decision.floor == floor(terms, 20.0, figures.costs, 0)
        assert decision.floor.price <= decision.price <= budget
        if beaten:
            assert decision.price == beaten.price - least_undercut(*beaten)


def test_of_two_bidders_the_dearer_stops_at_its_floor_and_is_beaten_by_one_step_at_most() -> None:
    cheap, dear = (replace(FIGURES, costs=replace(COSTS, machine=machine)) for machine in (1.5, 10.0))
    terms, seen, best = replace(TERMS, stake=1_000, bond=250), [], None
    for bidder in itertools.cycle((cheap, dear)):
        decision = decide(terms, bidder, best)
        if isinstance(decision, Refusal):
            break
        seen.append(decision.price)
        best = Best(decision.price, 0)
    assert seen == list(itertools.islice(ladder(900), len(seen)))
    dearest = floor(TERMS, 20.0, dear.costs, 0).price
    assert seen[-1] - least_undercut(seen[-1], 0) < dearest <= seen[-2]


def test_a_training_beside_is_refused_where_it_or_another_would_be_late() -> None:
    """With a quarter to spare, this task's 20 s need 25 s of the 30 s. Together with 5 s of task 7, they need
    31.25 s.
    """
    offered = decide(TERMS, replace(FIGURES, trainings={"task 7": Training(4.0, 30.0)}))
    assert isinstance(offered, Offer)
    beside = decide(TERMS, replace(FIGURES, trainings={"task 7": Training(5.0, 30.0)}))
    assert isinstance(beside, Refusal)
    assert beside.rule is Rule.BESIDE
    assert beside.reason == (
        "task 7 and this task: 25 s of training do not fit into 30 s with a quarter to spare"
    )
    later = decide(TERMS, replace(FIGURES, trainings={"task 7": Training(5.0, 31.0)}))
    assert isinstance(later, Refusal)
    assert later.reason.startswith("this task and task 7: 25 s of training do not fit into 31 s")
    assert isinstance(decide(TERMS, replace(FIGURES, trainings={"task 7": Training(5.0, 32.0)})), Offer)


@st.composite
def trainings(draw: st.DrawFn) -> list[tuple[int, Training]]:
    """Trainings, each with the second at which it first asks for the machine."""
    count = draw(st.integers(1, 6))
    return [
        (
            draw(st.integers(0, 40)),
            Training(draw(st.integers(1, 12)), draw(st.integers(1, 60))),
        )
        for _ in range(count)
    ]


@given(trainings())
def test_trainings_that_are_admitted_one_after_the_other_end_in_time(
    asked: list[tuple[int, Training]],
) -> None:
    """The machine trains a second at a time, the earliest deadline first, as the solver's turns do."""
    taken: dict[int, tuple[int, Training]] = {}
    for number, (begin, training) in enumerate(asked):
        beside = {f"task {other}": one for other, (_, one) in taken.items()}
        operations = int(training.seconds * 50_000)  # in each of 20 steps, at a million a second
        terms = replace(TERMS, step_operations=operations, training_period=int(training.left))
        decision = decide(terms, replace(FIGURES, trainings=beside))
        if isinstance(decision, Offer) or decision.rule not in (Rule.BESIDE, Rule.TRAINING):
            taken[number] = (begin, training)
    left = {number: training.seconds for number, (_, training) in taken.items()}
    for second in range(200):
        ready = [number for number in left if left[number] > 0 and taken[number][0] <= second]
        if ready:
            first = min(ready, key=lambda number: taken[number][0] + taken[number][1].left)
            left[first] -= 1
            if left[first] <= 0:
                begin, training = taken[first]
                assert second + 1 <= begin + training.left
    assert not any(left.values())


def test_a_training_that_does_not_fit_into_memory_is_refused() -> None:
    fits = replace(FIGURES, memory=1_000, needs=1_000)
    assert isinstance(decide(TERMS, fits), Offer)
    refused = decide(TERMS, replace(fits, needs=1_001))
    assert isinstance(refused, Refusal)
    assert refused.rule is Rule.MEMORY
    assert refused.reason == "its steps take up to 1001 bytes of memory, 1000 are free for them"
