"""Attacks that keep a verifier (`verifier watch`) from replaying or accusing tasks that it must check.

Three attacks were reproduced at commit fd6f56d, where the attacker, which had trained nothing, was paid each
time. In the first, a bundle server that sent one byte a second occupied both replay workers, so another task
with random roots settled. In the second, an endpoint that is not a host name ended every replay of its task.
In the third, four sacrificed tasks occupied the verifier's four games, so the verifier did not accuse a fifth
task, and even sent `settle` for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from protocol.chain.parameters import TOKEN
from protocol.chain.views import TaskStatus
from tests.attacks.blinding import Scene, trickling
from tests.attacks.blinding import scene as staged
from tests.attacks.processes import Party, metric, until
from tests.chain.rounds import ANYTHING

pytestmark = pytest.mark.chain

LONG_CLOCK = 2_000
"""The clock of a sacrificed task's game, in seconds: longer than the challenge window of the other tasks."""


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with staged(tmp_path) as made:
        yield made


ACCOUNTS = [f"dev:{index}" for index in range(20, 28)]
"""Further accounts of the verifier under test, or accounts of the cheat's accomplices. A draw among these
eight accounts and one more almost always fills all four or five seats: fewer than one draw in 10^9 leaves a
seat empty.
"""


@contextmanager
def drawn_alone(scene: Scene) -> Iterator[Party]:
    """Yields the verifier under test, the only one in the draw. It has nine accounts, because an account can
    have only one seat at a time.
    """
    for account in ACCOUNTS:
        scene.client(account).close()  # gives it tokens
    further = [part for account in ACCOUNTS for part in ("--further-account", account)]
    with Party(scene, "verifier", *further, stake=10) as verifier:
        scene.submitter.audit.resign()
        yield verifier


def test_a_bundle_that_trickles_holds_no_other_task(scene: Scene) -> None:
    """Before the fix, both workers waited for the bundles of three bait tasks, and no game was opened on the
    fourth task.
    """
    with trickling() as address, drawn_alone(scene) as verifier:
        scene.cheat.market.announce(address)
        # A task with a shorter period comes first, so the baits would always come first.
        baits = [
            scene.post(bundle=address, bundle_hash=bytes([k]) * 32, attest_period=k, challenge_period=k + 4)
            for k in (180, 190, 200)
        ]
        task = scene.post()
        scene.cheated([*baits, task])
        until(lambda: task in scene.games_on(), verifier)
        assert all(scene.view(bait).status is TaskStatus.SUBMITTED for bait in baits)
        until(lambda: scene.submitter.game.game(1).demand_open > 0, verifier)
        scene.devnet.skip(500)
        until(lambda: scene.view(task).status is TaskStatus.SLASHED, verifier)


def test_an_endpoint_that_no_library_takes_serves_nothing(scene: Scene) -> None:
    """Before the fix, each replay raised idna.IDNAError, and no game was opened."""
    with drawn_alone(scene) as verifier:
        scene.cheat.market.announce("https://xn--a/")
        task = scene.post()
        scene.cheated([task])
        until(lambda: task in scene.games_on(), verifier)


def test_work_that_crashes_is_its_tasks_failure_alone(scene: Scene) -> None:
    """The verifier's only worker gets three tasks: one that needs too much memory, one whose bundle cannot be
    fetched, and a third. The verifier still accuses the third task.
    """

    def failed(kind: str) -> bool:
        return metric(verifier, "assay_verifier_failures_total", kind=kind) > 0

    flags, adversary = ("--unloadable", "1"), "honest-accuser"
    with Party(scene, "verifier", *flags, adversary=adversary, replays=1) as verifier:
        tasks = [
            scene.post(),
            scene.post(bundle="https://xn--a/", bundle_hash=bytes(31) + b"\x01"),
            scene.post(),
        ]
        scene.cheated(tasks)
        until(lambda: tasks[2] in scene.games_on(), verifier)
        until(lambda: failed("load") and failed("fetch"), verifier)
        assert verifier.ended is None


def test_sacrificed_tasks_keep_no_other_from_being_accused(scene: Scene) -> None:
    """Before the fix, the verifier found a difference in the fifth task but never accused it, because the
    other four tasks occupied all games.
    """
    with ExitStack() as parties:
        accomplices = [parties.enter_context(scene.client(account)) for account in ACCOUNTS]
        for accomplice in accomplices:
            accomplice.fund(100 * TOKEN)
            accomplice.audit.register(0, ANYTHING)
        verifier = parties.enter_context(Party(scene, "verifier", "--whistleblow", "--stake", "0"))
        tasks = [scene.post(segments=1, clock=LONG_CLOCK) for _ in range(4)]
        tasks.append(scene.post(segments=1, stake=600 * TOKEN))
        scene.cheated(tasks)
        for accomplice in (scene.submitter, *accomplices):
            for task in tasks:
                for seat in accomplice.audit.seats(task):
                    if seat.account == accomplice.address:
                        accomplice.audit.attest(task, seat.number, bytes(32), bytes(32))
        assert all(scene.submitter.audit.audit(task).attested for task in tasks)
        for task in tasks:
            verifier.until("different", task=task)
        until(lambda: sorted(scene.games_on()) == tasks, verifier)
        until(lambda: all(scene.submitter.game.game(number).demand_open for number in range(1, 6)), verifier)
        scene.devnet.skip(LONG_CLOCK * 5)
        until(lambda: all(scene.view(task).status is TaskStatus.SLASHED for task in tasks), verifier)
