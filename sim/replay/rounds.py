"""Signs rounds of the development chain's beacon. The beacon's secret key is public."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from protocol.beacon.bn254 import round_message, sign
from protocol.beacon.keys import secret_of
from protocol.chain.accounts import DEVELOPMENT_CHAIN, development_account

_SECRET: Final = secret_of(bytes(development_account(0, DEVELOPMENT_CHAIN).key))


@lru_cache(maxsize=64)
def signature(number: int) -> bytes:
    """The signature of a round."""
    return sign(_SECRET, round_message(number))
