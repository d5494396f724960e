"""All transactions that emitted an event of the deployment's contracts, decoded, with their gas.

The ledger reads only events, receipts, call data and views. These are the only sources of the outcomes and
costs in a report.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eth_abi.abi import decode
from eth_utils.abi import function_abi_to_4byte_selector, get_abi_input_types

from protocol.chain.abi import Contract
from protocol.chain.client import Client
from protocol.chain.events import Follower
from protocol.chain.receipts import Event
from protocol.dispute.keys import priority_commitment, steps_key


@dataclass(frozen=True, slots=True)
class Act:
    """One mined transaction: sender, call, gas and emitted events. `time` is the time of its block."""

    transaction: str
    sender: str
    function: str
    arguments: Mapping[str, Any]
    gas: int
    block: int
    time: int
    events: tuple[Event, ...]

    def event(self, name: str) -> Event | None:
        """The first event called `name`; None if there is none."""
        return next((event for event in self.events if event.name == name), None)


class Ledger:
    """Follows the contracts of one deployment. Call `update` repeatedly."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._contracts = client.contracts
        self._follower = Follower(client.connection, self._contracts, client.deployment.block + 1)
        self.acts: list[Act] = []

    def update(self) -> list[Act]:
        """Read the acts since the last call, and return them in the chain's order."""
        events: dict[str, list[Event]] = {}
        for event in self._follower.poll().events:
            events.setdefault(event.log.transaction, []).append(event)
        found = [self._act(transaction, tuple(left)) for transaction, left in events.items()]
        self.acts += found
        return found

    def events(self, name: str, **arguments: object) -> list[Event]:
        """All events called `name` whose arguments have the given values."""
        return [
            event
            for act in self.acts
            for event in act.events
            # Games and juries both emit `Judged`; the arguments distinguish them.
            if event.name == name and all(event.arguments.get(k) == v for k, v in arguments.items())
        ]

    def segments(self, task: int, seat: int) -> list[int]:
        """The segments of a seat or look, in the order in which they were drawn. The contract never changes
        them after the draw.
        """
        return self._client.audit.segments(task, seat)

    def segments_per_seat(self, task: int) -> int:
        """The number of segments per seat, q, in a task's terms."""
        return self._client.market.terms(task).segments_per_verifier

    def of_game(self, game: int) -> list[Act]:
        """The transactions of one game: its commitment, its moves, and the claims on its path."""
        opened = self.events("Challenged", game=game)[0]
        task, challenger = opened.arguments["task"], opened.arguments["challenger"]
        claims = self._claims(game, task)
        commitment = self._commitment(opened, challenger)
        return [act for act in self.acts if any(_belongs(e, game, claims, commitment) for e in act.events)]

    def calls(self, game: int) -> tuple[int, ...]:
        """The call instructions through which a game descended, in order."""
        return tuple(event.arguments["n"] for event in self.events("CallSelected", game=game))

    def _claims(self, game: int, task: int) -> set[bytes]:
        segments = self.events("SegmentSelected", game=game)
        claims = {steps_key(task, event.arguments["segment"]) for event in segments}
        for name in ("StepSelected", "CallSelected"):
            claims |= {event.arguments["claim"] for event in self.events(name, game=game)}
        return claims

    def _commitment(self, opened: Event, challenger: str) -> bytes:
        act = next(act for act in self.acts if act.transaction == opened.log.transaction)
        segment = act.arguments.get("segment", 2**32 - 1)
        chain, calls = self._client.connection.chain_id, self._client.commitments.address
        task, salt = act.arguments["task"], act.arguments["salt"]
        return priority_commitment(chain, calls, task, segment, challenger, salt)

    def _act(self, transaction: str, events: tuple[Event, ...]) -> Act:
        connection = self._client.connection
        sent = connection.request("eth_getTransactionByHash", transaction)
        receipt = connection.receipt(transaction)
        assert receipt is not None, "a transaction with events is mined"
        block = int(receipt["blockNumber"], 16)
        function, arguments = decode_call(list(self._contracts.values()), sent["input"])
        time = connection.block(block).time
        return Act(
            transaction, sent["from"], function, arguments, int(receipt["gasUsed"], 16), block, time, events
        )


def decode_call(contracts: Sequence[Contract], text: str) -> tuple[str, dict[str, Any]]:
    """Name and arguments of a call, decoded with the contracts' ABIs. If no ABI has the called function, the
    result is ("", {}).
    """
    data = bytes.fromhex(text.removeprefix("0x"))
    for contract in contracts:
        for entry in contract.abi:
            if entry["type"] == "function" and function_abi_to_4byte_selector(entry) == data[:4]:
                names = [str(item.get("name")) for item in entry.get("inputs", [])]
                return entry["name"], dict(
                    zip(names, decode(get_abi_input_types(entry), data[4:]), strict=True)
                )
    return "", {}


def _belongs(event: Event, game: int, claims: set[bytes], commitment: bytes) -> bool:
    arguments = event.arguments
    if event.name in ("StepsPosted", "TracePosted"):
        return arguments["claim"] in claims
    if event.name == "Committed":
        return bytes(arguments["commitment"]) == commitment
    return event.contract == "DisputeGame" and arguments.get("game") == game
