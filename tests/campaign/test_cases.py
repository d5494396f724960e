"""Every combination is a case or has a reason not to be one, and the covering set covers what it must."""

from __future__ import annotations

from itertools import product

from tests.campaign.cases import (
    COVERING,
    PARTS,
    PLACES,
    WEIGHTS,
    Case,
    cases,
    covering,
    depths_at,
    impossible,
    pairs,
    uncovered,
)
from tests.campaign.faults import FAULTS
from tests.campaign.stages import Stage, Who


def test_every_combination_is_a_case_or_has_its_reason() -> None:
    cannot = dict(impossible())
    everything = {Case(who, stage, fault) for who, stage, fault in product(Who, Stage, FAULTS)}
    assert {*cases(), *cannot} == everything
    assert len(cases()) + len(cannot) == len(everything)
    assert all(cannot.values())


def test_every_fault_strikes_somewhere_and_every_stage_is_struck() -> None:
    assert {case.fault for case in cases()} == set(FAULTS)
    assert {(case.who, case.stage) for case in cases()} == set(PLACES)
    assert sorted(stage for part in PARTS.values() for stage in part) == sorted(Stage)


def test_every_depth_of_a_reorganisation_comes_to_be() -> None:
    assert {depth for place in PLACES for depth in depths_at(*place)} == set(range(1, 9))


def test_the_covering_set_leaves_out_nothing_but_faults_of_a_party() -> None:
    assert len(set(covering())) == len(covering()) <= COVERING
    assert {pair[0] for pair in uncovered()} <= {"fault of party"}
    every = {pair for case in cases() for pair in pairs(case)}
    assert {pair[0] for pair in every} == set(WEIGHTS)
    assert len(uncovered()) < len([pair for pair in every if pair[0] == "fault of party"]) / 3


def test_names_tell_cases_apart() -> None:
    assert len({case.slug for case in cases()}) == len(cases()) == len({str(case) for case in cases()})
