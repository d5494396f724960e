"""Bundles that the solver holds: fetched once, verified against the terms, kept under ASSAY_HOME and served on.

A submitter may take its own bundle down once a solver has the task; the solver then answers for every root in the terms
(dispute.md section 7).
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from protocol.bundles import Bundle, BundleError, fetch_bundle, load_bundle, require_terms
from protocol.bundles.write import BLOBS, MANIFEST
from protocol.commitments import BlobStore
from protocol.commitments.atomic import write_atomically
from protocol.program.library import kernels
from protocol.task import Terms
from solver.conduct import Work
from solver.desk import Desk

REFETCH_SECONDS = 60.0
"""For a bundle that was held and is damaged now; meanwhile nothing else is done."""


def hold(desk: Desk, terms: Terms, seconds: float = REFETCH_SECONDS) -> Bundle:
    """The task's bundle, from disk or, within some seconds, from the submitter.

    Raises BundleError: then there is nothing to bid on.
    """
    folder = desk.home.folder("bundles", terms.bundle_hash.hex())
    bundle = _held(folder, terms) or _fetched(desk, folder, terms, seconds)
    require_terms(bundle, terms)
    return bundle


def work(task: int, bundle: Bundle) -> Work:
    """The bundle as an executor takes it."""
    return Work(task, bundle.step, bundle.fixed(), kernels(bundle.step.program, bundle.hints))


def _held(folder: Path, terms: Terms) -> Bundle | None:
    manifest = folder / MANIFEST
    if not manifest.is_file() or sha256(manifest.read_bytes()).digest() != terms.bundle_hash:
        return None
    try:
        return load_bundle(folder)
    except BundleError:  # damaged since: fetched again
        return None


def _fetched(desk: Desk, folder: Path, terms: Terms, seconds: float) -> Bundle:
    store = BlobStore(folder / BLOBS)
    bundle = fetch_bundle(terms.bundle, terms.bundle_hash, store, desk.limits(seconds))
    # The manifest's own bytes, for its hash is the bundle's name; written last, so that what is named is complete.
    write_atomically(folder / MANIFEST, store.get(terms.bundle_hash.hex()))
    return bundle
