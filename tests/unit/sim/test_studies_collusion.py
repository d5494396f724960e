"""Collusion and Sybils: the study played small, its closed forms, and slots that are split."""

import numpy as np
import pytest

from sim.engine.simulate import Columns
from sim.errors import ParameterError
from sim.results.results import run
from sim.studies.collusion import SHARES, Collusion, Forms
from sim.studies.study import Answer
from sim.units import TOKEN

POINT = {"colluding": 0.2, "verifiers": 3, "accounts": 0}


def played(**values: float) -> Columns:
    return Collusion().play({**POINT, **values}, runs=300, rounds=2, seed=np.random.SeedSequence(4))


@pytest.fixture(scope="module")
def answer() -> Answer:
    params = {"colluding": "0.2,0.8", "verifiers": "4", "accounts": "0,1,10"}
    return run("collusion", runs=1200, rounds=1, params=params).answer


def test_engine_and_theory_agree(answer: Answer) -> None:
    assert [claim.text for claim in answer.claims if not claim.holds] == []
    for words in ("let a cheater win", "convictions", "earn more than", "joint advantage"):
        assert any(words in claim.text for claim in answer.claims), words


def test_sentence_gives_the_measured_threshold(answer: Answer) -> None:
    (claim,) = (claim for claim in answer.claims if "from which 4 seats" in claim.text)
    assert f"from {claim.measured:.0%} of the slots with 4 seats" in answer.findings[0].sentence
    assert "changes no conviction" in answer.findings[2].sentence


def test_sentence_follows_the_rows() -> None:
    params = {"colluding": "0.2,0.5", "verifiers": "3", "accounts": "1,20"}
    results = run("collusion", runs=100, rounds=1, params=params)
    table = {name: np.array(results.rows[name]) for name in results.rows}
    table["convicted_0"] = np.where(table["accounts"] == 20, 1.0, 0.0)
    answer = Collusion().answer(table)
    assert "convictions by 100.00% at most" in answer.findings[-1].sentence
    assert any(not claim.holds for claim in answer.claims)


def test_splitting_moves_no_seat() -> None:
    whole, split = played(accounts=1), played(accounts=40)
    for share in SHARES:
        np.testing.assert_array_equal(
            whole[f"convicted_{100 * share:g}"], split[f"convicted_{100 * share:g}"]
        )
    # One account of many slots holds a duty once however often it is drawn.
    assert whole["accomplices"].mean() < split["accomplices"].mean()


def test_nobody_is_left_to_convict_where_all_collude() -> None:
    columns = played(colluding=1.0, downtime=0.0)
    assert columns["convicted_100"].max() == 0
    # The whole cost saved, 60 tokens, and the gain of 100.
    assert columns["alone_100"] == pytest.approx(160 * TOKEN)
    # And every replay of theirs, fees being the same.
    duties = 3 * (1 + 4 * 99 / 100)
    saved = float((columns["joint_100"] - columns["alone_100"]).mean())
    assert saved == pytest.approx(duties * 0.66 * TOKEN, rel=0.02)


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


def test_slots_are_split_as_equally_as_can_be() -> None:
    for accounts, slots in ((7, [6] * 5 + [5] * 2), (80, [1] * 40), (1, [40])):
        case = Collusion().case({**POINT, "accounts": accounts})
        assert case.population.slots.tolist() == slots + [1] * 160
    assert len(Collusion().case({**POINT, "colluding": 0.0}).population.slots) == 200


def test_terms_that_theory_lacks_are_refused() -> None:
    with pytest.raises(ParameterError, match="downtime"):
        Collusion().case({**POINT, "downtime": 0.1})
