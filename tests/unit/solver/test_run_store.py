"""The run store: interrupted training continues, and damaged checkpoints are computed again."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from protocol.commitments import CHUNK, BlobStore, segment_tree, tensor_root
from protocol.commitments.hashing import HASH_BYTES
from protocol.program import Interpreter
from solver.chunk_hashes import ChunkHashes
from solver.errors import RunStoreError
from solver.training import Training
from tests.unit.solver import tiny


def silent(_number: int, _state: object) -> None:
    """A progress callback that shows nothing."""


def whole_run() -> list[dict[str, torch.Tensor]]:
    """The initial state and the state after every step, computed by the program itself."""
    program, states = tiny.step_program(), [tiny.initial()]
    for _ in range(tiny.SEGMENTS * tiny.STEPS):
        states.append(program.step(states[-1], tiny.fixed(), Interpreter()))
    return states


def test_checkpoints_are_the_states_of_the_run(tmp_path: Path) -> None:
    kept, states = tiny.trained(tmp_path), whole_run()
    roots = [kept.program.state_root(state) for state in states[:: tiny.STEPS]]
    assert kept.roots() == roots
    assert kept.tree.root == segment_tree(roots).root
    for number in range(tiny.SEGMENTS + 1):
        assert torch.equal(kept.state(number)["weights"], states[number * tiny.STEPS]["weights"])


def test_training_goes_on_after_every_cut(tmp_path: Path) -> None:
    """The process restarts after each segment, and each segment is interrupted once."""
    seen: list[int] = []
    expected = tiny.trained(tmp_path / "other")
    for size in range(1, tiny.SEGMENTS + 1):
        kept = tiny.database(tmp_path)
        training = Training(tiny.run_store(tmp_path, kept), tiny.initial)
        assert (training.run_store.size, training.steps_done) == (size, (size - 1) * tiny.STEPS)

        def dies(number: int, _state: object, due: int = size * tiny.STEPS) -> None:
            if number == due:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            training.segment(dies)
        assert training.run_store.size == size
        training.segment(lambda number, _state: seen.append(number))
        training.close()
        kept.close()
    assert seen == list(range(1, tiny.SEGMENTS * tiny.STEPS + 1))
    again = tiny.run_store(tmp_path, tiny.database(tmp_path))
    assert again.roots() == expected.roots()
    assert Training(again, tiny.initial).done


def test_the_initial_state_is_asked_for_once(tmp_path: Path) -> None:
    kept = tiny.database(tmp_path)
    Training(tiny.run_store(tmp_path, kept), tiny.initial)

    def never() -> dict[str, torch.Tensor]:
        raise AssertionError("the first checkpoint is on disk")

    Training(tiny.run_store(tmp_path, kept), never)


def blob_files(folder: Path) -> list[Path]:
    """Every stored blob."""
    return sorted(path for path in (folder / "blobs").rglob("*") if path.is_file())


def test_damaged_and_deleted_checkpoints_are_computed_again(tmp_path: Path) -> None:
    kept = tiny.trained(tmp_path)
    last, files = kept.tensor(3, 0), blob_files(tmp_path)
    initial = kept.checkpoint(0)
    untouched = {tensor.data for tensor in initial.tensors}
    for path in files:
        if path.read_bytes() not in untouched and b"assay-checkpoint" not in path.read_bytes():
            path.write_bytes(b"damaged")
    kept = tiny.run_store(tmp_path, tiny.database(tmp_path))
    with kept.open_tensor(1, 0) as file:
        assert file.read() == kept.tensor(1, 0)
    assert kept.tensor(3, 0) == last
    assert kept.group(2, 0) == kept.tensor(2, 0) + kept.tensor(2, 1)
    for number in range(1, 4):
        assert kept.checkpoint(number).state_root == kept.roots()[number]
    assert tiny.run_store(tmp_path, tiny.database(tmp_path)).tensor(2, 0) == kept.tensor(2, 0)


def test_a_lost_initial_state_is_an_error_that_says_so(tmp_path: Path) -> None:
    tiny.trained(tmp_path)
    for path in blob_files(tmp_path):
        path.unlink()
    kept = tiny.run_store(tmp_path, tiny.database(tmp_path))
    with pytest.raises(RunStoreError, match="checkpoint 0: expected the state"):
        kept.state(2)


def test_what_is_public_never_shrinks(tmp_path: Path) -> None:
    """A smaller size that is noted later, as after a reorganisation, does not unpublish anything."""
    kept = tiny.trained(tmp_path)
    kept.commit(2)
    assert kept.committed == tiny.SEGMENTS + 1
    again = tiny.run_store(tmp_path, tiny.database(tmp_path))
    assert again.committed == tiny.SEGMENTS + 1


def test_what_is_public_is_noted_before_a_restart(tmp_path: Path) -> None:
    kept = tiny.run_store(tmp_path, tiny.database(tmp_path))
    assert kept.committed == 0
    for size in (1, 3):
        kept.commit(size)
        assert kept.committed == size
        assert tiny.run_store(tmp_path, tiny.database(tmp_path)).committed == size


def test_a_replay_gives_the_states_between_checkpoints(tmp_path: Path) -> None:
    kept, states = tiny.trained(tmp_path), whole_run()
    run = kept.replay()
    for segment in range(1, tiny.SEGMENTS + 1):
        first = (segment - 1) * tiny.STEPS
        due = [kept.program.state_root(state) for state in states[first : first + tiny.STEPS + 1]]
        assert list(run.step_roots(segment)) == due
        frame = run.frame(segment, 2)
        assert frame.value(frame.tree.size - 1) == (first + 2).to_bytes(4, "little")


def test_no_more_is_read_than_what_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A state may be as large as the memory, so its tensors are read one by one."""
    kept = tiny.trained(tmp_path)
    read: list[bytes] = []
    get = BlobStore.get

    def noted(store: BlobStore, blob: str, *, max_bytes: int | None = None) -> bytes:
        data = get(store, blob, max_bytes=max_bytes)
        read.append(data)
        return data

    monkeypatch.setattr(BlobStore, "get", noted)
    entries = kept.manifest(2)
    assert [b"assay-checkpoint" in data for data in read] == [True]
    read.clear()
    assert tensor_root(kept.tensor(2, 1)) == entries[1].root
    assert [len(data) for data in read] == [4], "a manifest is read once for all of its checkpoint's tensors"
    read.clear()
    hashes = ChunkHashes()
    whole = kept.chunks(2, 0, 0, 2, hashes)
    assert [len(data) for data in read] == [1200]
    assert tensor_root(whole) == entries[0].root
    parts = [kept.chunks(2, 0, lo, hi, hashes) for lo, hi in ((0, 1), (1, 2), (0, 2))]
    assert parts == [whole[:CHUNK], whole[CHUNK:], whole]
    assert len(read) == 1, "a range is read without the rest"


def test_a_chunk_that_is_damaged_after_it_was_read_is_computed_again(tmp_path: Path) -> None:
    kept, hashes = tiny.trained(tmp_path), ChunkHashes()
    data = kept.tensor(2, 0)
    kept.chunks(2, 0, 0, 1, hashes)
    (path,) = [path for path in blob_files(tmp_path) if path.read_bytes() == data]
    for damaged in (data[:-1] + bytes([data[-1] ^ 1]), data[:CHUNK], b""):
        path.write_bytes(damaged)
        assert kept.chunks(2, 0, 1, 2, hashes) == data[CHUNK:]
        assert path.read_bytes() == data
    path.unlink()
    assert kept.chunks(2, 0, 1, 2, hashes) == data[CHUNK:]


def test_hashes_of_chunks_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tiny.trained(tmp_path)
    whole: list[str] = []
    get = BlobStore.get

    def noted(store: BlobStore, blob: str, *, max_bytes: int | None = None) -> bytes:
        whole.append(blob)
        return get(store, blob, max_bytes=max_bytes)

    def read(*numbers: int) -> int:
        """Read a chunk from each checkpoint, and return how many tensors were read whole."""
        whole.clear()
        for number in numbers:
            kept.chunks(number, 0, 0, 1, hashes)
        return len([blob for blob in whole if blob not in manifests])

    manifests = {row.manifest for row in tiny.database(tmp_path).checkpoints(tiny.TASK)}
    monkeypatch.setattr(BlobStore, "get", noted)
    hashes = ChunkHashes(most=2 * 2 * HASH_BYTES)  # for two tensors of two chunks
    assert read(1, 2, 1, 2) == 2
    assert read(1, 3, 1) == 1, "the one that was asked for longest ago goes"
    assert read(2) == 1
    hashes.forget()
    assert read(1, 2) == 2
    hashes = ChunkHashes(most=1)  # one tensor is kept, however large
    assert read(1, 1, 2, 2, 1) == 3


def test_a_damaged_manifest_is_made_anew(tmp_path: Path) -> None:
    expected = tiny.trained(tmp_path).manifest(2)
    first = tiny.database(tmp_path).checkpoints(tiny.TASK)[0].manifest
    for path in blob_files(tmp_path):
        if b"assay-checkpoint" in path.read_bytes() and path.name != first:
            path.write_bytes(b"damaged")
    kept = tiny.run_store(tmp_path, tiny.database(tmp_path))
    assert kept.manifest(2) == expected
