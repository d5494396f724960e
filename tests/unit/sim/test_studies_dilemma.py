"""The verifier's dilemma: a small run of the study, its seat as an inspection game, and its sentences."""

import re

import pytest

from sim.errors import ParameterError
from sim.results.results import run
from sim.studies.checks import Verdict
from sim.studies.dilemma import Dilemma
from sim.studies.dilemma_seat import Seat
from sim.theory import Duty, cheating_rate
from sim.units import TOKEN

POINT = {
    "false_rate": 0.0,
    "diligence": 0.5,
    "audit_fee": 2 * TOKEN,
    "false_share": 0.5,
}


def seat(**values: float) -> Seat:
    point = {**POINT, **values}
    return Seat(Dilemma().case(point), point)


@pytest.fixture(scope="module")
def answer() -> Verdict:
    return run("dilemma", runs=1024, rounds=4).answer


def test_engine_and_theory_agree(answer: Verdict) -> None:
    assert len(answer.claims) > 80
    assert [claim.text for claim in answer.claims if not claim.holds] == []
    for words in ("in equilibrium", "at a fee of", "replaying is paid"):
        assert any(words in claim.text for claim in answer.claims), words


def test_sentences_give_what_was_measured(answer: Verdict) -> None:
    sentences = " ".join(finding.sentence for finding in answer.findings)
    (claim,) = (claim for claim in answer.claims if "false results in equilibrium" in claim.text)
    assert f"it rests at {claim.together.measured:.1%} false results" in sentences
    assert re.search("Fees do not make anybody look", sentences)


def test_seat_of_one_segment_is_the_plain_game() -> None:
    """With one segment in the task and one segment in the seat (K = q = 1), the seat is the plain inspection game."""
    one = seat(segments=1, segments_per_verifier=1, verifiers=1, false_share=1.0, diligence=0.995)
    reward, cost, replay, fee = one.parameters.reward, one.parameters.game_cost, 66 * TOKEN, 2 * TOKEN
    assert one.hit == 1
    assert one.replay == pytest.approx(replay)
    assert one.gain() == pytest.approx(-replay)
    assert one.against_cheater == pytest.approx(reward + cost - replay)
    assert one.indifferent() == pytest.approx(cheating_rate(Duty(fee, replay, reward, cost, 1.0)))


def test_terms_that_theory_lacks_are_refused() -> None:
    with pytest.raises(ParameterError, match="gas_price"):
        Dilemma().case({**POINT, "gas_price": 1e-6})
    with pytest.raises(ParameterError, match="false_rate"):
        Dilemma().case({**POINT, "false_rate": 1.5})
    with pytest.raises(ParameterError, match="verifier_count: expected at least 2"):
        Dilemma().case({**POINT, "verifier_count": 1})
