"""The verifier's HTTP service: held results, a juror's data, and offered salts."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from fastapi.testclient import TestClient

from protocol.commitments.groups import GROUP_BYTES
from protocol.node.serving import Serving
from verifier.errors import SaltRefused, TooManySalts
from verifier.results import Items, Results
from verifier.server import MAX_BODY, Offer, application

TENSORS = [b"first", b"", bytes(range(256))]


SALT = bytes(range(32))
ROOTS = [bytes([number]) * 32 for number in range(4)]
BUNDLE = "ab" * 32
OFFERED = {"task": 7, "seat": 1, "salt": SALT.hex()}


def taken(offers: list[tuple[int, int, bytes]]) -> Offer:
    """Return a function that appends the arguments of each call to `offers`: the task, the seat and the salt."""
    return lambda task, seat, salt: offers.append((task, seat, salt))


def written(place: Callable[[int], Path]) -> None:
    """Write the tensors to the file of group 0, the only group."""
    place(0).parent.mkdir(parents=True, exist_ok=True)
    place(0).write_bytes(b"".join(TENSORS))


@pytest.fixture
def results(tmp_path: Path) -> Results:
    made = Results(tmp_path / "results")
    made.hold(7, 3, TENSORS)
    return made


@pytest.fixture
def items(tmp_path: Path) -> Items:
    bundle = tmp_path / "bundles" / BUNDLE
    (bundle / "blobs").mkdir(parents=True)
    (bundle / "manifest.json").write_bytes(b"{}")
    (bundle.parent / "secret").write_bytes(b"secret")
    return Items(tmp_path / "items", bundle.parent)


def test_a_held_result_is_served_in_groups_until_it_is_dropped(results: Results, items: Items) -> None:
    large = [bytes(GROUP_BYTES), b"after it"]
    results.hold(7, 3, [*TENSORS, *large])
    with TestClient(application(results, items, taken([]))) as client:
        where = [f"/tasks/7/checkpoints/3/groups/{number}" for number in range(4)]
        answers = [client.get(path) for path in where]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 404]
        assert [answer.content for answer in answers[:3]] == [b"".join(TENSORS), *large]
        results.drop(7)
        results.drop(7)
        assert {client.get(path).status_code for path in where} == {404}


@pytest.mark.parametrize(
    "path",
    [
        "/tasks/8/checkpoints/3/groups/0",
        "/tasks/7/checkpoints/2/groups/0",
        "/tasks/7/checkpoints/3/groups/-1",
        "/tasks/7/checkpoints/3/groups/..%2f..%2f..%2f..%2fetc%2fpasswd",
        "/tasks/../7/checkpoints/3/groups/0/..",
        "/tasks/7/checkpoints/3/groups/99999999999999999999999999",
    ],
)
def test_nothing_else_is_served(results: Results, items: Items, path: str) -> None:
    with TestClient(application(results, items, taken([]))) as client:
        assert client.get(path).status_code in (404, 422)
        assert client.post("/tasks/7/checkpoints/3/groups/0").status_code == 405


def test_a_jurors_state_is_served_with_the_roots_until_it_is_dropped(results: Results, items: Items) -> None:
    with TestClient(application(results, items, taken([]))) as client:
        where = ["/tasks/8/segments", "/tasks/8/checkpoints/2/groups/0"]
        assert {client.get(path).status_code for path in where} == {404}
        items.hold_state(8, 2, ROOTS, written)
        assert [client.get(path).content for path in where] == [b"".join(ROOTS), b"".join(TENSORS)]
        assert client.get("/tasks/8/checkpoints/2/groups/roots").status_code == 422
        items.drop(8)
        assert {client.get(path).status_code for path in where} == {404}


def test_a_bundle_is_served_by_a_juror_that_has_its_constants(results: Results, items: Items) -> None:
    with TestClient(application(results, items, taken([]))) as client:
        path = f"/bundles/{BUNDLE}/manifest.json"
        assert client.get(path).status_code == 404
        items.hold_bundle(8, bytes.fromhex(BUNDLE))
        assert client.get(path).content == b"{}"
        for other in (
            f"/bundles/{BUNDLE}/blobs",
            f"/bundles/{BUNDLE}/%2e%2e/secret",
            f"/bundles/{'cd' * 32}/x",
        ):
            assert client.get(other).status_code in (404, 422)
        items.drop(8)
        assert client.get(path).status_code == 404


def test_what_a_juror_has_outlives_a_restart(items: Items) -> None:
    items.hold_state(8, 2, ROOTS, written)
    assert items.has_state(8, 2)
    assert items.state(8, 2, list(map(len, TENSORS))) == (TENSORS, ROOTS)
    assert not items.has_state(8, 1)
    assert items.state(8, 1, [1]) is None


@pytest.mark.parametrize("written", [SALT.hex(), "0x" + SALT.hex(), SALT.hex().upper()])
def test_a_salt_is_taken_and_not_told_to_anybody(results: Results, items: Items, written: str) -> None:
    offers: list[tuple[int, int, bytes]] = []
    with TestClient(application(results, items, taken(offers))) as client:
        answer = client.post("/salts", json=OFFERED | {"salt": written})
        assert (answer.status_code, answer.json()) == (202, {"status": "kept"})
        assert client.get("/salts").status_code == 405
    assert offers == [(7, 1, SALT)]


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"task": 0}, "task"),
        ({"task": 1 << 63}, "task"),
        ({"task": "7"}, "task"),
        ({"task": 7.5}, "task"),
        ({"seat": -1}, "seat"),
        ({"seat": 256}, "seat"),
        ({"seat": True}, "seat"),
        ({"salt": SALT.hex()[2:]}, "salt"),
        ({"salt": SALT.hex() + "00"}, "salt"),
        ({"salt": SALT.hex() + "\n"}, "salt"),
        ({"salt": "zz" * 32}, "salt"),
        ({"salt": None}, "salt"),
        ({"digest": SALT.hex()}, "digest"),
    ],
)
def test_nonsense_is_refused_with_the_name_of_what_is_wrong(
    results: Results, items: Items, changed: dict[str, object], field: str
) -> None:
    offers: list[tuple[int, int, bytes]] = []
    with TestClient(application(results, items, taken(offers))) as client:
        answer = client.post("/salts", json=OFFERED | changed)
        assert answer.status_code == 422
        assert answer.json()["detail"].startswith(f"{field}: ")
    assert not offers


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"7", b"\xff" * 40, b'{"task": 7}', b"[" * 1_000])
def test_a_body_that_is_no_offer_is_refused(results: Results, items: Items, body: bytes) -> None:
    offers: list[tuple[int, int, bytes]] = []
    with TestClient(application(results, items, taken(offers))) as client:
        assert client.post("/salts", content=body).status_code == 422
        assert client.post("/salts", content=b" " * (MAX_BODY + 1)).status_code == 413
    assert not offers


@pytest.mark.parametrize(("error", "code"), [(SaltRefused("no seat"), 409), (TooManySalts("full"), 503)])
def test_a_salt_that_the_verifier_refuses_is_refused_with_its_words(
    results: Results, items: Items, error: SaltRefused, code: int
) -> None:
    def refuse(_task: int, _seat: int, _salt: bytes) -> None:
        raise error

    with TestClient(application(results, items, refuse)) as client:
        answer = client.post("/salts", json=OFFERED)
        assert (answer.status_code, answer.json()["detail"]) == (code, str(error))
        assert ("retry-after" in answer.headers) == (code == 503)


def test_a_body_that_is_cut_short_is_refused_without_a_word(
    results: Results, items: Items, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    offers: list[tuple[int, int, bytes]] = []
    app, answered, codes = application(results, items, taken(offers)), Event(), list[int]()

    async def watched(scope: Any, receive: Any, send: Any) -> None:
        async def noted(message: Any) -> None:
            codes.extend([message["status"]] if message["type"] == "http.response.start" else [])
            await send(message)

        try:
            await app(scope, receive, noted)
        finally:
            if scope["type"] == "http":
                answered.set()

    head = b"POST /salts HTTP/1.1\r\nhost: here\r\ncontent-length: 200\r\n\r\n"
    with Serving(watched, "127.0.0.1", 0) as serving:
        with socket.create_connection(("127.0.0.1", serving.port)) as connection:
            connection.sendall(head + b'{"task": 7, ')
        assert answered.wait(30)
    assert (codes, offers) == ([400], [])
    assert (capfd.readouterr().err, caplog.text) == ("", "")
