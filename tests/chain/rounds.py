"""The development chain's beacon without a server: rounds signed in this process, and helpers."""

from __future__ import annotations

from protocol.beacon import bn254
from protocol.beacon.bn254 import round_message, sign
from protocol.beacon.keys import secret_of
from protocol.chain.accounts import DEVELOPMENT_CHAIN, development_account
from protocol.chain.client import Client
from protocol.chain.devnet import Devnet
from protocol.chain.views import Offer, PendingDraw
from protocol.node.party.rounds import execute_first_draw, show_round

ANYTHING = Offer(speed=2**64 - 1, state_bytes=2**64 - 1, lock=2**128 - 1, fee=0, seat_fee=0, period=2**32 - 1)
"""The offer of an account that takes a seat of any task."""
_SECRET = secret_of(bytes(development_account(0, DEVELOPMENT_CHAIN).key))


def signature(number: int) -> bytes:
    """The signature of a round, even of a future one."""
    return sign(_SECRET, round_message(number))


def word(number: int) -> bytes:
    """The random word of a round, derived from its signature."""
    return bn254.word(signature(number))


def show(client: Client) -> None:
    """Show the newest round to the beacon contract if the last one shown is older than half a day. The market
    accepts tasks only if that round is at most a day old.
    """
    show_round(client, signature)


def draw_first(client: Client, chain: Devnet) -> PendingDraw:
    """Advance the chain's clock to the round of the first pending draw, execute the draw and return it."""
    first = client.audit.first_draw()
    assert first is not None, "no draw was asked for"
    chain.skip(max(0, client.deployment.beacon.time_of(first.round) - client.now()))
    done = execute_first_draw(client, signature)
    assert done is not None, "nobody else draws here"
    assert done[0] == first
    return first
