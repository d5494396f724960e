"""Corruptions of a GPT: one wrong element in any library function, judged on a real chain.

Instructions are taken from each function in turn. Within a function they are chosen at random, and so are
their elements; the seeds are fixed. `make test` tries 20 instructions, `make test-heavy` tries 240 in parts.
"""

from __future__ import annotations

import random
from collections import defaultdict
from functools import cache
from itertools import zip_longest

import pytest
import torch

from examples import gpt
from protocol.program.library import kernels
from tests.chain.arena import Arena, Subject
from tests.chain.corruption import SEGMENTS, STEPS, Corruptions, Site

pytestmark = pytest.mark.chain

QUICK = 20
PARTS, PART = 12, 20
"""The heavy test: its number of parts, and the number of sites in each."""


@cache
def made() -> Corruptions:
    """Corruptions of a shortened run of the GPT in examples/gpt.toml."""
    torch.set_num_threads(1)
    captured = gpt.build(SEGMENTS * STEPS)
    task = Subject(captured.step_program, captured.fixed, captured.initial_state(1), SEGMENTS, STEPS)
    return Corruptions(task, kernels(captured.step_program.program, captured.hints))


@cache
def sampled(count: int) -> list[Site]:
    """The first `count` sites of a fixed sequence, which takes one random site from each function in turn. A
    site belongs to the innermost function around it; functions of one name count as one.
    """
    generator = random.Random(20261120)
    by_function: dict[str, list[Site]] = defaultdict(list)
    for site in made().sites:
        by_function[made().program(site[0]).name].append(site)
    for sites in by_function.values():
        generator.shuffle(sites)
    in_turn = (site for turn in zip_longest(*by_function.values()) for site in turn if site is not None)
    return [site for site, _ in zip(in_turn, range(count), strict=False)]


@pytest.mark.timeout(900)
def test_a_wrong_value_in_any_function_is_found_and_judged(arena: Arena) -> None:
    check(arena, sampled(QUICK))


@pytest.mark.heavy
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("part", range(PARTS))
def test_wrong_values_everywhere_are_found_and_judged(arena: Arena, part: int) -> None:
    check(arena, sampled(PARTS * PART)[part * PART : (part + 1) * PART])


def test_every_library_function_is_in_the_sample() -> None:
    functions = {made().program(path).name for path, _ in made().sites}
    assert {made().program(path).name for path, _ in sampled(PARTS * PART)} == functions


def check(arena: Arena, sites: list[Site]) -> None:
    """Check that each corruption is judged at its own instruction and element. At most a third of them may
    have no effect.
    """
    generator = random.Random(str(sites))

    def anywhere(elements: int) -> list[int]:
        return generator.sample(range(elements), min(elements, 3))

    effects = [made().check(arena, site, anywhere) for site in sites]
    assert effects.count(False) <= len(sites) // 3
