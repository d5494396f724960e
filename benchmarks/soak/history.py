"""Makes many past tasks on a chain within seconds.

Half of the tasks received no bid and were refunded. The other half were submitted, but their seats were never
drawn, so these tasks stalled and were then closed. Nothing is trained: a run is two made-up roots. The
development node signs for its accounts, so that a block takes many transactions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any, Final

from protocol.chain.client import Client
from protocol.chain.deployment import Deployment
from protocol.chain.devnet import Devnet
from protocol.chain.errors import ChainError
from protocol.chain.parameters import TOKEN
from protocol.chain.rpc import Query
from protocol.chain.views import Offer, TaskStatus
from protocol.commitments import segment_tree
from protocol.node.party.rounds import SignatureOf, show_round
from protocol.tasks.task import Terms

GAS: Final = 1_000_000
"""The gas limit: enough for `post`, the most expensive of the calls, with a margin."""
TOGETHER: Final = 25
"""Transactions per block. The block's gas limit of 30,000,000 is enough for them."""
ROOTS: Final = [sha256(b"state %d" % number).digest() for number in range(2)]
TREE: Final = segment_tree(ROOTS)
TAKES_NOTHING: Final = Offer(speed=1, state_bytes=1, lock=1, fee=2**112 - 1, seat_fee=2**112 - 1, period=1)

TERMS: Final = Terms(
    program_id=sha256(b"program").digest(),
    constants_root=sha256(b"constants").digest(),
    initial_state=ROOTS[0],
    bundle_hash=sha256(b"bundle").digest(),
    constants=1,
    state_tensors=1,
    segments=1,
    segment_steps=1,
    step_operations=10,
    state_bytes=1024,
    budget=10 * TOKEN,
    stake=100 * TOKEN,
    restitution=10 * TOKEN,
    reward=TOKEN,
    audit_fee=TOKEN,
    game_cost=3 * TOKEN,
    delay_penalty=TOKEN,
    bidding_period=600,
    training_period=600,
    challenge_period=600,
    attest_period=60,
    extension=5,
    clock=300,
    replay_allowance=0,
    verifiers=1,
    segments_per_verifier=1,
    arithmetic=1,
    thinning=1,
    move_time=50,
    look_chance=0,
    jurors=0,
    seat_lock=5 * TOKEN,
    bond=20 * TOKEN,
    retrain_reward=10 * TOKEN,
    bundle="http://127.0.0.1:1/bundle",
)


class History:
    """Makes past tasks of one submitter and one solver. Both are development accounts, which nobody else may
    use in the meantime.

    `signature_of` gives the signatures of the beacon's rounds.
    """

    def __init__(self, chain: Devnet, submitter: Client, solver: Client, signature_of: SignatureOf) -> None:
        self._chain = chain
        self._submitter = submitter
        self._solver = solver
        self._signature_of = signature_of

    @property
    def deployment(self) -> Deployment:
        """The contracts."""
        return self._submitter.deployment

    def make(self, count: int) -> range:
        """Make `count` past tasks and return their numbers. The chain must be one that mines a block for each
        transaction; this mode is switched off while the tasks are made.
        """
        first = self._submitter.market.tasks() + 1
        tasks = range(first, first + count)
        if not count:
            return tasks
        self._prepare(count)
        rpc = self._chain.connection
        rpc.request("evm_setAutomine", False)
        try:
            self._play(tasks)
        finally:
            rpc.request("evm_setAutomine", True)
        statuses = self._submitter.market.statuses(tasks)
        assert set(statuses) <= {TaskStatus.REFUNDED, TaskStatus.VOID}, statuses
        return tasks

    def _prepare(self, count: int) -> None:
        """Register a verifier, without which the market takes no task; mint tokens; show a fresh beacon round."""
        submitter, solver = self._submitter, self._solver
        for client, each in ((submitter, TERMS.budget + 10 * TOKEN), (solver, TERMS.stake + TOKEN)):
            client.token.mint(client.address, (count + 10) * each)
            client.fund(client.vault.free(client.address) + (count + 10) * each)
        if solver.audit.registration(solver.address) is None:
            solver.audit.register(0, TAKES_NOTHING)
        show_round(submitter, self._signature_of)

    def _play(self, tasks: range) -> None:
        market, solver = self._submitter.market, self._solver.market
        submitted = tasks[::2]
        self._send(self._submitter, "post", [(self._terms(task).abi(),) for task in tasks])
        self._send(self._solver, "bid", [(task, TOKEN) for task in submitted])
        self._chain.skip(TERMS.bidding_period + TERMS.extension + 1)
        self._send(self._submitter, "assign", [(task,) for task in tasks])
        run: tuple[Any, ...] = (
            TREE.root,
            list(TREE.inclusion_path(0)),
            [],
            ROOTS[1],
            list(TREE.inclusion_path(1)),
        )
        self._send(self._solver, "submit", [(task, *run) for task in submitted])
        if submitted:
            parameters = self.deployment.parameters
            self._chain.skip(parameters.draw_delay + parameters.stall_period + 2)
            self._send(self._solver, "stall", [(task,) for task in submitted])
            self._chain.skip(max(0, solver.task(submitted[-1]).challenge_until + 1 - self._submitter.now()))
            self._send(self._solver, "closeStalled", [(task,) for task in submitted])
        assert market.tasks() == tasks[-1]

    def _terms(self, task: int) -> Terms:
        return replace(TERMS, bundle_hash=sha256(b"bundle %d" % task).digest())

    def _send(self, client: Client, function: str, calls: Sequence[Sequence[Any]]) -> None:
        """Send calls to the market from one account, `TOGETHER` per block."""
        rpc, market = self._chain.connection, client.market
        for first in range(0, len(calls), TOGETHER):
            nonce = rpc.transaction_count(client.address)
            sent = [
                {
                    "from": client.address,
                    "to": market.address,
                    "data": "0x" + market.contract.encode(function, arguments).hex(),
                    "gas": hex(GAS),
                    "nonce": hex(nonce + number),
                }
                for number, arguments in enumerate(calls[first : first + TOGETHER])
            ]
            hashes = rpc.request_all([Query("eth_sendTransaction", (one,), function) for one in sent])
            self._chain.mine()
            receipts = rpc.receipts([_taken(answer) for answer in hashes])
            assert all(one is not None and int(one["status"], 16) for one in receipts), (function, receipts)


def _taken(answer: Any | ChainError) -> str:
    if isinstance(answer, ChainError):
        raise answer
    return str(answer)
