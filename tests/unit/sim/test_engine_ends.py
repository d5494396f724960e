"""Ends of tasks and challenges in the smallest market, mostly in one round. Amounts are computed by hand."""

import numpy as np
import pytest

from sim.agents.bystanders import Bystander, Griefer
from sim.agents.population import population
from sim.agents.solvers import Crashing, Lazy, Noisy, Solver, Withholder
from sim.agents.submitters import Challenging, Insider, Shill, Submitter, Vanishing
from sim.agents.verifiers import Absent, Accusing, Colluding, Copying, Mixing, Trusting, Verifier
from sim.engine.simulate import Case, simulate
from sim.mechanism.auctions import descending, second_price
from sim.units import TOKEN
from tests.unit.sim.small_market import (
    GAS_ATTEST,
    GAS_DEFENCE,
    GAS_DISPUTE,
    GAS_TASK,
    REPLAY,
    SILENCE,
    SLASH_BURNED,
    SMALL,
    SPOKE,
    each,
    play,
    result,
)


def test_an_honest_task_settles() -> None:
    found = play(Solver(), (Verifier(), 1))
    each(
        found,
        settled=1,
        price=60,
        fees=2,
        burned=0,
        profit_submitter=-60 - 2 - 1,
        profit_solver_honest=-GAS_TASK,
        profit_verifier_honest=2 - REPLAY - GAS_ATTEST,
    )


def test_a_false_segment_is_slashed() -> None:
    found = play(Lazy(1.0), (Verifier(), 1), markup=0.5)
    each(
        found,
        convicted=1,
        false=1,
        escaped=0,
        burned=SLASH_BURNED - SPOKE,
        profit_submitter=100 - 1,
        profit_solver_lazy=-1000 - GAS_TASK - GAS_DEFENCE,
        profit_verifier_honest=50 + SPOKE - REPLAY - GAS_DISPUTE,
    )


def test_what_is_not_served_is_slashed_without_a_replay() -> None:
    each(play(Withholder(), (Verifier(), 1)), convicted=1, profit_verifier_honest=50 + SPOKE - GAS_DISPUTE)


def test_a_rubber_stamp_lets_the_cheater_win() -> None:
    found = play(Lazy(1.0), (Trusting(), 1))
    each(
        found,
        settled=1,
        false=1,
        escaped=1,
        price=0,
        profit_solver_lazy=100 - GAS_TASK,
        profit_verifier_lazy=2 - GAS_ATTEST,
    )


def test_noise_gains_nothing() -> None:
    found = play(Noisy(1.0), (Colluding(), 1))
    each(found, settled=1, escaped=1, profit_solver_noisy=-GAS_TASK, profit_verifier_colluding=2 - GAS_ATTEST)


def test_a_missed_deadline_costs_the_penalty_and_pays_the_submitter_half() -> None:
    found = play(Crashing(1.0), (Verifier(), 1))
    each(found, expired=1, burned=5, profit_submitter=5, profit_verifier_honest=0)
    each(found, profit_solver_crashing=-60 - 10 - GAS_TASK)
    each(play(Solver(), (Verifier(), 1), crash_rate=1.0), expired=1, profit_solver_honest=-60 - 10 - GAS_TASK)


# ------------------------------------------------------------------ bids and challenges


def test_a_task_that_nobody_can_afford_is_not_sold() -> None:
    each(play(Solver(), (Verifier(), 1), budget=59 * TOKEN, restitution=0), unsold=1, profit_submitter=0)


def test_a_lost_challenge_costs_the_bond() -> None:
    """The accuser does not attest, so it also pays for silence. No other account is left for its seat."""
    found = play(Solver(), (Accusing(), 1))
    each(
        found,
        void=1,
        dismissed=1,
        burned=10 + 2,
        profit_solver_honest=-60 + 10 - GAS_TASK - GAS_DEFENCE,
        profit_verifier_accusing=-20 - SILENCE - GAS_DISPUTE,
    )


def test_whoever_accuses_pays_for_it_though_its_seat_is_drawn_again() -> None:
    found = play(Solver(), (Accusing(), 1), (Verifier(), 1), runs=400)
    accused = found["dismissed"]
    assert set(accused) == {0, 1}
    assert found["profit_verifier_accusing"] == pytest.approx(-accused * (20 + SILENCE + GAS_DISPUTE))
    each(found, settled=1, profit_verifier_honest=2 - REPLAY - GAS_ATTEST)


def test_accusing_blindly_does_not_convict_a_cheat() -> None:
    each(play(Lazy(1.0), (Accusing(), 1)), void=1, dismissed=1, convicted=0)
    each(play(Withholder(), (Accusing(), 1)), convicted=1, dismissed=0, silent=0)


def test_a_conviction_comes_before_a_redraw() -> None:
    """There are two seats. The absent account loses nothing if the other account convicts."""
    found = play(Lazy(1.0), (Verifier(), 1), (Absent(), 1), verifiers=2)
    each(found, convicted=1, silent=0, redrawn=0, profit_verifier_absent=0, burned=SLASH_BURNED - SPOKE)


def test_a_seat_that_is_drawn_again_has_the_same_segments() -> None:
    """Two of four segments are false. The new account convicts as often as the first one would have."""
    found = play(Lazy(0.5), (Absent(), 1), (Verifier(), 1), segments=4, runs=4000)
    first, again = (found["convicted"][found["redrawn"] == n] for n in (0, 1))
    for seen in (first, again):
        assert seen.mean() == pytest.approx(0.5, abs=4 * 0.5 / len(seen) ** 0.5)


def test_copying_follows_the_first() -> None:
    """With two seats and two accounts, the copier finds an attestation to copy."""
    found = play(Solver(), (Verifier(), 1), (Copying(), 1), verifiers=2)
    each(found, settled=1, silent=0, profit_verifier_copying=2 - GAS_ATTEST)


def test_whoever_copies_finds_no_attestation_of_who_is_offline() -> None:
    """Each account is online in half of the tasks. If the honest one is offline, both seats are silent."""
    found = play(Solver(), (Verifier(), 1), (Copying(), 1), verifiers=2, downtime=0.5, runs=2000)
    assert found["settled"].mean() == pytest.approx(0.25, abs=4 * 0.433 / 2000**0.5)
    assert (found["settled"] + found["void"] == 1).all()


def test_a_mixed_strategy_looks_at_its_rate() -> None:
    found = play(Lazy(1.0), (Mixing(0.7), 1), runs=2000)
    assert found["convicted"].mean() == pytest.approx(0.7, abs=4 * (0.21 / 2000) ** 0.5)
    assert (found["convicted"] + found["escaped"] == 1).all()


# ------------------------------------------------------------------ bystanders and submitters


def test_a_whistleblower_convicts_where_verifiers_do_not() -> None:
    found = play(Lazy(1.0), (Colluding(), 1), bystanders=[(Bystander(1.0), 2)])
    each(found, convicted=1, dismissed=0, profit_submitter=99)
    each(found, profit_bystander_whistleblower=50 - 2 * (REPLAY + GAS_DISPUTE))


def test_a_whistleblower_that_looks_elsewhere_says_nothing() -> None:
    found = play(Lazy(0.01), (Colluding(), 1), bystanders=[(Bystander(1.0), 1)], segments=4, runs=2000)
    assert found["convicted"].mean() == pytest.approx(0.25, abs=4 * (0.1875 / 2000) ** 0.5)
    assert not found["dismissed"].any()


def test_a_griefer_pays_for_every_game() -> None:
    found = play(Solver(), (Verifier(), 1), bystanders=[(Griefer(1.0, games=3), 2)])
    each(
        found,
        settled=1,
        dismissed=6,
        burned=60,
        profit_bystander_griefer=-6 * (20 + GAS_DISPUTE),
        profit_solver_honest=6 * (10 - GAS_DEFENCE) - GAS_TASK,
    )


def test_bonds_of_moot_games_return() -> None:
    found = play(Lazy(1.0), (Verifier(), 1), bystanders=[(Griefer(1.0, games=3), 1)])
    each(found, convicted=1, dismissed=0, burned=SLASH_BURNED - SPOKE)
    each(found, profit_bystander_griefer=-3 * GAS_DISPUTE)


def test_an_honest_solver_that_is_silent_in_its_games_is_slashed() -> None:
    found = play(Solver(), (Verifier(), 1), submitter=Challenging(), silence_rate=1.0)
    each(found, convicted=1, false=0, profit_submitter=50 + 100 - 1 - GAS_DISPUTE)
    # The seat attested the only segment, and that segment is convicted.
    each(found, burned=SLASH_BURNED, profit_verifier_honest=-REPLAY - GAS_ATTEST)
    found = play(Solver(), (Verifier(), 1), submitter=Challenging(2))
    each(found, settled=1, dismissed=2, profit_submitter=-60 - 2 - 1 - 2 * (20 + GAS_DISPUTE))


def test_a_solver_may_be_silent_in_each_of_its_games() -> None:
    """Three games, two of them by one challenger. The solver answers all three with chance (1/2)^3."""
    others = [(Griefer(1.0, games=2), 1)]
    submitter = Challenging()
    found = play(
        Solver(), (Verifier(), 1), bystanders=others, submitter=submitter, silence_rate=0.5, runs=2000
    )
    assert found["convicted"].mean() == pytest.approx(0.875, abs=4 * 0.331 / 2000**0.5)
    assert (found["convicted"] + found["settled"] == 1).all()


def test_an_insider_has_the_reward_of_whoever_would_have_won() -> None:
    found = play(Lazy(1.0), (Verifier(), 1), submitter=Insider())
    each(found, convicted=1, burned=SLASH_BURNED - SPOKE, profit_submitter=50 + 100 - 1 - GAS_DISPUTE)
    each(found, profit_solver_lazy=-1000 - GAS_TASK - GAS_DEFENCE)
    each(found, profit_verifier_honest=SPOKE - REPLAY - GAS_DISPUTE)
    found = play(Lazy(1.0), (Trusting(), 1), submitter=Insider())
    each(found, settled=1, escaped=1, burned=0, profit_submitter=-2 - 1)


def test_a_submitter_that_vanishes_costs_the_solver_the_penalty() -> None:
    found = play(Solver(), (Verifier(), 1), submitter=Vanishing(1.0))
    each(found, expired=1, burned=5, profit_submitter=5, profit_solver_honest=-10 - GAS_TASK)


def test_a_shill_that_wins_pays_the_penalty_itself() -> None:
    found = play(Solver(), (Verifier(), 1), submitter=Shill(0.5, 0.5))
    each(found, expired=1, burned=5, profit_submitter=-5 - GAS_TASK, profit_solver_honest=0)


def test_a_shill_lowers_a_second_price() -> None:
    people = population([(Solver(), 1)], [(Verifier(), 1)], submitter=Shill(0.7, 0.7))
    for submitter, price in ((people, 70), (population([(Solver(), 1)], [(Verifier(), 1)]), 100)):
        case = Case(SMALL, submitter, second_price)
        found = simulate(case, runs=3, rounds=2, seed=np.random.SeedSequence(1))
        assert found["price"] == pytest.approx(price * TOKEN)


def test_a_shill_lowers_the_price_to_its_own() -> None:
    """Bids fall in steps of 2 %, so the price is within one step of the shill's price. Without a shill, the
    price is 90.
    """
    for submitter, least, most in ((Shill(0.7, 0.7), 70 * 0.98, 70 / 0.98), (Submitter(), 90, 90)):
        people = population([(Solver(), 1)], [(Verifier(), 1)], submitter=submitter)
        found = simulate(Case(SMALL, people, descending), runs=4, rounds=1, seed=np.random.SeedSequence(1))
        assert (found["settled"] == 1).all()
        assert (found["price"] >= least * TOKEN).all()
        assert (found["price"] <= most * TOKEN).all()


# ------------------------------------------------------------------ capital, slots, prices, arrivals


def test_a_solver_without_capital_bids_no_more() -> None:
    people = population([(Withholder(), 1)], [(Verifier(), 1)])
    found = result(people, rounds=5, solver_capital=2)
    each(found, convicted=2 / 5, unsold=3 / 5)
    each(result(people, rounds=5), convicted=1)


def test_slots_are_drawn_by_their_number() -> None:
    people = population([(Lazy(1.0), 1)], [(Verifier(), 1, 8), (Trusting(), 2)])
    assert people.honest == pytest.approx(0.8)
    found = result(people, runs=2000)
    assert found["convicted"].mean() == pytest.approx(0.8, abs=4 * (0.16 / 2000) ** 0.5)


def test_the_price_of_work_moves_bids() -> None:
    found = play(Solver(), (Verifier(), 1), token_volatility=0.1, runs=2000)
    assert found["price"].std() == pytest.approx(6, rel=0.15)
    assert found["price"].mean() == pytest.approx(60, abs=4 * 6 / 2000**0.5)
    assert found["profit_solver_honest"] == pytest.approx(-GAS_TASK, abs=1e-5)


def test_the_price_of_gas_keeps_its_mean() -> None:
    found = play(Solver(), (Verifier(), 1), gas_volatility=0.2, runs=2000)
    spent = -found["profit_solver_honest"]
    assert spent.std() == pytest.approx(0.2 * GAS_TASK, rel=0.15)
    assert spent.mean() == pytest.approx(GAS_TASK, abs=4 * 0.1 / 2000**0.5)


def test_tasks_arrive_at_their_rate() -> None:
    found = result(population([(Solver(), 1)], [(Verifier(), 1)]), runs=500, rounds=20, arrival_rate=0.4)
    assert (found["settled"] == 1).all()
    assert found["posted"].mean() == pytest.approx(0.4, abs=4 * (0.24 / 10_000) ** 0.5)
    few = result(population([(Solver(), 1)], [(Verifier(), 1)]), runs=2, rounds=2, arrival_rate=0.0)
    assert few["settled"].tolist() == few["posted"].tolist() == [0, 0]
