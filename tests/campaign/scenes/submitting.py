"""A submitter posts a task, serves its bundle or fetches the result, each with a separate command."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import httpx

from assay.serving import application
from protocol.chain.devnet import HOST
from protocol.chain.views import NOBODY
from protocol.errors import ExitCode
from protocol.node.http import free_port
from protocol.node.serving import Serving
from tests.campaign.parties import solver_beside, under_test, verifier_beside
from tests.campaign.scenes.steps import drawn, handed_in, settled
from tests.campaign.stages import Stage, Who
from tests.campaign.world import STARTING, VERIFIER, World, address

SUBMITTER = 3
"""Index of the development account that posts; `World.submitter` is another account."""
TASK: Final = Path(__file__).parents[1] / "submitted" / "line.toml"


def posting(world: World, _who: Who) -> Iterator[Stage]:
    """The stages of `assay submit`. A person types the command, and types it again if it fails."""
    verifier_beside(world, VERIFIER)
    world.begin()
    world.honest["submitter"] = address(SUBMITTER)
    disk = world.disk_of("assay")
    serving = world.stack.enter_context(Serving(application(disk.seen / "bundles"), HOST, 0))
    verb = ["submit", str(TASK), "--yes", "--bundles-url", world.peer(serving.url)]
    world.party = under_test(world, "assay", verb, {}, [SUBMITTER], typed=True)
    world.reach(lambda: world.rpc.requests > 0, STARTING)
    yield Stage.BEFORE_THE_BID
    world.reach(lambda: _is_posting(world) or bool(world.happened("Posted")))
    yield Stage.POSTING
    world.reach(lambda: world.party is not None and world.party.ended == ExitCode.FINE)
    posted = world.happened("Posted")
    assert len(posted) == 1, f"posted {len(posted)} times"
    assert posted[0].arguments["submitter"] == address(SUBMITTER)


def serving_bundles(world: World, _who: Who) -> Iterator[Stage]:
    """The stages of `assay serve`, from which the solver and the seat fetch the bundle."""
    world.submitter.audit.resign()
    port = free_port(HOST)
    world.bundle_server = f"http://{HOST}:{port}"
    world.party = under_test(world, "assay", ["serve", "--port", str(port)], {}, [], asks_chain=False)
    shutil.copytree(world.published, world.party.disk.seen / "bundles")
    world.awaited.append(lambda: _answers(world.bundle_server))
    solver_beside(world)
    verifier_beside(world, VERIFIER)
    world.begin()
    task = world.post_task()
    yield Stage.BIDDING
    world.reach(lambda: world.view(task).bidder != NOBODY)
    handed_in(world, task)
    drawn(world, task)
    yield Stage.REPLAYING
    world.reach(lambda: world.submitter.audit.audit(task).audited)
    for _ in settled(world, task):
        pass
    world.reach(lambda: _answers(world.bundle_server))


def fetching(world: World, _who: Who) -> Iterator[Stage]:
    """The stages of a task whose submitter types `assay result` once the task is settled."""
    world.submitter.audit.resign()
    solver_beside(world)
    verifier_beside(world, VERIFIER)
    world.begin()
    task = world.post_task()
    yield Stage.BIDDING
    handed_in(world, task)
    drawn(world, task)
    world.reach(lambda: world.submitter.audit.audit(task).audited)
    for _ in settled(world, task):
        pass
    output = world.disk_of("assay").folder / "result"
    world.party = under_test(
        world, "assay", ["result", str(task), "--output", str(output)], {}, [], typed=True
    )
    world.reach(lambda: world.rpc.requests > 0, STARTING)
    yield Stage.WITHDRAWING
    world.reach(lambda: world.party is not None and world.party.ended == ExitCode.FINE)
    assert (world.party.disk.seen / "result" / "state.safetensors").is_file()


def _is_posting(world: World) -> bool:
    """Whether a transaction of the submitter to the market is pending."""
    pending = world.devnet.connection.request("txpool_content")["pending"]
    own = {sender.lower(): calls for sender, calls in pending.items()}.get(address(SUBMITTER).lower(), {})
    market = world.submitter.market.address.lower()
    return any(str(call["to"]).lower() == market for call in own.values())


def _answers(url: str) -> bool:
    with suppress(httpx.HTTPError):
        return httpx.get(f"{url}/healthz", timeout=5).status_code == 200
    return False
