"""Requests to the nodes of one chain, with typed errors. If a node fails, the next one is asked; all must
serve the same chain.

The module `connection` decides whether to repeat a question, and interprets the answers.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import requests

from protocol.chain.answers import require_form
from protocol.chain.errors import (
    ChainError,
    ChainReset,
    Reverted,
    RpcError,
    RpcRefused,
    RpcUnavailable,
    WrongChain,
)
from protocol.chain.reverts import as_revert
from protocol.chain.transport import MOST, AnswerTooLong, NotAnAnswer, Transport

RECHECK_SECONDS: Final = 1.0
"""Minimum seconds between two checks of a node's chain, so that a node that needs a new connection for every
answer is not checked each time.
"""
COMPARE_SECONDS: Final = 5.0
BEHIND: Final = 2
"""Number of blocks that the chosen node may lag behind another before the other is chosen. A new block takes
time to spread.
"""


@dataclass(frozen=True, slots=True)
class Query:
    """A question to a node. `label` names it in errors."""

    method: str
    parameters: Sequence[Any]
    label: str


@dataclass(frozen=True, slots=True)
class Identity:
    """Identity of a chain. Development chains have the same id but different first blocks."""

    chain_id: int
    genesis: str

    def __str__(self) -> str:
        return f"{self.chain_id} with genesis {self.genesis}"


class _Node:
    """One node, by URL. `known` says whether the node was found to serve the right chain; a new connection
    resets this.
    """

    def __init__(self, url: str, timeout: float) -> None:
        self.url = url
        self.known = False
        self._asked_at = 0.0
        self._transport = Transport(url, timeout, self._opened)

    def ask(self, query: Query) -> Any:
        """The node's answer. Raises RpcUnavailable, Reverted, RpcRefused."""
        with self._answering(query):
            answer = _read(query, self._transport.ask(query.method, query.parameters))
        if isinstance(answer, ChainError):
            raise answer
        return answer

    def ask_all(self, queries: Sequence[Query]) -> list[Any | ChainError]:
        """The answers to several questions, asked in one request, or one by one if the node does not accept
        batches. If a question is refused, the list contains the error instead of an answer. Raises
        RpcUnavailable.
        """
        if len(queries) > 1:
            asked = [(query.method, query.parameters) for query in queries]
            with self._answering(queries[0]):
                responses = self._transport.ask_all(asked)
                if responses is not None:
                    return [_read(*pair) for pair in zip(queries, responses, strict=True)]
        return [self._asked(query) for query in queries]

    def _asked(self, query: Query) -> Any | ChainError:
        try:
            return self.ask(query)
        except (Reverted, RpcRefused) as error:
            return error

    @contextmanager
    def _answering(self, query: Query) -> Iterator[None]:
        """Raise RpcUnavailable if no answer arrives, RpcRefused if the answer is too long."""
        try:
            yield
        except AnswerTooLong as error:
            raise RpcRefused(query.label, f"more than {MOST} bytes", "ask for less at once") from error
        except (requests.RequestException, OSError, ValueError, NotAnAnswer) as error:
            self.known = False
            raise RpcUnavailable(self.url, error) from error

    def identity(self) -> Identity:
        """The chain that the node serves."""
        self._asked_at = time.monotonic()
        chain_id = int(self.ask(Query("eth_chainId", (), "eth_chainId")), 16)
        first = self.ask(Query("eth_getBlockByNumber", ("0x0", False), "block 0"))
        if first is None:
            raise RpcRefused("block 0", "none", "wait for the node to catch up")
        return Identity(chain_id, first["hash"])

    def close(self) -> None:
        self._transport.close()

    def _opened(self) -> None:
        if time.monotonic() - self._asked_at > RECHECK_SECONDS:
            self.known = False


class Nodes:
    """One or more nodes of one chain. No request is sent before it is needed. Callable from any thread."""

    def __init__(self, urls: Sequence[str], timeout: float) -> None:
        self._nodes = [_Node(url, timeout) for url in urls]
        self._chosen = self._nodes[0]
        self._identity: Identity | None = None
        self._lock = threading.Lock()
        self._compared = time.monotonic()

    @property
    def url(self) -> str:
        """URL of the node that is asked first."""
        return self._chosen.url

    @property
    def several(self) -> bool:
        """Whether there is more than one node."""
        return len(self._nodes) > 1

    def identity(self) -> Identity:
        """The chain that the nodes serve. Raises RpcUnavailable, RpcRefused."""
        if self._identity is None:
            self._each(lambda _node: None)
        assert self._identity is not None, "a node that answers is known"
        return self._identity

    def ask(self, query: Query, needed: str = "") -> Any:
        """The answer of the node that is asked first or, if that node fails, of the next one. With `needed`
        (a name for errors), an answer of null counts as a refusal. Raises RpcUnavailable, Reverted,
        RpcRefused, WrongChain.
        """

        def ask(node: _Node) -> Any:
            answer = node.ask(query)
            if answer is None and needed:
                raise RpcRefused(needed, "none of that number or hash", "wait for the node to catch up")
            return answer

        return self._each(ask)

    def ask_all(self, queries: Sequence[Query]) -> list[Any | ChainError]:
        """The answers to several questions, which are sent in one request to the first node that answers. If
        there are several nodes, each question that this node refuses is then sent alone to one node after
        another. If a question fails, the list contains its error, Reverted or RpcRefused, instead of an
        answer. Raises RpcUnavailable, WrongChain.
        """
        answers: list[Any | ChainError] = self._each(lambda node: node.ask_all(queries))
        for k, query in enumerate(queries):
            if self.several and isinstance(answers[k], RpcRefused):  # this one does not have it; another may
                try:
                    answers[k] = self.ask(query)
                except (Reverted, RpcRefused) as error:
                    answers[k] = error
        return answers

    def broadcast(self, transactions: Sequence[str]) -> list[str | ChainError]:
        """Send signed transactions to every node, once. Returns as soon as each transaction has been accepted
        by at least one node, or all nodes have answered. The result is, for each transaction, its hash, or
        the reason why no node accepted it.

        If a node refuses a transaction because it already has it, the result may be this refusal. Otherwise,
        the reason is RpcUnavailable if some node did not answer, because that node may have accepted the
        transaction. In all other cases, it is RpcRefused or WrongChain.
        """
        queries = [Query("eth_sendRawTransaction", (raw,), "broadcast") for raw in transactions]

        def send(node: _Node) -> list[str | ChainError]:
            try:
                self._check(node)
                return node.ask_all(queries)
            except (RpcError, WrongChain) as error:
                return [error] * len(queries)

        if not self.several:
            return send(self._nodes[0])
        best: list[str | ChainError] = []
        threads = ThreadPoolExecutor(len(self._nodes), "rpc")
        try:
            for future in as_completed([threads.submit(send, node) for node in self._nodes]):
                answers = future.result()
                best = [min(pair, key=_weight) for pair in zip(best or answers, answers, strict=True)]
                if all(isinstance(answer, str) for answer in best):
                    break
        finally:
            threads.shutdown(wait=False)
        return best

    def compare(self) -> None:
        """Switch to the most advanced node if the node that is asked first lags or does not answer. Checks at
        most every `COMPARE_SECONDS`.
        """
        if not self.several or time.monotonic() - self._compared < COMPARE_SECONDS:
            return
        self._compared = time.monotonic()
        heads: dict[_Node, int] = {}
        for node in self._nodes:
            try:
                self._check(node)
                heads[node] = int(node.ask(Query("eth_blockNumber", (), "eth_blockNumber")), 16)
            except (RpcError, WrongChain):
                continue
        if heads and max(heads.values()) > heads.get(self._chosen, -1) + BEHIND:
            self._chosen = max(heads, key=lambda node: heads[node])

    def doubt(self) -> None:
        """Distrust the node that is asked first, because its newest block now has a lower number than before.
        That node's chain is checked again before the node is used, and the next node is asked first from now
        on.
        """
        self._chosen.known = False
        self._next(self._chosen)

    def close(self) -> None:
        """Close the sockets. A later question opens new ones."""
        for node in self._nodes:
            node.close()

    def _each(self, ask: Callable[[_Node], Any]) -> Any:
        """The answer of the first node that gives one, beginning with the chosen one."""
        failures: list[Exception] = []
        start = self._nodes.index(self._chosen)
        for node in [*self._nodes[start:], *self._nodes[:start]]:
            try:
                self._check(node)
                answer = ask(node)
                self._check(node)  # again only if a connection was opened for the answer
                return answer
            except RpcRefused as error:  # this one does not have it; another may
                failures.append(error)
            except (RpcUnavailable, WrongChain) as error:
                failures.append(error)
                self._next(node)
        raise next((error for error in failures if isinstance(error, RpcRefused)), failures[0])

    def _next(self, failed: _Node) -> None:
        if failed is self._chosen:
            self._chosen = self._nodes[(self._nodes.index(failed) + 1) % len(self._nodes)]

    def _check(self, node: _Node) -> None:
        """If the node's connection is new, compare its chain id and genesis with those expected. Raises
        WrongChain.
        """
        if node.known:
            return
        found = node.identity()
        with self._lock:
            if self._identity is None:
                self._identity = found
        if found != self._identity:
            if found.chain_id == self._identity.chain_id:
                raise ChainReset(node.url, self._identity.genesis, found.genesis)
            raise WrongChain(node.url, self._identity, found)
        node.known = True


def _read(query: Query, response: Mapping[str, Any]) -> Any | Reverted | RpcRefused:
    """The result in a response, or the typed form of its error. Raises NotAnAnswer."""
    failure = response.get("error")
    if failure is None:
        require_form(query.method, response.get("result"))
        return response.get("result")
    if not isinstance(failure, Mapping):
        return RpcRefused(query.label, str(failure))
    return as_revert(query.label, failure) or RpcRefused(query.label, str(failure.get("message", failure)))


def _weight(answer: str | ChainError) -> int:
    """Rank of a node's answer to a broadcast; a lower rank is better. From best to worst: accepted or already
    known, no answer, refused, from another chain.
    """
    if isinstance(answer, str) or (isinstance(answer, RpcRefused) and "already" in answer.message.lower()):
        return 0
    if isinstance(answer, WrongChain):
        return 3
    return 1 if isinstance(answer, RpcUnavailable) else 2
