"""A chain with the contracts and all parties of a scenario. The parties have deposits in the vault. The
engine's books are kept beside the chain, for comparison.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from tempfile import TemporaryDirectory
from typing import Final
from uuid import uuid4

from protocol.chain.accounts import DEVELOPMENT_ACCOUNTS, open_account
from protocol.chain.client import Client, connect
from protocol.chain.deploy import deploy
from protocol.chain.deployment import Deployment
from protocol.chain.devnet import Devnet
from protocol.chain.transactions import Sender, Sending
from protocol.chain.views import Offer
from protocol.node.home import VARIABLE
from sim.engine.books import Bonds
from sim.errors import Disagreement, StudyError
from sim.mechanism.booking import DRAWER, FIRST_SOLVER, SUBMITTER
from sim.replay.amounts import SCALE, Amounts, deployment_parameters
from sim.replay.books import Books
from sim.replay.comparison import Comparison, compare
from sim.replay.reading import Reader
from sim.replay.scenario import Scenario
from sim.replay.training import Training

QUICK: Final = Sending(timeout=60.0, poll=0.005)
"""How clients send transactions. They poll for receipts every 5 ms, because the development chain mines each
transaction at once in its own block.
"""
_DEPLOYER: Final = DEVELOPMENT_ACCOUNTS - 1
_OFFER: Final = Offer(
    speed=2**64 - 1, state_bytes=2**64 - 1, lock=2**128 - 1, fee=0, seat_fee=0, period=2**32 - 1
)
"""An offer that lets every verifier accept every task."""


class Stage:
    """A scenario's chain, parties and books. The engine's account i is development account i on the chain.

    After each event, `booked` compares every balance.
    """

    def __init__(
        self,
        devnet: Devnet,
        scenario: Scenario,
        say: Callable[[str], None],
        stack: ExitStack,
        deployment: Deployment | None = None,
    ) -> None:
        """`stack` closes the clients opened here. Raises StudyError if there are more people than development
        accounts.
        """
        people = scenario.population
        self.devnet = devnet
        self.scenario = scenario
        self.amounts = Amounts.of(scenario.parameters, exact=scenario.exact)
        self.training = Training(scenario.parameters.segments)
        self.first_verifier = FIRST_SOLVER + people.solver_count
        self.first_bystander = self.first_verifier + people.verifier_count
        self.slots = [int(count) for count in people.slots]
        self.names = _names(scenario)
        self.events: list[str] = []
        self.judged: list[str] = []
        self.halves = [0] * len(self.names)
        """For each account, the chain units to add to its gain in the engine's int64 ledger to get the exact
        gain. They arise because that ledger rounds half an amount to whole engine units (`halved`). Needed
        with `exact` amounts.
        """
        self.compared = 0
        self._say = say
        deployment = deployment or deployed(devnet, scenario)
        self._unbonding = deployment.parameters.unbonding_period
        self.clients = [
            stack.enter_context(connect(devnet.url, deployment, f"dev:{number}", sending=QUICK))
            for number in range(len(self.names))
        ]
        deposits = self._fund()
        self.books = Books(self.names, deposits, self.amounts, scenario.parameters)
        self._reader = Reader(
            self.clients[SUBMITTER], {client.address: name for client, name in zip(self.clients, self.names)}
        )
        self.booked("first deposits")
        for client, count in zip(self.verifiers, self.slots, strict=True):
            client.audit.register(count.bit_length() - 1, _OFFER)
        self.books.register(self.first_verifier, self.slots)
        self.booked("registrations")

    def halved(self, amount: int, taker: int, giver: int | None = None) -> None:
        """Record the chain units that the int64 ledger loses because it halves an amount in whole engine
        units.

        `taker` gets one half of the amount. `giver` keeps the other half; without a giver, that half is
        burnt.
        """
        lost = amount // 2 - amount // SCALE // 2 * SCALE
        self.halves[taker] += lost
        if giver is not None:
            self.halves[giver] -= lost

    @property
    def verifiers(self) -> list[Client]:
        """The verifiers' clients."""
        return self.clients[self.first_verifier : self.first_bystander]

    @property
    def referee(self) -> Client:
        """The client for calls that anyone may make: the drawer."""
        return self.clients[DRAWER]

    def name(self, account: int) -> str:
        """The name of an account: its kind, number and strategy, or just "submitter" or "drawer"."""
        return self.names[account]

    def until(self, time: int) -> None:
        """Advance the chain's clock past a time."""
        self.devnet.skip(max(0, time - self.referee.now()) + 1)

    def same(self, what: str, expected: object, chain: object) -> None:
        """Raise Disagreement if the chain decided differently from the engine."""
        if expected != chain:
            raise Disagreement(
                f"engine and contracts disagree (scenario {self.scenario.name}), {what}: expected {expected}, "
                f"chain {chain}; one of the two is wrong: report this"
            )

    def booked(self, event: str) -> Comparison:
        """Report an event and compare every balance. Raises Disagreement."""
        self._say(event)
        self.events.append(event)
        comparison = compare(self.scenario.name, event, self.books.balances(), self._reader.balances())
        self.compared += len(comparison.lines)
        return comparison

    def close(self, outcomes: tuple[str, ...]) -> Comparison:
        """Let the verifiers resign and everybody withdraw; return the last comparison. Raises Disagreement."""
        for client in self.verifiers:
            client.audit.resign()
        self.booked("resignations")
        self.devnet.skip(self._unbonding + 1)
        for client in self.verifiers:
            client.audit.leave()
        self.books.resign(self.first_verifier, self.slots)
        self.booked("unbonding over")
        for account, client in enumerate(self.clients):
            free = self.books.free(account)
            client.vault.withdraw(free)
            self.books.withdraw(account, free)
        last = self.booked("everything withdrawn")
        return replace(
            last,
            outcomes=outcomes,
            events=tuple(self.events),
            compared=self.compared,
            judged=tuple(self.judged),
            gains=dict(zip(self.names, self.books.ledger.gains()[:, 0].tolist(), strict=True)),
        )

    def _fund(self) -> list[int]:
        """Mint tokens for all accounts, deposit some of them, and return the deposits by account. A deposit
        is enough for all tasks, plus an odd remainder.
        """
        amounts, terms, people = self.amounts, self.scenario.parameters, self.scenario.population
        bonds = Bonds(amounts.bond, terms.verifiers, people)
        # The submitter may bid itself, challenge, and pre-empt other challengers; a verifier may be silent in its seat.
        each = [amounts.escrow(terms) + amounts.stake + bonds.submitter + amounts.bond, 0]
        each += people.solver_count * [amounts.stake]
        each += people.verifier_count * [amounts.bond + amounts.seat_lock(terms)]
        each += bonds.bystanders
        deposits = [self.scenario.tasks * amount + 2 * account + 1 for account, amount in enumerate(each)]
        for verifier, count in enumerate(self.slots, start=self.first_verifier):
            deposits[verifier] += count * amounts.stake_unit
        for client, amount in zip(self.clients, deposits, strict=True):
            client.token.mint(client.address, amount + amounts.outside)
            client.fund(amount)
        return deposits


def deployed(devnet: Devnet, scenario: Scenario) -> Deployment:
    """New contracts with a scenario's parameters."""
    with Sender(devnet.connection, open_account(f"dev:{_DEPLOYER}", devnet.chain_id), QUICK) as sender:
        parameters = deployment_parameters(scenario.parameters, exact=scenario.exact)
        return deploy(sender, parameters, salt=uuid4().hex)


def _names(scenario: Scenario) -> list[str]:
    names = ["submitter", "drawer"]
    people = scenario.population
    for kind, groups in (
        ("solver", people.solvers),
        ("verifier", people.verifiers),
        ("bystander", people.bystanders),
    ):
        members = [group.strategy.name for group in groups for _ in range(group.size)]
        names += [f"{kind} {number} ({name})" for number, name in enumerate(members, start=1)]
    if len(names) > _DEPLOYER:
        raise StudyError(
            f"scenario {scenario.name!r}: expected at most {_DEPLOYER - 2} solvers, verifiers and bystanders (accounts "
            f"of a development chain), got {len(names) - 2}; leave some out"
        )
    return names


@contextmanager
def own_home() -> Iterator[None]:
    """Keep a replay's deployment file and journals in a temporary folder."""
    before = os.environ.get(VARIABLE)
    with TemporaryDirectory(prefix="assay-replay-") as folder:
        os.environ[VARIABLE] = folder
        try:
            yield
        finally:
            if before is None:
                del os.environ[VARIABLE]
            else:
                os.environ[VARIABLE] = before
