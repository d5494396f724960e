"""Every reader of strangers' addresses and bundles, on 6,100 inputs; `test_answers` has the readers of HTTP
answers.

A reader may raise only its module's own error, of one line, and must keep its limits of size and time. Inputs
are seeded mutations of correct ones; a failure shows its input.
"""

from __future__ import annotations

import json
import random
import ssl
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import h11
import httpcore
import pytest

from protocol.commitments import BlobStore
from protocol.commitments.tensors import Tensor
from protocol.node.addresses import Address, BadAddress, public_part
from protocol.node.http import NotPublic, require_public
from protocol.tasks.bundles import Bundle, BundleError, BundleRefused, Limits, fetch_bundle, write_bundle
from protocol.tasks.bundles.sources import open_source
from protocol.tasks.bundles.write import MANIFEST
from tests.fuzz.strangers import LINE, flipped, kind, mutated
from tests.unit.solver import tiny

ADDRESSES = [
    "http://127.0.0.1:8701",
    "https://solver.example.org/assay/",
    "http://[2001:db8::1]:80/a",
    "https://xn--a/",
    "https://xn--zzzzzzzz99999/",
    "file:///srv/bundles/a",
    "s3://mine/bundle",
    "http://[fe80::1%25eth0]/",
    "",
]
PARTS = [
    *("http://", "https:", "//", ":", ":0", ":65536", ":-1", ":９", "@", "u:p@", "[", "]", "[::", "[v1.a]"),
    *(
        "::",
        "?",
        "#",
        "..",
        "/../",
        "%2e%2e",
        "%",
        "%zz",
        "%00",
        "..\\",
        "\x1b[2J",
        "xn--",
        "xn--a",
        "XN--\x80",
    ),
    *(".", "-", "_", "0x7f", "127.1", "localhost", "1" * 400, "file:", "simplecache::", "::file:///etc"),
    *("zip://", "memory://", "s3://"),
]
ALLOWED = Limits(
    allowed=("file:///srv/bundles/", "s3://mine", "memory://", "zip://", "nothing://", "http://10.0.0.1")
)
SIZES = Limits(manifest_bytes=1 << 16, program_bytes=1 << 16, total_bytes=1 << 16, seconds=10)
VALUES: list[object] = [
    *(None, True, -1, 0, 1, 2**31, 2**63, 2**64, 10**400, 1.5, 1e308, [], {}, [[]]),
    *("", "a", "f32", "\ud800", "0" * 64, "x" * 20_000, "\x1b[2J" * 9, json.loads("[" * 90 + "]" * 90)),
]


def opens(address: Address) -> None:
    """Pass the address to the libraries that connections use. No network is used, and none of the libraries
    may raise.
    """
    httpcore.URL(scheme=address.scheme, host=address.host, port=address.port, target=address.path or "/")
    address.host.encode("idna")  # as sockets do
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname=address.host)
    request = h11.Request(method="GET", target=address.path or "/", headers=[("host", address.authority)])
    h11.Connection(h11.CLIENT).send(request)


def test_addresses() -> None:
    chance, found = random.Random(1), Counter[str]()
    context = ssl.create_default_context()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            ssl, "create_default_context", lambda: context
        )  # loading certificates is not what is tested
        for _ in range(4_000):
            text = mutated(chance, chance.choice(ADDRESSES), PARTS)
            public_part(text)
            with suppress(NotPublic):
                require_public(text)
            for read in (Address.parse, lambda text: open_source(text, ALLOWED, anywhere=True).close()):
                try:
                    read(text)
                except (BadAddress, BundleRefused) as error:
                    found[kind(error, text)] += 1
            with suppress(BadAddress):
                address = Address.parse(text)
                assert Address.parse(str(address)) == address, text
                opens(address)
                found["an address"] += 1
    assert min(found.values()) > 300, found


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a correct bundle."""
    folder, step = tmp_path_factory.mktemp("right"), tiny.step_program()
    data = Tensor.from_array("data", tiny.fixed()[0].numpy())
    write_bundle(Bundle("tiny", step, step.checkpoint(tiny.initial()).tensors, (data,), ()), folder)
    return folder


def changed(chance: random.Random, value: object, depth: int = 0) -> object:
    """The JSON value with one part changed."""
    if depth and chance.random() < 0.15:
        return chance.choice(VALUES)
    if isinstance(value, dict):
        key = chance.choice([*value, "more", "\x1b" * 5_000])
        if chance.random() < 0.1:
            return {name: item for name, item in value.items() if name != key}
        return value | {key: changed(chance, value.get(key), depth + 1)}
    if isinstance(value, list) and value:
        at = chance.randrange(len(value))
        item = changed(chance, value[at], depth + 1)
        return chance.choice(([*value[:at], item, *value[at + 1 :]], [*value, item], value[:at]))
    return chance.choice(VALUES)


def outcome(folder: Path, store: BlobStore) -> str:
    """The name of the error with which a bundle's folder is refused; empty if it is accepted."""
    digest = sha256((folder / MANIFEST).read_bytes()).digest()
    limits = replace(SIZES, allowed=(folder.parent.as_uri(),))
    try:
        fetch_bundle(folder.as_uri(), digest, store, limits)
    except BundleError as error:
        return kind(error, str(error)[:LINE])
    return ""


def test_manifests(written: Path, tmp_path: Path) -> None:
    chance, found, store = random.Random(2), Counter[str](), BlobStore(written / "blobs")
    right = (written / MANIFEST).read_bytes()
    for number in range(1_600):
        data = (
            flipped(chance, right) if number % 2 else json.dumps(changed(chance, json.loads(right))).encode()
        )
        (tmp_path / MANIFEST).write_bytes(data)
        found[outcome(tmp_path, store)] += 1
    assert found["BundleMalformed"] > 500, found


def test_programs_and_tensors_of_a_bundle(written: Path, tmp_path: Path) -> None:
    chance, found = random.Random(3), Counter[str]()
    for number in range(500):
        manifest = json.loads((written / MANIFEST).read_bytes())
        entry = chance.choice(
            [*manifest["programs"], *manifest["state"]] if number % 4 else manifest["programs"]
        )
        blob = entry["blob"]
        data = flipped(chance, (written / "blobs" / blob[:2] / blob).read_bytes())
        entry["blob"] = sha256(data).hexdigest()
        if "bytes" in entry:
            entry["bytes"], entry["id"] = len(data), chance.choice((entry["blob"], entry["id"]))
        (tmp_path / MANIFEST).write_text(json.dumps(manifest))
        store = BlobStore(written / "blobs")
        place = tmp_path / "blobs" / entry["blob"][:2]
        place.mkdir(parents=True, exist_ok=True)
        (place / entry["blob"]).write_bytes(data)
        found[outcome(tmp_path, store)] += 1
    assert found["BundleMalformed"] > 100, found
    assert found["BundleMismatch"] > 10, found
