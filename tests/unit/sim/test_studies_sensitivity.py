"""Sensitivity: samples lie in their ranges, and indices recover the parameters of a known outcome."""

from collections.abc import Sequence

import numpy as np
import pytest

from sim.errors import ParameterError, SweepError
from sim.mechanism.arrays import Floats
from sim.studies.sensitivity import MORRIS, OUTCOMES, RANGES, SOBOL, Sensitivity
from sim.studies.study import Point, Table
from sim.units import TOKEN


class Small(Sensitivity):
    trajectories = 8
    samples = 64


STUDY = Small()


def known(points: Sequence[Point]) -> Table:
    """Known outcomes: `advantage` is linear in gain and stake, and `seat` is a product of two parameters."""
    table: dict[str, Floats] = {
        name: np.array([point[name] for point in points], float) for name in points[0]
    }
    part = {name: (table[name] - low) / (high - low) for name, (low, high) in RANGES.items()}
    count = len(points)
    table |= {"point": np.arange(count, dtype=float), "run": np.zeros(count)}
    # Uniform numbers from 0 to 1 have a variance of 1 / 12, so gain and stake have 9 parts and 1 part.
    table["advantage"] = 3 * part["gain"] - part["stake"]
    table["seat"] = part["segments"] * part["audit_fee"]
    return table


def test_samples_lie_in_their_ranges_and_stay_the_same() -> None:
    points = STUDY.points({})
    varied = len(RANGES)
    assert len(points) == 8 * (varied + 1) + 64 * (varied + 2)
    for name, (low, high) in RANGES.items():
        values = [point[name] for point in points]
        assert low <= min(values)
        assert max(values) <= high
        assert max(values) - min(values) > 0.9 * (high - low)
    assert points == STUDY.points({})


def test_an_axis_narrows_a_range_or_holds_it() -> None:
    points = STUDY.points({"stake": (500 * TOKEN,), "gain": (60 * TOKEN, 90 * TOKEN)})
    assert {point["stake"] for point in points} == {500 * TOKEN}
    assert all(60 * TOKEN <= point["gain"] <= 90 * TOKEN for point in points)
    assert len(points) == 8 * 8 + 64 * 9
    with pytest.raises(SweepError, match=r"stake: expected one value, or the two ends .* got 3 values"):
        STUDY.points({"stake": (100 * TOKEN, 200 * TOKEN, 300 * TOKEN)})
    with pytest.raises(SweepError, match="at least two"):
        STUDY.points({name: (low,) for name, (low, _) in RANGES.items()})
    with pytest.raises(SweepError, match="downtime"):
        STUDY.points({"downtime": (0.1,)})
    with pytest.raises(ParameterError, match="stakke"):
        STUDY.points({"stakke": (1,)})


class Larger(Small):
    samples = 512


def test_indices_find_what_an_outcome_is_made_of() -> None:
    study = Larger()
    findings = study.answer(known(study.points({}))).findings
    assert len(findings) == 2 * len(OUTCOMES)
    sobol, morris, product, _ = findings
    assert _share(sobol.sentence, "goes with gain ") == pytest.approx(90, abs=3)
    assert _share(sobol.sentence, ", stake ") == pytest.approx(10, abs=3)
    assert "gain +3.0, stake -1.0" in morris.sentence
    # A product of two uniform numbers: each explains 3 / 7 of the variance, and their interaction 1 / 7.
    assert _share(product.sentence, "segments ") == pytest.approx(100 * 4 / 7, abs=10)


def _share(sentence: str, before: str) -> float:
    return float(sentence.split(before)[1].split("%")[0])


def test_the_engine_s_outcomes_have_the_right_sign() -> None:
    points = STUDY.points({})
    mild = {**points[0], "method": SOBOL, "honest_share": 0.9, "false_share": 1.0, "stake": 2000 * TOKEN}
    worst = {
        **mild,
        "honest_share": 0.4,
        "false_share": 0.02,
        "stake": 400 * TOKEN,
        "gain": 200 * TOKEN,
        "segments": 60,
        "segments_per_verifier": 2,
    }
    seed = np.random.SeedSequence(5)
    lost, won = (
        STUDY.play(point, runs=200, rounds=1, seed=seed)["advantage"].mean() for point in (mild, worst)
    )
    assert lost < -1000
    assert won > 0
    fees = [
        STUDY.play({**mild, "audit_fee": fee * TOKEN}, runs=50, rounds=1, seed=seed)["seat"].mean()
        for fee in (1, 10)
    ]
    duties = points[0]["segments_per_verifier"]
    # Apart from chance, an honest seat is drawn at the average rate.
    assert 0.95 * 9 * duties < fees[1] - fees[0] < 1.05 * 9 * (duties + 1)


def test_the_methods_are_told_apart() -> None:
    points = [point for point in STUDY.points({}) if point["method"] == MORRIS]
    findings = STUDY.answer(known(points)).findings
    assert len(findings) == len(OUTCOMES)
    assert all("Over its range" in finding.sentence for finding in findings)
