"""Blobs are verified on writing and reading, bounded, and never partial, even if the writer is killed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from protocol.commitments import BlobError, BlobStore, BlobTooLarge, CorruptBlob, MissingBlob
from protocol.commitments.atomic import write_atomically, write_new
from protocol.commitments.errors import TooManyMaps
from protocol.commitments.mapping import Maps
from protocol.commitments.store import LARGE, SMALL

DATA = bytes(range(256)) * 100
ID = sha256(DATA).hexdigest()


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_a_blob_comes_back_under_its_hash(tmp_path: Path) -> None:
    store = BlobStore(tmp_path / "blobs")
    assert not store.has(ID)
    assert store.put(DATA) == ID
    assert store.has(ID)
    assert store.size(ID) == len(DATA)
    assert BlobStore(tmp_path / "blobs").get(ID) == DATA
    assert store.put(bytearray(DATA)) == store.put(np.frombuffer(DATA, np.uint8).data) == ID
    assert len(files(tmp_path)) == 1
    assert store.get(store.put(b"")) == b""


def test_a_blob_has_a_second_name_without_a_second_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, names = BlobStore(tmp_path / "blobs"), [tmp_path / "items" / name for name in "ab"]
    store.put(DATA)
    for _ in range(2):
        store.link(ID, names[0])
    (kept,) = files(tmp_path / "blobs")
    assert names[0].samefile(kept)
    monkeypatch.setattr("os.link", lambda *_paths: (_ for _ in ()).throw(PermissionError()))
    store.link(ID, names[1])
    assert not names[1].samefile(kept)
    assert names[1].read_bytes() == DATA


def test_any_fsspec_url_serves(tmp_path: Path) -> None:
    store = BlobStore(f"memory://{tmp_path.name}/blobs")
    assert store.get(store.put(DATA)) == DATA
    with pytest.raises(MissingBlob):
        store.get(sha256(b"other").hexdigest())


def test_a_missing_blob_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(MissingBlob, match=f"no blob {ID}.*fetch it"):
        BlobStore(tmp_path).get(ID)


@pytest.mark.parametrize("damage", [DATA[:-1], DATA + b"\0", b"\1" + DATA[1:], b""])
def test_a_damaged_blob_is_refused_by_name_and_healed_by_storing_again(tmp_path: Path, damage: bytes) -> None:
    store = BlobStore(tmp_path)
    store.put(DATA)
    [path] = files(tmp_path)
    path.write_bytes(damage)
    with pytest.raises(CorruptBlob, match=f"{path}.*delete this file"):
        store.get(ID)
    store.put(DATA)
    assert store.get(ID) == DATA


@pytest.mark.parametrize("nbytes", [0, 1, SMALL - 1, SMALL, 3 * SMALL + 1])
def test_a_mapped_blob_is_checked_read_only_and_keeps_no_file_open(tmp_path: Path, nbytes: int) -> None:
    store, data = BlobStore(tmp_path), os.urandom(nbytes)
    blob = store.put(data)
    before = len(os.listdir("/proc/self/fd"))
    mapped = store.map(blob)
    assert len(os.listdir("/proc/self/fd")) == before
    assert (bytes(mapped), mapped.readonly, mapped.format) == (data, True, "B")
    [path] = files(tmp_path)
    path.write_bytes(data + b"\0")
    with pytest.raises(CorruptBlob, match="delete this file"):
        store.map(blob)
    path.unlink()
    with pytest.raises(MissingBlob):
        store.map(blob)
    assert bytes(mapped) == data


def test_a_blob_is_opened_after_a_check(tmp_path: Path) -> None:
    for store in (BlobStore(tmp_path), BlobStore(f"memory://{tmp_path.name}/opened")):
        with store.open(store.put(DATA)) as file:
            assert file.read() == DATA
    [path] = files(tmp_path)
    path.write_bytes(DATA[:-1])
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(CorruptBlob, match="delete this file"):
        BlobStore(tmp_path).open(ID)
    with pytest.raises(BlobTooLarge):
        BlobStore(tmp_path, max_bytes=1).open(ID)
    assert len(os.listdir("/proc/self/fd")) == before
    path.unlink()
    with pytest.raises(MissingBlob):
        BlobStore(tmp_path).open(ID)


def test_a_map_ends_with_the_last_object_that_shares_it(tmp_path: Path) -> None:
    maps, path = Maps(most=1), tmp_path / "file"
    path.write_bytes(DATA)
    (tmp_path / "other").write_bytes(DATA)

    def count() -> int:
        return Path("/proc/self/maps").read_text().count(str(path))

    mapped, other = maps.map(path), maps.map(path)
    assert mapped is not None
    assert other is not None
    assert count() == len(maps) == 1, "a file is mapped once"
    assert maps.map(tmp_path / "other") is None
    array = np.frombuffer(mapped, np.uint8)
    del mapped, other
    assert count() == 1
    assert array.tobytes() == DATA
    assert not array.flags.writeable
    del array
    assert count() == len(maps) == 0
    assert maps.map(tmp_path / "other") is not None


def test_a_link_of_a_mapped_file_shares_its_map_and_a_file_that_replaces_it_does_not(tmp_path: Path) -> None:
    maps, path, link = Maps(), tmp_path / "file", tmp_path / "link"
    path.write_bytes(DATA)
    link.hardlink_to(path)
    mapped, linked = maps.map(path), maps.map(link)
    assert mapped is not None
    assert linked is not None
    assert len(maps) == 1
    path.unlink()
    path.write_bytes(bytes(len(DATA)))
    fresh = maps.map(path)
    assert fresh is not None
    assert len(maps) == 2
    assert (bytes(mapped), bytes(linked), bytes(fresh)) == (DATA, DATA, bytes(len(DATA)))


def test_where_there_are_too_many_maps_a_small_blob_is_read_and_a_large_one_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, most = BlobStore(tmp_path), os.urandom(LARGE - 1)
    large = store.put(most + b"\0")
    assert bytes(store.map(large))[:-1] == most
    monkeypatch.setattr("protocol.commitments.store._MAPS", Maps(most=0))
    assert bytes(store.map(store.put(most))) == most
    with pytest.raises(TooManyMaps, match=f"map for {LARGE} bytes"):
        store.map(large)
    assert bytes(store.map(large, small=LARGE + 1))[:-1] == most


@pytest.mark.parametrize("name", ["", "../" * 3 + "etc/passwd", ID.upper(), ID[:-1], ID + "0", "a/" + ID])
def test_a_name_that_is_no_hash_never_becomes_a_path(tmp_path: Path, name: str) -> None:
    store = BlobStore(tmp_path)
    for use in (store.get, store.has, store.size):
        with pytest.raises(BlobError, match="64 lower-case"):
            use(name)


def test_a_long_name_is_cut_in_the_message(tmp_path: Path) -> None:
    with pytest.raises(BlobError) as caught:
        BlobStore(tmp_path).get("x" * 80 + "y" * 1000)
    assert repr("x" * 80) in str(caught.value)


def test_limits_hold_both_ways(tmp_path: Path) -> None:
    BlobStore(tmp_path).put(DATA)
    small = BlobStore(tmp_path, max_bytes=len(DATA) - 1)
    with pytest.raises(BlobTooLarge, match=f"at most {len(DATA) - 1} bytes, got {len(DATA)} bytes"):
        small.put(DATA)
    with pytest.raises(BlobTooLarge):
        small.get(ID)
    with pytest.raises(BlobTooLarge):
        BlobStore(tmp_path).get(ID, max_bytes=10)


def test_a_damaged_blob_that_grew_past_the_limit_is_healed_too(tmp_path: Path) -> None:
    store = BlobStore(tmp_path, max_bytes=len(DATA))
    store.put(DATA)
    [path] = files(tmp_path)
    path.write_bytes(DATA * 2)
    store.put(DATA)
    assert store.get(ID) == DATA


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    store = BlobStore(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(os, call, _fail)
        with pytest.raises(OSError, match="disk full"):
            store.put(DATA)
    assert not store.has(ID)
    assert files(tmp_path) == []
    assert store.get(store.put(DATA)) == DATA


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_failed_rewrite_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"old")
    with monkeypatch.context() as patch:
        patch.setattr(os, call, _fail)
        with pytest.raises(OSError, match="disk full"):
            write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert files(tmp_path) == [path]


@pytest.fixture(params=["links", "no links"])
def links(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system with or without hard links."""
    if request.param == "no links":
        monkeypatch.setattr(os, "link", _fail)


@pytest.mark.usefixtures("links")
def test_a_new_file_replaces_none(tmp_path: Path) -> None:
    path = tmp_path / "state"
    write_new(path, b"old")
    with pytest.raises(FileExistsError):
        write_new(path, b"new")
    assert path.read_bytes() == b"old"
    assert files(tmp_path) == [path]


def test_a_new_file_that_cannot_be_named_leaves_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for call in ("link", "replace"):
        monkeypatch.setattr(os, call, _fail)
    with pytest.raises(OSError, match="disk full"):
        write_new(tmp_path / "state", b"new")
    assert files(tmp_path) == []


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_killed_writer_leaves_no_blob_and_its_leftover_is_swept(tmp_path: Path, call: str) -> None:
    killed = (
        "import os, sys; from protocol.commitments import BlobStore; store = BlobStore(sys.argv[1]);"
        f"os.{call} = lambda *_: os.kill(os.getpid(), 9); store.put(bytes(range(256)) * 100)"
    )
    done = subprocess.run([sys.executable, "-c", killed, str(tmp_path)], check=False, timeout=60)
    assert done.returncode == -9
    store = BlobStore(tmp_path)
    assert not store.has(ID)
    with pytest.raises(MissingBlob):
        store.get(ID)
    [leftover] = files(tmp_path)
    store.put(DATA)
    assert store.get(ID) == DATA
    two_days_ago = time.time() - 2 * 24 * 3600
    os.utime(leftover, (two_days_ago, two_days_ago))
    BlobStore(tmp_path)
    assert [path.name for path in files(tmp_path)] == [ID]


@pytest.mark.parametrize(("hours", "stays"), [(0, True), (23, True), (25, False), (None, False)])
def test_a_write_under_way_survives_another_store_that_opens(
    tmp_path: Path, hours: int | None, stays: bool
) -> None:
    """Two processes may share a folder, so only leftovers older than a day are deleted."""
    folder = tmp_path / ID[:2]
    folder.mkdir()
    leftover = folder / ".partial-now"
    leftover.write_bytes(b"half")
    written = 3600 if hours is None else time.time() - hours * 3600  # or an hour after the beginning of 1970
    os.utime(leftover, (written, written))
    BlobStore(tmp_path)
    assert leftover.exists() == stays


def _fail(*_: object) -> None:
    raise OSError("disk full")


@pytest.mark.parametrize("url", ["folder", "memory://arriving"])
def test_a_blob_arrives_in_pieces_whole_or_not_at_all(tmp_path: Path, url: str) -> None:
    store = BlobStore(url if "://" in url else tmp_path / url, max_bytes=10)
    blob = sha256(b"pieces").hexdigest()
    with pytest.raises(CorruptBlob), store.arriving(blob) as arriving:
        arriving.extend(b"piece")
    assert not store.has(blob)
    with pytest.raises(BlobTooLarge), store.arriving(blob) as arriving:
        arriving.extend(bytes(11))
    assert not store.has(blob)
    with store.arriving(blob) as arriving:
        arriving.extend(b"pie")
        arriving.extend(b"ces")
        assert (len(arriving), arriving.id) == (6, blob)
    assert store.get(blob) == b"pieces"
