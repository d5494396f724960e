"""Addresses that the submitter's commands announce or fetch from: remote, private or unusable ones."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from assay import holders, submitting
from assay.description import Plan
from assay.errors import NotServed
from assay.settings import AssaySettings
from assay.source import Captured
from assay.submitting import Prepared, is_private, prepare, require_served
from assay.watching.untaken import _unserved
from protocol.commitments import state_root, tensor_root
from protocol.node.home import Home
from protocol.node.http_client import Body
from protocol.program.step import StepProgram
from protocol.tasks.bundles import BundleRefused, BundleUnavailable, Limits, sources
from tests.chain.solver_stage import tiny_bundle
from tests.chain.trees import terms

PROGRAM = cast(StepProgram, SimpleNamespace(state_types=[SimpleNamespace(nbytes=3)]))
"""A stub program: only the sizes of its tensors are used."""


def fetched(url: str, root: bytes = bytes(32), limits: Limits | None = None) -> list[bytes] | str:
    return holders.committed(url, 7, 5, PROGRAM, root, limits or Limits())


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:8701",
        "http://192.168.1.7:8701",
        "http://solver.example:8701/",
        "https://solver.example",
    ],
)
def test_a_result_is_read_where_its_solver_is(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def copy(source: sources.HttpSource, name: str, limit: int, into: Body) -> None:
        asked.append(f"{source._address}/{name}")
        into.extend(bytes(limit))

    monkeypatch.setattr(sources.HttpSource, "copy", copy)
    limits = Limits(allowed=("http://192.168.1.7:8701/",))
    assert fetched(url, state_root([tensor_root(bytes(3))]), limits) == [bytes(3)]
    assert asked == [f"{url.rstrip('/')}/tasks/7/checkpoints/5/groups/0"]
    assert str(fetched(url, limits=limits)).startswith("a state with root ")


@pytest.mark.parametrize(
    "url",
    [
        "ftp://solver.example",
        "file:///etc",
        "http://0.0.0.0:8701",
        "http://192.168.1.7:8701",
        "nonsense",
    ],
)
def test_an_address_of_no_use_is_told(url: str) -> None:
    assert "address" in str(fetched(url))


def test_a_server_that_is_away_is_told() -> None:
    assert fetched("http://127.0.0.1:1") == "ConnectError"


def test_an_address_that_nobody_may_fetch_from_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def sleep(_seconds: float) -> None:
        raise AssertionError("it waited")

    monkeypatch.setattr("assay.submitting.time.sleep", sleep)
    with pytest.raises(BundleRefused, match="got 's3'"):
        require_served(terms(bundle="s3://mine/bundle"))


def test_a_submitter_may_serve_in_its_private_network(monkeypatch: pytest.MonkeyPatch) -> None:
    here = terms(bundle="http://192.168.1.5:8700/bundles/ab", bundle_hash=sha256(b"{}").digest())
    monkeypatch.setattr(sources.HttpSource, "copy", lambda *asked: asked[-1].extend(b"{}"))
    require_served(here)
    assert is_private(here)
    assert not is_private(terms(bundle="http://bundles.example:8700/bundles/ab"))


def test_nobody_there_yet_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([None, b"{}"])

    def copy(_source: sources.HttpSource, _name: str, _limit: int, into: Body) -> None:
        answer = next(answers)
        if answer is None:
            raise BundleUnavailable("bundle", expected="the file", got="ConnectError", remedy="try again")
        into.extend(answer)

    monkeypatch.setattr(sources.HttpSource, "copy", copy)
    require_served(terms(bundle_hash=sha256(b"{}").digest()))
    assert next(answers, "both asked") == "both asked"


def test_another_manifest_in_the_bundles_place_is_not_the_bundle(monkeypatch: pytest.MonkeyPatch) -> None:
    served, due = sha256(b"{}").hexdigest(), sha256(b"due").digest()
    monkeypatch.setattr(sources.HttpSource, "copy", lambda *asked: asked[-1].extend(b"{}"))
    asked = terms(bundle_hash=due)
    with pytest.raises(NotServed, match=f"got: a manifest with hash {served}"):
        require_served(asked, seconds=0.0)
    assert f"expected {due.hex()}, got {served}" in str(_unserved(asked, this_machine=True))
    assert _unserved(terms(bundle_hash=bytes.fromhex(served)), this_machine=True) is None


def test_a_damaged_manifest_in_the_home_folder_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle, captured = tiny_bundle(), cast(Captured, None)
    draft = Prepared(cast(Plan, None), bundle, bytes(32), ())
    monkeypatch.setattr(submitting, "drafted", lambda *_asked: draft)
    home = Home(tmp_path)
    manifest = home.bundles / prepare(captured, home).bundle_hash.hex() / "manifest.json"
    right = manifest.read_bytes()
    for damaged in (b"", right[:-1], right + b"\n"):
        manifest.write_bytes(damaged)
        prepare(captured, home)
        assert manifest.read_bytes() == right


@pytest.mark.parametrize(
    ("given", "base"),
    [
        ({}, "http://127.0.0.1:8700"),
        ({"host": "::1"}, "http://[::1]:8700"),
        ({"host": "::1", "bundles_url": "https://bundles.example/"}, "https://bundles.example"),
    ],
)
def test_the_address_of_the_bundle_server_is_one(given: dict[str, str], base: str) -> None:
    assert AssaySettings.model_validate(given).bundle_base == base
