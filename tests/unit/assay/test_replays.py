"""Replays of segments: a false segment is found, and the segments after it are replayed only from served states."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import NotHeld
from assay.replays import Finding, Run, first_false
from assay.verifying import Choice
from protocol.commitments import segment_tree
from protocol.execution.replay import Executor, HonestExecutor, Work, first_step, run_steps
from protocol.node.settings import SettingsError
from protocol.program import Interpreter
from protocol.program.library import kernels
from protocol.program.step import State
from tests.adversaries.tiny import moves_a_weight_far
from tests.unit.solver import tiny

PROGRAM = tiny.step_program()
WORK = Work(tiny.TASK, PROGRAM, tiny.fixed(), kernels(PROGRAM.program, {}))
ALL = range(1, tiny.SEGMENTS + 1)


def honest() -> Executor:
    return HonestExecutor(PROGRAM, tiny.fixed(), Interpreter())


def states(executor: Executor) -> list[State]:
    """The initial state and the state at the end of each segment."""
    found: list[State] = [tiny.initial()]
    for segment in ALL:
        found.append(run_steps(executor, found[-1], first_step(segment, tiny.STEPS), tiny.STEPS))
    return found


TRUE, FALSE = states(honest()), states(moves_a_weight_far(WORK))
"""States of an honest run, and of a run whose segment 2 is false."""


def roots(of: Sequence[State]) -> list[bytes]:
    return [PROGRAM.state_root(state) for state in of]


def a_run(steps: list[int] | None = None) -> Run:
    told = [] if steps is None else steps
    return Run(PROGRAM, honest(), tiny.STEPS, lambda number, _state: told.append(number))


def nobody(number: int) -> State:
    if number:
        raise NotHeld(f"checkpoint {number}")
    return tiny.initial()


def test_an_honest_run_needs_nobodys_states() -> None:
    steps: list[int] = []
    found = list(a_run(steps).compare(ALL, roots(TRUE), nobody))
    assert [(one.segment, one.equal) for one in found] == [(number, True) for number in ALL]
    assert steps == list(range(1, tiny.SEGMENTS * tiny.STEPS + 1))
    assert a_run().roots(tiny.initial(), tiny.SEGMENTS) == roots(TRUE)


def test_a_false_segment_alone_is_false_and_names_its_tensors() -> None:
    found = list(a_run().compare(ALL, roots(FALSE), FALSE.__getitem__))
    assert [one.equal for one in found] == [True, False, True]
    assert found[1].tensors == ("weights",)
    assert found[1].computed == roots(TRUE)[2]
    assert "FALSE" in found[1].line()
    assert "they differ in weights" in found[1].line()
    assert [one.equal for one in a_run().compare([3], roots(FALSE), FALSE.__getitem__)] == [True]


def test_what_follows_a_false_segment_is_not_guessed() -> None:
    found: list[Finding] = []
    with pytest.raises(NotHeld, match="checkpoint 2"):
        found.extend(a_run().compare(ALL, roots(FALSE), nobody))
    assert [(one.segment, one.equal) for one in found] == [(1, True), (2, False)]
    assert found[-1].tensors is None


@given(st.integers(1, 12), st.integers(1, 12), st.sets(st.integers(1, 13)))
def test_progress_commitments_bound_the_first_false_segment(
    segments: int, false: int, sizes: set[int]
) -> None:
    own = [bytes([number]) * 32 for number in range(segments + 1)]
    told = [root if number < false else bytes(31) + b"\x01" for number, root in enumerate(own)]
    due = {size for size in sizes if size <= segments} | {segments + 1}
    found = first_false(own, [(size, segment_tree(told[:size]).root) for size in due])
    if false > segments:
        assert found is None
    else:
        assert found is not None
        assert false in found
        assert not any(size in due for size in range(found[0] + 1, found[-1] + 1)), "as narrow as they tell"


@pytest.mark.parametrize(
    ("choice", "segments"),
    [
        (Choice(every=True), [1, 2, 3, 4]),
        (Choice(), [1, 2, 3, 4]),
        (Choice(count=4), [1, 2, 3, 4]),
        (Choice(count=9), [1, 2, 3, 4]),
        (Choice(named=(4, 1, 4)), [1, 4]),
    ],
)
def test_what_is_chosen(choice: Choice, segments: list[int]) -> None:
    assert choice.of(4) == segments


def test_drawn_segments_are_distinct_and_any() -> None:
    draws = [Choice(count=3).of(5) for _ in range(200)]
    assert all(len(set(drawn)) == 3 and drawn == sorted(drawn) for drawn in draws)
    assert {number for drawn in draws for number in drawn} == {1, 2, 3, 4, 5}
    with pytest.raises(SettingsError, match="expected 1 to 4"):
        Choice(named=(5,)).of(4)
