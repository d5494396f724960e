"""Bundle servers with each fault: the client asks the next source and never accepts a partial download.

The client is the verifier's (`verifier.material`), which fetches with `protocol.tasks.bundles`, as the solver
does. `tests/unit/tasks/test_bundle_sources.py` covers what else a bundle server may do.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from assay.serving import application
from protocol.node.addresses import Address
from protocol.node.database import Identity
from protocol.node.serving import Serving
from protocol.tasks.bundles import BundleError, BundleUnavailable, Limits, WrongFile
from protocol.tasks.bundles import write_bundle as write
from protocol.tasks.bundles.terms import committed_terms
from protocol.tasks.bundles.write import MANIFEST
from protocol.tasks.task import Terms
from tests.campaign.faulty import FAULTS, PLENTY, bounded, is_whole, make, patience_with
from tests.campaign.peer_proxy import Mode, PeerProxy
from tests.chain.trees import terms
from tests.unit.solver import tiny
from tests.unit.test_unchecked_programs import bundle
from verifier.database import Database
from verifier.material import Materials
from verifier.strategy import HONEST

TASK = 1
SECONDS = 2.0
"""Seconds that a source has for the whole bundle if its fault makes the client wait; otherwise `PLENTY`."""
PERIODS = {"attest_period": 2_000, "challenge_period": 3_000}
"""Terms, in seconds. The share of the attestation time that the client allows for one try is longer than
`PLENTY`.
"""
ERRORS: dict[Mode, type[BundleError]] = {"huge": WrongFile, "two-faced": WrongFile}
"""The client's errors by mode; in other modes the error is `BundleUnavailable`."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Terms]]:
    """The address of a bundle server, and terms that name its bundle."""
    folder, made = tmp_path_factory.mktemp("bundles"), bundle(tiny.step_program())
    hash_ = write(made, folder / "new")
    (folder / "new").rename(folder / hash_.hex())
    with Serving(application(folder), "127.0.0.1", 0) as serving:
        place = f"{serving.url}/bundles/{hash_.hex()}"
        named = {**committed_terms(made), "bundle_hash": hash_, "bundle": place}
        yield serving.url, terms(**named, **PERIODS)


@pytest.fixture
def honest(served: tuple[str, Terms]) -> str:
    return served[0]


@pytest.fixture
def proxy(honest: str) -> Iterator[PeerProxy]:
    with PeerProxy(honest) as made:
        yield made


@pytest.fixture
def posted(served: tuple[str, Terms], proxy: PeerProxy) -> Terms:
    """The terms in `served`, with the bundle behind the proxy."""
    return replace(served[1], bundle=served[1].bundle.replace(served[0], proxy.url))


@pytest.fixture
def others() -> list[Address]:
    """Further addresses to fetch the bundle from."""
    return []


@pytest.fixture
def room() -> list[int]:
    """A list whose last entry is the free disk space, in bytes, that the client sees."""
    return [1 << 40]


@pytest.fixture
def held(tmp_path: Path) -> Path:
    """The folder in which bundles are kept."""
    return tmp_path / "held"


@pytest.fixture
def materials(tmp_path: Path, held: Path, others: list[Address], room: list[int]) -> Materials:
    database = Database(tmp_path / "verifier.sqlite", Identity("chain", "market", "account"))
    limits = Limits(seconds=PLENTY, manifest_bytes=1 << 20)
    sources, free = (lambda _task: others), (lambda: room[-1])
    return Materials(tmp_path / "node", held, database, HONEST, limits, sources=sources, room=free)


def allow(materials: Materials, seconds: float) -> None:
    """From now on, each source has this many seconds for the whole bundle."""
    materials._limits = replace(materials._limits, seconds=seconds)


def test_an_honest_server_is_enough(materials: Materials, posted: Terms) -> None:
    materials.fetch(TASK, posted, None)
    assert materials.has_bundle(posted)


@pytest.mark.parametrize(("mode", "form"), FAULTS)
def test_a_faulty_server_leaves_nothing_half_fetched_and_the_next_one_is_asked(
    materials: Materials,
    posted: Terms,
    proxy: PeerProxy,
    honest: str,
    others: list[Address],
    held: Path,
    mode: Mode,
    form: str,
) -> None:
    allow(materials, patience_with(mode, form, SECONDS))
    make(proxy, mode, form)
    with bounded(SECONDS), pytest.raises(ERRORS.get(mode, BundleUnavailable)):
        materials.fetch(TASK, posted, None)
    assert not materials.has_bundle(posted)
    assert materials.was_refused(posted)
    (folder,) = held.iterdir()
    assert not (folder / MANIFEST).exists()
    assert is_whole(folder / "blobs")
    assert len(proxy.asked) == 1, "no redirect is followed, and nothing else asked for"
    make(proxy, mode, form)
    others.append(Address.parse(honest))
    materials.fetch(TASK, posted, None)
    assert materials.has_bundle(posted)
    assert materials.load(TASK, posted, None).terms == posted


@pytest.mark.parametrize(("mode", "form"), [("huge", "length"), ("bomb", "zstd"), ("two-faced", "")])
def test_what_a_hostile_server_sends_is_no_question_of_room(
    materials: Materials, posted: Terms, proxy: PeerProxy, room: list[int], mode: Mode, form: str
) -> None:
    """A hostile server's bundle counts as refused, even if the free disk space is below the size limit. This
    matters because only a seat that refused a bundle may claim that the bundle is not available. An earlier
    version took a flood of bytes for a full disk if so little space was free, and the seat stayed silent.
    """
    room.append(1 << 30)
    make(proxy, mode, form)
    with pytest.raises(BundleError):
        materials.fetch(TASK, posted, None)
    assert materials.was_refused(posted)


def test_a_server_that_vanishes_and_comes_back_is_asked_for_what_is_missing(
    materials: Materials, posted: Terms, proxy: PeerProxy, held: Path
) -> None:
    """Files that arrived whole are kept; the next attempt fetches the rest."""
    materials.fetch(TASK, posted, None)
    whole = len(proxy.asked)
    shutil.rmtree(held)
    make(proxy, "half-open", "body")
    proxy.spare = whole - 1
    allow(materials, SECONDS)
    with bounded(SECONDS), pytest.raises(BundleUnavailable):
        materials.fetch(TASK, posted, None)
    allow(materials, PLENTY)
    proxy.asked, proxy.mode = [], "honest"
    materials.fetch(TASK, posted, None)
    assert len(proxy.asked) == 2, "the manifest and one blob"
    assert materials.has_bundle(posted)
