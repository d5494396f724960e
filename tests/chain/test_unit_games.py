"""Games over steps with micro-batches: a wrong value in a unit, or in the sum over units, is judged."""

from __future__ import annotations

import random
from functools import cache

import pytest
import torch
from torch import nn

from protocol.program import Op
from protocol.program.library import kernels
from protocol.program.parallel import units
from tests.chain.arena import Arena, Subject
from tests.chain.corruption import SEGMENTS, STEPS, Corruptions, Site
from tests.unit.capture.steps import captured

pytestmark = pytest.mark.chain

UNITS = 3


@cache
def made() -> Corruptions:
    """Corruptions of a small classifier whose batch has three parts."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 6), nn.GELU(), nn.Linear(6, 3))
    step = captured(model, steps=SEGMENTS * STEPS, micro_batches=UNITS)
    task = Subject(step.step_program, step.fixed, step.initial_state(1), SEGMENTS, STEPS)
    return Corruptions(task, kernels(step.step_program.program, step.hints))


def sites() -> list[Site]:
    """The sites of one product in each unit, of the sum over units, and of the division of that sum."""
    calls = units(made().program(()))
    assert len(calls) == UNITS
    inside = [site for site in made().sites if site[0] and site[0][0] in calls]
    products = [next(site for site in inside if site[0][0] == n and op(site) is Op.DOT) for n in calls]
    sums = [site for site in made().sites if made().program(site[0]).name == "sum_units"]
    return [*products, *(site for site in sums if op(site) in (Op.SUM, Op.DIV))]


def op(site: Site) -> Op:
    """The opcode at a site."""
    path, number = site
    return made().program(path).instructions[number].op


def test_wrong_values_in_units_and_in_their_sums_are_judged(arena: Arena) -> None:
    generator = random.Random(1)

    def anywhere(elements: int) -> list[int]:
        return generator.sample(range(elements), min(elements, 3))

    assert len(sites()) == UNITS + 2
    assert all(made().check(arena, site, anywhere) for site in sites())
