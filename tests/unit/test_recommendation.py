"""Recommended terms: they deter by the stake's own formula, just so; and everybody reads the same file."""

from dataclasses import asdict, fields, replace
from fractions import Fraction
from pathlib import Path

import pytest

from assay.description import read
from assay.errors import DescriptionError
from assay.submitting import recommendations
from protocol.chain.parameters import RECOMMENDED, TOKEN, load_parameters
from protocol.chain.recommendation import (
    RULES,
    NoRecommendation,
    Recommended,
    most_segments,
    recommended_terms,
)
from protocol.tasks.economics import ONE, Audit, minimum_stake
from protocol.tasks.task import MAX_SEAT_SEGMENTS
from sim.parameters import MarketParameters
from sim.units import TOKEN as SIM_TOKEN

BUDGET = 100 * TOKEN
EXAMPLES = Path(__file__).parents[2] / "examples"
OPTIONAL = [known.name for known in fields(Recommended)]


def needed(segments: int, draws: int, price: int) -> int:
    """S_min for one price, whatever a self-challenger gets back included."""
    audit = Audit(segments, draws, RULES.verifiers, int(RULES.honest_share * ONE))
    back = RECOMMENDED.reward_cap + int(RULES.restitution * BUDGET)
    return minimum_stake(audit, price, int(RULES.gain * BUDGET), recoverable=back)


@pytest.mark.parametrize("segments", [2, 5, 8, 20, 41, 60])
def test_the_stake_deters_at_every_price_and_one_draw_less_does_not(segments: int) -> None:
    terms = recommended_terms(segments, BUDGET)
    q = terms.segments_per_verifier
    for price in (0, BUDGET // 3, BUDGET):
        assert needed(segments, q, price) <= terms.stake
    if q > 1:
        # With no price to lose, and the worst price's share saved: what the rule counts on.
        assert needed(segments, q - 1, BUDGET) + BUDGET > terms.stake


def test_the_most_segments_are_the_most() -> None:
    most = most_segments()
    assert recommended_terms(most, BUDGET).segments_per_verifier == MAX_SEAT_SEGMENTS
    with pytest.raises(NoRecommendation, match=rf"at most {most} .* submit 2 tasks"):
        recommended_terms(most + 1, BUDGET)


def test_amounts_follow_the_budget_and_the_rules() -> None:
    terms = recommended_terms(50, 7 * TOKEN, reward_cap=3)
    assert terms.stake == 70 * TOKEN + 7 * TOKEN + 3
    assert (terms.restitution, terms.delay_penalty) == (7 * TOKEN, 7 * TOKEN // 5)
    assert terms.audit_fee * 50 == 7 * TOKEN
    half = recommended_terms(50, 7 * TOKEN, rules=replace(RULES, restitution=Fraction(1, 2)))
    assert half.restitution == 7 * TOKEN // 2


@pytest.mark.parametrize(("fee", "draws"), [(None, None), (None, 3), (5, None), (0, 2)])
def test_a_seat_locks_what_its_silence_costs(fee: int | None, draws: int | None) -> None:
    terms = recommended_terms(20, BUDGET, audit_fee=fee, draws=draws, draw_fee=7)
    assert terms.audit_fee == (BUDGET // 20 if fee is None else fee)
    assert terms.seat_lock == terms.audit_fee * terms.segments_per_verifier + 7
    assert terms.forgone == terms.seat_lock - 7


def test_deployment_submitter_and_simulation_read_one_file(tmp_path: Path) -> None:
    parameters = MarketParameters()
    terms = recommended_terms(
        parameters.segments, parameters.budget * TOKEN // SIM_TOKEN, draws=parameters.segments_per_verifier
    )
    for name in ("stake", "restitution", "delay_penalty"):
        assert getattr(parameters, name) * TOKEN // SIM_TOKEN == getattr(terms, name)
    assert parameters.verifiers == RULES.verifiers
    for name in ("draw_fee", "stake_unit", "challenge_bond", "reward_cap"):
        deployed = getattr(load_parameters("recommended"), name)
        assert getattr(parameters, name) * TOKEN // SIM_TOKEN == deployed
    given = read(described(tmp_path, OPTIONAL)).fields()
    assert {name: given[name] for name in OPTIONAL} == asdict(recommended_terms(8, BUDGET))


def described(folder: Path, left_out: list[str], segments: int = 8) -> Path:
    """The example's file without some of its fields."""
    lines = (EXAMPLES / "digits.toml").read_text().replace("segments = 8", f"segments = {segments}")
    (folder / "digits.py").touch()
    file = folder / "task.toml"
    file.write_text("".join(line for line in lines.splitlines(True) if line.split(" =")[0] not in left_out))
    return file


def test_what_a_file_gives_stays(tmp_path: Path) -> None:
    description = read(described(tmp_path, ["restitution", "seat_lock"]))
    assert (description.fields()["stake"], description.fields()["audit_fee"]) == (1000 * TOKEN, 2 * TOKEN)
    assert recommendations(description) == [
        "recommended for 8 segments and this budget: restitution 100, seat_lock 4.1"
    ]
    assert recommendations(read(EXAMPLES / "digits.toml")) == []


def test_a_stake_without_its_audit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DescriptionError, match=r"all or none.*verifiers not there"):
        read(described(tmp_path, ["verifiers"]))


def test_a_task_of_too_many_segments_is_told_to_split(tmp_path: Path) -> None:
    with pytest.raises(NoRecommendation, match="submit 4 tasks"):
        recommendations(read(described(tmp_path, OPTIONAL, segments=5_000)))


def test_a_reward_below_the_fees_forgone_is_said(tmp_path: Path) -> None:
    words = recommendations(read(described(tmp_path, OPTIONAL, segments=1)))
    assert len(words) == 2
    assert "forgoes fees of 100" in words[1]
