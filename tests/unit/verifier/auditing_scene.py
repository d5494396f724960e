"""A verifier whose two accounts have seats in a drawn task, and stubs of its replays, for tests of its audits."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

from protocol.chain.accounts import DEVELOPMENT_CHAIN, development_account
from protocol.chain.client import Client
from protocol.chain.views import Seat
from protocol.commitments.digests import Digester, seat_digest
from protocol.node.party.exits import Observation
from protocol.tasks.admission import Clocks, Rates
from tests.unit.verifier.test_seats import AUDIT, ME, MINE_TOO, OTHER, VIEW, observation, seat
from verifier.auditing import _replay, attestations, offer
from verifier.context import Context
from verifier.database import Database
from verifier.findings import Committed, Different, Equal, Finding
from verifier.jobs import Job, Jobs
from verifier.jury import Jury
from verifier.salts import salted

SEGMENTS = {0: [1, 2], 1: [2, 3], 2: [2], 3: [4]}
SEATS = [seat(0, MINE_TOO), seat(1, OTHER), seat(2, ME), seat(3, OTHER)]

COMMITTED = Committed(VIEW.root, VIEW.size)
RESULT = VIEW.size
DRAWN = observation(seats=(seat(0, MINE_TOO), seat(1, OTHER), seat(2, ME), seat(3, OTHER)))
THINNING = 4
PERIOD = 40


class Replays:
    """Stub replays of one task: a segment's digest is made of the salt and the segment's number."""

    def __init__(self, false: int = 0) -> None:
        self.false = false
        self.asked: list[tuple[int, int]] = []

    def is_here(self, _committed: Committed, _segment: int) -> bool:
        return True

    def audit(self, _committed: Committed, segment: int, digesters: Sequence[Digester]) -> Finding:
        self.asked.append((segment, len(digesters)))
        digests = tuple(digest_of(one.salt, segment) for one in digesters)
        assert all(one.thinning == THINNING for one in digesters)
        return Different(segment, (bytes(32),), digests) if segment == self.false else Equal(digests)


class Withheld(Replays):
    """Replays of a solver that serves nothing and has committed to a false run."""

    def is_here(self, _committed: Committed, _segment: int) -> bool:
        return False

    def has_withheld(self, _committed: Committed) -> bool:
        return True

    def ask(self, _committed: Committed, _segments: Sequence[int], _seconds: float) -> None:
        """Get nothing."""

    def audit(self, _committed: Committed, _segment: int, _digesters: Sequence[Digester]) -> Finding:
        return Different(None, ())

    def digest_own(
        self, _committed: Committed, segment: int, digesters: Sequence[Digester]
    ) -> tuple[bytes, ...] | None:
        self.asked.append((segment, len(digesters)))
        if len(self.asked) == 1:
            return None  # our own run is still in progress
        return tuple(digest_of(one.salt, segment) for one in digesters)


class Order(Jobs):
    """Notes what is offered, and starts nothing."""

    def __init__(self) -> None:
        super().__init__(1, 1)
        self.offered: list[tuple[int | None, str]] = []
        self.until: list[float] = []

    def offer(self, job: Job) -> bool:
        self.offered.append(job.key)
        self.until.append(job.until)
        return False


class InTurn(Jobs):
    """Does each job once, as soon as it is offered. This order is fixed, unlike that of parallel threads."""

    def __init__(self) -> None:
        super().__init__(1, 1)
        self.done: set[tuple[int | None, str]] = set()

    def offer(self, job: Job) -> bool:
        if job.key in self.done:
            return False
        self.done.add(job.key)
        job.work()
        return True


def digest_of(salt: bytes, segment: int) -> bytes:
    """A made-up digest."""
    return bytes([*salt[:31], segment])


class Scene:
    """A verifier with two accounts, its database, and every attestation that was sent."""

    def __init__(
        self, database: Database, replays: Replays, whistleblow: bool = False, jurors: int = 0
    ) -> None:
        self.attested: list[tuple[str, int, int, bytes, bytes]] = []
        self.jury: Jury | None = None
        self.clients = {account: self._client(account, index) for account, index in ((ME, 2), (MINE_TOO, 3))}
        self.material = SimpleNamespace(
            replayer=replays,
            terms=SimpleNamespace(
                thinning=THINNING,
                jurors=jurors,
                segments=RESULT - 1,
                attest_period=PERIOD,
                segment_steps=2,
                step_operations=10,
                state_bytes=1,
                program_id=b"program",
            ),
            states=SimpleNamespace(tensors=lambda _number, _root: []),
        )
        log = SimpleNamespace(info=lambda *_a, **_k: None, warning=lambda *_a, **_k: None)
        self.context = cast(
            Context,
            SimpleNamespace(
                client=self.clients[ME],
                clients=self.clients,
                database=database,
                segments=lambda _task, number: SEGMENTS[number],
                materials=SimpleNamespace(find=lambda _task: self.material),
                results=SimpleNamespace(hold=lambda *_arguments: None),
                settings=SimpleNamespace(whistleblow=whistleblow),
                disk=SimpleNamespace(is_over_limit=False),
                log=log,
                looks=SimpleNamespace(),
                juries=SimpleNamespace(of=lambda _task: self.jury, has_voted_yes=lambda _task, _own: False),
                items=SimpleNamespace(has_state=lambda _task, _number: False),
                terms=lambda _task: self.material.terms,
                clocks=lambda _client, now: Clocks(2.0, 0.5, now),
                rates=Rates(3.0),
                work_by=lambda until, waits: until - 2.0 - 0.5 * waits,
            ),
        )

    def _client(self, account: str, index: int) -> Client:
        def attest(task: int, number: int, digest: bytes, salt_hash: bytes) -> SimpleNamespace:
            self.attested.append((account, task, number, digest, salt_hash))
            return SimpleNamespace(gas_used=1)

        return cast(
            Client,
            SimpleNamespace(
                address=account,
                sender=SimpleNamespace(account=development_account(index, DEVELOPMENT_CHAIN)),
                deployment=SimpleNamespace(chain_id=DEVELOPMENT_CHAIN),
                commitments=SimpleNamespace(address=OTHER),
                audit=SimpleNamespace(
                    address=OTHER, attest=attest, seats=lambda _task: SEATS, audit=lambda _task: AUDIT
                ),
            ),
        )

    def replay(self, seen: Observation, segment: int) -> None:
        _replay(self.context, seen, cast(Any, self.material), COMMITTED, segment)

    def due(self, seen: Observation) -> None:
        """Replay what is due."""
        offer(self.context, [seen], Jobs(1, 1), InTurn())

    def attest(self, seen: Observation) -> list[str]:
        jobs = list(attestations(self.context, seen))
        for job in jobs:
            job.work()
        return [job.what for job in jobs]

    def expected(self, one: Seat, seed: bytes = AUDIT.seed) -> tuple[bytes, bytes]:
        """The digest and the salt hash that one of the verifier's seats is expected to attest."""
        own = salted(self.clients[one.account], 1, one, seed)
        digests = [digest_of(own.salt, segment) for segment in (*SEGMENTS[one.number], RESULT)]
        return seat_digest(digests[:-1], digests[-1]), own.hash
