"""Replays against solvers that serve all, some, nothing or garbage: the finding is always right.

A finding is equal or different. It may have a digest of the replayed states for each digester.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread

import pytest
import torch
from torch import Tensor

from protocol.commitments import BlobStore, CommitmentError, segment_tree, state_root, step_tree, tensor_root
from protocol.commitments.digests import Digester
from protocol.commitments.opened_chunks import Place
from protocol.dispute.keys import salt_hash
from protocol.dispute.provider import Frame
from protocol.execution.replay import HonestExecutor
from protocol.node.database import Identity
from protocol.numerics.types import to_bytes
from protocol.program.execute import Interpreter
from protocol.program.step import State, StepProgram
from tests.unit.solver import tiny
from verifier.database import Database, StateRow
from verifier.errors import TwoReplays, Unserved
from verifier.findings import Committed, Different, Equal, Finding
from verifier.replaying import Replayer
from verifier.states import States

RESULT = tiny.SEGMENTS + 1
"""Number of the segment that would begin with the result; it stands for the result itself."""
PROGRAM = tiny.step_program()
EXECUTOR = HonestExecutor(PROGRAM, tiny.fixed(), Interpreter())


def run(wrong_step: int = 0) -> list[State]:
    """The initial state and the state after each step; after `wrong_step`, 1,000 is added to one weight."""
    states: list[State] = [tiny.initial()]
    for number in range(1, tiny.SEGMENTS * tiny.STEPS + 1):
        state = dict(EXECUTOR.step(states[-1], number))
        if number == wrong_step:
            state["weights"] = state["weights"].clone()
            state["weights"][7] += 1000.0
        states.append(state)
    return states


@dataclass
class Told:
    """A stub solver that serves the checkpoints of `states`, except those that `tensors` replaces. In `roots`
    and `tensors`, None stands for no answer.
    """

    states: list[State]
    roots: Sequence[bytes] | None = None
    tensors: dict[int, Sequence[bytes] | None] = field(default_factory=dict)
    asked: list[int] = field(default_factory=list)

    def segment_roots(self) -> Sequence[bytes] | None:
        return self.roots

    def step_roots(self, _segment: int) -> None:
        return None

    def tensor_roots(self, _segment: int, _step: int) -> None:
        return None

    def trace_roots(self, _segment: int, _step: int, _path: tuple[int, ...]) -> None:
        return None

    def value(self, _segment: int, _step: int, _path: tuple[int, ...], _leaf: int) -> None:
        return None

    def checkpoint(self, number: int) -> Sequence[bytes] | None:
        self.asked.append(number)
        if number in self.tensors:
            return self.tensors[number]
        return canonical(self.states[number * tiny.STEPS])


def canonical(state: State) -> list[bytes]:
    """Canonical bytes of a state's tensors."""
    types = PROGRAM.state_types
    return [to_bytes(x, type_.dtype) for x, type_ in zip(PROGRAM.order(state), types, strict=True)]


def checkpoint_roots(states: list[State]) -> list[bytes]:
    """The state roots r_0 … r_K of the checkpoints."""
    return [PROGRAM.state_root(states[i * tiny.STEPS]) for i in range(tiny.SEGMENTS + 1)]


def committed(states: list[State]) -> Committed:
    """The commitment to the run: its segment tree's root and size."""
    return Committed(segment_tree(checkpoint_roots(states)).root, tiny.SEGMENTS + 1)


DIGESTERS = (Digester(bytes([1]) * 32, 1), Digester(bytes([2]) * 32, 2))
"""The digesters of two seats, with a salt each."""


def digests(states: list[State], segment: int) -> tuple[bytes, ...]:
    """Each digester's digest of a segment, or of the result."""
    first = (segment - 1) * tiny.STEPS
    if segment == RESULT:
        return tuple(Digester(one.salt, 1).state_root(canonical(states[first]), 0) for one in DIGESTERS)
    passed = states[first : first + tiny.STEPS + 1]
    return tuple(
        step_tree([one.state_root(canonical(state), j) for j, state in enumerate(passed)]).root
        for one in DIGESTERS
    )


class Patient(Replayer):
    """Asks the solver, then audits until there is a finding."""

    def audit(self, committed: Committed, segment: int, digesters: Sequence[Digester] = DIGESTERS) -> Finding:
        if not self.is_here(committed, segment):
            with suppress(Unserved):
                self.ask(committed, [segment])
            assert self.is_here(committed, segment) is not self.has_withheld(committed)
        for _ in range(tiny.SEGMENTS + 1):
            finding = super().audit(committed, segment, digesters)
            if finding is not None:
                return finding
        raise AssertionError("our own run does not come to an end")


def replayer(folder: Path, told: Told, *others: Told) -> Patient:
    """A replayer with `told` as the solver and `others` as further sources."""
    database = Database(folder / "verifier.sqlite", Identity("a", "b", "c"))
    states = States(
        tiny.TASK, PROGRAM, EXECUTOR, tiny.STEPS, tiny.initial, database, BlobStore(folder / "blobs")
    )
    return Patient(PROGRAM, EXECUTOR, tiny.STEPS, states, told, lambda: others)


HONEST = run()
CHEATING = run(wrong_step=6)  # in segment 2


@pytest.mark.parametrize("segment", [1, 2, 3])
def test_an_honest_segment_is_equal_and_its_states_are_digested(tmp_path: Path, segment: int) -> None:
    told = Told(HONEST, checkpoint_roots(HONEST))
    assert replayer(tmp_path, told).audit(committed(HONEST), segment) == Equal(digests(HONEST, segment))
    assert told.asked == ([] if segment == 1 else [segment - 1])


def test_digests_are_made_on_as_many_threads_as_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[int] = []
    honest = StepProgram.salted_state_root

    def noted(self: StepProgram, state: State, digester: Digester, step: int, threads: int = 1) -> bytes:
        used.append(threads)
        return honest(self, state, digester, step, threads)

    monkeypatch.setattr(StepProgram, "salted_state_root", noted)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    found = replayer(tmp_path, Told(HONEST, checkpoint_roots(HONEST)))
    for segment in (2, RESULT):
        assert found.audit(committed(HONEST), segment) == Equal(digests(HONEST, segment))
    assert used == [3] * len(DIGESTERS) * (tiny.STEPS + 2)


@pytest.mark.parametrize("segment", [1, 2, 3])
def test_a_false_segment_is_different_and_its_neighbours_are_not(tmp_path: Path, segment: int) -> None:
    roots = checkpoint_roots(CHEATING)
    finding = replayer(tmp_path, Told(CHEATING, roots)).audit(committed(CHEATING), segment)
    if segment == 2:
        assert finding == Different(2, tuple(roots), digests(HONEST, 2))
    else:
        assert finding == Equal(digests(CHEATING, segment))


@pytest.mark.parametrize("served", [True, False])
def test_the_result_is_held_as_it_was_committed(tmp_path: Path, served: bool) -> None:
    told = Told(HONEST, checkpoint_roots(HONEST), {} if served else {tiny.SEGMENTS: None})
    root = checkpoint_roots(HONEST)[-1]
    found = replayer(tmp_path, told)
    assert found.audit(committed(HONEST), RESULT) == Equal(digests(HONEST, RESULT))
    assert told.asked == [tiny.SEGMENTS]
    assert found._states.tensors(tiny.SEGMENTS, root) == canonical(HONEST[-1])


def test_a_result_that_is_not_served_and_not_true_is_different(tmp_path: Path) -> None:
    roots = checkpoint_roots(CHEATING)
    told = Told(CHEATING, roots, {tiny.SEGMENTS: None})
    assert replayer(tmp_path / "roots", told).audit(committed(CHEATING), RESULT) == Different(2, tuple(roots))
    assert replayer(tmp_path / "none", Told(CHEATING)).audit(committed(CHEATING), RESULT) == Different(
        None, ()
    )


def test_a_false_result_that_is_served_is_held(tmp_path: Path) -> None:
    """The solver serves a false result, which is the result that it committed. The audit of this result finds
    it equal. Only replays find which segment is false.
    """
    told = Told(CHEATING, checkpoint_roots(CHEATING))
    assert replayer(tmp_path, told).audit(committed(CHEATING), RESULT) == Equal(digests(CHEATING, RESULT))


def nearly(state: State) -> Sequence[bytes]:
    """The canonical bytes of a state's tensors, with one bit flipped."""
    first, *rest = canonical(state)
    return [bytes([first[0] ^ 1]) + first[1:], *rest]


@pytest.mark.parametrize("served", [None, nearly(CHEATING[8]), canonical(HONEST[4])])
def test_without_the_state_before_it_the_run_begins_at_the_start(
    tmp_path: Path, served: Sequence[bytes] | None
) -> None:
    told = Told(CHEATING, checkpoint_roots(CHEATING), {2: served})
    # Segment 3 is asked for; on the way there, segment 2 turns out to be false.
    assert replayer(tmp_path, told).audit(committed(CHEATING), 3) == Different(2, tuple(told.roots or ()))


def test_without_the_state_before_it_an_honest_segment_is_still_found_equal(tmp_path: Path) -> None:
    told = Told(HONEST, checkpoint_roots(HONEST), {1: None, 2: None})
    assert replayer(tmp_path, told).audit(committed(HONEST), 3) == Equal(digests(HONEST, 3))


@pytest.mark.parametrize("roots", [None, [], [bytes(32)] * 4, checkpoint_roots(HONEST)[:3]])
def test_a_solver_without_roots_is_found_out_or_found_equal(
    tmp_path: Path, roots: Sequence[bytes] | None
) -> None:
    equal = replayer(tmp_path / "honest", Told(HONEST, roots)).audit(committed(HONEST), 2)
    assert equal == Equal(digests(HONEST, 2))
    different = replayer(tmp_path / "cheating", Told(CHEATING, roots)).audit(committed(CHEATING), 1)
    assert different == Different(None, ())


def test_roots_of_another_tree_are_not_taken_for_the_committed_ones(tmp_path: Path) -> None:
    told = Told(CHEATING, checkpoint_roots(HONEST))
    assert replayer(tmp_path, told).audit(committed(CHEATING), 2) == Different(None, ())


def test_bytes_that_no_tensor_has_do_not_pass_for_a_state(tmp_path: Path) -> None:
    """The committed root of checkpoint 1 is the root of bytes with a NaN that is not canonical. No honest
    replay gives that root, so segment 1, which ends at checkpoint 1, is false.
    """
    states = run()
    state = dict(states[4])
    state["weights"] = torch.full((300,), float("nan"))
    weights: Tensor = state["weights"]
    canonical_bytes = [to_bytes(weights, PROGRAM.state_types[0].dtype), canonical(states[4])[1]]
    other = [bytes.fromhex("0100c07f") + canonical_bytes[0][4:], canonical_bytes[1]]
    roots = checkpoint_roots(states)
    roots[1] = state_root([tensor_root(item) for item in other])
    told = Told(states, roots, {1: other})
    finding = replayer(tmp_path, told).audit(Committed(segment_tree(roots).root, len(roots)), 2)
    assert finding == Different(1, tuple(roots))


def test_a_run_from_the_start_goes_on_where_it_was_left(tmp_path: Path) -> None:
    told = Told(HONEST)
    first = replayer(tmp_path, told)
    assert Replayer.audit(first, committed(HONEST), 1) is None
    assert Replayer.audit(first, committed(HONEST), 1) is None
    again = replayer(tmp_path, told)  # after a restart
    assert Replayer.audit(again, committed(HONEST), 1) == Equal(), "nobody asked for digests"
    assert Replayer.audit(again, committed(HONEST), 1, DIGESTERS) == Equal(digests(HONEST, 1))


class Flipping:
    """An executor that flips a bit of the state once, after step `wrong_step`. Everything else that it does
    is honest.
    """

    def __init__(self, wrong_step: int) -> None:
        self._wrong_step = wrong_step

    def step(self, state: State, number: int, /) -> State:
        after = dict(EXECUTOR.step(state, number))
        if number == self._wrong_step:
            after["count"] = after["count"] ^ 1
            self._wrong_step = 0
        return after

    def trace(self, state: State, number: int, /) -> Frame:
        return EXECUTOR.trace(state, number)


def test_a_bit_that_flips_while_digests_are_made_is_in_no_digest(tmp_path: Path) -> None:
    """The first replay, which is the run from the start, agrees with the commitment. The bit flips in the
    second replay, which makes the digests. This raises an error, and the next audit makes the right digests.
    """
    told = Told(HONEST)
    replayer(tmp_path, told).audit(committed(HONEST), 2, ())
    flipping = Replayer(PROGRAM, Flipping(6), tiny.STEPS, replayer(tmp_path, told)._states, told)
    with pytest.raises(TwoReplays, match="segment 2: expected"):
        flipping.audit(committed(HONEST), 2, DIGESTERS)
    assert flipping.audit(committed(HONEST), 2, DIGESTERS) == Equal(digests(HONEST, 2))


@pytest.mark.parametrize("segment", [1, 2, 3, RESULT])
@pytest.mark.parametrize("roots", [None, checkpoint_roots(CHEATING)])
def test_ones_own_run_is_digested_whatever_was_committed(
    tmp_path: Path, segment: int, roots: Sequence[bytes] | None
) -> None:
    told = Told(CHEATING, roots)
    found = replayer(tmp_path, told)
    for _ in range(tiny.SEGMENTS - 1):
        assert found.digest_own(committed(CHEATING), segment, DIGESTERS) is None
    assert found.digest_own(committed(CHEATING), segment, DIGESTERS) == digests(HONEST, segment)
    assert told.asked == []


def test_a_state_that_was_served_once_is_kept(tmp_path: Path) -> None:
    told = Told(CHEATING, checkpoint_roots(CHEATING))
    replayer(tmp_path, told).audit(committed(CHEATING), 2)
    told.tensors[1] = None
    again = replayer(tmp_path, told)  # after a restart
    roots = tuple(told.roots or ())
    assert again.audit(committed(CHEATING), 2) == Different(2, roots, digests(HONEST, 2))
    assert told.asked == [1]


def test_a_damaged_kept_state_is_made_anew(tmp_path: Path) -> None:
    told = Told(HONEST, checkpoint_roots(HONEST))
    replayer(tmp_path, told).audit(committed(HONEST), 2)
    for blob in (tmp_path / "blobs").rglob("*"):
        if blob.is_file():
            blob.write_bytes(b"damaged")
    again = replayer(tmp_path, told)
    with pytest.raises(Exception, match="expected"):
        again.audit(committed(HONEST), 2)
    assert again.audit(committed(HONEST), 2) == Equal(digests(HONEST, 2))


def test_a_damaged_state_takes_no_other_with_it(tmp_path: Path) -> None:
    """If one kept state is damaged, the others stay. A challenged solver might refuse to serve them again."""
    told = Told(HONEST, checkpoint_roots(HONEST))
    first = replayer(tmp_path, told)
    for segment in (2, 3):
        first.audit(committed(HONEST), segment)
    assert told.asked == [1, 2]
    database = Database(tmp_path / "verifier.sqlite", Identity("a", "b", "c"))
    damaged, _ = database.states(tiny.TASK, own=False)
    (tmp_path / "blobs" / damaged.manifest[:2] / damaged.manifest).write_bytes(b"damaged")
    again = replayer(tmp_path, told)
    with pytest.raises(CommitmentError):
        again.audit(committed(HONEST), 2)
    assert again.audit(committed(HONEST), 3) == Equal(digests(HONEST, 3))
    assert told.asked == [1, 2], "checkpoint 2 was still there"


def test_what_a_solver_withholds_is_had_from_others_if_it_is_what_was_committed(tmp_path: Path) -> None:
    due = committed(HONEST)
    silent = Told(HONEST, tensors=dict.fromkeys(range(tiny.SEGMENTS + 1)))
    false = Told(CHEATING, roots=checkpoint_roots(CHEATING))
    useful = Told(HONEST, roots=checkpoint_roots(HONEST))
    made = replayer(tmp_path, silent, false, useful)
    made.ask(due, [3])
    assert made.is_here(due, 3)
    assert not made.has_withheld(due)
    assert (silent.asked, useful.asked) == ([], [2]), "who has not served the roots comes last"
    found = made.state(due, 2)
    assert found is not None
    assert canonical(found[0]) == canonical(HONEST[2 * tiny.STEPS])
    assert list(found[1]) == checkpoint_roots(HONEST)


def test_who_gave_another_state_once_is_asked_again_where_the_others_have_none(tmp_path: Path) -> None:
    due, roots = committed(HONEST), checkpoint_roots(HONEST)
    changed = Told(HONEST, roots=roots, tensors={2: canonical(CHEATING[2 * tiny.STEPS])})
    silent = Told(HONEST, roots=roots, tensors=dict.fromkeys(range(tiny.SEGMENTS + 1)))
    made = replayer(tmp_path, changed, silent)
    with pytest.raises(Unserved):
        made.ask(due, [3])
    changed.tensors.clear()
    made.ask(due, [3])
    assert made.is_here(due, 3)


def test_others_are_not_asked_for_what_the_solver_serves(tmp_path: Path) -> None:
    due = committed(HONEST)
    other = Told(HONEST, roots=checkpoint_roots(HONEST))
    made = replayer(tmp_path, Told(HONEST, roots=checkpoint_roots(HONEST)), other)
    made.ask(due, [2, 3])
    assert other.asked == []
    assert replayer(tmp_path / "elsewhere", Told(HONEST)).state(due, 2) is None, "no roots"


class Counting(HonestExecutor):
    """Counts its steps."""

    def __init__(self) -> None:
        super().__init__(PROGRAM, tiny.fixed(), Interpreter())
        self.steps: list[int] = []

    def step(self, state: State, number: int, /) -> State:
        self.steps.append(number)
        return super().step(state, number)

    def trace(self, state: State, number: int, /) -> Frame:
        return EXECUTOR.trace(state, number)


def restarted(folder: Path, told: Told) -> tuple[Replayer, Database, Counting]:
    """A replayer with the data in `folder`, as after a restart of the process. Returns the replayer, its
    database and its executor.
    """
    database, executor = Database(folder / "verifier.sqlite", Identity("a", "b", "c")), Counting()
    states = States(
        tiny.TASK, PROGRAM, executor, tiny.STEPS, tiny.initial, database, BlobStore(folder / "blobs")
    )
    return Replayer(PROGRAM, executor, tiny.STEPS, states, told), database, executor


class Meanwhile(HonestExecutor):
    """Calls `then` on another thread, once, before step `at`."""

    def __init__(self, at: int, then: Callable[[], None]) -> None:
        super().__init__(PROGRAM, tiny.fixed(), Interpreter())
        self._at = at
        self._then = then

    def step(self, state: State, number: int, /) -> State:
        if number == self._at:
            self._at = 0
            other = Thread(target=self._then)
            other.start()
            other.join()
        return super().step(state, number)

    def trace(self, state: State, number: int, /) -> Frame:
        return EXECUTOR.trace(state, number)


def interrupted(folder: Path, then: Callable[[States, Database], None]) -> tuple[Replayer, Database]:
    """A replayer and its database. The solver serves no states, so the replayer audits from its own run.
    `then` is called on another thread, once, while that run computes the last segment.
    """
    database = Database(folder / "verifier.sqlite", Identity("a", "b", "c"))
    executor = Meanwhile((tiny.SEGMENTS - 1) * tiny.STEPS + 1, lambda: then(states, database))
    states = States(
        tiny.TASK, PROGRAM, executor, tiny.STEPS, tiny.initial, database, BlobStore(folder / "blobs")
    )
    silent = Told(HONEST, checkpoint_roots(HONEST), dict.fromkeys(range(tiny.SEGMENTS + 1)))
    made = Replayer(PROGRAM, executor, tiny.STEPS, states, silent)
    with pytest.raises(Unserved):
        made.ask(committed(HONEST), [RESULT])
    return made, database


def test_our_own_run_has_no_gap_if_another_thread_drops_a_state_meanwhile(tmp_path: Path) -> None:
    def drop(states: States, database: Database) -> None:
        damaged = database.states(tiny.TASK, own=True)[1]
        (tmp_path / "blobs" / damaged.manifest[:2] / damaged.manifest).write_bytes(b"damaged")
        with pytest.raises(CommitmentError):
            states.own(1)

    made, database = interrupted(tmp_path, drop)
    finding = None
    while finding is None:
        finding = made.audit(committed(HONEST), RESULT, DIGESTERS)
        numbers = [row.number for row in database.states(tiny.TASK, own=True)]
        assert numbers == list(range(len(numbers)))
    assert finding == Equal(digests(HONEST, RESULT))
    assert [row.root for row in database.states(tiny.TASK, own=True)] == checkpoint_roots(HONEST)


def test_a_gap_that_an_earlier_release_left_is_filled(tmp_path: Path) -> None:
    """The database lacks states in the middle of our own run. The solver serves no roots, so the whole run is
    compared with the commitment.
    """
    told = Told(HONEST)
    assert replayer(tmp_path, told).audit(committed(HONEST), RESULT) == Equal(digests(HONEST, RESULT))
    database = Database(tmp_path / "verifier.sqlite", Identity("a", "b", "c"))
    rows = database.states(tiny.TASK, own=True)
    database.drop_state(tiny.TASK, rows[1])
    database.put_state(tiny.TASK, rows[3])
    assert replayer(tmp_path, told).audit(committed(HONEST), RESULT) == Equal(digests(HONEST, RESULT))
    assert database.states(tiny.TASK, own=True) == rows


def test_a_state_that_is_dropped_while_it_is_compared_makes_no_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, database = (
        replayer(tmp_path, Told(HONEST)),
        Database(tmp_path / "verifier.sqlite", Identity("a", "b", "c")),
    )
    extend, dropped = States.extend, list[StateRow]()

    def dropping(self: States, last: int) -> list[bytes]:
        found = extend(self, last)
        rows = database.states(tiny.TASK, own=True)
        if len(rows) > tiny.SEGMENTS and not dropped:
            dropped.append(rows[1])
            database.drop_state(tiny.TASK, rows[1])
        return found

    monkeypatch.setattr(States, "extend", dropping)
    finding = None
    while finding is None:
        finding = Replayer.audit(made, committed(HONEST), 1, DIGESTERS)
    assert finding == Equal(digests(HONEST, 1))
    assert dropped


@pytest.mark.parametrize("step", [0, 2, tiny.STEPS])
def test_an_accusation_is_answered_after_a_restart_by_a_replay_up_to_its_step(
    tmp_path: Path, step: int
) -> None:
    """The solver served everything once and no longer answers."""
    told = Told(HONEST, checkpoint_roots(HONEST))
    assert isinstance(replayer(tmp_path, told).audit(committed(HONEST), 2), Equal)
    silent = Told(HONEST, tensors=dict.fromkeys(range(tiny.SEGMENTS + 1)))
    again, database, executor = restarted(tmp_path, silent)
    assert again.is_here(committed(HONEST), 2), "its roots are kept"
    place, digester = Place(step, 1, 0, 0), DIGESTERS[0]
    opening = again.open_chunk(committed(HONEST), 2, digester, place)
    first = tiny.STEPS + 1
    assert executor.steps == list(range(first, first + step))
    assert silent.asked == []
    data = canonical(HONEST[tiny.STEPS + step])[place.tensor]
    assert opening is not None
    assert opening.leaf == digester.tensor_root(data, step), "a tensor of one chunk"
    assert opening.step_root(len(PROGRAM.state), tiny.STEPS + 1) == digests(HONEST, 2)[0]
    database.put_steps(tiny.TASK, salt_hash(digester.salt), 2, [bytes(32)] * (tiny.STEPS + 1))
    assert again.open_chunk(committed(HONEST), 2, digester, place) == opening, "damaged roots are made again"
    database.finish(tiny.TASK)
    assert not again._states.steps(2, digester.salt)
    assert not database.commitment(tiny.TASK, committed(HONEST).root)
