"""Until a task is won, its bundle lies in the candidates' folder. Afterwards it lies with the bundles of kept
tasks.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from shutil import rmtree
from types import SimpleNamespace
from typing import Any

import pytest

from protocol.chain.accounts import DEVELOPMENT_CHAIN
from protocol.chain.errors import Reverted
from protocol.commitments.tensors import Tensor
from protocol.node.home import Home
from protocol.program.cost import cost
from protocol.tasks.bundles import (
    Bundle,
    BundleTooLarge,
    BundleUnavailable,
    NoRoomYet,
    TensorsTooLarge,
    cached_bundle,
    committed_terms,
    write_bundle,
)
from protocol.tasks.bundles.bundle import Held
from protocol.tasks.owed import Traces
from protocol.tasks.task import Terms
from solver.bundle_cache import Candidates, fetch_candidate, task_bundle
from solver.context import Context
from solver.database import Stage
from solver.settings import SolverSettings
from solver.task_folders import TaskFolders
from tests.chain.trees import terms
from tests.unit.solver import tiny

NEVER: Any = None
"""A placeholder for the executor and for other parts of a context that bundles do not use."""
CLIENT: Any = SimpleNamespace(connection=SimpleNamespace(chain_id=DEVELOPMENT_CHAIN))
Usage = namedtuple("Usage", "total used free")


@pytest.fixture
def context(tmp_path: Path) -> Iterator[Context]:
    settings = SolverSettings(bundles=(tmp_path.as_uri(),))
    home, candidates = Home(tmp_path / "home"), tmp_path / "candidates"
    candidates.mkdir()
    database = tiny.database(tmp_path)
    folders = TaskFolders(tmp_path, database)
    yield Context(CLIENT, NEVER, settings, NEVER, home, database, folders, NEVER, NEVER, candidates)
    database.close()


@pytest.fixture
def served(tmp_path: Path) -> Path:
    """The folder in which the submitter serves the bundle."""
    return tmp_path / "served"


@pytest.fixture
def posted(served: Path) -> Terms:
    """Terms of the tiny task, whose bundle is written to `served`."""
    state = tiny.step_program().checkpoint(tiny.initial()).tensors
    dataset = (Tensor.from_array("data", tiny.fixed()[0].numpy()),)
    made = Bundle("tiny", tiny.step_program(), state, dataset, ())
    return terms(**committed_terms(made), bundle_hash=write_bundle(made, served), bundle=served.as_uri())


def places(context: Context, posted: Terms) -> tuple[Path, Path]:
    """The bundle's folder once its task is won, and its folder as a candidate."""
    name = posted.bundle_hash.hex()
    return context.bundles / name, context.candidates / name


def test_a_candidate_is_taken_over_without_asking_the_submitter_again(
    context: Context, posted: Terms, served: Path
) -> None:
    held, candidate = places(context, posted)
    fetch_candidate(context, posted, 60)
    assert candidate.exists()
    assert not held.exists()
    rmtree(served)
    assert task_bundle(context, posted).name == "tiny"
    assert (held / "manifest.json").exists()
    assert not candidate.exists()
    assert task_bundle(context, posted).name == "tiny"


def test_a_bundle_of_two_tasks_is_found_by_one_while_the_other_takes_it_over(
    context: Context, posted: Terms, served: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, candidate = places(context, posted)
    fetch_candidate(context, posted, 60)
    rmtree(served)
    looked: list[Path] = []

    def interrupted(bundles: Path, *rest: Any) -> Bundle:
        looked.append(bundles)
        if len(looked) == 1:
            task_bundle(context, posted)  # the first task is won meanwhile
            assert not candidate.exists()
        return cached_bundle(bundles, *rest)

    monkeypatch.setattr("solver.bundle_cache.cached_bundle", interrupted)
    fetch_candidate(context, posted, 60)
    assert looked == [context.candidates, held.parent, held.parent]


def test_a_move_that_was_cut_off_goes_on(context: Context, posted: Terms, served: Path) -> None:
    held, candidate = places(context, posted)
    fetch_candidate(context, posted, 60)
    rmtree(served)
    blob = next(path for path in (candidate / "blobs").rglob("*") if path.is_file())
    place = held / blob.relative_to(candidate)
    place.parent.mkdir(parents=True)
    blob.rename(place)
    assert task_bundle(context, posted).name == "tiny"
    assert not candidate.exists()


def test_a_bundle_that_a_kept_task_has_is_no_candidate(context: Context, posted: Terms) -> None:
    held, candidate = places(context, posted)
    task_bundle(context, posted)
    candidates = Candidates(context.candidates)
    candidates.want(1, posted.bundle_hash)
    fetch_candidate(context, posted, 60)
    assert not candidate.exists()
    candidates.drop(1)
    assert (held / "manifest.json").exists()


def test_what_another_party_of_this_home_has_is_not_fetched_and_each_deletes_its_own(
    context: Context, posted: Terms, served: Path
) -> None:
    theirs = context.home.bundles / posted.bundle_hash.hex()
    served.rename(theirs)
    files = {path for path in theirs.rglob("*") if path.is_file()}
    candidates = Candidates(context.candidates)
    candidates.want(1, posted.bundle_hash)
    fetch_candidate(context, posted, 60)
    assert {path.stat().st_nlink for path in files} == {2}
    candidates.drop(1)
    assert {path.stat().st_nlink for path in files} == {1}
    task_bundle(context, posted)
    rmtree(theirs)
    assert task_bundle(context, posted).name == "tiny"


def test_a_bundle_larger_than_the_room_on_the_disk_is_not_fetched(
    context: Context, posted: Terms, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task takes at most 80 % of the free disk: the journal and the logs need the rest."""
    size = 2 * 300 * 4 + 4  # weights and data, and a count
    _, candidate = places(context, posted)
    monkeypatch.setattr("solver.context.shutil.disk_usage", lambda _: Usage(0, 0, int((size - 1) / 0.8)))
    with pytest.raises(BundleTooLarge, match=f"got {size}"):
        fetch_candidate(context, posted, 60)
    assert not [path for path in candidate.rglob("*") if path.is_file()]
    monkeypatch.setattr("solver.context.shutil.disk_usage", lambda _: Usage(0, 0, int((size + 2) / 0.8)))
    fetch_candidate(context, posted, 60)


def test_bundles_that_are_fetched_at_once_fit_together(
    context: Context, posted: Terms, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = 2 * 300 * 4 + 4
    _, candidate = places(context, posted)
    monkeypatch.setattr("solver.context.shutil.disk_usage", lambda _: Usage(0, 0, int((4 * size) / 0.8)))
    with ExitStack() as others:
        for _ in range(3):
            others.enter_context(context.fetches.fetch(context.free_disk))(size + 1)
        with pytest.raises(NoRoomYet, match=f"got {size - 3} bytes"):
            fetch_candidate(context, posted, 60)
        assert not [path for path in candidate.rglob("*") if path.is_file() and path.stat().st_size == 1_200]
    fetch_candidate(context, posted, 60)
    assert context.fetches.bytes == 0
    with context.fetches.fetch(context.free_disk) as reserve:
        reserve(4 * size)
        fetch_candidate(context, posted, 60)  # it is here already


def disk(monkeypatch: pytest.MonkeyPatch, nbytes: int) -> None:
    """Simulate a disk on which tasks may take `nbytes` bytes."""
    monkeypatch.setattr("solver.context.shutil.disk_usage", lambda _: Usage(0, 0, int((nbytes + 1) / 0.8)))


def test_a_candidate_that_is_here_is_used_however_little_disk_is_left(
    context: Context, posted: Terms, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A candidate is considered again if its bid had to wait. Meanwhile, another fetch may have taken the
    disk space.
    """
    fetch_candidate(context, posted, 60)
    disk(monkeypatch, 0)
    fetch_candidate(context, posted, 60)


def test_what_an_earlier_attempt_has_fetched_takes_no_room_again(
    context: Context, posted: Terms, served: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, candidate = places(context, posted)
    size = 2 * 300 * 4 + 4
    disk(monkeypatch, size)
    last = sorted(path for path in served.rglob("*") if path.stat().st_size == 1_200)[-1]
    gone = last.rename(served.parent / "gone")
    with pytest.raises(BundleUnavailable):
        fetch_candidate(context, posted, 60)
    assert [path for path in candidate.rglob("*") if path.is_file() and path.stat().st_size == 1_200]
    disk(monkeypatch, size - 1_200)
    gone.rename(last)
    fetch_candidate(context, posted, 60)


def test_a_bundle_that_does_not_fit_beside_other_candidates_waits(
    context: Context, posted: Terms, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While another candidate that no bid needs lies on the disk, the fetch raises NoRoomYet, because that
    candidate may soon be deleted. Without that candidate, the fetch raises TensorsTooLarge.
    """
    size = 2 * 300 * 4 + 4
    other = context.candidates / ("a" * 64)
    other.mkdir()
    disk(monkeypatch, size - 100)
    with pytest.raises(NoRoomYet, match=f"got {size - 100} bytes"):
        fetch_candidate(context, posted, 60)
    other.rmdir()
    with pytest.raises(TensorsTooLarge):
        fetch_candidate(context, posted, 60)
    disk(monkeypatch, size)
    fetch_candidate(context, posted, 60)


def test_the_room_of_a_task_whose_post_was_removed_is_counted(
    context: Context, posted: Terms, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A re-organisation has removed the post of a task that this solver has bid on, so its terms are unknown
    and its bundle may soon be deleted.
    """

    def unknown(task: int) -> Terms:
        raise Reverted("TaskMarket.termsOf", "UnknownTask", {"task": task})

    monkeypatch.setattr(CLIENT, "market", SimpleNamespace(terms=unknown), raising=False)
    context.database.put(1, Stage.BID)
    (context.candidates / ("a" * 64)).mkdir()
    disk(monkeypatch, 2_000)
    with pytest.raises(NoRoomYet):
        fetch_candidate(context, posted, 60)


def test_a_bundle_on_disk_is_used_however_little_disk_is_left(
    context: Context, posted: Terms, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch_candidate(context, posted, 60)
    monkeypatch.setattr("solver.context.shutil.disk_usage", lambda _: Usage(0, 0, 0))
    assert task_bundle(context, posted).name == "tiny"


def test_a_folder_goes_with_the_last_task_that_wants_it(tmp_path: Path) -> None:
    candidates = Candidates(tmp_path)
    shared, other = bytes(32), bytes([1]) * 32
    for task, bundle in ((1, shared), (2, shared), (3, other)):
        (tmp_path / bundle.hex()).mkdir(exist_ok=True)
        candidates.want(task, bundle)
    candidates.drop(1)
    candidates.drop(1)
    assert (tmp_path / shared.hex()).exists()
    candidates.drop(2)
    assert not (tmp_path / shared.hex()).exists()
    (tmp_path / "left").mkdir()
    candidates.sweep()
    assert [path.name for path in tmp_path.iterdir()] == [other.hex()]


def test_a_bundle_that_was_read_tells_what_its_games_take(context: Context, posted: Terms) -> None:
    fetch_candidate(context, posted, 10.0)
    found = cost(tiny.step_program().program)
    assert context.traces == {posted.program_id: Traces.of(found)}
    assert context.held == {posted.bundle_hash: Held(maps=0, read=2 * 1_200 + 4)}
    assert found.value_bytes >= max(type_.nbytes for type_ in tiny.step_program().program.inputs)
