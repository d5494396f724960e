"""The verifier's dilemma: the study played small, its seat against the inspection game, and its sentences."""

import re

import numpy as np
import pytest

from sim.errors import ParameterError
from sim.results.results import run
from sim.studies.dilemma import Dilemma, Guessing
from sim.studies.dilemma_seat import Seat
from sim.studies.study import Answer
from sim.theory import Duty, cheating_rate, least_forced_rate
from sim.units import TOKEN

POINT = {
    "false_rate": 0.0,
    "diligence": 0.5,
    "forced_error_rate": 0.0,
    "jackpot": 0,
    "audit_fee": 2 * TOKEN,
    "copied": 1.0,
    "false_share": 0.5,
}


def seat(**values: float) -> Seat:
    point = {**POINT, **values}
    return Seat(Dilemma().case(point), point)


@pytest.fixture(scope="module")
def answer() -> Answer:
    return run("dilemma", runs=1500, rounds=1).answer


def test_engine_and_theory_agree(answer: Answer) -> None:
    assert len(answer.claims) > 100
    assert [claim.text for claim in answer.claims if not claim.holds] == []
    for words in (
        "in equilibrium",
        "e_min",
        "at a fee of",
        "replaying is paid",
        "roots secret",
        "skippers may learn",
    ):
        assert any(words in claim.text for claim in answer.claims), words


def test_sentences_give_what_was_measured(answer: Answer) -> None:
    sentences = " ".join(finding.sentence for finding in answer.findings)
    for words in ("false results in equilibrium", "roots secret"):
        (claim,) = (claim for claim in answer.claims if words in claim.text)
        assert f"{claim.measured:.0%}" in sentences or f"{claim.measured:.1%}" in sentences
    assert re.search("Fees do not make anybody look", sentences)


def test_seat_of_one_duty_is_the_plain_game() -> None:
    """K = q = 1: the closed forms without any sum over duties."""
    one = seat(segments=1, segments_per_verifier=1, verifiers=1, false_share=1.0, diligence=0.995)
    reward, replay, fee = one.parameters.reward_cap, 66 * TOKEN, 2 * TOKEN
    assert one.duties == pytest.approx(1)
    assert one.hit == 1
    assert one.replay == pytest.approx(replay)
    assert one.against_honest == pytest.approx(-replay)
    assert one.against_cheater == pytest.approx(reward - fee - replay)
    assert one.indifferent() == pytest.approx(cheating_rate(Duty(fee, replay, reward)))


def test_least_rate_of_forced_errors_leaves_nothing_between_both() -> None:
    for jackpot in (0, 30 * TOKEN):
        least = seat(jackpot=jackpot).least_forced()
        assert seat(jackpot=jackpot, forced_error_rate=least).against_honest == pytest.approx(0, abs=2)
        assert seat(jackpot=jackpot, forced_error_rate=1.1 * least).against_honest > 0
    # Without a jackpot the seat is one duty that loses a slot's stake.
    one = seat(segments=1, segments_per_verifier=1, verifiers=1, training_cost=TOKEN)
    plain = least_forced_rate(
        cost=1.1 * TOKEN, jackpot=0, lock=float(one.parameters.stake_unit - 2 * TOKEN), audit_fee=2 * TOKEN
    )
    assert one.least_forced() == pytest.approx(plain)


def test_secret_roots_pay_from_their_thresholds() -> None:
    least = seat(copied=0.0).least_looking()
    here = seat(copied=0.0, diligence=round(200 * least) / 200)
    assert abs(here.against_honest) < 0.1 * TOKEN
    known = seat(diligence=0.98).most_known()
    assert seat(diligence=0.98, copied=known).against_honest == pytest.approx(0, abs=2)


def test_skippers_attest_as_often_as_they_know() -> None:
    point = {**POINT, "copied": 0.25, "diligence": 0.005, "verifiers": 1}
    columns = Dilemma().play(point, runs=2000, rounds=2, seed=np.random.SeedSequence(1))
    assert float(columns["void"].mean()) == pytest.approx(0.75, abs=0.03)
    assert Guessing(0.25).honest is False


def test_terms_that_theory_lacks_are_refused() -> None:
    with pytest.raises(ParameterError, match="gas_price"):
        Dilemma().case({**POINT, "gas_price": 1e-6})
    with pytest.raises(ParameterError, match="copied"):
        Dilemma().case({**POINT, "copied": 1.5})
    with pytest.raises(ParameterError, match="verifier_count: expected at least 2"):
        Dilemma().case({**POINT, "verifier_count": 1})
