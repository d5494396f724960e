"""What a transaction says and offers: its fields before signing, and again with a higher fee (EIP-1559).
Amounts in wei.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from eth_account.typed_transactions.typed_transaction import TypedTransaction
from hexbytes import HexBytes

from protocol.chain.connection import Connection
from protocol.chain.errors import InsufficientFunds


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
    estimate = int(connection.request("eth_estimateGas", query, label=call.label), 16)
    block = connection.block()
    tip = int(connection.request("eth_maxPriorityFeePerGas"), 16)
    fields: dict[str, Any] = {
        "type": 2,
        "chainId": connection.chain_id,
        "nonce": nonce,
        "gas": min(int(estimate * gas_margin) + 10_000, block.gas_limit),
        "maxPriorityFeePerGas": tip,
        # Twice the base fee outlasts six full blocks in a row, each of which raises it by an eighth.
        "maxFeePerGas": 2 * block.base_fee + tip,
        "value": call.value,
        "data": call.data,
        "to": call.to if call.to is not None else b"",
    }
    _require_balance(connection, sender, fields)
    return fields


def higher_offer(connection: Connection, sender: str, raw: bytes) -> dict[str, Any]:
    """The fields of a signed transaction with fees that nodes take as a replacement: an eighth more. Raises
    InsufficientFunds.
    """
    fields = dict(TypedTransaction.from_bytes(HexBytes(raw)).as_dict())
    for signature in ("v", "r", "s"):
        fields.pop(signature)
    tip = -(-fields["maxPriorityFeePerGas"] * 9 // 8) + 1
    fields["maxPriorityFeePerGas"] = tip
    fields["maxFeePerGas"] = max(
        -(-fields["maxFeePerGas"] * 9 // 8) + 1, 2 * connection.block().base_fee + tip
    )
    _require_balance(connection, sender, fields)
    return fields


def _require_balance(connection: Connection, sender: str, fields: dict[str, Any]) -> None:
    needed = fields["gas"] * fields["maxFeePerGas"] + fields["value"]
    available = connection.balance(sender)
    if available < needed:
        raise InsufficientFunds(sender, needed, available)
