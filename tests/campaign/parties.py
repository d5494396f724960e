"""Starts the parties. The one under test is a process and reaches all others through proxies; the others run
in this process.

Every party has its own home folder.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from protocol.chain.accounts import DEVELOPMENT_CHAIN
from protocol.chain.devnet import HOST
from protocol.node.http import free_port
from solver.strategy import HONEST, Strategy
from tests.campaign.party import Party
from tests.campaign.world import SOLVER, STAKE, World, address
from tests.chain.solver_stage import Solver
from tests.chain.test_verifier_watch import Watcher
from verifier.strategy import Strategy as VerifierStrategy

LOCK_TOKENS = 10
POLL = 0.2
"""Seconds between a node's polls of the chain."""


def solver_under_test(world: World, dawdle: float = 0.0) -> None:
    """Start `solver run` as the party under test; each step takes `dawdle` seconds more."""
    flags = ["--log-json", "--stake", str(STAKE), "--port", str(free_port(HOST))]
    settings = {"poll": POLL, "progress_every": 1, "monitor_port": 0}
    world.party = under_test(world, "solver", ["run", *flags], settings, [SOLVER], dawdle)
    world.awaited.append(lambda: world.party_said("ready"))
    world.honest["solver"] = address(SOLVER)


def verifier_under_test(world: World, *accounts: int, dawdle: float = 0.0) -> None:
    """Start `verifier watch` for these accounts as the party under test; each step takes `dawdle` seconds
    more.
    """
    further = [part for index in accounts[1:] for part in ("--further-account", f"dev:{index}")]
    flags = ["--log-json", "--port", str(free_port(HOST)), *further]
    settings = {"poll": POLL, "stake": LOCK_TOKENS, "monitor_port": 0}
    world.party = under_test(world, "verifier", ["watch", *flags], settings, accounts, dawdle)
    world.awaited.append(lambda: world.party_said("ready"))
    for index in accounts:
        world.honest[f"verifier dev:{index}"] = address(index)


def under_test(
    world: World,
    kind: str,
    verb: Sequence[str],
    settings: Mapping[str, object],
    accounts: Sequence[int],
    dawdle: float = 0.0,
    asks_chain: bool = True,
    typed: bool = False,
) -> Party:
    """Start the command `kind` with the arguments `verb` for the first of the accounts. All the accounts get
    tokens. `typed` says whether a person types the command; otherwise a supervisor starts it.
    """
    for index in accounts:
        world.act(lambda index=index: world.client(f"dev:{index}").close())  # type: ignore[misc]  # gives it tokens
    disk = world.disk_of(kind)
    chosen = {"relays": [world.beacon.url], **settings}
    lines = [f"{name} = {json.dumps(value)}" for name, value in chosen.items()]  # same in TOML and JSON
    (disk.seen / "config.toml").write_text("\n".join([f"[{kind}]", *lines, ""]))
    command = [f"{kind}.cli", *verb]
    if asks_chain:
        command += ["--rpc", world.rpc.url]
        command += ["--deployment", str(world.home.deployment(DEVELOPMENT_CHAIN))]
    command += ["--dev-account", str(accounts[0])] if accounts else []
    party = Party(command, disk, world.folder / f"{kind}-under-test.log", world.environment, typed, dawdle)
    world.stack.callback(party.close)
    return party


def solver_beside(world: World, strategy: Strategy = HONEST, **settings: object) -> Solver:
    """Start an honest solver, or a cheat, in this process and behind a proxy."""
    port = free_port(HOST)
    url = world.peer(f"http://{HOST}:{port}")
    chosen: dict[str, Any] = {
        "port": port,
        "url": url,
        "monitor_port": 0,
        "poll": POLL,
        "stake": STAKE,
        "progress_every": 1,
    }
    chosen |= settings
    node = world.act(lambda: Solver(world.at("solver"), strategy, False, **chosen))
    world.stack.callback(node.close)
    world.honest |= {"solver": node.client.address} if strategy is HONEST else {}
    return node


def verifier_beside(
    world: World,
    account: int,
    *beside: int,
    strategy: VerifierStrategy | None = None,
    honest: bool = True,
    **settings: object,
) -> Watcher:
    """Start a verifier for these accounts in this process and behind a proxy. Without `honest`, the verifier
    may lose tokens.
    """
    port = free_port(HOST)
    url = world.peer(f"http://{HOST}:{port}")
    chosen = {"port": port, "url": url, "monitor_port": 0, "poll": POLL, **settings}
    made, others = strategy or VerifierStrategy(), [f"dev:{index}" for index in beside]
    own = world.at(f"verifier-{account}")
    node = world.act(
        lambda: Watcher(own, made, False, account=f"dev:{account}", beside=others, **chosen)  # type: ignore[arg-type]
    )
    world.stack.callback(node.close)
    if chosen.get("stake") != 0:
        registration = world.submitter.audit.registration
        world.awaited.append(lambda: registration(node.client.address) is not None)
    for client in node.clients if honest else ():
        world.honest[f"verifier {client.address[:8]}"] = client.address
    return node
