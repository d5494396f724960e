"""The audit of a task: attestations, redraws of silent seats, and the beacon's draws, which Python recomputes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from protocol.beacon.bn254 import word
from protocol.chain.views import Seat
from protocol.node.party.rounds import execute_first_draw
from protocol.tasks.draws import seed_of, segments_of, words
from sim.agents.verifiers import Check
from sim.mechanism.arrays import Flags, Indices
from sim.mechanism.draw import NOBODY, Draw
from sim.replay.digests import Attestation
from sim.replay.drawing import found
from sim.replay.rounds import signature
from sim.replay.stage import Stage
from sim.replay.timing import attestation
from sim.replay.training import Trained


class Auditing:
    """The audit of one submitted task on the chain. It carries out what the engine's `Checker` asks for, and
    records it in the books.
    """

    def __init__(self, stage: Stage, task: int, trained: Trained) -> None:
        self.stage = stage
        self.task = task
        self.trained = trained
        self.attestations: dict[int, Attestation] = {}
        """Attestations by seat or look number."""
        self.owed = True
        """Whether the escrow still owes the fee of a draw that has been requested but not yet executed."""
        self._seats = stage.scenario.parameters.verifiers
        self._segments: list[list[int]] = []
        self.accounts: list[int] = []
        """All verifiers drawn for the task, in the order of the draws, including those that lost their seats."""
        self._accounts = [NOBODY] * self._seats

    def segments(self, seat: int) -> list[int]:
        """The segments of a seat."""
        return self._segments[seat]

    def first(self) -> Draw:
        """Execute and return the first draw, which is for all seats."""
        parameters, audit = self.stage.scenario.parameters, self.stage.referee.audit
        accounts = self._draw([True] * self._seats)
        first = audit.audit(self.task).seed
        self._segments = [
            segments_of(first, seat, parameters.segments, parameters.segments_per_verifier)
            for seat in range(self._seats)
        ]
        chain = [audit.segments(self.task, seat) for seat in range(self._seats)]
        self.stage.same("segments of the seats", self._segments, chain)
        self.stage.books.drawn()
        self.stage.booked(f"task {self.task}: drawn")
        drawn = np.array(self._segments, dtype=np.int32).T[:, :, None]
        return Draw(np.array(accounts)[:, None], drawn)

    def nobody(self) -> Draw:
        """A draw in which all seats are empty, for a task whose draw did not take place."""
        parameters = self.stage.scenario.parameters
        shape = (parameters.segments_per_verifier, self._seats, 1)
        return Draw(np.full(shape[1:], NOBODY), np.ones(shape, dtype=np.int32))

    def attest(self, accounts: Indices, check: Check) -> None:
        """Have the accounts attest in the seats that `check` marks as attesting. `accounts` has one account
        for each seat. `accounts` and the arrays in `check` have shape (V, 1).
        """
        for seat, account in enumerate(accounts[:, 0].tolist()):
            if check.attests[seat, 0]:
                if len(self.attestations) == self._seats - 1 and self.stage.scenario.parameters.look_chance:
                    self.ask_for_looks(1, range(self._seats * len(self._segments[seat])), 0)
                self.attest_one(account, seat, replayed=bool(check.replays[seat, 0]))
        self.stage.booked(f"task {self.task}: {len(self.attestations)} of {self._seats} seats attested")

    def attest_one(self, verifier: int, number: int, *, replayed: bool) -> int:
        """Have a verifier attest in its seat or look; return the verifier's account."""
        client, account = self.stage.verifiers[verifier], self.stage.first_verifier + verifier
        made = Attestation.of(client, account, self.task, number, self.trained, replayed=replayed)
        client.audit.attest(self.task, number, made.digest, made.salt_hash)
        self.attestations[number] = made
        return account

    def ask_for_looks(self, level: int, candidates: Sequence[int], looks: int) -> None:
        """Prepare for the next transaction, which will request the draw of the looks on `level`. If the
        scenario wants this draw to pick particular looks, wait for a time at which this transaction leads to
        them. Otherwise do not wait.

        `looks` is the number of looks picked on all lower levels.
        """
        scenario = self.stage.scenario
        if level <= len(scenario.picked):
            room = scenario.parameters.slots - looks
            chance, wanted = scenario.look_chance, scenario.picked[level - 1]
            time = attestation(self.stage.referee, self.task, candidates, chance, room, wanted)
            self.stage.devnet.next_block_at(time)
        self.owed = True

    def redraw(self, asked: Flags) -> Indices:
        """Redraw the seats marked in `asked`, once their time to attest is over. Return the new account of
        each seat, or NOBODY if the seat was not redrawn or nobody was found. `asked` and the result are (V,
        1).
        """
        stage = self.stage
        silent = [seat for seat in range(self._seats) if asked[seat, 0] and self._accounts[seat] != NOBODY]
        stage.until(stage.referee.audit.audit(self.task).until)
        stage.referee.audit.redraw(self.task)
        accounts = [stage.first_verifier + self._accounts[seat] for seat in silent]
        stage.books.asked(accounts)
        names = ", ".join(stage.name(account) for account in accounts) or "nobody"
        stage.booked(f"task {self.task}: {names} silent, drawn again")
        found_again = self._draw(asked[:, 0].tolist())
        stage.books.redrawn()
        stage.booked(f"task {self.task}: seats drawn again")
        return np.array(found_again)[:, None]

    def execute_late(self) -> None:
        """Execute the draw of a task that has already ended, once the beacon's round arrives. The accounts
        that this draw finds get neither a seat nor a look.
        """
        before = self._places()
        self.execute()
        self.stage.same("seats and looks of a task that was over when it was drawn", before, self._places())
        self.stage.books.drawn()
        self.stage.booked(f"task {self.task}: drawn after its end")

    def release(self) -> None:
        """Release the seats and looks of an ended task, except those that lost their lock. Accounts that were
        silent or lost a lock top up their stakes.
        """
        for seat in self._places():
            if not seat.caught:
                self.stage.referee.audit.release(self.task, seat.number)
        for verifier in self.accounts:
            client = self.stage.verifiers[verifier]
            registration = client.audit.registration(client.address)
            if registration is not None and registration.suspended:
                client.audit.resume()
                self.stage.books.resumed(self.stage.first_verifier + verifier)
        self.stage.booked(f"task {self.task}: seats released")

    def _draw(self, asked: list[bool]) -> list[int]:
        """Execute the draw. Return one account for each seat: for a seat marked in `asked`, the account as
        computed here; for any other seat, NOBODY.

        The chain's accounts of all seats must equal the computed ones.
        """
        stage = self.stage
        seed = self.execute()
        again = found(words(seed), stage.slots, sum(asked), self.accounts)
        drawn = [again.pop(0) if wanted else NOBODY for wanted in asked]
        for seat, wanted in enumerate(asked):
            if wanted:
                self._accounts[seat] = drawn[seat]
        self.accounts += [account for account in drawn if account != NOBODY]
        expected = [
            None if account == NOBODY else stage.verifiers[account].address for account in self._accounts
        ]
        seats = stage.referee.audit.seats(self.task)
        stage.same(
            "accounts of the seats", expected, [None if seat.is_empty else seat.account for seat in seats]
        )
        return drawn

    def _places(self) -> list[Seat]:
        """Seats and looks that have an account."""
        audit = self.stage.referee.audit
        return [seat for seat in (*audit.seats(self.task), *audit.looks(self.task)) if not seat.is_empty]

    def execute(self) -> bytes:
        """Execute the next draw and return its seed."""
        seed = self.seed()
        self.send(seed)
        return seed

    def seed(self) -> bytes:
        """Wait for the round of the next draw, and return the draw's seed."""
        stage, client = self.stage, self.stage.referee
        first = client.audit.first_draw()
        stage.same("the first draw of the queue", self.task, first and first.task)
        assert first is not None
        stage.until(client.deployment.beacon.time_of(first.round))
        root = client.market.task(self.task).root
        return seed_of(
            client.deployment.chain_id,
            client.audit.address,
            self.task,
            root,
            first.number,
            word(signature(first.round)),
        )

    def send(self, seed: bytes) -> None:
        """Execute the next draw. Its seed must be the same here and on the chain."""
        stage, client = self.stage, self.stage.referee
        done = execute_first_draw(client, signature)
        assert done is not None  # Nobody else executes draws on this chain.
        self.owed = False
        stage.same("seed of a draw", seed, client.audit.event(done[1], "Drawn").arguments["seed"])
