"""A cached bundle: fetched once, verified against the terms, and fetched again when damaged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from protocol.commitments.tensors import Tensor
from protocol.tasks.bundles import (
    Bundle,
    BundleError,
    BundleMismatch,
    Limits,
    NoMapsYet,
    cached_bundle,
    write_bundle,
)
from protocol.tasks.bundles.terms import committed_terms
from protocol.tasks.task import Terms
from tests.chain.trees import terms
from tests.unit.solver import tiny

SERVED = "submitter"


@pytest.fixture
def made() -> Bundle:
    state = tiny.initial()
    step = tiny.step_program()
    data = Tensor.from_array("data", tiny.fixed()[0].numpy())
    return Bundle("tiny", step, step.checkpoint(state).tensors, (data,), ())


@pytest.fixture
def posted(made: Bundle, tmp_path: Path) -> Terms:
    """Write the bundle, and return terms with its address."""
    folder = tmp_path / SERVED
    bundle_hash = write_bundle(made, folder)
    return terms(**committed_terms(made), bundle_hash=bundle_hash, bundle=folder.as_uri())


@pytest.fixture
def limits(tmp_path: Path) -> Limits:
    return Limits(allowed=(tmp_path.as_uri(),))


def test_a_bundle_is_fetched_once(made: Bundle, posted: Terms, limits: Limits, tmp_path: Path) -> None:
    assert cached_bundle(tmp_path / "held", posted, limits).state == made.state
    (tmp_path / SERVED).rename(tmp_path / "taken down")
    assert cached_bundle(tmp_path / "held", posted, limits).state == made.state


def test_another_address_serves_what_the_first_does_not(
    posted: Terms, limits: Limits, tmp_path: Path
) -> None:
    elsewhere = tmp_path / SERVED
    gone = replace(posted, bundle=(tmp_path / "gone").as_uri())
    with pytest.raises(BundleError, match="gone"):
        cached_bundle(tmp_path / "held", gone, limits)
    assert cached_bundle(tmp_path / "held", gone, limits, [elsewhere.as_uri()]).state


def test_what_was_damaged_on_disk_is_fetched_again(
    made: Bundle, posted: Terms, limits: Limits, tmp_path: Path
) -> None:
    cached_bundle(tmp_path / "held", posted, limits)
    blobs = [path for path in (tmp_path / "held").rglob("*") if path.is_file() and "blobs" in path.parts]
    for path in blobs:
        path.chmod(0o600)
        path.write_bytes(b"damaged")
    assert cached_bundle(tmp_path / "held", posted, limits).state == made.state


def test_a_bundle_that_is_here_is_not_asked_for_again_for_want_of_memory_maps(
    posted: Terms, limits: Limits, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cached_bundle(tmp_path / "held", posted, limits)
    asked = []

    def full(*_args: Any, **_more: Any) -> Bundle:
        raise NoMapsYet("tensor data", expected="a free memory map", got="none", remedy="none needed")

    def fetch(*args: Any) -> Bundle:
        asked.append(args)
        return full()

    monkeypatch.setattr("protocol.tasks.bundles.fetch.load_bundle", full)
    monkeypatch.setattr("protocol.tasks.bundles.fetch.fetch_bundle", fetch)
    with pytest.raises(NoMapsYet):
        cached_bundle(tmp_path / "held", posted, limits)
    assert not asked


def test_terms_that_misstate_the_bundle_are_refused_each_time(
    posted: Terms, limits: Limits, tmp_path: Path
) -> None:
    cheaper = replace(posted, step_operations=1)
    for _ in range(2):
        with pytest.raises(BundleMismatch, match="step_operations"):
            cached_bundle(tmp_path / "held", cheaper, limits)
