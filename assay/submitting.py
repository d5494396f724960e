"""Turns a captured task into a posted one: writes its bundle, checks that the bundle is served, locks the
escrow, and posts the task.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Collection, Sequence
from contextlib import closing
from dataclasses import dataclass, fields, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from assay.budgeting import Sold
from assay.deriving import Derived, Place
from assay.description import Plan
from assay.errors import NotServed, TooFewVerifiers
from assay.notes import note_of
from assay.source import Captured
from assay.status import open_tasks
from protocol.chain.client import Client
from protocol.chain.periods import Load
from protocol.node.home import Home
from protocol.node.party.eligible import eligible
from protocol.node.party.funds import require_free
from protocol.node.party.rounds import SignatureOf, show_round
from protocol.program.cost import cost
from protocol.tasks.arithmetics import ARITHMETIC
from protocol.tasks.bundles import (
    Bundle,
    BundleError,
    BundleRefused,
    Limits,
    WrongFile,
    committed_terms,
    write_bundle,
)
from protocol.tasks.bundles.sources import open_source, read_manifest
from protocol.tasks.bundles.write import MANIFEST
from protocol.tasks.owed import Traces
from protocol.tasks.task import Terms
from protocol.tasks.thinning import recommended_thinning

SERVED_SECONDS = 10.0
"""Seconds within which the bundle server must answer; it may still be starting."""
FIELDS: Final = frozenset(field.name for field in fields(Terms))


@dataclass(frozen=True)
class Prepared:
    """A captured task and its bundle. `prepare` has already written the bundle to the home folder when it
    returns this object; `drafted` writes nothing.
    """

    description: Plan
    bundle: Bundle
    bundle_hash: bytes
    notes: tuple[str, ...]
    """Findings of the capture that the submitter should know."""

    @property
    def load(self) -> Load:
        """The load that the task puts on its parties."""
        given, committed = self.description.task, committed_terms(self.bundle)
        tensors = (*self.bundle.state, *self.bundle.dataset, *self.bundle.constants)
        return Load(
            segments=given.segments,
            segment_steps=given.segment_steps,
            step_operations=committed["step_operations"],
            state_bytes=committed["state_bytes"],
            bundle_bytes=sum(memoryview(tensor.data).nbytes for tensor in tensors)
            + sum(len(program.encode()) for program in self.bundle.step.program.closure()),
            traces=Traces.of(cost(self.bundle.step.program)),
            state_tensors=committed["state_tensors"],
        )

    def derived(self, place: Place, sold: Sequence[Sold] = ()) -> Derived:
        """All market terms for a deployment. Raises NoRecommendation."""
        return Derived.of(self.description, place, self.load, sold)

    def terms(self, base: str, derived: Derived) -> Terms:
        """The complete terms. The bundle's address is below `base`, the address of the bundle server. Raises
        TermsError.
        """
        given, load = self.description.task, self.load
        fields: dict[str, Any] = {
            "thinning": recommended_thinning(given.segment_steps, load.step_operations, load.state_bytes),
            **committed_terms(self.bundle),
            **derived.terms(),
        }
        return Terms(
            **fields,
            bundle_hash=self.bundle_hash,
            bundle=f"{base}/bundles/{self.bundle_hash.hex()}",
            segments=given.segments,
            segment_steps=given.segment_steps,
        )


def drafted(captured: Captured, arithmetic: int = ARITHMETIC) -> Prepared:
    """A captured task whose bundle is not written. Its program's id is used in place of the bundle's hash."""
    plan, step = captured.plan, captured.step
    bundle = Bundle.of(plan.task.name, step, step.initial_state(captured.seed))
    bundle = replace(bundle, arithmetic=arithmetic)
    return Prepared(plan, bundle, bundle.step.program.id, step.notes)


def prepare(captured: Captured, home: Home, arithmetic: int = ARITHMETIC) -> Prepared:
    """Write the bundle of a captured task under `home.bundles`. Raises BundleError, ProgramError."""
    draft = drafted(captured, arithmetic)
    new = home.bundles / f".new-{time.time_ns()}"
    try:
        bundle_hash = write_bundle(draft.bundle, new)
        folder = home.bundles / bundle_hash.hex()
        if not _has_manifest(folder, bundle_hash):
            shutil.rmtree(
                folder, ignore_errors=True
            )  # blobs that another command had fetched, or damaged files
            new.rename(folder)
    finally:
        shutil.rmtree(new, ignore_errors=True)
    return replace(draft, bundle_hash=bundle_hash)


def _has_manifest(folder: Path, bundle_hash: bytes) -> bool:
    """Whether a folder has the manifest of this bundle, undamaged."""
    try:
        return sha256((folder / MANIFEST).read_bytes()).digest() == bundle_hash
    except OSError:
        return False


def require_served(terms: Terms, seconds: float = SERVED_SECONDS) -> None:
    """Raise NotServed unless the bundle's manifest is served within `seconds` at the address in the terms;
    raise BundleRefused if the address can never be used.
    """
    limits = Limits(seconds=seconds)
    deadline = time.monotonic() + seconds
    while True:
        try:
            with closing(open_source(terms.bundle, limits, anywhere=True)) as source:
                read_manifest(source, limits.manifest_bytes, terms.bundle_hash)
            return
        except BundleRefused:
            raise  # waiting does not help
        except BundleError as error:
            if time.monotonic() > deadline:
                raise NotServed(
                    f"bundle at {terms.bundle}: expected it to be served, got: {_got(error)}; start "
                    "`assay serve` with the same home folder, or name its address with --bundles-url"
                ) from error
        time.sleep(0.3)


def _got(error: BundleError) -> str | None:
    return f"a manifest with hash {error.got}" if isinstance(error, WrongFile) else error.got


def is_private(terms: Terms) -> bool:
    """Whether only parties that explicitly allow the bundle's address can read the bundle."""
    try:
        open_source(terms.bundle, Limits()).close()
    except BundleRefused:
        return True
    return False


def unfinished(client: Client, terms: Terms, fixed: Collection[str] = FIELDS) -> list[tuple[str, Terms]]:
    """The account's posts of these terms whose outcome nobody saw, the newest first: the intent and the terms
    of each. Such a post was sent by an interrupted command, or a re-organisation has taken it back. It may
    still be mined, so a second post would lock the escrow twice. Only the `fixed` fields of the terms are
    compared, because derived fields may have changed. Raises ChainError.
    """
    assert client.sender is not None
    client.sender.recover()  # finds what was taken back since the sender was opened
    posts = client.market.unfinished_posts()
    return [(intent, sent) for intent, sent in posts if _are_alike(sent, terms, fixed)]


def unnoted(home: Home, client: Client, terms: Terms, fixed: Collection[str] = FIELDS) -> int | None:
    """The account's newest open task that has these terms and is not noted here (`remember`). Such a task was
    posted from another home folder, or by an interrupted command whose journal is lost. Only the `fixed`
    fields of the terms are compared, as in `unfinished`.

    Waits until pending transactions are mined. Raises ChainError.
    """
    assert client.sender is not None
    client.sender.await_unknown()
    own = own_unnoted(home, client)
    with client.connection.view():
        client.market.ask_ahead("termsOf", *([task] for task in own))
        return next((task for task in own if _are_alike(client.market.terms(task), terms, fixed)), None)


def own_unnoted(home: Home, client: Client) -> list[int]:
    """The account's open tasks that are not noted here, the newest first. Raises ChainError."""
    tasks = [task for task in open_tasks(client)[0] if not note_of(home, client, task).is_file()]
    with client.connection.view():
        client.market.ask_ahead("taskOf", *([task] for task in tasks))
        return [task for task in reversed(tasks) if client.market.task(task).submitter == client.address]


def _are_alike(one: Terms, other: Terms, fixed: Collection[str]) -> bool:
    return all(getattr(one, name) == getattr(other, name) for name in fixed)


def post(client: Client, terms: Terms, signature_of: SignatureOf, least: int) -> int:
    """Lock the escrow, post the task and return its id. If needed, first show the beacon's newest round to
    the chain: the market refuses tasks whose draws might never happen. At least `least` accounts must be
    eligible for the task's seats.

    If an interrupted command has already sent this post, only its transaction is awaited.

    Raises TooFewVerifiers, NotEnoughTokens, NoSuchRound, ChainError, and what `signature_of` raises.
    """
    intent = client.market.interrupted("post", terms.abi())
    if intent is None:
        require_verifiers(client, terms, least)
        show_round(client, signature_of)
        require_free(client, escrow_of(client, terms), "for the escrow")
    task, _ = client.market.post(terms, intent)
    return task


def escrow_of(client: Client, terms: Terms) -> int:
    """The token units that are locked when the task is posted."""
    return terms.escrow(client.deployment.parameters.draw_fee)


def require_verifiers(client: Client, terms: Terms, least: int) -> None:
    """Raise TooFewVerifiers if fewer than `least` accounts would take a seat."""
    found = eligible(client, terms)
    if len(found.accounts) < least:
        raise TooFewVerifiers(
            f"verifiers for {terms.verifiers} seats and juries of {terms.jurors}",
            expected=f"at least {least} registered accounts that take a task with these terms",
            got=f"{len(found.accounts)}{found.why_not_more}",
            remedy="wait until more `verifier watch` run on this chain (--wait), or ask for less and pay more; "
            "min_eligible is the setting. A task with `verifiers = 1`, `jurors = 0` and `look_chance = 0` asks for "
            "fewer, and guarantees less",
        )
