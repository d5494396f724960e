"""During training, checkpoints are kept in order, whole and in bounded memory, despite failures and kills."""

from __future__ import annotations

import gc
import signal
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

import pytest
import torch

from protocol.commitments import BlobStore, BytesLike, ProgressTree, segment_tree
from protocol.commitments.checkpoints import load_checkpoint
from protocol.program import Interpreter
from protocol.program.errors import ValueMismatch
from protocol.program.step import State
from solver.errors import KeepingError
from solver.pipeline import Pipeline
from solver.run_store import RunStore
from solver.training import Training
from tests.forked import run
from tests.unit.solver import tiny
from tests.unit.solver.killing import MOMENTS

SECONDS = 20  # limit for every wait here


def silent(_number: int, _state: State) -> None:
    """Show no progress."""


class GatedStore(BlobStore):
    """A disk that takes nothing while its gate is closed, and fails on request."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.gate = threading.Event()
        self.gate.set()
        self.fails: Callable[[bytes], bool] = lambda _data: False

    def put(self, data: BytesLike) -> str:
        assert self.gate.wait(SECONDS)
        if self.fails(bytes(data)):
            raise OSError(28, "No space left on device")
        return super().put(data)


@pytest.fixture
def store(tmp_path: Path) -> GatedStore:
    return GatedStore(tmp_path / "blobs")


@pytest.fixture
def kept(tmp_path: Path, store: GatedStore) -> RunStore:
    return RunStore(*tiny.parts(tmp_path, tiny.database(tmp_path))[:-1], store)


def always(_data: bytes) -> bool:
    """Says that every write fails, as on a full disk."""
    return True


def states(count: int) -> list[State]:
    """Distinct states."""
    return [{**tiny.initial(), "weights": torch.full((300,), float(n))} for n in range(count)]


def until(what: Callable[[], bool]) -> None:
    deadline = monotonic() + SECONDS
    while not what():
        assert monotonic() < deadline
        sleep(0.001)


@contextmanager
def beside(work: Callable[[], object]) -> Iterator[threading.Thread]:
    """Run `work` on another thread, which must end within `SECONDS` of the end of the block."""
    thread = threading.Thread(target=work)
    thread.start()
    yield thread
    thread.join(SECONDS)
    assert not thread.is_alive()


def test_training_goes_on_while_a_checkpoint_is_kept(kept: RunStore, store: GatedStore) -> None:
    training = Training(kept, tiny.initial)
    store.gate.clear()
    training.segment(silent)
    training.segment(silent)
    assert (training.segments_done, kept.size, kept.tree.size) == (2, 1, 1)
    store.gate.set()
    training.finish()
    training.close()
    assert (kept.size, kept.tree.size) == (3, 3)


def test_no_more_than_one_state_waits(kept: RunStore, store: GatedStore) -> None:
    pipeline = Pipeline(kept)
    store.gate.clear()
    first, second, third = states(3)
    pipeline.put(first)
    pipeline.put(second)
    with beside(lambda: pipeline.put(third)) as thread:
        thread.join(0.2)
        assert thread.is_alive(), "a third state was taken while the first was still being written"
        store.gate.set()
    pipeline.close()
    assert kept.roots() == [kept.program.state_root(state) for state in states(3)]


def test_finish_waits_for_the_last_checkpoint(kept: RunStore, store: GatedStore) -> None:
    training = Training(kept, tiny.initial)
    store.gate.clear()
    training.segment(silent)
    with beside(training.finish) as thread:
        thread.join(0.2)
        assert thread.is_alive()
        assert kept.size == 1
        store.gate.set()
    training.close()
    assert kept.size == 2


def test_every_kept_checkpoint_is_told_after_it_is_there(kept: RunStore) -> None:
    sizes: list[int] = []
    training = Training(kept, tiny.initial, lambda: sizes.append(kept.size))
    while not training.done:
        training.segment(silent)
    training.close()
    assert sizes == [2, 3, 4]


def test_nothing_holds_a_state_once_it_is_kept(kept: RunStore) -> None:
    pipeline = Pipeline(kept)
    state = {**tiny.initial()}
    tensor = weakref.ref(state["weights"])
    pipeline.put(state)
    pipeline.drain()
    del state
    gc.collect()
    assert tensor() is None
    pipeline.close()


def test_a_full_disk_ends_the_training_with_an_error_that_says_what_to_do(
    kept: RunStore, store: GatedStore
) -> None:
    training = Training(kept, tiny.initial)
    training.segment(silent)
    training.finish()
    store.fails = always
    training.segment(silent)
    until(lambda: training.failure is not None)
    steps: list[int] = []
    with pytest.raises(KeepingError, match=r"task 7, checkpoint 2: .*No space left on device.*start again"):
        training.segment(lambda number, _state: steps.append(number))
    assert steps == [], "it went on training for nothing"
    with pytest.raises(KeepingError):
        training.finish()
    assert (kept.size, kept.tree.size) == (2, 2)


def test_after_an_error_no_later_state_is_kept(kept: RunStore, store: GatedStore) -> None:
    """Not even a waiting state that would fit on the disk is kept, because it would get the number of the
    lost state.
    """
    pipeline = Pipeline(kept)
    first, second, third = states(3)
    lost = bytes(300 * 4)  # the first one's weights
    store.fails = lambda data: data == lost
    store.gate.clear()
    pipeline.put(first)
    pipeline.put(second)
    store.gate.set()
    until(lambda: pipeline.failure is not None)
    with pytest.raises(KeepingError):
        pipeline.put(third)
    pipeline.close()
    assert kept.size == kept.tree.size == 0


def test_who_waits_for_room_is_told_of_an_error(kept: RunStore, store: GatedStore) -> None:
    pipeline = Pipeline(kept)
    store.gate.clear()
    store.fails = always
    first, second, third = states(3)
    pipeline.put(first)
    pipeline.put(second)
    errors: list[BaseException] = []

    def put() -> None:
        try:
            pipeline.put(third)
        except KeepingError as error:
            errors.append(error)

    with beside(put):
        store.gate.set()
    assert len(errors) == 1


def test_an_error_keeps_its_type(kept: RunStore) -> None:
    pipeline = Pipeline(kept)
    pipeline.put({"weights": torch.zeros(300)})
    with pytest.raises(ValueMismatch, match="count"):
        pipeline.drain()
    pipeline.close()
    assert isinstance(pipeline.failure, ValueMismatch)


def test_a_real_disk_that_takes_no_files_and_a_database_that_takes_no_rows(tmp_path: Path) -> None:
    """First a file replaces the blobs' folder, then the database is closed. The run recovers from both."""
    database = tiny.database(tmp_path)
    training = Training(tiny.run_store(tmp_path, database), tiny.initial)
    (tmp_path / "blobs").rename(tmp_path / "elsewhere")
    (tmp_path / "blobs").write_bytes(b"")
    training.segment(silent)
    with pytest.raises(KeepingError, match="checkpoint 1"):
        training.finish()
    training.close()
    database.close()
    (tmp_path / "blobs").unlink()
    (tmp_path / "elsewhere").rename(tmp_path / "blobs")

    database = tiny.database(tmp_path)
    training = Training(tiny.run_store(tmp_path, database), tiny.initial)
    training.segment(silent)
    training.finish()
    database.close()
    training.segment(silent)
    with pytest.raises(KeepingError, match=r"checkpoint 2: .*closed database"):
        training.finish()
    assert training.run_store.size == 2

    finish(tmp_path)


def test_close_keeps_what_was_put_and_ends_the_thread(kept: RunStore, store: GatedStore) -> None:
    before = set(threading.enumerate())
    pipeline = Pipeline(kept)
    store.gate.clear()
    for state in states(2):
        pipeline.put(state)
    with beside(pipeline.close):
        store.gate.set()
    assert kept.size == 2
    assert set(threading.enumerate()) <= before


def test_the_size_is_the_last_to_grow(kept: RunStore) -> None:
    """When a leaf is added to the tree, its row is already in the database, but the size has not grown yet.
    So another thread that reads the size finds every leaf and row that the size counts.
    """
    found: list[tuple[int, int]] = []

    class Watched(ProgressTree):
        def append(self, state_root: bytes) -> None:
            super().append(state_root)
            found.append((kept.size, len(kept._database.checkpoints(tiny.TASK))))

    kept.tree = Watched()
    pipeline = Pipeline(kept)
    for state in states(3):
        pipeline.put(state)
    pipeline.close()
    assert found == [(0, 1), (1, 2), (2, 3)]
    assert kept.tree.root == segment_tree(kept.roots()).root


def finish(folder: Path) -> None:
    """Check what an interrupted run left, then finish it: its roots must be those of an uninterrupted run."""
    database, store = tiny.database(folder), BlobStore(folder / "blobs")
    rows = database.checkpoints(tiny.TASK)
    assert [row.number for row in rows] == list(range(len(rows)))
    for row in rows:
        load_checkpoint(store, row.manifest, state_root=row.root)  # the row's blobs are all there
    again = tiny.run_store(folder, database)
    assert again.size == len(rows)
    training = Training(again, tiny.initial)
    while not training.done:
        training.segment(silent)
    training.close()
    assert again.roots() == uninterrupted()
    database.close()


def uninterrupted() -> list[bytes]:
    """State roots of the tiny run, computed by the program alone."""
    program, state = tiny.step_program(), dict(tiny.initial())
    roots = [program.state_root(state)]
    for _ in range(tiny.SEGMENTS):
        for _ in range(tiny.STEPS):
            state = program.step(state, tiny.fixed(), Interpreter())
        roots.append(program.state_root(state))
    return roots


# A checkpoint is three puts (two tensors and the manifest), three renames and one row.
# The first checkpoint is the initial state.
POINTS = [("put", 1), *((moment, n) for moment in ("put", "rename") for n in (4, 5, 6))]
POINTS += [(moment, n) for moment in ("row", "known") for n in (1, 2, 4)]


@pytest.mark.parametrize(("moment", "number"), POINTS)
def test_killed_at_any_moment_of_keeping_it_goes_on_from_the_last_whole_checkpoint(
    tmp_path: Path, moment: str, number: int
) -> None:
    assert moment in MOMENTS
    process = run("tests.unit.solver.killing", str(tmp_path), moment, str(number))
    assert process.returncode == -signal.SIGKILL, process.stderr
    checkpoint = (number - 1) // 3 if moment in ("put", "rename") else number - 1
    database = tiny.database(tmp_path)
    assert len(database.checkpoints(tiny.TASK)) == checkpoint + (moment == "known")
    database.close()
    finish(tmp_path)
