"""Alerts to a webhook: a real server accepts them, refuses them, hangs, redirects, or is unreachable."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from time import monotonic
from types import SimpleNamespace
from typing import Any, cast

import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from protocol.chain.views import TaskStatus
from protocol.node import logs
from protocol.node.database import DatabaseError, Identity
from protocol.node.monitoring import webhook
from protocol.node.monitoring.alerts import MOST_TEXT, Alarm, Alerts, Seen, changes
from protocol.node.monitoring.outbox import MOST, Outbox, Raised, open_outbox
from protocol.node.monitoring.posting import GIVEN_UP, Poster
from protocol.node.monitoring.webhook import NotTaken, Webhook
from protocol.node.party.followed import follow
from tests.receiver import SECRET, Receiver

IDENTITY = Identity("0xchain", "0xmarket", "0xaccount")
ABOUT = {"node": "solver", "chain": 31337, "account": "0xaccount"}


@pytest.fixture
def receiver() -> Iterator[Callable[..., Receiver]]:
    with ExitStack() as stack:
        yield lambda *answers: stack.enter_context(Receiver(*answers))


def alerts_at(folder: Path, registry: CollectorRegistry | None = None) -> Alerts:
    outbox, damaged = open_outbox(folder / "alerts.sqlite", IDENTITY)
    assert damaged is None
    return Alerts(logs.get("test"), registry or CollectorRegistry(), ABOUT, outbox, posts=True)


def poster(alerts: Alerts, hook: Webhook, clock: Callable[[], float] = lambda: 0.0, **more: float) -> Poster:
    return Poster(alerts, hook, logs.get("test"), CollectorRegistry(), clock=clock, **more)


def test_an_alert_is_posted_once_with_all_that_it_says(
    tmp_path: Path, receiver: Callable[..., Receiver]
) -> None:
    taking, alerts = receiver(), alerts_at(tmp_path)
    alerts.tell(Alarm.DEADLINE, "train: 59 s left", "0xmarket", 3, "train 7")
    alerts.tell(Alarm.DEADLINE, "train: 58 s left", "0xmarket", 3, "train 7")
    post = poster(alerts, taking.hook)
    assert post.post()
    assert not post.post()
    (document,) = taking.taken
    assert taking.paths == [f"/hooks/{SECRET}?sig={SECRET}"]
    assert len(document.pop("id")) == 32
    assert document.pop("at") > 1_700_000_000
    assert document == {
        "version": 1,
        "event": "deadline",
        "task": 3,
        **ABOUT,
        "market": "0xmarket",
        "text": "train: 59 s left",
    }
    alerts.close()


def test_a_receiver_that_fails_twice_gets_it_at_the_third_try(
    tmp_path: Path, receiver: Callable[..., Receiver]
) -> None:
    now = 0.0
    taking, alerts = receiver(500, 503), alerts_at(tmp_path)
    post = poster(alerts, taking.hook, lambda: now)
    alerts.tell(Alarm.SETTLED, "paid", "0xmarket", 1)
    with capture_logs() as said:
        assert not post.post()
        now = 0.9
        assert not post.post(), "it rests"
        now = 1.0
        assert not post.post()
        now = 2.9
        assert not post.post()
        now = 3.0
        assert post.post()
    assert [line["rest"] for line in said] == [1.0, 2.0]
    assert len(taking.paths) == 3
    assert [one["event"] for one in taking.taken] == ["settled"]
    assert SECRET not in json.dumps(said)
    assert said[0]["error"] == "expected a status from 200 to 299, got 500"
    alerts.close()


def test_what_a_killed_process_has_not_posted_the_next_one_posts(
    tmp_path: Path, receiver: Callable[..., Receiver]
) -> None:
    taking, first = receiver(500), alerts_at(tmp_path)
    first.see("0xmarket", 1, Seen("submitted", 4, 0, 100), 1e9, 100)
    first.see("0xmarket", 1, Seen("submitted", 4, 1, 110), 1e9, 110)
    assert not poster(first, taking.hook).post()
    second = alerts_at(tmp_path)  # the first one is as a killed process leaves it
    second.see("0xmarket", 1, Seen("submitted", 4, 1, 120), 1e9, 120)
    post = poster(second, taking.hook)
    assert post.post()
    assert not post.post()
    assert [(one["event"], one["task"]) for one in taking.taken] == [("challenged", 1)]
    last = second.last("0xmarket", 1)
    assert last is not None
    assert last.since == 100
    first.close()
    second.close()


@pytest.mark.parametrize("seconds", [0.2])
def test_a_receiver_that_hangs_is_given_up(receiver: Callable[..., Receiver], seconds: float) -> None:
    hanging = receiver(lambda handler: handler.server.ended.wait(30))
    began = monotonic()
    with pytest.raises(NotTaken, match=r"expected an answer within 0.2 s, got none"):
        hanging.hook.post({"version": 1}, seconds)
    assert monotonic() - began < 10


def test_a_receiver_that_trickles_or_floods_is_given_up(receiver: Callable[..., Receiver]) -> None:
    def trickle(handler: Any) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nx: ")
        while not handler.server.ended.wait(0.02):
            handler.wfile.write(b"a")

    def flood(handler: Any) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
        while not handler.server.ended.is_set():
            handler.wfile.write(b"x: " + b"a" * 60_000 + b"\r\n")

    for answer in (trickle, flood):
        with pytest.raises(NotTaken):
            receiver(answer).hook.post({"version": 1}, 0.5)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_no_redirect_is_followed(receiver: Callable[..., Receiver], status: int) -> None:
    redirecting = receiver(status)
    with pytest.raises(NotTaken, match=f"got {status}"):
        redirecting.hook.post({"version": 1})
    assert len(redirecting.paths) == 1


def test_nobody_at_the_address_is_no_error_of_the_node(tmp_path: Path) -> None:
    alerts = alerts_at(tmp_path)
    alerts.tell(Alarm.SILENT, "nothing")
    with capture_logs() as said:
        assert not poster(alerts, Webhook.parse(f"http://127.0.0.1:1/{SECRET}")).post()
    assert (said[0]["webhook"], said[0]["error"]) == (
        "http://127.0.0.1:1/…",
        "expected an HTTP answer, got ConnectError",
    )
    alerts.close()


@pytest.mark.parametrize(
    "text",
    [
        f"http://example.org/{SECRET}",
        f"http://192.168.1.5/{SECRET}",
        f"http://localhost.example.org/{SECRET}",
        f"ftp://example.org/{SECRET}",
        f"https://user:{SECRET}@example.org/",
        f"https://example.org/#{SECRET}",
        f"https://example.org/ {SECRET}",
        f"https://example.org/?a={SECRET}&a=2",
        f"https://example.org/?{SECRET}",
        f"file:///{SECRET}",
        "",
    ],
)
def test_no_other_address_is_taken_and_none_is_told(text: str) -> None:
    with pytest.raises(ValueError, match="expected") as raised:
        Webhook.parse(text)
    assert SECRET not in str(raised.value)
    assert raised.value.__cause__ is None


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"https://example.org/{SECRET}/?sig={SECRET}", "https://example.org/…"),
        (f"http://127.0.0.1:9/{SECRET}", "http://127.0.0.1:9/…"),
        (f"http://[::1]:9/{SECRET}", "http://[::1]:9/…"),
        (f"http://localhost/{SECRET}", "http://localhost/…"),
    ],
)
def test_an_address_shows_its_host_alone(text: str, shown: str) -> None:
    found = Webhook.parse(text)
    assert (str(found), repr(found)) == (shown, f"Webhook({shown!r})")
    assert found.address.path.endswith("/") is text.partition("?")[0].endswith("/")


def test_a_damaged_file_keeps_no_node_from_starting(tmp_path: Path) -> None:
    path = tmp_path / "alerts.sqlite"
    path.write_bytes(b"no database, but bytes" * 100)
    outbox, damaged = open_outbox(path, IDENTITY)
    assert damaged == tmp_path / "alerts.sqlite.damaged"
    assert outbox.waiting() == 0
    outbox.close()


@pytest.mark.parametrize("is_open", [False, True])
def test_a_file_that_is_moved_aside_keeps_its_last_alerts(tmp_path: Path, is_open: bool) -> None:
    """They may be only in the file's journal: after a kill, or while another process has the file open."""
    (tmp_path / "live").mkdir()
    outbox, _ = open_outbox(tmp_path / "live" / "alerts.sqlite", IDENTITY)
    outbox.put([Raised(None, {})], 1)
    for file in (tmp_path / "live").iterdir():  # as a kill would leave them
        shutil.copy(file, tmp_path)
    outbox.close()
    assert (tmp_path / "alerts.sqlite-wal").stat().st_size
    path = tmp_path / "alerts.sqlite"
    with ExitStack() as stack:
        if is_open:
            reader = stack.enter_context(closing(sqlite3.connect(path)))
            reader.execute("SELECT count(*) FROM alerts").fetchall()
        other, aside = open_outbox(path, replace(IDENTITY, market="0xother"))
        other.close()
    assert aside is not None
    with closing(sqlite3.connect(aside)) as found:
        assert found.execute("SELECT count(*) FROM alerts").fetchall() == [(1,)]


def test_a_database_that_is_refused_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "alerts.sqlite"
    outbox, _ = open_outbox(path, IDENTITY)
    outbox.close()
    with pytest.raises(DatabaseError):
        Outbox(path, replace(IDENTITY, market="0xother"))
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize(("segments", "after"), [(1, 400), (2, 200), (3, 400 / 3), (4, 100), (100, 100)])
def test_a_solver_of_few_segments_may_be_silent_for_longer(segments: int, after: float) -> None:
    """With one segment, a solver commits nothing before the end of its training period of 300 s."""
    found: list[float] = []
    alerts = SimpleNamespace(see=lambda _market, _task, _seen, silent, _now: found.append(silent))
    view = SimpleNamespace(task=1, status=TaskStatus.TRAINING, size=0, open_games=0)
    terms = SimpleNamespace(training_period=300, segments=segments)
    for minutes in (None, 7.0):
        settings = SimpleNamespace(silent_minutes=minutes)
        follow(cast(Any, alerts), cast(Any, settings), "0xmarket", cast(Any, view), cast(Any, terms), 1)
    assert found == [pytest.approx(after), 420]


def test_a_file_that_is_locked_is_not_moved_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outbox, _ = open_outbox(tmp_path / "alerts.sqlite", IDENTITY)
    outbox.put([Raised(None, {})], 1)

    def full(*_arguments: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(Outbox, "_prepare", full)
        with pytest.raises(Exception, match="disk is full"):
            open_outbox(tmp_path / "alerts.sqlite", IDENTITY)
    assert outbox.waiting() == 1
    outbox.close()


def test_what_the_disk_does_not_take_is_kept_in_memory(
    tmp_path: Path, receiver: Callable[..., Receiver], monkeypatch: pytest.MonkeyPatch
) -> None:
    taking, alerts = receiver(500), alerts_at(tmp_path)

    def full(*_arguments: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(Outbox, "put", full)
    alerts.tell(Alarm.DISK_LOW, "full")
    alerts.tell(Alarm.RPC_STALE, "away")
    assert alerts.count_waiting(0) == 2
    post = poster(alerts, taking.hook, rest=0.0)
    while post.post() or alerts.count_waiting(0):
        pass
    assert sorted(one["event"] for one in taking.taken) == ["disk_low", "rpc_stale"]
    alerts.close()


def test_what_waits_is_bounded_and_does_not_wait_for_ever(tmp_path: Path) -> None:
    outbox, _ = open_outbox(tmp_path / "alerts.sqlite", IDENTITY)
    outbox.put([Raised(None, {"n": number}) for number in range(MOST + 5)], GIVEN_UP)
    assert outbox.drop(GIVEN_UP, 0) == 5
    found = outbox.next()
    assert found is not None
    assert found.document == {"n": 5}, "the oldest go"
    outbox.tried(found.id)
    later = outbox.next()
    assert later is not None
    assert later.document == {"n": 6}, "one that is never taken holds no other"
    assert outbox.drop(2 * GIVEN_UP, GIVEN_UP + 1) == MOST
    outbox.close()


@pytest.mark.parametrize("letter", ["\U0001f600", "\x00", "\ud800", '"'])
def test_a_text_of_any_letters_goes_into_a_document(
    tmp_path: Path, receiver: Callable[..., Receiver], letter: str
) -> None:
    taking, alerts = receiver(), alerts_at(tmp_path)
    alerts.tell(Alarm.ACCOUNT, letter * 10_000, "0xmarket", 2**60)
    assert poster(alerts, taking.hook).post()
    (document,) = taking.taken
    assert document["text"] == ("?" if letter == "\ud800" else letter) * MOST_TEXT


def test_a_document_is_small(tmp_path: Path, receiver: Callable[..., Receiver]) -> None:
    taking, alerts = receiver(), alerts_at(tmp_path)
    alerts.tell(Alarm.ACCOUNT, "ü" * 100_000)
    assert poster(alerts, taking.hook).post()
    (document,) = taking.taken
    assert len(json.dumps(document)) < webhook.MOST_BYTES
    alerts.close()


T0 = Seen("training", 2, 0, 1_000)


@pytest.mark.parametrize(
    ("before", "now", "at", "expected"),
    [
        (None, T0, 1_000, []),
        (T0, T0, 1_100, []),
        (T0, T0, 1_101, [Alarm.SILENT]),
        (T0, Seen("submitted", 5, 0, 1_050), 1_050, []),
        (None, Seen("settled", 5, 0, 1_050), 1_050, []),
        (None, Seen("submitted", 5, 1, 1_050), 1_050, [Alarm.CHALLENGED]),
        (Seen("submitted", 5, 1, 9), Seen("submitted", 5, 1, 9), 10, []),
        (Seen("submitted", 5, 1, 9), Seen("submitted", 5, 2, 9), 10, [Alarm.CHALLENGED]),
        (Seen("submitted", 5, 1, 9), Seen("slashed", 5, 0, 10), 10, [Alarm.SLASHED]),
        (Seen("submitted", 5, 0, 9), Seen("settled", 5, 0, 10), 10, [Alarm.SETTLED]),
        (Seen("submitted", 5, 0, 9), Seen("unpaid", 5, 0, 10), 10, [Alarm.UNPAID]),
        (Seen("unpaid", 5, 0, 9), Seen("void", 5, 0, 10), 10, [Alarm.VOID]),
        (Seen("training", 5, 0, 9), Seen("refunded", 5, 0, 10), 10, [Alarm.REFUNDED]),
    ],
)
def test_what_a_look_at_a_task_tells(before: Seen | None, now: Seen, at: int, expected: list[Alarm]) -> None:
    assert [alarm for alarm, _, _ in changes(before, now, 100, at)] == expected


def test_silence_is_told_once_until_there_is_progress(tmp_path: Path) -> None:
    registry = CollectorRegistry()
    alerts = alerts_at(tmp_path, registry)

    def silent() -> float | None:
        return registry.get_sample_value("assay_node_alerts_total", {"alarm": "silent"})

    for at in (0, 50, 101, 150, 200):
        alerts.see("0xmarket", 1, Seen("training", 2, 0, at), 100, at)
    assert silent() == 1
    for at in (210, 311, 320):
        alerts.see("0xmarket", 1, Seen("training", 3, 0, at), 100, at)
    assert silent() == 2
    alerts.close()
