"""Reads a task's costs from the chain: gas per transaction, payments, and how long tokens were locked."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from eth_utils.abi import function_abi_to_4byte_selector
from eth_utils.address import to_checksum_address

from benchmarks.trust.life import Lived
from benchmarks.trust.market import Market
from protocol.chain.abi import Contract
from protocol.chain.receipts import Event, Receipt
from protocol.dispute.looks import is_look

Gas = dict[str, dict[str, list[int]]]
"""Gas of each transaction, by kind of party and by call. The name of a reverted call ends in `REFUSED`."""
REFUSED: Final = " (refused)"


@dataclass(frozen=True)
class Call:
    """One transaction. `numbers` are the first two words of its arguments, often task and seat."""

    party: str
    function: str
    numbers: tuple[int, int]
    time: int
    receipt: Receipt
    events: tuple[Event, ...]
    """The events that the vault emitted in this transaction."""


@dataclass(frozen=True)
class Record:
    """One task. Payments are in token units; locks are in token units times seconds."""

    looks: int
    seconds: int
    """Seconds from the submission to the settlement."""
    gas: Gas
    seat_fees: list[int]
    look_fees: list[int]
    draw_fees: list[int]
    escrow: int
    """The lock of the submitter's escrow. It does not include the budget, because the budget pays for the
    training.
    """
    delay_penalty: int
    stake: int
    seats: list[int]
    """Seconds from each seat's draw to its release; `lookers` has the same for looks."""
    lookers: list[int]


class Chain:
    """Reads the blocks of a market's chain."""

    def __init__(self, market: Market) -> None:
        self._connection = market.devnet.connection
        self._names = market.names()
        client = market.submitter
        bound = {**client.contracts, client.token.address: client.token.contract}
        bound[client.beacon.address] = client.beacon.contract
        self._functions = {address: _selectors(contract) for address, contract in bound.items()}
        self._vault = client.vault
        self._first = market.first_block

    def before(self) -> Gas:
        """The gas of all transactions that the parties have made since the market was set up. Until the first
        task is posted, these are the transactions that are needed to take part.
        """
        return gas_of(list(self.calls(self._first, self._connection.block().number)))

    def calls(self, first: int, last: int) -> Iterator[Call]:
        """All transactions of the parties in the blocks `first` to `last`, in order."""
        for number in range(first, last + 1):
            block = self._connection.request("eth_getBlockByNumber", hex(number), True)
            for sent in block["transactions"]:
                party = self._names.get(to_checksum_address(sent["from"]))
                if party is not None:
                    yield self._call(party, sent, int(block["timestamp"], 16))

    def _call(self, party: str, sent: Mapping[str, Any], time: int) -> Call:
        data = bytes.fromhex(sent["input"][2:])
        function = self._functions[to_checksum_address(sent["to"])][data[:4]]
        words = int.from_bytes(data[4:36], "big"), int.from_bytes(data[36:68], "big")
        found = self._connection.request("eth_getTransactionReceipt", sent["hash"])
        receipt = Receipt.read(found, function)
        events = receipt.events(self._vault.contract, self._vault.address)
        return Call(party, function, words, time, receipt, tuple(events))

    def record(self, lived: Lived, budget: int) -> Record:
        """The record of one task; `budget` is in token units."""
        calls = list(self.calls(lived.first_block, lived.last_block))
        done = {call.function: call for call in calls if call.receipt.success}
        locks = _locked(calls)
        seats = _bound(calls)
        lasted = done["settle"].time - done["post"].time
        return Record(
            looks=lived.looks,
            seconds=done["settle"].time - done["submit"].time,
            gas=gas_of(calls),
            seat_fees=_paid(calls, "settle")[:-1],
            look_fees=_paid(calls, "attest"),
            draw_fees=_paid(calls, "draw"),
            escrow=locks["post"] - budget * lasted,
            delay_penalty=locks["bid"],
            stake=locks["submit"],
            seats=[seconds for seat, seconds in seats.items() if not is_look(seat)],
            lookers=[seconds for seat, seconds in seats.items() if is_look(seat)],
        )


def gas_of(calls: list[Call]) -> Gas:
    """Gas by party and call. The name of an `attest` or `release` for a look ends in " look"; the name of a
    reverted call ends in `REFUSED`.
    """
    found: Gas = defaultdict(lambda: defaultdict(list))
    for call in calls:
        name = call.function
        if name in ("attest", "release") and is_look(call.numbers[1]):
            name += " look"
        if not call.receipt.success:
            name += REFUSED
        found[call.party][name].append(call.receipt.gas_used)
    return {party: dict(sorted(each.items())) for party, each in found.items()}


def _selectors(contract: Contract) -> dict[bytes, str]:
    return {
        function_abi_to_4byte_selector(entry): entry["name"]
        for entry in contract.abi
        if entry["type"] == "function"
    }


def _paid(calls: list[Call], function: str) -> list[int]:
    """Amounts paid out of locks in calls of the function `function`, in order. A settlement pays the seats
    first, then the solver.
    """
    return [
        event.arguments["amount"]
        for call in calls
        if call.function == function
        for event in call.events
        if event.name == "Paid"
    ]


def _locked(calls: list[Call]) -> Counter[str]:
    """For each function that locked amounts: the sum of these amounts, each times the seconds for which it
    was locked.
    """
    maker: dict[int, str] = {}
    found: Counter[str] = Counter()
    for call in calls:
        for event in call.events:
            if event.name not in ("Locked", "Released", "Paid", "Burned"):
                continue
            lock: int = event.arguments["lock"]
            if event.name == "Locked":
                maker[lock] = call.function
                found[call.function] -= event.arguments["amount"] * call.time
            elif lock in maker:
                found[maker[lock]] += event.arguments["amount"] * call.time
    return found


def _bound(calls: list[Call]) -> dict[int, int]:
    """Seconds between the draw of each seat or look and its release, by seat number."""
    drawn, since, until = 0, {}, {}
    for call in calls:
        seat = call.numbers[1]
        if not call.receipt.success:
            continue
        if call.function == "draw":
            drawn = call.time
        elif call.function == "attest":
            since[seat] = drawn
        elif call.function == "release":
            until[seat] = call.time
    return {seat: until[seat] - begun for seat, begun in since.items()}
