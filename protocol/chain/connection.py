"""A connection to a chain: retried reads of blocks, contracts and accounts, through one or more of its nodes.

A read is retried if no node answers, because asking twice changes nothing. Some reads are also retried if a
node refuses them. A node may refuse because it lags behind the node that answered before and does not have
the block yet. The reads that are retried after a refusal are: a block itself; a call, a nonce or an estimate
of gas at a given block; and the logs of a block given by its hash.

`broadcast` is the only write and is never retried here: `transactions` uses the journal to decide whether to
send again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import pairwise
from statistics import median
from typing import Any, Final, TypeVar

from eth_abi.exceptions import DecodingError

from protocol.chain.abi import Contract
from protocol.chain.blocks import Block, BlockId, block_tag, is_one, number_of
from protocol.chain.chains import Chain, Finality, chain_of
from protocol.chain.errors import ChainError, RpcError, RpcRefused, RpcUnavailable, WrongChain
from protocol.chain.rpc import Nodes, Query

TIMEOUT_SECONDS: Final = 20.0
WAITS: Final = (0.1, 0.2, 0.4, 0.8)
"""Seconds before each further attempt: a restarting node gets time, but a wrong URL is reported within
seconds.
"""
ATTEMPTS: Final = len(WAITS) + 1
LOOKS: Final = (0.02, 0.05, 0.1)
"""Seconds before each repeated read of the newest block when its number has decreased. Nodes at different
heights may share a URL.
"""

BLOCKS: Final = 8
"""Number of block intervals whose median is taken as the block time, so that one unusual interval does not matter."""

BATCH: Final = 100
"""Maximum number of questions in one request of `ask_ahead`: public nodes accept 100 to 1,000."""

Answer = TypeVar("Answer")


class _Pinned(threading.local):
    """For each thread: the block that its reads are pinned to, and the answers received about that block,
    which cannot change.
    """

    def __init__(self) -> None:
        self.block: Block | None = None
        self.told_of = ""
        """Hash of the block that `told` is about."""
        self.told: dict[Any, Any] = {}


class Connection:
    """A chain, reached through one or more nodes. No request is sent before it is needed.

    If a node serves another chain, from the start or after an outage, requests raise WrongChain, unless
    another node serves the right one. `finality` overrides the chain's finality in `chains.toml`.
    """

    def __init__(
        self, urls: str | Sequence[str], timeout: float = TIMEOUT_SECONDS, finality: Finality | None = None
    ) -> None:
        self._nodes = Nodes((urls,) if isinstance(urls, str) else urls, timeout)
        self._finality = finality
        self._pinned = _Pinned()
        self._highest = 0
        """Number of the newest block that any node has shown. It decreases after a re-organisation to a
        shorter chain.
        """
        self.latest: Block | None = None
        """The newest block, as last read; None before the first read."""

    @property
    def url(self) -> str:
        """URL of the node that is asked first."""
        return self._nodes.url

    @property
    def chain_id(self) -> int:
        """The chain's id."""
        return self._retried(self._nodes.identity).chain_id

    @property
    def genesis(self) -> str:
        """Hash of block 0. It tells development chains apart, because they share an id."""
        return self._retried(self._nodes.identity).genesis

    @cached_property
    def chain(self) -> Chain:
        """The chain's properties from the table (`chains`)."""
        return chain_of(self.chain_id)

    @cached_property
    def block_time(self) -> float:
        """Seconds between two blocks: from the table, otherwise the median of the newest intervals."""
        if self.chain.block_time is not None:
            return self.chain.block_time
        newest = self.block().number
        times = [self.block(number).time for number in range(max(0, newest - BLOCKS), newest + 1)]
        return median([late - early for early, late in pairwise(times)] or [0])

    @property
    def newest(self) -> int:
        """Number of the newest block seen so far; 0 if none has been seen. Sends no request."""
        return self._highest

    @property
    def gas_price(self) -> int:
        """The price of one gas, in wei, that the node recommends now: base fee plus tip if the chain has both."""
        return int(self.request("eth_gasPrice"), 16)

    def close(self) -> None:
        """Close the sockets. A later question opens new ones."""
        self._nodes.close()

    def require_chain(self, chain_id: int) -> None:
        """Raises WrongChain if the node serves another chain."""
        if self.chain_id != chain_id:
            raise WrongChain(self.url, chain_id, self.chain_id)

    def request(
        self, method: str, *parameters: Any, label: str = "", attempts: int = ATTEMPTS, refusals: bool = False
    ) -> Any:
        """The result of a JSON-RPC request that only reads. With `refusals`, refused requests are retried
        too.

        Raises RpcUnavailable, Reverted (a contract refused), or RpcRefused.
        """
        query = Query(method, parameters, label or method)
        return self._retried(
            lambda: self._nodes.ask(query), attempts, RpcError if refusals else RpcUnavailable
        )

    def request_all(self, queries: Sequence[Query]) -> list[Any | ChainError]:
        """The results of several requests that only read, sent together. For a failed request, the list
        contains the error, Reverted or RpcRefused, instead of a result.

        Raises RpcUnavailable.
        """
        return self._retried(lambda: self._nodes.ask_all(queries)) if queries else []

    def broadcast(self, raws: Sequence[bytes]) -> list[str | ChainError]:
        """Send signed transactions to all nodes, once. Returns, for each transaction, its hash or the error:
        RpcUnavailable, RpcRefused or WrongChain.
        """
        return self._nodes.broadcast(["0x" + raw.hex() for raw in raws])

    def call(
        self,
        contract: Contract,
        address: str,
        function: str,
        *arguments: Any,
        block: BlockId = "latest",
        sender: str | None = None,
    ) -> tuple[Any, ...]:
        """Values that a view function returns, as eth-abi decodes them. Raises Reverted with the contract's
        own error.
        """
        data = self.call_data(
            address,
            contract.encode(function, arguments),
            block=block,
            sender=sender,
            label=f"{contract.name}.{function}",
        )
        try:
            return contract.decode(function, data)
        except DecodingError as error:
            raise RpcRefused(
                f"{contract.name}.{function} at {address}",
                f"{len(data)} bytes that are not its result",
                "check the deployment file: another contract, or none, is there",
            ) from error

    def call_data(
        self,
        to: str | None,
        data: bytes,
        *,
        block: BlockId = "latest",
        sender: str | None = None,
        value: int = 0,
        label: str,
    ) -> bytes:
        """Bytes that a call returns. Without `to`, the node runs `data` as creation code."""
        block = self._pinned_to(block)
        query = _call(to, data)
        if value:
            query["value"] = hex(value)
        if sender is not None:
            query["from"] = sender

        def ask() -> bytes:
            return _bytes(
                self.request("eth_call", query, block_tag(block), label=label, refusals=is_one(block))
            )

        return self._told((to, data, block, sender, value), ask) if is_one(block) else ask()

    def ask_ahead(
        self,
        contract: Contract,
        address: str,
        function: str,
        *lists: Sequence[Any],
        block: BlockId = "latest",
    ) -> None:
        """Prefetch a function's values for several lists of arguments, `BATCH` per request, so that later
        calls need no request. Call this only inside a `view`. The answer to a refused call is not kept, so
        the call is asked again later. Raises RpcUnavailable.
        """
        assert self.is_viewing, "answers are kept for one block"
        block, told = self._pinned_to(block), self._pinned.told
        datas = [contract.encode(function, arguments) for arguments in lists]
        missing = [data for data in datas if (address, data, block, None, 0) not in told]
        for first in range(0, len(missing), BATCH):
            asked = missing[first : first + BATCH]
            label = f"{contract.name}.{function}"
            queries = [Query("eth_call", (_call(address, data), block_tag(block)), label) for data in asked]
            for data, answer in zip(asked, self.request_all(queries), strict=True):
                if not isinstance(answer, ChainError):
                    told[address, data, block, None, 0] = _bytes(answer)

    def block(self, block: BlockId = "latest") -> Block:
        """A block by number, hash or tag. Raises RpcRefused if no node has it.

        The latest block is not older than any seen before, with one exception: if repeated reads confirm an
        older block, the chain was re-organised to a shorter one, and that block is returned. Inside a view,
        the latest block is the view's block.
        """
        pinned = self._pinned.block
        if block != "latest":
            return Block.read(self.raw_block(block))
        if pinned is not None:
            return pinned
        self._nodes.compare()
        for wait in (*LOOKS, None):
            found = Block.read(self.raw_block(block))
            if found.number >= self._highest or wait is None:
                break
            self._nodes.doubt()
            time.sleep(wait)
        self._highest, self.latest = found.number, found
        return found

    def raw_block(self, block: BlockId, *, whole: bool = False) -> dict[str, Any]:
        """A block's fields as the node writes them. With `whole`, the block contains its whole transactions,
        otherwise only their hashes.
        """

        is_hash = isinstance(block, str) and block.startswith("0x")
        method = "eth_getBlockByHash" if is_hash else "eth_getBlockByNumber"
        which = block if is_hash else block_tag(block)

        def ask() -> dict[str, Any]:
            return dict(self._nodes.ask(Query(method, (which, whole), method), f"block {block}"))

        return self._retried(ask, failures=RpcError)

    @contextmanager
    def view(self, at: BlockId = "latest") -> Iterator[Block]:
        """Pin this thread's contract calls to one block, the newest or `at`, as long as the context lasts.
        Calls at the latest block then name the hash of the pinned block, so their results are consistent, and
        `block` returns the pinned block. Balances, code and nonces are not pinned. Answers from an earlier
        view of the same block are reused. Send no transactions inside.

        Raises RpcRefused if no node has the block. Calls inside raise RpcRefused if no node has the block's
        state any more.
        """
        pinned, block = self._pinned, self.block(at)
        if pinned.told_of != block.hash:
            pinned.told_of, pinned.told = block.hash, {}
        pinned.block = block
        try:
            yield block
        finally:
            pinned.block = None

    @property
    def is_viewing(self) -> bool:
        """Whether this thread is inside a `view`."""
        return self._pinned.block is not None

    def final_block(self) -> int:
        """Number of the newest final block; 0 if only the first block is final."""
        finality = self.chain.finality if self._finality is None else self._finality
        if isinstance(finality, int):
            return max(0, self.block().number - finality)
        return self._told(finality, lambda: self.block(finality).number)

    def is_final_at(self, time: int) -> bool:
        """Whether all blocks up to this time, in seconds since 1970, are final."""
        final = self.final_block()
        if final >= self.block().number:
            return True
        return self._told(("time", final), lambda: self.block(final).time) > time

    def stands(self, number: int, block_hash: str) -> bool:
        """Whether the chain still has this block at its height."""
        return number <= self.block().number and self.block(number).hash == block_hash

    def code(self, address: str, block: BlockId = "latest") -> bytes:
        """Code at an address; empty if there is no contract. Raises RpcRefused for a block whose state is
        gone.
        """
        return _bytes(self.request("eth_getCode", address, block_tag(block)))

    def balance(self, address: str) -> int:
        """Native currency of an account, in wei."""
        return number_of(self.request("eth_getBalance", address, "latest"))

    def transaction_count(self, address: str, block: BlockId = "latest") -> int:
        """The account's next nonce at a block. At "pending", waiting transactions count too."""
        return number_of(
            self.request("eth_getTransactionCount", address, block_tag(block), refusals=is_one(block))
        )

    def has_nonce(self, number: int, address: str, nonce: int) -> bool:
        """Whether block `number` contains the account's transaction with this nonce. Raises RpcUnavailable,
        RpcRefused.
        """
        found = self.raw_block(number, whole=True)["transactions"]
        if any(isinstance(sent, str) for sent in found):
            raise RpcRefused(f"the transactions of block {number}", "hashes", "use another node")
        return any(
            sent["from"].lower() == address.lower() and number_of(sent["nonce"]) == nonce for sent in found
        )

    def receipt(self, transaction: str) -> dict[str, Any] | None:
        """Receipt of a mined transaction; None if it is not mined yet, or the node lags."""
        return self.receipts([transaction])[0]

    def receipts(self, transactions: Sequence[str]) -> list[dict[str, Any] | None]:
        """Like `receipt`, for several transactions in one request."""
        found = self._of_each("eth_getTransactionReceipt", transactions)
        blocks = [number_of(receipt["blockNumber"]) for receipt in found if receipt is not None]
        self._highest = max([self._highest, *blocks])
        return found

    def knows(self, transaction: str) -> bool:
        """Whether the node has the transaction, mined or waiting."""
        return transaction in self.known([transaction])

    def known(self, transactions: Sequence[str]) -> set[str]:
        """The transactions among these that the node has, mined or waiting. Sends one request."""
        found = self._of_each("eth_getTransactionByHash", transactions)
        return {hash_ for hash_, answer in zip(transactions, found, strict=True) if answer is not None}

    def _of_each(self, method: str, transactions: Sequence[str]) -> list[Any]:
        """The answers about several transactions, in one request. Raises RpcUnavailable, RpcRefused."""
        answers = self.request_all([Query(method, (hash_,), method) for hash_ in transactions])
        for answer in answers:
            if isinstance(answer, ChainError):
                raise answer
        return answers

    def _pinned_to(self, block: BlockId) -> BlockId:
        """The hash of the view's block, if `block` means that block; otherwise `block`."""
        pinned = self._pinned.block
        return pinned.hash if pinned is not None and block in ("latest", pinned.number) else block

    def _told(self, what: Any, ask: Callable[[], Answer]) -> Answer:
        """The answer of `ask`. Inside a view, it is fetched only once for the view's block and kept under the
        key `what`; outside a view, it is fetched each time.
        """
        if not self.is_viewing:
            return ask()
        told = self._pinned.told
        if what not in told:
            told[what] = ask()
        found: Answer = told[what]
        return found

    def _retried(
        self,
        ask: Callable[[], Answer],
        attempts: int = ATTEMPTS,
        failures: type[RpcError] = RpcUnavailable,
    ) -> Answer:
        for wait in WAITS[: attempts - 1]:
            try:
                return ask()
            except failures:
                time.sleep(wait)
        return ask()


def _call(to: str | None, data: bytes) -> dict[str, Any]:
    """A call as the parameter of eth_call."""
    query = {"data": "0x" + data.hex()}
    return query if to is None else {**query, "to": to}


def _bytes(value: Any) -> bytes:
    return bytes.fromhex(str(value).removeprefix("0x"))
