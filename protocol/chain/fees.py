"""The fields of a transaction before it is signed, and of its replacement with a higher fee. The fee is a
base fee and a tip (EIP-1559) or one gas price, depending on the chain. Amounts are in wei.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import rlp  # type: ignore[import-untyped]
from hexbytes import HexBytes

from protocol.chain.blocks import Block, block_tag
from protocol.chain.connection import Connection
from protocol.chain.errors import ChainError, InsufficientFunds, Reverted, RpcRefused
from protocol.chain.rpc import Query

MOST: Final = 5
"""The limit for raising the fee of an unmined transaction. The fee is not raised any more once it is this
many times the fee that a new transaction would offer.
"""
_LEGACY: Final = ("nonce", "gasPrice", "gas", "to", "value", "data")
"""Fields of a transaction without a type byte, in order (yellow paper, section 4.2). In a signed transaction,
the signature follows these fields.
"""


@dataclass(frozen=True, slots=True)
class Call:
    """A call to send. `to` is None to create a contract; `label` names the call in errors and reports."""

    to: str | None
    data: bytes
    label: str
    value: int = 0


def gas_of(connection: Connection, sender: str, calls: Sequence[Call]) -> list[int | ChainError]:
    """The gas that each call takes in the next block, or the error of a refused call. All estimates are
    requested together.

    A call may revert only because the node lags. So each call that reverts is estimated once more, alone, at
    the newest block.
    """
    # Without a price, some nodes assume a base fee of 0, so that a deposit would be 0.
    price = 2 * connection.block().base_fee if any(call.value for call in calls) else 0
    queries = [Query("eth_estimateGas", (_question(sender, call, price),), call.label) for call in calls]
    found = connection.request_all(queries)
    return [
        _gas_now(connection, query, gas) if isinstance(gas, Reverted) else _gas(gas)
        for query, gas in zip(queries, found, strict=True)
    ]


class Offers:
    """The fees that an account offers for transactions signed together. The newest block, the fees and the
    balance are read only once. Together, the transactions may not cost more than the balance.
    """

    def __init__(self, connection: Connection, sender: str, gas_margin: float) -> None:
        self._block = connection.block()
        self._fees = _fees(connection, self._block)
        self._left = connection.balance(sender)
        self._chain_id = connection.chain_id
        self._sender = sender
        self._gas_margin = gas_margin

    def first(self, call: Call, gas: int, nonce: int) -> dict[str, Any]:
        """The fields of a new transaction that takes `gas`. Raises InsufficientFunds."""
        fields: dict[str, Any] = {
            "chainId": self._chain_id,
            "nonce": nonce,
            "gas": min(int(gas * self._gas_margin) + 10_000, self._block.gas_limit),
            "value": call.value,
            "data": call.data,
            "to": call.to if call.to is not None else b"",
            **self._fees,
        }
        self._pay(fields)
        return fields

    def higher(self, raw: bytes) -> dict[str, Any]:
        """The fields of a transaction that replaces a signed one. Its fees are at least an eighth higher, so
        that nodes accept the replacement. Raises InsufficientFunds.
        """
        fields = unsigned(raw, self._chain_id)
        for name in ("gasPrice", "maxPriorityFeePerGas", "maxFeePerGas"):
            if name in fields:
                fields[name] = max(-(-fields[name] * 9 // 8) + 1, self._fees.get(name, 0))
        self._pay(fields)
        return fields

    def is_dear(self, raw: bytes) -> bool:
        """Whether a signed transaction offers at least `MOST` times as much for gas as a new transaction would."""
        return _price(unsigned(raw, self._chain_id)) >= MOST * _price(self._fees)

    def _pay(self, fields: dict[str, Any]) -> None:
        needed = fields["gas"] * _price(fields) + fields["value"]
        if self._left < needed:
            raise InsufficientFunds(self._sender, needed, self._left)
        self._left -= needed


def _price(fields: dict[str, Any]) -> int:
    """The highest price that a transaction pays for one gas."""
    return int(fields["maxFeePerGas"] if "maxFeePerGas" in fields else fields["gasPrice"])


def _question(sender: str, call: Call, price: int) -> dict[str, Any]:
    query: dict[str, Any] = {"from": sender, "data": "0x" + call.data.hex(), "value": hex(call.value)}
    if call.value:
        query["gasPrice"] = hex(price)
    return query if call.to is None else query | {"to": call.to}


def _gas_now(connection: Connection, query: Query, refused: Reverted) -> int | ChainError:
    at = block_tag(connection.block().hash)
    try:
        found = connection.request(query.method, *query.parameters, at, label=query.label, refusals=True)
    except Reverted:
        return refused
    except RpcRefused as error:
        return error
    return _gas(found)


def _gas(found: Any) -> int | ChainError:
    return found if isinstance(found, ChainError) else int(found, 16)


def _fees(connection: Connection, block: Block) -> dict[str, Any]:
    """The fee fields to offer now."""
    if connection.chain.fees == "legacy":
        # A quarter more than the usual price, because the price is fixed once the transaction is signed.
        return {"gasPrice": int(connection.request("eth_gasPrice"), 16) * 5 // 4}
    tip = int(connection.request("eth_maxPriorityFeePerGas"), 16)
    # Twice the base fee outlasts six full blocks in a row, each of which raises it by an eighth.
    return {
        "type": 2,
        "maxPriorityFeePerGas": tip,
        "maxFeePerGas": 2 * block.base_fee + tip,
    }


def unsigned(raw: bytes, chain_id: int) -> dict[str, Any]:
    """The fields of a signed transaction without its signature."""
    if raw[0] < 0xC0:  # a type byte; RLP lists begin at 0xc0 (EIP-2718)
        from eth_account.typed_transactions.typed_transaction import TypedTransaction

        fields = dict(TypedTransaction.from_bytes(HexBytes(raw)).as_dict())
        return {name: value for name, value in fields.items() if name not in ("v", "r", "s")}
    values = dict(zip(_LEGACY, rlp.decode(raw), strict=False))
    numbers = {name: int.from_bytes(values[name], "big") for name in ("nonce", "gasPrice", "gas", "value")}
    to = "0x" + values["to"].hex() if values["to"] else b""
    return {"chainId": chain_id, **numbers, "to": to, "data": values["data"]}
