"""Sending: nonces, fees, gas, the journal before the broadcast, and the wait for a receipt.

One process sends from an account at a time (a file lock says so). A transaction is signed, written to the
journal, and only then handed to the node; whatever happens in between, the same bytes are looked up or handed
over again, so an intent is never carried out twice. A transaction that is not mined for a while is replaced
by one with the same nonce and a higher fee; so is every earlier one of the account that stands before it.
"""

from __future__ import annotations

import fcntl
import threading
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from eth_account.signers.local import LocalAccount

from protocol.chain.chains import Chain
from protocol.chain.connection import Connection
from protocol.chain.errors import (
    AccountInUse,
    InsufficientFunds,
    NonceTaken,
    NotMined,
    Reverted,
    RpcRefused,
    RpcUnavailable,
)
from protocol.chain.fees import Call, first_offer, higher_offer
from protocol.chain.journal import Entry, Journal, Status
from protocol.chain.receipts import Receipt
from protocol.node.home import Home


@dataclass(frozen=True, slots=True)
class Sending:
    """How patiently to send. Seconds, but for the fees."""

    timeout: float = 300.0
    """Then NotMined is raised; the transaction stays in the journal."""
    poll: float = 0.2
    look_again: float = 2.0
    """How often what the chain or the node has lost is looked for, and handed over again."""
    replace_after: float = 60.0
    """Without a receipt for this long the fee is raised."""
    confirmations: int = 0
    """Blocks on top of the receipt's before it counts."""
    gas_margin: float = 1.25
    """Estimates are exact for the state of one block; a game moves on in between."""

    @classmethod
    def on(cls, chain: Chain) -> Self:
        """As the chain's block time asks: a fee is raised after five blocks without room for it."""
        return cls(timeout=max(300.0, 25 * chain.block_time), replace_after=max(10.0, 5 * chain.block_time))


class Sender:
    """Sends from one account. Close it, or use it as a context manager: it holds the account's lock.

    Raises AccountInUse while another process holds it. Safe to use from several threads.
    """

    def __init__(self, connection: Connection, account: LocalAccount, sending: Sending | None = None) -> None:
        self.connection = connection
        self.account = account
        self.address = str(account.address)
        self.sending = sending or Sending.on(connection.chain)
        # The genesis block tells a fresh development chain, whose nonces begin at 0, from the last one.
        chain = f"{connection.chain_id}-{connection.genesis[2:10]}"
        folder = Home.find().folder("journals", chain)
        self._lock_file = _lock(folder / f"{self.address}.lock", self.address)
        self.journal = Journal(folder / f"{self.address}.sqlite")
        self._nonces = threading.Lock()
        self._offered: dict[int, float] = {}
        """When the fee of a nonce was last chosen; of an earlier process's nonce, when it was first pushed."""
        self._tended = time.monotonic()

    def send(self, call: Call, intent: str | None = None) -> Receipt:
        """Carry out an intent once, and return its receipt, also when an earlier process began it.

        Without an `intent` the call is one of its own. Raises Reverted (before or after mining),
        InsufficientFunds, NotMined, NonceTaken, RpcUnavailable, RpcRefused.
        """
        intent = intent or f"once:{uuid.uuid4()}"
        with self._nonces:
            entries = self.journal.of_intent(intent)
            if entries and self._is_lost(entries):
                entries = []
            if entries:
                self._hand_over_again(entries[-1])
            else:
                entries = [self._sign(call, intent)]
                self._hand_over(entries[0])
        return self._wait(entries[0], call)

    def recover(self) -> int:
        """Hand over again what the journal holds and neither chain nor node does: never sent, lost by the node, or
        taken back by a re-organisation; how many nonces. Does not wait for receipts.
        """
        self._tended = time.monotonic()
        with self._nonces:
            return self._push()

    def tend(self) -> None:
        """`recover`, but not more often than every `look_again` seconds, whoever asks."""
        if time.monotonic() - self._tended > min(self.sending.look_again, self.sending.replace_after):
            self.recover()

    def close(self) -> None:
        """Give the account's lock back."""
        self._lock_file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ------------------------------------------------------------------ signing

    def _sign(self, call: Call, intent: str) -> Entry:
        """Sign and journal the next transaction; the caller holds the lock."""
        nonce = self._next_nonce()
        fields = first_offer(self.connection, self.address, call, nonce, self.sending.gas_margin)
        return self._write(fields, intent, call.label)

    def _write(self, fields: dict[str, Any], intent: str, label: str) -> Entry:
        signed = self.account.sign_transaction(fields)
        entry = Entry(
            "0x" + signed.hash.hex(),
            intent,
            label,
            fields["nonce"],
            bytes(signed.raw_transaction),
            Status.PENDING,
            None,
        )
        self.journal.write(entry)
        self._offered[entry.nonce] = time.monotonic()
        return entry

    def _next_nonce(self) -> int:
        """The first nonce that neither the node nor the journal holds a transaction for; fills gaps. What the journal
        holds and the node does not is no gap: the node is behind, or has lost it, and `_push` hands it over.
        """
        nonce = self.connection.transaction_count(self.address, "pending")
        taken = {entry.nonce for entry in self.journal.since(nonce)}
        while nonce in taken:
            nonce += 1
        return nonce

    # ------------------------------------------------------------------ after signing

    def _hand_over(self, entry: Entry) -> None:
        """Give the node a journalled transaction; what it refuses is dropped. Harmless to repeat: the bytes,
        hence the hash, are the same.
        """
        try:
            self._offer(entry)
        except RpcRefused:
            self.journal.mark(entry.hash, Status.DROPPED)
            raise

    def _hand_over_again(self, entry: Entry) -> bool:
        """Give the node what it has lost, or never got; with a higher fee if it refuses it by now, as after a rise of
        the base fee. Whether it had to be. The caller holds the lock.
        """
        if self.connection.knows(entry.hash):
            return False
        try:
            self._offer(entry)
        except RpcRefused:
            try:
                self._replace(entry)
            except RpcRefused:
                self.journal.mark(entry.hash, Status.DROPPED)
                raise
        return True

    def _offer(self, entry: Entry) -> None:
        try:
            self.connection.broadcast(entry.raw)
        except RpcUnavailable:
            return  # it may have arrived; the wait looks for it and hands it over again
        except RpcRefused as error:
            message = error.message.lower()
            if "already" in message or "nonce too low" in message or "underpriced" in message:
                return  # known to the node, mined, or a replacement of ours is
            raise

    def _is_lost(self, entries: list[Entry]) -> bool:
        """Whether none of these can be mined any more, for another transaction has the nonce; marks them if so.

        Only what lies deeper than re-organisations reach says so: before, the receipt may be missing because the node
        that was asked is behind, and the other transaction may be taken back.
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
        """Whether a used nonce was used deeper than re-organisations reach."""
        depth, head = self.connection.chain.reorg_depth, self.connection.block().number
        if head < depth:
            return False
        try:
            return self.connection.transaction_count(self.address, head - depth) > nonce
        except RpcRefused:  # the node has forgotten that state, but never the blocks
            recent = range(head - depth + 1, head + 1)
            return not any(self.connection.has_nonce(number, self.address, nonce) for number in recent)

    def _wait(self, first: Entry, call: Call) -> Receipt:
        """Until the transaction, or one that raised its fee, is mined and confirmed."""
        started = time.monotonic()
        while True:
            entries = [e for e in self.journal.of_intent(first.intent) if e.nonce == first.nonce]
            if not entries:
                raise RpcRefused(
                    call.label,
                    "no attempt left: each was refused, or its nonce taken",
                    "repeat the command: it is signed anew",
                )
            receipt = self._mined(entries, call)
            if receipt is not None:
                return receipt
            if time.monotonic() - started > self.sending.timeout:
                raise NotMined(
                    call.label,
                    expected=f"a receipt of {entries[-1].hash} within {self.sending.timeout:.0f} s",
                    got="none",
                    remedy="see whether the chain makes blocks; repeating the command waits for the same transaction",
                )
            self.tend()
            time.sleep(self.sending.poll)

    def _push(self) -> int:
        """Go through all nonces that the chain has not used: hand over again what is gone, raise the fee of what is
        left lying, fill gaps; how many were gone. The caller holds the lock.

        Also for intents that nobody waits for any more, or whose receipt was seen: nothing is mined before all that
        has a lower nonce.
        """
        mined = self.connection.transaction_count(self.address)
        self._offered = {n: since for n, since in self._offered.items() if n >= mined}
        newest = {entry.nonce: entry for entry in self.journal.since(mined)}
        gone = 0
        for nonce in range(mined, max(newest, default=-1) + 1):
            entry = newest.get(nonce)
            if entry is None:
                gone += self._fill(nonce)
                continue
            if entry.status is not Status.PENDING:
                if self.connection.receipt(entry.hash) is not None:
                    continue  # mined after all: the count came from a node that is behind
                self.journal.mark(entry.hash, Status.PENDING)
            gone += self._hand_over_again(entry)
            offered = self._offered.setdefault(nonce, time.monotonic())
            if time.monotonic() - offered > self.sending.replace_after:
                self._raise(entry)
        return gone

    def _fill(self, nonce: int) -> bool:
        """Use up a nonce that was given up while a later one waits, unless somebody else uses it; whether it was."""
        if self.connection.transaction_count(self.address, "pending") > nonce:
            return False
        call = Call(self.address, b"", "gap")
        fields = first_offer(self.connection, self.address, call, nonce, self.sending.gas_margin)
        self._hand_over(self._write(fields, f"gap:{nonce}:{uuid.uuid4()}", call.label))
        return True

    def _raise(self, entry: Entry) -> None:
        """Raise the fee, if the account can pay for it."""
        try:
            self._replace(entry)
        except InsufficientFunds:
            self._offered[entry.nonce] = time.monotonic()

    def _mined(self, entries: list[Entry], call: Call) -> Receipt | None:
        for entry in entries:
            found = self.connection.receipt(entry.hash)
            if found is None:
                continue
            receipt = Receipt.read(found, call.label)
            if self.connection.block().number < receipt.block + self.sending.confirmations:
                return None
            self.journal.mark(entry.hash, Status.MINED if receipt.success else Status.FAILED, receipt.block)
            if not receipt.success:
                raise self._why(call, receipt)
            return receipt
        with self._nonces:
            if self._is_lost(entries):
                raise NonceTaken(
                    call.label,
                    expected=f"nonce {entries[0].nonce} of {self.address} for this transaction",
                    got="another transaction",
                    remedy="send from this account with one program only, then repeat the command",
                )
        return None

    def _why(self, call: Call, receipt: Receipt) -> Reverted:
        """The reason of a transaction that was mined and reverted, found by running it on the block it met."""
        try:
            self.connection.call_data(
                call.to, call.data, block=receipt.block, sender=self.address, label=call.label
            )
        except Reverted as error:
            return Reverted(call.label, error.name, error.arguments, receipt.gas_used)
        return Reverted(call.label, "NoReason", {"transaction": receipt.transaction}, receipt.gas_used)

    def _replace(self, entry: Entry) -> None:
        """The same call with the same nonce and a fee that nodes accept as a replacement. The caller holds the
        lock.
        """
        fields = higher_offer(self.connection, self.address, entry.raw)
        self._hand_over(self._write(fields, entry.intent, entry.label))


def _lock(path: Path, address: str) -> Any:
    file = path.open("a")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        raise AccountInUse(
            f"account {address}",
            expected="to be the only process that sends from it",
            got=f"a lock on {path}",
            remedy="stop the other process, or use another account",
        ) from error
    return file
