"""A game read from the chain alone: restarts and re-organisations do not change its view.

The first test's game has everything in it: a blind challenge, withheld data demanded node by node, a call, a
split row. `test_games` plays many other games.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest
import torch

from protocol.chain.client import connect
from protocol.chain.errors import UnstableChain
from protocol.chain.game import Game
from protocol.chain.game_view import GameReader, reveals
from protocol.dispute import challenger, defender
from protocol.dispute.in_process import Silent
from protocol.dispute.revealed import Revealed
from protocol.dispute.view import GameView, Phase, TreeKind, Verdict
from protocol.execution.replay import HonestExecutor
from protocol.numerics.types import DType
from protocol.program import Builder, Interpreter, Program, StepProgram, TensorType
from protocol.program.opcodes import Op
from tests.adversaries.covering import covers_up
from tests.adversaries.perturbing import Perturbation, PerturbedExecutor
from tests.chain.arena import Arena, Subject, fresh_arena, replay
from tests.chain.rpc_proxy import RpcProxy

pytestmark = pytest.mark.chain

ROW = TensorType(DType.F32, (1, 512))
"""A row of two blocks of 256 elements, so products over it are split."""


def norm() -> Program:
    """The squared length of a row, as a separate program."""
    b = Builder("norm")
    x = b.input(ROW)
    e = b.exponent(x)
    m = b.quantise(x, e, 13)
    b.output(b.round_scaled(b.dot(m, m), e, e, p=26))
    return b.build()


def subject() -> Subject:
    """A subject whose step is weights' = weights / 2 + norm(weights) / 1024 + data, so that the weights stay
    small.
    """
    b = Builder("step")
    weights, data = b.input(ROW), b.input(ROW)
    half = b.mul(weights, b.f32(0x3F000000))
    length = b.mul(b.call(norm(), weights)[0], b.f32(0x3A800000))
    b.output(b.add(b.add(half, length), data))
    program = StepProgram(b.build(), ("weights",), datasets=1, constants=0)
    program.check()
    data_tensor = torch.arange(512, dtype=torch.float32).reshape(1, 512) / 4096
    return Subject(program, (data_tensor,), {"weights": data_tensor / 3}, segments=2, segment_steps=2)


def more(product: int) -> int:
    """The integer product, changed so much that rounding to 24 bits does not remove the change."""
    return product + (1 << 20)


@pytest.fixture
def chain() -> Iterator[Arena]:
    with fresh_arena() as made:
        yield made


def place() -> tuple[int, int]:
    """Instruction numbers: the call of `norm` in the step, and the product in `norm`."""
    step, inner = subject().program.program, norm()
    call = next(step.calls())
    dot = next(n for n, instruction in enumerate(inner.instructions) if instruction.op is Op.DOT)
    return call, dot


def test_any_restart_and_any_reorganisation_leave_the_same_view(chain: Arena) -> None:
    task = subject()
    call, dot = place()
    wrong = Perturbation((call,), dot, 0, more, first=3, last=3)
    honest = replay(task, HonestExecutor(task.program, task.fixed, Interpreter({})))
    false = replay(task, PerturbedExecutor(task.program, task.fixed, {}, [wrong]))
    (number,) = chain.submitted(task, [false])
    game, _ = chain.opened(number, false, None, chain.challenger)
    client, first = chain.challenger, chain.challenger.deployment.block
    rpc = chain.devnet.connection

    def fresh() -> GameReader:
        return GameReader(client.game, game, task.program.program, first)

    lasting = fresh()
    revealed = Revealed()
    seen: list[GameView] = []
    while True:
        view = lasting.view()
        seen.append(view)
        assert view == fresh().view()
        if view.phase is Phase.CLOSED:
            break
        lasting.reveal_to(revealed)
        snapshot = rpc.request("evm_snapshot")
        for attempt in range(2):
            if view.solver_to_move:
                move = covers_up(view, false)
                sender = chain.solver
            else:
                move = challenger.next_move(view, honest, revealed, Silent())
                restarted, again = fresh(), Revealed()
                restarted.view()
                restarted.reveal_to(again)
                assert challenger.next_move(view, honest, again, Silent()) == move
                sender = client
            assert move is not None
            receipt = sender.game.send_move(move, view.head)
            if attempt == 0 and len(seen) % 3 == 0:
                # The move is read, dropped by a re-organisation, and made again by the same transaction.
                moved = lasting.view()
                assert moved != view
                assert rpc.request("evm_revert", snapshot)
                assert lasting.view() == view == fresh().view()
                taken = receipt.transaction
                continue
            assert attempt == 0 or receipt.transaction == taken
            break

    assert seen[-1].verdict is Verdict.SOLVER_FALSE
    last = seen[-2]
    assert (last.segment, last.step, last.path, last.instruction) == (2, 1, (call,), dot)
    assert {view.phase for view in seen} == {
        Phase.SEGMENT,
        Phase.STEP,
        Phase.FRAME,
        Phase.SPLIT,
        Phase.BLOCK,
        Phase.CLOSED,
    }
    asked = {view.demand.tree for view in seen if view.demand is not None}
    assert asked == {TreeKind.SEGMENT, TreeKind.STEP, TreeKind.TRACE, TreeKind.VALUE}
    split = [view.selection for view in seen if view.selection is not None]
    assert {(chosen.lo, chosen.hi, chosen.top) for chosen in split} == {(0, 2, True)}
    assert len(reveals(lasting._events)) == sum(view.demand is not None for view in seen)


def test_events_that_a_node_left_out_are_read_again(chain: Arena) -> None:
    """A node answers a request for a block's logs with none, though the block has some. A reader that never
    asked for them again would keep its party from every further move of the game.
    """
    task = subject()
    call, dot = place()
    wrong = Perturbation((call,), dot, 0, more, first=3, last=3)
    honest = replay(task, HonestExecutor(task.program, task.fixed, Interpreter({})))
    false = replay(task, PerturbedExecutor(task.program, task.fixed, {}, [wrong]))
    (number,) = chain.submitted(task, [false])
    game, _ = chain.opened(number, false, None, chain.challenger)
    client, revealed = chain.challenger, Revealed()
    first = client.deployment.block

    def reader(calls: Game) -> GameReader:
        return GameReader(calls, game, task.program.program, first)

    with (
        RpcProxy(chain.devnet.url) as proxy,
        connect(proxy.url, client.deployment) as behind,
    ):
        lasting, phases = reader(behind.game), set()
        view = lasting.view()
        while view.phase is not Phase.CLOSED:
            lasting.reveal_to(revealed)
            sender = chain.solver if view.solver_to_move else client
            move = (
                covers_up(view, false)
                if view.solver_to_move
                else challenger.next_move(view, honest, revealed, Silent())
            )
            assert move is not None
            sender.game.send_move(move, view.head)
            phases.add(view.phase)
            proxy.faults.no_logs = True
            with suppress(UnstableChain):
                lasting.view()
            proxy.faults.no_logs = False
            view = lasting.view()
            assert view == reader(client.game).view()
    assert view.verdict is Verdict.SOLVER_FALSE
    assert {Phase.SEGMENT, Phase.STEP, Phase.FRAME, Phase.SPLIT, Phase.BLOCK} <= phases


def test_reveals_are_told_once(chain: Arena) -> None:
    task = subject()
    call, dot = place()
    wrong = Perturbation((call,), dot, 0, more, first=1, last=1)
    honest = replay(task, HonestExecutor(task.program, task.fixed, Interpreter({})))
    false = replay(task, PerturbedExecutor(task.program, task.fixed, {}, [wrong]))
    (number,) = chain.submitted(task, [false])
    game, _ = chain.opened(number, false, None, chain.challenger)
    reader = GameReader(chain.challenger.game, game, task.program.program, chain.challenger.deployment.block)
    revealed = Revealed()
    view = reader.view()
    move = challenger.next_move(view, honest, revealed, Silent())
    assert move is not None
    assert move.function == "demand"
    chain.challenger.game.send_move(move, view.head)
    view = reader.view()
    assert view.demand is not None
    answer = defender.next_move(view, false)
    assert answer is not None
    chain.solver.game.send_move(answer, view.head)
    assert reader.view().demand is None

    class Counting(Revealed):
        told = 0

        def reveal(self, *arguments: object) -> None:
            self.told += 1

    counting = Counting()
    reader.reveal_to(counting)
    reader.reveal_to(counting)
    assert counting.told == 1
