"""Deposits for demanded nodes on the real contracts: who gets the coin, and what a rising base fee does."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cache
from time import monotonic, sleep
from types import SimpleNamespace
from typing import cast

import pytest
import torch

from examples import digits
from protocol.chain.client import connect
from protocol.chain.errors import Reverted
from protocol.chain.receipts import Receipt
from protocol.commitments import segment_tree
from protocol.dispute.moves import Move
from protocol.dispute.openings import NO_INSTRUCTION, NO_LEAF, Node
from protocol.dispute.view import TreeKind, Verdict
from protocol.execution.replay import HonestExecutor, Replay
from protocol.node.party.funds import NotEnoughCoin, require_coin, withdraw_credit
from protocol.node.words import coin
from protocol.program.execute import Interpreter
from solver import settlement
from solver.context import Context
from tests.chain.arena import Arena, Subject, replay

pytestmark = pytest.mark.chain

SEGMENTS = 4


@cache
def subject() -> Subject:
    """The digits task with one step per segment, because the games demand only checkpoints."""
    torch.set_num_threads(1)
    captured = digits.build(SEGMENTS)
    return Subject(captured.step_program, captured.fixed, captured.initial_state(1), SEGMENTS, 1)


@cache
def run() -> Replay:
    """The solver's honest run."""
    return replay(subject(), HonestExecutor(subject().program, subject().fixed, Interpreter()))


@pytest.fixture
def game(arena: Arena) -> int:
    """The number of a blind game on a new task. Solver and challenger have no credit."""
    for client in (arena.solver, arena.challenger):
        withdraw_credit(client)
    (task,) = arena.submitted(subject(), [run()])
    number, _ = arena.opened(task, run(), None, arena.challenger)
    return number


def asked(arena: Arena, game: int, nodes: list[tuple[int, int]]) -> tuple[Move, bytes]:
    """A demand for nodes of the segment tree, and the game's present head. Each node is given by its first
    leaf and its size.
    """
    tree = segment_tree(list(run().segment_roots() or []))
    head = arena.challenger.game.game(game).head
    openings = [Node(lo, size, tree.node(lo, size), tree.subtree_path(lo, size)) for lo, size in nodes]
    empty = (NO_INSTRUCTION, NO_LEAF)
    arguments = (game, head, int(TreeKind.SEGMENT), empty, bytes(32), bytes(32), openings)
    return Move("demand", arguments, answers=tuple(32 if size == 1 else 0 for _, size in nodes)), head


def answer_leaf(arena: Arena, game: int, index: int, lo: int, nodes: list[tuple[int, int]]) -> Receipt:
    """Let the solver reveal leaf `lo` of the segment tree, which is node number `index` of the demand
    `nodes`.
    """
    roots = list(run().segment_roots() or [])
    tree = segment_tree(roots)
    named = [(first, size, tree.node(first, size)) for first, size in nodes]
    head = arena.solver.game.game(game).head
    return arena.solver.game.send_move(Move("revealLeaf", (game, index, 0, named, roots[lo])), head)


def test_answers_are_paid_and_the_rest_comes_back(arena: Arena, game: int) -> None:
    calls, solver, challenger = arena.challenger.game, arena.solver.address, arena.challenger.address
    nodes = [(0, SEGMENTS + 1), (1, 1)]
    move, head = asked(arena, game, nodes)
    at_most = calls.deposit(move.answers)
    calls.send_move(move, head)
    each = calls.game(game).deposit
    assert 0 < 2 * each <= at_most
    assert calls.credit(challenger) + 2 * each == arena.devnet.connection.balance(calls.address) == at_most

    receipt = answer_leaf(arena, game, 1, 1, nodes)
    assert calls.credit(solver) == each
    gas_price = int(arena.devnet.connection.block(receipt.block).base_fee)
    assert each >= 2 * receipt.gas_used * gas_price

    arena.devnet.skip(1_000)
    calls.time_out(game)
    assert calls.game(game).verdict is Verdict.SOLVER_SILENT
    assert calls.credit(challenger) == at_most - each
    amount, taken = withdraw_credit(arena.challenger)
    assert amount == at_most - each
    assert taken is not None
    assert withdraw_credit(arena.challenger) == (0, None)
    assert withdraw_credit(arena.solver)[0] == each
    assert arena.devnet.connection.balance(calls.address) == 0


def test_change_pays_the_next_demand(arena: Arena, game: int) -> None:
    calls = arena.challenger.game
    move, head = asked(arena, game, [(1, 1)])
    calls.send_move(move, head)
    held = arena.devnet.connection.balance(calls.address)
    change, each = calls.credit(arena.challenger.address), calls.game(game).deposit
    assert change > 0
    answer_leaf(arena, game, 0, 1, [(1, 1)])
    move, head = asked(arena, game, [(2, 1)])
    value = calls.deposit(move.answers) - change
    calls.send_move(move, head)
    assert arena.devnet.connection.balance(calls.address) == held + value
    assert calls.credit(arena.solver.address) == each


def test_a_solver_takes_what_its_answers_earned_with_its_tokens(arena: Arena, game: int) -> None:
    calls, sent = arena.solver.game, dict[str, object]()
    move, head = asked(arena, game, [(1, 1)])
    arena.challenger.game.send_move(move, head)
    answer_leaf(arena, game, 0, 1, [(1, 1)])
    earned = calls.credit(arena.solver.address)
    assert earned == calls.game(game).deposit
    context = SimpleNamespace(
        client=arena.solver, count=lambda what, _receipt, **about: sent.update({what: about})
    )
    settlement.withdraw(cast(Context, context), arena.solver.vault.free(arena.solver.address))
    assert sent == {"withdrawCredit": {"wei": str(earned)}}
    assert calls.credit(arena.solver.address) == 0


def test_a_base_fee_that_outgrows_the_deposit_costs_no_game(arena: Arena, game: int) -> None:
    """The base fee rises after the demand is signed, so that the deposit no longer suffices. The demand is
    mined and reverts; the next call sends it again.
    """
    connection, calls = arena.devnet.connection, arena.challenger.game
    move, head = asked(arena, game, [(1, 1)])
    nonce = connection.transaction_count(arena.challenger.address)
    connection.request("evm_setAutomine", False)
    try:
        with ThreadPoolExecutor(1) as threads:
            sending = threads.submit(calls.send_move, move, head)
            wait_for_pending(arena, nonce)
            # The offered fee includes a tip of one gwei, which leaves room for this rise.
            raised = 3 * connection.block().base_fee
            connection.request("anvil_setNextBlockBaseFeePerGas", hex(raised))
            arena.devnet.mine()
            with pytest.raises(Reverted) as refused:
                sending.result()
    finally:
        connection.request("evm_setAutomine", True)
    assert refused.value.name == "DepositTooSmall"
    assert refused.value.gas_used > 0
    assert calls.game(game).head == head
    receipt = calls.send_move(move, head)
    assert connection.transaction_count(arena.challenger.address) == nonce + 2
    assert receipt.success
    state = calls.game(game)
    assert (state.demands, state.demand_open) == (1, 1)
    # After any restart, the demand is not sent again.
    assert calls.send_move(move, head).transaction == receipt.transaction
    assert calls.game(game).demands == 1


def test_demands_of_two_games_wait_side_by_side_and_share_no_credit(arena: Arena) -> None:
    connection, calls = arena.devnet.connection, arena.challenger.game
    for client in (arena.solver, arena.challenger):
        withdraw_credit(client)
    tasks = arena.submitted(subject(), [run(), run()])
    games = [arena.opened(task, run(), None, arena.challenger)[0] for task in tasks]
    calls.send_move(*asked(arena, games[0], [(1, 1)]))
    answer_leaf(arena, games[0], 0, 1, [(1, 1)])
    change, held = calls.credit(arena.challenger.address), connection.balance(calls.address)
    assert change > 0
    nonce = connection.transaction_count(arena.challenger.address)
    demands = [asked(arena, game, [(2, 1)]) for game in games]
    due = sum(calls.deposit(move.answers) for move, _ in demands)
    with ThreadPoolExecutor(2) as threads:
        connection.request("evm_setAutomine", False)
        try:
            sending = [threads.submit(calls.send_move, *demand) for demand in demands]
            wait_for_pending(arena, nonce + 1)
        finally:
            arena.devnet.mine()
            connection.request("evm_setAutomine", True)
            arena.devnet.mine()
        receipts = [one.result() for one in sending]
    assert receipts[0].block == receipts[1].block
    assert connection.balance(calls.address) == held + due - change
    assert [calls.game(game).demand_open for game in games] == [1, 1]


def test_a_demand_that_is_refused_for_another_reason_is_not_sent_again(arena: Arena, game: int) -> None:
    calls, nonce = arena.challenger.game, arena.devnet.connection.transaction_count(arena.challenger.address)
    move, _ = asked(arena, game, [(1, 1)])
    with pytest.raises(Reverted, match="WrongHead"):
        calls.send_move(Move("demand", (game, bytes(32), *move.arguments[2:]), answers=(32,)), bytes(32))
    assert arena.devnet.connection.transaction_count(arena.challenger.address) == nonce


def test_without_coin_for_the_longest_game_nothing_is_begun(arena: Arena) -> None:
    calls, connection = arena.challenger.game, arena.devnet.connection
    due = calls.coin_of_longest()
    deployment = arena.challenger.deployment
    with connect(arena.devnet.url, deployment, "dev:7") as poor:
        kept = connection.balance(poor.address)
        try:
            connection.request("anvil_setBalance", poor.address, hex(2 * calls.coin_of_longest() - 1))
            require_coin(poor, 1)
            with pytest.raises(NotEnoughCoin, match=f"expected {coin(2 * due)}"):
                require_coin(poor, 2)
        finally:
            connection.request("anvil_setBalance", poor.address, hex(kept))


def wait_for_pending(arena: Arena, nonce: int) -> None:
    """Wait until the challenger's transaction with this nonce is pending."""
    give_up = monotonic() + 60
    while arena.devnet.connection.transaction_count(arena.challenger.address, "pending") <= nonce:
        assert monotonic() < give_up
        sleep(0.01)
