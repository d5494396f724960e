"""An honest solver that is accused while it is busy, or in many games at once, must never lose on the clock.

At commit fd6f56d false accusers got the stake: the solver answered once per round in
its training thread, one move per game, waited for each receipt, and kept the roots of only two segments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from time import monotonic, sleep

import pytest

from protocol.chain.parameters import TOKEN
from protocol.chain.views import TaskStatus
from tests.attacks.false_games import NODES, FalseGames, honest_run
from tests.attacks.processes import Party
from tests.chain.rpc_proxy import RpcProxy
from tests.chain.solver_stage import Stage, mined_at_once
from tests.unit.solver import tiny

pytestmark = pytest.mark.chain

LONG_STEPS = 300
"""Steps of a segment that trains for 120 s."""


@contextmanager
def accused(
    scene: Stage, segments: int, segment_steps: int, *flags: str, late: str = "1:0", **terms: int
) -> Iterator[tuple[Callable[[], int], FalseGames]]:
    """An honest solver that has submitted its result of a task, and an account with bonds for games on that
    task.

    Yields a function that counts the steps that the solver has run in all tasks, and the account's
    `FalseGames`. The solver has the `flags` of `tests.adversaries`; `late` is the value of `--late`.
    """
    log = scene.home.root / "steps"
    flags = ("--late", late, "--step-log", str(log), *flags)
    with ExitStack() as stack:
        accuser = stack.enter_context(closing(scene.client("dev:2")))
        with mined_at_once(scene):
            accuser.fund(5_000 * TOKEN)
            stack.enter_context(Party(scene, "solver", *flags, adversary="honest-solver"))
            task = scene.sold(segments=segments, segment_steps=segment_steps, **terms)
            scene.until_drawn(task)  # from here on the solver owes nothing
        yield lambda: log.stat().st_size, FalseGames(accuser, task, honest_run(segments, segment_steps))


@contextmanager
def behind(scene: Stage, proxy: RpcProxy) -> Iterator[None]:
    """Let parties that are made inside the context reach the chain through the proxy."""
    direct, scene.url = scene.url, proxy.url
    yield
    scene.url = direct


def questions_of_signing(proxy: RpcProxy) -> int:
    """The number of calls so far of RPC methods that are used only to sign and send transactions."""
    asked = ("eth_estimateGas", "eth_maxPriorityFeePerGas", "eth_getBalance", "eth_sendRawTransaction")
    return sum(proxy.asked[method] for method in asked)


def until_waiting(scene: Stage, address: str, count: int) -> None:
    """Wait until an account has this many pending transactions with consecutive nonces."""
    connection, deadline = scene.devnet.connection, monotonic() + 60
    while (
        found := connection.transaction_count(address, "pending") - connection.transaction_count(address)
    ) < count:
        assert monotonic() < deadline, f"{found} of {count} transactions wait for a block"
        sleep(0.05)


def test_a_challenge_is_answered_while_another_task_trains_a_long_segment(scene: Stage) -> None:
    """A segment of the second task takes 120 s, but the solver must answer within 30 s. Before the fix, the
    solver was slashed.
    """
    with accused(scene, tiny.SEGMENTS, tiny.STEPS, late="2:0.4") as (steps, games):
        with mined_at_once(scene):
            busy = scene.sold(segment_steps=LONG_STEPS)
            scene.until(busy, lambda view: view.status is TaskStatus.TRAINING)
        scene.until(busy, lambda _view: steps() > tiny.SEGMENTS * tiny.STEPS)
        game = games.open(1)
        asked = games.client.now()
        assert games.until_convicted_or([game], "is_expanded", [1]), "slashed while it trained"
        assert steps() < tiny.SEGMENTS * tiny.STEPS + LONG_STEPS, "it waited for the other task's segment"
        assert games.expanded_at(1) <= asked + 30, "it waited for the other task's segment"
        assert scene.submitter.market.task(games.task).status is TaskStatus.SUBMITTED


def test_sixteen_nodes_are_revealed_together_in_one_block(scene: Stage) -> None:
    """A demand for 16 nodes, and only one block before the clock runs out. All reveals are pending when that
    block is mined; a solver that waits for each receipt would have sent only one.

    At commit 7ebdc6a, the solver held one lock while it estimated the gas of a reveal and signed the reveal,
    and it asked for the fees and the balance again for each reveal. So the 16 reveals took 64 requests and,
    on busy cores, five blocks. Here no reveal is sent again with a higher fee, however busy the cores are.
    """
    devnet = scene.devnet
    with (
        RpcProxy(devnet.url) as proxy,
        behind(scene, proxy),
        accused(scene, NODES, 1, "--replace-after", "600") as (_, games),
        mined_at_once(scene),
    ):
        game = games.open_blind()
        devnet.connection.request("evm_setAutomine", False)
        with ThreadPoolExecutor(1) as pool:
            demand = pool.submit(games.demand_checkpoints, game)
            until_waiting(scene, games.client.address, 1)
            before = questions_of_signing(proxy)
            devnet.mine()
            demand.result()
        last = games.client.game.game(game).deadline
        devnet.connection.request("evm_setNextBlockTimestamp", hex(last))  # the clock stands still until then
        until_waiting(scene, scene.submitter.market.task(games.task).bidder, NODES)
        assert questions_of_signing(proxy) - before <= 3 * NODES
        devnet.mine()
        assert games.is_answered(game)
        assert len(games.blocks_of_reveals(game)) == NODES


def test_six_demands_at_once_are_answered_in_forty_seconds(scene: Stage) -> None:
    """Six games demand 96 nodes in all. The solver may use 40 s of each game's clock, and its reveals share
    blocks. Before the fix, the solver waited for each receipt and was slashed with reveals missing.
    """
    with accused(scene, NODES, 1) as (_, games):
        with mined_at_once(scene):
            numbers = [games.open_blind() for _ in range(6)]
        games.at_once([partial(games.demand_checkpoints, number) for number in numbers])
        assert games.until_convicted_or(numbers, "is_answered"), "slashed with reveals missing"
        blocks = [games.blocks_of_reveals(number) for number in numbers]
        assert all(len(found) == NODES for found in blocks)
        assert len(set().union(*blocks)) <= len(numbers) * NODES // 2
        assert all(games.solver_spent(number) <= 40 for number in numbers)


def test_games_in_four_segments_replay_each_of_them_once(scene: Stage) -> None:
    """Replaying a segment takes half a second, and 16 nodes are demanded of each of four step trees. Before
    the fix, the solver kept the roots of only two segments and was slashed with reveals missing.
    """
    segments = [1, 2, 3, 4]
    with accused(scene, len(segments), NODES - 1, late=f"1:{0.5 / NODES}") as (steps, games):
        trained = steps()
        with mined_at_once(scene):
            numbers = [games.open(segment) for segment in segments]
            assert games.until_convicted_or(numbers, "is_expanded", segments), "slashed without step trees"
        demands = [partial(games.demand_steps, *pair) for pair in zip(numbers, segments, strict=True)]
        games.at_once(demands)
        assert games.until_convicted_or(numbers, "is_answered"), "slashed with reveals missing"
        assert steps() == trained + len(segments) * (NODES - 1)
        assert all(games.solver_spent(number) <= 2 * 30 for number in numbers), "a step tree and a demand"
