"""`assay.train` on a chain: a trained model comes back with its proof; a second task continues it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import assay
from assay.errors import AnotherTask, NotCancelled, NotConfirmed, NotMinedAgain, ResultError, StartError
from assay.proofs import load_proof
from assay.training.handle import Handle
from protocol.capture import LoadError
from protocol.chain.errors import Reverted
from protocol.chain.parameters import TOKEN
from protocol.chain.views import TaskStatus
from protocol.errors import ExitCode
from tests.chain.rpc_proxy.reorganising import reorganise
from tests.chain.sending import wait_mined
from tests.chain.solver_stage import Solver, Stage
from tests.chain.test_assay_commands import Submitter

pytestmark = pytest.mark.chain

STEPS, SEGMENTS = 6, 2
TERMS = {
    "budget": 50,
    "stake": 100,
    "restitution": 10,
    "audit_fee": 1,
    "game_cost": 3,
    "delay_penalty": 1,
    "bidding_period": 60,
    "training_period": 600,
    "challenge_period": 600,
    "attest_period": 400,
    "extension": 20,
    "clock": 350,
    "verifiers": 1,
    "segments_per_verifier": 1,
}
DATA = {"x": torch.arange(32.0).reshape(8, 4) / 32, "y": torch.ones(8, 2)}


class Line(nn.Module):
    """A model with a frozen layer and two buffers. Training writes one of the buffers, and only reads the other."""

    scale: Tensor
    seen: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 2)
        self.frozen = nn.Linear(2, 2)
        self.frozen.requires_grad_(False)
        self.register_buffer("scale", torch.tensor(2.0))
        self.register_buffer("seen", torch.zeros(2))

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.frozen(self.linear(x)) * self.scale
        if self.training:
            self.seen.copy_(y.detach().mean(0))
        return y


def made(seed: int = 0) -> Line:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Line()


def objective(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
    return F.mse_loss(model(batch["x"]), batch["y"])


class Owner:
    """A submitter that calls `assay.train`, with a home folder, an account and a bundle server."""

    def __init__(self, submitter: Submitter) -> None:
        self.submitter = submitter
        self.bundles = submitter.serve()

    def train(self, **options: Any) -> Handle:
        model = made()
        given: dict[str, Any] = {
            "batch_size": 4,
            "steps": STEPS,
            "segments": SEGMENTS,
            "terms": TERMS,
            "home": self.submitter.home,
            "bundles_url": self.bundles,
            "yes": True,
            **options,
        }
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        return assay.train(model, objective, optimizer, DATA, **given)

    def attach(self, task: int, **options: Any) -> Handle:
        return assay.attach(task, home=self.submitter.home, **options)


@pytest.fixture
def owner(scene: Stage, tmp_path: Path) -> Iterator[Owner]:
    submitter = Submitter(scene, tmp_path)
    try:
        yield Owner(submitter)
    finally:
        submitter.close()


class Settling:
    """Runs a thread that takes a task to its settlement. Meanwhile, the test waits for the settlement."""

    def __init__(self, scene: Stage, task: int) -> None:
        self._error: BaseException | None = None

        def run() -> None:
            try:
                scene.end_bidding(task)
                scene.until_drawn(task)
                scene.attest(task)
                scene.end_challenges(task)
                scene.until(task, lambda view: view.status is TaskStatus.SETTLED)
            except BaseException as error:
                self._error = error

        self._thread = Thread(target=run, daemon=True)
        self._thread.start()

    def join(self) -> None:
        self._thread.join(90)
        if self._error is not None:
            raise self._error


def test_a_model_is_trained_and_comes_back(
    scene: Stage, owner: Owner, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(NotConfirmed) as unasked:
        owner.train(yes=False)
    price = unasked.value.price
    assert price is not None
    assert (price.budget, scene.submitter.market.tasks()) == (50 * TOKEN, 0)
    assert "trust in all" in str(price)
    asked: list[assay.Price] = []

    def refuse(price: assay.Price) -> bool:
        asked.append(price)
        return False

    with pytest.raises(NotConfirmed, match="nothing was sent"):
        owner.train(yes=False, ask=refuse)
    assert [one.escrow for one in asked] == [price.escrow]
    assert scene.submitter.market.tasks() == 0

    solver = Solver(scene, once=False)
    told: list[tuple[int, Mapping[str, float]]] = []
    late: list[int] = []
    seen: list[str] = []
    try:
        with owner.train(callbacks=[lambda step, metrics: told.append((step, metrics))]) as handle:
            assert handle.price.share == price.share
            assert handle.status == "bidding"
            assert handle.loss == {}
            with pytest.raises(ResultError, match="expected a submitted or settled task"):
                handle.result()
            while not seen:
                assert (
                    handle.wait(timeout=0.5, on_progress=lambda progress: seen.append(progress.status))
                    == "bidding"
                )
            settling = Settling(scene, handle.task)
            seen.clear()
            assert handle.wait(on_progress=lambda progress: seen.append(progress.status)) == "settled"
            settling.join()
            # A later callback receives every step; no callback receives one twice.
            assert handle.wait(on_metrics=lambda step, _metrics: late.append(step)) == "settled"
            assert [step for step, _ in told] == late == [3, 6]
            assert handle.loss == {step: metrics["loss"] for step, metrics in told}
            assert handle.metrics == dict(told)
            result = handle.result()
            assert result.final
            assert result.metrics == told[-1][1]
            check_loading(handle, result.state)
            assert handle.proof.task.terms == handle.terms
            handle.save(tmp_path / "result")
        assert load_proof(tmp_path / "result" / "proof.json").tensor_roots
        with owner.attach(handle.task, quiet=True) as again:
            assert again.loss == handle_loss(told)
            assert again.price.trust == price.trust
            with pytest.raises(NotCancelled):
                again.cancel()
    finally:
        solver.close()
    check_going_on(owner, tmp_path / "result", result.state)
    assert seen, "the last wait has passed on the progress too"
    printed = capsys.readouterr().out
    assert "trust costs" in printed
    assert f"task {handle.task} is over, settled: the result is final" in printed
    owner.submitter.run(
        *("verify", str(tmp_path / "result" / "proof.json")),
        *("--weights", str(tmp_path / "result" / "state.safetensors")),
    )


def handle_loss(told: list[tuple[int, Mapping[str, float]]]) -> dict[int, float]:
    return {step: metrics["loss"] for step, metrics in told}


def check_loading(handle: Handle, state: Mapping[str, Tensor]) -> None:
    """The model gets all tensors, trained and frozen; a model that does not fit gets none."""
    model = made(seed=1)
    handle.load_into(model)
    assert torch.equal(model.linear.weight, state["linear.weight"])
    assert torch.equal(model.seen, state["seen"])
    assert torch.equal(model.frozen.weight, made().frozen.weight), "frozen in the task, and part of it"
    larger = made()
    larger.linear = nn.Linear(5, 2)
    before = {name: tensor.clone() for name, tensor in larger.state_dict().items()}
    named_otherwise = nn.ModuleDict({"linear": nn.Linear(4, 2), "head": nn.Linear(2, 2)})
    without = nn.ModuleDict({"linear": nn.Linear(4, 2)})
    for other, said in (
        (larger, "the shape"),
        (named_otherwise, "parameter head.weight of the model"),
        (without, "tensor seen of the trained state"),
        (made().double(), "expected torch.float32"),
    ):
        with pytest.raises(LoadError, match=said):
            handle.load_into(other)
    assert all(torch.equal(tensor, before[name]) for name, tensor in larger.state_dict().items())


def check_going_on(owner: Owner, folder: Path, state: Mapping[str, Tensor]) -> None:
    """A second task starts from the weights and momentum of the first, and draws other batches. No solver may
    run: it could bid before this function cancels the task.
    """
    with pytest.raises(StartError, match="another than 0"):
        owner.train(start=folder, seed=0)
    with owner.train(start=folder, quiet=True) as second:
        bundle = second._bundle.initial_state()
        for name in ("linear.weight", "linear.weight.momentum", "seen"):
            assert torch.equal(bundle[name], state[name]), name
        assert bundle["key"].tolist() == [1, 0]
        assert int(bundle["step"]) == 0
        assert second.cancel() > 50 * TOKEN
        assert second.wait() == "refunded"

        with pytest.raises(Reverted, match="there is no such task"):
            owner.attach(77)


# ---------------------------------------------------------------------- re-organisations


class Replaced:
    """Replaces the chain's newest block, and sends its only transaction again on demand."""

    def __init__(self, scene: Stage) -> None:
        self._connection = scene.devnet.connection
        self._request = self._connection.request
        self._request("evm_setIntervalMining", 0)
        self._request("evm_setAutomine", True)

    def take_back(self) -> None:
        """Replace the newest block by an empty one."""
        (sent,) = self._request("eth_getBlockByNumber", "latest", False)["transactions"]
        self._raw = self._request("eth_getRawTransactionByHash", sent)
        reorganise(lambda method, arguments: {"result": self._request(method, *arguments)}, 1)

    def send_again(self) -> str:
        """Send the transaction without waiting for a block; returns its hash."""
        return str(self._request("eth_sendRawTransaction", self._raw))

    def mine_again(self) -> None:
        """Send the transaction and wait until it is mined; the chain must mine by itself."""
        wait_mined(self._connection, self.send_again())


def test_a_number_that_becomes_another_tasks_is_noticed(scene: Stage, owner: Owner) -> None:
    """A re-organisation removes the post, which is then mined again. A second re-organisation puts a
    stranger's post, with the same terms, before the owner's post.
    """
    stranger = scene.client("dev:2")
    stranger.fund(1_000 * TOKEN)
    replaced = Replaced(scene)
    with stranger, owner.train(quiet=True) as handle, owner.attach(handle.task, quiet=True) as attached:
        handles = (handle, attached)
        assert [each.wait(timeout=0.0) for each in handles] == ["bidding", "bidding"]
        replaced.take_back()
        for each in handles:
            assert each._watch.run_until(0.0) is None, "it may be mined again"
            with pytest.raises(NotMinedAgain, match="its post may be mined again"):
                each.result()
        replaced.mine_again()
        assert [each.wait(timeout=0.0) for each in handles] == ["bidding", "bidding"]

        replaced.take_back()
        other, _ = stranger.market.post(handle.terms)
        replaced.mine_again()
        assert other == handle.task
        model = made(seed=1)
        for each in handles:
            reads = partial(each.wait, 0.0), partial(each.load_into, model), partial(getattr, each, "status")
            for read in reads:
                with pytest.raises(AnotherTask, match=f"yours is task {other + 1} now") as refused:
                    read()
                assert refused.value.number == other + 1
        assert torch.equal(model.linear.weight, made(seed=1).linear.weight)
        with owner.attach(other + 1, quiet=True) as again:
            assert again.terms == handle.terms
            assert again.cancel() > 50 * TOKEN


def test_a_number_means_the_task_that_was_posted_here_also_later(
    scene: Stage, owner: Owner, tmp_path: Path
) -> None:
    """A submitter that looks at its task again only after a re-organisation does not get the stranger's task,
    which has the task's number by then.
    """
    stranger = scene.client("dev:2")
    stranger.fund(1_000 * TOKEN)
    replaced, submitter = Replaced(scene), owner.submitter
    with stranger, owner.train(quiet=True) as handle:
        number, terms = handle.task, handle.terms
        replaced.take_back()
        with owner.attach(number, quiet=True) as early, pytest.raises(NotMinedAgain):
            early.result()
        assert stranger.market.post(terms)[0] == number
        replaced.mine_again()
        (tmp_path / "elsewhere").mkdir()
        elsewhere = Submitter(scene, tmp_path / "elsewhere").home
        with assay.attach(number, home=elsewhere, quiet=True) as other:
            assert other.report.submitter == stranger.address, "nothing is known of it there"
        _, refusal = submitter.run("watch", str(number), code=ExitCode.HOPELESS)
        assert f"yours is task {number + 1} now" in refusal
        with pytest.raises(AnotherTask):
            owner.attach(number, quiet=True)
        with owner.attach(number + 1, quiet=True) as found:
            assert found.report.submitter == handle._known.submitter
            assert found.cancel() > 50 * TOKEN
