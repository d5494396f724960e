"""`assay verify` and proof files, for an honest task and a task with a false segment; both are settled."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from assay import commands, verifying
from assay.commands import Context
from assay.errors import NotHeld, ProofError, ProofMalformed, ProofMismatch, ResultError, WeightsMismatch
from assay.proofs import MAX_BYTES, METADATA
from assay.verifying import Choice
from protocol.chain.errors import ChainError, Reverted, WrongChain
from protocol.chain.views import TaskStatus
from protocol.errors import AssayError, ExitCode
from protocol.node.home import Home
from protocol.node.output import Output, plain
from protocol.node.settings import SettingsError
from tests.adversaries.solvers import CHEATS
from tests.chain.solver_stage import SecondSolver, Solver, Stage, stage
from tests.forked import run
from tests.unit.node.servers import answers, serving

pytestmark = pytest.mark.chain

NOBODY = "http://127.0.0.1:1"
EVERY = Choice(every=True)
NONE = Choice()


@dataclass
class Settled:
    """Two settled tasks of three segments: an honest one, and one whose second segment is false. `early` is
    a proof of the honest task from before it was settled.
    """

    scene: Stage
    honest: int
    false: int
    solver: Solver
    cheat: Solver
    early: Path

    def context(self, home: Path) -> Context:
        return context_of(self.scene, home)


def context_of(scene: Stage, home: Path) -> Context:
    """The context of a command that a stranger runs, knowing only a node's address and the deployment."""
    deployment = home / "deployment.json"
    deployment.parent.mkdir(parents=True, exist_ok=True)
    deployment.write_text(scene.deployment.model_dump_json())
    return Context(Home(home), {"rpc": scene.url, "deployment": deployment}, Kept("test", True))


class Kept(Output):
    """Output that keeps its data for the test, because the printed lines are mixed with the solvers' logs."""

    data: Any = None

    def result(self, data: Any) -> None:
        super().result(data)
        self.data = plain(data)


def play(scene: Stage, task: int) -> None:
    """Take a task from bidding through its draw, and attest the submitter's seats."""
    scene.end_bidding(task)
    scene.until_drawn(task)
    scene.attest(task)


def settle(scene: Stage, task: int) -> None:
    """Wait until a task is settled, then release the submitter's seat."""
    scene.end_challenges(task)
    scene.until(task, lambda view: view.status is TaskStatus.SETTLED)
    scene.submitter.audit.release(task, 0)


@pytest.fixture(scope="module")
def settled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settled]:
    folder = tmp_path_factory.mktemp("settled")
    with ExitStack() as ends, pytest.MonkeyPatch.context() as patch:
        patch.setenv("ASSAY_HOME", str(folder / "home"))
        scene = ends.enter_context(stage(folder))
        honest = scene.post()
        solver = Solver(scene, once=False, tasks=(honest,))
        ends.callback(solver.close)
        play(scene, honest)
        early = folder / "early"
        commands.result(context_of(scene, early), honest, early, False, False)
        settle(scene, honest)
        false = scene.post()  # The verifier's only seat is free again.
        cheat = SecondSolver(scene, CHEATS["far-weight"], once=False, tasks=(false,))
        ends.callback(cheat.close)
        play(scene, false)
        settle(scene, false)
        yield Settled(scene, honest, false, solver, cheat, early / "proof.json")


@pytest.fixture(scope="module")
def fetched(settled: Settled, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the honest task's result and proof."""
    folder = tmp_path_factory.mktemp("fetched")
    commands.result(settled.context(folder / "home"), settled.honest, folder, False, True)
    settled.scene.devnet.mine()  # A proof with another block's number is to name a block that exists.
    return folder


@pytest.fixture
def verify(settled: Settled, tmp_path: Path) -> Callable[..., Any]:
    """`verify(target, choice, weights=…, code=…)` returns the data that the command reports."""

    def call(
        target: object, choice: Choice = NONE, weights: Path | None = None, code: ExitCode = ExitCode.FINE
    ) -> Any:
        context = settled.context(tmp_path / "home")
        named = None if target is None else str(target)
        assert verifying.verify(context, named, weights, choice) is code
        assert isinstance(context.output, Kept)
        return context.output.data

    return call


def test_an_honest_task_is_equal_wherever_it_is_looked_at(
    settled: Settled, verify: Callable[..., Any]
) -> None:
    every = verify(settled.honest, EVERY)
    assert (every["equal"], every["status"], every["final"]) == (True, "settled", True)
    assert [(one["segment"], one["equal"]) for one in every["segments"]] == [(1, True), (2, True), (3, True)]
    assert every["not_checked"] == []
    drawn = verify(settled.honest, Choice(count=2))
    assert len({one["segment"] for one in drawn["segments"]}) == 2
    assert drawn["not_checked"] == ["1 of 3 segments"]


def test_a_false_segment_is_found_at_exactly_that_segment(
    settled: Settled, verify: Callable[..., Any]
) -> None:
    every = verify(settled.false, EVERY, code=ExitCode.FRAUD)
    assert [one["equal"] for one in every["segments"]] == [True, False, True]
    assert every["segments"][1]["tensors"] == ["weights"]
    assert every["segments"][1]["committed"] != every["segments"][1]["computed"]
    assert not every["equal"]
    assert (
        verify(settled.false, Choice(named=(2,)), code=ExitCode.FRAUD)["segments"] == every["segments"][1:2]
    )
    assert verify(settled.false, Choice(named=(3, 1)))["segments"] == every["segments"][::2]


def test_without_a_server_only_a_whole_run_tells(settled: Settled, verify: Callable[..., Any]) -> None:
    market = settled.cheat.client.market
    served = market.endpoint_of(settled.cheat.client.address)
    verify(settled.false, Choice(named=(1,)))  # fetches and keeps the bundle
    market.announce(NOBODY)
    try:
        with pytest.raises(NotHeld, match="--all, which needs nobody's data"):
            verify(settled.false, Choice(count=1))
        every = verify(settled.false, EVERY, code=ExitCode.FRAUD)
        first, last = every["first_false"]
        assert first <= 2 <= last
        assert every["segments"] == []
        assert "nobody serves the solver's states" in every["not_checked"][0]
    finally:
        market.announce(served)


def test_who_serves_false_states_is_not_believed(settled: Settled, verify: Callable[..., Any]) -> None:
    """The server at the honest solver's address serves other states. The true roots are known only from a
    proof, because this server does not serve them.
    """

    def of_another_state(connection: socket.socket, target: str) -> None:
        answers(bytes(1_204))(connection, target)

    solver = settled.solver.client
    with serving(of_another_state) as liar:
        verify(settled.honest, Choice(named=(3,)))  # fetches and keeps the bundle
        served = solver.market.endpoint_of(solver.address)
        solver.market.announce(liar.url)
        try:
            with pytest.raises(NotHeld, match=r"checkpoint 2: expected .* got http\S+: a state with root"):
                verify(settled.early, Choice(named=(3,)))
            assert liar.targets[-1].endswith("checkpoints/2/groups/0")
            assert verify(settled.early, Choice(named=(1,)))["segments"][0]["equal"]
            with pytest.raises(NotHeld, match="state roots under"):
                verify(settled.honest, Choice(named=(3,)))
            assert verify(settled.honest, EVERY)["equal"]
        finally:
            solver.market.announce(served)


def test_segments_that_there_are_not_are_refused(settled: Settled, verify: Callable[..., Any]) -> None:
    with pytest.raises(SettingsError, match="expected 1 to 3"):
        verify(settled.honest, Choice(named=(4,)))
    with pytest.raises(Reverted, match=r"UnknownTask\(task=99\)"):
        verify(99, EVERY)
    unsold = settled.scene.post()
    with pytest.raises(ResultError, match="got none; it is bidding"):
        verify(unsold, EVERY)


def test_a_proof_and_its_weights_are_as_the_chain_says(
    settled: Settled, fetched: Path, verify: Callable[..., Any]
) -> None:
    state = fetched / "state.safetensors"
    found = verify(fetched / "proof.json", weights=state)
    assert (found["task"], found["status"], found["final"]) == (settled.honest, "settled", True)
    assert found["weights"] == {"tensors": 2, "missing": []}
    assert any("bit for bit" in sentence for sentence in found["checked"])
    assert found["not_checked"] == ["the training: --segments N, or --all, computes it again"]
    assert verify(None, weights=state)["weights"] == found["weights"], "the proof is in the state too"
    replayed = verify(fetched / "proof.json", EVERY)
    assert [one["equal"] for one in replayed["segments"]] == [True, True, True]
    assert "weights: --weights names a file of them" in replayed["not_checked"]
    early = verify(settled.early, weights=state)
    assert (early["status"], early["final"]) == ("settled", True), "as the chain says now"
    told = json.loads(settled.early.read_text())
    assert (told["task"]["status"], told["final"]) == ("submitted", False)


def test_a_proof_of_a_false_result_is_refuted_by_a_replay_alone(
    settled: Settled, verify: Callable[..., Any], tmp_path: Path
) -> None:
    commands.result(settled.context(tmp_path / "home"), settled.false, tmp_path, False, False)
    assert verify(tmp_path / "proof.json", weights=tmp_path / "state.safetensors")["equal"]
    found = verify(tmp_path / "proof.json", EVERY, code=ExitCode.FRAUD)
    assert [one["equal"] for one in found["segments"]] == [True, False, True]


def leaves(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yields the paths of all values that are neither objects nor lists."""
    if isinstance(value, dict | list):
        keys = value.keys() if isinstance(value, dict) else range(len(value))
        for key in keys:
            yield from leaves(value[key], (*path, key))
    else:
        yield path


def changed(value: Any) -> Any:
    """A different value of the same form. For None, it is a hash."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if value is None:
        return "0x" + "ab" * 32
    if value in ("settled", "submitted"):
        return "submitted" if value == "settled" else "settled"
    if value.startswith("0x"):
        return ("0x1" if value[2] != "1" else "0x2") + value[3:].lower()
    return value + "x"


def put(document: Any, path: tuple[str | int, ...], value: Any) -> Any:
    """A copy of the document with another value at `path`."""
    copied = deepcopy(document)
    inner = copied
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return copied


def test_each_field_of_a_proof_that_is_changed_is_named(
    fetched: Path, verify: Callable[..., Any], tmp_path: Path
) -> None:
    told = json.loads((fetched / "proof.json").read_text())
    file = tmp_path / "changed.json"
    paths = [path for path in leaves(told) if path[0] != "deployment"]
    assert len(paths) > 50
    for path in paths:
        old = told
        for key in path:
            old = old[key]
        file.write_text(json.dumps(put(told, path, changed(old))))
        if path == ("final",):
            assert verify(file)["final"], "true again by now"
            continue
        with pytest.raises((ProofError, ChainError)) as caught:
            verify(file)
        if isinstance(caught.value, ProofMismatch):
            field = caught.value.field.split(".")
            # Another number names another block, so it is the hash that differs.
            due = ["block", "hash"] if path == ("block", "number") else [str(key) for key in path]
            if path == ("task", "id"):  # another task: any of its fields may differ
                due = ["task", field[1]]
            assert field == due[: len(field)]
            assert len(field) >= min(2, len(path)) or path[0] in ("segment_roots", "tensor_roots")
        else:
            assert path in (("format",), ("version",), ("task", "id")) or path[:2] == ("task", "terms")
            assert isinstance(caught.value, ProofMalformed | Reverted)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("deployment", "chain_id"), 1, "chain id"),
        (("deployment", "genesis"), "0x" + "11" * 32, "deployment.genesis"),
        (("deployment", "addresses", "market"), "0x" + "11" * 20, "market: no contract"),
        (("deployment", "deployer"), "0x" + "11" * 20, "other arguments"),
        (("deployment", "parameters", "unbonding_period"), 4_101, "other arguments or another salt"),
        (("deployment", "block"), 1 << 40, "deployment.block"),
        (("deployment", "arithmetic"), 65_535, "arithmetic"),
        (("task", "id"), 99, "UnknownTask"),
        (("task", "seats"), [], "task.seats: expected 1 entries, got 0"),
        (("segment_roots",), ["0x" + "11" * 32], "segment_roots: expected 4 roots, got 1"),
        (("manifest",), "\ufffd", "manifest: expected SHA-256"),
    ],
)
def test_a_proof_of_something_else_is_refused(
    fetched: Path,
    verify: Callable[..., Any],
    tmp_path: Path,
    path: tuple[str | int, ...],
    value: Any,
    said: str,
) -> None:
    told = json.loads((fetched / "proof.json").read_text())
    file = tmp_path / "changed.json"
    file.write_text(json.dumps(put(told, path, value)))
    with pytest.raises(AssayError, match=said) as caught:
        verify(file)
    assert isinstance(caught.value, ProofMismatch | WrongChain | Reverted) or "arithmetic" in said


def test_weights_of_which_anything_differs_are_refused(
    fetched: Path, verify: Callable[..., Any], tmp_path: Path
) -> None:
    proof, file = fetched / "proof.json", tmp_path / "weights.safetensors"
    state = load_file(fetched / "state.safetensors")
    raw = (fetched / "state.safetensors").read_bytes()
    for bit in (0, 7, 8 * 1_000 + 3):
        data = bytearray(raw)
        data[-1 - bit // 8] ^= 1 << bit % 8
        file.write_bytes(data)
        with pytest.raises(WeightsMismatch, match=r"(weights|count) with root"):
            verify(proof, weights=file)
    for other, said in (
        ({"weights": state["weights"].reshape(3, 100)}, r"got F32 \[3, 100\]"),
        ({"weights": state["weights"].astype(np.float64)}, r"got F64 \[300\]"),
        ({**state, "bias": state["weights"]}, "got 'bias'"),
        ({}, "got no tensor"),
    ):
        save_file(other, file)
        with pytest.raises(WeightsMismatch, match=said):
            verify(proof, weights=file)
    save_file({"weights": state["weights"]}, file)
    found = verify(proof, weights=file)
    assert found["weights"] == {"tensors": 1, "missing": ["count"]}
    assert any("tensors of the result that the file has not: count" in one for one in found["not_checked"])


def test_hostile_files_are_one_clear_error(verify: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "hostile.json"
    with file.open("wb") as huge:
        huge.truncate(MAX_BYTES + 1)
    with pytest.raises(ProofMalformed, match=f"expected at most {MAX_BYTES} bytes"):
        verify(file)
    for text in (
        "",
        "[]",
        "[" * 100_000,
        '{"format": "assay-proof"}',
        "\udcff",
        '{"a": ' + "9" * 5_000 + "}",
    ):
        file.write_text(text, errors="surrogateescape")
        with pytest.raises(ProofMalformed):
            verify(file)
    with pytest.raises(ProofMalformed, match="expected a readable file"):
        verify(tmp_path)
    save_file({"x": np.zeros(1)}, tmp_path / "weights.safetensors", {METADATA: "{}"})
    with pytest.raises(ProofMalformed):
        verify(None, weights=tmp_path / "weights.safetensors")
    with pytest.raises(SettingsError, match="a proof file"):
        verify(None)


def test_the_commands_as_processes(settled: Settled, fetched: Path, tmp_path: Path) -> None:
    settled.context(tmp_path)
    environment = {"ASSAY_HOME": str(tmp_path)}
    reads = ("--rpc", settled.scene.url, "--deployment", str(tmp_path / "deployment.json"))
    done = run("assay.cli", "verify", str(settled.false), *reads, environment=environment)
    assert done.returncode == ExitCode.FRAUD, done.stderr
    assert "segment 2: FALSE" in done.stdout
    assert "segment 3: equal" in done.stdout
    assert "NOT EQUAL" in done.stdout
    # Without a deployment file, the proof's contracts are compared with the package's; the output says so.
    state = fetched / "state.safetensors"
    done = run(
        "assay.cli",
        "verify",
        "--weights",
        str(state),
        "--rpc",
        settled.scene.url,
        "--json",
        environment=environment,
    )
    assert done.returncode == ExitCode.FINE, done.stderr
    assert "equal: all that was checked is as committed" in done.stderr
    assert "no deployment file here has it" in json.loads(done.stdout)["data"]["not_checked"][0]
    done = run("assay.cli", "verify", "1", "--all", "--segments", "2", environment=environment)
    assert (done.returncode, done.stderr.count("\n")) == (ExitCode.HOPELESS, 1)
    with safe_open(state, framework="np") as file:
        assert json.loads(file.metadata()[METADATA]) == json.loads((fetched / "proof.json").read_text())
