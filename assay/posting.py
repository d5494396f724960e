"""`assay submit` and `assay.train`: check everything that posting needs, then show the price, ask for
consent, and post.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from assay import notes, submitting
from assay import source as sources
from assay.commands import Context
from assay.consent import Ask, at_terminal, require_asked, require_yes
from assay.deriving import Derived
from assay.description import Plan, read
from assay.errors import NobodyTakes, TooFewVerifiers
from assay.known_task import KnownTask
from assay.places import place_of, reached, sold_at
from assay.pricing import Price
from assay.settings import AssaySettings
from assay.source import Captured
from assay.submitting import Prepared
from assay.taking import require_taken
from protocol.chain.accounts import DEVELOPMENT_CHAIN, address_of
from protocol.chain.client import Client
from protocol.chain.connection import Connection
from protocol.chain.duties import MEASURED
from protocol.chain.errors import AccountError, ChainError
from protocol.chain.terms_bounds import require_within_bounds
from protocol.errors import AssayError, ExitCode
from protocol.node.http import require_public
from protocol.node.output import Output
from protocol.node.party.eligible import least_eligible
from protocol.node.party.funds import NotEnoughTokens, require_gas, require_tokens
from protocol.node.party.relays import relays_by
from protocol.node.party.rounds import SignatureOf
from protocol.node.words import duration, tokens
from protocol.tasks.bidding import longest_overtime
from protocol.tasks.task import Terms

Check = Callable[[], None]
POSTING_GAS: Final = sum(MEASURED[name] for name in ("show", "approve", "deposit", "post"))
SAID_EVERY: Final = 30.0
"""Seconds between two lines of output while waiting."""
LOOK_EVERY: Final = 2.0


@dataclass(frozen=True)
class Choices:
    """Command-line options other than settings."""

    yes: bool = False
    """Post without asking."""
    wait: bool = False
    """Wait for verifiers."""
    anyway: bool = False
    """Post even if a solver with default settings would not take the task."""


@dataclass(frozen=True)
class Posted:
    """A posted task and its price."""

    known: KnownTask
    price: Price

    @property
    def task(self) -> int:
        """The number that the task had when it was posted."""
        return self.known.number


def submit(context: Context, file: Path, choices: Choices) -> None:
    """Capture the task in a file, write its bundle, and post it."""
    output = context.output
    description = read(file)
    require_asked(choices.yes, output)
    ask = None if choices.yes else at_terminal
    posted = post(context, description, lambda: sources.captured(description), choices, ask, file)
    task, price = posted.task, posted.price
    output.say(f"task {task} ({description.task.name}) posted; follow it with `assay watch {task}`")
    output.result({"task": task, "sent": True, "terms": asdict(price.terms), "trust": price.derived.report()})


def post(
    context: Context,
    plan: Plan,
    capture: Callable[[], Captured],
    choices: Choices,
    ask: Ask | None,
    file: Path | None = None,
    priced: Callable[[Price], None] = lambda _price: None,
) -> Posted:
    """Capture the task, write its bundle, `ask` for consent, and post. Quick checks come before the capture.
    `priced` is called with the price as soon as it is known, before the other checks; an error that it raises
    ends the posting. `file` is noted as the file that the task came from. Raises AssayError.
    """
    settings, output = context.settings, context.output
    _require_announceable(settings)
    with context.client(account=True) as client:
        place = place_of(settings, client)
        _require_budget(context, client, plan)
        prepared = submitting.prepare(capture(), context.home, place.arithmetic)
        given = plan.terms.fields()
        base = settings.bundle_base
        derived = prepared.derived(place, sold_at(client, plan))
        terms = prepared.terms(base, derived)
        _say(output, prepared, derived, terms)
        priced(Price(derived, terms))
        if sent := _sent(context, client, terms, given):
            terms, task = sent
        else:
            for check in _checks(context, client, client.address, terms, derived, choices):
                check()
            if submitting.is_private(terms):
                allowed = f'bundles = ["{base}/"]'
                output.say(
                    f"that is a private network: only those read there whose config.toml has {allowed}"
                )
            if ask is not None:
                require_yes(ask, Price(derived, terms))
            if choices.wait:
                _await_verifiers(output, settings, client, terms)
            signature_of = _signature_of(settings, client)
            task = submitting.post(client, terms, signature_of, _least(settings, client, terms))
        notes.remember(context.home, client, task, file, terms)
        return Posted(KnownTask(task, client.address, terms), Price(derived, terms))


def dry_run(context: Context, file: Path, choices: Choices) -> None:
    """Check everything that `submit` checks, and send nothing. Prints every error except the gravest, which
    is raised. If no deployment is reachable, the only check is whether a solver with default settings would
    take the task.
    """
    settings, output = context.settings, context.output
    description = read(file)
    with reached(context) as client:
        place = place_of(settings, client)
        prepared = submitting.prepare(sources.captured(description), context.home, place.arithmetic)
        sold = [] if client is None else sold_at(client, description)
        derived = prepared.derived(place, sold)
        terms = prepared.terms(settings.bundle_base, derived)
        if client is None:
            output.say("no deployment is reached: terms are derived for the recommended parameters")
        _say(output, prepared, derived, terms)
        checks = [lambda: _taken(output, terms, derived, choices)]
        if client is not None:
            account = _address(output, settings, client)
            checks = list(_checks(context, client, account, terms, derived, choices))
        found = [error for check in checks if (error := _error_of(check)) is not None]
    output.say("nothing was sent")
    refused = [str(error) for error in found]
    output.result(
        {
            "task": None,
            "sent": False,
            "refused": refused,
            "terms": asdict(terms),
            "trust": derived.report(),
        }
    )
    if found:
        gravest = next((error for error in found if error.exit_code is not ExitCode.RETRY), found[0])
        for error in found:
            if error is not gravest:
                output.say(f"it would be refused: {error}")
        raise gravest


def _checks(
    context: Context,
    client: Client,
    account: str | None,
    terms: Terms,
    derived: Derived,
    choices: Choices,
) -> Iterator[Check]:
    """The checks that must pass before anything is sent, the gravest first. Without an `account`, tokens and
    gas are not checked.
    """
    settings = context.settings
    yield lambda: require_within_bounds(terms, derived.place.parameters)
    yield lambda: _taken(context.output, terms, derived, choices)
    if account is not None:
        escrow = submitting.escrow_of(client, terms)
        yield lambda: require_tokens(client, account, escrow, "for the escrow")
        yield lambda: require_gas(client, account, POSTING_GAS)
    yield lambda: _require_announceable(settings)
    yield lambda: submitting.require_served(terms)
    if not choices.wait:
        yield lambda: submitting.require_verifiers(client, terms, _least(settings, client, terms))


def _error_of(check: Check) -> AssayError | None:
    """The error that a check raises, or None. A ChainError is not returned but raised, because it says
    nothing about the task.
    """
    try:
        check()
    except ChainError:
        raise
    except AssayError as error:
        return error
    return None


def _taken(output: Output, terms: Terms, derived: Derived, choices: Choices) -> None:
    """Raise NobodyTakes if no solver with default settings would take the task. With `--anyway`, only print a
    note.
    """
    try:
        require_taken(terms, derived.usual_solver(terms))
    except NobodyTakes as error:
        if not choices.anyway:
            raise
        output.say(f"note: {error}")


def _sent(context: Context, client: Client, terms: Terms, given: Collection[str]) -> tuple[Terms, int] | None:
    """Find terms that were already sent: by an interrupted command, by one whose post a re-organisation has
    taken back, or by a command run elsewhere. Waits for their task, and returns the terms and the task's id.
    Returns None if nothing was sent. `given` names the terms that are not derived.
    """
    output = context.output
    fixed = submitting.FIELDS - (set(Derived.NAMES) - set(given))
    for intent, sent in submitting.unfinished(client, terms, fixed):
        output.say(
            f"these terms were sent before, with a budget of {tokens(sent.budget)}, by a command that was cut short "
            "or whose post a re-organisation took back: this one waits for their task"
        )
        number, _ = client.market.post(sent, intent)
        return sent, number
    task = submitting.unnoted(context.home, client, terms, fixed)
    if task is None:
        return None
    output.say(f"task {task} has these terms, and no command here knows of it: no other is posted")
    return client.market.terms(task), task


def _say(output: Output, prepared: Prepared, derived: Derived, terms: Terms) -> None:
    """Print the task and its price."""
    for line in (*(f"note: {note}" for note in prepared.notes), *derived.lines()):
        output.say(line)
    step, cost = prepared.bundle.step, prepared.bundle.cost
    output.say(
        f"{prepared.description.task.name}: {len(step.program.instructions)} instructions, {cost.operations:,} "
        f"operations a step, {terms.steps} steps, {terms.state_bytes:,} bytes of state"
    )
    output.say(
        f"bidding takes {duration(terms.bidding_period)}; late bids prolong it, however many there are, by less than "
        f"{duration(longest_overtime(terms.budget, terms.extension))}"
    )
    output.say(f"bundle {prepared.bundle_hash.hex()} at {terms.bundle}")


def _require_budget(context: Context, client: Client, plan: Plan) -> None:
    """Raise NotEnoughTokens if the account has fewer tokens than the budget alone. This is checked before the
    capture. Nothing is raised if an interrupted command may have locked the budget.
    """
    budget = plan.terms.fields().get("budget", 0)
    try:
        require_tokens(client, client.address, budget, "for the budget alone")
    except NotEnoughTokens:
        if not client.market.unfinished_posts() and not submitting.own_unnoted(context.home, client):
            raise


def _await_verifiers(output: Output, settings: AssaySettings, client: Client, terms: Terms) -> None:
    """Wait until enough accounts would take the task's seats, but at most `patience` seconds. Raises
    TooFewVerifiers.
    """
    began = said = time.monotonic()
    first = True
    while True:
        try:
            submitting.require_verifiers(client, terms, _least(settings, client, terms))
            return
        except TooFewVerifiers as error:
            now = time.monotonic()
            if now - began > settings.patience:
                raise
            if first or now - said >= SAID_EVERY:
                left = duration(settings.patience - (now - began))
                output.say(
                    f"waiting for verifiers, at most {left} more: {error.expected}, {error.got} by now"
                )
                first, said = False, now
        time.sleep(LOOK_EVERY)


def _least(settings: AssaySettings, client: Client, terms: Terms) -> int:
    """How many registered accounts must be eligible."""
    needed = least_eligible(client.connection.chain_id, terms.verifiers, terms.jurors)
    return settings.min_eligible or needed


def _address(output: Output, settings: AssaySettings, client: Client) -> str | None:
    """The account's address; None if the account does not exist yet. Finding the address needs no password."""
    try:
        return address_of(settings.account, client.connection.chain_id)
    except AccountError as error:
        output.say(f"note: nobody's tokens were counted: {error}")
        return None


def _signature_of(settings: AssaySettings, client: Client) -> SignatureOf:
    """A function that looks up the beacon signature of a round at the relays. The relays need not be
    configured before it is called. It raises SettingsError, NoRelay.
    """
    network, is_signed = client.deployment.beacon, client.beacon.is_signed_round
    return lambda number: relays_by(settings, network, is_signed).signature(number)


def _require_announceable(settings: AssaySettings) -> None:
    """Raise NotPublic if only this machine can reach the bundle's address, because terms cannot be changed
    once posted. On a development chain, all parties share a machine, so nothing is raised.
    """
    with closing(Connection(settings.rpc)) as connection:
        if connection.chain_id != DEVELOPMENT_CHAIN:
            require_public(settings.bundle_base, "--bundles-url")
