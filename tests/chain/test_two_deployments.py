"""One node serves two deployments of one chain: old tasks end on the old contracts, new ones on the new.

The new contracts use a second version of the arithmetic (`second_arithmetic`). In the first test, the parties
are processes that are killed twice: for the upgrade, and again while each deployment has a task in flight.
"""

from __future__ import annotations

import json
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from assay import results
from assay.commands import Context
from assay.errors import ResultError
from assay.showing import show
from examples.demo.preloaded import Forked
from protocol.chain.accounts import development_account
from protocol.chain.deployment import kept_file
from protocol.chain.events import Follower
from protocol.chain.parameters import TOKEN
from protocol.chain.receipts import Event
from protocol.chain.views import NOBODY, TaskStatus
from protocol.dispute.view import Verdict
from protocol.errors import ExitCode
from protocol.node.home import Home
from protocol.node.output import Output
from protocol.tasks.bundles import Limits
from solver.strategy import Strategy
from tests.adversaries.tiny import moves_a_weight_far
from tests.chain.second_arithmetic import SECOND, Later, computed, register
from tests.chain.solver_stage import Solver, Stage, submitted
from tests.chain.test_verifier_watch import Watcher, until_registered, wait
from tests.forked import start
from tests.unit.solver import killing

pytestmark = pytest.mark.chain

SLOWLY = partial(killing.dawdle, 0.05)
SEGMENTS = 8
PATIENCE = 180.0
"""Seconds to wait for processes that may still be starting."""
ONCE = (
    "BidPlaced",
    "Assigned",
    "Submitted",
    "DrawAsked",
    "Drawn",
    "Attested",
    "Settled",
    "Seated",
    "Registered",
)


class Party:
    """A party's command in its own process, with the home folder of the stage."""

    def __init__(self, scene: Stage, party: str, command: str, account: int, *flags: str) -> None:
        self.address = str(development_account(account, scene.devnet.chain_id).address)
        self.log = scene.home.root.with_name(f"{party}.log")
        self._command = [command, "--log-json", "--rpc", scene.devnet.url, "--dev-account", str(account)]
        self._command += ["--port", "0", *flags]
        self._party = party
        self._process: Forked | None = None

    def start(self, *before: Callable[[], None]) -> None:
        """Start the party as an operator would. `before` is called first, in the party's process."""
        self._process = start(f"{self._party}.cli", *self._command, log=self.log, before=before)

    def end(self, how: signal.Signals) -> int:
        """Send a signal; returns the exit code."""
        assert self._process is not None
        self._process.send_signal(how)
        return self._process.wait(60)

    def close(self) -> None:
        """Kill the process if it still runs."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def forget_market(self, home: Home) -> None:
        """Give the party's folder the name that it has in releases that know only one deployment per chain."""
        (folder,) = (path for path in (home.root / self._party).iterdir() if path.is_dir())
        folder.rename(folder.with_name(folder.name.rpartition("-")[0]))


@pytest.fixture
def second() -> Iterator[None]:
    with computed():
        yield


@pytest.fixture
def alone(scene: Stage) -> Stage:
    """A stage on which the verifier under test is the only one in the draw."""
    scene.submitter.audit.resign()
    return scene


@pytest.fixture
def parties(alone: Stage) -> Iterator[tuple[Party, Party]]:
    """The solver and the verifier, not started yet."""
    scene = alone
    for name in ("dev:1", "dev:2"):
        scene.client(name).close()  # gives it tokens
    shared = f"relays = {json.dumps([scene.relay])}\npoll = 0.05\n"
    bundles = json.dumps([scene.bundles.parent.as_uri()])
    scene.home.config.parent.mkdir(exist_ok=True)
    scene.home.config.write_text(
        "".join(f"[{party}]\nbundles = {bundles}\n{shared}" for party in ("solver", "verifier"))
    )
    made = (
        Party(scene, "solver", "run", 1, "--stake", "600"),
        Party(scene, "verifier", "watch", 2, "--stake", "30"),
    )
    try:
        yield made
    finally:
        for party in made:
            party.close()
            if party.log.exists():
                print(party.log.read_text())


def events(scene: Stage) -> Sequence[Event]:
    """All events of a stage's contracts."""
    client = scene.submitter
    return Follower(client.connection, client.contracts, scene.deployment.block).poll().events


def fetched(scene: Stage, task: int, home: Path, limits: Limits) -> int | None:
    """The number of steps in a task's result; None if the result cannot be fetched, for example because the
    parties that hold it have announced no address since their last start.
    """
    try:
        return int(results.fetch(scene.submitter, Home(home), task, limits).state["count"])
    except ResultError:
        return None


def blocks(scene: Stage, name: str) -> list[int]:
    """Block numbers of a stage's events with this name."""
    return [event.log.block for event in events(scene) if event.name == name]


def draw_fees(scene: Stage, account: str) -> int:
    """Token units that an account has earned by executing draws."""
    drawn = [event for event in events(scene) if event.name == "Drawn"]
    mine = [event for event in drawn if event.arguments["drawer"] == account]
    return len(mine) * scene.deployment.parameters.draw_fee


def worth(stages: tuple[Stage, ...], account: str) -> int:
    """Token units of an account: in its wallet, free in the vaults, and locked as a verifier's stake."""
    total = stages[0].submitter.token.balance_of(account)
    for scene in stages:
        client = scene.submitter
        registration = client.audit.registration(account)
        total += client.vault.free(account)
        total += 0 if registration is None else client.vault.lock_of(registration.lock).remaining
    return total


def has_announced(scene: Stage, party: Party) -> bool:
    """Whether a party has announced its address in a stage's contracts, and so is ready for work there."""
    return bool(scene.submitter.market.endpoint_of(party.address))


def attested(scene: Stage, task: int) -> bool:
    """Whether all seats of a task are attested."""
    return all(seat.attested for seat in scene.submitter.audit.seats(task))


def upgraded(scene: Stage, parties: tuple[Party, Party]) -> Later:
    """Kill both parties, deploy the later contracts, and restart both with a release for both versions."""
    for party in parties:
        party.end(signal.SIGKILL)
        party.forget_market(scene.home)
    later = Later(scene)
    solver, verifier = parties
    solver.start(SLOWLY, register)
    verifier.start(register)
    return later


@pytest.mark.timeout(600)
@pytest.mark.usefixtures("second")
def test_an_old_task_ends_on_the_old_contracts_and_a_new_one_on_the_new(
    alone: Stage, parties: tuple[Party, Party], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scene, (solver, verifier) = alone, parties
    before = {party.address: worth((scene,), party.address) for party in parties}
    verifier.start()
    wait(lambda: scene.submitter.audit.registered() > 0, PATIENCE)
    solver.start(SLOWLY)
    wait(lambda: has_announced(scene, solver), PATIENCE)
    old = scene.post(SEGMENTS)
    scene.until(old, lambda view: view.bidder != NOBODY, PATIENCE)
    scene.end_bidding(old)
    scene.until(old, lambda view: view.size > 1, PATIENCE)

    later = upgraded(scene, parties)
    wait(lambda: later.submitter.audit.registered() > 0, PATIENCE)
    wait(lambda: has_announced(later, solver), PATIENCE)
    left = scene.post()  # on the old contracts, where nobody bids any more
    new = later.post(SEGMENTS)
    assert (later.deployment.arithmetic, later.submitter.market.terms(new).arithmetic) == (SECOND, SECOND)
    later.until(new, lambda view: view.bidder != NOBODY, PATIENCE)
    later.end_bidding(new)
    later.until(new, lambda view: view.size > 1, PATIENCE)

    for party in parties:
        party.end(signal.SIGKILL)
    solver.start(register)
    verifier.start(register)
    both: tuple[tuple[Stage, int], ...] = ((scene, old), (later, new))
    home = tmp_path / "another"
    limits = Limits(allowed=(scene.bundles.parent.as_uri(),), this_machine=True)
    for place, task in both:
        place.until(task, submitted, PATIENCE)
        place.until_drawn(task)
        wait(lambda place=place, task=task: attested(place, task), PATIENCE)  # type: ignore[misc]
        wait(lambda place=place, task=task: fetched(place, task, home, limits) == SEGMENTS * 4, PATIENCE)  # type: ignore[misc]
    later.end_challenges(new)
    for place, task in both:
        view = place.until(task, lambda view: view.status.is_over, PATIENCE)
        assert (view.status, view.solver) == (TaskStatus.SETTLED, solver.address)
        wait(lambda place=place, task=task: place.submitter.audit.seats(task)[0].released, PATIENCE)  # type: ignore[misc]

    stages = (scene, later)
    earned = {
        solver.address: sum(place.submitter.market.task(task).price for place, task in both),
        verifier.address: 2 * TOKEN,
    }
    for account in earned:
        due = before[account] + earned[account] + sum(draw_fees(place, account) for place in stages)
        wait(lambda account=account, due=due: worth(stages, account) == due)  # type: ignore[misc]
    wait(lambda: scene.submitter.vault.free(solver.address) == 0)  # nothing is left there
    for place in stages:
        happened = Counter(event.name for event in events(place))
        assert {name: happened[name] for name in ONCE} == dict.fromkeys(ONCE, 1) | {
            "Registered": 1 if place is later else 2  # the submitter's too
        }
    assert scene.submitter.market.task(left).bidder == NOBODY
    (handed_in,), (bid,) = blocks(scene, "Submitted"), blocks(later, "BidPlaced")
    assert handed_in < bid, "one training at a time"

    capsys.readouterr()
    asked = {"rpc": scene.devnet.url}
    show(Context(scene.home, asked, Output("status", as_json=True)), old)
    told = json.loads(capsys.readouterr().out)["data"]
    at = [place.deployment.addresses.market for place in (later, scene)]
    assert [(one["market"], one["task"], one["status"]) for one in told] == [
        (at[0], new, "settled"),
        (at[1], old, "settled"),
    ]
    chosen = asked | {"deployment": kept_file(scene.deployment)}
    show(Context(scene.home, chosen, Output("status", as_json=True)), None, past=True)
    assert [one["task"] for one in json.loads(capsys.readouterr().out)["data"]] == [old, left]
    assert [party.end(signal.SIGINT) for party in parties] == [ExitCode.INTERRUPTED] * 2


@pytest.mark.usefixtures("second")
def test_a_lie_about_a_later_arithmetic_is_judged_by_its_arbiter(alone: Stage) -> None:
    later = Later(alone)
    watcher = Watcher(later, stake=30, whistleblow=True)
    until_registered(later)
    solver = Solver(later, Strategy(executor=moves_a_weight_far))
    try:
        task = later.sold()
        assert later.until(task, lambda view: view.status.is_over, 120).status is TaskStatus.SLASHED
        assert watcher.join() is ExitCode.FRAUD
        assert later.submitter.game.game(1).verdict is Verdict.SOLVER_FALSE
    finally:
        watcher.close()
        solver.close()
    assert alone.submitter.game.games() == 0
