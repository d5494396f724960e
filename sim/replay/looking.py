"""Second looks at an audited task. Looks come in levels. The beacon draws the looks of each level, and Python
recomputes the draw. Each look is then attested or given up.
"""

from __future__ import annotations

from collections.abc import Sequence

from protocol.chain.views import NOBODY as EMPTY
from protocol.chain.views import AuditView
from protocol.dispute.looks import LEVELS, Look
from protocol.tasks.draws import words
from sim.agents.verifiers import Check
from sim.engine.looking import LOOK_TRIES
from sim.mechanism.draw import NOBODY
from sim.replay.auditing import Auditing
from sim.replay.digests import Target
from sim.replay.drawing import found, looked


class Looking:
    """Carries out the looks of one task on the chain, as the engine's `Checker` asks for them, and records
    them in the books.

    Slots are those of the level drawn last; accounts are verifier numbers.
    """

    def __init__(self, auditing: Auditing) -> None:
        self._auditing = auditing
        self._stage = auditing.stage
        self._task = auditing.task
        self._level = 0
        self._tries = 0
        """Number of draws of the present level."""
        self._picked = 0
        """Number of looks picked on all levels."""
        self._awaited: dict[int, int] = {}
        """The looker of each slot whose look is neither attested nor given up."""
        self._attested: list[int] = []

    def target(self, look: Look) -> Target:
        """What a look checks: an attestation, and a segment of it."""
        each = self._stage.scenario.parameters.segments_per_verifier
        return Target.of(look, self._auditing.attestations[look.looked_at(each)], each)

    def pick(self, candidates: Sequence[int]) -> list[int]:
        """Execute the first draw of the next level; return the slots that it picks among the candidates."""
        scenario = self._stage.scenario
        self._level, self._tries, self._attested = self._level + 1, 0, []
        room = scenario.parameters.slots - self._picked
        picked, stream = looked(self._auditing.execute(), candidates, scenario.look_chance, room)
        self._picked += len(picked)
        self._seat(picked, found(stream, self._stage.slots, len(picked), self._auditing.accounts))
        audit = self._audit()
        self._stage.same("level and number of looks", (self._level, self._picked), (audit.level, audit.looks))
        self._stage.books.drawn()
        self._stage.booked(f"task {self._task}: looks of level {self._level} drawn, at slots {picked}")
        return picked

    def targets(self, slots: Sequence[int]) -> list[int]:
        """The accounts whose attestations these looks check."""
        accounts = [self.target(Look(self._level, slot)).attestation.account for slot in slots]
        return [account - self._stage.first_verifier for account in accounts]

    def reveal(self, slots: Sequence[int]) -> None:
        """Make the targets of these looks reveal their secrets and the segments' roots. A look without a
        looker is left out, because it has been given up.
        """
        for slot in [each for each in slots if each in self._awaited]:
            look = Look(self._level, slot)
            target = self.target(look)
            made, client = target.attestation, self._stage.clients[target.attestation.account]
            client.looks.reveal(self._task, look.number, made.secret, made.digest, target.root, target.path)

    def lookers(self, asked: Sequence[int]) -> dict[int, int]:
        """The accounts found for the requested slots. The first call returns those found by the draw that
        picked the slots; later calls redraw.
        """
        self._tries += 1
        if self._tries > 1:
            self._redraw(asked)
        return dict(self._awaited)

    def attest(self, check: Check) -> None:
        """For each looker that acts, attest its look on the chain, and pay it. Then, if the level has had its
        last draw, give up the looks that are still awaited.
        """
        acts = check.attests | check.challenges
        for slot in [each for each in self._awaited if acts[each, 0]]:
            verifier = self._awaited.pop(slot)
            self._attested.append(slot)
            if not self._awaited:
                self._ask_for_more()
            look = Look(self._level, slot)
            account = self._auditing.attest_one(verifier, look.number, replayed=bool(check.replays[slot, 0]))
            self._stage.books.paid_look(account)
        awaited = sum(1 << slot for slot in self._awaited)
        self._stage.same("looks that are awaited", awaited, self._audit().looking)
        attested = f"looks of level {self._level} attested: {len(self._attested)}"
        self._stage.booked(f"task {self._task}: {attested}")
        if self._awaited and self._tries == LOOK_TRIES:
            self._give_up()

    # ------------------------------------------------------------------ silent lookers

    def _redraw(self, asked: Sequence[int]) -> None:
        self._stage.same("looks that are drawn again", sorted(asked), sorted(self._awaited))
        self._silence(again=True)
        seed = self._auditing.seed()
        drawn = found(words(seed), self._stage.slots, len(asked), self._auditing.accounts)
        if all(each == NOBODY for each in drawn):  # then this draw's transaction ends the level
            self._ask_for_more()
        self._auditing.send(seed)
        self._awaited = {}
        self._seat(asked, drawn)
        self._stage.books.redrawn()
        self._stage.booked(f"task {self._task}: looks drawn again")

    def _give_up(self) -> None:
        self._ask_for_more()
        self._silence(again=False)
        self._awaited = {}
        self._stage.same("looks that are awaited", 0, self._audit().looking)

    def _silence(self, *, again: bool) -> None:
        """Let the silent lookers' time run out, so that each of them loses part of its stake. If another draw
        follows, the first of these lookers pays for it. The rest of what the silent lookers lose is burned.
        """
        stage = self._stage
        stage.until(self._audit().until)
        stage.referee.audit.redraw(self._task)
        accounts = [stage.first_verifier + self._awaited[slot] for slot in sorted(self._awaited)]
        stage.books.asked(accounts, again=again)
        names = ", ".join(map(stage.name, accounts))
        stage.booked(
            f"task {self._task}: {names} silent, {'drawn again' if again else 'their looks given up'}"
        )

    # ------------------------------------------------------------------ helpers

    def _seat(self, slots: Sequence[int], drawn: Sequence[int]) -> None:
        """Record the drawn lookers. The recomputed accounts must equal the chain's."""
        stage = self._stage
        expected = [EMPTY if each == NOBODY else stage.verifiers[each].address for each in drawn]
        numbers = [Look(self._level, slot).number for slot in slots]
        chain = [stage.referee.audit.seat(self._task, number).account for number in numbers]
        stage.same("accounts of the looks", expected, chain)
        taken = {slot: each for slot, each in zip(slots, drawn, strict=True) if each != NOBODY}
        self._awaited |= taken
        self._auditing.accounts += taken.values()

    def _ask_for_more(self) -> None:
        """Prepare the draw of the next level. The next transaction requests this draw, because no look of
        this level is pending after that transaction. Do nothing if no look of this level is attested, if as
        many looks are picked as a task can have, or if this is the last level.
        """
        parameters = self._stage.scenario.parameters
        left = self._picked < parameters.slots and self._level < LEVELS
        if self._attested and left:
            self._auditing.ask_for_looks(self._level + 1, sorted(self._attested), self._picked)

    def _audit(self) -> AuditView:
        return self._stage.referee.audit.audit(self._task)
