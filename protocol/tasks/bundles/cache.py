"""A party's cache of bundles in its own folder. A bundle is fetched once, is verified on each use, and is
fetched again if it is damaged.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from protocol.commitments import BlobStore
from protocol.commitments.atomic import TEMPORARY_PREFIX, write_atomically
from protocol.node.addresses import Address
from protocol.node.disk import remove
from protocol.tasks.bundles.errors import BundleError, NoMapsYet, NoRoomYet, TensorsTooLarge
from protocol.tasks.bundles.limits import Limits
from protocol.tasks.bundles.terms import require_terms
from protocol.tasks.bundles.write import BLOBS, MANIFEST
from protocol.tasks.task import Terms

if TYPE_CHECKING:
    from protocol.tasks.bundles.bundle import Bundle


def cached_bundle(
    bundles: Path, terms: Terms, limits: Limits, others: Sequence[str | Address] = ()
) -> Bundle:
    """The bundle of these terms: from its folder below `bundles`, otherwise from the address in the terms,
    otherwise from an address in `others`.

    `limits.seconds` applies to each address. If all addresses fail, raises BundleError: TensorsTooLarge,
    NoRoomYet or NoMapsYet if any address raised one of these, otherwise the error of the first address.
    Also raises NoMapsYet for a bundle in its folder, and BundleMismatch if the terms differ from the bundle.
    """
    folder = bundles / terms.bundle_hash.hex()
    bundle = _kept(folder, terms, limits) or _fetched(folder, terms, limits, others)
    require_terms(bundle, terms)
    return bundle


def link_bundle(places: Iterable[Path], bundles: Path, bundle_hash: bytes) -> None:
    """If another party on this machine has the complete bundle, hard-link the bundle's files. The other
    party's copy is in a folder below one of `places`, and the links are made in a folder below `bundles`.
    Both folders have the bundle's hash as their name. Each party may delete its own links. If linking fails,
    the bundle is fetched later.
    """
    here = bundles / bundle_hash.hex()
    for place in places:
        if (here / MANIFEST).is_file():
            return
        with suppress(OSError):  # another file system, or the owner is deleting it
            _link(place / bundle_hash.hex(), here)


def _link(there: Path, here: Path) -> None:
    if not (there / MANIFEST).is_file():
        return
    for path in sorted(there.rglob("*"), key=lambda path: path.name == MANIFEST):
        if path.is_file() and not path.name.startswith(TEMPORARY_PREFIX):
            link = here / path.relative_to(there)
            link.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError):
                link.hardlink_to(path)


def prune(bundles: Path, wanted: Container[str]) -> None:
    """Delete from the folder `bundles` everything except the entries whose names are hashes in `wanted`. This
    removes other bundles, and leftovers of killed processes. The folder must belong to one party only.
    """
    for folder in list(bundles.iterdir()) if bundles.is_dir() else ():
        if folder.name not in wanted:
            remove(folder)


def _kept(folder: Path, terms: Terms, limits: Limits) -> Bundle | None:
    from protocol.tasks.bundles.fetch import load_bundle

    manifest = folder / MANIFEST
    if manifest.is_file() and sha256(manifest.read_bytes()).digest() == terms.bundle_hash:
        try:
            return load_bundle(folder, limits=limits)
        except NoMapsYet:  # no fetch helps
            raise
        except BundleError:  # damaged since it was kept: fetch it again
            return None
    return None


def _fetched(folder: Path, terms: Terms, limits: Limits, others: Sequence[str | Address]) -> Bundle:
    from protocol.tasks.bundles.fetch import fetch_bundle

    store = BlobStore(folder / BLOBS)
    failures = []
    for place in [terms.bundle, *others]:
        try:
            bundle = fetch_bundle(place, terms.bundle_hash, store, limits)
        except BundleError as error:
            failures.append(error)
            continue
        # The manifest's exact bytes: their hash is the bundle's name. Written last, so that a named bundle is complete.
        write_atomically(folder / MANIFEST, store.get(terms.bundle_hash.hex()))
        return bundle
    own = (TensorsTooLarge, NoRoomYet, NoMapsYet)
    raise next((one for one in failures if isinstance(one, own)), failures[0])
