"""Bundles are fetched once and loaded from disk; a damaged one is fetched again."""

from __future__ import annotations

from pathlib import Path

import pytest

from protocol.commitments.mapping import Maps
from protocol.node.addresses import Address
from protocol.node.database import Identity
from protocol.tasks.bundles import BundleError, BundleUnavailable, Limits, NoMapsYet, write_bundle
from protocol.tasks.bundles.terms import committed_terms
from protocol.tasks.task import Terms
from tests.chain.trees import terms
from tests.unit.solver import tiny
from tests.unit.test_unchecked_programs import bundle
from verifier.database import Database
from verifier.errors import DiskFull
from verifier.material import Materials, seconds_of_try
from verifier.strategy import HONEST

ONE, TWO, THREE = 1, 2, 3


@pytest.fixture
def posted(tmp_path: Path) -> Terms:
    """Terms of a bundle that lies in `served`."""
    made, folder = bundle(tiny.step_program()), tmp_path / "served"
    return terms(**committed_terms(made), bundle_hash=write_bundle(made, folder), bundle=folder.as_uri())


@pytest.fixture
def materials(tmp_path: Path) -> Materials:
    database = Database(tmp_path / "verifier.sqlite", Identity("chain", "market", "account"))
    limits = Limits(allowed=(tmp_path.as_uri(),))
    return Materials(tmp_path / "node", tmp_path / "held", database, HONEST, limits, in_memory=2)


def test_what_was_fetched_is_loaded_without_its_server(
    materials: Materials, posted: Terms, tmp_path: Path
) -> None:
    assert not materials.has_bundle(posted)
    with pytest.raises(BundleUnavailable):
        materials.load(ONE, posted, None)
    materials.fetch(ONE, posted, None)
    (tmp_path / "served").rename(tmp_path / "gone")
    assert materials.has_bundle(posted)
    assert materials.find(ONE) is None
    made = materials.load(ONE, posted, None)
    assert materials.find(ONE) is made
    assert materials.load(ONE, posted, None) is made


def test_a_bundle_damaged_on_disk_is_fetched_anew(
    materials: Materials, posted: Terms, tmp_path: Path
) -> None:
    materials.fetch(ONE, posted, None)
    for blob in (tmp_path / "held").rglob("blobs/*/*"):
        blob.write_bytes(b"damaged")
    with pytest.raises(BundleError):
        materials.load(ONE, posted, None)
    assert not materials.has_bundle(posted)
    materials.fetch(ONE, posted, None)
    assert materials.has_bundle(posted)
    materials.load(ONE, posted, None)


def test_a_bundle_that_nobody_serves_was_refused_until_a_juror_does(posted: Terms, tmp_path: Path) -> None:
    served, asked = tmp_path / "served", list[int]()
    served.rename(tmp_path / "gone")
    database = Database(tmp_path / "verifier.sqlite", Identity("chain", "market", "account"))

    def sources(task: int) -> list[Address]:
        asked.append(task)
        return [Address.parse("http://127.0.0.1:1")]

    limits = Limits(allowed=(tmp_path.as_uri(), "http://127.0.0.1:1"))
    made = Materials(tmp_path / "node", tmp_path / "held", database, HONEST, limits, sources=sources)
    assert not made.was_refused(posted)
    with pytest.raises(BundleUnavailable):
        made.fetch(ONE, posted, None)
    assert made.was_refused(posted)
    assert asked == [ONE]
    (tmp_path / "gone").rename(served)
    made.fetch(ONE, posted, None)
    assert not made.was_refused(posted)


def test_the_task_that_was_used_last_stays_in_memory(materials: Materials, posted: Terms) -> None:
    materials.fetch(ONE, posted, None)
    for task in (ONE, TWO):
        materials.load(task, posted, None)
    assert materials.find(ONE) is not None
    materials.load(THREE, posted, None)
    assert materials.find(TWO) is None
    assert materials.find(ONE) is not None
    materials.drop(ONE)
    assert materials.find(ONE) is None


def test_served_traces_go_with_their_task(materials: Materials, posted: Terms, tmp_path: Path) -> None:
    materials.fetch(ONE, posted, None)
    for task in (ONE, TWO):
        materials.load(task, posted, None).traces.put(bytes(32), [bytes(32)])
    materials.drop(ONE)
    assert [path.parent.parent.name for path in (tmp_path / "node").rglob("traces/*")] == [str(TWO)]


def test_a_bundle_goes_with_the_last_task_that_needs_it(
    materials: Materials, posted: Terms, tmp_path: Path
) -> None:
    materials.fetch(ONE, posted, None)
    materials.load(TWO, posted, None)
    (tmp_path / "held" / "left").mkdir()
    materials.drop(ONE)
    assert materials.has_bundle(posted)
    assert not (tmp_path / "held" / "left").exists(), "nobody needs it"
    limits = Limits(allowed=(tmp_path.as_uri(),))
    again = Materials(tmp_path / "node", tmp_path / "held", materials._database, HONEST, limits)
    again.drop(THREE)
    assert again.has_bundle(posted), "also after a restart"
    again.drop(TWO)
    assert list((tmp_path / "held").iterdir()) == []


def test_what_another_party_of_this_machine_keeps_is_not_fetched_and_not_deleted(
    posted: Terms, tmp_path: Path
) -> None:
    """The bundle is linked: it needs no disk space, and stays when the other party deletes its copy."""
    database = Database(tmp_path / "verifier.sqlite", Identity("chain", "market", "account"))
    shared, held = tmp_path / "shared", tmp_path / "held"
    folder = shared / posted.bundle_hash.hex()
    shared.mkdir()
    (tmp_path / "served").rename(folder)
    made = Materials(
        tmp_path / "node", held, database, HONEST, Limits(), room=lambda: 0, shared=lambda: [shared]
    )
    made.fetch(ONE, posted, None)
    made.fetch(TWO, posted, None)
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert {path.stat().st_nlink for path in files} == {2}
    made.drop(ONE)
    made.drop(TWO)
    assert list(held.iterdir()) == []
    assert {path.stat().st_nlink for path in files} == {1}
    made.fetch(ONE, posted, None)
    folder.rename(tmp_path / "gone")
    made.load(ONE, posted, None)


def test_without_room_on_the_disk_no_bundle_is_fetched_and_nobody_is_blamed(
    posted: Terms, tmp_path: Path
) -> None:
    free = [0]
    database = Database(tmp_path / "verifier.sqlite", Identity("chain", "market", "account"))
    limits = Limits(allowed=(tmp_path.as_uri(),))
    made = Materials(tmp_path / "node", tmp_path / "held", database, HONEST, limits, room=lambda: free[0])
    for room in (-5, 0, 100):
        free[0] = room
        with pytest.raises(DiskFull, match=f"got {max(0, room)} bytes"):
            made.fetch(ONE, posted, None)
        assert not made.was_refused(posted), "a claim would lose its bond"
    free[0] = 10**6
    made.fetch(ONE, posted, None)
    assert made.has_bundle(posted)


def test_a_bundle_beside_which_others_are_fetched_waits_for_room_and_nobody_is_blamed(
    posted: Terms, tmp_path: Path
) -> None:
    database = Database(tmp_path / "verifier.sqlite", Identity("chain", "market", "account"))
    limits = Limits(allowed=(tmp_path.as_uri(),))
    made = Materials(tmp_path / "node", tmp_path / "held", database, HONEST, limits, room=lambda: 10**6)
    with made.fetches.fetch(lambda: 10**6) as reserve:
        reserve(10**6 - 1)
        with pytest.raises(DiskFull, match="got 1 bytes"):
            made.fetch(ONE, posted, None)
        assert not made.was_refused(posted), "a claim would lose its bond"
    made.fetch(ONE, posted, None)
    assert made.has_bundle(posted)


def test_a_bundle_for_which_no_map_is_left_is_not_damaged_and_nobody_is_blamed(
    posted: Terms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = Database(tmp_path / "verifier.sqlite", Identity("chain", "market", "account"))
    limits = Limits(allowed=(tmp_path.as_uri(),))
    made = Materials(tmp_path / "node", tmp_path / "held", database, HONEST, limits)
    with monkeypatch.context() as patched:
        patched.setattr("protocol.commitments.store._MAPS", Maps(most=0))
        patched.setattr("protocol.commitments.store.LARGE", 1)
        patched.setattr("protocol.tasks.bundles.fetch.SMALL", 1)
        with pytest.raises(NoMapsYet):
            made.fetch(ONE, posted, None)
        assert not made.was_refused(posted), "a claim would lose its bond"
    made.fetch(ONE, posted, None)
    with monkeypatch.context() as patched:
        patched.setattr("protocol.commitments.store._MAPS", Maps(most=0))
        patched.setattr("protocol.commitments.store.LARGE", 1)
        patched.setattr("protocol.tasks.bundles.fetch.SMALL", 1)
        with pytest.raises(NoMapsYet):
            made.load(ONE, posted, None)
    assert made.has_bundle(posted)
    made.load(ONE, posted, None)


@pytest.mark.parametrize(
    ("attest_period", "lost", "seconds"),
    [(240, 0, 10), (240, 20, 20), (240, 60, 60), (240, 500, 80), (24, 0, 2), (3, 0, 1), (3, 9, 1)],
)
def test_a_try_is_as_long_as_all_before_it(attest_period: int, lost: float, seconds: float) -> None:
    assert seconds_of_try(attest_period, lost) == seconds
