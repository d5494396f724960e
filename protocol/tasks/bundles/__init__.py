"""Bundles: a task's program, initial state, dataset and constants as content-addressed data. A bundle
contains no code.

A bundle is a folder with `manifest.json`, which lists everything, and `blobs/`, a blob store. Its hash, which
the terms contain, is the SHA-256 of the manifest. `write_bundle` writes a bundle. `fetch_bundle` gets a
bundle from a stranger and verifies all of it. `require_terms` compares a bundle with the posted terms.
`cached_bundle` takes a bundle from the cache, or fetches and keeps it, and compares it with the terms. Data
for evaluation is not part of a bundle; the submitter keeps it.

A bundle in memory needs torch, which a node that waits for a task has not loaded. So `Bundle` and the
functions that make one are imported on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from protocol.tasks.bundles.cache import cached_bundle, link_bundle, prune
from protocol.tasks.bundles.errors import (
    BundleError,
    BundleMalformed,
    BundleMismatch,
    BundleRefused,
    BundleTooLarge,
    BundleUnavailable,
    NoMapsYet,
    NoRoomYet,
    TensorsTooLarge,
    WrongFile,
)
from protocol.tasks.bundles.limits import Limits
from protocol.tasks.bundles.room import Fetches
from protocol.tasks.bundles.terms import committed_terms, require_terms
from protocol.tasks.bundles.write import write_bundle

if TYPE_CHECKING:
    from protocol.tasks.bundles.bundle import Bundle
    from protocol.tasks.bundles.fetch import fetch_bundle, load_bundle

__all__ = [
    "Bundle",
    "BundleError",
    "BundleMalformed",
    "BundleMismatch",
    "BundleRefused",
    "BundleTooLarge",
    "BundleUnavailable",
    "Fetches",
    "Limits",
    "NoMapsYet",
    "NoRoomYet",
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

_WITH_TORCH = {"Bundle": "bundle", "fetch_bundle": "fetch", "load_bundle": "fetch"}


def __getattr__(name: str) -> object:
    """Import a name on first use. Python calls this for names that the module does not yet have."""
    if name not in _WITH_TORCH:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module(f"{__name__}.{_WITH_TORCH[name]}"), name)
    globals()[name] = found
    return found
