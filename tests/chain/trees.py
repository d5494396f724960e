"""A task that consists of roots only, which is all that the market and the board see of a run."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from protocol.chain.client import Client
from protocol.chain.devnet import Devnet
from protocol.chain.parameters import TOKEN
from protocol.commitments import segment_tree
from protocol.tasks.task import Terms

SEGMENTS = 4
ROOTS = [sha256(b"state %d" % i).digest() for i in range(SEGMENTS + 1)]
TREE = segment_tree(ROOTS)


def terms(**changes: Any) -> Terms:
    """Terms of a run whose states have the roots `ROOTS`."""
    values: dict[str, Any] = {
        "program_id": sha256(b"program").digest(),
        "constants_root": sha256(b"constants").digest(),
        "initial_state": ROOTS[0],
        "bundle_hash": sha256(b"bundle").digest(),
        "constants": 1,
        "state_tensors": 1,
        "segments": SEGMENTS,
        "segment_steps": 2,
        "step_operations": 10,
        "state_bytes": 1024,
        "budget": 100 * TOKEN,
        "stake": 1000 * TOKEN,
        "restitution": 100 * TOKEN,
        "reward": 50 * TOKEN,
        "audit_fee": 2 * TOKEN,
        "game_cost": 3 * TOKEN,
        "delay_penalty": 10 * TOKEN,
        "bidding_period": 60,
        "training_period": 600,
        "challenge_period": 300,
        "attest_period": 100,
        "extension": 5,
        "clock": 300,
        "replay_allowance": 0,
        "verifiers": 1,
        "segments_per_verifier": 2,
        "arithmetic": 1,
        "thinning": 1,
        "move_time": min(50, int(changes.get("attest_period", 100))),
        "look_chance": 0,
        "jurors": 0,
        "seat_lock": 5 * TOKEN,
        "bond": 20 * TOKEN,
        "retrain_reward": 100 * TOKEN,
        "bundle": "http://127.0.0.1:1/bundle",
    }
    return Terms(**(values | changes))


def submitted(chain: Devnet, submitter: Client, solver: Client, price: int, **changes: Any) -> int:
    """Post a task, let the solver win it at this price (token units) and submit the run's roots. Returns the
    task's id.
    """
    posted = terms(**changes)
    task, _ = submitter.market.post(posted)
    solver.market.bid(task, price)
    chain.skip(posted.bidding_period + 1)
    solver.market.assign(task)
    last = TREE.inclusion_path(SEGMENTS)
    solver.market.submit(task, TREE.root, TREE.inclusion_path(0), [], ROOTS[SEGMENTS], last)
    return task


def fund(client: Client, tokens: int) -> None:
    """Give the client this many whole tokens, free in the vault."""
    client.token.mint(client.address, tokens * TOKEN)
    client.fund(client.vault.free(client.address) + tokens * TOKEN)
