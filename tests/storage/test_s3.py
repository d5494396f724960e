"""Blobs, bundles and published files in buckets, and the errors where a bucket is private or missing, or
its files are damaged or gone.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

from protocol.commitments import BlobStore, BlobTooLarge, CorruptBlob, MissingBlob
from protocol.node.addresses import Address
from protocol.tasks.bundles import BundleRefused, BundleUnavailable, Limits, committed_terms, write_bundle
from protocol.tasks.task import Terms
from solver.errors import PublicPlaceError
from solver.public_place import PublicPlace
from tests.chain.solver_stage import tiny_bundle
from tests.chain.trees import terms
from tests.storage.server import StorageServer
from tests.unit.solver import tiny
from verifier.database import Database
from verifier.material import Materials
from verifier.strategy import HONEST

pytestmark = pytest.mark.heavy


def test_a_blob_comes_back_and_a_damaged_or_missing_one_does_not(storage: StorageServer) -> None:
    storage.make_bucket("blobs", public=False)
    store = BlobStore("s3://blobs/store", max_bytes=1_000)
    blob = store.put(b"some bytes")
    assert blob == sha256(b"some bytes").hexdigest()
    assert (store.get(blob), bytes(store.map(blob)), store.size(blob)) == (b"some bytes",) * 2 + (10,)
    assert storage.keys("blobs") == [f"store/{blob[:2]}/{blob}"]
    with pytest.raises(MissingBlob):
        store.get("0" * 64)
    with pytest.raises(BlobTooLarge):
        store.put(bytes(1_001))
    storage.client.put_object(Bucket="blobs", Key=f"store/{blob[:2]}/{blob}", Body=b"same bytes")
    with pytest.raises(CorruptBlob):
        BlobStore("s3://blobs/store").get(blob)
    assert store.put(b"some bytes") == blob
    assert BlobStore("s3://blobs/store").get(blob) == b"some bytes"


def test_a_blob_arrives_in_pieces_or_not_at_all(storage: StorageServer) -> None:
    storage.make_bucket("arriving", public=False)
    store = BlobStore("s3://arriving/store")
    blob = sha256(b"first second").hexdigest()
    with pytest.raises(CorruptBlob), store.arriving(blob) as body:
        body.extend(b"first")
    assert storage.keys("arriving") == []
    with store.arriving(blob) as body:
        body.extend(b"first ")
        body.extend(b"second")
    assert store.get(blob) == b"first second"


def posted(place: str) -> Terms:
    """Write the tiny task's bundle to a bucket; returns terms that name it."""
    bundle = tiny_bundle()
    return terms(**committed_terms(bundle), bundle_hash=write_bundle(bundle, place), bundle=place)


def test_a_verifier_fetches_a_bundle_from_a_bucket_that_its_operator_allows(
    storage: StorageServer, tmp_path: Path
) -> None:
    storage.make_bucket("bundles", public=False)
    asked = posted("s3://bundles/tiny")
    database = Database(tmp_path / "verifier.sqlite", tiny.IDENTITY)

    def materials(*allowed: str) -> Materials:
        return Materials(tmp_path, tmp_path / "bundles", database, HONEST, Limits(allowed=allowed))

    for allowed in ((), ("s3://others",), ("s3://bundles-too",)):
        with pytest.raises(BundleRefused):
            materials(*allowed).fetch(1, asked, None)
    made = materials("s3://bundles")
    made.fetch(1, asked, None)
    assert made.load(1, asked, None).terms == asked
    database.close()


def test_a_bundle_that_is_not_in_the_bucket_is_unavailable(storage: StorageServer, tmp_path: Path) -> None:
    storage.make_bucket("emptied", public=False)
    asked = posted("s3://emptied/tiny")
    for key in storage.keys("emptied"):
        storage.client.delete_object(Bucket="emptied", Key=key)
    database = Database(tmp_path / "verifier.sqlite", tiny.IDENTITY)
    limits = Limits(allowed=("s3://emptied",))
    with pytest.raises(BundleUnavailable):
        Materials(tmp_path, tmp_path / "bundles", database, HONEST, limits).fetch(1, asked, None)
    database.close()


def test_whether_the_world_reads_a_bucket_is_found_out_before_it_is_announced(storage: StorageServer) -> None:
    public = Address.parse(storage.make_bucket("public"))
    hidden = Address.parse(storage.make_bucket("hidden", public=False))
    place = PublicPlace("s3://public/assay")
    place.require_readable(public / "assay")
    assert storage.keys("public") == []
    for wrong in (public, hidden / "assay"):
        with pytest.raises(PublicPlaceError, match="let everybody read"):
            place.require_readable(wrong)
    with pytest.raises(PublicPlaceError, match="status 403"):
        PublicPlace("s3://hidden/assay").require_readable(hidden / "assay")
    with pytest.raises(PublicPlaceError, match="whether the bucket is there"):
        PublicPlace("s3://nobodys/assay").write("name", b"")


def test_files_are_written_copied_and_removed(storage: StorageServer, tmp_path: Path) -> None:
    storage.make_bucket("files")
    place, local = PublicPlace("s3://files/assay"), tmp_path / "local"
    local.write_bytes(b"copied")
    assert place.read("tasks/1/segments") is None
    place.write("tasks/1/segments", b"roots")
    place.write("tasks/1/checkpoints/0/groups/0", b"group")
    place.copy(local, "tasks/12/segments")
    assert place.read("tasks/1/segments") == b"roots"
    place.write("tasks/1/segments", b"later roots")
    assert place.read("tasks/1/segments") == b"later roots"
    place.remove("tasks/1")
    place.remove("tasks/1")
    assert storage.keys("files") == ["assay/tasks/12/segments"]
    assert place.read("tasks/1/segments") is None
