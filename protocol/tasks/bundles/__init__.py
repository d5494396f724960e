"""Bundles: a task's program, initial state, dataset and constants as content-addressed data; nothing in it is code.

A bundle is a folder: `manifest.json`, which names everything, and `blobs/`, a blob store. Its hash, the SHA-256 of the
manifest, stands in the terms. `write_bundle` makes one, `fetch_bundle` gets one from a stranger, believing nothing,
`require_terms` compares it with what was posted, `cached_bundle` does both and keeps it. Not here: evaluation on
held-out data, which is the submitter's own business.
"""

from protocol.tasks.bundles.bundle import Bundle
from protocol.tasks.bundles.cache import cached_bundle, link_bundle, prune
from protocol.tasks.bundles.errors import (
    BundleError,
    BundleMalformed,
    BundleMismatch,
    BundleRefused,
    BundleTooLarge,
    BundleUnavailable,
    TensorsTooLarge,
    WrongFile,
)
from protocol.tasks.bundles.fetch import fetch_bundle, load_bundle
from protocol.tasks.bundles.limits import Limits
from protocol.tasks.bundles.terms import committed_terms, require_terms
from protocol.tasks.bundles.write import write_bundle

__all__ = [
    "Bundle",
    "BundleError",
    "BundleMalformed",
    "BundleMismatch",
    "BundleRefused",
    "BundleTooLarge",
    "BundleUnavailable",
    "Limits",
    "TensorsTooLarge",
    "WrongFile",
    "cached_bundle",
    "committed_terms",
    "fetch_bundle",
    "link_bundle",
    "load_bundle",
    "prune",
    "require_terms",
    "write_bundle",
]
