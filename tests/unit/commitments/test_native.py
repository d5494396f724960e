"""The compiled hasher agrees with hashlib; hashlib replaces a missing or wrong hasher."""

from __future__ import annotations

import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from shutil import which

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from protocol.commitments import Tree, native, salted, tensor_root
from protocol.commitments.digests import Digester
from protocol.commitments.hashing import hash_rows, hash_rows_by_hashlib

SHA_INSTRUCTIONS = Path("/proc/cpuinfo").is_file() and " sha_ni" in Path("/proc/cpuinfo").read_text()
NEEDED = pytest.mark.skipif(not SHA_INSTRUCTIONS, reason="no SHA instructions, or not known here")


def pattern(count: int, width: int, seed: int = 0) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (count, width), np.uint8)


def due(prefix: int, rows: NDArray[np.uint8]) -> bytes:
    return b"".join(sha256(bytes([prefix]) + row.tobytes()).digest() for row in rows)


def hasher() -> native.RowHasher:
    found = native.row_hasher()
    assert found is not None
    return found


@NEEDED
@pytest.mark.skipif(which("c++") is None, reason="no C++ compiler")
def test_it_is_built_and_used_where_there_are_a_compiler_and_the_instructions() -> None:
    assert native.row_hasher() is not None
    assert native.salted_row_hasher() is not None


@NEEDED
@pytest.mark.parametrize("width", [*range(1, 200), 1023, 1024, 1025, 4096])
def test_every_padding_has_hashlibs_digest(width: int) -> None:
    rows = pattern(6, width, seed=width)
    assert hasher()(0, rows) == due(0, rows)


@NEEDED
@given(
    prefix=st.integers(0, 255),
    count=st.integers(0, 40),
    width=st.integers(1, 300),
    seed=st.integers(0, 2**32),
)
def test_any_rows_have_hashlibs_digests(prefix: int, count: int, width: int, seed: int) -> None:
    rows = pattern(count, width, seed)
    assert hasher()(prefix, rows) == hash_rows_by_hashlib(prefix, rows) == due(prefix, rows)


@NEEDED
@given(
    salt=st.binary(min_size=32, max_size=32),
    count=st.integers(0, 40),
    pieces=st.integers(1, 40),
    stride=st.integers(1, 9),
    seed=st.integers(0, 2**32),
)
def test_any_rows_under_a_salt_have_hashlibs_digests(
    salt: bytes, count: int, pieces: int, stride: int, seed: int
) -> None:
    compiled = native.salted_row_hasher()
    assert compiled is not None
    rows = pattern(count, 32 * pieces, seed)[::stride]
    assert compiled(salt, rows) == salted.hash_rows_by_hashlib(salt, rows)


def test_rows_with_gaps_are_hashed_too() -> None:
    rows = pattern(9, 40)[::2, 3:30]
    assert hash_rows(7, rows) == due(7, rows)


@pytest.mark.parametrize("nbytes", [1, 1023, 1024, 1025, 9 * 1024, 300 * 1024 + 17])
def test_a_tensors_root_is_the_same_without_the_library(nbytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    data = pattern(1, nbytes, seed=nbytes).tobytes()
    with_it = tensor_root(data)
    monkeypatch.setattr("protocol.commitments.hashing.row_hasher", lambda: None)
    assert tensor_root(data) == with_it
    monkeypatch.undo()
    assert Tree.from_leaves([data[i : i + 1024] for i in range(0, nbytes, 1024)]).root == with_it


@pytest.mark.parametrize("nbytes", [1, 1024, 9 * 1024, 300 * 1024 + 17])
def test_a_digest_is_the_same_without_the_library(nbytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    data = pattern(1, nbytes, seed=nbytes).tobytes()
    with_it = [Digester(bytes(32), thinning).tensor_root(data, 3) for thinning in (1, 4)]
    for module in ("hashing.row_hasher", "salted.salted_row_hasher"):
        monkeypatch.setattr(f"protocol.commitments.{module}", lambda: None)
    assert [Digester(bytes(32), thinning).tensor_root(data, 3) for thinning in (1, 4)] == with_it


def wrong(width: int, count: int) -> native.RowHasher:
    """A hasher that is right except for an input of `count` rows of `width` bytes: there it flips the last
    bit of its result.
    """

    def hash_wrongly(prefix: int, rows: NDArray[np.uint8]) -> bytes:
        digests = bytearray(hash_rows_by_hashlib(prefix, rows))
        if rows.shape == (count, width):
            digests[-1] ^= 1
        return bytes(digests)

    return hash_wrongly


def confused(width: int, count: int) -> native.RowHasher:
    """A hasher that is right except for an input of `count` rows of `width` bytes: there it gives each row
    the hash of the first row.
    """

    def hash_confusedly(prefix: int, rows: NDArray[np.uint8]) -> bytes:
        return hash_rows_by_hashlib(
            prefix, rows[:1].repeat(count, 0) if rows.shape == (count, width) else rows
        )

    return hash_confusedly


def test_a_hasher_that_is_wrong_anywhere_is_not_let_in() -> None:
    assert native.is_right(hash_rows_by_hashlib)
    for width in (1, 55, 62, 63, 64, 118, 119, 127, 1024):
        for count in (1, 3, 4, 9):
            assert not native.is_right(wrong(width, count))
            assert native.is_right(confused(width, count)) == (count == 1)
    assert not native.is_right(lambda _prefix, rows: hash_rows_by_hashlib(0, rows))
    assert not native.is_right(lambda prefix, rows: hash_rows_by_hashlib(prefix, rows)[:-32])


def wrong_under_a_salt(width: int, count: int) -> native.SaltedRowHasher:
    """A hasher of salted rows that is wrong in the same way as `wrong`."""

    def hash_wrongly(salt: bytes, rows: NDArray[np.uint8]) -> bytes:
        digests = bytearray(salted.hash_rows_by_hashlib(salt, rows))
        if rows.shape == (count, width):
            digests[-1] ^= 1
        return bytes(digests)

    return hash_wrongly


def test_a_hasher_that_is_wrong_anywhere_under_a_salt_is_not_let_in() -> None:
    right = salted.hash_rows_by_hashlib
    assert native.is_right_salted(right)
    for width in (32, 64, 1024):
        for count in (1, 3, 4, 9):
            assert not native.is_right_salted(wrong_under_a_salt(width, count))
    assert not native.is_right_salted(lambda _salt, rows: right(bytes(32), rows))
    assert not native.is_right_salted(lambda salt, rows: right(salt, np.repeat(rows[:1], len(rows), 0)))


@pytest.mark.skipif(which("c++") is None, reason="no C++ compiler")
def test_a_library_with_a_wrong_constant_loads_and_is_refused(tmp_path: Path) -> None:
    """The self-test finds one wrong bit in one round constant."""
    source = Path(native.__file__).with_name("native") / "sha256.cpp"
    for name, text in (
        ("right", source.read_text()),
        ("wrong", source.read_text().replace("0xc67178f2", "0xc67178f3")),
    ):
        (tmp_path / f"{name}.cpp").write_text(text)
        command = ["c++", "-std=c++17", "-O1", "-fPIC", "-shared", f"{name}.cpp", "-o", f"{name}.so"]
        subprocess.run(command, cwd=tmp_path, check=True, timeout=60)
        found = native.load(tmp_path / f"{name}.so")
        assert (found is not None) == SHA_INSTRUCTIONS
        if found is not None:
            assert native.is_right(found) == (name == "right")
        under_a_salt = native.load_salted(tmp_path / f"{name}.so")
        assert (under_a_salt is not None) == SHA_INSTRUCTIONS
        if under_a_salt is not None:
            assert native.is_right_salted(under_a_salt) == (name == "right")


def test_what_is_no_library_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "empty.so").write_bytes(b"")
    with pytest.raises(OSError, match=r"empty\.so"):
        native.load(tmp_path / "empty.so")


COUNTING = """
import sys, threading, time
import numpy as np
from protocol.commitments import native

sys.setswitchinterval(100)  # who has the interpreter's lock keeps it until it gives it up
hash_rows, rows = native.row_hasher(), np.zeros((1 << 16, 1024), np.uint8)
counted, done = 0, False

def count():
    global counted
    while not done:
        counted += 1
        time.sleep(0)

thread = threading.Thread(target=count)
thread.start()
before = counted
for _ in range(10):
    hash_rows(0, rows)
during, done = counted - before, True
thread.join()
sys.exit(None if during else "the lock was held")
"""


@NEEDED
def test_other_threads_run_while_rows_are_hashed() -> None:
    subprocess.run([sys.executable, "-c", COUNTING], check=True, timeout=60)
