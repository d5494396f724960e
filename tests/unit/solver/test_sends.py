"""Transactions that are sent beside the solver's loop. A task sends at most one of each kind at a time, and
no error is lost.
"""

from __future__ import annotations

from threading import Event
from time import monotonic, sleep

import pytest

from protocol.chain.errors import NotMined
from solver.sends import Sends


def until_ended(sends: Sends, task: int, what: str) -> None:
    deadline = monotonic() + 20
    while (task, what) not in sends.ended():
        assert monotonic() < deadline
        sleep(0.001)


def test_the_same_is_not_begun_again_before_its_end_was_looked_at() -> None:
    sends, mined, sent = Sends(), Event(), []

    def send() -> None:
        sent.append(1)
        assert mined.wait(20)

    sends.begin(7, "settle", send)
    sends.begin(7, "settle", send)
    sends.begin(7, "withdraw", mined.wait)
    assert sends.busy(7, "settle")
    assert not sends.busy(8, "settle")
    mined.set()
    until_ended(sends, 7, "settle")
    sends.begin(7, "settle", send)
    sends.finish(7, "settle")
    assert sent == [1]
    sends.begin(7, "settle", send)
    sends.close()
    assert sent == [1, 1]


def test_what_ended_it_is_raised_once() -> None:
    sends = Sends()

    def fail() -> None:
        raise NotMined("settle", expected="a receipt", got="none", remedy="wait")

    sends.begin(7, "settle", fail)
    until_ended(sends, 7, "settle")
    with pytest.raises(NotMined):
        sends.finish(7, "settle")
    assert not sends.any
