"""What a transaction says and offers: its fields before signing, and again with a higher fee: a base fee and a tip
(EIP-1559) or one gas price, as the chain has it. Amounts in wei.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import rlp  # type: ignore[import-untyped]
from eth_account.typed_transactions.typed_transaction import TypedTransaction
from hexbytes import HexBytes

from protocol.chain.connection import Block, Connection, block_tag
from protocol.chain.errors import InsufficientFunds, Reverted

_LEGACY: Final = ("nonce", "gasPrice", "gas", "to", "value", "data")
"""Fields of a signed transaction without a type, in order; its signature follows (yellow paper, section 4.2)."""


@dataclass(frozen=True, slots=True)
class Call:
    """What to send: `to` is None for a contract's creation; `label` names it in errors and reports."""

    to: str | None
    data: bytes
    label: str
    value: int = 0


def first_offer(
    connection: Connection, sender: str, call: Call, nonce: int, gas_margin: float
) -> dict[str, Any]:
    """The fields of a new transaction. Raises Reverted if the call is refused as things stand, or
    InsufficientFunds.
    """
    query: dict[str, Any] = {"from": sender, "data": "0x" + call.data.hex(), "value": hex(call.value)}
    if call.to is not None:
        query["to"] = call.to
    block = connection.block()
    estimate = _estimate(connection, query, block, call.label)
    fields: dict[str, Any] = {
        "chainId": connection.chain_id,
        "nonce": nonce,
        "gas": min(int(estimate * gas_margin) + 10_000, block.gas_limit),
        "value": call.value,
        "data": call.data,
        "to": call.to if call.to is not None else b"",
        **_offer(connection, block),
    }
    _require_balance(connection, sender, fields)
    return fields


def higher_offer(connection: Connection, sender: str, raw: bytes) -> dict[str, Any]:
    """The fields of a signed transaction with fees that nodes take as a replacement: an eighth more. Raises
    InsufficientFunds.
    """
    fields = _unsigned(raw, connection.chain_id)
    now = _offer(connection, connection.block())
    for name in ("gasPrice", "maxPriorityFeePerGas", "maxFeePerGas"):
        if name in fields:
            fields[name] = max(-(-fields[name] * 9 // 8) + 1, now.get(name, 0))
    _require_balance(connection, sender, fields)
    return fields


def _estimate(connection: Connection, query: dict[str, Any], block: Block, label: str) -> int:
    """Gas for the call in the next block. What a node refuses, which may be behind, is asked again as of `block`."""
    try:
        return int(connection.request("eth_estimateGas", query, label=label), 16)
    except Reverted as refused:
        at = block_tag(block.hash)
        try:
            return int(connection.request("eth_estimateGas", query, at, label=label, refusals=True), 16)
        except Reverted:
            raise refused from None


def _offer(connection: Connection, block: Block) -> dict[str, Any]:
    """What is offered for gas as things stand."""
    if connection.chain.fees == "legacy":
        # A quarter more than the usual price: it is fixed once the transaction is signed.
        return {"gasPrice": int(connection.request("eth_gasPrice"), 16) * 5 // 4}
    tip = int(connection.request("eth_maxPriorityFeePerGas"), 16)
    # Twice the base fee outlasts six full blocks in a row, each of which raises it by an eighth.
    return {
        "type": 2,
        "maxPriorityFeePerGas": tip,
        "maxFeePerGas": 2 * block.base_fee + tip,
    }


def _unsigned(raw: bytes, chain_id: int) -> dict[str, Any]:
    """The fields of a signed transaction without its signature."""
    if raw[0] < 0xC0:  # a type byte; RLP lists begin at 0xc0 (EIP-2718)
        fields = dict(TypedTransaction.from_bytes(HexBytes(raw)).as_dict())
        return {name: value for name, value in fields.items() if name not in ("v", "r", "s")}
    values = dict(zip(_LEGACY, rlp.decode(raw), strict=False))
    numbers = {name: int.from_bytes(values[name], "big") for name in ("nonce", "gasPrice", "gas", "value")}
    to = "0x" + values["to"].hex() if values["to"] else b""
    return {"chainId": chain_id, **numbers, "to": to, "data": values["data"]}


def _require_balance(connection: Connection, sender: str, fields: dict[str, Any]) -> None:
    price = fields.get("maxFeePerGas", fields.get("gasPrice"))
    needed = fields["gas"] * price + fields["value"]
    available = connection.balance(sender)
    if available < needed:
        raise InsufficientFunds(sender, needed, available)
