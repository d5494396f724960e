"""What the client measures of a chain."""

from __future__ import annotations

import pytest

from protocol.chain.devnet import Devnet
from tests.chain.conftest import Connect

pytestmark = pytest.mark.chain


def test_the_time_between_blocks_is_the_usual_one_whatever_the_clock_did_once(
    chain: Devnet, connected: Connect
) -> None:
    client = connected(1)
    time = chain.connection.block().time
    for seconds in (12, 12, 12, 3_600, 12, 24, 12, 12):
        time += seconds
        chain.connection.request("evm_setNextBlockTimestamp", hex(time))
        chain.mine()
    assert client.block_seconds == 12
