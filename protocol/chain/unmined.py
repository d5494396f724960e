"""Transactions of an account that are not mined yet: signed, journalled, handed over, replaced, or found
lost.

A transaction is signed, written to the journal, and only then handed to the node. Whatever happens in
between, the same bytes are looked up or handed over again, so an intent is never carried out twice. A
transaction that is not mined for a while is replaced by one with the same nonce and a higher fee. Earlier
transactions are replaced in the same way, even if nobody waits for them any more, because no transaction is
mined before those with lower nonces.
"""

from __future__ import annotations

import itertools
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from protocol.chain.connection import Connection
from protocol.chain.errors import ChainError, InsufficientFunds, RpcRefused, RpcUnavailable, WrongChain
from protocol.chain.fees import Call, Offers, gas_of
from protocol.chain.inclusion import Inclusion
from protocol.chain.journal import Entry, Journal, Status

MOST_UNKNOWN: Final = 64
"""Maximum number of waiting transactions of an account, if the last of them was sent by another program. geth
queues as many for an account.
"""

if TYPE_CHECKING:
    from eth_account.signers.local import LocalAccount


@dataclass(frozen=True, slots=True)
class Sending:
    """Options of sending. Times are in seconds."""

    timeout: float = 300.0
    """Time after which NotMined is raised; the transaction stays in the journal."""
    poll: float = 0.2
    look_again: float = 2.0
    """Interval at which lost transactions are looked for and sent again."""
    replace_after: float = 60.0
    """Time without a receipt after which the fee is raised."""
    confirmations: int = 0
    """Blocks that must follow the receipt's block before the receipt counts."""
    gas_margin: float = 1.25
    """Factor for gas estimates, which are exact only for the state of one block: a game may move on before
    the next block.
    """

    @classmethod
    def on(cls, connection: Connection) -> Self:
        """Options that suit the chain's block time: the fee is raised if five block times, at least 10 s,
        pass without a receipt, and NotMined is raised after 25 block times, at least 300 s.
        """
        block = connection.block_time
        return cls(timeout=max(300.0, 25 * block), replace_after=max(10.0, 5 * block))


@dataclass(frozen=True, slots=True)
class Sent:
    """An intent and the nonce of its transactions, which this process or an earlier one has sent. If nothing
    was sent, `refused` is the reason, and `nonce` is None unless a transaction was signed.
    """

    call: Call
    intent: str
    nonce: int | None
    refused: ChainError | None = None


class Unmined:
    """One account's unmined transactions. Only one caller at a time: `Sender` holds the lock."""

    def __init__(
        self, connection: Connection, account: LocalAccount, journal: Journal, sending: Sending
    ) -> None:
        self.connection = connection
        self.account = account
        self.address = str(account.address)
        self.sending = sending
        self.journal = journal
        self.inclusion = Inclusion()
        self._offered: dict[int, float] = {}
        """By nonce: the time (`time.monotonic`) when this process last chose the transaction's fee, or first
        checked the transaction if an earlier process sent it.
        """
        self._mined_at: int | None = None
        """The block at which all sent transactions were first seen mined; None while one of them is not
        mined, or before the first check.
        """
        self._looked_at = 0
        """The newest block at the last check (`_push`)."""

    def _sign(self, calls: Mapping[str, tuple[Call, int]]) -> dict[str, Sent]:
        """Sign, journal and send new transactions. `calls` gives the call and its gas for each intent."""
        offers = self._offers()
        nonces = self._free_nonces(len(calls))
        entries: list[Entry] = []
        sent: dict[str, Sent] = {}
        for intent, (call, gas) in calls.items():
            try:
                entries.append(
                    self._signed(offers.first(call, gas, nonces[len(entries)]), intent, call.label)
                )
            except InsufficientFunds as error:
                sent[intent] = Sent(call, intent, None, error)
        for entry, refused in zip(entries, self._write(entries), strict=True):
            sent[entry.intent] = Sent(calls[entry.intent][0], entry.intent, entry.nonce, refused)
        return sent

    def _offers(self) -> Offers:
        return Offers(self.connection, self.address, self.sending.gas_margin)

    def _signed(self, fields: dict[str, Any], intent: str, label: str) -> Entry:
        signed = self.account.sign_transaction(fields)
        raw, nonce = bytes(signed.raw_transaction), fields["nonce"]
        return Entry("0x" + signed.hash.hex(), intent, label, nonce, raw, Status.PENDING, None)

    def _free_nonces(self, count: int) -> list[int]:
        """The first nonces for which neither the node nor the journal has a transaction, gaps included. A
        nonce for which only the journal has a transaction is not a gap: the node lags, or has lost the
        transaction, and `_push` sends it again.
        """
        first = self.connection.transaction_count(self.address, "pending")
        entries = self.journal.since(max(0, first - 1))
        if first and all(entry.nonce != first - 1 for entry in entries):
            self._require_plausible(first)
        taken = {entry.nonce for entry in entries}
        free = (nonce for nonce in itertools.count(first) if nonce not in taken)
        return list(itertools.islice(free, count))

    def _require_plausible(self, count: int) -> None:
        """Raise RpcRefused if the node counts more than `MOST_UNKNOWN` waiting transactions. `count` is the
        node's count of all transactions of the account, mined and waiting. It is checked only if the journal
        does not have the last of them. A wrong count would be costly: each nonce below a newly signed one
        must be used first, at a fee.
        """
        used = self.connection.transaction_count(self.address)
        if count - used > MOST_UNKNOWN:
            raise RpcRefused(
                f"the transactions of {self.address}",
                f"{count - used} that wait and are not in its journal, more than {MOST_UNKNOWN}",
                "use another node; if they were sent elsewhere, wait until they are mined",
            )

    def _write(self, entries: Sequence[Entry]) -> list[ChainError | None]:
        """Journal signed transactions and send them to the node. Returns, for each transaction, its refusal
        or None. A refused transaction is marked as dropped, unless the node has it anyway. In that case the
        error had another cause, and the transaction counts as accepted.
        """
        self._mined_at = None
        self.journal.write(entries)
        now = time.monotonic()
        self._offered |= {entry.nonce: now for entry in entries}
        for entry in entries:
            self.inclusion.begin(entry.nonce)
        refusals = self._offer(entries)
        doubtful = [entry.hash for entry, refused in zip(entries, refusals, strict=True) if refused]
        known = self.connection.known(doubtful)
        refusals = [None if one.hash in known else why for one, why in zip(entries, refusals, strict=True)]
        for entry, refused in zip(entries, refusals, strict=True):
            if refused is not None:
                self.journal.mark(entry.hash, Status.DROPPED)
                self.inclusion.forget(entry.nonce)
        return refusals

    def _kept(self, entry: Entry) -> ChainError | None:
        return None if self.connection.knows(entry.hash) else self._keep(entry)

    def _keep(self, entry: Entry) -> ChainError | None:
        """Send the node a transaction that it has lost or never got. If the node refuses it, for example
        because the base fee has risen, send a replacement with a higher fee. If the replacement is refused
        too, the transaction is marked as dropped. No replacement is sent, and nothing is dropped, if the
        account cannot pay the higher fee, or if the transaction's fee is already far above the usual one.
        Returns the last refusal, or InsufficientFunds; None if the node accepted the transaction or its
        replacement.
        """
        (refused,) = self._offer([entry])
        if refused is None:
            return None
        try:
            offers = self._offers()
            if offers.is_dear(entry.raw):
                return refused
            refused = self._replace(entry, offers)
        except InsufficientFunds as error:
            return error
        if refused is not None:
            self.journal.mark(entry.hash, Status.DROPPED)
        return refused

    def _offer(self, entries: Sequence[Entry]) -> list[ChainError | None]:
        """Send journalled transactions to the node. Returns, for each transaction, its refusal or None.
        Repeats are harmless, because the bytes and so the hashes are the same.
        """
        answers = self.connection.broadcast([entry.raw for entry in entries]) if entries else []
        refusals: list[ChainError | None] = []
        for answer in answers:
            if isinstance(answer, WrongChain):
                raise answer
            refusals.append(answer if isinstance(answer, ChainError) and _is_refusal(answer) else None)
        return refusals

    def _is_lost(self, entries: list[Entry]) -> bool:
        """Whether none of these attempts can be mined any more, because another transaction used their nonce.
        If so, the attempts are marked as dropped.

        This is certain only once the block that used the nonce is deeper than re-organisations reach. Until
        then, the receipt may be missing because the node lags, and the other transaction may be removed.
        """
        nonce = entries[0].nonce
        if self.connection.transaction_count(self.address) <= nonce:
            return False
        if any(self.connection.receipt(entry.hash) is not None for entry in entries):
            return False
        if not self._was_used_deep(nonce):
            return False
        for entry in entries:
            self.journal.mark(entry.hash, Status.DROPPED)
        return True

    def _was_used_deep(self, nonce: int) -> bool:
        """Whether the block that used a nonce is deeper than re-organisations reach. The nonce must have been
        used.
        """
        depth, head = self.connection.chain.reorg_depth, self.connection.block().number
        if head < depth:
            return False
        try:
            return self.connection.transaction_count(self.address, head - depth) > nonce
        except RpcRefused:  # the node has forgotten that state, but never the blocks
            recent = range(head - depth + 1, head + 1)
            return not any(self.connection.has_nonce(number, self.address, nonce) for number in recent)

    def _push(self) -> int:
        """Go through all nonces that the chain has not used: resend lost transactions, raise the fee of stuck
        ones, fill gaps. Returns how many nonces were resent or filled.

        This includes intents that nobody waits for any more, or whose receipt was seen, because no
        transaction is mined before those with lower nonces.
        """
        head = self.connection.newest
        mined = self.connection.transaction_count(self.address)
        self._offered = {n: since for n, since in self._offered.items() if n >= mined}
        attempts = self.journal.since(mined)
        newest = {entry.nonce: entry for entry in attempts}
        self._looked_at = head
        if newest or not head:
            self._mined_at = None
        elif self._mined_at is None or head < self._mined_at:  # the chain may be shorter than it was
            self._mined_at = head
        known = self.connection.known([entry.hash for entry in newest.values()])
        gone = 0
        for nonce in range(mined, max(newest, default=-1) + 1):
            entry = newest.get(nonce)
            if entry is None:
                gone += self._fill(nonce)
                continue
            seen = [one for one in attempts if one.nonce == nonce and one.status is not Status.PENDING]
            if any(self.connection.receipt(one.hash) is not None for one in seen):
                continue  # mined after all: the count came from a node that is behind
            for one in seen:  # taken back by a re-organisation: perhaps not the attempt with the highest fee
                self.journal.mark(one.hash, Status.PENDING)
            if entry.hash not in known:
                self._keep(entry)
                gone += 1
            offered = self._offered.setdefault(nonce, time.monotonic())
            if time.monotonic() - offered > self.sending.replace_after:
                self._raise(entry)
        return gone

    @property
    def _asks_nothing(self) -> bool:
        """Whether another check would find nothing new. The last check must have found all transactions
        mined. In addition, either no new block has come since that check, or the transactions had first been
        seen mined at least `reorg_depth` blocks before that check.
        """
        if self._mined_at is None:
            return False
        deep = self._looked_at - self._mined_at >= self.connection.chain.reorg_depth
        return deep or self._looked_at == self.connection.newest

    def _fill(self, nonce: int) -> bool:
        """Use up an abandoned nonce, because later nonces wait for it. Does nothing if the node holds another
        transaction with this nonce. Returns whether a transaction was sent for the nonce. If the account
        cannot pay, the next check tries again. Raises ChainError if the gas cannot be estimated.
        """
        if self.connection.transaction_count(self.address, "pending") > nonce:
            return False
        call = Call(self.address, b"", "gap")
        (gas,) = gas_of(self.connection, self.address, [call])
        if isinstance(gas, ChainError):
            raise gas
        try:
            fields = self._offers().first(call, gas, nonce)
        except InsufficientFunds:
            return False
        self._write([self._signed(fields, f"gap:{nonce}:{uuid.uuid4()}", call.label)])
        return True

    def _raise(self, entry: Entry) -> None:
        """Raise a transaction's fee, unless the account cannot pay more or the fee is already far above the
        usual one. Without this limit, a chain that stands still, or a node that withholds transactions, would
        make the account offer everything that it has.
        """
        try:
            offers = self._offers()
            if offers.is_dear(entry.raw):
                self._offered[entry.nonce] = time.monotonic()
            else:
                self._replace(entry, offers)
        except InsufficientFunds:
            self._offered[entry.nonce] = time.monotonic()

    def _replace(self, entry: Entry, offers: Offers) -> ChainError | None:
        """Send the same call with the same nonce and a fee that nodes accept as a replacement. Returns the
        refusal, if any. The caller holds the lock.
        """
        fields = offers.higher(entry.raw)
        return self._write([self._signed(fields, entry.intent, entry.label)])[0]


def _is_refusal(error: ChainError) -> bool:
    """Whether the error says that the node will not accept the transaction."""
    if isinstance(error, RpcUnavailable):
        return False  # it may have arrived; the caller, which waits, looks for it and sends it again
    message = error.message.lower() if isinstance(error, RpcRefused) else ""
    # The node knows it already, or it or a replacement of ours is mined.
    return not any(words in message for words in ("already", "nonce too low", "underpriced"))
