"""Collusion and Sybils: a small run of the study, its closed forms, and a split stake."""

import numpy as np
import pytest

from sim.engine.simulate import Columns
from sim.errors import ParameterError
from sim.parameters import MarketParameters
from sim.results.results import run
from sim.studies.checks import Verdict
from sim.studies.collusion import Collusion, Forms
from sim.units import TOKEN

POINT = {"colluding": 0.32, "verifiers": 3, "level": 0}


def played(**values: float) -> Columns:
    return Collusion().play({**POINT, **values}, runs=300, rounds=2, seed=np.random.SeedSequence(4))


@pytest.fixture(scope="module")
def answer() -> Verdict:
    params = {"colluding": "0.32,0.8", "verifiers": "4", "level": "0,3,6"}
    return run("collusion", runs=1200, rounds=1, params=params).answer


def test_engine_and_theory_agree(answer: Verdict) -> None:
    assert [claim.text for claim in answer.claims if not claim.holds] == []
    for words in ("let a cheater win", "convictions", "units earn", "joint advantage"):
        assert any(words in claim.text for claim in answer.claims), words


def test_sentence_gives_the_measured_threshold(answer: Verdict) -> None:
    (claim,) = (claim for claim in answer.claims if "from which 4 seats" in claim.text)
    assert f"from {claim.together.measured:.0%} of the stake with 4 seats" in answer.findings[0].sentence
    assert answer.findings[2].sentence.startswith(
        "An account has one seat of a task at most: 32% of the stake"
    )


def test_sentence_follows_the_rows() -> None:
    params = {"colluding": "0.32,0.5", "verifiers": "3", "level": "0,6"}
    results = run("collusion", runs=100, rounds=1, params=params)
    table = {name: np.array(results.rows[name]) for name in results.rows}
    table["convicted_10"] = np.where(table["level"] == 6, 1.0, 0.0)
    answer = Collusion().answer(table)
    assert "is convicted in 100.0% and 0.0% of its tasks" in answer.findings[-1].sentence
    assert any(not claim.holds for claim in answer.claims)


def test_one_account_has_one_seat() -> None:
    whole, split = played(level=6), played(level=0)
    assert whole["convicted_100"].tolist() == [1.0] * 300
    assert split["convicted_100"].min() < 1
    # Honest work in a seat: 4 segments at 2 tokens less a replay of 0.66, less an attestation's gas.
    gas = MarketParameters().gas_attest * MarketParameters().gas_price
    most = (4 * (2 - 0.66) - gas) * TOKEN
    assert whole["accomplices"].max() == pytest.approx(most)
    assert whole["accomplices"].mean() < split["accomplices"].mean()


def test_nobody_is_left_to_convict_where_all_collude() -> None:
    columns = played(colluding=1.0, downtime=0.0)
    assert columns["convicted_100"].max() == 0
    # The cheater saves its whole cost of 60 tokens, and gains 100.
    assert columns["alone_100"] == pytest.approx(160 * TOKEN)
    # The accomplices also save every replay. Fees are the same.
    assert columns["joint_100"] - columns["alone_100"] == pytest.approx(12 * 0.66 * TOKEN)


def test_alone_the_cheater_has_nobody_to_share_with() -> None:
    columns = played(colluding=0.0)
    np.testing.assert_array_equal(columns["joint_100"], columns["alone_100"])
    point = {**POINT, "colluding": 0.0}
    forms = Forms(Collusion().case(point), point)
    np.testing.assert_allclose(forms.joint, forms.alone)


def test_threshold_is_where_the_closed_form_changes_its_sign() -> None:
    threshold = Forms(Collusion().case(POINT), POINT).threshold()
    below, above = ({**POINT, "colluding": round(200 * threshold + step) / 200} for step in (-1, 1))
    assert (
        Forms(Collusion().case(below), below).alone.max()
        < 0
        < Forms(Collusion().case(above), above).alone.max()
    )


def test_what_does_not_fill_an_account_is_honest() -> None:
    for level, accounts in ((0, 64), (4, 4), (5, 2), (6, 1), (7, 0)):
        case = Collusion().case({**POINT, "level": level})
        assert case.population.slots.tolist() == [1 << level] * accounts + [1] * (200 - (accounts << level))
    assert len(Collusion().case({**POINT, "colluding": 0.0}).population.slots) == 200


def test_terms_that_theory_lacks_are_refused() -> None:
    with pytest.raises(ParameterError, match="downtime"):
        Collusion().case({**POINT, "downtime": 0.1})
