"""This machine's speed for a program is the speed of the quickest measured step of the program. Until enough
steps are measured, it is the expected speed.
"""

from __future__ import annotations

from protocol.execution.speeds import PROGRAMS, STEPS, Speeds


def test_the_quickest_step_counts_once_there_are_some() -> None:
    speeds = Speeds()
    note = speeds.of(b"a", 1_000)
    for _ in range(STEPS - 1):
        note(2.0)
    assert speeds.measured() == {}
    note(0.5)
    note(4.0)
    assert speeds.measured() == {b"a": 2_000.0}


def test_a_program_has_the_same_speed_in_all_its_tasks_and_none_from_another() -> None:
    speeds = Speeds()
    for _ in range(STEPS):
        speeds.of(b"a", 1_000)(1.0)
        speeds.of(b"b", 1_000)(0.0)
    assert speeds.measured()[b"a"] == 1_000
    assert speeds.measured()[b"b"] > 1e9, "a clock that stands still is not a division by zero"


def test_programs_that_nobody_runs_any_more_are_forgotten() -> None:
    speeds = Speeds()
    for number in range(PROGRAMS + 1):
        note = speeds.of(number.to_bytes(2), 1)
        for _ in range(STEPS):
            note(1.0)
    assert len(speeds.measured()) == PROGRAMS
    assert (0).to_bytes(2) not in speeds.measured()


def test_what_is_expected_of_a_program_counts_until_its_steps_are_measured() -> None:
    speeds = Speeds()
    speeds.expect(b"a", 7.0)
    assert speeds.measured() == {b"a": 7.0}
    for _ in range(STEPS):
        speeds.of(b"a", 1_000)(1.0)
    assert speeds.measured() == {b"a": 1_000.0}
    for number in range(PROGRAMS):
        speeds.expect(number.to_bytes(2), 1.0)
    assert len(speeds.measured()) == PROGRAMS + 1, "the oldest expectation is forgotten, no measurement"
