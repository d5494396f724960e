"""Sends one transaction and waits for its receipt, or sends several at once and looks for their receipts
later.

Only one process at a time sends from an account (a file lock). An intent is never carried out twice, whatever
happens in between; `unmined` handles the transactions that are signed and not mined yet.
"""

from __future__ import annotations

import fcntl
import threading
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from protocol.chain.connection import Connection
from protocol.chain.errors import (
    AccountInUse,
    ChainError,
    NonceTaken,
    NotMined,
    Reverted,
    RpcRefused,
)
from protocol.chain.fees import Call, gas_of
from protocol.chain.journal import Entry, Journal, Status
from protocol.chain.receipts import Receipt
from protocol.chain.unmined import Sending, Sent, Unmined
from protocol.node.home import Home, HomeError
from protocol.node.words import duration

if TYPE_CHECKING:
    from eth_account.signers.local import LocalAccount

__all__ = ["Sender", "Sending", "Sent"]


class Sender(Unmined):
    """Sends from one account. The sender holds the account's lock, so close it, or use it as a context
    manager.

    Raises AccountInUse while another process holds the lock, and HomeError if this user may not write the
    lock file. Safe to use from several threads.
    """

    def __init__(self, connection: Connection, account: LocalAccount, sending: Sending | None = None) -> None:
        # The genesis block tells a fresh development chain, with nonces from 0, from an earlier one.
        chain = f"{connection.chain_id}-{connection.genesis[2:10]}"
        folder = Home.find().folder("journals", chain)
        self._lock_file = _lock(folder / f"{account.address}.lock", str(account.address))
        journal = Journal(folder / f"{account.address}.sqlite")
        super().__init__(connection, account, journal, sending or Sending.on(connection))
        self._nonces = threading.Lock()
        self._tended = time.monotonic()

    def send(self, call: Call, intent: str | None = None) -> Receipt:
        """Carry out an intent once, and return its receipt, even if an earlier process began it.

        Without an `intent`, sending the same call again carries it out again. Raises Reverted (before or
        after mining), InsufficientFunds, NotMined, NonceTaken, RpcUnavailable, RpcRefused, WrongChain.
        """
        (sent,) = self.hand_over([(call, intent or f"once:{uuid.uuid4()}")])
        return self.receipt(sent)

    def receipt(self, sent: Sent) -> Receipt:
        """Wait for the receipt of a transaction that was handed over. Raises what `send` raises."""
        started = time.monotonic()
        while True:
            (outcome,) = self.outcomes([sent])
            if isinstance(outcome, Receipt):
                return outcome
            if outcome is not None:
                raise outcome
            if time.monotonic() - started > self.sending.timeout:
                raise NotMined(
                    sent.call.label,
                    expected=f"a receipt of nonce {sent.nonce} within {duration(self.sending.timeout)}",
                    got="none",
                    remedy="see whether the chain makes blocks; repeating the command waits for the same transaction",
                )
            time.sleep(self.sending.poll)

    def hand_over(self, wanted: Sequence[tuple[Call, str]]) -> list[Sent]:
        """Send the transactions of several intents, with consecutive nonces, without waiting for a block.

        Nonces, fees and the balance are looked up once for all the transactions together. Each intent is
        carried out once, even if an earlier process began it. A refused intent does not hold up the others.
        Raises RpcUnavailable, RpcRefused, WrongChain.
        """
        assert not self.connection.is_viewing, "gas and fees are those of now"
        with self._nonces:
            unsent = {intent: call for call, intent in wanted if not self._begun(intent)}
        # Without the lock, because this may take long. Intents with a nonce by then are not signed again.
        gas = dict(zip(unsent, gas_of(self.connection, self.address, [*unsent.values()]), strict=True))
        sent: dict[str, Sent] = {}
        with self._nonces:
            unsigned: dict[str, tuple[Call, int]] = {}
            for call, intent in wanted:
                entries, needed = self.journal.of_intent(intent), gas.get(intent)
                if entries:
                    sent[intent] = Sent(call, intent, entries[0].nonce, self._kept(entries[-1]))
                elif isinstance(needed, int):
                    unsigned[intent] = call, needed
                else:
                    sent[intent] = Sent(call, intent, None, needed or _given_up(call))
            if unsigned:
                sent |= self._sign(unsigned)
        return [sent[intent] for _, intent in wanted]

    def outcomes(self, sent: Sequence[Sent]) -> list[Receipt | ChainError | None]:
        """The present outcome of each sent intent: its receipt if it is mined and confirmed, the error that
        prevented it, or None if it is still open.

        Transactions that the chain or the node has lost are sent again. Raises RpcUnavailable, RpcRefused.
        """
        attempts = [
            [entry for entry in self.journal.of_intent(one.intent) if entry.nonce == one.nonce]
            for one in sent
        ]
        hashes = [entry.hash for entries in attempts for entry in entries]
        receipts = dict(zip(hashes, self.connection.receipts(hashes), strict=True))
        found = [
            next(filter(None, (receipts[entry.hash] for entry in entries)), None) for entries in attempts
        ]
        self._note(sent, found)
        used = self.connection.transaction_count(self.address) if None in found else 0
        outcomes = [self._outcome(*look, used) for look in zip(sent, attempts, found, strict=True)]
        if any(outcome is None for outcome in outcomes):
            self.tend()
        return outcomes

    def recover(self) -> int:
        """Resend the transactions in the journal that neither the chain nor the node has. Such transactions
        were never sent, or the node lost them, or a re-organisation removed them. Also raise the fees of
        stuck transactions and fill gaps. Returns how many nonces were resent or filled. Does not wait for
        receipts.
        """
        self._tended = time.monotonic()
        with self._nonces:
            return self._push()

    def await_unknown(self) -> None:
        """Wait until the account's pending transactions that are missing from the journal are mined. Such
        transactions come, for example, from a command whose journal is lost. Raises NotMined, RpcUnavailable,
        RpcRefused.
        """
        started = time.monotonic()
        while unknown := self._unknown():
            if time.monotonic() - started > self.sending.timeout:
                raise NotMined(
                    f"{len(unknown)} transactions of {self.address} that its journal does not know",
                    expected=f"their blocks within {duration(self.sending.timeout)}",
                    got="none",
                    remedy="see whether the chain makes blocks and whether their fees are high enough, then repeat the "
                    "command",
                )
            time.sleep(self.sending.poll)

    def _unknown(self) -> list[int]:
        """Nonces of the account's pending transactions that are missing from the journal."""
        used = self.connection.transaction_count(self.address)
        known = {entry.nonce for entry in self.journal.since(used)}
        held = self.connection.transaction_count(self.address, "pending")
        return [nonce for nonce in range(used, held) if nonce not in known]

    def tend(self) -> None:
        """Call `recover`, unless it would find nothing new (`_asks_nothing`) or was called too recently:
        within the last `look_again` or `replace_after` seconds, whichever is less. All callers share this
        limit.
        """
        rested = time.monotonic() - self._tended > min(self.sending.look_again, self.sending.replace_after)
        if rested and not self._asks_nothing:
            self.recover()

    def close(self) -> None:
        """Release the account's lock."""
        self.journal.close()
        self._lock_file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _note(self, sent: Sequence[Sent], found: Sequence[dict[str, Any] | None]) -> None:
        """Record how long transactions take (`inclusion`)."""
        for one, receipt in zip(sent, found, strict=True):
            if one.nonce is not None and receipt is None:
                self.inclusion.waits(one.nonce)
            elif one.nonce is not None:
                self.inclusion.end(one.nonce, self.connection.block_time)

    def _begun(self, intent: str) -> bool:
        """Whether a transaction for an intent is mined or may still be mined. The caller holds the lock."""
        entries = self.journal.of_intent(intent) or self._taken_back(intent)
        return bool(entries) and not self._is_lost(entries)

    def _taken_back(self, intent: str) -> list[Entry]:
        """If the last transaction of an intent was mined and reverted, but a re-organisation has removed it:
        mark it as pending again, and return the intent's attempts, any of which may be mined now. Otherwise
        return an empty list. The caller holds the lock.
        """
        reverted = self.journal.reverted(intent)
        last = [entry.hash for entry in reverted if entry.nonce == reverted[-1].nonce]
        if not last or any(self.connection.receipts(last)):
            return []
        for transaction in last:
            self.journal.mark(transaction, Status.PENDING)
        return self.journal.of_intent(intent)

    def _outcome(
        self, one: Sent, entries: list[Entry], found: dict[str, Any] | None, used: int
    ) -> Receipt | ChainError | None:
        """The outcome of one intent, as in `outcomes`. `entries` are its signed transactions, `found` is its
        receipt if there is one, and `used` is the number of nonces that the account has used.
        """
        if one.refused is not None:
            return one.refused
        if not entries:
            return _given_up(one.call)
        if found is not None:
            return self._mined(found, one.call)
        if used <= entries[0].nonce:
            return None
        with self._nonces:
            if not self._is_lost(entries):
                return None
        return NonceTaken(
            one.call.label,
            expected=f"nonce {one.nonce} of {self.address} for this transaction",
            got="another transaction",
            remedy="send from this account with one program only, then repeat the command",
        )

    def _mined(self, found: dict[str, Any], call: Call) -> Receipt | Reverted | None:
        receipt = Receipt.read(found, call.label)
        deep = self.sending.confirmations
        if deep and self.connection.block().number < receipt.block + deep:
            return None
        why = None if receipt.success else self._why(call, receipt)
        self.journal.mark(receipt.transaction, Status.FAILED if why else Status.MINED, receipt.block)
        return why or receipt

    def _why(self, call: Call, receipt: Receipt) -> Reverted:
        """Why a mined transaction reverted, found by calling it again at its block."""
        try:
            self.connection.call_data(
                call.to,
                call.data,
                block=receipt.block,
                sender=self.address,
                value=call.value,
                label=call.label,
            )
        except Reverted as error:
            return Reverted(call.label, error.name, error.arguments, receipt.gas_used)
        return Reverted(call.label, "NoReason", {"transaction": receipt.transaction}, receipt.gas_used)


def _given_up(call: Call) -> RpcRefused:
    return RpcRefused(
        call.label,
        "no attempt left: each was refused, or its nonce taken",
        "repeat the command: it is signed again",
    )


def _lock(path: Path, address: str) -> Any:
    try:
        file = path.open("a")
    except PermissionError as error:
        raise HomeError(path.parent, f"no right to write {path}") from error
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
