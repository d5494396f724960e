"""What a verifier attests, and how it uses salts that others give away, on a real chain."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from protocol.chain.accounts import development_account
from protocol.chain.errors import Reverted
from protocol.chain.events import Follower
from protocol.chain.parameters import TOKEN
from protocol.chain.receipts import Event
from protocol.commitments import step_tree
from protocol.commitments.digests import Digester, seat_digest
from protocol.dispute.keys import informing_commitment, salt_hash, seat_salt, seat_secret
from protocol.errors import ExitCode
from protocol.execution.replay import HonestExecutor
from protocol.program.execute import Interpreter
from tests.adversaries.outsourcing import DigestService, attest_by, offer
from tests.chain.solver_stage import PARAMETERS, Solver, Stage
from tests.chain.test_verifier_watch import Watcher, until_registered, wait
from tests.forked import run
from tests.unit.solver import tiny
from tests.unit.verifier.test_replaying import canonical
from verifier.context import Context
from verifier.errors import SaltRefused
from verifier.informing import inform
from verifier.salts import salted
from verifier.settings import VerifierSettings
from verifier.strategy import HONEST

pytestmark = pytest.mark.chain

LOCK = 8 * TOKEN
FEE = TOKEN
THINNING = 2


def happened(scene: Stage, name: str, task: int) -> list[Event]:
    """A task's events with this name."""
    follower = Follower(scene.devnet.connection, scene.submitter.contracts, scene.deployment.block)
    events = follower.poll().events
    return [event for event in events if event.name == name and event.arguments.get("task") == task]


def expected_digest(segments: list[int], salt: bytes) -> bytes:
    """The digest of a seat with these segments and this salt, computed by an honest run of the whole task."""
    program = tiny.step_program()
    executor, digester = HonestExecutor(program, tiny.fixed(), Interpreter()), Digester(salt, THINNING)
    states = [tiny.initial()]
    for number in range(1, tiny.SEGMENTS * tiny.STEPS + 1):
        states.append(dict(executor.step(states[-1], number)))
    roots = []
    for segment in segments:
        passed = states[(segment - 1) * tiny.STEPS : segment * tiny.STEPS + 1]
        digested = [digester.state_root(canonical(one), j) for j, one in enumerate(passed)]
        roots.append(step_tree(digested).root)
    return seat_digest(roots, Digester(salt, 1).state_root(canonical(states[-1]), 0))


def salt_of(scene: Stage, task: int, number: int, index: int) -> bytes:
    """The salt of a development account's seat, from its key and the chain alone."""
    account, chain = development_account(index, 31337), scene.deployment.chain_id
    board, seed = scene.submitter.audit.address, scene.submitter.audit.audit(task).seed
    secret = seat_secret(bytes(account.key), chain, board, task, number)
    return seat_salt(chain, board, task, number, str(account.address), seed, secret)


def test_each_seat_attests_the_digest_of_its_states_under_a_salt_of_its_own(scene: Stage) -> None:
    """Among the attested segments are those that the verifier replayed before the draw, as a whistleblower.
    Two seats of one process attest different digests.
    """
    scene.submitter.audit.resign()
    watcher = Watcher(scene, further=1, whistleblow=True)
    wait(lambda: scene.submitter.audit.registered() == 2)
    solver = Solver(scene)
    try:
        task = scene.sold(verifiers=2, segments_per_verifier=2, thinning=THINNING, seat_lock=LOCK)
        scene.until_drawn(task)
        wait(lambda: scene.submitter.audit.audit(task).attested == 2)
        attested = happened(scene, "Attested", task)
        indices = {watcher.clients[0].address: 2, watcher.clients[1].address: 20}
        for event in attested:
            told = event.arguments
            salt = salt_of(scene, task, told["seat"], indices[told["account"]])
            segments = scene.submitter.audit.segments(task, told["seat"])
            assert (told["digest"], told["saltHash"]) == (expected_digest(segments, salt), salt_hash(salt))
        assert len({event.arguments["digest"] for event in attested}) == 2
        scene.end_challenges(task)
    finally:
        watcher.close()
        solver.close()


@pytest.fixture
def served(scene: Stage) -> Iterator[tuple[Stage, Watcher, Solver, int]]:
    """A drawn task whose only seat is the submitter's, and a running verifier without a seat."""
    solver = Solver(scene)
    task = scene.sold(seat_lock=LOCK)
    watcher = Watcher(scene)
    try:
        wait(lambda: scene.submitter.audit.registered() == 2 and bool(url(scene, watcher)))
        scene.until_drawn(task)
        yield scene, watcher, solver, task
    finally:
        watcher.close()
        solver.close()


def url(scene: Stage, watcher: Watcher) -> str:
    """The address at which the watcher accepts salts."""
    return scene.submitter.market.endpoint_of(watcher.client.address)


def wealth(scene: Stage, address: str) -> int:
    return scene.submitter.vault.free(address) + scene.submitter.token.balance_of(address)


def test_who_has_its_digest_computed_loses_its_lock_to_an_informer(
    served: tuple[Stage, Watcher, Solver, int],
) -> None:
    scene, watcher, _, task = served
    client, audit = scene.submitter, scene.submitter.audit
    settings = VerifierSettings.model_validate({"bundles": (scene.bundles.as_uri(),), "port": 0})
    context = Context.at(scene.home, client, settings, HONEST)
    before = wealth(scene, watcher.client.address)
    seat = attest_by(DigestService(context, [url(scene, watcher)]), client, task)
    context.database.close()

    wait(lambda: bool(happened(scene, "Informed", task)))
    (attested,), (informed,) = happened(scene, "Attested", task), happened(scene, "Informed", task)
    own = salt_of(scene, task, seat.number, 0)
    assert attested.arguments["digest"] == expected_digest(audit.segments(task, seat.number), own), (
        "as our own"
    )
    assert informed.arguments["account"] == client.address
    assert informed.arguments["informer"] == watcher.client.address
    assert informed.arguments["paid"] == LOCK // 2 == wealth(scene, watcher.client.address) - before
    assert audit.seat(task, seat.number).is_empty
    assert audit.audit(task).attested == 0
    registration = audit.registration(client.address)
    assert registration is not None
    assert registration.suspended
    assert scene.submitter.vault.lock_of(registration.lock).remaining == PARAMETERS.stake_unit - LOCK
    metrics, market = watcher.node.context.metrics.registry, {"market": client.market.address}
    wait(lambda: metrics.get_sample_value("assay_verifier_informed_total") == 1)
    wait(lambda: metrics.get_sample_value("assay_verifier_offered_salts", market) == 0)


def test_salts_that_fit_nothing_cost_the_verifier_nothing(served: tuple[Stage, Watcher, Solver, int]) -> None:
    scene, watcher, _, task = served
    client, audit, to = scene.submitter, scene.submitter.audit, url(scene, watcher)
    (seat,) = audit.seats(task)
    own = salted(client, task, seat, audit.audit(task).seed)
    elsewhere = salt_of(scene, task, seat.number, 2)
    sent = client.connection.transaction_count(watcher.client.address)
    wait(lambda: offer(to, task, 0, elsewhere) == 202)
    assert [offer(to, *where, own.salt) for where in ((task, 1), (task + 1, 0))] == [409, 409]
    assert offer(to, task, 0, own.hash) == 202, "nobody can tell yet"
    client.audit.attest(task, 0, bytes([1]) * 32, own.hash)
    kept = watcher.node.context.database.count_salts
    wait(lambda: kept() == 0)
    assert not happened(scene, "Informed", task)
    assert client.connection.transaction_count(watcher.client.address) == sent
    # A wrong digest is no excuse: the salt counts, whether offered before or after the attestation.
    assert offer(to, task, 0, own.salt) == 202
    wait(lambda: bool(happened(scene, "Informed", task)))
    wait(lambda: kept() == 0)
    wait(lambda: offer(to, task, 0, own.salt) == 409)  # the seat is empty


def test_an_informer_that_is_restarted_after_its_commitment_goes_on(
    served: tuple[Stage, Watcher, Solver, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    scene, watcher, _, task = served
    client, audit, to = scene.submitter, scene.submitter.audit, url(scene, watcher)
    own = salted(client, task, audit.seats(task)[0], audit.audit(task).seed)
    committed = informing_commitment(31337, client.looks.address, task, 0, watcher.client.address, own.salt)

    def fails(*_call: object) -> None:
        raise RuntimeError("the watcher is stopped before it informs")

    with monkeypatch.context() as patch:
        patch.setattr(watcher.client.looks, "inform", fails)
        wait(lambda: offer(to, task, 0, own.salt) == 202)
        client.audit.attest(task, 0, bytes([1]) * 32, own.hash)
        wait(lambda: watcher.client.looks.committed_in(committed) > 0)
        watcher.close()
    again = Watcher(scene)
    try:
        wait(lambda: bool(happened(scene, "Informed", task)))
        assert len(happened(scene, "Informed", task)) == 1
    finally:
        again.close()


def test_of_two_informers_one_is_paid_and_the_other_lets_go(
    served: tuple[Stage, Watcher, Solver, int],
) -> None:
    scene, watcher, _, task = served
    client, audit, to = scene.submitter, scene.submitter.audit, url(scene, watcher)
    own = salted(client, task, audit.seats(task)[0], audit.audit(task).seed)
    other = scene.client("dev:5")
    with pytest.raises(SaltRefused, match="no attestation yet"):
        inform(other, task, 0, own.salt, scene.devnet.mine)
    client.audit.attest(task, 0, bytes([1]) * 32, own.hash)
    with pytest.raises(SaltRefused, match="got another"):
        inform(other, task, 0, own.hash, scene.devnet.mine)
    wait(lambda: offer(to, task, 0, own.salt) == 202)
    try:
        inform(other, task, 0, own.salt, scene.devnet.mine)
    except (Reverted, SaltRefused):
        winner = watcher.client.address
    else:
        winner = other.address
    wait(lambda: bool(happened(scene, "Informed", task)))
    (informed,) = happened(scene, "Informed", task)
    assert informed.arguments["informer"] == winner
    with pytest.raises(SaltRefused, match="a seat that somebody was drawn for"):
        inform(other, task, 0, own.salt, scene.devnet.mine)
    other.close()


def test_the_command_informs_by_hand_and_says_why_not(
    served: tuple[Stage, Watcher, Solver, int], tmp_path: Path
) -> None:
    scene, _, _, task = served
    client, audit = scene.submitter, scene.submitter.audit
    own = salted(client, task, audit.seats(task)[0], audit.audit(task).seed)
    scene.client("dev:5").close()  # gives it tokens
    deployment = tmp_path / "deployment.json"
    deployment.write_text(scene.deployment.model_dump_json())

    def command(salt: str) -> subprocess.CompletedProcess[str]:
        words = ["inform", str(task), "0", salt]
        words += ["--dev-account", "5", "--rpc", scene.devnet.url, "--deployment", str(deployment)]
        words += ["--home", str(tmp_path / "by-hand"), "--json"]
        return run("verifier.cli", *words)

    early = command(own.salt.hex())
    assert (early.returncode, "no attestation yet" in early.stderr) == (ExitCode.HOPELESS, True)
    client.audit.attest(task, 0, bytes([1]) * 32, own.hash)
    nonsense = command(own.salt.hex()[1:])
    assert (nonsense.returncode, "expected 64 hexadecimal digits" in nonsense.stderr) == (
        ExitCode.HOPELESS,
        True,
    )
    found = command(f"0x{own.salt.hex()}")
    assert found.returncode == ExitCode.FINE, found.stderr
    assert json.loads(found.stdout)["data"]["units"] == str(LOCK // 2)
    (informed,) = happened(scene, "Informed", task)
    assert informed.arguments["informer"] == str(development_account(5, 31337).address)


def test_nobody_informs_of_itself_or_of_a_task_that_is_over(scene: Stage) -> None:
    scene.submitter.audit.resign()
    watcher = Watcher(scene)
    until_registered(scene)
    solver = Solver(scene)
    try:
        task = scene.sold(seat_lock=LOCK)
        scene.until_drawn(task)
        wait(lambda: scene.submitter.audit.audit(task).attested == 1)
        salt = salt_of(scene, task, 0, 2)
        assert offer(url(scene, watcher), task, 0, salt) == 409
        with pytest.raises(SaltRefused, match="a seat of another account"):
            inform(watcher.client, task, 0, salt, scene.devnet.mine)
        scene.end_challenges(task)
        watcher.join()
        with pytest.raises(SaltRefused, match="no such task"):
            inform(scene.submitter, task, 0, salt, scene.devnet.mine)
    finally:
        watcher.close()
        solver.close()
