"""From a task file to a posted task: capture, bundle, check of the bundle server, escrow, post."""

from __future__ import annotations

import json
import shutil
import time
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from assay.deriving import Derived, Place
from assay.description import Description
from assay.errors import NotServed, TooFewVerifiers
from assay.source import build
from assay.status import open_tasks
from protocol.chain.client import Client
from protocol.chain.recommendation import move_time
from protocol.commitments.atomic import write_atomically
from protocol.node.home import Home
from protocol.node.party.eligible import eligible
from protocol.node.party.funds import require_free
from protocol.node.party.rounds import SignatureOf, show_round
from protocol.tasks.arithmetics import ARITHMETIC
from protocol.tasks.bundles import Bundle, BundleError, BundleRefused, Limits, committed_terms, write_bundle
from protocol.tasks.bundles.sources import open_source, read
from protocol.tasks.bundles.write import MANIFEST
from protocol.tasks.task import Terms, replay_allowance
from protocol.tasks.thinning import recommended_thinning

SERVED_SECONDS = 10.0
"""For the bundle server to answer: it may be starting."""


@dataclass(frozen=True)
class Prepared:
    """A captured task whose bundle lies under the home folder."""

    description: Description
    bundle: Bundle
    bundle_hash: bytes
    notes: tuple[str, ...]
    """What the capture found that the submitter should know."""

    def derived(self, place: Place) -> Derived:
        """All amounts, for a deployment. Raises NoRecommendation."""
        given, committed = self.description.task, committed_terms(self.bundle)
        allowance = replay_allowance(
            given.segment_steps, committed["step_operations"], committed["state_bytes"]
        )
        return Derived.of(self.description, place, allowance)

    def terms(self, base: str, derived: Derived) -> Terms:
        """Terms that name the bundle below `base`, the bundle server's address. Raises TermsError."""
        given = self.description.task
        committed = committed_terms(self.bundle)
        work = committed["step_operations"], committed["state_bytes"]
        fields: dict[str, Any] = {
            "thinning": recommended_thinning(given.segment_steps, *work),
            "move_time": move_time(derived.place.parameters, self.description.terms.attest_period),
            "jurors": derived.jurors,
            "replay_allowance": derived.setting.game_time - self.description.terms.clock,
            **committed,
            **self.description.terms.fields(),
            **derived.amounts.terms(),
        }
        return Terms(
            **fields,
            bundle_hash=self.bundle_hash,
            bundle=f"{base}/bundles/{self.bundle_hash.hex()}",
            segments=given.segments,
            segment_steps=given.segment_steps,
        )


def prepare(description: Description, home: Home, arithmetic: int = ARITHMETIC) -> Prepared:
    """Capture the task and write its bundle under `home.bundles`. Raises SourceError, CaptureError, BundleError."""
    captured = build(description)
    initial = captured.initial_state(description.task.seed)
    bundle = replace(Bundle.of(description.task.name, captured, initial), arithmetic=arithmetic)
    new = home.bundles / f".new-{time.time_ns()}"
    try:
        bundle_hash = write_bundle(bundle, new)
        folder = home.bundles / bundle_hash.hex()
        if not (folder / MANIFEST).is_file():
            shutil.rmtree(folder, ignore_errors=True)  # blobs that another command had fetched for it
            new.rename(folder)
    finally:
        shutil.rmtree(new, ignore_errors=True)
    return Prepared(description, bundle, bundle_hash, captured.notes)


def require_served(terms: Terms) -> None:
    """Raises NotServed unless the bundle can be had where the terms will say, BundleRefused where it never can."""
    limits = Limits(seconds=SERVED_SECONDS)
    deadline = time.monotonic() + SERVED_SECONDS
    while True:
        try:
            with closing(open_source(terms.bundle, limits, anywhere=True)) as source:
                read(source, MANIFEST, limits.manifest_bytes)
            return
        except BundleRefused:
            raise  # waiting does not help
        except BundleError as error:
            if time.monotonic() > deadline:
                raise NotServed(
                    f"bundle at {terms.bundle}: expected it to be served, got: {error.got}; start "
                    "`assay serve` with the same home folder, or name its address with --bundles-url"
                ) from error
        time.sleep(0.3)


def is_private(terms: Terms) -> bool:
    """Whether only those read the bundle who allow its address."""
    try:
        open_source(terms.bundle, Limits()).close()
    except BundleRefused:
        return True
    return False


def is_posted(client: Client, terms: Terms) -> bool:
    """Whether a command that was cut short has sent these terms: `post` then finds the task, or waits for it."""
    return client.market.interrupted("post", terms.abi()) is not None


def unnoted(home: Home, client: Client, terms: Terms) -> int | None:
    """The account's newest task with these terms that is not over and of which nothing is noted here (`remember`): a
    command has posted it that was cut short and whose journal is lost, or that was given in another home folder.

    Waits until it is mined. Raises ChainError.
    """
    assert client.sender is not None
    client.sender.await_unknown()
    tasks, _ = open_tasks(client)
    with client.connection.view():
        client.market.ask_ahead("taskOf", *([task] for task in tasks))
        own = [task for task in tasks if client.market.task(task).submitter == client.address]
        unknown = (task for task in reversed(own) if not _note(home, client, task).is_file())
        return next((task for task in unknown if client.market.terms(task) == terms), None)


def post(client: Client, terms: Terms, signature_of: SignatureOf, least: int) -> int:
    """Lock the escrow and post; the task's id. Before that the beacon's newest round is shown if that is needed: the
    market takes no task whose draws might wait for ever. `least` accounts must be eligible for its seats.

    Raises TooFewVerifiers, NotEnoughTokens, NoRelay, ChainError.
    """
    intent = client.market.interrupted("post", terms.abi())
    if intent is None:
        _require_verifiers(client, terms, least)
        show_round(client, signature_of)
        require_free(client, terms.escrow(client.deployment.parameters.draw_fee), "for the escrow")
    task, _ = client.market.post(terms, intent)
    return task


def _require_verifiers(client: Client, terms: Terms, least: int) -> None:
    found = eligible(client, terms)
    if len(found.accounts) < least:
        raise TooFewVerifiers(
            f"verifiers for {terms.verifiers} seats and juries of {terms.jurors}",
            expected=f"at least {least} registered accounts that take a task with these terms",
            got=f"{len(found.accounts)}{found.why_not_more}",
            remedy="wait until more `verifier watch` run on this chain, or ask for less and pay more; min_eligible is "
            "the setting. A task with `jurors = 0` and `look_chance = 0` asks for fewer, and guarantees less",
        )


def remember(home: Home, client: Client, task: int, file: Path) -> None:
    """Note which file a task came from, for `assay result`."""
    write_atomically(_note(home, client, task), json.dumps({"file": str(file.absolute())}).encode())


def recall(home: Home, client: Client, task: int) -> Path | None:
    """The file that a task came from, if it was submitted from this home folder and is still there."""
    note = _note(home, client, task)
    if not note.is_file():
        return None
    file = Path(json.loads(note.read_text())["file"])
    return file if file.is_file() else None


def _note(home: Home, client: Client, task: int) -> Path:
    connection = client.connection
    chain = f"{connection.chain_id}-{connection.genesis[2:10]}-{client.market.address[2:10]}"
    return home.folder("submitted", chain) / f"{task}.json"
