"""Committed data is written to a public place; states are written before the roots that name them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from time import monotonic, sleep
from types import SimpleNamespace
from typing import Any, cast

import pytest

from protocol.node.addresses import Address
from protocol.node.logs import get
from protocol.node.reach import Reach
from protocol.numerics.types import from_bytes
from protocol.tasks.bundles import Limits, cached_bundle, committed_terms, write_bundle
from solver.context import Context
from solver.errors import PublicPlaceError
from solver.metrics import Metrics
from solver.public_place import PublicPlace
from solver.publishing import Publisher
from solver.task_folders import TaskFolders
from tests.chain.solver_stage import tiny_bundle
from tests.chain.trees import terms
from tests.unit.solver import tiny
from verifier.solver_client import Shapes, SolverClient


class Quiet(SimpleHTTPRequestHandler):
    """Serves the files of a folder."""

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


@contextmanager
def served(folder: Path) -> Iterator[Address]:
    """A server of plain files, like a bucket."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield Address.parse(f"http://127.0.0.1:{server.server_address[1]}")
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Noted(PublicPlace):
    """Notes the names that are written, in order; the `fails`-th write fails."""

    def __init__(self, url: str, fails: int = 0) -> None:
        super().__init__(url)
        self.names: list[str] = []
        self._fails = fails

    def write(self, name: str, data: bytes) -> None:
        self.names.append(name)
        if len(self.names) == self._fails:
            raise PublicPlaceError(name, expected="a bucket", got="none", remedy="wait")
        super().write(name, data)


class Scene:
    """The finished run of the tiny task, of which nothing is committed yet. The task's bundle is among the
    solver's bundles.
    """

    def __init__(self, folder: Path) -> None:
        self.public = folder / "public"
        self.database = tiny.database(folder)
        self.run_store = tiny.trained(folder / "run")
        self.run_store._committed = 0
        self.folders = TaskFolders(folder, self.database)
        self.bundle_hash = write_bundle(tiny_bundle(), folder / "new")
        bundle = self.folders.bundles / self.bundle_hash.hex()
        bundle.parent.mkdir()
        (folder / "new").rename(bundle)
        self.folders.begin(tiny.TASK, self.bundle_hash)

    def publisher(self, place: PublicPlace | None) -> Publisher:
        context = SimpleNamespace(
            folders=self.folders, bundles=self.folders.bundles, metrics=Metrics(), log=get("test")
        )
        return Publisher(cast(Context, context), place)

    def publish(self, place: PublicPlace, *sizes: int) -> Publisher:
        made = self.publisher(place)
        for size in sizes:
            self.run_store._committed = size
            made.see(self.run_store)
            until_done(made)
        return made


def until_done(publisher: Publisher) -> None:
    deadline = monotonic() + 60
    while any(map(publisher._is_due, publisher._run_stores.values())):
        publisher.tick()
        assert monotonic() < deadline
        sleep(0.01)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return Scene(tmp_path_factory.mktemp("scene"))


ALL = tiny.SEGMENTS + 1


def client(address: Address) -> SolverClient:
    shapes = Shapes(tiny.step_program(), tiny.SEGMENTS, tiny.STEPS)
    return SolverClient(address, tiny.TASK, shapes, 60, Reach())


def test_clients_find_in_plain_files_what_a_solver_serves(scene: Scene, tmp_path: Path) -> None:
    scene.publish(PublicPlace(tmp_path.as_uri()), 2, ALL)
    with served(tmp_path) as address:
        asked = client(address)
        assert asked.segment_roots() == scene.run_store.roots()
        for number in range(ALL):
            assert asked.checkpoint(number) == [scene.run_store.tensor(number, k) for k in range(2)]
        assert asked.step_roots(1) is None
        bundle = tiny_bundle()
        posted = terms(**committed_terms(bundle), bundle_hash=scene.bundle_hash, bundle=f"{address}/gone")
        others = [address / f"bundles/{scene.bundle_hash.hex()}"]
        assert cached_bundle(tmp_path / "held", posted, Limits(), others).name == "tiny"


def test_only_what_is_committed_is_published_and_roots_after_their_states(
    scene: Scene, tmp_path: Path
) -> None:
    place = Noted(tmp_path.as_uri())
    scene.publish(place, 0, 2, 3)
    assert [name for name in place.names if name.startswith("tasks")] == [
        *(f"tasks/{tiny.TASK}/checkpoints/{n}/groups/0" for n in (0, 1)),
        f"tasks/{tiny.TASK}/segments",
        f"tasks/{tiny.TASK}/checkpoints/2/groups/0",
        f"tasks/{tiny.TASK}/segments",
    ]
    assert place.names[0] == f"bundles/{scene.bundle_hash.hex()}/manifest.json"
    assert place.read(f"tasks/{tiny.TASK}/segments") == b"".join(scene.run_store.roots(3))


@pytest.mark.parametrize("fails", [1, 2, 3, 4])
def test_after_a_failure_it_goes_on_and_no_root_was_there_without_its_state(
    scene: Scene, tmp_path: Path, fails: int
) -> None:
    place = Noted(tmp_path.as_uri(), fails)
    scene.publish(place, 2)
    assert place.read(f"tasks/{tiny.TASK}/segments") == b"".join(scene.run_store.roots(2))
    roots = place.names.index(f"tasks/{tiny.TASK}/segments")
    assert f"tasks/{tiny.TASK}/checkpoints/1/groups/0" in place.names[:roots]


def test_another_process_goes_on_where_the_first_was_ended(scene: Scene, tmp_path: Path) -> None:
    scene.publish(PublicPlace(tmp_path.as_uri()), 2)
    second = Noted(tmp_path.as_uri())
    scene.publish(second, 3)
    assert second.names == [
        f"tasks/{tiny.TASK}/checkpoints/2/groups/0",
        f"tasks/{tiny.TASK}/segments",
    ]


def test_a_solver_that_has_lost_its_run_takes_nothing_back(scene: Scene, tmp_path: Path) -> None:
    place = Noted(tmp_path.as_uri())
    scene.publish(place, ALL)
    before = len(place.names)
    scene.publish(place, 2)
    assert len(place.names) == before
    assert place.read(f"tasks/{tiny.TASK}/segments") == b"".join(scene.run_store.roots())


def test_what_another_chain_left_in_the_bucket_is_written_over(scene: Scene, tmp_path: Path) -> None:
    place = PublicPlace(tmp_path.as_uri())
    place.write(f"tasks/{tiny.TASK}/segments", bytes(32) * ALL)
    place.write(f"tasks/{tiny.TASK}/checkpoints/1/groups/0", b"of another run")
    scene.publish(place, ALL)
    type_ = tiny.step_program().state_types[0]
    published = place.read(f"tasks/{tiny.TASK}/checkpoints/1/groups/0")
    assert published is not None
    expected = scene.run_store.state(1)["weights"]
    assert from_bytes(published[: type_.nbytes], type_.dtype, type_.shape).equal(expected)
    assert place.read(f"tasks/{tiny.TASK}/segments") == b"".join(scene.run_store.roots())


def test_what_is_withdrawn_is_gone_and_its_bundle_only_with_the_last_task(tmp_path: Path) -> None:
    scene, place = Scene(tmp_path / "solver"), PublicPlace((tmp_path / "public").as_uri())
    made, other = scene.publish(place, ALL), tiny.TASK + 1
    scene.folders.begin(other, scene.bundle_hash)

    def published() -> set[str]:
        files = [path for path in (tmp_path / "public").rglob("*") if path.is_file()]
        return {path.relative_to(tmp_path / "public").parts[0] for path in files}

    assert published() == {"bundles", "tasks"}
    made.withdraw(tiny.TASK)
    scene.folders.drop(tiny.TASK)
    assert published() == {"bundles"}
    made.withdraw(other)
    made.withdraw(other)
    assert published() == set()


def test_without_a_place_nothing_is_pending(scene: Scene) -> None:
    made = scene.publisher(None)
    made.see(scene.run_store)
    made.tick()
    made.withdraw(tiny.TASK)
    assert not made.pending


def test_a_file_system_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(PublicPlaceError, match=r"assay\[storage\]"):
        PublicPlace("s3://mine/assay")
