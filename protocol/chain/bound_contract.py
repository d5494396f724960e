"""Base of the typed contracts: a contract at an address, read through a connection and written through a
sender.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eth_utils.crypto import keccak

from protocol.chain.abi import Contract
from protocol.chain.blocks import BlockId
from protocol.chain.connection import Connection
from protocol.chain.errors import AccountError
from protocol.chain.fees import Call, unsigned
from protocol.chain.idempotency import Idempotency
from protocol.chain.receipts import Event, Receipt
from protocol.chain.transactions import Sender, Sent


class BoundContract:
    """A contract at an address. Without a sender it can only be read."""

    def __init__(
        self, contract: Contract, address: str, connection: Connection, sender: Sender | None
    ) -> None:
        self.contract = contract
        self.address = address
        self.connection = connection
        self.sender = sender
        self._idempotency = None if sender is None else Idempotency(sender.journal, connection)

    def read(self, function: str, *arguments: Any, block: BlockId = "latest") -> Any:
        """The single value (or struct, as a tuple) that a view function returns."""
        values = self.read_all(function, *arguments, block=block)
        return values[0]

    def read_all(self, function: str, *arguments: Any, block: BlockId = "latest") -> tuple[Any, ...]:
        """All values that a view function returns."""
        return self.connection.call(self.contract, self.address, function, *arguments, block=block)

    def ask_ahead(self, function: str, *lists: Sequence[Any], block: BlockId = "latest") -> None:
        """Prefetch the results of several calls of a view function with few requests. Each of `lists` holds
        the arguments of one call. Call this only inside `Connection.view`. Raises RpcUnavailable.
        """
        self.connection.ask_ahead(self.contract, self.address, function, *lists, block=block)

    def write(self, function: str, *arguments: Any, intent: str | None = None, value: int = 0) -> Receipt:
        """Send a call with `value` wei and wait for its receipt. Without an `intent`, the call is a new one,
        unless an interrupted command sent the same call and its transaction is not mined yet: then this waits
        for that transaction. Raises AccountError if there is no sender, and what `Sender.send` raises.
        """
        sender, call = self._sender(function), self._call(function, arguments, value)
        if intent is not None:
            return sender.send(call, intent)
        assert self._idempotency is not None, "there is a sender"
        with self._idempotency.intent(self._named(function, arguments)) as own:
            return sender.send(call, own)

    def interrupted(self, function: str, *arguments: Any) -> str | None:
        """The intent under which an interrupted command sent this call without seeing the outcome; None if
        there is no such command.
        """
        return (
            None
            if self._idempotency is None
            else self._idempotency.unfinished(self._named(function, arguments))
        )

    def unfinished(self, function: str) -> list[tuple[str, tuple[Any, ...]]]:
        """For each call of `function` that has an unknown outcome: its intent and its arguments, the newest
        call first. Either an interrupted command sent the call, or a re-organisation removed its transaction
        and `Sender.recover` sent the transaction again. To wait for the transaction, pass the intent and the
        arguments to `write`.
        """
        if self.sender is None or self._idempotency is None:
            return []
        unseen = self._idempotency.unseen(f"own:{self.address}:{function}:")
        found = {entry.intent: unsigned(entry.raw, self.connection.chain_id)["data"] for entry in unseen}
        return [(one, tuple(self.contract.arguments(found[one]).values())) for one in reversed(found)]

    def write_once(self, function: str, *arguments: Any, about: str = "", value: int = 0) -> Receipt:
        """Like `write`, but never carries out the same call (with the same `about`) twice, even across restarts."""
        return self.write(function, *arguments, intent=self._intent(function, arguments, about), value=value)

    def hand_over(self, calls: Sequence[tuple[str, Sequence[Any]]], about: str = "") -> list[Sent]:
        """Send several calls without waiting for a block, each only once as in `write_once`. Each call is a
        function and its arguments.

        Raises AccountError, and what `Sender.hand_over` raises.
        """
        sender = self._sender(", ".join(function for function, _ in calls))
        return sender.hand_over([(self._call(*call), self._intent(*call, about)) for call in calls])

    def is_signed(self, function: str, *arguments: Any, about: str = "") -> bool:
        """Whether this `write_once` call was signed in a transaction that is mined or may still be mined. If
        so, repeating the call sends nothing new.
        """
        return self.sender is not None and bool(
            self.sender.journal.of_intent(self._intent(function, arguments, about))
        )

    def _sender(self, function: str) -> Sender:
        if self.sender is None:
            raise AccountError(
                f"{self.contract.name}.{function}",
                expected="an account to send from",
                got="none",
                remedy="connect with an account",
            )
        return self.sender

    def _call(self, function: str, arguments: Sequence[Any], value: int = 0) -> Call:
        data = self.contract.encode(function, arguments)
        return Call(self.address, data, f"{self.contract.name}.{function}", value)

    def _named(self, function: str, arguments: Sequence[Any]) -> str:
        return f"own:{self._intent(function, arguments, '')}"

    def _intent(self, function: str, arguments: Sequence[Any], about: str) -> str:
        digest = keccak(self.contract.encode(function, arguments)).hex()
        return f"{self.address}:{function}:{about}:{digest}"

    def events(self, receipt: Receipt) -> list[Event]:
        """The events of this contract in a receipt, in order."""
        return receipt.events(self.contract, self.address)

    def event(self, receipt: Receipt, name: str) -> Event:
        """The first event of this name in a receipt."""
        return next(event for event in self.events(receipt) if event.name == name)
