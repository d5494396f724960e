"""Training in a replay: a given number of segments are false, counted from the first segment on. Each false
segment is false in one element, inside a call.
"""

from __future__ import annotations

import pytest
import torch

from protocol.program import Op
from sim.replay.training import STEPS, Training


@pytest.mark.parametrize("false", range(4))
def test_the_first_segments_are_false_and_no_other(false: int) -> None:
    trained = Training(3).by(false)
    assert trained.false_segments == frozenset(range(1, false + 1))
    assert len(trained.roots) == len(set(trained.roots)) == 4


def test_an_honest_run_is_what_a_verifier_repeats() -> None:
    trained = Training(2).by(0)
    assert list(trained.repeated.segment_roots() or ()) == trained.roots
    assert trained.states[-1]["count"].item() == 2 * STEPS


def test_a_false_step_differs_in_one_element_of_one_product() -> None:
    training = Training(1)
    trained = training.by(1)
    false, right = trained.run.frame(1, STEPS), trained.checked.frame(1, STEPS)
    call = next(
        number
        for number, instruction in enumerate(training.program.program.instructions)
        if instruction.op is Op.CALL
    )
    inner, own = false.callee(call), right.callee(call)
    products = [n for n, each in enumerate(own.program.instructions) if each.op is Op.MUL]
    (leaf,) = own.program.instructions[products[0]].leaves
    assert [i for i in range(own.tree.size) if own.root(i) != inner.root(i)] == [leaf]
    values = [torch.frombuffer(bytearray(frame.value(leaf)), dtype=torch.int32) for frame in (inner, own)]
    assert torch.count_nonzero(values[0] != values[1]).item() == 1


def test_steps_before_the_last_of_a_false_segment_are_right() -> None:
    trained = Training(2).by(2)
    assert trained.run.step_roots(2)[:-1] == trained.checked.step_roots(2)[:-1]
    assert trained.run.step_roots(2)[-1] != trained.checked.step_roots(2)[-1]
