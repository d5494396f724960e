"""Beacon relays that are silent, lie, or fail like any peer.

One honest relay is enough; without one, the failures are reported in time.
`tests/unit/beacon/test_relays.py` covers everything else that a relay may say.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext

import pytest

from protocol.beacon.bn254 import round_message, sign
from protocol.beacon.errors import NoRelay
from tests.campaign.beacon_proxy import LIES, BeaconProxy, Lie
from tests.campaign.faulty import FAULTS, bounded, make
from tests.campaign.peer_proxy import Mode, PeerProxy
from tests.unit.beacon.networks import GENESIS, PERIOD, SECRET, beacon, relays

ROUND, NEWEST = 7, 9
RIGHT = sign(SECRET, round_message(ROUND))
PATIENCE = 0.5


@pytest.fixture(scope="module")
def relay() -> Iterator[str]:
    with beacon(lambda: GENESIS + (NEWEST - 1) * PERIOD) as url:
        yield url


def test_a_silent_relay_keeps_nobody_from_the_honest_one(relay: str) -> None:
    with BeaconProxy(relay) as proxy:
        proxy.mode = "silent"
        with bounded(PATIENCE), pytest.raises(NoRelay, match=r"0 bytes in 0\.5 s"):
            relays([proxy.url], PATIENCE).signature(ROUND)
        assert relays([proxy.url, relay]).signature(ROUND) == RIGHT
        proxy.mode = "honest"
        assert relays([proxy.url]).signature(ROUND) == RIGHT


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("number", [ROUND, NEWEST + 5])
def test_a_lying_relay_is_not_believed_about_a_round_that_is_due_or_not(
    relay: str, lie: Lie, number: int
) -> None:
    with BeaconProxy(relay) as proxy:
        proxy.mode, proxy.lie = "lying", lie
        with pytest.raises(NoRelay, match="round 10" if lie == "a future round" else "not the network's"):
            relays([proxy.url]).signature(number)
        if number == ROUND:
            assert relays([proxy.url, relay]).signature(number) == RIGHT


@pytest.mark.parametrize(("mode", "form"), [fault for fault in FAULTS if fault[0] != "silent"])
def test_a_relay_with_the_faults_of_a_peer_is_one_that_has_not_answered(
    relay: str, mode: Mode, form: str
) -> None:
    with PeerProxy(relay) as proxy:
        make(proxy, mode, form)
        asked = relays([proxy.url], PATIENCE)
        # A signature of the right length is verified, and that has no time limit.
        with nullcontext() if mode == "two-faced" else bounded(PATIENCE), pytest.raises(NoRelay):
            asked.signature(ROUND)
        make(proxy, mode, form)
        assert relays([proxy.url, relay]).signature(ROUND) == RIGHT
