"""A connection to one node: JSON-RPC with typed errors, retried reads, blocks and contract reads.

Reads are retried, for asking twice changes nothing. `broadcast` is the only write and is never retried here:
whether to send again is decided with the journal (`transactions`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import requests
import stamina
from eth_abi.exceptions import DecodingError
from web3 import HTTPProvider
from web3.types import RPCEndpoint

from protocol.chain.abi import Contract
from protocol.chain.errors import RpcRefused, RpcUnavailable, WrongChain
from protocol.chain.reverts import as_revert

TIMEOUT_SECONDS: Final = 20.0
ATTEMPTS: Final = 5
"""Waits 0.1, 0.2, 0.4, 0.8 s between them: a node that restarts is back, a wrong URL is reported within
seconds.
"""

BlockId = int | str
"""A block number, a block hash (0x…), or "latest"."""


@dataclass(frozen=True, slots=True)
class Block:
    """What the client needs of a block. `time` is in seconds since 1970, `base_fee` in wei."""

    number: int
    hash: str
    parent: str
    time: int
    base_fee: int
    gas_limit: int


class Connection:
    """One node, by URL. Nothing is asked before it is needed."""

    def __init__(self, url: str, timeout: float = TIMEOUT_SECONDS) -> None:
        self.url = url
        # One session for all threads: web3 would keep one for each thread that ever asked, and close none.
        self._session = requests.Session()
        self._provider = HTTPProvider(
            url,
            request_kwargs={"timeout": timeout},
            session=self._session,
            exception_retry_configuration=None,
        )

    @cached_property
    def chain_id(self) -> int:
        """The node's chain id."""
        return _number(self.request("eth_chainId"))

    def close(self) -> None:
        """Let go of the sockets. A later question opens new ones."""
        self._session.close()

    def require_chain(self, chain_id: int) -> None:
        """Raises WrongChain if the node serves another chain."""
        if self.chain_id != chain_id:
            raise WrongChain(self.url, chain_id, self.chain_id)

    @cached_property
    def genesis(self) -> str:
        """Hash of block 0: tells one development chain from the next, which has the same id."""
        return self.block(0).hash

    def request(self, method: str, *parameters: Any, label: str = "", attempts: int = ATTEMPTS) -> Any:
        """Result of a JSON-RPC request that only reads.

        Raises RpcUnavailable, Reverted (a contract refused), or RpcRefused.
        """
        for attempt in stamina.retry_context(
            on=RpcUnavailable, attempts=attempts, wait_initial=0.1, wait_jitter=0.0
        ):
            with attempt:
                return self._ask(method, parameters, label or method)
        raise AssertionError("the last attempt returns or raises")

    def broadcast(self, raw: bytes) -> str:
        """Hand a signed transaction to the node, once; its hash. Raises RpcUnavailable or RpcRefused."""
        return str(self._ask("eth_sendRawTransaction", ("0x" + raw.hex(),), "broadcast"))

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
        self, to: str | None, data: bytes, *, block: BlockId = "latest", sender: str | None = None, label: str
    ) -> bytes:
        """Bytes that a call returns; without `to`, `data` is run as creation code."""
        query: dict[str, Any] = {"data": "0x" + data.hex()}
        if to is not None:
            query["to"] = to
        if sender is not None:
            query["from"] = sender
        return _bytes(self.request("eth_call", query, block_tag(block), label=label))

    def block(self, block: BlockId = "latest") -> Block:
        """A block by number or tag. Raises RpcRefused if the node does not have it."""
        found = self.raw_block(block)
        return Block(
            _number(found["number"]),
            found["hash"],
            found["parentHash"],
            _number(found["timestamp"]),
            _number(found.get("baseFeePerGas") or "0x0"),
            _number(found["gasLimit"]),
        )

    def raw_block(self, block: BlockId) -> dict[str, Any]:
        """A block's fields as the node writes them."""
        if isinstance(block, str) and block.startswith("0x"):
            found = self.request("eth_getBlockByHash", block, False)
        else:
            found = self.request("eth_getBlockByNumber", block_tag(block), False)
        if found is None:
            raise RpcRefused(f"block {block}", "none of that number or hash", "wait for the node to catch up")
        return dict(found)

    def code(self, address: str, block: BlockId = "latest") -> bytes:
        """Code at an address, empty where there is no contract. Raises RpcRefused for a block whose state is gone."""
        return _bytes(self.request("eth_getCode", address, block_tag(block)))

    def balance(self, address: str) -> int:
        """Native currency of an account, in wei."""
        return _number(self.request("eth_getBalance", address, "latest"))

    def transaction_count(self, address: str, block: str = "latest") -> int:
        """The account's next nonce, at the latest block or with what is "pending"."""
        return _number(self.request("eth_getTransactionCount", address, block))

    def receipt(self, transaction: str) -> dict[str, Any] | None:
        """Receipt of a mined transaction, None while it is not mined."""
        found = self.request("eth_getTransactionReceipt", transaction)
        return None if found is None else dict(found)

    def knows(self, transaction: str) -> bool:
        """Whether the node has the transaction, mined or waiting."""
        return self.request("eth_getTransactionByHash", transaction) is not None

    def _ask(self, method: str, parameters: Sequence[Any], label: str) -> Any:
        try:
            response = self._provider.make_request(RPCEndpoint(method), list(parameters))
        except (requests.RequestException, OSError) as error:
            raise RpcUnavailable(self.url, error) from error
        except ValueError as error:  # not JSON: whatever answers there is no Ethereum node
            raise RpcUnavailable(self.url, error) from error
        failure = response.get("error")
        if failure is None:
            return response.get("result")
        if isinstance(failure, str):
            raise RpcRefused(label, failure)
        reverted = as_revert(label, failure)
        if reverted is not None:
            raise reverted
        raise RpcRefused(label, str(failure.get("message", failure)))


def block_tag(block: BlockId) -> Any:
    """A block as eth_call and its like take it: a tag, a hexadecimal number, or EIP-1898's object for a hash."""
    if isinstance(block, int):
        return hex(block)
    return {"blockHash": block} if block.startswith("0x") else block


def _number(value: Any) -> int:
    return int(str(value), 16)


def _bytes(value: Any) -> bytes:
    return bytes.fromhex(str(value).removeprefix("0x"))
