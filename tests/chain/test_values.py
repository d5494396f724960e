"""Strings from the chain are readable, whatever bytes a stranger has put into them."""

from __future__ import annotations

import pytest
from eth_abi.abi import encode
from hypothesis import given
from hypothesis import strategies as st

from protocol.chain.errors import Reverted
from protocol.chain.fees import Call
from protocol.chain.receipts import Receipt
from protocol.chain.reverts import explain
from protocol.chain.values import decode_values
from tests.chain.conftest import Connect
from tests.chain.rounds import ANYTHING
from tests.chain.trees import fund, terms


@given(st.binary(max_size=80))
def test_any_bytes_are_a_string_no_longer_than_they_are(data: bytes) -> None:
    (found,) = decode_values(["string"], encode(["bytes"], [data]))
    assert len(found.encode()) <= len(data)
    try:
        assert found == data.decode().replace("\ufffd", "?")
    except UnicodeDecodeError:
        assert "?" in found


def test_revert_data_is_read_in_every_form() -> None:
    assert explain(bytes.fromhex("08c379a0") + encode(["bytes"], [b"no \xff"])) == (
        "Error",
        {"message": "no ?"},
    )
    assert explain(bytes.fromhex("4e487b71") + encode(["uint256"], [0x11])) == ("Panic", {"code": "0x11"})
    assert explain(bytes.fromhex("4e487b71") + b"short") == (
        "UndecodableError",
        {"data": bytes.fromhex("4e487b71") + b"short"},
    )
    assert explain(b"\1\2\3\4") == ("UnknownError", {"data": b"\1\2\3\4"})
    assert explain(b"") == ("NoReason", {})


@pytest.mark.chain
def test_a_task_whose_bundle_address_is_no_text_stops_nobody(connected: Connect) -> None:
    hostile, verifier = connected(1), connected(3)
    fund(hostile, 2000)
    fund(verifier, 100)
    verifier.audit.register(0, ANYTHING)
    market = hostile.market
    data = market.contract.encode("post", [terms(bundle="x" * 1024).abi()])
    spoiled = data.replace(b"x" * 1024, b"\xff" * 1024)
    assert hostile.sender is not None
    receipt: Receipt = hostile.sender.send(Call(market.address, spoiled, "post"))
    assert market.event(receipt, "Posted").arguments["bundle"] == "?" * 1024
    assert verifier.market.terms(1).bundle == "?" * 1024
    with pytest.raises(Reverted, match="UnknownTask"):
        verifier.market.terms(2)
