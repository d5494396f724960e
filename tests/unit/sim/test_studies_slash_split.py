"""The split of a slash: a small run of the study, its closed forms by hand, and its sentences."""

import numpy as np
import pytest

from sim.engine.simulate import Columns
from sim.errors import ParameterError
from sim.results.results import run
from sim.studies.checks import Verdict
from sim.studies.slash_split import SlashSplit
from sim.studies.slash_split_reading import Forms
from sim.units import TOKEN

POINT = {
    "reward": 100 * TOKEN,
    "restitution": 200 * TOKEN,
    "delay_penalty": 400 * TOKEN,
    "honest_share": 0.7,
    "false_share": 0.03,
}
SMALL = {"reward": "0,125", "restitution": "0,550", "delay_penalty": "10,500,1000"}


def played(**values: float) -> Columns:
    return SlashSplit().play({**POINT, **values}, runs=100, rounds=1, seed=np.random.SeedSequence(4))


def forms(**values: float) -> Forms:
    return Forms(SlashSplit().case({**POINT, **values}))


@pytest.fixture(scope="module")
def answer() -> Verdict:
    return run("slash_split", runs=1000, rounds=1, params=SMALL).answer


def test_engine_and_closed_forms_agree(answer: Verdict) -> None:
    assert [claim.text for claim in answer.claims if not claim.holds] == []
    for words in ("own task", "another's task", "conceding saves", "proving a false", "below which few"):
        assert any(words in claim.text for claim in answer.claims), words


def test_sentences_are_the_measured_ones(answer: Verdict) -> None:
    cost, concession, whistle, insured = (finding.sentence for finding in answer.findings)
    assert "32% to 100% of its stake" in cost
    assert "never less than the burned 25%" in cost
    assert concession == "Conceding to oneself beats missing a deadline at no reward and no penalty"
    assert "where an insider is first they have" in whistle
    (claim,) = (claim for claim in answer.claims if "below which few" in claim.text)
    assert f"below {claim.together.measured:,.0f} (theory {claim.expected:,.0f})" in insured


def test_sentences_follow_the_rows() -> None:
    results = run("slash_split", runs=20, rounds=1, params=SMALL)
    table = {name: np.array(results.rows[name]) for name in results.rows}
    table["conceding"] += 700 * TOKEN
    answer = SlashSplit().answer(table)
    assert "at times less than the burned 25%" in answer.findings[0].sentence
    assert any("also with a penalty of at most half" in finding.sentence for finding in answer.findings)
    assert any(not claim.holds for claim in answer.claims)


def test_a_self_challenge_by_hand() -> None:
    columns = played()
    market = SlashSplit().parameters()
    task, defence, dispute = (
        used * market.gas_price for used in (market.gas_task, market.gas_defence, market.gas_dispute)
    )
    # 1000 - 100 - 200 of the stake, 0.1 for the draw, and the gas of task, defence and dispute.
    assert columns["conceding"] == pytest.approx(-(700 + 0.1 + task + defence + dispute) * TOKEN)
    assert columns["conceding_challenger"] == pytest.approx(-(900 + task + defence + dispute) * TOKEN)
    # The half of the penalty that burns, and the task's gas.
    assert columns["late"] == pytest.approx(-(200 + task) * TOKEN)
    # The insider takes only the reward from the verifiers.
    assert columns["whistleblowers"] - columns["whistleblowers_preempted"] == pytest.approx(100 * TOKEN)
    assert (forms().net, forms().net_challenger) == (700, 900)


def test_seats_that_an_insider_preempted_have_their_costs_and_fees() -> None:
    form = forms()
    market = form.parameters
    assert form.claims == pytest.approx(market.verifiers * (market.game_cost + market.seat_fee) / TOKEN)
    assert played()["whistleblowers_preempted"] == pytest.approx((form.claims - form.work) * TOKEN, abs=9)


def test_the_cost_that_deters_leaves_the_cheater_nothing() -> None:
    form = forms()
    form.net = form.enough
    assert form.insured == pytest.approx(0)


def test_terms_that_theory_lacks_are_refused() -> None:
    with pytest.raises(ParameterError, match="downtime"):
        SlashSplit().case({**POINT, "downtime": 0.1})
