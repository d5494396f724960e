"""Places of accusations: which chunks are chosen, how evenly, and openings under the solver's tree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.commitments import ProofError, leaf_hash, state_root, step_tree, tensor_root, verify_inclusion
from protocol.commitments.digests import turns
from protocol.commitments.opened_chunks import fold
from protocol.dispute import accusing
from protocol.dispute.accusing import Chunk, choose_place, evidence

SIZES = (4, 5_000, 3 * 1_024)
THINNINGS = st.sampled_from([1, 2, 4])


class Written:
    """A run with the given states. `asked` lists the requested steps."""

    def __init__(self, states: Sequence[Sequence[bytes]]) -> None:
        self.states = states
        self.asked: list[int] = []

    def tensors(self, step: int) -> Sequence[bytes]:
        self.asked.append(step)
        return self.states[step]


def states(changes: dict[int, Sequence[tuple[int, int]]], steps: int) -> Written:
    """The states of a run that begins with zeros. Each step adds 1 to the last byte of each (tensor, chunk)
    that `changes` lists for the step.
    """
    found = [[bytes(size) for size in SIZES]]
    for step in range(1, steps + 1):
        tensors = [bytearray(data) for data in found[-1]]
        for tensor, chunk in changes.get(step, ()):
            # Change the chunk's last byte. The last chunk of a tensor may be short.
            tensors[tensor][min(1_024 * chunk + 1_023, SIZES[tensor] - 1)] += 1
        found.append([bytes(data) for data in tensors])
    return Written(found)


def is_hashed(at: Chunk, thinning: int) -> bool:
    count = -(-SIZES[at.tensor] // 1_024)
    return (turns(count, at.chunk)[0] + at.step) % thinning == 0


CHUNKS = [(tensor, chunk) for tensor, size in enumerate(SIZES) for chunk in range(-(-size // 1_024))]


@given(
    steps=st.integers(2, 6),
    thinning=THINNINGS,
    changed=st.lists(st.sampled_from(CHUNKS), min_size=1, unique=True),
    seed=st.integers(0, 99),
)
def test_a_hashed_chunk_that_the_step_before_changed_is_chosen(
    steps: int, thinning: int, changed: list[tuple[int, int]], seed: int
) -> None:
    written = states(dict.fromkeys(range(1, steps + 1), changed), steps)
    at = choose_place(written, SIZES, steps, thinning, Random(seed))
    assert is_hashed(at, thinning)
    assert 1 <= at.step < steps
    inner = [Chunk(step, *chunk) for step in range(1, steps) for chunk in changed]
    if any(is_hashed(each, thinning) for each in inner):
        assert (at.tensor, at.chunk) in changed
    pairs = list(zip(written.asked[::2], written.asked[1::2], strict=True))
    assert all(after == before + 1 for before, after in pairs), "a replay goes on from one to the next"
    assert len(set(pairs)) == len(pairs) < steps


def test_every_such_chunk_has_the_same_chance() -> None:
    changed = [(0, 0), (1, 1), (1, 4), (2, 2)]
    written, generator = states(dict.fromkeys(range(1, 4), changed), 3), Random(1)
    seen = Counter(choose_place(written, SIZES, 3, 1, generator) for _ in range(4_000))
    assert set(seen) == {Chunk(step, *chunk) for step in (1, 2) for chunk in changed}
    # 500 of each are expected, with a standard deviation of 21.
    assert all(abs(times - 500) < 5 * 21 for times in seen.values())


def test_a_long_tensors_chunks_have_the_same_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long tensor is compared in several batches, here of three hashed chunks each."""
    monkeypatch.setattr(accusing, "_ROWS", 3)
    whole, short = 32, 5
    written = Written([[bytes([step]) * (1_024 * whole + short)] for step in range(3)])
    generator = Random(2)
    seen = Counter(choose_place(written, [1_024 * whole + short], 2, 4, generator) for _ in range(900))
    due = [chunk for chunk in range(whole + 1) if (turns(whole + 1, chunk)[0] + 1) % 4 == 0]
    assert sorted(seen) == [Chunk(1, 0, chunk) for chunk in due]
    # About 100 of each are expected, with a standard deviation of 10.
    assert all(abs(times - 900 / len(due)) < 50 for times in seen.values())


def test_a_state_without_such_a_chunk_is_passed_over() -> None:
    for seed in range(20):
        at = choose_place(states({3: [(1, 2)]}, 6), SIZES, 6, 1, Random(seed))
        assert at == Chunk(3, 1, 2)


def test_where_nothing_changes_any_hashed_chunk_is_chosen() -> None:
    seen = {choose_place(states({}, 3), SIZES, 3, 2, Random(seed)) for seed in range(300)}
    every = {Chunk(step, *chunk) for step in (1, 2) for chunk in CHUNKS}
    assert seen == {at for at in every if is_hashed(at, 2)}


def test_the_ends_are_chosen_where_nothing_between_them_is_hashed() -> None:
    one = {choose_place(states({1: CHUNKS}, 1), SIZES, 1, 1, Random(seed)) for seed in range(200)}
    assert one == {Chunk(1, *chunk) for chunk in CHUNKS}, "nothing came before state 0"
    still = {choose_place(states({}, 1), SIZES, 1, 1, Random(seed)).step for seed in range(50)}
    assert still == {0, 1}
    # With w = 4, a tensor of one chunk is hashed in states 0 and 4.
    written = Written([[bytes([step])] for step in range(5)])
    assert choose_place(written, (1,), 4, 4, Random(0)) == Chunk(4, 0, 0)


@given(at=st.integers(1, 3).flatmap(lambda step: st.sampled_from([Chunk(step, *chunk) for chunk in CHUNKS])))
def test_evidence_opens_the_chunk_under_the_step_tree(at: Chunk) -> None:
    written = states({step: CHUNKS[::step] for step in range(1, 4)}, 3).states
    roots = [[tensor_root(data) for data in state] for state in written]
    steps = [state_root(each) for each in roots]
    data = written[at.step][at.tensor]
    found = evidence(data, at, roots[at.step], steps)
    assert found.chunk == data[1_024 * at.chunk : 1_024 * at.chunk + 1_024]
    assert len(found.path) == found.place.depth
    assert fold(leaf_hash(found.chunk), found.place.turns, found.path) == found.tensor.value
    assert found.place[:2] == at[:2]
    verify_inclusion(found.state.value, len(SIZES), at.tensor, found.tensor.value, found.tensor.path)
    verify_inclusion(step_tree(steps).root, 4, at.step, found.state.value, found.state.path)
    with pytest.raises(ProofError, match="expected the step tree's root"):
        evidence(b"\xff" + data[1:], at, roots[at.step], steps)
